//! A zip file onto the disk, trusting none of its names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

/// Most that one wheel may unpack to. The largest known today has 185 MB.
const MOST_BYTES: u64 = 2 << 30;

/// Unpacks `archive` into `into`, which is made. Every name is looked at before the first byte is written; what leads
/// outside of the folder, is a link, or is too large altogether refuses the whole archive.
pub(super) fn unpack(archive: &Path, into: &Path) -> Result<(), Refused> {
    let mut zip = ZipArchive::new(File::open(archive)?)?;
    let mut names = Vec::with_capacity(zip.len());
    let mut bytes = 0u64;
    for i in 0..zip.len() {
        let entry = zip.by_index(i)?;
        names.push(safe_name(&entry)?);
        bytes = bytes.saturating_add(entry.size());
    }
    if bytes > MOST_BYTES {
        return Err(Refused::Wrong(format!("unpacks to {bytes} bytes; {MOST_BYTES} at most are accepted")));
    }
    fs::create_dir_all(into)?;
    for (i, name) in names.iter().enumerate() {
        let entry = zip.by_index(i)?;
        let path = into.join(name);
        if entry.is_dir() {
            fs::create_dir_all(&path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // The size a zip states need not be the size it has.
        let most = entry.size();
        let written = io::copy(&mut entry.take(most + 1), &mut File::create(&path)?)?;
        if written != most {
            return Err(Refused::Wrong(format!("{} is not of the size stated", name.display())));
        }
    }
    Ok(())
}

/// Why an archive was not unpacked.
#[derive(Debug)]
pub(super) enum Refused {
    /// The archive is at fault.
    Wrong(String),
    /// The disk is.
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        // Decompression reports broken data as an I/O error too.
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                Refused::Wrong(error.to_string())
            }
            _ => Refused::Io(error),
        }
    }
}

impl From<zip::result::ZipError> for Refused {
    fn from(error: zip::result::ZipError) -> Refused {
        match error {
            zip::result::ZipError::Io(error) => error.into(),
            other => Refused::Wrong(other.to_string()),
        }
    }
}

fn safe_name<R: Read + ?Sized>(entry: &zip::read::ZipFile<'_, R>) -> Result<PathBuf, Refused> {
    let name = entry.name()?;
    let refuse = |why| Err(Refused::Wrong(format!("`{}` {why}", name.escape_debug())));
    if entry.is_symlink() {
        return refuse("is a link; wheels have none");
    }
    // Stricter than the zip crate's own answer, which makes absolute names relative: no honest wheel has them.
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let relative = name.strip_suffix('/').unwrap_or(&name).split(['/', '\\']).all(plain);
    match entry.enclosed_name() {
        Some(path) if relative => Ok(path),
        _ => refuse("leads outside of the folder"),
    }
}
