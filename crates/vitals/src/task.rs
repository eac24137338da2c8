//! The threads of one process: their context switches, and the processes they started.
//!
//! Does not know clocks or memory: those belong to the process.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

use crate::kept::{Kept, Reader, gone};
use crate::parse::process::{children, switches, times_run};

/// What a look at threads adds to.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Voluntary and involuntary switches since the look before.
    pub switches: (u64, u64),
    /// Processes that are children of these threads.
    pub children: Vec<u32>,
}

/// All threads of a process, by number.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tasks: HashMap<u32, Task>,
    look: u64,
}

#[derive(Debug, Default)]
struct Task {
    files: Option<Files>,
    /// At the last reading.
    switches: (u64, u64),
    /// How often it had been put on a CPU at the last reading; `None` where the kernel does not say.
    runs: Option<u64>,
    /// The look at which it was last listed.
    look: u64,
}

/// What is read of a thread. A kernel may be built without the optional ones.
#[derive(Debug)]
struct Files {
    status: Kept,
    schedstat: Option<Kept>,
    children: Option<Kept>,
}

impl Files {
    fn open(task_dir: &OwnedFd, tid: u32) -> io::Result<Files> {
        let optional = |name: &str| match Kept::open_at(task_dir, &format!("{tid}/{name}")) {
            Ok(file) => Ok(Some(file)),
            Err(error) if gone(&error) => Ok(None),
            Err(error) => Err(error),
        };
        Ok(Files {
            status: Kept::open_at(task_dir, &format!("{tid}/status"))?,
            schedstat: optional("schedstat")?,
            children: optional("children")?,
        })
    }
}

impl Tasks {
    /// Reads every thread. `keep` is how many more threads' files may stay open.
    ///
    /// # Errors
    /// [`gone`] when the process is; anything else means that the numbers are not whole.
    pub fn look(
        &mut self,
        task_dir: &OwnedFd,
        reader: &mut Reader,
        keep: &mut usize,
        sum: &mut Gathered,
    ) -> io::Result<()> {
        self.look += 1;
        let look = self.look;
        reader.numbers_in(task_dir, |tid| self.tasks.entry(tid).or_default().look = look)?;
        self.tasks.retain(|_, task| {
            let lives = task.look == look;
            *keep += usize::from(!lives && task.files.is_some());
            lives
        });
        for (&tid, task) in &mut self.tasks {
            match task.look(task_dir, tid, reader, keep, sum) {
                // A thread that ends while it is read is no error: the process may live on.
                Err(error) if !gone(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// How many threads' files are open.
    pub fn kept(&self) -> usize {
        self.tasks.values().filter(|task| task.files.is_some()).count()
    }
}

impl Task {
    fn look(
        &mut self,
        task_dir: &OwnedFd,
        tid: u32,
        reader: &mut Reader,
        keep: &mut usize,
        sum: &mut Gathered,
    ) -> io::Result<()> {
        let (files, kept) = match self.files.take() {
            Some(files) => (files, true),
            None => (Files::open(task_dir, tid)?, false),
        };
        let read = self.read(&files, reader, sum);
        match (&read, kept) {
            // Not put back: should the number have come to mean another thread, its files are opened at the next look.
            (Err(_), true) => *keep += 1,
            (Err(_), false) => {}
            (Ok(()), true) => self.files = Some(files),
            (Ok(()), false) => {
                if let Some(left) = keep.checked_sub(1) {
                    *keep = left;
                    self.files = Some(files);
                }
            }
        }
        read
    }

    fn read(&mut self, files: &Files, reader: &mut Reader, sum: &mut Gathered) -> io::Result<()> {
        let runs = match &files.schedstat {
            Some(file) => times_run(reader.whole(file)?),
            None => None,
        };
        // `status` takes the kernel four times as long to write as the rest together. A thread that was not put on a
        // CPU since has switched at most once, off it, and that shows when it runs again.
        if runs.is_none() || runs != self.runs {
            if let Some(now) = switches(reader.whole(&files.status)?) {
                sum.switches.0 += now.0.saturating_sub(self.switches.0);
                sum.switches.1 += now.1.saturating_sub(self.switches.1);
                self.switches = now;
            }
            self.runs = runs;
        }
        if let Some(file) = &files.children {
            sum.children.extend(children(reader.pieces(file)?));
        }
        Ok(())
    }
}
