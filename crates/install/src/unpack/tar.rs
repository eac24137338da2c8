//! Tar files pressed by gzip. Files come first and links last, so that nothing is ever written through a link; then
//! every link is followed to its end, which must lie inside.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::{Budget, MOST_BYTES, MOST_ENTRIES, UnpackError, safe_name, write_file};

/// Headers and padding, besides the files' bytes.
const MOST_STREAM: u64 = MOST_BYTES + 1024 * MOST_ENTRIES as u64;

type Stream = std::io::Take<MultiGzDecoder<BufReader<File>>>;

/// What an entry is to become.
enum EntryAction {
    Folder(PathBuf),
    File(PathBuf),
    Link {
        at: PathBuf,
        to: PathBuf,
    },
    /// Says something about the entries after it.
    Nothing,
}

pub(super) fn unpack(archive: &Path, into: &Path) -> Result<(), UnpackError> {
    let mut budget = Budget::default();
    for_each_entry(archive, |entry| {
        budget.take(entry.size())?;
        action_of(entry).map(drop)
    })?;
    fs::create_dir_all(into)?;
    let mut links = Vec::new();
    for_each_entry(archive, |entry| {
        match action_of(entry)? {
            EntryAction::Folder(path) => fs::create_dir_all(into.join(path))?,
            EntryAction::File(path) => {
                let executable = entry.header().mode()? & 0o111 != 0;
                let size = entry.size();
                write_file(entry, size, &into.join(path), executable)?;
            }
            EntryAction::Link { at, to } => links.push((at, to)),
            EntryAction::Nothing => {}
        }
        Ok(())
    })?;
    link(&links, into)
}

fn for_each_entry(
    archive: &Path,
    mut visit: impl FnMut(&mut Entry<'_, Stream>) -> Result<(), UnpackError>,
) -> Result<(), UnpackError> {
    let bytes = MultiGzDecoder::new(BufReader::new(File::open(archive)?)).take(MOST_STREAM);
    for entry in Archive::new(bytes).entries()? {
        visit(&mut entry?)?;
    }
    Ok(())
}

fn action_of(entry: &Entry<'_, Stream>) -> Result<EntryAction, UnpackError> {
    let bytes = entry.path_bytes();
    let name = String::from_utf8_lossy(&bytes);
    let refuse = |why: &str| Err(UnpackError::Invalid(format!("`{}` {why}", name.escape_debug())));
    let kind = entry.header().entry_type();
    Ok(match kind {
        EntryType::XGlobalHeader | EntryType::XHeader => EntryAction::Nothing,
        EntryType::Directory => EntryAction::Folder(safe_name(&name)?),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => EntryAction::File(safe_name(&name)?),
        EntryType::Symlink => {
            let to = entry.link_name_bytes().unwrap_or_default();
            let to = PathBuf::from(String::from_utf8_lossy(&to).into_owned());
            if to.is_absolute() {
                return refuse(&format!("is a link to {}, outside of the folder", to.display()));
            }
            EntryAction::Link { at: safe_name(&name)?, to }
        }
        EntryType::Link => return refuse("is a hard link; weir takes none"),
        _ => return refuse("is neither file, folder nor link"),
    })
}

/// Makes all links, then looks where each ends: one link can change where another leads.
fn link(links: &[(PathBuf, PathBuf)], into: &Path) -> Result<(), UnpackError> {
    let root = into.canonicalize()?;
    let outside = |at: &Path, to: &Path| {
        UnpackError::Invalid(format!("`{}` is a link to {}, outside of the folder", at.display(), to.display()))
    };
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
        match into.join(at).canonicalize() {
            Ok(end) if end.starts_with(&root) => {}
            Ok(_) => return Err(outside(at, to)),
            Err(_) => {
                let why = format!("`{}` is a link to {}, which is not in it", at.display(), to.display());
                return Err(UnpackError::Invalid(why));
            }
        }
    }
    Ok(())
}
