//! Orphans: who gets them, and how weir ends those of a supervisor that somebody killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::tree::{QUIET_LOOKS, descendants};

/// Makes this process the parent of every orphan among its descendants that has no nearer subreaper.
pub fn become_subreaper() -> std::io::Result<()> {
    // SAFETY: a plain prctl with integer arguments.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Kills the descendants of this process that are not weir itself (roles and supervisors are), until none is left, and
/// reaps them. `main` is the lost supervisor's product: the kernel has killed it, and it may wait to be reaped.
///
/// Called when a supervisor was lost: what it kept has become this process's own. A product in another trial is not
/// among them, because trials run one at a time.
pub fn end_orphans(main: u32) {
    let own = exe_of(std::process::id());
    let mut dead: BTreeSet<i32> = BTreeSet::from([main as i32]);
    let mut quiet = 0;
    for _ in 0..1_000 {
        dead.retain(|pid| not_yet_reaped(*pid));
        let orphans: Vec<u32> = descendants(std::process::id()).into_iter().filter(|pid| exe_of(*pid) != own).collect();
        for pid in &orphans {
            dead.insert(*pid as i32);
            if let Some(pid) = Pid::from_raw(*pid as i32) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        quiet = if dead.is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reaps a child that has ended; whether there is something left to reap, now or when it becomes a child of ours: a
/// child of the product's may be dead before the product is, which takes a while when it holds much memory.
fn not_yet_reaped(pid: i32) -> bool {
    let Some(child) = Pid::from_raw(pid) else {
        return false;
    };
    match waitpid(Some(child), WaitOptions::NOHANG) {
        Ok(Some(_)) => false,
        Ok(None) => true,
        Err(_) => Path::new(&format!("/proc/{pid}")).exists(),
    }
}

/// `None` for a process that is just going.
fn exe_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}
