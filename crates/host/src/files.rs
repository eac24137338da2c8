//! Files that weir writes: their errors, and records as JSON. All crates that write records call it.

use std::path::{Path, PathBuf};

use serde::Serialize;

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
