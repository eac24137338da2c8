//! The processes of no role: which of them used the roles' CPUs, and how much.
//!
//! [`crate::watch`] calls it with each sample. A process's clock costs one call and no file, so all of the machine's are read each
//! second; only of those that ran is it read on which CPU each thread was last, and what ran since then is taken to have been there.
//! Children that ended between two samples show in what their parents waited for, when the window is over. It sees the processes of
//! its own PID namespace, and does not know what roles are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;

use nix::time::ClockId;
use nix::unistd::Pid;
use procfs::FromRead;
use procfs::process::Stat;
use rustix::fs::{CWD, Mode, OFlags, openat};
use weir_model::owners::OtherProcess;
use weir_model::units::CpuList;

use crate::account::TICK_NS;
use crate::file::{OpenFile, Reader};
use crate::parse::process::{allowed_cpus, schedstat};
use crate::sys::online_cpus;

/// A process that ran less than this since it was last looked at is not looked at.
const LEAST_NS: u64 = 1_000_000;
/// Of a process with more threads than this, the CPU of the first one stands for all.
const MOST_THREADS: usize = 256;
/// So many are listed.
const LISTED: usize = 8;
/// Set of a thread of the kernel's own (PF_KTHREAD).
const KERNEL: u32 = 0x0020_0000;

/// The other processes, from sample to sample.
#[derive(Debug)]
pub(crate) struct Others {
    proc_dir: OwnedFd,
    /// The roles' CPUs.
    cpus: Vec<u32>,
    processes: HashMap<u32, Other>,
    /// How many processes there were at the last sample, own ones among them; `None` without a list.
    alive: Option<u64>,
    /// What those that are gone had used since they were first seen and what their children had: a parent takes it over.
    gone_ns: u64,
    /// Those that are gone and had used much.
    listed: Vec<(u32, Other)>,
}

#[derive(Debug, Default)]
struct Other {
    /// CPU time at the last sample, ns.
    clock_ns: u64,
    /// What was not looked at yet, ns.
    pending_ns: u64,
    /// Ended children's time when it was first seen, ns.
    children_ns: u64,
    about: Option<About>,
    threads: HashMap<u32, u64>,
    /// Of each CPU that it was seen on, since the window's begin, ns.
    used: BTreeMap<u32, u64>,
    /// The part of it that is ended children's, ns.
    ended_ns: u64,
    /// What it had used of the roles' CPUs at the last sample, and the most from one sample to the next, ns.
    on_roles_ns: u64,
    peak_ns: u64,
}

#[derive(Debug)]
struct About {
    name: String,
    kernel: bool,
    last_cpu: u32,
}

impl Other {
    fn counts(&self) -> bool {
        self.about.as_ref().is_none_or(|about| !about.kernel)
    }
}

