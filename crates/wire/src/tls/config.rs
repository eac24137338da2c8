//! Options, checked.

use super::error::{TlsError, TlsErrorKind};
use super::options::{ClientOptions, ServerOptions, Version};

/// The cipher suites that there are, by their IANA names, best first, each with its version.
pub fn suites() -> impl Iterator<Item = (&'static str, Version)> {
    [].into_iter()
}

/// The key exchange groups that there are, best first.
pub fn groups() -> impl Iterator<Item = &'static str> {
    [].into_iter()
}

/// Whom the client half asks for: a DNS name, sent as SNI, or an IP address, which is not sent. Either is what the peer's
/// certificate must be for when authorities are given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerName(String);

impl ServerName {
    /// A host as it stands in a URL: `example.com`, `127.0.0.1`, `[::1]` or `::1`, without a port.
    ///
    /// # Errors
    /// [`TlsErrorKind::Options`] when it is neither a DNS name nor an address.
    pub fn new(host: &str) -> Result<ServerName, TlsError> {
        Ok(ServerName(host.to_owned()))
    }
}

/// What all client sessions of a load share. A clone shares the store of tickets; see [`ClientConfig::for_thread`].
#[derive(Debug, Clone)]
pub struct ClientConfig;

impl ClientConfig {
    /// Checks the options.
    ///
    /// # Errors
    /// [`TlsErrorKind::Options`], with a text that names what is wrong and what there is instead.
    pub fn new(options: &ClientOptions) -> Result<ClientConfig, TlsError> {
        let _ = options;
        Ok(ClientConfig)
    }

    /// The same, with a store of tickets of its own, so that threads do not wait for each other. One a thread (or one a thread
    /// and target, where targets do not understand each other's tickets).
    pub fn for_thread(&self) -> ClientConfig {
        self.clone()
    }
}

/// What all server sessions share. Clones share everything.
#[derive(Debug, Clone)]
pub struct ServerConfig;

impl ServerConfig {
    /// Checks the options.
    ///
    /// # Errors
    /// [`TlsErrorKind::Options`], with a text that names what is wrong and what there is instead.
    pub fn new(options: &ServerOptions) -> Result<ServerConfig, TlsError> {
        if options.identities.is_empty() {
            return Err(TlsError::new(TlsErrorKind::Options, "a TLS server needs a certificate and its key"));
        }
        Ok(ServerConfig)
    }
}
