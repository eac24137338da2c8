//! Orphans: which process adopts them, and how weir ends the orphans of a killed supervisor. The supervisor and
//! [`super::Supervised`] call it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::tree::{QUIET_SCANS, descendants};

/// Makes this process the parent of every orphan among its descendants that has no nearer subreaper.
pub fn become_subreaper() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills and reaps the descendants of this process that are not weir itself (roles and supervisors are), until none is left.
/// `main` is the main process of the lost supervisor: the kernel has killed it, and it may still have to be reaped.
///
/// Called when a supervisor was lost, because its descendants then become children of this process. Trials run one at a time,
/// so no product of another trial is among them.
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
        if quiet == QUIET_SCANS {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reaps a child if it has ended. Returns whether it still has to be reaped, now or once it becomes our child. A child of the
/// product may be dead before the product, which takes a while to die when it holds much memory.
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

/// `None` for a process that is ending.
fn exe_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}
