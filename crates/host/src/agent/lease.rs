//! The lease: one run at a time measures on a host. An agent takes it before it does anything else.
//!
//! It is a lock on a file (`flock`), which the kernel frees however the agent ends. The file says who holds it, so that a
//! refusal can name them. A file with a text and no lock was left by an agent that was killed: what its run left on this
//! host can be removed. A network namespace is a host of its own.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::files::FileError;

/// How long an agent waits for an earlier one of the same run, which the watchdog ends if its connection was lost.
pub const TAKES_OVER_WITHIN: Duration = Duration::from_secs(10);

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the run; the same run may take the lease over.
    pub run: String,
    /// Who runs it: `user@host`.
    pub who: String,
    /// Pid of the agent.
    pub agent: u32,
    /// Since when, Unix time by the agent's host, seconds.
    pub since_unix_s: u64,
    /// Its folder for the run's files; removed when it was left behind.
    pub work: Option<PathBuf>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Holder { run, who, agent, .. } = self;
        let minutes = self.since_unix_s / 60;
        let (hour, minute) = (minutes / 60 % 24, minutes % 60);
        write!(f, "run {run} of {who} since {hour:02}:{minute:02} UTC (agent {agent})")
    }
}

impl Holder {
    /// This process, from now on.
    pub fn this(run: &str, who: &str, work: Option<PathBuf>) -> Holder {
        let since_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Holder { run: run.to_owned(), who: who.to_owned(), agent: std::process::id(), since_unix_s, work }
    }
}

/// A lease that is held. Dropping it frees the host.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    /// Closing it frees the lock.
    _locked: File,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another run has it.
    #[error("in use by {}", .0.as_ref().map_or("another weir".to_owned(), Holder::to_string))]
    Held(Option<Holder>),
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The file of this host's lease, the same for all of this user's agents. It need not exist.
///
/// # Errors
/// When the system does not say in which network namespace this is.
pub fn file_of_this_host() -> Result<PathBuf, FileError> {
    let user = rustix::process::getuid();
    // An image of one program may have no /run.
    let start = if user.is_root() && Path::new("/run").is_dir() {
        "/run/weir-lease".to_owned()
    } else {
        format!("/tmp/weir-lease-{}", user.as_raw())
    };
    let namespace = Path::new("/proc/self/ns/net");
    let about = std::fs::metadata(namespace).map_err(FileError::at(namespace))?;
    Ok(PathBuf::from(format!("{start}-{}", about.ino())))
}

impl Lease {
    /// Takes a lease. Also returns who left it behind without giving it back, if anybody did.
    ///
    /// # Errors
    /// When another run has it, or this run's earlier agent does not end within `patience`.
    pub fn take(path: &Path, holder: &Holder, patience: Duration) -> Result<(Lease, Option<Holder>), LeaseError> {
        let at = || FileError::at(path);
        let deadline = Instant::now() + patience;
        let mut options = OpenOptions::new();
        // Other users can make files beside it.
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        loop {
            let mut file = options.open(path).map_err(at())?;
            if file.metadata().map_err(at())?.uid() != rustix::process::getuid().as_raw() {
                return Err(at()(std::io::Error::other("it belongs to another user")).into());
            }
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            let found = read(&mut file);
            if !locked {
                let same = found.as_ref().is_some_and(|other| (&other.run, &other.who) == (&holder.run, &holder.who));
                // A file without a text is about to get one, or about to be removed.
                if (same || found.is_none()) && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                return Err(LeaseError::Held(found));
            }
            if !is_still_at(&file, path) {
                // Its holder removed it between our opening and our locking it.
                continue;
            }
            let text = serde_json::to_vec(holder).map_err(|error| at()(error.into()))?;
            file.set_len(0).and_then(|()| file.rewind()).map_err(at())?;
            file.write_all(&text).map_err(at())?;
            return Ok((Lease { path: path.to_owned(), _locked: file }, found));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Removed while the lock is held, so it is this holder's file and no other's.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn is_still_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(run: &str) -> Holder {
        let since_unix_s = 20_000 * 86_400 + 18 * 3_600 + 2 * 60 + 59;
        Holder { run: run.into(), who: "root@ctl".into(), agent: 4711, since_unix_s, work: None }
    }

    fn scratch() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("lease-1");
        (dir, path)
    }

    #[test]
    fn a_second_run_is_refused_and_told_who_holds_it() {
        let (_dir, path) = scratch();
        let (lease, left) = Lease::take(&path, &holder("a"), Duration::ZERO).expect("free");
        assert_eq!(left, None);
        let refused = Lease::take(&path, &holder("b"), TAKES_OVER_WITHIN).expect_err("held").to_string();
        assert_eq!(refused, "in use by run a of root@ctl since 18:02 UTC (agent 4711)");
        drop(lease);
        assert!(!path.exists(), "nothing is left");
        let (_lease, left) = Lease::take(&path, &holder("b"), Duration::ZERO).expect("free again");
        assert_eq!(left, None, "it was given back");
    }

    #[test]
    fn the_same_run_waits_for_its_earlier_agent() {
        let (_dir, path) = scratch();
        let (lease, _) = Lease::take(&path, &holder("a"), Duration::ZERO).expect("free");
        assert!(Lease::take(&path, &holder("a"), Duration::from_millis(50)).is_err(), "it does not end");
        let wait = std::thread::scope(|scope| {
            let wait = scope.spawn(|| Lease::take(&path, &holder("a"), TAKES_OVER_WITHIN).map(|_| ()));
            std::thread::sleep(Duration::from_millis(50));
            drop(lease);
            wait.join().expect("no panic")
        });
        wait.expect("taken over");
    }

    #[test]
    fn what_a_killed_agent_left_is_found() {
        let (_dir, path) = scratch();
        let killed = Holder { work: Some("/tmp/weir-work".into()), ..holder("a") };
        let (lease, _) = Lease::take(&path, &killed, Duration::ZERO).expect("free");
        // As the kernel does it: the lock goes, the file stays.
        flock(&lease._locked, FlockOperation::Unlock).expect("unlocked");
        let (_lease, left) = Lease::take(&path, &holder("b"), Duration::ZERO).expect("free");
        assert_eq!(left, Some(killed));
    }

    #[test]
    fn many_at_once_hold_it_one_after_another() {
        let (_dir, path) = scratch();
        let held = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let (lease, _) = Lease::take(&path, &holder("a"), TAKES_OVER_WITHIN).expect("in turn");
                        assert_eq!(held.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0, "alone");
                        held.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lease);
                    }
                });
            }
        });
    }

    #[test]
    fn a_file_of_another_user_is_not_trusted() {
        let (dir, path) = scratch();
        let other = dir.path().join("other");
        std::fs::write(&other, "theirs").expect("written");
        std::os::unix::fs::symlink(&other, &path).expect("linked");
        assert!(Lease::take(&path, &holder("a"), Duration::ZERO).is_err(), "a link");
        // Only root can give a file away, and only then is there something to see.
        if std::os::unix::fs::chown(&other, Some(12_345), None).is_ok() {
            let refused = Lease::take(&other, &holder("a"), Duration::ZERO).expect_err("not ours").to_string();
            assert!(refused.ends_with("other: it belongs to another user"), "{refused}");
        }
        assert_eq!(std::fs::read(&other).expect("there"), b"theirs");
    }

    #[test]
    fn this_host_has_a_lease() {
        let file = file_of_this_host().expect("a namespace");
        assert_eq!(file, file_of_this_host().expect("the same one"));
    }
}
