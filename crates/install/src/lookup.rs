//! Where programs are: the PATH, the folders that a user's PATH often lacks, and patterns below a folder. All sources call it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, glob_with};
use weir_model::seal;

/// Servers live in sbin folders, which are not in an ordinary user's PATH on Debian.
const USUAL: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The first executable of that name in `path` (as in `$PATH`; relative entries are passed over) or the usual folders.
pub(super) fn program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_executable(path));
    }
    let listed = path.into_iter().flat_map(std::env::split_paths).filter(|dir| dir.is_absolute());
    listed.chain(USUAL.iter().map(PathBuf::from)).map(|dir| dir.join(name)).find(|path| is_executable(path))
}

/// The same, in this process's PATH.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    program(name, std::env::var_os("PATH").as_deref())
}

/// A file with any execute bit.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// SHA-256 of a file in lower-case hexadecimal.
pub(super) fn sha256(path: &Path) -> io::Result<String> {
    seal::hash_of(File::open(path)?)
}

/// The files below `root` whose path matches `pattern`, in which a `*` stands for any part of one component.
pub(super) fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let literal: Vec<String> = pattern.split('*').map(Pattern::escape).collect();
    let pattern = format!("{}/{}", Pattern::escape(&root.to_string_lossy()), literal.join("*"));
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
    let found = glob_with(&pattern, options).into_iter().flatten().flatten();
    found.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_one_component() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["a-1.data/scripts/a", "a-1.data/scripts/deep/a", "b/a"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(matching(dir.path(), "*/scripts/a"), [dir.path().join("a-1.data/scripts/a")]);
        assert_eq!(matching(dir.path(), "a-*.data/*/a"), [dir.path().join("a-1.data/scripts/a")]);
        assert_eq!(matching(dir.path(), "b/a"), [dir.path().join("b/a")]);
        assert!(matching(dir.path(), "*/a/a").is_empty());
        assert!(matching(dir.path(), "*").is_empty(), "folders do not count");
    }

    #[test]
    fn only_executables_of_absolute_folders_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("weir-test-program");
        std::fs::write(&file, "").unwrap();
        let path = Some(dir.path().as_os_str());
        assert_eq!(program("weir-test-program", path), None, "not executable");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(program("weir-test-program", path), Some(file));
        assert_eq!(program("weir-test-program", Some(OsStr::new("."))), None);
    }
}
