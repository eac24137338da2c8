//! The protocol of a client, with the suite's TLS settings. [`super::Http`] and the TLS of a run use it.

use std::net::SocketAddr;

use weir_model::suite::Protocol;
use weir_wire::tls::{ClientConfig, ServerName};

/// The server name for TLS, which every run's certificate has. It is a name because SNI never carries an address.
pub const TLS_NAME: &str = "localhost";

/// A protocol, over TLS or not. Clones share the TLS configuration.
#[derive(Debug, Clone)]
pub struct WireProtocol {
    protocol: Protocol,
    tls: Option<(ClientConfig, ServerName)>,
}

impl WireProtocol {
    /// HTTP/1.1 over plain TCP.
    pub fn plain() -> WireProtocol {
        WireProtocol { protocol: Protocol::default(), tls: None }
    }

    /// This protocol, without TLS.
    pub fn without_tls(protocol: Protocol) -> WireProtocol {
        WireProtocol { protocol, tls: None }
    }

    /// This protocol, over TLS; `config` asks for it by ALPN.
    ///
    /// # Errors
    /// Never with the name that weir asks for.
    pub fn over_tls(protocol: Protocol, config: ClientConfig) -> Result<WireProtocol, String> {
        let name = ServerName::new(TLS_NAME).map_err(|e| e.to_string())?;
        Ok(WireProtocol { protocol, tls: Some((config, name)) })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The value of `Host` and `:authority`.
    pub fn authority(&self, addr: SocketAddr) -> String {
        if self.tls.is_some() { format!("{TLS_NAME}:{}", addr.port()) } else { addr.to_string() }
    }

    pub(super) fn scheme(&self) -> &'static str {
        self.protocol.scheme()
    }

    /// The TLS configuration and server name, if TLS is used.
    pub fn tls(&self) -> Option<(&ClientConfig, &ServerName)> {
        self.tls.as_ref().map(|(config, name)| (config, name))
    }
}
