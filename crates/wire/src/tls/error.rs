//! What can go wrong with TLS.

use std::fmt;

/// What kind of failure it was, for books that count by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsErrorKind {
    /// The options cannot be used: an unknown suite, a PEM that is none. The text names what is wrong and what there is.
    Options,
    /// The peer ended the handshake, or there was nothing both can.
    Handshake,
    /// The peer's certificate was refused here.
    Certificate,
    /// What came is not TLS.
    NotTls,
    /// The peer ended the connection by an alert after the handshake.
    Alert,
    /// A record that does not open with the agreed keys.
    Decrypt,
    /// The peer broke the protocol.
    Protocol,
    /// The session was used after its end, or written to before it was ready.
    Misuse,
}

/// A failure of TLS. The text says what happened, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsError {
    kind: TlsErrorKind,
    text: Box<str>,
}

impl TlsError {
    pub(super) fn new(kind: TlsErrorKind, text: impl Into<String>) -> TlsError {
        TlsError { kind, text: text.into().into_boxed_str() }
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> TlsErrorKind {
        self.kind
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TlsError {}
