//! Control groups whose processes are a role, such as the pods of a gateway that others have started. [`crate::watch`] calls it once
//! a second. It does not know what made the groups.
//!
//! Groups of both versions are read. Of version 1, each controller has a folder of its own with the same groups below it.

use std::io;
use std::path::{Path, PathBuf};

use weir_model::record::Role;

use crate::file::{OpenFile, Reader};
use crate::parse::cgroup as parse;
use crate::tree::TreeSample;

/// Folders within each other that are searched: a node's own, those of pods, of quality of service, a pod's.
const DEEPEST: usize = 8;

/// The groups of a role, from sample to sample.
#[derive(Debug)]
pub(crate) struct Cgroups {
    role: Role,
    groups: Vec<Group>,
    /// What all had used when the window began: ns, and user and kernel time.
    begun: (u64, (u64, u64)),
}

/// The open files of a group.
#[derive(Debug)]
struct Group {
    /// The folder of the outermost group that may limit its CPU time, and its path from there.
    limited: (PathBuf, PathBuf),
    cpu: Cpu,
    version: u8,
    memory: OpenFile,
    /// `None` where that controller is off.
    pids: Option<OpenFile>,
}

#[derive(Debug)]
enum Cpu {
    One { usage: OpenFile, stat: OpenFile },
    Two { stat: OpenFile },
}

impl Cgroups {
    /// Finds the groups.
    ///
    /// # Errors
    /// Which is not there, or cannot be read.
    pub fn open(role: Role, below: &Path, named: &[String]) -> io::Result<Cgroups> {
        let groups = named.iter().map(|name| Group::open(below, name)).collect::<io::Result<_>>()?;
        Ok(Cgroups { role, groups, begun: (0, (0, 0)) })
    }

    /// Sets the counters to zero, now.
    pub fn begin(&mut self, reader: &mut Reader) -> io::Result<TreeSample> {
        self.begun = (0, (0, 0));
        let sample = self.sample(reader)?;
        self.begun = (sample.cpu_ns, sample.ticks);
        Ok(TreeSample { cpu_ns: 0, ticks: (0, 0), ..sample })
    }

    /// The folders that limit the groups' CPU time: the outermost one that is seen, the path from there, and the version.
    pub fn cpu_folders(&self) -> impl Iterator<Item = (&Path, &Path, u8)> {
        self.groups.iter().map(|group| (group.limited.0.as_path(), group.limited.1.as_path(), group.version))
    }

    /// Reads all groups.
    ///
    /// # Errors
    /// When one is gone, or a file of it has no number: then the numbers are incomplete.
    pub fn sample(&self, reader: &mut Reader) -> io::Result<TreeSample> {
        let (mut cpu_ns, mut user, mut system, mut threads) = (0, 0, 0, Some(0));
        for group in &self.groups {
            let (ns, ticks) = group.cpu(reader).map_err(|error| self.failed(error))?;
            cpu_ns += ns;
            user += ticks.0;
            system += ticks.1;
            threads = threads.zip(group.threads(reader)).map(|(all, own)| all + own);
        }
        let (ns, ticks) = self.begun;
        Ok(TreeSample {
            cpu_ns: cpu_ns.saturating_sub(ns),
            ticks: (user.saturating_sub(ticks.0), system.saturating_sub(ticks.1)),
            rss_bytes: self.memory_bytes(reader)?,
            threads,
            ..TreeSample::default()
        })
    }

    /// Their memory; a page that several of their processes share counts once.
    ///
    /// # Errors
    /// As [`Cgroups::sample`].
    pub fn memory_bytes(&self, reader: &mut Reader) -> io::Result<u64> {
        self.groups
            .iter()
            .map(|group| group.memory(reader))
            .sum::<io::Result<u64>>()
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> io::Error {
        let what =
            format!("cannot read a control group of the {}: {error}; have its pods changed?", self.role.as_str());
        io::Error::new(error.kind(), what)
    }
}

impl Group {
    fn open(below: &Path, name: &str) -> io::Result<Group> {
        let version = if below.join("cgroup.controllers").exists() { 2 } else { 1 };
        let root = |controller: &str| if version == 1 { below.join(controller) } else { below.to_owned() };
        let folder = |controller: &str| {
            let root = root(controller);
            find(&root, name, DEEPEST).ok_or_else(|| {
                let what = format!("there is no control group {name} below {}", root.display());
                io::Error::new(io::ErrorKind::NotFound, what)
            })
        };
        let cpu = match version {
            1 => {
                let folder = folder("cpuacct")?;
                Cpu::One { usage: open(&folder, "cpuacct.usage")?, stat: open(&folder, "cpuacct.stat")? }
            }
            _ => Cpu::Two { stat: open(&folder("")?, "cpu.stat")? },
        };
        let memory = open(&folder("memory")?, "memory.stat")?;
        let pids = folder("pids").and_then(|folder| open(&folder, "pids.current")).ok();
        let outermost = root("cpu");
        let own = folder("cpu").unwrap_or_else(|_| outermost.clone());
        let way = own.strip_prefix(&outermost).unwrap_or(Path::new("")).to_owned();
        Ok(Group { limited: (outermost, way), cpu, version, memory, pids })
    }

