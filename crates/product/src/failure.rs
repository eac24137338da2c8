//! How starting or using a product fails.

use weir_host::files::FileError;
use weir_model::record::TrialError;

/// Why it did not go through.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Somebody asked to stop.
    #[error("stopped on request")]
    Stopped,
    /// The product or what it needs; others may still work.
    #[error("{}", .0.message)]
    Trial(TrialError),
    /// A file that weir itself cannot write; nothing else will work either.
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
        Failure::Trial(TrialError {
            stage: stage.to_owned(),
            message: message.into(),
            evidence: evidence.into(),
            remedy: remedy.into(),
        })
    }
}
