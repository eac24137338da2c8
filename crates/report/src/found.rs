//! Finds runs below a folder. It reads names and no record.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ReportError;

/// How far below a folder a run may lie.
const DEEPEST: usize = 4;

/// The runs in a folder, by name: the folder alone where it is a run, else those at any depth down to the fourth; empty where
/// there is none. Hidden folders are left out, and links are not followed, which may lead in circles.
///
/// # Errors
/// [`ReportError::NotARun`] where there is no such folder.
pub fn runs_in(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    if !folder.is_dir() {
        return Err(ReportError::NotARun { path: folder.to_path_buf(), why: "there is no such folder".to_owned() });
    }
    let mut runs = Vec::new();
    descend(folder, DEEPEST, &mut runs);
    Ok(runs)
}

/// Whether a folder looks like a run; it may be one without any trial.
fn is_run(folder: &Path) -> bool {
    folder.join("run.toml").is_file() || folder.join("trials").is_dir()
}

fn descend(folder: &Path, deeper: usize, runs: &mut Vec<PathBuf>) {
    if is_run(folder) {
        runs.push(folder.to_path_buf());
        return;
    }
    if deeper == 0 {
        return;
    }
    let shown = |entry: &fs::DirEntry| {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).filter(shown);
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    below.sort();
    below.iter().for_each(|below| descend(below, deeper - 1, runs));
}
