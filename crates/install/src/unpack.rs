//! Unpacks an archive, trusting none of its names, links and sizes. [`super::download`] calls it.
//!
//! Every name is looked at before the first byte is written. What leads outside of the folder, or is too large
//! altogether, refuses the whole archive: no honest one has it. Files come first and links last, so that nothing is ever
//! written through a link; then every link is followed to its end, which must lie inside.

mod tar;
mod zip;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Most that one archive may unpack to. The largest known today has 190 MB.
const MOST_BYTES: u64 = 2 << 30;
/// Most entries of one archive.
const MOST_ENTRIES: usize = 200_000;

/// What a file's name says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArchiveKind {
    /// `.zip`, `.whl`
    Zip,
    /// `.tar.gz`, `.tgz`
    TarGz,
    /// No archive: the program itself.
    Plain,
}

impl ArchiveKind {
    pub(super) fn of(name: &str) -> ArchiveKind {
        match name.to_ascii_lowercase() {
            name if name.ends_with(".tar.gz") || name.ends_with(".tgz") => ArchiveKind::TarGz,
            name if name.ends_with(".zip") || name.ends_with(".whl") => ArchiveKind::Zip,
            _ => ArchiveKind::Plain,
        }
    }
}

/// The end of a name that is an archive's of a kind that weir cannot unpack: it must not pass for a program.
pub(super) fn unknown_archive(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let ends = [".tar", ".tar.xz", ".txz", ".tar.bz2", ".tbz", ".tar.zst", ".xz", ".bz2", ".zst", ".gz", ".7z", ".deb"];
    match ArchiveKind::of(&name) {
        ArchiveKind::Plain => ends.into_iter().filter(|end| name.ends_with(end)).max_by_key(|end| end.len()),
        _ => None,
    }
}

/// An entry of an archive.
struct Entry<'a> {
    name: String,
    kind: EntryKind,
    /// As the archive states it.
    size: u64,
    executable: bool,
    bytes: &'a mut dyn io::Read,
}

enum EntryKind {
    Folder,
    File,
    /// A symbolic link to this.
    Link(PathBuf),
    /// Says something about the entries after it.
    Nothing,
    /// Something that weir does not unpack, for this reason.
    Refused(&'static str),
}

/// Unpacks `archive` into the folder `into`, which is made if need be.
pub(super) fn unpack(archive: &Path, kind: ArchiveKind, into: &Path) -> Result<(), UnpackError> {
    let for_each = match kind {
        ArchiveKind::Zip => zip::for_each,
        ArchiveKind::TarGz => tar::for_each,
        ArchiveKind::Plain => return Err(UnpackError::Invalid("it is no archive".to_owned())),
    };
    let mut budget = Budget::default();
    for_each(archive, &mut |entry| {
        budget.take(entry.size)?;
        entry.path().map(drop)
    })?;
    fs::create_dir_all(into)?;
    let mut links = Vec::new();
    for_each(archive, &mut |entry| {
        let path = entry.path()?;
        match entry.kind {
            EntryKind::File => write_file(entry.bytes, entry.size, &into.join(path), entry.executable)?,
            EntryKind::Link(to) => links.push((path, to)),
            EntryKind::Folder => fs::create_dir_all(into.join(path))?,
            EntryKind::Nothing | EntryKind::Refused(_) => {}
        }
        Ok(())
    })?;
    link(&links, into)
}

impl Entry<'_> {
    /// Where it goes below the folder; the error says why the whole archive is refused.
    fn path(&self) -> Result<PathBuf, UnpackError> {
        let refuse = |why: &str| Err(UnpackError::Invalid(format!("`{}` {why}", self.name.escape_debug())));
        match &self.kind {
            EntryKind::Nothing => Ok(PathBuf::new()),
            EntryKind::Refused(why) => refuse(why),
            EntryKind::Link(to) if to.is_absolute() => {
                refuse(&format!("is a link to {}, outside of the folder", to.display()))
            }
            _ => safe_name(&self.name),
        }
    }
}

/// Makes all links, then looks where each ends: one link can change where another leads.
fn link(links: &[(PathBuf, PathBuf)], into: &Path) -> Result<(), UnpackError> {
    let root = into.canonicalize()?;
    for (at, to) in links {
        let path = into.join(at);
        let parent = path.parent().unwrap_or(into);
        // Before it is known where links end, none is walked through: folders would be made wherever it leads.
        if parent.ancestors().take_while(|folder| *folder != into).any(Path::is_symlink) {
            return Err(UnpackError::Invalid(format!("`{}` lies behind a link", at.display())));
        }
        fs::create_dir_all(parent)?;
        symlink(to, &path)?;
    }
    for (at, to) in links {
        let why = match into.join(at).canonicalize() {
            Ok(end) if end.starts_with(&root) => continue,
            Ok(_) => "outside of the folder",
            Err(_) => "which is not in it",
        };
        return Err(UnpackError::Invalid(format!("`{}` is a link to {}, {why}", at.display(), to.display())));
    }
    Ok(())
}

