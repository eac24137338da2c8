//! Files that weir writes: their errors, records as JSON, and whether a disk has room. All crates that write records call it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_model::InputError;

/// Least free space for a run, bytes. A trial writes a few hundred kilobytes.
const LEAST_FREE: u64 = 64 * 1024 * 1024;

/// A file or folder that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}{hint}", path = .path.display(), hint = hint(.error))]
pub struct FileError {
    /// Which file.
    pub path: PathBuf,
    /// What the system said.
    pub error: std::io::Error,
}

impl FileError {
    /// For `map_err`: adds the path to the system's error.
    pub fn at(path: &Path) -> impl Fn(std::io::Error) -> FileError + use<> {
        let path = path.to_owned();
        move |error| FileError { path: path.clone(), error }
    }
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            "\n  the disk is full; every finished trial is safe. Make room, then go on with `weir run --resume`"
        }
        std::io::ErrorKind::PermissionDenied => "\n  weir may not write there; choose another folder with `--out`",
        _ => "",
    }
}

/// A record as indented JSON with a newline at the end.
///
/// # Errors
/// When the record cannot be expressed as JSON, which is a defect of its type.
pub fn pretty<T: Serialize>(record: &T) -> Result<Vec<u8>, FileError> {
    let mut bytes = serde_json::to_vec_pretty(record).map_err(|e| FileError::at(Path::new("record"))(e.into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Bytes that this user may still write on the disk of a folder.
///
/// # Errors
/// What the system said.
pub fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Checks that the folder's disk has room.
///
/// # Errors
/// When there is less than 64 MiB, or the folder cannot be read.
pub fn disk_has_room(folder: &Path) -> Result<(), InputError> {
    let fail = |found: String| InputError::of("--out", found, "a folder that weir may write to, with 64 MiB free");
    let free = free_bytes(folder).map_err(|e| fail(format!("{}: {e}", folder.display())))?;
    if free < LEAST_FREE {
        return Err(fail(format!("{} has {} MiB free", folder.display(), free / 1024 / 1024)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_room_is_taken_and_no_folder_is_refused() {
        assert_eq!(disk_has_room(&std::env::temp_dir()), Ok(()));
        let refused = disk_has_room(Path::new("/no/such/folder")).expect_err("not there");
        assert!(refused.to_string().contains("/no/such/folder"), "{refused}");
    }
}
