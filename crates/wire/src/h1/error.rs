//! What a peer can do wrong.

/// What a peer did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Bytes came, and no request was waiting for an answer.
    #[error("bytes came although no request was waiting for an answer")]
    Unsolicited,
}