impl Others {
    /// Begins to look.
    ///
    /// # Errors
    /// When processes cannot be listed.
    pub fn open(cpus: Vec<u32>) -> io::Result<Others> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc_dir = openat(CWD, "/proc", flags, Mode::empty())?;
        Ok(Others { proc_dir, cpus, processes: HashMap::new(), alive: None, gone_ns: 0, listed: Vec::new() })
    }

    /// Finds all processes but these, and what their ended children had used. It reads a file of each: do it before a window.
    pub fn prepare(&mut self, own: &HashSet<u32>, reader: &mut Reader) {
        self.processes.clear();
        self.gone_ns = 0;
        self.sample(own, reader);
        for (pid, other) in &mut self.processes {
            if let Some(stat) = self::stat(&self.proc_dir, &format!("{pid}/stat"), reader) {
                other.children_ns = children_ns(&stat);
                other.about = Some(about(&stat));
            }
        }
    }

    /// Sets all counters to zero, now. Needs [`Others::prepare`].
    pub fn begin(&mut self, own: &HashSet<u32>, reader: &mut Reader) {
        self.sample(own, reader);
        self.listed.clear();
        for other in self.processes.values_mut() {
            other.used.clear();
            (other.pending_ns, other.on_roles_ns, other.peak_ns) = (0, 0, 0);
        }
    }

    /// Reads the clocks of all processes but these. Returns what was used of each CPU of the roles since the window's begin, ns.
    pub fn sample(&mut self, own: &HashSet<u32>, reader: &mut Reader) -> BTreeMap<u32, u64> {
        let mut alive: HashSet<u32> = HashSet::with_capacity(self.processes.len());
        // Without a list there is nothing to read; all would seem to have ended.
        let listed = reader.numbers_in(&self.proc_dir, |pid| _ = alive.insert(pid));
        self.alive = listed.is_ok().then_some(alive.len() as u64);
        if self.alive.is_none() {
            return self.by_cpu();
        }
        for &pid in alive.difference(own) {
            let Some(clock_ns) = clock_ns(pid) else { continue };
            let other = self.processes.entry(pid).or_default();
            if clock_ns < other.clock_ns {
                // The number is another process's now.
                *other = Other::default();
            }
            other.pending_ns += clock_ns - other.clock_ns;
            other.clock_ns = clock_ns;
            if other.pending_ns >= LEAST_NS {
                other.look(&self.proc_dir, pid, reader);
                let now = self.cpus.iter().filter_map(|cpu| other.used.get(cpu)).sum();
                other.peak_ns = other.peak_ns.max(now - other.on_roles_ns);
                other.on_roles_ns = now;
            }
        }
        let gone = self.processes.extract_if(|pid, _| !alive.contains(pid) || own.contains(pid));
        for (pid, other) in gone {
            if own.contains(&pid) {
                continue;
            }
            self.gone_ns += other.clock_ns + other.children_ns;
            if !other.used.is_empty() {
                self.listed.push((pid, other));
            }
        }
        self.by_cpu()
    }

    /// Adds what children used that ended in the window, to the parent that waited for most of it, and to the CPUs that these might
    /// use. It reads a file of each process: do it after a window.
    pub fn finish(&mut self, reader: &mut Reader) {
        let (mut sum, mut most) = (0, None);
        for (&pid, other) in &mut self.processes {
            let Some(stat) = self::stat(&self.proc_dir, &format!("{pid}/stat"), reader) else { continue };
            let grown = children_ns(&stat).saturating_sub(other.children_ns);
            sum += grown;
            if grown > most.map_or(0, |(_, most)| most) {
                other.about = Some(about(&stat));
                most = Some((pid, grown));
            }
        }
        // Children's times are in ticks, those of the living in ns.
        let ended = sum.saturating_sub(self.gone_ns);
        let Some((pid, _)) = most.filter(|_| ended > 2 * TICK_NS) else { return };
        // Where they ran is not known: they inherit where they may.
        let cpus = self.allowed(pid, reader);
        let Some(other) = self.processes.get_mut(&pid) else { return };
        other.ended_ns += ended;
        for cpu in &cpus {
            *other.used.entry(*cpu).or_default() += ended / cpus.len() as u64;
        }
    }

    /// The CPUs on which a process may run, as far as they are online.
    fn allowed(&self, pid: u32, reader: &mut Reader) -> Vec<u32> {
        let status = OpenFile::open_at(&self.proc_dir, &format!("{pid}/status"));
        let list = status.ok().and_then(|file| {
            let text = std::str::from_utf8(allowed_cpus(reader.whole(&file).ok()?)?).ok()?;
            Some(text.parse::<CpuList>().ok()?.into_vec())
        });
        let online = online_cpus();
        let is_online = |cpu: &u32| online.as_ref().is_none_or(|online| online.contains(cpu));
        list.unwrap_or_default().into_iter().filter(is_online).collect()
    }

    /// Those that used the roles' CPUs most, over so many seconds.
    pub fn busiest(&self, length_s: f64) -> Vec<OtherProcess> {
        let share = |ns: u64| ns as f64 / 1e9 / length_s;
        let all = self.processes.iter().map(|(pid, other)| (*pid, other));
        let gone = self.listed.iter().map(|(pid, other)| (*pid, other));
        let mut all: Vec<OtherProcess> = all
            .chain(gone)
            .filter_map(|(pid, other)| {
                let about = other.about.as_ref()?;
                let used = other.used.iter().filter(|(cpu, _)| self.cpus.contains(cpu));
                Some(OtherProcess {
                    name: about.name.clone(),
                    pid,
                    kernel: about.kernel,
                    used: used.map(|(cpu, ns)| (*cpu, share(*ns))).collect(),
                    peak: other.peak_ns as f64 / 1e9,
                    ended_children: (other.ended_ns > 0).then(|| share(other.ended_ns)),
                })
            })
            .filter(|process| !process.used.is_empty())
            .collect();
        // What was there for a second, too.
        let much = |process: &OtherProcess| process.on(&self.cpus).max(process.peak / 10.0);
        all.sort_by(|a, b| much(b).total_cmp(&much(a)));
        all.truncate(LISTED);
        all
    }

    /// What a process used since the window's begin, on whatever CPU, ns.
    pub fn used_ns(&self, pid: u32) -> Option<u64> {
        self.processes.get(&pid).map(|other| other.used.values().sum::<u64>() + other.pending_ns)
    }

    /// How many processes there were at the last sample, those of the roles among them; `None` where they could not be listed.
    pub fn alive(&self) -> Option<u64> {
        self.alive
    }

    /// The processes that were there at the last sample.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// What was used of each CPU of the roles since the window's begin, ns; not by threads of the kernel.
    pub fn by_cpu(&self) -> BTreeMap<u32, u64> {
        let mut sum: BTreeMap<u32, u64> = self.cpus.iter().map(|cpu| (*cpu, 0)).collect();
        let all = self.processes.values().chain(self.listed.iter().map(|(_, other)| other));
        for (cpu, ns) in all.filter(|other| other.counts()).flat_map(|other| &other.used) {
            sum.entry(*cpu).and_modify(|sum| *sum += ns);
        }
        sum
    }
}

