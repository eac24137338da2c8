//! Options, checked and ready for connections. The load and the origin make them once.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CipherSuite, SignatureAlgorithm, SupportedProtocolVersion, version};

use super::error::{TlsError, TlsErrorKind};
use super::identity;
use super::names::{chosen_groups, chosen_suites};
use super::options::{ClientAuth, ClientOptions, ServerOptions, Version};
use super::tickets::Tickets;
use super::verify::{self, Verifier};

/// The server's name for the client half: a DNS name, sent as SNI, or an IP address, which is not sent. When
/// authorities are given, the peer's certificate must be valid for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerName(pub(super) pki_types::ServerName<'static>);

impl ServerName {
    /// A host as in a URL: `example.com`, `127.0.0.1`, `[::1]` or `::1`, without a port.
    ///
    /// # Errors
    /// [`TlsErrorKind::Options`] when it is neither a DNS name nor an address.
    pub fn new(host: &str) -> Result<ServerName, TlsError> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let name = match bare {
            Some(address) => address.parse::<IpAddr>().ok().map(pki_types::ServerName::from),
            None => pki_types::ServerName::try_from(host.to_owned()).ok(),
        };
        name.map(ServerName).ok_or_else(|| {
            let text =
                format!("\"{host}\" is neither a DNS name nor an IP address, which TLS needs for its server's name");
            TlsError::new(TlsErrorKind::Options, text)
        })
    }
}

/// What all client sessions of a load share. A clone shares the store of tickets; see [`ClientConfig::for_thread`].
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub(super) rustls: Arc<rustls::ClientConfig>,
    pub(super) resumption: bool,
}

impl ClientConfig {
    /// Checks the options.
    ///
    /// # Errors
    /// [`TlsErrorKind::Options`], with a text that names the wrong value and the valid ones.
    pub fn new(options: &ClientOptions) -> Result<ClientConfig, TlsError> {
        let provider = provider(&options.suites, &options.groups, options.versions)?;
        let verifier = Arc::new(Verifier::new(options.authorities.as_deref(), &provider)?);
        let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions(options.versions))
            .map_err(|e| TlsError::of_options("the TLS versions", &e))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certified = identity::certified(identity, &provider)?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
        };
        config.alpn_protocols = options.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.enable_secret_extraction = true;
        config.resumption = resumption(options.resumption);
        Ok(ClientConfig { rustls: Arc::new(config), resumption: options.resumption })
    }

    /// A copy with its own store of tickets, so that threads do not wait for each other. Make one per thread (or one
    /// per thread and target, where targets do not accept each other's tickets).
    pub fn for_thread(&self) -> ClientConfig {
        let mut config = rustls::ClientConfig::clone(&self.rustls);
        config.resumption = resumption(self.resumption);
        ClientConfig { rustls: Arc::new(config), resumption: self.resumption }
    }
}

fn resumption(on: bool) -> Resumption {
    if on { Resumption::store(Arc::new(Tickets::default())) } else { Resumption::disabled() }
}

/// What all server sessions share. Clones share everything.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub(super) rustls: Arc<rustls::ServerConfig>,
}

impl ServerConfig {
    /// Checks the options.
    ///
    /// # Errors
    /// [`TlsErrorKind::Options`], with a text that names the wrong value and the valid ones.
    pub fn new(options: &ServerOptions) -> Result<ServerConfig, TlsError> {
        if options.identities.is_empty() {
            return Err(TlsError::new(TlsErrorKind::Options, "a TLS server needs a certificate and its key"));
        }
        let provider = provider(&options.suites, &options.groups, options.versions)?;
        let identities: Result<Vec<_>, _> =
            options.identities.iter().map(|one| identity::certified(one, &provider)).collect();
        let clients = |authorities: &[u8], must: bool| {
            let roots = verify::roots(&identity::certificates("the clients' authorities", authorities)?)?;
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let builder = if must { builder } else { builder.allow_unauthenticated() };
            builder.build().map_err(|e| TlsError::new(TlsErrorKind::Options, format!("the clients' authorities: {e}")))
        };
        let verifier = match &options.clients {
            ClientAuth::None => WebPkiClientVerifier::no_client_auth(),
            ClientAuth::Optional(authorities) => clients(authorities, false)?,
            ClientAuth::Required(authorities) => clients(authorities, true)?,
        };
        let resolver = Identities { all: identities?, tls13: options.versions.1 == Version::Tls13 };
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions(options.versions))
            .map_err(|e| TlsError::of_options("the TLS versions", &e))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = options.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.enable_secret_extraction = true;
        // By tickets only: they need no memory and no lock shared by all threads.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if options.resumption {
            config.ticketer = aws_lc_rs::Ticketer::new().map_err(|e| TlsError::of_options("the key of tickets", &e))?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(ServerConfig { rustls: Arc::new(config) })
    }
}

/// The crypto library, restricted to the requested suites and groups.
fn provider(suites: &[String], groups: &[String], range: (Version, Version)) -> Result<Arc<CryptoProvider>, TlsError> {
    let cipher_suites = chosen_suites(suites, range)?;
    let kx_groups = chosen_groups(groups)?;
    Ok(Arc::new(CryptoProvider { cipher_suites, kx_groups, ..aws_lc_rs::default_provider() }))
}

fn versions(range: (Version, Version)) -> &'static [&'static SupportedProtocolVersion] {
    static ONLY12: [&SupportedProtocolVersion; 1] = [&version::TLS12];
    static ONLY13: [&SupportedProtocolVersion; 1] = [&version::TLS13];
    static BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
    match range {
        (Version::Tls12, Version::Tls12) => &ONLY12,
        (Version::Tls13, _) => &ONLY13,
        (Version::Tls12, Version::Tls13) => &BOTH,
    }
}

/// The certificates of a server, in the order of its preference.
#[derive(Debug)]
struct Identities {
    all: Vec<Arc<CertifiedKey>>,
    /// Whether the server speaks TLS 1.3, whose suites go with any key.
    tls13: bool,
}

impl ResolvesServerCert for Identities {
    /// The first certificate whose key the client can check, by its signatures and, for TLS 1.2, its suites. If there
    /// is none, any serves to find out what the two sides do not have in common.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let suits = |one: &&Arc<CertifiedKey>| {
            one.key.choose_scheme(hello.signature_schemes()).is_some()
                && hello.cipher_suites().iter().any(|suite| self.goes_with(*suite, one.key.algorithm()))
        };
        self.all.iter().find(suits).or(self.all.first()).cloned()
    }
}

impl Identities {
    fn goes_with(&self, suite: CipherSuite, key: SignatureAlgorithm) -> bool {
        let name = suite.as_str().unwrap_or_default();
        if name.starts_with("TLS13_") {
            return self.tls13;
        }
        name.starts_with(if key == SignatureAlgorithm::RSA { "TLS_ECDHE_RSA_" } else { "TLS_ECDHE_ECDSA_" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_distinguished() {
        for name in ["localhost", "example.com", "a_b.example"] {
            assert!(matches!(ServerName::new(name).unwrap().0, pki_types::ServerName::DnsName(_)), "{name}");
        }
        for address in ["127.0.0.1", "::1", "[::1]"] {
            assert!(matches!(ServerName::new(address).unwrap().0, pki_types::ServerName::IpAddress(_)), "{address}");
        }
        for wrong in ["", "a b", "[localhost]", "example.com:443"] {
            let error = ServerName::new(wrong).unwrap_err();
            assert_eq!(error.kind(), TlsErrorKind::Options, "{wrong}");
        }
    }
}
