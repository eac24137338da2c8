//! The entries of zip files; wheels are zip files, too. `unpack` extracts from them.

use std::fs::File;
use std::path::Path;

use zip::ZipArchive;

use super::{Entry, EntryKind, UnpackError};

pub(super) fn for_each(
    archive: &Path,
    visit: &mut dyn FnMut(Entry<'_>) -> Result<(), UnpackError>,
) -> Result<(), UnpackError> {
    let mut zip = ZipArchive::new(File::open(archive)?)?;
    for i in 0..zip.len() {
        let mut entry = zip.by_index(i)?;
        let kind = match () {
            () if entry.is_symlink() => EntryKind::Refused("is a link; weir takes none from zip files"),
            () if entry.is_dir() => EntryKind::Folder,
            () => EntryKind::File,
        };
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let (name, size) = (entry.name()?.into_owned(), entry.size());
        visit(Entry { name, kind, size, executable, bytes: &mut entry })?;
    }
    Ok(())
}

impl From<zip::result::ZipError> for UnpackError {
    fn from(error: zip::result::ZipError) -> UnpackError {
        match error {
            zip::result::ZipError::Io(error) => error.into(),
            other => UnpackError::Invalid(other.to_string()),
        }
    }
}
