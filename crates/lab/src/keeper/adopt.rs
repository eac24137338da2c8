//! Orphans: who gets them, and how weir ends those of a keeper that somebody killed.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::tree::descendants;

/// Makes this process the parent of every orphan among its descendants that has no nearer subreaper.
pub fn become_subreaper() -> std::io::Result<()> {
    // SAFETY: a plain prctl with integer arguments.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Kills the descendants of this process that are not weir itself (roles and keepers are), until none is left.
///
/// Called when a keeper was lost: what it kept has become this process's own. A product in another trial is not
/// among them, because trials run one at a time.
pub fn end_orphans() {
    let own = exe_of(std::process::id());
    for _ in 0..1_000 {
        let orphans: Vec<u32> = descendants(std::process::id()).into_iter().filter(|pid| exe_of(*pid) != own).collect();
        if orphans.is_empty() {
            return;
        }
        for pid in orphans.into_iter().filter_map(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `None` for a process that is just going.
fn exe_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}
