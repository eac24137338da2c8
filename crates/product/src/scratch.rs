//! What a product made for itself in its folder and nobody reads afterwards: a data base of 60 MB, say, in each of a
//! hundred trials.
//!
//! This module does not know what the product is, or whether it has ended: whoever calls does.

use std::path::Path;

/// Removes `names` below `folder`; what is not there is no matter.
///
/// What cannot be removed stays: it costs room, and makes no number wrong.
pub fn clear(folder: &Path, names: &[String]) {
    for path in names.iter().map(|name| folder.join(name)) {
        // A link is removed itself, not what it points to.
        let is_folder = std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
        let _ = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_goes_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("data/deep")).unwrap();
        for name in ["data/deep/db", "pid", "output.log"] {
            std::fs::write(at(name), name).unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("kept"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("link")).unwrap();

        clear(dir.path(), &["data", "pid", "link", "never-made"].map(str::to_owned));

        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["output.log"]);
        assert!(elsewhere.path().join("kept").exists());
    }
}
