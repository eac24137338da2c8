//! The error of starting or using a product. This crate, `weir-lab` and `weir-conformance` use it.

use weir_host::files::FileError;
use weir_model::record::TrialError;

/// Why starting or using a product failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A stop was requested.
    #[error("stopped on request")]
    Stopped,
    /// The product, or something that it needs, failed. Other products may still work.
    #[error("{}", .0.message)]
    Trial(TrialError),
    /// weir cannot write a file. Nothing else will work either.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Failure {
    /// A failure of a stage, with evidence and remedy.
    pub fn at(
        stage: &str,
        message: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Failure {
        Failure::Trial(TrialError::new(stage, message, evidence, remedy))
    }
}
