//! Why a product could not be looked for or installed.

use std::path::PathBuf;

use weir_host::HostError;
use weir_product::render::RenderError;

/// Why a product could not be looked for or installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Anything for which the text is enough: what was found, and what expected.
    #[error("{0}")]
    Message(String),
    /// The product's version command cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The user has not agreed that weir runs what this library names.
    #[error(
        "version unknown: you have not agreed yet that weir runs the programs of the library {}; `weir run` asks, and its --yes agrees", .0.display()
    )]
    Unagreed(PathBuf),
    /// None of the product's sources works here.
    #[error("{product} is not installed, and weir knows no way to install it here:\n  {}", .tried.join("\n  "))]
    NoSource {
        /// Which.
        product: String,
        /// Each source, and why not.
        tried: Vec<String>,
    },
    /// The user's binary cannot be used, and nothing else may be used instead.
    #[error(
        "{product} is set to {} by `weir products use`, which cannot be used: {why}\n  \
         expected: weir products use {product} --binary <path>, or weir products use {product} --none", .binary.display()
    )]
    Chosen {
        /// Which.
        product: String,
        /// What was chosen.
        binary: PathBuf,
        /// Why it cannot be used.
        why: String,
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
    /// What was downloaded is not what the product's file says.
    #[error("{file}: wrong SHA-256; refused, and nothing of it was unpacked\n  found:  {found}\n  wanted: {wanted}")]
    Hash {
        /// The file.
        file: String,
        /// Of the file that came.
        found: String,
        /// In the product's file.
        wanted: String,
    },
    /// An archive that is broken or malicious, or without the program.
    #[error("{file}: {why}")]
    Archive {
        /// The archive.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The product is not there, or cannot be used.
    #[error("{product} cannot be used:\n  {}", .tried.join("\n  "))]
    Unusable {
        /// Which.
        product: String,
        /// Each source, and why not.
        tried: Vec<String>,
    },
    /// The host can no longer be spoken to.
    #[error(transparent)]
    Host(#[from] HostError),
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

    /// True if the product is not there or cannot be used, and nothing else is wrong.
    pub fn is_missing(&self) -> bool {
        matches!(self, InstallError::Unusable { .. } | InstallError::Chosen { .. })
    }

    /// Why a product is missing, a line for each of its sources; else the error itself.
    pub fn tried(self) -> Vec<String> {
        match self {
            InstallError::Unusable { tried, .. } => tried,
            other => vec![other.to_string()],
        }
    }

    /// The error as a reason in one line.
    pub fn one_line(&self) -> String {
        let text = self.to_string();
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ").replace(":; ", ": ")
    }

    /// The product's own file says something that cannot be used. `key` is dotted.
    pub(super) fn definition(product: &str, key: &str, message: &str) -> InstallError {
        InstallError::Message(format!("{product}, product.toml: {key}: {message}"))
    }
}

fn remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{
        AlreadyExists, NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    match error.kind() {
        // The system says that a folder exists already when a file is in its place.
        PermissionDenied | NotADirectory | AlreadyExists | ReadOnlyFilesystem => {
            "\n  expected: WEIR_HOME set to a folder that can be written to"
        }
        StorageFull | QuotaExceeded => "\n  expected: room on that disk, or WEIR_HOME set to a folder on another",
        _ => "",
    }
}
