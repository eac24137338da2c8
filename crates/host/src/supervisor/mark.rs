//! The mark on every process below a supervisor, by which a later weir finds what an earlier one left behind.
//!
//! The mark is a soft limit that no other program sets: how many bytes the user may have in POSIX message queues, a few less than
//! usual. Every process inherits it, a daemon in a session of its own too, and does not lose it when it overwrites its arguments and
//! environment (as servers do for `ps`), closes what it inherited, or changes its folder. Everybody may read it, and nobody has to keep
//! a record of pids. Supervisors have another value than their programs: a program that has no supervisor above it was left behind.
//!
//! That happens where there is no PID namespace (see `namespace`) and all of weir is killed at one instant. Rejected: a list of pids on
//! disk (a worker that starts after the last look is not in it, and pids are used again), an inherited lock or variable (products close
//! and overwrite them), process groups and sessions (daemons leave them).

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use procfs::process::{LimitValue, Process, Stat};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, geteuid, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
};

use super::tree::{lives, stats};

/// The mark of programs, and that of supervisors; Linux's default is 819,200.
pub const PROGRAM: u64 = 819_127;
pub const SUPERVISOR: u64 = 819_129;

/// How often processes are looked for that do not end: one that is stuck in the kernel cannot be killed.
const LOOKS: u32 = 1_000;

/// A process, as long as it lives: its pid and when it started, in ticks.
type Identity = (i32, u64);

/// Marks this process and its future children. Where the limit is lower already, there is no mark.
pub fn set(mark: u64) -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Msgqueue);
    if maximum.is_some_and(|most| most < mark) {
        return Ok(());
    }
    Ok(setrlimit(Resource::Msgqueue, Rlimit { current: Some(mark), maximum })?)
}

/// Ends what an earlier weir of this user left behind. Returns the processes, each with its name and pid.
pub fn end_left_behind() -> Vec<String> {
    let mut ended = BTreeMap::new();
    let mut seen = left_behind();
    for _ in 0..LOOKS {
        if seen.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        let again = left_behind();
        // Twice, because a parent that ends while /proc is read can be missed.
        for (process, name) in again.iter().filter(|(process, _)| seen.contains_key(*process)) {
            if kill(*process).is_ok() {
                ended.insert(*process, format!("{name} (pid {})", process.0));
            }
        }
        seen = again;
    }
    ended.into_values().collect()
}

/// Kills this process and no other that has its pid by now.
fn kill((pid, start): Identity) -> io::Result<()> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let process = pidfd_open(Pid::from_raw(pid).ok_or_else(gone)?, PidfdFlags::empty())?;
    match stat(pid) {
        Some(stat) if stat.starttime == start => Ok(pidfd_send_signal(process, Signal::KILL)?),
        _ => Err(gone()),
    }
}

/// This user's programs without a supervisor above them, by name. This process and those above it are not among them.
fn left_behind() -> BTreeMap<Identity, String> {
    let all: BTreeMap<i32, Stat> = stats().map(|stat| (stat.pid, stat)).collect();
    let above = |pid: i32| std::iter::successors(all.get(&pid), |stat| all.get(&stat.ppid)).take(all.len());
    let own: Vec<i32> = above(std::process::id() as i32).map(|stat| stat.pid).collect();
    let candidates = all.values().filter(|stat| lives(stat) && !own.contains(&stat.pid));
    candidates
        .filter(|stat| mark(stat.pid) == Some(PROGRAM))
        .filter(|stat| above(stat.pid).all(|stat| mark(stat.pid) != Some(SUPERVISOR)))
        .map(|stat| ((stat.pid, stat.starttime), stat.comm.clone()))
        .collect()
}

fn stat(pid: i32) -> Option<Stat> {
    Process::new(pid).ok()?.stat().ok()
}

/// The limit that is the mark; `None` of a process of another user, or one that has ended.
fn mark(pid: i32) -> Option<u64> {
    let process = Process::new(pid).ok()?;
    // The owner of its folder in /proc would be root where the process may not be looked into.
    if process.status().ok()?.euid != geteuid().as_raw() {
        return None;
    }
    match process.limits().ok()?.max_msgqueue_size.soft_limit {
        LimitValue::Value(limit) => Some(limit),
        LimitValue::Unlimited => None,
    }
}
