//! The threads of one process: their context switches, and the processes they started.
//!
//! [`crate::process`] calls it. It does not know clocks or memory: those belong to the process.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

use crate::file::{OpenFile, Reader, is_gone};
use crate::parse::process::{children, switches, times_run};

/// The inputs and sums of one pass over the threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadScan {
    /// How many more threads' files may stay open.
    pub spare_files: usize,
    /// Voluntary and involuntary switches since the sample before.
    pub switches: (u64, u64),
    /// Processes that are children of these threads.
    pub children: Vec<u32>,
}

impl ThreadScan {
    pub fn new(spare_files: usize) -> ThreadScan {
        ThreadScan { spare_files, ..ThreadScan::default() }
    }
}

/// All threads of a process, by number.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tasks: HashMap<u32, Task>,
    /// How often the directory was listed.
    listings: u64,
    /// Links of the directory when it was last listed: two more than there are threads.
    links: u64,
}

#[derive(Debug, Default)]
struct Task {
    files: Option<Files>,
    /// At the last reading.
    switches: (u64, u64),
    /// How often it had been put on a CPU at the last reading; `None` where the kernel does not say.
    runs: Option<u64>,
    /// The listing that it was last found in.
    listing: u64,
}

/// What is read of a thread. A kernel may be built without the optional ones.
#[derive(Debug)]
struct Files {
    status: OpenFile,
    schedstat: Option<OpenFile>,
    children: Option<OpenFile>,
}

impl Files {
    fn open(task_dir: &OwnedFd, tid: u32) -> io::Result<Files> {
        let optional = |name: &str| match OpenFile::open_at(task_dir, &format!("{tid}/{name}")) {
            Ok(file) => Ok(Some(file)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        };
        Ok(Files {
            status: OpenFile::open_at(task_dir, &format!("{tid}/status"))?,
            schedstat: optional("schedstat")?,
            children: optional("children")?,
        })
    }
}

impl Tasks {
    /// Reads all threads.
    ///
    /// # Errors
    /// [`is_gone`] when the process is; anything else means that the numbers are not whole.
    pub fn sample(&mut self, task_dir: &OwnedFd, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<()> {
        // Listing costs the kernel a lookup for each thread. While their number stays and each that was known can be
        // read, they are the same.
        #[allow(clippy::useless_conversion)] // Links have 32 bits on some architectures.
        let links = u64::from(rustix::fs::fstat(task_dir)?.st_nlink);
        if links == self.links && self.read_all(task_dir, reader, scan)? {
            return Ok(());
        }
        self.links = links;
        self.list(task_dir, reader, scan)?;
        // A thread that has ended since it was listed does not matter.
        self.read_all(task_dir, reader, scan).map(drop)
    }

    fn list(&mut self, task_dir: &OwnedFd, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<()> {
        self.listings += 1;
        let listing = self.listings;
        reader.numbers_in(task_dir, |tid| self.tasks.entry(tid).or_default().listing = listing)?;
        self.tasks.retain(|_, task| {
            let lives = task.listing == listing;
            scan.spare_files += usize::from(!lives && task.files.is_some());
            lives
        });
        Ok(())
    }

    /// Reads the threads that are known; false when one of them has ended.
    fn read_all(&mut self, task_dir: &OwnedFd, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<bool> {
        let mut all = true;
        for (&tid, task) in &mut self.tasks {
            match task.sample(task_dir, tid, reader, scan) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => all = false,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// How many threads' files are open.
    pub fn open_files(&self) -> usize {
        self.tasks.values().filter(|task| task.files.is_some()).count()
    }
}

impl Task {
    fn sample(&mut self, task_dir: &OwnedFd, tid: u32, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<()> {
        let (files, kept) = match self.files.take() {
            Some(files) => (files, true),
            None => (Files::open(task_dir, tid)?, false),
        };
        let read = self.read(&files, reader, scan);
        match (&read, kept) {
            // Not put back: should the number have come to mean another thread, its files are opened at the next
            // sample.
            (Err(_), true) => scan.spare_files += 1,
            (Err(_), false) => {}
            (Ok(()), true) => self.files = Some(files),
            (Ok(()), false) => {
                if let Some(left) = scan.spare_files.checked_sub(1) {
                    scan.spare_files = left;
                    self.files = Some(files);
                }
            }
        }
        read
    }

    fn read(&mut self, files: &Files, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<()> {
        let runs = match &files.schedstat {
            Some(file) => times_run(reader.whole(file)?),
            None => None,
        };
        // `status` takes the kernel four times as long to write as the rest together. A thread that was not put on a
        // CPU since has switched at most once, off it, and that shows when it runs again.
        if runs.is_none() || runs != self.runs {
            if let Some(now) = switches(reader.whole(&files.status)?) {
                scan.switches.0 += now.0.saturating_sub(self.switches.0);
                scan.switches.1 += now.1.saturating_sub(self.switches.1);
                self.switches = now;
            }
            self.runs = runs;
        }
        if let Some(file) = &files.children {
            scan.children.extend(children(reader.pieces(file)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::JoinHandle;

    use rustix::fs::{CWD, Mode, OFlags, openat};

    use super::*;

    /// A thread that waits for the end of the test, and its number.
    fn waiting() -> (u32, Sender<()>, JoinHandle<()>) {
        let ((number, sent), (go, gone)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            // The test that waits for it is alive, or nobody cares.
            let _ = number.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = gone.recv();
        });
        (u32::try_from(sent.recv().expect("it says its number")).expect("is positive"), go, thread)
    }

    /// Other tests' threads come and go meanwhile; these two are found by number.
    #[test]
    fn a_thread_that_takes_the_place_of_another_is_found() {
        let dir = openat(CWD, "/proc/self/task", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let dir = dir.expect("this process has threads");
        let (mut tasks, mut reader, mut scan) = (Tasks::default(), Reader::new(), ThreadScan::new(500));
        let (first, go, thread) = waiting();
        tasks.sample(&dir, &mut reader, &mut scan).expect("lives");
        assert!(tasks.tasks.contains_key(&first));
        assert!(scan.switches.0 >= 1, "the thread waited: {:?}", scan.switches);
        go.send(()).expect("it waits");
        thread.join().expect("it ended");
        let (second, go, thread) = waiting();
        tasks.sample(&dir, &mut reader, &mut scan).expect("lives");
        // A thread that was joined may be listed for a moment; it need not be gone yet, but the new one must be there.
        assert!(tasks.tasks.contains_key(&second));
        assert_eq!(scan.spare_files + tasks.open_files(), 500);
        go.send(()).expect("it waits");
        thread.join().expect("it ended");
    }

    #[test]
    fn without_room_files_are_opened_each_time() {
        let dir = openat(CWD, "/proc/self/task", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let dir = dir.expect("this process has threads");
        let (mut tasks, mut reader, mut scan) = (Tasks::default(), Reader::new(), ThreadScan::new(0));
        tasks.sample(&dir, &mut reader, &mut scan).expect("lives");
        tasks.sample(&dir, &mut reader, &mut scan).expect("lives");
        assert_eq!((tasks.open_files(), scan.spare_files), (0, 0));
        assert!(scan.switches != (0, 0));
    }
}