impl Other {
    /// Finds out where it ran.
    fn look(&mut self, proc_dir: &OwnedFd, pid: u32, reader: &mut Reader) {
        let Some(stat) = stat(proc_dir, &format!("{pid}/stat"), reader) else { return };
        let about = about(&stat);
        let ran = std::mem::take(&mut self.pending_ns);
        let places = if stat.num_threads > 1 { self.places(proc_dir, pid, reader) } else { Vec::new() };
        let whole: u64 = places.iter().map(|(_, ns)| ns).sum();
        if whole == 0 {
            *self.used.entry(about.last_cpu).or_default() += ran;
        }
        for (cpu, ns) in places.into_iter().filter(|_| whole > 0) {
            *self.used.entry(cpu).or_default() += (u128::from(ran) * u128::from(ns) / u128::from(whole)) as u64;
        }
        self.about = Some(about);
    }

    /// Where its threads were last, and what each had run since the time before, ns.
    fn places(&mut self, proc_dir: &OwnedFd, pid: u32, reader: &mut Reader) -> Vec<(u32, u64)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(tasks) = openat(proc_dir, format!("{pid}/task"), flags, Mode::empty()) else { return Vec::new() };
        let mut tids = Vec::new();
        if reader.numbers_in(&tasks, |tid| tids.push(tid)).is_err() || tids.len() > MOST_THREADS {
            return Vec::new();
        }
        let mut now = HashMap::with_capacity(tids.len());
        let mut places = Vec::new();
        for tid in tids {
            let file = OpenFile::open_at(&tasks, &format!("{tid}/schedstat"));
            let times = file.ok().and_then(|file| schedstat(reader.whole(&file).ok()?));
            let Some(times) = times else { continue };
            now.insert(tid, times.ran_ns);
            let ran = times.ran_ns.saturating_sub(self.threads.get(&tid).copied().unwrap_or(0));
            if let Some(stat) = stat(&tasks, &format!("{tid}/stat"), reader).filter(|_| ran > 0) {
                places.push((about(&stat).last_cpu, ran));
            }
        }
        self.threads = now;
        places
    }
}

