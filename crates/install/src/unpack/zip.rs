//! Zip files, which wheels are too.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::{Budget, UnpackError, safe_name, write_file};

pub(super) fn unpack(archive: &Path, into: &Path) -> Result<(), UnpackError> {
    let mut zip = ZipArchive::new(File::open(archive)?)?;
    let mut names = Vec::with_capacity(zip.len().min(1 << 16));
    let mut budget = Budget::default();
    for i in 0..zip.len() {
        let entry = zip.by_index(i)?;
        names.push(name_of(&entry)?);
        budget.take(entry.size())?;
    }
    fs::create_dir_all(into)?;
    for (i, name) in names.iter().enumerate() {
        let mut entry = zip.by_index(i)?;
        let path = into.join(name);
        if entry.is_dir() {
            fs::create_dir_all(&path)?;
            continue;
        }
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let size = entry.size();
        write_file(&mut entry, size, &path, executable)?;
    }
    Ok(())
}

fn name_of<R: Read + ?Sized>(entry: &zip::read::ZipFile<'_, R>) -> Result<PathBuf, UnpackError> {
    let name = entry.name()?;
    if entry.is_symlink() {
        return Err(UnpackError::Invalid(format!(
            "`{}` is a link; weir takes none from zip files",
            name.escape_debug()
        )));
    }
    safe_name(&name)
}

impl From<zip::result::ZipError> for UnpackError {
    fn from(error: zip::result::ZipError) -> UnpackError {
        match error {
            zip::result::ZipError::Io(error) => error.into(),
            other => UnpackError::Invalid(other.to_string()),
        }
    }
}
