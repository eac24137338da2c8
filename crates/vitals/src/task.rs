//! The threads of one process: their context switches, how long they waited for a CPU, where they ran although it was not theirs, and
//! the processes they started.
//!
//! [`crate::process`] calls it. It does not know clocks or memory: those belong to the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::OwnedFd;

use crate::file::{OpenFile, Reader, is_gone};
use procfs::FromRead;
use procfs::process::Stat;
use weir_model::units::CpuList;

use crate::parse::process::{SchedStat, allowed_cpus, children, schedstat, switches};

/// The inputs and sums of one pass over the threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadScan {
    /// How many more threads' files may stay open.
    pub spare_files: usize,
    /// Voluntary and involuntary switches since the sample before.
    pub switches: (u64, u64),
    /// How long threads waited for a CPU since the sample before, ns; `None` where the kernel does not say.
    pub delay_ns: Option<u64>,
    /// Processes that are children of these threads.
    pub children: Vec<u32>,
    /// CPUs of the role; empty: threads may run everywhere.
    pub given: Vec<u32>,
    /// These threads are the role's.
    pub counts: bool,
    /// What ran elsewhere, or could have.
    pub strays: StrayThreads,
    /// CPU time of the busiest thread since the window began, ns.
    pub busiest_ns: u64,
}

/// Threads that might run on CPUs which are not the role's, and ran, since the window began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StrayThreads {
    /// By number, so that each counts once.
    pub threads: BTreeSet<u32>,
    /// The name of the first one.
    pub name: String,
    /// CPUs that are not the role's and that they might use.
    pub may_use: BTreeSet<u32>,
    /// What they used, ns.
    pub ran_ns: u64,
    /// What they used of CPUs that are not the role's, ns.
    pub outside_ns: BTreeMap<u32, u64>,
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
    /// At the last reading; `None` where the kernel does not say.
    times: Option<SchedStat>,
    /// Its CPU time since the window began, ns.
    ran_ns: u64,
    /// Where it may run, as the kernel lists it.
    allowed: Vec<u8>,
    /// The CPUs among these that are not the role's, and whether others are.
    outside: Vec<u32>,
    inside: bool,
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

    /// A window begins: what threads ran until the last sample is not the window's.
    pub fn begin(&mut self) {
        self.tasks.values_mut().for_each(|task| task.ran_ns = 0);
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
        let read = self.read(&files, reader, scan).map(|ran_ns| {
            if ran_ns > 0 && scan.counts && !self.outside.is_empty() {
                self.strayed(task_dir, tid, ran_ns, reader, scan);
            }
        });
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

    /// Returns what it ran since the reading before, ns.
    fn read(&mut self, files: &Files, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<u64> {
        let times = match &files.schedstat {
            Some(file) => schedstat(reader.whole(file)?),
            None => None,
        };
        let before = self.times.unwrap_or_default();
        let since = |of: fn(&SchedStat) -> u64| times.map(|now| of(&now).saturating_sub(of(&before)));
        scan.delay_ns = scan.delay_ns.zip(since(|it| it.delay_ns)).map(|(sum, own)| sum + own);
        let ran_ns = since(|it| it.ran_ns).unwrap_or(0);
        self.ran_ns += ran_ns;
        if scan.counts {
            scan.busiest_ns = scan.busiest_ns.max(self.ran_ns);
        }
        // `status` takes the kernel four times as long to write as the rest together. A thread that was not put on a
        // CPU since has switched at most once, off it, and that shows when it runs again.
        if times.is_none() || times.map(|it| it.runs) != self.times.map(|it| it.runs) {
            let status = reader.whole(&files.status)?;
            if let Some(now) = switches(status) {
                scan.switches.0 += now.0.saturating_sub(self.switches.0);
                scan.switches.1 += now.1.saturating_sub(self.switches.1);
                self.switches = now;
            }
            if let Some(allowed) = allowed_cpus(status).filter(|allowed| *allowed != self.allowed) {
                self.allowed = allowed.to_owned();
                self.compare(&scan.given);
            }
        }
        self.times = times;
        if let Some(file) = &files.children {
            scan.children.extend(children(reader.pieces(file)?));
        }
        Ok(ran_ns)
    }

    /// Compares where it may run with the role's CPUs.
    fn compare(&mut self, given: &[u32]) {
        let list = std::str::from_utf8(&self.allowed).ok().and_then(|text| text.parse::<CpuList>().ok());
        let all = list.map(CpuList::into_vec).unwrap_or_default();
        self.inside = all.iter().any(|cpu| given.contains(cpu));
        self.outside = all.into_iter().filter(|cpu| !given.is_empty() && !given.contains(cpu)).collect();
    }

    /// It ran, and might have on CPUs that are not the role's.
    fn strayed(&self, task_dir: &OwnedFd, tid: u32, ran_ns: u64, reader: &mut Reader, scan: &mut ThreadScan) {
        let stat = OpenFile::open_at(task_dir, &format!("{tid}/stat"));
        // What ended since then leaves no trace but its time.
        let stat = stat.ok().and_then(|file| Stat::from_read(reader.whole(&file).ok()?).ok());
        let last = stat.as_ref().and_then(|stat| u32::try_from(stat.processor?).ok());
        let strays = &mut scan.strays;
        if strays.threads.is_empty() {
            strays.name = stat.map(|stat| stat.comm).unwrap_or_default();
        }
        strays.threads.insert(tid);
        strays.may_use.extend(&self.outside);
        strays.ran_ns += ran_ns;
        let cpu = if self.inside {
            last.filter(|cpu| self.outside.contains(cpu))
        } else {
            last.or(self.outside.first().copied())
        };
        if let Some(cpu) = cpu {
            *strays.outside_ns.entry(cpu).or_default() += ran_ns;
        }
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
