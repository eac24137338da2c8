//! What killed agents left on this host: folders of their runs, and copies of weir that were brought here. `weir hosts clean` calls
//! it there.
//!
//! A lease whose lock is free was left behind. While another run has one, the copies stay: its agent starts roles from its own.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::lease::{Holder, Lease, LeaseError, file_of_this_host};
use super::process::is_ours;
use crate::files::FileError;

/// What was removed from a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Folders of runs that were killed.
    pub folders: Vec<PathBuf>,
    /// Copies of weir, and their bytes. Without one that was brought for this very call.
    pub copies: Vec<(PathBuf, u64)>,
    /// Who else uses the host now, so that copies stay.
    pub in_use: Vec<String>,
}

/// Removes it. `bin` is where copies of weir are brought.
///
/// # Errors
/// When a folder cannot be read.
pub fn remove_leftovers(bin: Option<&Path>) -> Result<Cleaned, FileError> {
    let mut cleaned = Cleaned::default();
    for lease in leases()? {
        let holder = Holder::this("hosts-clean", "weir", None);
        match Lease::take(&lease, &holder, Duration::ZERO) {
            Ok((_lease, left)) => {
                let folder = left.and_then(|left| left.work).filter(|folder| is_ours(folder));
                cleaned.folders.extend(folder.filter(|folder| std::fs::remove_dir_all(folder).is_ok()));
            }
            Err(LeaseError::Held(Some(holder))) if holder.agent == std::process::id() => {}
            Err(LeaseError::Held(other)) => {
                cleaned.in_use.push(other.map_or("another weir".to_owned(), |holder| holder.to_string()));
            }
            // Another user's.
            Err(LeaseError::File(_)) => {}
        }
    }
    if let Some(bin) = bin.filter(|bin| bin.is_dir() && cleaned.in_use.is_empty()) {
        cleaned.copies = remove_copies(bin)?;
    }
    Ok(cleaned)
}

/// The leases of this user on this host: one for each network namespace.
fn leases() -> Result<Vec<PathBuf>, FileError> {
    let own = file_of_this_host()?;
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (Some(folder), Some((start, _))) = (own.parent(), name.rsplit_once('-')) else { return Ok(Vec::new()) };
    let is_lease = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let end = name.strip_prefix(start).and_then(|end| end.strip_prefix('-'));
        end.is_some_and(|end| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Ok(entries(folder)?.into_iter().filter(is_lease).collect())
}

fn remove_copies(bin: &Path) -> Result<Vec<(PathBuf, u64)>, FileError> {
    let mut removed = Vec::new();
    for path in entries(bin)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok(about) = path.symlink_metadata() else { continue };
        if !about.is_file() || !is_copy(name) {
            continue;
        }
        let own = std::env::current_exe().is_ok_and(|own| own == path);
        let brought_now =
            own && about.modified().is_ok_and(|time| time_since_start().is_some_and(|age| is_younger(time, age)));
        if std::fs::remove_file(&path).is_ok() && !brought_now {
            removed.push((path, about.size()));
        }
    }
    Ok(removed)
}

/// Whether a file is a copy of weir by its name, or the part of one whose bootstrap is gone: `weir-<SHA-256>` and `.<pid>`.
fn is_copy(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("weir-") else { return false };
    let (hash, pid) = rest.split_once('.').map_or((rest, None), |(hash, pid)| (hash, Some(pid)));
    let runs = |pid: &str| pid.parse::<u32>().is_err() || Path::new("/proc").join(pid).exists();
    hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && !pid.is_some_and(runs)
}

/// How long ago this process began. The bootstrap, which brings weir, becomes the agent: it is one process (proc(5), field 22 of
/// `stat`, in hundredths of a second).
fn time_since_start() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in brackets, and may have blanks.
    let started: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let up = std::fs::read_to_string("/proc/uptime").ok()?;
    let up: f64 = up.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(up - started / 100.0).ok()
}

fn is_younger(time: SystemTime, age: Duration) -> bool {
    // A file's time is that of the last tick.
    SystemTime::now().duration_since(time).is_ok_and(|since| since <= age + Duration::from_millis(20))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).map_err(FileError::at(folder))?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copies_of_weir_are_removed() {
        let bin = tempfile::tempdir().expect("a temporary folder");
        let hash = "0123456789abcdef".repeat(4);
        let living = std::process::id();
        let copies =
            [format!("weir-{hash}"), format!("weir-{}", hash.replace('0', "f")), format!("weir-{hash}.4294967295")];
        let others = [
            "weir".to_owned(),
            "weir-1.2".to_owned(),
            format!("weir-{hash}x"),
            format!("weir-{hash}.{living}"),
            format!("other-{hash}"),
        ];
        for name in copies.iter().chain(&others) {
            std::fs::write(bin.path().join(name), "12345").expect("written");
        }
        std::os::unix::fs::symlink("/etc/passwd", bin.path().join(format!("weir-{}", hash.replace('1', "e"))))
            .expect("linked");
        let removed = remove_copies(bin.path()).expect("read");
        assert_eq!(removed.len(), 3, "{removed:?}");
        assert!(removed.iter().all(|(path, bytes)| !path.exists() && *bytes == 5));
        assert_eq!(entries(bin.path()).expect("read").len(), others.len() + 1);
        assert_eq!(remove_copies(bin.path()).expect("read"), []);
    }

    #[test]
    fn a_process_knows_its_age() {
        let first = time_since_start().expect("told");
        let file = tempfile::NamedTempFile::new().expect("made");
        let written = file.as_file().metadata().expect("there").modified().expect("told");
        assert!(is_younger(written, time_since_start().expect("told")));
        assert!(!is_younger(written - first - Duration::from_secs(3), first));
    }
}
