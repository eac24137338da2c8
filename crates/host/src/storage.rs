//! The disk with a run's folder, on the machine where weir runs. A simulated world has one that is full, or ends the run, at a write
//! of its choice. This module does not know what a run is.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::clock::{Clock, SystemClock};

/// Everything that changes a run's folder, step by step. A run can be cut off after any of them. The steps are those of this machine's
/// disks; what implements the trait decides which of them succeed.
pub trait Storage: Debug + Send + Sync {
    /// Called before each step, with the number of bytes that it writes. Returns how many of them are written: fewer on a full disk.
    ///
    /// # Errors
    /// Why the step is not done at all.
    fn admit(&self, _path: &Path, bytes: usize) -> io::Result<usize> {
        Ok(bytes)
    }

    /// Returns when a file or a folder is on the disk. A simulated machine loses no power, and need not wait.
    ///
    /// # Errors
    /// What the system said, as for all others.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// Makes a folder and its parents.
    ///
    /// # Errors
    /// What the system said.
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.admit(path, 0)?;
        fs::create_dir_all(path)
    }

    /// Writes a whole file, in place of what was in it. Returns when it is on the disk.
    ///
    /// # Errors
    /// The file may be there, with a part of the bytes.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let admitted = self.admit(path, bytes.len())?;
        write_part(self, File::create(path)?, bytes, admitted)
    }

    /// Adds to a file, which is made if it is missing. Returns when that is on the disk.
    ///
    /// # Errors
    /// A part of the bytes may be there.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let admitted = self.admit(path, bytes.len())?;
        write_part(self, OpenOptions::new().create(true).append(true).open(path)?, bytes, admitted)
    }

    /// Gives a file or folder another name of the same disk. Returns when that is on the disk.
    ///
    /// # Errors
    /// What the system said.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.admit(to, 0)?;
        fs::rename(from, to)?;
        to.parent().map_or(Ok(()), |folder| self.sync(&File::open(folder)?))
    }

    /// Removes a file, or a folder with its contents.
    ///
    /// # Errors
    /// What the system said.
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.admit(path, 0)?;
        if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
    }

    /// Locks a file until it is dropped, and makes it if it is missing; `None`: another weir has it. The kernel lets go of it when weir
    /// ends, however it ends.
    ///
    /// # Errors
    /// What the system said.
    fn lock(&self, path: &Path) -> io::Result<Option<File>> {
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        // Between fork and exec, a child of the weir that held the lock still has it: retry for a short time.
        for _ in 0..100 {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(lock)),
                Err(Errno::WOULDBLOCK) => SystemClock.sleep(Duration::from_millis(5)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

fn write_part(storage: &(impl Storage + ?Sized), mut file: File, bytes: &[u8], admitted: usize) -> io::Result<()> {
    file.write_all(&bytes[..admitted.min(bytes.len())])?;
    storage.sync(&file)?;
    if admitted < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// This machine's disks, as they are.
#[derive(Debug, Clone, Copy)]
pub struct LocalStorage;

impl Storage for LocalStorage {}
