//! The entries of tar files that gzip has compressed. `unpack` extracts from them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::{Entry, EntryKind, MOST_BYTES, MOST_ENTRIES, UnpackError};

/// Headers and padding, besides the files' bytes.
const MOST_STREAM: u64 = MOST_BYTES + 1024 * MOST_ENTRIES as u64;

pub(super) fn for_each(
    archive: &Path,
    visit: &mut dyn FnMut(Entry<'_>) -> Result<(), UnpackError>,
) -> Result<(), UnpackError> {
    let bytes = MultiGzDecoder::new(BufReader::new(File::open(archive)?)).take(MOST_STREAM);
    for entry in Archive::new(bytes).entries()? {
        let mut entry = entry?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kind = match entry.header().entry_type() {
            EntryType::XGlobalHeader | EntryType::XHeader => EntryKind::Nothing,
            EntryType::Directory => EntryKind::Folder,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => EntryKind::File,
            EntryType::Symlink => EntryKind::Link(PathBuf::from(text(&entry.link_name_bytes().unwrap_or_default()))),
            EntryType::Link => EntryKind::Refused("is a hard link; weir takes none"),
            _ => EntryKind::Refused("is neither file, folder nor link"),
        };
        let (name, size) = (text(&entry.path_bytes()), entry.size());
        let executable = matches!(kind, EntryKind::File) && entry.header().mode()? & 0o111 != 0;
        visit(Entry { name, kind, size, executable, bytes: &mut entry })?;
    }
    Ok(())
}