/// Why an archive was not unpacked.
#[derive(Debug)]
pub(super) enum UnpackError {
    /// The archive is at fault.
    Invalid(String),
    /// The disk is.
    Io(io::Error),
}

impl From<io::Error> for UnpackError {
    fn from(error: io::Error) -> UnpackError {
        // Decompression reports broken data as an I/O error too.
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                UnpackError::Invalid(error.to_string())
            }
            // What the libraries say of their own, without an error of the system.
            io::ErrorKind::Other if error.raw_os_error().is_none() => UnpackError::Invalid(error.to_string()),
            _ => UnpackError::Io(error),
        }
    }
}

/// Counts what an archive says it holds.
#[derive(Debug, Default)]
struct Budget {
    bytes: u64,
    entries: usize,
}

impl Budget {
    fn take(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries += 1;
        match () {
            () if self.bytes > MOST_BYTES => {
                Err(UnpackError::Invalid(format!("unpacks to more than {MOST_BYTES} bytes, which no release has")))
            }
            () if self.entries > MOST_ENTRIES => {
                Err(UnpackError::Invalid(format!("has more than {MOST_ENTRIES} entries")))
            }
            () => Ok(()),
        }
    }
}

/// A name inside an archive as a path below the folder; empty for the folder itself.
fn safe_name(name: &str) -> Result<PathBuf, UnpackError> {
    let refuse = |why| Err(UnpackError::Invalid(format!("`{}` {why}", name.escape_debug())));
    if name.chars().any(char::is_control) {
        return refuse("has a control character in its name");
    }
    // Stricter than making absolute names relative: no honest archive has them, nor backslashes.
    let plain = |part: &str| !part.is_empty() && part != ".." && !part.contains('\\');
    let parts: Vec<&str> = name.strip_suffix('/').unwrap_or(name).split('/').filter(|part| *part != ".").collect();
    match parts.iter().all(|part| plain(part)) {
        true => Ok(parts.iter().collect()),
        false => refuse("leads outside of the folder"),
    }
}

/// Copies one file of exactly `size` bytes; the size that an archive states need not be the one it has.
fn write_file(from: &mut dyn io::Read, size: u64, to: &Path, executable: bool) -> Result<(), UnpackError> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if executable { 0o755 } else { 0o644 };
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(to)?;
    let written = io::copy(&mut io::Read::take(from, size.saturating_add(1)), &mut file)?;
    match written == size {
        true => Ok(()),
        false => Err(UnpackError::Invalid(format!("{} is not of the size stated", to.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_file_is() {
        assert_eq!(
            [ArchiveKind::of("a.tar.gz"), ArchiveKind::of("A.TGZ"), ArchiveKind::of("a-1.whl")],
            [ArchiveKind::TarGz, ArchiveKind::TarGz, ArchiveKind::Zip]
        );
        assert_eq!([ArchiveKind::of("linkerd-1.7.5-exec"), ArchiveKind::of("")], [ArchiveKind::Plain; 2]);
        assert_eq!(unknown_archive("x-1.tar.xz"), Some(".tar.xz"));
        assert_eq!([unknown_archive("x-1.tar.gz"), unknown_archive("x-1.jar"), unknown_archive("x-1.2")], [None; 3]);
    }

    #[test]
    fn names_stay_below_the_folder() {
        for (name, path) in
            [("a/b", "a/b"), ("./a/b/", "a/b"), ("./", ""), (".", ""), ("a/./b", "a/b"), ("..a/b..", "..a/b..")]
        {
            assert_eq!(safe_name(name).unwrap(), Path::new(path), "{name}");
        }
        for name in ["/a", "../a", "a/../b", "a/..", "a//b", "..\\a", "a\0b", "", "a\nb"] {
            assert!(safe_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_bomb_is_seen_before_it_goes_off() {
        let mut budget = Budget::default();
        budget.take(MOST_BYTES).unwrap();
        assert!(budget.take(1).is_err());
        assert!(Budget::default().take(u64::MAX).is_err());
        let mut budget = Budget::default();
        for _ in 0..MOST_ENTRIES {
            budget.take(0).unwrap();
        }
        assert!(matches!(budget.take(0), Err(UnpackError::Invalid(why)) if why.contains("entries")));
    }
}
