//! The processes of one role: a supervisor's descendants.
//!
//! [`crate::watch`] calls it once a second. It does not know the time, or what the role does.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_model::owners::RoleProcess;
use weir_model::record::Role;

use crate::account::{Account, Disk, Used};
use crate::file::{Reader, is_gone};
use crate::process::Process;
use crate::task::{StrayThreads, ThreadScan};

/// The processes of a role, or of one of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// The role.
    pub role: Role,
    /// Which of several of that role it is; `None` where the role has one. See [`RoleUsage::parts`].
    ///
    /// [`RoleUsage::parts`]: weir_model::record::RoleUsage::parts
    pub part: Option<String>,
    /// The CPUs that the role was given; empty: none of its own.
    pub cpus: Vec<u32>,
    /// Which processes.
    pub what: What,
}

/// How a role's processes are found.
///
/// The root of a tree is meant to be a *supervisor*: a process that waits for its children and has declared itself their
/// subreaper (prctl(2)), so that orphans stay in the tree and their CPU time ends in the supervisor's accounts. The
/// root's own time is left out unless `include_root`; the times of children it waited for are always in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// All descendants of a process.
    Tree {
        /// The supervisor's process number.
        root: u32,
        /// Whether the root itself counts.
        include_root: bool,
    },
    /// Control groups, with all below them.
    Cgroups {
        /// The folder where the kernel shows them: `/sys/fs/cgroup`, or where another container sees it.
        below: PathBuf,
        /// A part of the name of each one's folder, such as a pod's UID. One that is not there is an error.
        named: Vec<String>,
    },
}

impl Watched {
    /// A single process that is the whole role.
    pub fn process(role: Role, pid: u32) -> Watched {
        Watched { role, part: None, cpus: Vec::new(), what: What::Tree { root: pid, include_root: true } }
    }

    /// All processes below a supervisor.
    pub fn below(role: Role, supervisor: u32) -> Watched {
        Watched { role, part: None, cpus: Vec::new(), what: What::Tree { root: supervisor, include_root: false } }
    }

    /// Control groups below this folder, by a part of each one's name.
    pub fn cgroups(role: Role, below: PathBuf, named: Vec<String>) -> Watched {
        Watched { role, part: None, cpus: Vec::new(), what: What::Cgroups { below, named } }
    }

    /// The root of a tree.
    pub fn root(&self) -> Option<u32> {
        match self.what {
            What::Tree { root, .. } => Some(root),
            What::Cgroups { .. } => None,
        }
    }

    /// The same, on these CPUs.
    pub fn on(self, cpus: Vec<u32>) -> Watched {
        Watched { cpus, ..self }
    }
}

/// A tree at one moment. Counters count from the last [`Tree::begin`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeSample {
    pub cpu_ns: u64,
    /// User and kernel ticks, good for a proportion only.
    pub ticks: (u64, u64),
    pub rss_bytes: u64,
    /// Sum of each process's largest resident set since the sample before.
    pub peak_bytes: Option<u64>,
    pub disk: Option<Disk>,
    pub pss_bytes: Option<u64>,
    pub threads: Option<u64>,
    pub processes: Option<u64>,
    pub descriptors: Option<u64>,
    /// Connections, if a counter was read.
    pub connections: Option<u64>,
    pub switches: Option<(u64, u64)>,
    /// How long threads waited for a CPU, ns.
    pub delay_ns: Option<u64>,
}

impl TreeSample {
    /// Two trees of one role together.
    pub fn plus(self, other: &TreeSample) -> TreeSample {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        let pair = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        TreeSample {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            ticks: pair(self.ticks, other.ticks),
            rss_bytes: self.rss_bytes + other.rss_bytes,
            peak_bytes: both(self.peak_bytes, other.peak_bytes),
            disk: self
                .disk
                .zip(other.disk)
                .map(|(own, other)| Disk { read: own.read + other.read, written: own.written + other.written }),
            pss_bytes: both(self.pss_bytes, other.pss_bytes),
            threads: both(self.threads, other.threads),
            processes: both(self.processes, other.processes),
            descriptors: both(self.descriptors, other.descriptors),
            // Known for the role, not for a tree.
            connections: self.connections.or(other.connections),
            switches: self.switches.zip(other.switches).map(|(own, other)| pair(own, other)),
            delay_ns: both(self.delay_ns, other.delay_ns),
        }
    }
}

