//! Limits of CPU time (`cpu.max`, `cpu.cfs_quota_us`) of the control groups that hold roles' processes, and of all groups above them.
//!
//! [`crate::watch`] reads them before and after a window, and the doctor once. It does not know what the groups are for.
//!
//! The kernel stops a group that has used its time up until the next period begins, a tenth of a second later. No process of it shows
//! that: it is ready to run, and is not let.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use weir_model::owners::CpuQuota;
use weir_model::record::Role;

use crate::parse::{keyed, number, words};
use crate::source::Source;
use crate::sys::text;
use crate::tree::Watched;

/// A mount of a hierarchy of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// The group at the mount point.
    root: PathBuf,
    /// The mount point.
    at: PathBuf,
    version: u8,
}

/// A group's folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    folder: PathBuf,
    /// Below the mount point.
    name: String,
    version: u8,
}

/// The limit of a group, and how often it stopped its processes so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Reading {
    /// CPUs in the mean; `None`: as many as there are.
    cpus: Option<f64>,
    periods: u64,
    ns: u64,
}

impl Group {
    fn read(&self) -> Reading {
        let stat = std::fs::read(self.folder.join("cpu.stat")).unwrap_or_default();
        let counter = |key: &[u8]| keyed(&stat, key).unwrap_or(0);
        let ns = if self.version == 1 {
            counter(b"throttled_time ")
        } else {
            counter(b"throttled_usec ").saturating_mul(1_000)
        };
        Reading { cpus: self.cpus(), periods: counter(b"nr_throttled "), ns }
    }

    fn cpus(&self) -> Option<f64> {
        let of_file = |name: &str| text(self.folder.join(name)).unwrap_or_default();
        let limit = match self.version {
            1 => format!("{} {}", of_file("cpu.cfs_quota_us"), of_file("cpu.cfs_period_us")),
            _ => of_file("cpu.max"),
        };
        cpus_of_limit(limit.as_bytes())
    }
}

/// CPUs of `cpu.max`: `50000 100000` are a half; `max` and -1 are no limit.
fn cpus_of_limit(limit: &[u8]) -> Option<f64> {
    let mut numbers = words(limit).map(number);
    let (quota, period) = (numbers.next()??, numbers.next()??);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// The hierarchies in which CPU time is limited, by a process's `mountinfo` (proc_pid_mountinfo(5)).
fn mounts(mountinfo: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let (place, kind): (Vec<&str>, Vec<&str>) = (place.split(' ').collect(), kind.split(' ').collect());
        let version = match *kind.first()? {
            "cgroup2" => 2,
            "cgroup" if kind.get(2)?.split(',').any(|option| option == "cpu") => 1,
            _ => return None,
        };
        Some(Mount { root: PathBuf::from(place.get(3)?), at: PathBuf::from(place.get(4)?), version })
    };
    mountinfo.lines().filter_map(mount).collect()
}

/// The groups of a process, by its `cgroup` file (cgroups(7)), and all above them that are seen.
fn groups(mounts: &[Mount], cgroup: &str) -> Vec<Group> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let version = match controllers {
            "" => 2,
            some if some.split(',').any(|one| one == "cpu") => 1,
            _ => return None,
        };
        let mount = mounts.iter().find(|mount| mount.version == version)?;
        // A group outside of what is mounted here: only the outermost one that is seen can be read.
        let below = Path::new(path).strip_prefix(&mount.root).ok();
        let below = below.filter(|below| below.components().all(|part| matches!(part, Component::Normal(_))));
        Some(with_ancestors(&mount.at, below.unwrap_or(Path::new("")), version))
    };
    cgroup.lines().filter_map(of_line).flatten().collect()
}

/// The group at a path below a folder, and all groups above it.
fn with_ancestors(at: &Path, below: &Path, version: u8) -> Vec<Group> {
    below
        .ancestors()
        .map(|below| Group { folder: at.join(below), name: format!("/{}", below.display()), version })
        .collect()
}

/// The groups that hold roles' processes, with what they had counted when a window began.
#[derive(Debug, Default)]
pub(crate) struct Quotas(BTreeMap<Group, (BTreeSet<Role>, Reading)>);

impl Quotas {
    /// Finds the groups of the processes that were sampled last. It reads a file of each: do it before a window.
    pub fn find(watched: &[Watched], sources: &[Source]) -> Quotas {
        let mounts = mounts(&text("/proc/self/mountinfo").unwrap_or_default());
        let mut all = Quotas::default();
        for (watched, source) in watched.iter().zip(sources) {
            let of_process = |pid: u32| groups(&mounts, &text(format!("/proc/{pid}/cgroup")).unwrap_or_default());
            let groups: BTreeSet<Group> = match source {
                Source::Tree(tree) => tree.pids().flat_map(of_process).collect(),
                Source::Cgroups(named) => {
                    named.cpu_folders().flat_map(|(at, below, version)| with_ancestors(at, below, version)).collect()
                }
            };
            for group in groups {
                all.0.entry(group).or_default().0.insert(watched.role);
            }
        }
        all
    }

