//! [`ReportError`], the reasons why a report cannot be made. `make`, `run` and everything that draws return it.

use std::path::{Path, PathBuf};

/// Why no report was made.
///
/// A broken file *inside* a run is not such an error: it becomes a row of the report
/// ([`Broken`](crate::run::Broken)), because the other trials are still worth reading.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder does not exist or holds no `trials` folder.
    #[error("{path}: not a run folder: {why}\n  expected: a folder that `weir run` made, such as runs/<time>-<suite>")]
    NotARun {
        /// As given by the caller.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// No trial has ended yet.
    #[error(
        "{path}: no trial of this run has ended yet, so there is nothing to report\n  \
         let it go on with `weir run --resume {path}`"
    )]
    Empty {
        /// As given by the caller.
        path: PathBuf,
    },
    /// The folder for a site holds something else.
    #[error(
        "{path}: there are files in it, and they are no site\n  expected: a new folder, or that of an earlier site (--out)"
    )]
    Occupied {
        /// The folder, or what in it is of others.
        path: PathBuf,
    },
    /// The folder of a site has something that is no part of one.
    #[error(
        "{path}: it is no part of a site of weir's, and would be lost\n  expected: a folder with nothing else in it (--out)"
    )]
    Foreign {
        /// What it is.
        path: PathBuf,
    },
    /// A file could not be read, written or renamed.
    #[error("{path}: {doing}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// `read`, `write`, `rename`.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A picture or a page could not be drawn: a defect of weir, not of the run.
    #[error("{what} could not be drawn: {source}")]
    Draw {
        /// Which one.
        what: String,
        /// What the library said.
        source: DrawError,
    },
}

/// What a library said that could not draw something.
pub type DrawError = Box<dyn std::error::Error + Send + Sync>;

impl ReportError {
    pub(crate) fn io(path: &Path, doing: &'static str, source: std::io::Error) -> Self {
        ReportError::Io { path: path.to_path_buf(), doing, source }
    }

    /// Says what could not be drawn.
    pub(crate) fn draw<E: Into<DrawError>>(what: &str) -> impl FnOnce(E) -> Self {
        move |source| ReportError::Draw { what: what.to_string(), source: source.into() }
    }
}
