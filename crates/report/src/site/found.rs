//! Finds the runs of a site: folders that were given are runs, or hold runs at some depth. It reads names and no record.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ReportError;

/// How far below a folder that was given a run may lie.
const DEEPEST: usize = 4;

/// A run's folder.
pub(super) struct Found {
    pub folder: PathBuf,
    /// It was given by name, and did not turn up in another folder.
    pub named: bool,
}

/// The runs of all folders, each once, in the order in which they were given; those below a folder by name.
///
/// # Errors
/// A folder that is no run and has none.
pub(super) fn runs(given: &[PathBuf]) -> Result<Vec<Found>, ReportError> {
    let mut all: Vec<Found> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for folder in given {
        if !folder.is_dir() {
            return Err(none_in(folder, "there is no such folder"));
        }
        let mut folders = Vec::new();
        let named = is_run(folder);
        if named {
            folders.push(folder.clone());
        } else {
            below(folder, DEEPEST, &mut folders);
        }
        if folders.is_empty() {
            return Err(none_in(folder, "it is no run, and there is none in it"));
        }
        let new = folders.into_iter().filter(|folder| seen.insert(place(folder)));
        all.extend(new.map(|folder| Found { folder, named }));
    }
    Ok(all)
}

fn none_in(folder: &Path, why: &str) -> ReportError {
    ReportError::NotARun { path: folder.to_path_buf(), why: why.to_owned() }
}

fn place(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())
}

/// Whether a folder looks like a run; it may be one without any trial.
fn is_run(folder: &Path) -> bool {
    folder.join("run.toml").is_file() || folder.join("trials").is_dir()
}

fn below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut folders: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    let hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    folders.retain(|path| !hidden(path) && path.is_dir());
    folders.sort();
    for path in folders {
        if is_run(&path) {
            found.push(path);
        } else if depth > 1 {
            below(&path, depth - 1, found);
        }
    }
}