/// A tree, from sample to sample.
#[derive(Debug)]
pub(crate) struct Tree {
    role: Role,
    root: u32,
    include_root: bool,
    /// In order of discovery: a parent before its children, the root first.
    processes: Vec<Process>,
    account: Account,
    switches: (u64, u64),
    delay_ns: Option<u64>,
    page_bytes: u64,
    scan: ThreadScan,
    /// Samples since the window began, and those in which a process was stopped.
    samples: (u32, u32),
}

impl Tree {
    /// Begins to watch. The files of up to `open_threads` threads stay open, three descriptors each; those of others
    /// are opened at every sample.
    ///
    /// # Errors
    /// When the root does not exist or may not be read.
    pub fn open(watched: &Watched, root: u32, include_root: bool, open_threads: usize) -> io::Result<Tree> {
        let role = watched.role;
        let process = Process::open(root).map_err(|e| {
            let what = format!("cannot watch process {root} ({}): {e}", role.as_str());
            io::Error::new(e.kind(), what)
        })?;
        Ok(Tree {
            role,
            root,
            include_root,
            processes: vec![process],
            account: Account::default(),
            switches: (0, 0),
            delay_ns: Some(0),
            page_bytes: rustix::param::page_size() as u64,
            scan: ThreadScan { given: watched.cpus.clone(), ..ThreadScan::new(open_threads) },
            samples: (0, 0),
        })
    }

    /// Fails when the root has ended.
    ///
    /// # Errors
    /// `NotFound`, with the role and the process number.
    pub fn check_root(&self, reader: &mut Reader) -> io::Result<()> {
        match self.processes.first() {
            Some(root) if root.pid == self.root && root.lives(reader) => Ok(()),
            _ => {
                let what = format!("process {} ({}) has ended", self.root, self.role.as_str());
                Err(io::Error::new(io::ErrorKind::NotFound, what))
            }
        }
    }

    /// Sets all counters to zero, now. Needs a [`Tree::sample`] just before, which finds every process and thread.
    ///
    /// # Errors
    /// As [`Tree::sample`].
    pub fn begin(&mut self, reader: &mut Reader) -> io::Result<TreeSample> {
        let sample = self.sample(reader)?;
        self.processes.iter_mut().for_each(Process::begin);
        self.account = Account::default();
        self.switches = (0, 0);
        self.delay_ns = self.delay_ns.map(|_| 0);
        self.scan.strays = StrayThreads::default();
        self.scan.busiest_ns = 0;
        self.samples = (0, 0);
        Ok(TreeSample {
            cpu_ns: 0,
            ticks: (0, 0),
            switches: Some((0, 0)),
            delay_ns: self.delay_ns,
            // What was before is not the window's.
            peak_bytes: sample.peak_bytes.map(|_| sample.rss_bytes),
            disk: sample.disk.map(|_| Disk::default()),
            ..sample
        })
    }

    /// Reads the whole tree.
    ///
    /// # Errors
    /// When a living process could not be read (permission, descriptors): then the numbers are incomplete.
    pub fn sample(&mut self, reader: &mut Reader) -> io::Result<TreeSample> {
        self.read(reader).map_err(|error| {
            let what = format!("cannot read the processes of the {}: {error}", self.role.as_str());
            io::Error::new(error.kind(), what)
        })
    }

