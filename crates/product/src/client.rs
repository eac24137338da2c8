//! The clients for weir's own requests, which are never part of a load: blocking, a few requests at a time, with a
//! deadline for each. [`crate::http`] sends whole HTTP requests with them; `weir-conformance` also writes single bytes, and
//! sees interim responses and how a request failed. [`KeyValueClient`] is the one for key-value servers.
//!
//! The strict parsers of `weir_wire` read the responses. This module does not know what they are compared with.

mod http1;
mod http2;
mod http3;
mod keyvalue;
mod network;
mod transport;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use weir_host::stop::Stop;
use weir_model::suite::Protocol;
use weir_wire::http1::Framing;
use weir_wire::tls::{ClientConfig, Negotiated, ServerName};
use xxhash_rust::xxh3::xxh3_64;

pub use http1::{FirstResponse, Http1};
pub use http2::Http2;
pub use http3::Http3;
pub use keyvalue::{Ask, KeyValueClient, KeyValueResponse};
pub use network::{Network, Readiness, Socket};
pub use transport::Transport;

/// How long to wait for a response unless the caller says otherwise. Every product that responds at all is faster, and a
/// product that never responds shows within seconds.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// The server name for TLS, which every run's certificate has. It is a name because SNI never carries an address.
pub const TLS_NAME: &str = "localhost";

/// Largest body that is read.
const LARGEST_BODY: usize = 256 << 20;

/// A protocol, with its TLS settings. Clones share the TLS configuration.
#[derive(Debug, Clone, Default)]
pub struct WireProtocol {
    /// The protocol.
    pub protocol: Protocol,
    /// The TLS configuration and the server's name, if TLS is used.
    pub tls: Option<(ClientConfig, ServerName)>,
    /// What it goes over; `None`: this machine's sockets.
    pub network: Option<Arc<dyn Network>>,
}

impl WireProtocol {
    /// A server that speaks it.
    pub fn at(&self, addr: SocketAddr) -> Endpoint {
        let plain = Endpoint::plain(addr, Stop::new());
        Endpoint { tls: self.tls.clone(), network: self.network.clone().unwrap_or(plain.network), ..plain }
    }
}

/// A server's address, and how to connect to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Address and port.
    pub addr: SocketAddr,
    /// The TLS configuration and the server's name, if TLS is used.
    pub tls: Option<(ClientConfig, ServerName)>,
    /// Ends every wait.
    pub stop: Stop,
    /// What connections go over.
    pub network: Arc<dyn Network>,
}

impl Endpoint {
    /// An endpoint without TLS.
    pub fn plain(addr: SocketAddr, stop: Stop) -> Endpoint {
        Endpoint { addr, tls: None, stop, network: Arc::new(network::Kernel) }
    }

    /// The value of `Host` and `:authority`. With TLS it has the name from the handshake, because a product may compare
    /// the two.
    pub fn authority(&self) -> String {
        if self.tls.is_some() { format!("{TLS_NAME}:{}", self.addr.port()) } else { self.addr.to_string() }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Opens a connection for HTTP/1.1, including the TLS handshake if there is one.
    ///
    /// # Errors
    /// How the connection failed, within [`TIMEOUT`].
    pub fn open(&self) -> Result<Http1, RequestError> {
        Ok(Http1::new(Transport::open(self, TIMEOUT)?))
    }

    /// Sends one request on its own connection. `head`: the request is HEAD.
    ///
    /// # Errors
    /// How the request failed, within `timeout`.
    pub fn ask(&self, request: &[u8], head: bool, timeout: Duration) -> Result<Response, RequestError> {
        self.open()?.ask(request, head, timeout)
    }

    /// Sends a GET for a target on its own connection, with [`TIMEOUT`].
    ///
    /// # Errors
    /// How the request failed.
    pub fn get(&self, target: &str) -> Result<Response, RequestError> {
        self.ask(&self.request("GET", target, &[]), false, TIMEOUT)
    }

    /// The head of a request, with `Host` and these headers. The caller announces and appends a body.
    pub fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.authority()).into_bytes()
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`, `HTTP/3`.
    pub version: &'static str,
    /// Status.
    pub status: u16,
    /// The headers as received.
    pub headers: Vec<(String, String)>,
    /// How the body was delimited.
    pub framing: Framing,
    /// The interim responses before it.
    pub interim: Vec<u16>,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// Headers behind the body, of HTTP/2 and HTTP/3.
    pub trailers: Vec<(String, String)>,
    /// The connection can carry another request.
    pub keep_alive: bool,
    /// The time from the start of sending the last request to the end of the response.
    pub took: Duration,
    /// What TLS negotiated on its connection.
    pub tls: Option<Negotiated>,
}

/// Headers as texts.
fn texts<'a>(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers.map(|(name, value)| (text(name), text(value))).collect()
}

impl Response {
    /// A response whose body is still to come.
    pub fn new<'a>(
        version: &'static str,
        status: u16,
        headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        framing: Framing,
    ) -> Response {
        let (interim, body, trailers, took) = (Vec::new(), Vec::new(), Vec::new(), Duration::ZERO);
        let headers = texts(headers);
        Response { version, status, headers, framing, interim, body, trailers, keep_alive: true, took, tls: None }
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Size of the body, bytes.
    pub fn size(&self) -> u64 {
        self.body.len() as u64
    }

    /// XXH3-64 of the body.
    pub fn hash(&self) -> u64 {
        xxh3_64(&self.body)
    }

    /// Appends a piece of the body.
    fn add(&mut self, piece: &[u8]) -> Result<(), RequestError> {
        if self.body.len() + piece.len() > LARGEST_BODY {
            return Err(RequestError::Malformed(format!("its body is larger than {} MiB", LARGEST_BODY >> 20)));
        }
        self.body.extend_from_slice(piece);
        Ok(())
    }
}

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The connection was refused.
    #[error("connection refused")]
    Refused,
    /// There is no connection, for another reason.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The connection was closed before the response began.
    #[error("the connection was closed before the response began")]
    Closed,
    /// The connection was closed in the middle of the response.
    #[error("the connection was closed in the middle of its response")]
    Cut,
    /// The connection was reset.
    #[error("the connection was reset by the peer")]
    Reset,
    /// Nothing arrived for this long.
    #[error("nothing came for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The received bytes are not HTTP.
    #[error("what came is no HTTP response: {0}")]
    Malformed(String),
    /// The server answered something that the request cannot have asked for.
    #[error("the server answered: {0}")]
    Unexpected(String),
    /// TLS failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// A stream of HTTP/2 or HTTP/3 failed alone.
    #[error("the stream failed: {0}")]
    Stream(String),
    /// weir was asked to stop.
    #[error("stopped on request")]
    Stopped,
}
