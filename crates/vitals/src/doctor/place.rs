//! Where runs are written, and the rights of the user.

use std::path::Path;

use weir_model::text::human_bytes;

use super::Check;

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

/// A trial leaves some hundred KiB, a product's log at debug level hundreds of MiB.
pub(super) fn judge_disk(free: Option<u64>) -> Check {
    let name = "disk";
    match free {
        None => Check::unknown(name, "cannot tell how much is free", "The record may not fit."),
        Some(bytes) if bytes < 256 << 20 => Check::bad(
            name,
            format!("{} free", human_bytes(bytes as f64)),
            "A run may not fit. weir stops at a full disk; finished trials stay whole.",
        ),
        Some(bytes) if bytes < 2 << 30 => {
            Check::warn(name, format!("{} free", human_bytes(bytes as f64)), "Products that log much may fill it.")
        }
        Some(bytes) => Check::ok(name, format!("{} free", human_bytes(bytes as f64)), "Enough."),
    }
}

fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

pub(super) fn judge_rights(root: bool, sudo: bool) -> Check {
    let name = "rights";
    if root {
        return Check::ok(name, "root", "Packages can be installed, and every process be read.");
    }
    if sudo {
        return Check::ok(name, "not root, sudo is there", "Packages can be installed with sudo.");
    }
    let why = "Products that come as system packages cannot be installed; those that come as archives can.";
    Check::warn(name, "neither root nor sudo", why)
}
