//! Reads files that weir wrote, and refuses what it never wrote: a FIFO, whose reader waits for ever, a device, which has no end, and
//! files of a size that no record has. All crates that read run folders call it. It does not know what is in the files.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

/// Most bytes of a file that are read. The longest records are those of a second each: a day of them is a tenth of this.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Opens a regular file (or a link to one) of at most [`MOST_BYTES`].
///
/// # Errors
/// What the system said, or what the file is instead.
pub fn open(path: &Path) -> Result<File> {
    let file = open_of_any_size(path)?;
    match file.metadata()?.len() {
        0..=MOST_BYTES => Ok(file),
        bytes => Err(Error::other(format!("{bytes} bytes, where {MOST_BYTES} are the most that is read"))),
    }
}

/// The same without a limit, for what is read in pieces.
///
/// # Errors
/// As [`open`].
pub fn open_of_any_size(path: &Path) -> Result<File> {
    // Before it is opened: opening a FIFO waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::other("not a regular file"));
    }
    File::open(path)
}

/// The bytes of such a file.
///
/// # Errors
/// As [`open`], and when it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of such a file.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_is_read_and_what_is_none_is_refused() {
        let said = |path: &str| read(Path::new(path)).expect_err("refused").to_string();
        assert_eq!(said("/dev/zero"), "not a regular file");
        assert_eq!(said("/"), "not a regular file");
        assert!(said("/no/such/file").contains("No such file"));
        assert!(
            read_text(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).is_ok_and(|t| t.contains("model"))
        );
    }

    #[test]
    fn a_file_beyond_all_measure_is_refused_unread() {
        let path = std::env::temp_dir().join(format!("weir-regular-{}", std::process::id()));
        File::create(&path).and_then(|file| file.set_len(MOST_BYTES + 1)).expect("a sparse file");
        let refused = read(&path).map(|bytes| bytes.len());
        std::fs::remove_file(&path).expect("removed");
        assert!(refused.expect_err("refused").to_string().contains("268435457 bytes"));
    }
}
