//! What killed agents left on this host: folders of their runs, and copies of weir that were brought here. `weir hosts clean` calls
//! it there.
//!
//! A lease whose lock is free was left behind. While another run has one, the copies stay: its agent starts roles from its own. Of
//! a run on another machine that has the same home nothing is known here.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::lease::{Holder, Lease, LeaseError, file_of_this_host};
use super::process::is_ours;
use crate::files::FileError;

/// A copy that is being brought is written at least so often.
const WRITTEN_WITHIN: Duration = Duration::from_secs(600);

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
        let about = path.symlink_metadata().and_then(|about| Ok((about.modified()?, about)));
        let Ok((time, about)) = about else { continue };
        if !about.is_file() || !is_copy(name, time) {
            continue;
        }
        let own = std::env::current_exe().is_ok_and(|own| own == path);
        let brought_now = own && time_since_start().is_some_and(|age| is_younger(time, age));
        if std::fs::remove_file(&path).is_ok() && !brought_now {
            removed.push((path, about.len()));
        }
    }
    Ok(removed)
}

/// Whether a file is a copy of weir by its name, `weir-<SHA-256>`, or the part of one, with `.` and six letters, that nobody
/// writes any more.
fn is_copy(name: &str, time: SystemTime) -> bool {
    let Some(rest) = name.strip_prefix("weir-") else { return false };
    let (hash, part) = rest.split_once('.').map_or((rest, None), |(hash, part)| (hash, Some(part)));
    let left = |part: &str| part.len() == 6 && !is_younger(time, WRITTEN_WITHIN);
    hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && part.is_none_or(left)
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
        let old = format!("weir-{hash}.aB3xyz");
        let copies = [format!("weir-{hash}"), format!("weir-{}", hash.replace('0', "f")), old.clone()];
        let others =
            ["weir", "weir-1.2", &format!("weir-{hash}x"), &format!("weir-{hash}.aB3xyw"), &format!("x-{hash}")];
        let others = others.map(str::to_owned);
        for name in copies.iter().chain(&others) {
            std::fs::write(bin.path().join(name), "12345").expect("written");
        }
        let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let part = std::fs::File::options().write(true).open(bin.path().join(old)).expect("there");
        part.set_modified(an_hour_ago).expect("set");
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
