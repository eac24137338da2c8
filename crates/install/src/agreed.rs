//! The libraries of which the user agreed that weir runs what they name, in a file of weir's own folder. `weir` asks, and calls it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;

use weir_model::product::Library;

use crate::InstallError;
use crate::home::Home;

/// Their hashes; none where the file cannot be read.
pub fn libraries(home: &Home) -> BTreeSet<String> {
    let text = fs::read_to_string(home.libraries()).unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

/// Remembers one.
///
/// # Errors
/// When the file cannot be written.
pub fn remember(library: &Library, home: &Home) -> Result<(), InstallError> {
    let path = home.libraries();
    fs::create_dir_all(home.path()).map_err(InstallError::io(home.path()))?;
    let io = || InstallError::io(&path);
    let mut file = File::options().create(true).append(true).open(&path).map_err(io())?;
    // The folder is for people, on one line.
    let folder = std::path::absolute(&library.folder).map_err(io())?;
    let line = format!("{}  {folder:?}\n", library.sha256);
    file.write_all(line.as_bytes()).map_err(io())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_agreed_to_is_known_by_its_hash() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("new"));
        assert_eq!(libraries(&home), BTreeSet::new());
        for (folder, sha256) in [("a b", "12"), ("a\n34  b", "56")] {
            remember(&Library { folder: folder.into(), sha256: sha256.into() }, &home).unwrap();
        }
        assert_eq!(libraries(&home), ["12", "56"].map(str::to_owned).into());
    }
}
