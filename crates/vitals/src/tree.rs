//! The processes of one role: a supervisor's descendants.
//!
//! Does not know the time, or what the role does.

use std::collections::{HashMap, HashSet};
use std::io;

use weir_model::record::Role;

use crate::account::{Account, Used};
use crate::kept::{Reader, gone};
use crate::process::Process;
use crate::task::Gathered;

/// A role's process tree: all descendants of `root`.
///
/// The root is meant to be a *supervisor*: a process that waits for its children and has declared itself their
/// subreaper (prctl(2)), so that orphans stay in the tree and their CPU time ends in the supervisor's accounts. The root's
/// own time is left out unless `include_root`; the times of children it waited for are always in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Whose tree it is.
    pub role: Role,
    /// The supervisor's process number.
    pub root: u32,
    /// Whether the root itself counts.
    pub include_root: bool,
}

/// What one look at a tree saw. Counters count from the last [`Tree::begin`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeLook {
    pub cpu_ns: u64,
    /// User and kernel ticks, good for a proportion only.
    pub ticks: (u64, u64),
    pub rss_bytes: u64,
    pub pss_bytes: Option<u64>,
    pub threads: u64,
    pub processes: u64,
    pub descriptors: Option<u64>,
    /// Connections, where somebody was asked who knows.
    pub connections: Option<u64>,
    pub switches: (u64, u64),
}

/// The tree, from look to look.
#[derive(Debug)]
pub(crate) struct Tree {
    pub watched: Watched,
    /// In order of discovery: a parent before its children, the root first.
    processes: Vec<Process>,
    account: Account,
    switches: (u64, u64),
    keep: usize,
    page_bytes: u64,
    gathered: Gathered,
}

impl Tree {
    /// Begins to watch. The files of up to `keep` threads stay open, three descriptors each; those of others are opened at
    /// every look.
    ///
    /// # Errors
    /// When the root does not exist or may not be read.
    pub fn open(watched: Watched, keep: usize) -> io::Result<Tree> {
        let root = Process::open(watched.root).map_err(|e| {
            let what = format!("cannot watch process {} ({}): {e}", watched.root, watched.role.as_str());
            io::Error::new(e.kind(), what)
        })?;
        Ok(Tree {
            watched,
            processes: vec![root],
            account: Account::default(),
            switches: (0, 0),
            keep,
            page_bytes: rustix::param::page_size() as u64,
            gathered: Gathered::default(),
        })
    }

    /// Fails when the root has ended.
    ///
    /// # Errors
    /// `NotFound`, with the role and the process number.
    pub fn check_root(&self, reader: &mut Reader) -> io::Result<()> {
        match self.processes.first() {
            Some(root) if root.pid == self.watched.root && root.lives(reader) => Ok(()),
            _ => {
                let what = format!("process {} ({}) has ended", self.watched.root, self.watched.role.as_str());
                Err(io::Error::new(io::ErrorKind::NotFound, what))
            }
        }
    }

    /// Sets all counters to zero, now. Wants a [`Tree::look`] just before, by which every process and thread is known.
    ///
    /// # Errors
    /// As [`Tree::look`].
    pub fn begin(&mut self, reader: &mut Reader) -> io::Result<TreeLook> {
        let seen = self.look(reader)?;
        self.account = Account::default();
        self.switches = (0, 0);
        Ok(TreeLook { cpu_ns: 0, ticks: (0, 0), switches: (0, 0), ..seen })
    }

    /// Reads the whole tree.
    ///
    /// # Errors
    /// When something that lives could not be read (permission, descriptors): then the numbers are not whole.
    pub fn look(&mut self, reader: &mut Reader) -> io::Result<TreeLook> {
        self.read(reader).map_err(|error| {
            let what = format!("cannot read the processes of the {}: {error}", self.watched.role.as_str());
            io::Error::new(error.kind(), what)
        })
    }

    fn read(&mut self, reader: &mut Reader) -> io::Result<TreeLook> {
        let mut vanished = self.discover(reader)?;
        let mut look = TreeLook { descriptors: Some(0), ..TreeLook::default() };
        let mut living = Vec::with_capacity(self.processes.len());
        let mut ended = Vec::new();
        // Children before parents: when a child is found to have ended, its parent, read later, has its time already.
        for (index, process) in self.processes.iter_mut().enumerate().rev() {
            let seen = match process.look(reader) {
                Ok(seen) => seen,
                Err(error) if gone(&error) => {
                    vanished.extend(process.last);
                    ended.push(index);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_root = process.pid == self.watched.root && index == 0;
            let counts = !is_root || self.watched.include_root;
            let mut used = seen.used;
            if !counts {
                used = Used { own_ns: 0, user: 0, system: 0, ..used };
            }
            living.push((process.last.unwrap_or_default(), used));
            process.last = Some(used);
            if counts && !seen.ended {
                look.rss_bytes += seen.resident_pages.saturating_mul(self.page_bytes);
                look.threads += seen.threads;
                look.processes += 1;
                look.descriptors = look.descriptors.zip(seen.descriptors).map(|(sum, own)| sum + own);
            }
        }
        // `ended` is in falling order, so that removing one does not move the next.
        for index in ended {
            let process = self.processes.remove(index);
            self.keep += process.kept_tasks();
        }
        self.account.look(living.into_iter(), vanished.into_iter());
        Ok(TreeLook { cpu_ns: self.account.total_ns(), ticks: self.account.ticks(), switches: self.switches, ..look })
    }

    /// Sum of the processes' proportional sets; `None` when the kernel would not say it of one that lives.
    pub fn proportional_bytes(&self, reader: &mut Reader) -> Option<u64> {
        let mut sum = 0;
        for process in &self.processes {
            let counts = process.pid != self.watched.root || self.watched.include_root;
            if !counts {
                continue;
            }
            match process.proportional_bytes(reader) {
                Some(bytes) => sum += bytes,
                // Gone or a zombie: it has no memory. Alive and no answer: then there is no sum.
                None if process.lives(reader) => return None,
                None => {}
            }
        }
        Some(sum)
    }

    /// Reads all tasks, and takes in processes that were not known. Returns what those that vanished had used.
    fn discover(&mut self, reader: &mut Reader) -> io::Result<Vec<Used>> {
        let mut vanished = Vec::new();
        let mut known: HashSet<u32> = self.processes.iter().map(|p| p.pid).collect();
        let mut at = 0;
        // Grows while it is walked: the children of the new ones are looked at, too.
        while at < self.processes.len() {
            let process = &mut self.processes[at];
            self.gathered.switches = (0, 0);
            self.gathered.children.clear();
            match process.look_at_tasks(reader, &mut self.keep, &mut self.gathered) {
                Ok(()) => {}
                Err(error) if gone(&error) => {
                    vanished.extend(process.last);
                    known.remove(&process.pid);
                    self.keep += process.kept_tasks();
                    self.processes.remove(at);
                    continue;
                }
                Err(error) => return Err(error),
            }
            if !(at == 0 && process.pid == self.watched.root) || self.watched.include_root {
                self.switches.0 += self.gathered.switches.0;
                self.switches.1 += self.gathered.switches.1;
            }
            if !reader.has_children_files {
                self.gathered.children = children_by_scan(process.pid);
            }
            for &pid in &self.gathered.children {
                if known.insert(pid) {
                    match Process::open(pid) {
                        Ok(process) => self.processes.push(process),
                        // Ended since it was listed: its parent's accounts have it.
                        Err(error) if gone(&error) => {}
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
