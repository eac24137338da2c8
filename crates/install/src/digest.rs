//! SHA-256 of files, computed once a process for a file that does not change. Finding and downloads call it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use weir_model::seal;

type Key = (PathBuf, u64, SystemTime);

static KNOWN: LazyLock<Mutex<HashMap<Key, String>>> = LazyLock::new(Mutex::default);

/// SHA-256 of the file in lower-case hexadecimal. Remembered by path, size and time of change: a binary of 180 MB takes
/// a second, and is asked for before every trial.
pub(super) fn of_file(path: &Path) -> io::Result<String> {
    let meta = path.metadata()?;
    let key = (path.to_owned(), meta.len(), meta.modified()?);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(digest) = known().get(&key) {
        return Ok(digest.clone());
    }
    let digest = read(path)?;
    known().insert(key, digest.clone());
    Ok(digest)
}

/// SHA-256 of the file as it is now.
pub(super) fn read(path: &Path) -> io::Result<String> {
    seal::hash_of(File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_file(&file).unwrap(), abc);
        std::fs::write(&file, "").unwrap();
        assert_ne!(of_file(&file).unwrap(), abc, "a file that changed is read again");
    }
}