    fn cpu(&self, reader: &mut Reader) -> io::Result<(u64, (u64, u64))> {
        match &self.cpu {
            Cpu::One { usage, stat } => {
                let ns = parse::single(reader.whole(usage)?).ok_or_else(|| malformed("cpuacct.usage"))?;
                let ticks = parse::cpuacct_stat(reader.whole(stat)?).ok_or_else(|| malformed("cpuacct.stat"))?;
                Ok((ns, ticks))
            }
            Cpu::Two { stat } => parse::cpu_stat(reader.whole(stat)?).ok_or_else(|| malformed("cpu.stat")),
        }
    }

    fn memory(&self, reader: &mut Reader) -> io::Result<u64> {
        parse::memory_stat(reader.whole(&self.memory)?, self.version).ok_or_else(|| malformed("memory.stat"))
    }

    fn threads(&self, reader: &mut Reader) -> Option<u64> {
        parse::single(reader.whole(self.pids.as_ref()?).ok()?)
    }
}

fn malformed(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file} is not as expected"))
}

fn open(folder: &Path, file: &str) -> io::Result<OpenFile> {
    let path = folder.join(file);
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    OpenFile::open(&path.to_string_lossy()).map_err(failed)
}

/// The first folder below `root` whose name contains `name`. Where systemd makes the groups, hyphens in a name are `_`.
fn find(root: &Path, name: &str, deepest: usize) -> Option<PathBuf> {
    let folders = || std::fs::read_dir(root).into_iter().flatten().flatten().filter(|it| it.path().is_dir());
    let other = name.replace('-', "_");
    let own = folders().find(|it| {
        let found = it.file_name();
        let found = found.to_string_lossy();
        found.contains(name) || found.contains(&other)
    });
    let within = || folders().find_map(|it| find(&it.path(), name, deepest - 1));
    own.map(|it| it.path()).or_else(|| if deepest > 1 { within() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b-22c3";

    /// Writes files of a group, with the folders above it.
    fn group(root: &Path, folder: &str, files: &[(&str, &str)]) {
        let folder = root.join(folder);
        std::fs::create_dir_all(&folder).expect("made");
        files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).expect("written"));
    }

    fn two(root: &Path, folder: &str, usage: u64) {
        let cpu = format!("usage_usec {usage}\nuser_usec {usage}\nsystem_usec 0\n");
        let files =
            [("cpu.stat", cpu.as_str()), ("memory.stat", "anon 4096\nfile_mapped 1\n"), ("pids.current", "3\n")];
        group(root, folder, &files);
    }

    fn one(root: &Path, folder: &str, usage: u64) {
        let (usage, stat) = (usage.to_string(), "user 30\nsystem 10\n");
        group(root, &format!("cpuacct/{folder}"), &[("cpuacct.usage", &usage), ("cpuacct.stat", stat)]);
        group(root, &format!("memory/{folder}"), &[("memory.stat", "total_rss 10\ntotal_mapped_file 5\n")]);
    }

    #[test]
    fn groups_of_version_two_are_found_by_systemds_names_and_summed() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(root.path().join("cgroup.controllers"), "cpu memory pids\n").expect("written");
        let first = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_22c3.slice";
        two(root.path(), first, 5_000);
        two(root.path(), "kubepods.slice/kubepods-podffff.slice", 1_000);
        let named = [UID.to_owned(), "ffff".to_owned()];
        let mut groups = Cgroups::open(Role::Proxy, root.path(), &named).expect("found");
        let mut reader = Reader::new();
        let begun = groups.begin(&mut reader).expect("read");
        assert_eq!((begun.cpu_ns, begun.rss_bytes, begun.threads), (0, 8_194, Some(6)));
        two(root.path(), first, 7_500);
        let sample = groups.sample(&mut reader).expect("read");
        assert_eq!((sample.cpu_ns, sample.ticks), (2_500_000, (2_500, 0)));
        assert_eq!((sample.processes, sample.descriptors, sample.switches), (None, None, None), "not known");
        // What cannot be read is an error, and never 0.
        std::fs::write(root.path().join(first).join("cpu.stat"), "").expect("written");
        let error = groups.sample(&mut reader).expect_err("no number").to_string();
        assert!(error.contains("a control group of the proxy: cpu.stat"), "{error}");
    }

    #[test]
    fn groups_of_version_one_have_a_folder_for_each_controller() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = "node1/kubepods/besteffort/pod0a1b-22c3";
        one(root.path(), folder, 1_000);
        let mut groups = Cgroups::open(Role::Proxy, root.path(), &[UID.to_owned()]).expect("found");
        let mut reader = Reader::new();
        groups.begin(&mut reader).expect("read");
        one(root.path(), folder, 4_000);
        let sample = groups.sample(&mut reader).expect("read");
        assert_eq!((sample.cpu_ns, sample.rss_bytes, sample.threads), (3_000, 15, None), "no pids controller");
    }

    #[test]
    fn a_group_that_is_not_there_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        one(root.path(), "kubepods/podffff", 1);
        let error = Cgroups::open(Role::Proxy, root.path(), &[UID.to_owned()]).expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("there is no control group 0a1b-22c3 below"), "{error}");
    }
}
