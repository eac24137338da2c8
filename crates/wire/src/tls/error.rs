//! The failures of TLS and their texts. Sessions and configurations return them.

use rustls::{CertificateError, Error, InconsistentKeys, PeerIncompatible, PeerMisbehaved};

use super::{alert, verify};

/// The kind of a failure, for counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsErrorKind {
    /// The options cannot be used: an unknown suite, an invalid PEM text. The text names the problem and the valid
    /// values.
    Options,
    /// The peer ended the handshake, or the two sides have nothing in common.
    Handshake,
    /// The peer's certificate was refused here.
    Certificate,
    /// The received bytes are not TLS.
    NotTls,
    /// The peer ended the connection by an alert after the handshake. (With TLS 1.3 that may be about the handshake:
    /// a client is ready before the server has seen its certificate.)
    Alert,
    /// A record cannot be opened with the agreed keys.
    Decrypt,
    /// The peer broke the protocol.
    Protocol,
    /// The session was used after its end, or written to before it was ready; or the crypto library failed.
    Misuse,
}

/// A failure of TLS. The text says what happened, for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
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

    /// The error for a failure of rustls in a handshake.
    pub(super) fn of_handshake(error: &Error) -> TlsError {
        use TlsErrorKind as Kind;
        let (kind, text) = match error {
            Error::AlertReceived(alert) => {
                (Kind::Handshake, format!("the peer ended the TLS handshake: {}", alert::text(u8::from(*alert))))
            }
            Error::InvalidCertificate(why) => {
                (Kind::Certificate, format!("the peer's certificate is refused: {}", refusal(why)))
            }
            Error::NoCertificatesPresented => (Kind::Certificate, "the peer sent no certificate, and must".to_owned()),
            Error::NoApplicationProtocol => {
                (Kind::Handshake, "the two sides have no protocol in common (ALPN)".to_owned())
            }
            Error::PeerIncompatible(why) => (Kind::Handshake, incompatible(why)),
            Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
                (Kind::Handshake, "the server chose a protocol that it was not offered (ALPN)".to_owned())
            }
            Error::DecryptError => {
                (Kind::Decrypt, "a message of the TLS handshake does not open, or is not what was agreed on".to_owned())
            }
            Error::InvalidMessage(what) => {
                (Kind::Protocol, format!("a message of the TLS handshake cannot be read ({what:?})"))
            }
            other => (Kind::Protocol, format!("the TLS handshake failed: {other}")),
        };
        TlsError::new(kind, text)
    }

    /// The error for options that rustls rejects.
    pub(super) fn of_options(what: &str, error: &Error) -> TlsError {
        let text = match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{what}: the key is not the certificate's")
            }
            other => format!("{what}: {other}"),
        };
        TlsError::new(TlsErrorKind::Options, text)
    }
}

/// Why a certificate is rejected. rustls has texts for the rarer reasons only.
fn refusal(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "it comes from none of the authorities given".to_owned(),
        CertificateError::BadSignature => "its signature is wrong".to_owned(),
        CertificateError::BadEncoding => "it cannot be read".to_owned(),
        other if verify::is_authority(other) => {
            "it is an authority's own certificate, and none of the authorities given".to_owned()
        }
        other => other.to_string(),
    }
}

/// What the two sides do not have in common.
fn incompatible(why: &PeerIncompatible) -> String {
    use PeerIncompatible as Why;
    let what = match why {
        Why::NoCipherSuitesInCommon => "cipher suite",
        Why::NoKxGroupsInCommon | Why::NoEcPointFormatsInCommon | Why::NamedGroupsExtensionRequired => {
            "key exchange group"
        }
        Why::NoSignatureSchemesInCommon | Why::NoCertificateRequestSignatureSchemesInCommon => "kind of signature",
        Why::ServerDoesNotSupportTls12Or13
        | Why::Tls12NotOffered
        | Why::Tls12NotOfferedOrEnabled
        | Why::Tls13RequiredForQuic
        | Why::SupportedVersionsExtensionRequired
        | Why::ServerTlsVersionIsDisabledByOurConfig => "version of TLS",
        other => return format!("the two sides cannot speak TLS with each other: {other:?}"),
    };
    format!("the two sides have no {what} in common")
}