    fn read(&mut self, reader: &mut Reader) -> io::Result<TreeSample> {
        let mut vanished = self.discover(reader)?;
        let (mut threads, mut processes) = (0, 0);
        let mut sample = TreeSample { descriptors: Some(0), peak_bytes: Some(0), ..TreeSample::default() };
        let mut stopped = false;
        let mut living = Vec::with_capacity(self.processes.len());
        let mut ended = Vec::new();
        // Children before parents: when a child is found to have ended, its parent, read later, has its time already.
        for (index, process) in self.processes.iter_mut().enumerate().rev() {
            let seen = match process.sample(reader) {
                Ok(seen) => seen,
                Err(error) if is_gone(&error) => {
                    vanished.extend(process.last);
                    ended.push(index);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_root = process.pid == self.root && index == 0;
            let counts = !is_root || self.include_root;
            let mut used = seen.used;
            if !counts {
                used = Used { own_ns: 0, user: 0, system: 0, ..used };
            }
            living.push((process.last.unwrap_or_default(), used));
            process.last = Some(used);
            if counts && !seen.ended {
                stopped |= seen.stopped;
                sample.rss_bytes += seen.resident_pages.saturating_mul(self.page_bytes);
                let peak = process.take_peak_bytes(reader);
                let peak = peak.or_else(|| (!process.lives(reader)).then_some(0));
                sample.peak_bytes = sample.peak_bytes.zip(peak).map(|(sum, own)| sum + own);
                threads += seen.threads;
                processes += 1;
                sample.descriptors = sample.descriptors.zip(seen.descriptors).map(|(sum, own)| sum + own);
            }
        }
        // `ended` is in falling order, so that removing one does not move the next.
        for index in ended {
            let process = self.processes.remove(index);
            self.scan.spare_files += process.open_tasks();
        }
        self.account.sample(living.into_iter(), vanished.into_iter());
        self.samples = (self.samples.0 + 1, self.samples.1 + u32::from(stopped));
        Ok(TreeSample {
            cpu_ns: self.account.total_ns(),
            ticks: self.account.ticks(),
            disk: self.account.disk_traffic(),
            switches: Some(self.switches),
            delay_ns: self.delay_ns,
            threads: Some(threads),
            processes: Some(processes),
            ..sample
        })
    }

    /// Its processes as last sampled, the root among them.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|process| process.pid)
    }

    /// Its living processes: what each used since [`Tree::begin`], over so many seconds, and what the kernel shows of it now.
    pub fn list(&self, reader: &mut Reader, length_s: f64) -> Vec<RoleProcess> {
        let counted = self.processes.iter().filter(|process| process.pid != self.root || self.include_root);
        counted.filter_map(|process| process.listed(reader, self.page_bytes, length_s)).collect()
    }

    /// Threads that might run on others' CPUs, since [`Tree::begin`].
    pub fn strays(&self) -> &StrayThreads {
        &self.scan.strays
    }

    /// CPU time of its busiest thread since [`Tree::begin`], ns.
    pub fn busiest_ns(&self) -> u64 {
        self.scan.busiest_ns
    }

    /// Share of the samples since [`Tree::begin`] in which a process was stopped.
    pub fn stopped(&self) -> f64 {
        f64::from(self.samples.1) / f64::from(self.samples.0.max(1))
    }

    /// Sum of the processes' proportional sets; `None` when the kernel does not report that of a living process.
    pub fn proportional_bytes(&self, reader: &mut Reader) -> Option<u64> {
        let mut sum = 0;
        for process in &self.processes {
            let counts = process.pid != self.root || self.include_root;
            if !counts {
                continue;
            }
            match process.proportional_bytes(reader) {
                Some(bytes) => sum += bytes,
                // Gone or a zombie: it has no memory. Alive without a number: then there is no sum.
                None if process.lives(reader) => return None,
                None => {}
            }
        }
        Some(sum)
    }

    /// Reads all tasks, and adds new processes. Returns what the vanished ones had used.
    fn discover(&mut self, reader: &mut Reader) -> io::Result<Vec<Used>> {
        let mut vanished = Vec::new();
        let mut known: HashSet<u32> = self.processes.iter().map(|p| p.pid).collect();
        let mut at = 0;
        // Grows while it is walked: the children of the new ones are read, too.
        while at < self.processes.len() {
            let process = &mut self.processes[at];
            self.scan.counts = at > 0 || process.pid != self.root || self.include_root;
            self.scan.switches = (0, 0);
            self.scan.delay_ns = Some(0);
            self.scan.children.clear();
            match process.sample_tasks(reader, &mut self.scan) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {
                    vanished.extend(process.last);
                    known.remove(&process.pid);
                    self.scan.spare_files += process.open_tasks();
                    self.processes.remove(at);
                    continue;
                }
                Err(error) => return Err(error),
            }
            if self.scan.counts {
                self.switches.0 += self.scan.switches.0;
                self.switches.1 += self.scan.switches.1;
                self.delay_ns = self.delay_ns.zip(self.scan.delay_ns).map(|(sum, own)| sum + own);
            }
            if !reader.has_children_files {
                self.scan.children = children_by_scan(process.pid);
            }
            for &pid in &self.scan.children {
                if known.insert(pid) {
                    match Process::open(pid) {
                        Ok(process) => self.processes.push(process),
                        // Ended since it was listed: its parent's times include it.
                        Err(error) if is_gone(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            at += 1;
        }
        Ok(vanished)
    }
}

/// Children of a process when the kernel was built without `children` files: reads the whole process table.
fn children_by_scan(parent: u32) -> Vec<u32> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    let stats = all.filter_map(|process| process.ok()?.stat().ok());
    let children: HashMap<i32, i32> = stats.map(|stat| (stat.pid, stat.ppid)).collect();
    let of_parent = children.into_iter().filter(|&(_, ppid)| u32::try_from(ppid) == Ok(parent));
    of_parent.filter_map(|(pid, _)| u32::try_from(pid).ok()).collect()
}
