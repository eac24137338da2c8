//! How a trial fails.

use weir_model::record::TrialError;

use crate::journal::JournalError;

/// Why an attempt did not go through.
#[derive(Debug)]
pub enum Failure {
    /// Somebody asked to stop.
    Stopped,
    /// This trial; the run goes on.
    Trial(TrialError),
    /// The disk; the run does not go on.
    Journal(JournalError),
}

impl Failure {
    /// A failed trial.
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

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Failure {
        Failure::Journal(error)
    }
}
