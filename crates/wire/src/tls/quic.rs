//! TLS for QUIC, which has no records: it takes TLS's messages and keys from rustls itself, and needs the same options, checks, names and
//! texts as TLS on a connection. It does not know packets.

use std::sync::Arc;

use rustls::Error;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Suite, Version};

use super::alert;
use super::config::{ClientConfig, ServerConfig, ServerName};
use super::error::{TlsError, TlsErrorKind};
use super::handshake::negotiated;
use super::session::Negotiated;

impl ClientConfig {
    /// The client half of a connection, with QUIC's transport parameters.
    ///
    /// # Errors
    /// When the options do not allow TLS 1.3, or rustls fails.
    pub fn quic(&self, name: &ServerName, version: Version, parameters: Vec<u8>) -> Result<Connection, TlsError> {
        ClientConnection::new(Arc::clone(&self.rustls), version, name.0.clone(), parameters)
            .map(Connection::Client)
            .map_err(|error| of_options(&error))
    }
}

impl ServerConfig {
    /// The server half of a connection, with QUIC's transport parameters.
    ///
    /// # Errors
    /// As [`ClientConfig::quic`].
    pub fn quic(&self, version: Version, parameters: Vec<u8>) -> Result<Connection, TlsError> {
        ServerConnection::new(Arc::clone(&self.rustls), version, parameters)
            .map(Connection::Server)
            .map_err(|error| of_options(&error))
    }
}

fn of_options(error: &Error) -> TlsError {
    TlsError::new(TlsErrorKind::Options, format!("QUIC needs TLS 1.3: {error}"))
}

/// The suite of the first packets of a connection, whatever the options say (RFC 9001 section 5.2).
///
/// # Errors
/// When the crypto library lacks it.
pub fn quic_initial_suite() -> Result<Suite, TlsError> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite());
    suite.ok_or_else(|| TlsError::new(TlsErrorKind::Options, "the crypto library has no TLS_AES_128_GCM_SHA256"))
}

/// What the two sides agreed on, once the handshake is done.
pub fn quic_negotiated(connection: &Connection) -> Negotiated {
    negotiated(connection)
}

/// The error of a handshake.
pub fn quic_error(error: &Error) -> TlsError {
    TlsError::of_handshake(error)
}

/// The peer's alert, which QUIC carries in an error code, for people.
pub fn quic_alert(alert: u8) -> String {
    format!("the peer ended the TLS handshake: {}", alert::text(alert))
}