/// CPU time of all threads of a process so far, those that ended included; `None` when it is gone.
fn clock_ns(pid: u32) -> Option<u64> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    let now = clock.now().ok()?;
    Some(u64::try_from(now.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(now.tv_nsec()).ok()?)
}

fn stat(dir: &OwnedFd, path: &str, reader: &mut Reader) -> Option<Stat> {
    let file = OpenFile::open_at(dir, path).ok()?;
    Stat::from_read(reader.whole(&file).ok()?).ok()
}

fn about(stat: &Stat) -> About {
    let last_cpu = stat.processor.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0);
    About { name: stat.comm.clone(), kernel: stat.flags & KERNEL != 0, last_cpu }
}

fn children_ns(stat: &Stat) -> u64 {
    u64::try_from(stat.cutime.saturating_add(stat.cstime)).unwrap_or(0).saturating_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn all_cpus() -> Vec<u32> {
        (0..1024).collect()
    }

    #[test]
    fn a_process_that_runs_is_named_and_an_own_one_is_not() {
        let (mut others, mut reader) = (Others::open(all_cpus()).expect("/proc"), Reader::new());
        let loops = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts");
        let (mut busy, mut own) = (loops(), loops());
        let owned = HashSet::from([own.id()]);
        others.prepare(&owned, &mut reader);
        others.begin(&owned, &mut reader);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let by_cpu = others.sample(&owned, &mut reader);
        let listed = others.busiest(0.3);
        for child in [&mut busy, &mut own] {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
        let seen = listed.iter().find(|it| it.pid == busy.id()).unwrap_or_else(|| panic!("{listed:?}"));
        assert_eq!(seen.name, "sh");
        assert!(by_cpu.values().sum::<u64>() >= LEAST_NS && seen.on(&all_cpus()) > 0.01, "{listed:?}");
        assert!((seen.on(&all_cpus()) * 0.3 - seen.peak).abs() < 1e-6, "one sample: {seen:?}");
        assert!(listed.iter().all(|it| it.pid != own.id()));
        // What was used stays when the process is gone.
        let after = others.sample(&owned, &mut reader);
        assert!(by_cpu.iter().all(|(cpu, ns)| after[cpu] >= *ns));
    }

    #[test]
    fn children_that_ended_between_two_samples_are_their_parents() {
        let (mut others, mut reader) = (Others::open(all_cpus()).expect("/proc"), Reader::new());
        let script = "read x; sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done'; echo; read x";
        let mut command = Command::new("sh");
        let mut parent =
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh starts");
        // Processes of the machine that end meanwhile have parents, too.
        let mut owned = HashSet::new();
        reader.numbers_in(&others.proc_dir, |pid| _ = owned.insert(pid)).expect("/proc");
        owned.remove(&parent.id());
        others.prepare(&owned, &mut reader);
        others.begin(&owned, &mut reader);
        let mut input = parent.stdin.take().expect("piped");
        std::io::Write::write_all(&mut input, b"\n").expect("it reads");
        let mut output = std::io::BufReader::new(parent.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut output, &mut String::new()).expect("it answers");
        others.sample(&owned, &mut reader);
        others.finish(&mut reader);
        let ended: f64 = others.busiest(1.0).iter().filter_map(|it| it.ended_children).sum();
        drop(input);
        parent.wait().expect("ended");
        assert!(ended > 0.05, "{ended}: the child used some hundred milliseconds");
    }
}
