//! What must hold before anything is started: descriptors, room on the disk, one place to write.
//!
//! A run that must fail should fail at once, with what would be right.

use std::path::Path;

use weir_model::InputError;
use weir_model::suite::Suite;

/// Descriptors a role needs beside its connections: files, rings, listeners, pipes.
const OTHER_DESCRIPTORS: u64 = 256;

/// Least free space for a run, bytes. A trial writes a few hundred kilobytes.
const LEAST_FREE: u64 = 64 * 1024 * 1024;

/// Checks that the suite's connections fit the descriptors: a proxy holds one downstream and one upstream of each.
///
/// # Errors
/// The load that does not fit, and what would.
pub fn descriptors(suite: &Suite, limit: u64) -> Result<(), InputError> {
    for load in &suite.loads {
        let needed = u64::from(load.connections) * 2 + OTHER_DESCRIPTORS;
        if needed > limit {
            return Err(InputError {
                source: format!("suite {}", suite.name),
                line: None,
                key: Some(format!("load {}: connections", load.name)),
                found: format!(
                    "{} connections need {needed} descriptors in the proxy, and this machine allows {limit} a process",
                    load.connections
                ),
                wanted: format!(
                    "at most {} connections, or a higher hard limit (`ulimit -Hn`, /etc/security/limits.conf)",
                    limit.saturating_sub(OTHER_DESCRIPTORS) / 2
                ),
            });
        }
    }
    Ok(())
}

/// Checks that the folder's disk has room.
///
/// # Errors
/// When there is less than 64 MiB, or the folder cannot be looked at.
pub fn disk(folder: &Path) -> Result<(), InputError> {
    let fail = |found: String| InputError {
        source: "--out".into(),
        line: None,
        key: None,
        found,
        wanted: "a folder that weir may write to, with 64 MiB free".into(),
    };
    let stat = rustix::fs::statvfs(folder).map_err(|e| fail(format!("{}: {e}", folder.display())))?;
    let free = stat.f_bavail * stat.f_frsize;
    if free < LEAST_FREE {
        return Err(fail(format!("{} has {} MiB free", folder.display(), free / 1024 / 1024)));
    }
    Ok(())
}
