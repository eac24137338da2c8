//! What is session with an address: the protocol, and TLS as the suite has it.

use std::net::SocketAddr;

use weir_model::suite::Protocol;
use weir_wire::tls::{ClientConfig, ServerName};

/// The name that is asked for over TLS, and that every run's certificate has. A name and not the address, because a server
/// is told a name (SNI) and never an address.
pub const TLS_NAME: &str = "localhost";

/// What is session. A clone shares what TLS needs.
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

    /// What stands in `Host` and `:authority`.
    pub fn authority(&self, addr: SocketAddr) -> String {
        if self.tls.is_some() { format!("{TLS_NAME}:{}", addr.port()) } else { addr.to_string() }
    }

    pub(super) fn scheme(&self) -> &'static str {
        self.protocol.scheme()
    }

    /// What TLS needs, if it is session.
    pub fn tls(&self) -> Option<(&ClientConfig, &ServerName)> {
        self.tls.as_ref().map(|(config, name)| (config, name))
    }
}
