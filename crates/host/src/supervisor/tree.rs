//! The descendants of a process, by the parent links in /proc. Supervisors and hosts call it.

use std::collections::HashMap;

use procfs::process::{Stat, all_processes};

/// After this many scans in a row without a process, none is left. One scan is not enough: reading /proc takes time, and a
/// process whose parent ends meanwhile can be missed.
pub const QUIET_SCANS: u32 = 2;

/// All processes that may be read, at this moment.
pub(super) fn stats() -> impl Iterator<Item = Stat> {
    all_processes().into_iter().flatten().filter_map(|process| process.ok()?.stat().ok())
}

/// It is no zombie, and not being removed.
pub(super) fn lives(stat: &Stat) -> bool {
    !matches!(stat.state, 'Z' | 'X')
}

/// All living descendants of `root` (not itself), by parent links at this moment. Zombies are left out.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for stat in stats().filter(lives) {
        children.entry(stat.ppid).or_default().push(stat.pid);
    }
    let mut found = Vec::new();
    let mut queue = vec![root as i32];
    while let Some(pid) = queue.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child as u32);
            queue.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_descendant_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().expect("sleep starts");
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(!descendants(std::process::id()).contains(&child.id()));
    }
}
