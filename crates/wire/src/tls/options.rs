//! The options of TLS: plain values, not yet checked. The CLI, the lab and the load fill them in.

use std::fmt;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// The name used in records and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Version::Tls12 => "TLS 1.2",
            Version::Tls13 => "TLS 1.3",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What kind of key a certificate has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// RSA; generated ones have 2048 bits.
    Rsa,
    /// ECDSA over secp256r1.
    P256,
}

impl KeyKind {
    /// The name used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyKind::Rsa => "RSA",
            KeyKind::P256 => "P-256",
        }
    }
}

/// A certificate chain and its key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The chain, the own certificate first.
    pub chain: Vec<u8>,
    /// The key: PKCS #8, PKCS #1 or SEC 1.
    pub key: Vec<u8>,
}

/// The certificate of a client, and who signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The client's certificate and its key.
    pub identity: Identity,
    /// The authority's certificate, PEM, for servers that check.
    pub authority: Vec<u8>,
}

impl fmt::Debug for Identity {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("chain", &String::from_utf8_lossy(&self.chain)).finish_non_exhaustive()
    }
}

/// The options of the client half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// Oldest and newest version.
    pub versions: (Version, Version),
    /// Cipher suites by their IANA names, best first; empty = all supported ones ([`super::suites`]).
    pub suites: Vec<String>,
    /// Key exchange groups, best first; empty = all supported ones ([`super::groups`]).
    pub groups: Vec<String>,
    /// Authorities (PEM) that must have issued the peer's certificate; `None`: any certificate is accepted.
    pub authorities: Option<Vec<u8>>,
    /// The client's own certificate, for servers that ask for one.
    pub identity: Option<Identity>,
    /// The protocol requested by ALPN (`http/1.1`, `h2`); `None`: ALPN is not used. If the server chooses another, or
    /// has ALPN and not this protocol, the handshake fails. It does not fail with a server without ALPN
    /// ([`super::Negotiated::alpn`] is then `None`).
    pub alpn: Option<String>,
    /// Whether a connection may resume the session of an earlier one.
    pub resumption: bool,
}

impl Default for ClientOptions {
    /// TLS 1.2 and 1.3, all suites and groups, no certificate check, no ALPN, no resumption.
    fn default() -> ClientOptions {
        ClientOptions {
            versions: (Version::Tls12, Version::Tls13),
            suites: Vec::new(),
            groups: Vec::new(),
            authorities: None,
            identity: None,
            alpn: None,
            resumption: false,
        }
    }
}

/// Whether a server requests certificates of its clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// Clients are not asked for a certificate.
    #[default]
    None,
    /// Clients are asked for a certificate; if they send one, one of these authorities (PEM) must have issued it.
    Optional(Vec<u8>),
    /// Clients must send a certificate issued by one of these authorities (PEM).
    Required(Vec<u8>),
}

/// The options of the server half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// Oldest and newest version.
    pub versions: (Version, Version),
    /// Cipher suites by their IANA names; empty = all supported ones. The client's preference decides.
    pub suites: Vec<String>,
    /// Key exchange groups, best first; empty = all supported ones.
    pub groups: Vec<String>,
    /// Certificates and keys, at least one: the first that the client can verify is used.
    pub identities: Vec<Identity>,
    /// Protocols by ALPN, best first; empty: ALPN is not used.
    pub alpn: Vec<String>,
    /// Whether sessions can be resumed (by tickets).
    pub resumption: bool,
    /// Whether clients must have certificates.
    pub clients: ClientAuth,
}

impl Default for ServerOptions {
    /// TLS 1.2 and 1.3, all suites and groups, no certificate yet, no ALPN, resumption, no client certificates.
    fn default() -> ServerOptions {
        ServerOptions {
            versions: (Version::Tls12, Version::Tls13),
            suites: Vec::new(),
            groups: Vec::new(),
            identities: Vec::new(),
            alpn: Vec::new(),
            resumption: true,
            clients: ClientAuth::None,
        }
    }
}
