//! One process: its clocks, its memory, its tasks.
//!
//! [`crate::tree`] calls it. It does not know the parent of the process, or what its numbers are for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::time::ClockId;
use nix::unistd::Pid;
use procfs::FromRead;
use procfs::process::Stat;
use rustix::fs::{CWD, Mode, OFlags, openat};
use weir_model::owners::RoleProcess;

use crate::account::{Disk, TICK_NS, Used};
use crate::file::{OpenFile, Reader};
use crate::parse::process::memory_pages;
use crate::task::{Tasks, ThreadScan};

/// Written to `clear_refs`: sets the mark of the largest resident set to the present one (proc_pid_clear_refs(5)), nothing else.
const RESET_PEAK: &[u8] = b"5";

/// A watched process. Its files stay open, so that its number cannot come to mean another process.
#[derive(Debug)]
pub(crate) struct Process {
    pub pid: u32,
    clock: Option<ClockId>,
    stat: OpenFile,
    home: OwnedFd,
    task_dir: OwnedFd,
    tasks: Tasks,
    /// At the last sample; `None` before the first.
    pub last: Option<Used>,
    /// Its CPU time when the window began, ns; 0 of one that came later.
    begun_ns: u64,
}

/// A process at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessSample {
    pub used: Used,
    pub ended: bool,
    /// It was stopped, by a signal or a debugger.
    pub stopped: bool,
    pub threads: u64,
    pub resident_pages: u64,
    pub descriptors: Option<u64>,
}

impl Process {
    /// Begins to watch a process.
    ///
    /// # Errors
    /// When there is no such process, or its files may not be opened.
    pub fn open(pid: u32) -> io::Result<Process> {
        let home = directory(CWD, &format!("/proc/{pid}"))?;
        let task_dir = directory(&home, "task")?;
        let stat = OpenFile::open_at(&home, "stat")?;
        let number = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(Process {
            pid,
            clock: ClockId::pid_cpu_clock_id(Pid::from_raw(number)).ok(),
            stat,
            home,
            task_dir,
            tasks: Tasks::default(),
            last: None,
            begun_ns: 0,
        })
    }

    /// Reads every thread; see [`Tasks::sample`].
    ///
    /// # Errors
    /// As there.
    pub fn sample_tasks(&mut self, reader: &mut Reader, scan: &mut ThreadScan) -> io::Result<()> {
        self.tasks.sample(&self.task_dir, reader, scan)
    }