    /// A window begins.
    pub fn begin(&mut self) {
        self.0.iter_mut().for_each(|(group, (_, reading))| *reading = group.read());
    }

    /// The window is over: the groups that have a limit, or held their processes in it.
    pub fn finish(&self) -> Vec<CpuQuota> {
        let of_group = |(group, (roles, before)): (&Group, &(BTreeSet<Role>, Reading))| {
            let now = group.read();
            let quota = CpuQuota {
                group: group.name.clone(),
                roles: roles.iter().copied().collect(),
                cpus: now.cpus,
                throttled_periods: now.periods.saturating_sub(before.periods),
                throttled_s: now.ns.saturating_sub(before.ns) as f64 / 1e9,
            };
            (quota.cpus.is_some() || quota.throttled_periods > 0 || quota.throttled_s > 0.0).then_some(quota)
        };
        self.0.iter().filter_map(of_group).collect()
    }
}

/// The tightest limit of this process's own group and of those above it: CPUs in the mean, and the group's name.
pub(crate) fn own_limit() -> Option<(f64, String)> {
    let mounts = mounts(&text("/proc/self/mountinfo").unwrap_or_default());
    let groups = groups(&mounts, &text("/proc/self/cgroup").unwrap_or_default());
    let limits = groups.into_iter().filter_map(|group| Some((group.cpus()?, group.name)));
    limits.min_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        25 30 0:23 / /proc rw,nosuid - proc proc rw\n\
        33 24 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
        34 24 0:29 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        35 24 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    fn names(cgroup: &str) -> Vec<(String, String, u8)> {
        let groups = groups(&mounts(MOUNTS), cgroup);
        groups.into_iter().map(|it| (it.folder.display().to_string(), it.name, it.version)).collect()
    }

    #[test]
    fn groups_of_a_process_are_its_own_and_all_above() {
        let seen = names("0::/a.slice/b.scope\n7:memory:/elsewhere\n");
        let folders: Vec<&str> = seen.iter().map(|(folder, ..)| folder.trim_end_matches('/')).collect();
        assert_eq!(folders, ["/sys/fs/cgroup/a.slice/b.scope", "/sys/fs/cgroup/a.slice", "/sys/fs/cgroup"]);
        assert_eq!(
            seen.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>(),
            ["/a.slice/b.scope", "/a.slice", "/"]
        );
        let one = names("3:cpu,cpuacct:/docker/1/inner\n");
        assert_eq!((one.len(), one[0].1.as_str(), one[0].2), (2, "/inner", 1), "below what is mounted");
        assert_eq!(names("0::/../other\n").len(), 1, "of another namespace: the outermost that is seen");
        assert_eq!(names("5:cpuset:/x\n"), []);
    }

    #[test]
    fn limits_are_cpus() {
        assert_eq!(cpus_of_limit(b"50000 100000"), Some(0.5));
        for none in [&b"max 100000"[..], b"-1 100000", b"", b"5 0"] {
            assert_eq!(cpus_of_limit(none), None, "{}", String::from_utf8_lossy(none));
        }
    }

    #[test]
    fn what_was_withheld_in_a_window_is_counted_in_both_versions() {
        for (version, stat) in [
            (2, ["nr_throttled 3\nthrottled_usec 100\n", "nr_throttled 8\nthrottled_usec 250100\n"]),
            (1, ["nr_throttled 3\nthrottled_time 100000\n", "nr_throttled 8\nthrottled_time 250100000\n"]),
        ] {
            let root = tempfile::tempdir().expect("a folder");
            let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).expect("written");
            write("cpu.stat", stat[0]);
            let group = Group { folder: root.path().to_owned(), name: "/product".into(), version };
            let mut quotas = Quotas([(group, ([Role::Proxy].into(), Reading::default()))].into());
            quotas.begin();
            assert_eq!(quotas.finish(), [], "no limit, and nothing was withheld");
            write("cpu.max", "50000 100000");
            write("cpu.cfs_quota_us", "50000");
            write("cpu.cfs_period_us", "100000");
            write("cpu.stat", stat[1]);
            let quota = CpuQuota {
                group: "/product".into(),
                roles: vec![Role::Proxy],
                cpus: Some(0.5),
                throttled_periods: 5,
                throttled_s: 0.25,
            };
            assert_eq!(quotas.finish(), [quota]);
        }
    }
}
