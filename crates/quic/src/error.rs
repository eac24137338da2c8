//! Why a connection ended, in the words of the errors of other connections.

use std::fmt;
use std::io;

use quinn_proto::{ConnectionError, TransportErrorCode};
use weir_wire::tls::quic_alert;

/// RFC 9114 section 8.1: how a peer ends a connection without a fault.
const H3_NO_ERROR: u64 = 0x100;

/// The range of transport errors that carry an alert of TLS (RFC 9000 section 20.1).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;

/// `CONNECTION_REFUSED` (RFC 9000 section 20.1).
const REFUSED: u64 = 0x2;

/// What the inner error of an [`io::Error`] of this crate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed.
    pub kind: FailureKind,
    text: String,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// TLS, on either side.
    Tls,
    /// QUIC or its versions.
    Protocol,
    /// The peer refuses connections.
    Refused,
    /// Nothing was heard for too long.
    TimedOut,
    /// The peer ended the connection, or forgot it.
    Closed,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// The failure in an error, if it is one of this crate.
    pub fn of(error: &io::Error) -> Option<&Failure> {
        error.get_ref()?.downcast_ref()
    }

    pub(crate) fn new(kind: FailureKind, text: impl Into<String>) -> Failure {
        Failure { kind, text: text.into() }
    }

    /// An error of the socket below.
    pub(crate) fn of_socket(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                Failure::new(FailureKind::Refused, "nothing listens on this port of UDP, which QUIC needs")
            }
            _ => Failure::new(FailureKind::Closed, format!("its socket of UDP failed: {error}")),
        }
    }

    pub(crate) fn into_error(self) -> io::Error {
        let kind = match self.kind {
            FailureKind::Refused => io::ErrorKind::ConnectionRefused,
            FailureKind::TimedOut => io::ErrorKind::TimedOut,
            FailureKind::Closed => io::ErrorKind::ConnectionReset,
            FailureKind::Tls | FailureKind::Protocol => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, self)
    }
}

/// Why a connection ended; `None`: the peer had nothing more to say.
pub(crate) fn failure(reason: &ConnectionError) -> Option<Failure> {
    use FailureKind as Kind;
    Some(match reason {
        ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == H3_NO_ERROR => return None,
        ConnectionError::ApplicationClosed(close) => {
            let (code, reason) = (close.error_code.into_inner(), String::from_utf8_lossy(&close.reason));
            Failure::new(Kind::Closed, format!("the peer closed the connection (code {code:#x}: {reason})"))
        }
        ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
            Some(alert) => Failure::new(Kind::Tls, quic_alert(alert)),
            None if u64::from(close.error_code) == REFUSED => {
                Failure::new(Kind::Refused, "the peer refuses the connection of QUIC")
            }
            None => Failure::new(Kind::Closed, format!("the peer's QUIC ended the connection: {close}")),
        },
        // Our own text, which says what TLS found.
        ConnectionError::TransportError(error) if alert(error.code).is_some() => {
            Failure::new(Kind::Tls, error.reason.clone())
        }
        ConnectionError::TransportError(error) => {
            Failure::new(Kind::Protocol, format!("the peer breaks the rules of QUIC: {error}"))
        }
        ConnectionError::VersionMismatch => {
            Failure::new(Kind::Protocol, "the peer speaks no version of QUIC but others than 1")
        }
        ConnectionError::Reset => {
            Failure::new(Kind::Closed, "the peer does not know the connection any more (stateless reset)")
        }
        ConnectionError::TimedOut => {
            Failure::new(Kind::TimedOut, "the peer was silent for the idle time of QUIC, over UDP")
        }
        ConnectionError::LocallyClosed => Failure::new(Kind::Closed, "it was closed here"),
        ConnectionError::CidsExhausted => Failure::new(Kind::Protocol, "there are no more connection IDs"),
    })
}

/// The alert in a transport error's code.
fn alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    ALERTS.contains(&code).then_some((code & 0xff) as u8)
}