    /// Reads clocks and memory.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn sample(&mut self, reader: &mut Reader) -> io::Result<ProcessSample> {
        // The clock first: when `stat`, which is bound to the process, can still be read afterwards, then the
        // number meant this process when its clock was read.
        let clock = self.clock.and_then(|clock| clock.now().ok());
        let stat = self.stat(reader)?;
        let own_ns = match clock {
            Some(t) => nanoseconds(t.tv_sec(), t.tv_nsec()),
            None => stat.utime.saturating_add(stat.stime).saturating_mul(TICK_NS),
        };
        let ended = has_ended(&stat);
        let disk = self.disk(reader).or(self.last.filter(|_| ended).and_then(|last| last.disk));
        let used = Used {
            disk,
            own_ns,
            user: stat.utime,
            system: stat.stime,
            children_user: unsigned(stat.cutime),
            children_system: unsigned(stat.cstime),
        };
        let descriptors = if ended { Some(0) } else { self.descriptors(reader) };
        Ok(ProcessSample {
            used,
            ended,
            stopped: matches!(stat.state, 'T' | 't'),
            threads: unsigned(stat.num_threads),
            resident_pages: stat.rss,
            descriptors,
        })
    }

    /// A window begins: what it used until the last sample is not the window's.
    pub fn begin(&mut self) {
        self.begun_ns = self.last.map_or(0, |last| last.own_ns);
        self.tasks.begin();
    }

    /// What it used from [`Process::begin`] to the last sample, over so many seconds, and what the kernel shows of it now; `None`
    /// when it has ended.
    pub fn listed(&self, reader: &mut Reader, page_bytes: u64, length_s: f64) -> Option<RoleProcess> {
        let stat = self.stat(reader).ok().filter(|stat| !has_ended(stat))?;
        let memory = OpenFile::open_at(&self.home, "statm").ok()?;
        let [pages, resident, shared] = memory_pages(reader.whole(&memory).ok()?)?;
        let ns = self.last?.own_ns;
        Some(RoleProcess {
            name: stat.comm,
            pid: self.pid,
            used: if length_s > 0.0 { ns.saturating_sub(self.begun_ns) as f64 / 1e9 / length_s } else { 0.0 },
            cpu_s: ns as f64 / 1e9,
            priority: stat.priority,
            nice: stat.nice,
            virtual_bytes: pages.saturating_mul(page_bytes),
            resident_bytes: resident.saturating_mul(page_bytes),
            shared_bytes: shared.saturating_mul(page_bytes),
        })
    }

    fn stat(&self, reader: &mut Reader) -> io::Result<Stat> {
        Stat::from_read(reader.whole(&self.stat)?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Open descriptors; `None` without permission. Since Linux 6.2 the directory's size says it; before, it is
    /// listed, which takes a microsecond for every few descriptors.
    fn descriptors(&self, reader: &mut Reader) -> Option<u64> {
        reader.reads += 1;
        let size = rustix::fs::statat(&self.home, "fd", rustix::fs::AtFlags::empty()).ok()?.st_size;
        match u64::try_from(size) {
            Ok(count) if count > 0 => Some(count),
            _ => reader.count_in(&directory(&self.home, "fd").ok()?).ok(),
        }
    }

    /// Proportional set size in bytes; `None` when the process is gone or the kernel does not report it. It walks the
    /// page tables of the whole process under its memory lock.
    pub fn proportional_bytes(&self, reader: &mut Reader) -> Option<u64> {
        let file = OpenFile::open_at(&self.home, "smaps_rollup").ok()?;
        let text = reader.whole(&file).ok()?;
        crate::parse::keyed(text, b"Pss:")?.checked_mul(1024)
    }

    /// The largest resident set since the call before (at first: since its start), bytes, by the kernel's own mark, which is then
    /// set back. `None` when the process is gone, or this may not be done; 0 when it has no memory any more, because it is about to
    /// end. Costs two calls, whatever the size is.
    pub fn take_peak_bytes(&self, reader: &mut Reader) -> Option<u64> {
        let file = OpenFile::open_at(&self.home, "status").ok()?;
        let Some(peak) = crate::parse::keyed(reader.whole(&file).ok()?, b"VmHWM:") else { return Some(0) };
        let peak = peak.checked_mul(1024)?;
        let reset = openat(&self.home, "clear_refs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        rustix::io::write(&reset, RESET_PEAK).ok().map(|_| peak)
    }

    /// Disk traffic over its life; `None` when the process is gone or the kernel would not say, or when what it wrote may as well be
    /// memory that it shares through a mapped file: the kernel counts both alike.
    fn disk(&self, reader: &mut Reader) -> Option<Disk> {
        let file = OpenFile::open_at(&self.home, "io").ok()?;
        let text = reader.whole(&file).ok()?;
        let bytes = |key| crate::parse::keyed(text, key);
        let disk = Disk { read: bytes(b"read_bytes:")?, written: bytes(b"write_bytes:")? };
        let before = self.last.and_then(|last| last.disk).unwrap_or_default();
        if disk.written == before.written {
            return Some(disk);
        }
        let maps = OpenFile::open_at(&self.home, "maps").ok()?;
        (!crate::parse::process::shares_a_file(reader.pieces(&maps).ok()?)).then_some(disk)
    }

    /// Whether the process runs or could run: it is neither gone nor a zombie.
    pub fn lives(&self, reader: &mut Reader) -> bool {
        self.stat(reader).is_ok_and(|stat| !has_ended(&stat))
    }

    /// How many threads' files are open.
    pub fn open_tasks(&self) -> usize {
        self.tasks.open_files()
    }
}

fn directory(parent: impl AsFd, path: &str) -> io::Result<OwnedFd> {
    Ok(openat(parent, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Ended, and not yet waited for: it still has its times, and nothing else.
fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X' | 'x')
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    unsigned(seconds).saturating_mul(1_000_000_000).saturating_add(unsigned(nanoseconds))
}
