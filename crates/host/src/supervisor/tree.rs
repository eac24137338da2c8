//! The descendants of a process, by the parent links in /proc. Supervisors and hosts call it.

use std::collections::HashMap;

/// After this many scans in a row without a process, none is left. One scan is not enough: reading /proc takes time, and a
/// process whose parent ends meanwhile can be missed.
pub const QUIET_SCANS: u32 = 2;

/// All living descendants of `root` (not itself), by parent links at this moment. Zombies are left out.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in all_pids() {
        if let Some((parent, alive)) = parent_of(pid)
            && alive
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![root];
    while let Some(pid) = queue.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child);
            queue.push(child);
        }
    }
    found
}

fn all_pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Parent pid, and whether the process is more than a zombie.
fn parent_of(pid: u32) -> Option<(u32, bool)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&stat)
}

/// The name in parentheses may itself hold parentheses and spaces: the fields start after the last `)`.
fn parse_stat(stat: &str) -> Option<(u32, bool)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some((parent, state != "Z" && state != "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_do_not_confuse_the_parser() {
        assert_eq!(parse_stat("42 (a) Z 1) S 7 42 42"), Some((7, true)));
        assert_eq!(parse_stat("42 (x) Z 7 42"), Some((7, false)));
        assert_eq!(parse_stat("42"), None);
    }

    #[test]
    fn a_child_is_a_descendant_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().expect("sleep starts");
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(!descendants(std::process::id()).contains(&child.id()));
    }
}
