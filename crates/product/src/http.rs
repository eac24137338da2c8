//! weir's own requests for readiness, verification and the origin's counters. They are never part of a load. The trial, the
//! verification and the conformance tests call it.
//!
//! They use the protocol of the load. Plain HTTP/1.1 uses another implementation (`independent`), so that `weir-wire` does not
//! judge itself. TLS and HTTP/2 use weir's own protocol code, whose tests compare it with other implementations. There is one
//! request at a time over a kept connection, with no threads and no async runtime.
//!
//! This module does not know what the responses are compared with.

mod connection;
mod http1;
mod http2;
mod independent;
mod wire_protocol;

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weir_model::counters::OriginCounters;
use weir_model::protocol::{Application, Protocol};
use weir_model::suite::Request;
use weir_wire::http1::ResponseParser;
use weir_wire::http2::Client;
use weir_wire::tls::Negotiated;
use xxhash_rust::xxh3::xxh3_64;

use connection::Connection;
use independent::IndependentClient;
pub use wire_protocol::{TLS_NAME, WireProtocol};

/// Largest body that is read.
const LARGEST_BODY: usize = 256 * 1024 * 1024;

/// A client of one address.
pub struct Http {
    addr: SocketAddr,
    wire_protocol: WireProtocol,
    /// For each request.
    timeout: Duration,
    /// The client for plain HTTP/1.1.
    independent: Option<IndependentClient>,
    kept: Cell<Option<Box<KeptConnection>>>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("addr", &self.addr)
            .field("wire_protocol", &self.wire_protocol)
            .finish_non_exhaustive()
    }
}

/// A connection and its HTTP session.
struct KeptConnection {
    connection: Connection,
    session: Session,
    /// Requests sent.
    sent: u32,
}

enum Session {
    Http1(ResponseParser),
    Http2(Box<Client>),
}

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    /// Status.
    pub status: u16,
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`.
    pub version: String,
    /// Headers, lower-case names, in the order received.
    pub headers: Vec<(String, String)>,
    /// Size of the body, bytes.
    pub size: u64,
    /// XXH3-64 of the body.
    pub hash: u64,
    /// The body itself.
    pub body: Vec<u8>,
    /// What TLS negotiated on its connection.
    pub tls: Option<Negotiated>,
}

impl Response {
    /// First header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    fn new(status: u16, version: &str, headers: Vec<(String, String)>) -> Response {
        Response { status, version: version.to_owned(), headers, size: 0, hash: 0, body: Vec::new(), tls: None }
    }

    /// Appends a piece of the body.
    fn add(&mut self, piece: &[u8]) -> Result<(), RequestError> {
        if self.body.len() + piece.len() > LARGEST_BODY {
            return Err(RequestError::Broken(format!("the response's body is larger than {} MiB", LARGEST_BODY >> 20)));
        }
        self.body.extend_from_slice(piece);
        Ok(())
    }

    fn complete(mut self) -> Response {
        self.size = self.body.len() as u64;
        self.hash = xxh3_64(&self.body);
        self
    }
}

/// Headers as owned text with lower-case names.
fn owned<'a>(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers.map(|(name, value)| (text(name).to_ascii_lowercase(), text(value))).collect()
}

/// Why a request has no response.
#[derive(Debug)]
enum RequestError {
    /// The connection had ended before any of the response came. On a kept connection, that is no fault of the peer.
    Gone(String),
    /// Anything else.
    Broken(String),
}

impl RequestError {
    fn into_message(self) -> String {
        match self {
            RequestError::Gone(why) | RequestError::Broken(why) => why,
        }
    }
}

impl Http {
    /// A client for HTTP/1.1 over plain TCP. Every request takes at most `timeout`.
    pub fn new(addr: SocketAddr, timeout: Duration) -> Http {
        Http::with_protocol(addr, timeout, WireProtocol::plain())
    }

    /// A client for another protocol.
    pub fn with_protocol(addr: SocketAddr, timeout: Duration, wire_protocol: WireProtocol) -> Http {
        let independent = (wire_protocol.protocol() == Protocol::default()).then(|| IndependentClient::new(timeout));
        Http { addr, wire_protocol, timeout, independent, kept: Cell::new(None) }
    }

    /// Sends one request of a workload.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn send(&self, request: &Request) -> Result<Response, String> {
        if let Some(independent) = &self.independent {
            return independent.send(self.addr, request);
        }
        let deadline = Instant::now() + self.timeout;
        if let Some(kept) = self.kept.take() {
            match self.send_over(kept, request, deadline) {
                Err(RequestError::Gone(_)) => {}
                other => return other.map_err(RequestError::into_message),
            }
        }
        let new = self.connect(deadline)?;
        self.send_over(new, request, deadline).map_err(RequestError::into_message)
    }

    /// GET of a path.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn get(&self, path: &str) -> Result<Response, String> {
        let request = Request { method: "GET".into(), path: path.into(), headers: Vec::new(), body: Vec::new() };
        self.send(&request)
    }

    /// The origin's counters. Only for the origin's own address.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn counters(&self) -> Result<OriginCounters, String> {
        let response = self.get("/_weir/counters")?;
        serde_json::from_slice(&response.body).map_err(|e| format!("the origin's counters are not readable: {e}"))
    }

    fn connect(&self, deadline: Instant) -> Result<Box<KeptConnection>, String> {
        let mut connection = Connection::connect(self.addr, self.wire_protocol.tls(), deadline)?;
        let session = match self.wire_protocol.protocol().application() {
            Application::Http1 => Session::Http1(ResponseParser::new(weir_wire::http1::Limits::default())),
            Application::Http2 => Session::Http2(Box::new(http2::start(&mut connection)?)),
            Application::Http3 => return Err("HTTP/3 is not supported here".to_owned()),
        };
        Ok(Box::new(KeptConnection { connection, session, sent: 0 }))
    }

    /// Sends one request over one connection, and keeps the connection if it may carry another.
    fn send_over(
        &self,
        mut kept: Box<KeptConnection>,
        request: &Request,
        deadline: Instant,
    ) -> Result<Response, RequestError> {
        let authority = self.wire_protocol.authority(self.addr);
        let KeptConnection { connection, session, sent } = kept.as_mut();
        *sent += 1;
        let (response, again) = match session {
            Session::Http1(parser) => http1::exchange(connection, parser, request, &authority, deadline)?,
            Session::Http2(client) => {
                let destination =
                    http2::Destination { tag: *sent, scheme: self.wire_protocol.scheme(), authority: &authority };
                http2::exchange(connection, client, request, destination, deadline)?
            }
        };
        let response = Response { tls: connection.negotiated().cloned(), ..response };
        if again {
            self.kept.set(Some(kept));
        }
        Ok(response)
    }
}

/// The request's headers without those named in `but`, and without `Content-Length`, which the encoders write.
fn headers_but<'a>(request: &'a Request, but: &[&str]) -> Vec<(&'a str, &'a str)> {
    let given = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let written = |name: &str| ["content-length"].iter().chain(but).any(|but| name.eq_ignore_ascii_case(but));
    given.filter(|(name, _)| !written(name)).collect()
}

/// The request's `Host` header, if it has one.
fn host_of(request: &Request) -> Option<&str> {
    request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests;
