//! weir's own requests for readiness and verification. They are never part of a load. The trial, the
//! verification and the conformance tests call it.
//!
//! They use the protocol of the load, by weir's own protocol code ([`crate::client`]), whose tests compare it with other
//! implementations. There is one request at a time over a kept connection, with no threads and no async runtime.
//!
//! This module does not know what the responses are compared with.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use weir_model::protocol::{Application, Protocol};
use weir_model::suite::Request;
use weir_wire::http1::encode;

use crate::client::{Endpoint, Http1, Http2, Http3, RequestError, Response, Transport, WireProtocol};

/// A client of one address.
#[derive(Debug)]
pub struct Http {
    endpoint: Endpoint,
    protocol: Protocol,
    /// For each request.
    timeout: Duration,
    kept: RefCell<Option<Connection>>,
}

#[derive(Debug)]
enum Connection {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
    Http3(Box<Http3>),
}

impl Http {
    /// A client for HTTP/1.1 over plain TCP. Every request takes at most `timeout`.
    pub fn new(addr: SocketAddr, timeout: Duration) -> Http {
        Http::with_protocol(addr, timeout, &WireProtocol::default())
    }

    /// A client for another protocol.
    pub fn with_protocol(addr: SocketAddr, timeout: Duration, wire_protocol: &WireProtocol) -> Http {
        let (endpoint, protocol) = (wire_protocol.at(addr), wire_protocol.protocol);
        Http { endpoint, protocol, timeout, kept: RefCell::default() }
    }

    /// Sends one request of a workload.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn send(&self, request: &Request) -> Result<Response, String> {
        let clock = self.endpoint.network.clock();
        let until = clock.now().plus(self.timeout);
        if let Some(mut kept) = self.kept.take() {
            match self.ask(&mut kept, request, clock.left(until)) {
                // The peer may close a connection between two requests.
                Err(RequestError::Closed | RequestError::Reset | RequestError::Stream(_)) if !kept.began() => {}
                asked => return self.keep(kept, asked),
            }
        }
        let mut connection = self.connect(clock.left(until)).map_err(|e| e.to_string())?;
        let asked = self.ask(&mut connection, request, clock.left(until));
        self.keep(connection, asked)
    }

    /// GET of a path.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn get(&self, path: &str) -> Result<Response, String> {
        self.send(&Request::get(path))
    }

    fn connect(&self, left: Duration) -> Result<Connection, RequestError> {
        match self.protocol.application() {
            Application::Http1 => Ok(Connection::Http1(Box::new(Http1::new(Transport::open(&self.endpoint, left)?)))),
            Application::Http2 => {
                let conn = Http2::open(&self.endpoint, left)?;
                match conn.negotiated() {
                    Some(agreed) if agreed.alpn.as_deref() != Some("h2") => {
                        Err(RequestError::Tls("the peer did not agree on h2 by ALPN".to_owned()))
                    }
                    _ => Ok(Connection::Http2(Box::new(conn))),
                }
            }
            Application::Http3 => Ok(Connection::Http3(Box::new(Http3::open(&self.endpoint, left)?))),
            other => Err(RequestError::Unreachable(format!("{} has no paths to ask for", other.id()))),
        }
    }

    fn ask(&self, connection: &mut Connection, request: &Request, left: Duration) -> Result<Response, RequestError> {
        match connection {
            Connection::Http1(conn) => {
                let bytes = written(request, &self.endpoint.authority())?;
                conn.ask(&bytes, request.method == "HEAD", left)
            }
            Connection::Http2(conn) => {
                let mut responses = conn.ask_all(std::slice::from_ref(request), left)?;
                responses.pop().ok_or(RequestError::Closed)
            }
            Connection::Http3(conn) => {
                let mut responses = conn.ask_all(std::slice::from_ref(request), left)?;
                responses.pop().ok_or(RequestError::Closed)
            }
        }
    }

    /// Keeps the connection if it may carry another request. One of QUIC would hear nothing of its peer's end meanwhile, which then waits
    /// for it.
    fn keep(&self, kept: Connection, asked: Result<Response, RequestError>) -> Result<Response, String> {
        let response = asked.map_err(|e| e.to_string())?;
        if response.keep_alive && !self.protocol.is_quic() {
            self.kept.replace(Some(kept));
        }
        Ok(response)
    }
}

impl Connection {
    fn began(&self) -> bool {
        match self {
            Connection::Http1(conn) => conn.began(),
            Connection::Http2(conn) => conn.began(),
            Connection::Http3(conn) => conn.began(),
        }
    }
}

fn written(request: &Request, authority: &str) -> Result<Vec<u8>, RequestError> {
    let mut headers = request.headers_but(&["content-length"]);
    if request.header("host").is_none() {
        headers.insert(0, ("Host", authority));
    }
    let mut bytes = Vec::new();
    encode::request(&mut bytes, &request.method, &request.path, &headers, &request.body)
        .map_err(|e| RequestError::Unreachable(format!("the request cannot be sent: {e}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
