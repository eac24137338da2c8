//! Where runs are written, and the rights of the user.

use std::path::Path;

use super::{Check, bytes, judge, judge_word};

pub(super) fn checks(home: &Path) -> Vec<Check> {
    vec![judge_disk(free_bytes(home)), judge_rights(rustix::process::geteuid().is_root(), has_program("sudo"))]
}

/// Free for this user, on the file system of `home` or of the nearest folder above that exists.
fn free_bytes(home: &Path) -> Option<u64> {
    let home = std::path::absolute(home).ok()?;
    let stat = home.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    let own = if rustix::process::geteuid().is_root() { stat.f_bfree } else { stat.f_bavail };
    own.checked_mul(stat.f_frsize)
}

pub(super) fn judge_disk(free: Option<u64>) -> Check {
    judge("disk", bytes(free, " free"))
}

fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

pub(super) fn judge_rights(root: bool, sudo: bool) -> Check {
    judge_word(
        "rights",
        Some(match (root, sudo) {
            (true, _) => "root",
            (false, true) => "not root, sudo is there",
            (false, false) => "neither root nor sudo",
        }),
    )
}
