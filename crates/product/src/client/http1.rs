//! A client connection that uses HTTP/1.1. [`super::Endpoint::open`] and [`crate::http`] create it.

use std::time::Duration;

use weir_model::At;
use weir_wire::http1::{Framing, Limits, ParseError, ResponseEvent, ResponseParser, Version, headers};
use weir_wire::tls::Negotiated;

use super::{RequestError, Response, Transport};

/// Limits of responses. Products may send large heads back; 256 KiB is more than anybody needs.
const LIMITS: Limits = Limits { head_bytes: 256 * 1024, headers: 512, chunk_line_bytes: 1024, trailer_bytes: 8 * 1024 };

/// The first response that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstResponse {
    /// An interim response.
    Interim(u16),
    /// The final response.
    Final(Box<Response>),
}

/// One connection.
#[derive(Debug)]
pub struct Http1 {
    transport: Transport,
    parser: ResponseParser,
    input: Vec<u8>,
    /// The number of bytes of `input` that are parsed.
    at: usize,
    interim: Vec<u16>,
    response: Option<Response>,
    /// When sending the last request began.
    asked: At,
    /// Something came since then.
    began: bool,
}

impl Http1 {
    /// A client on this connection.
    pub fn new(transport: Transport) -> Http1 {
        Http1 {
            asked: transport.clock().now(),
            transport,
            parser: ResponseParser::new(LIMITS),
            input: Vec::new(),
            at: 0,
            interim: Vec::new(),
            response: None,
            began: false,
        }
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.transport.negotiated()
    }

    /// Whether a response to the last request has begun.
    pub fn began(&self) -> bool {
        self.began
    }

    /// Sends the beginning of a request, or all of it. With `head` its response has no body.
    ///
    /// # Errors
    /// When the peer does not accept it within `timeout`.
    pub fn send(&mut self, request: &[u8], head: bool, timeout: Duration) -> Result<(), RequestError> {
        self.parser.request_sent(head);
        (self.asked, self.began) = (self.transport.clock().now(), false);
        self.more(request, timeout)
    }

    /// Sends more of the request that was sent last.
    ///
    /// # Errors
    /// When the peer does not accept it within `timeout`.
    pub fn more(&mut self, bytes: &[u8], timeout: Duration) -> Result<(), RequestError> {
        let until = self.transport.clock().now().plus(timeout);
        self.transport.write(bytes, until)
    }

    /// Sends several requests in one write.
    ///
    /// # Errors
    /// When the peer does not accept them within `timeout`.
    pub fn send_all(&mut self, requests: &[Vec<u8>], timeout: Duration) -> Result<(), RequestError> {
        for _ in 1..requests.len() {
            self.parser.request_sent(false);
        }
        self.send(&requests.concat(), false, timeout)
    }

    /// Sends a request and waits for its response. A response that arrives before the whole request was sent counts,
    /// such as a 413.
    ///
    /// # Errors
    /// How the request failed.
    pub fn ask(&mut self, request: &[u8], head: bool, timeout: Duration) -> Result<Response, RequestError> {
        match self.send(request, head, timeout) {
            Ok(()) => self.read_response(timeout),
            Err(RequestError::Stopped) => Err(RequestError::Stopped),
            Err(failure) => self.read_response(Duration::from_millis(200)).map_err(|_| failure),
        }
    }

    /// Waits for a final response, which contains the interim ones before it.
    ///
    /// # Errors
    /// How the request failed.
    pub fn read_response(&mut self, timeout: Duration) -> Result<Response, RequestError> {
        let until = self.transport.clock().now().plus(timeout);
        loop {
            match self.listen(until)? {
                FirstResponse::Final(response) => return Ok(*response),
                FirstResponse::Interim(_) => {}
            }
        }
    }

    /// Waits for the first response, interim or final.
    ///
    /// # Errors
    /// How the request failed.
    pub fn first(&mut self, timeout: Duration) -> Result<FirstResponse, RequestError> {
        self.listen(self.transport.clock().now().plus(timeout))
    }

    fn listen(&mut self, until: At) -> Result<FirstResponse, RequestError> {
        loop {
            let mut left = &self.input[self.at..];
            let mut interim = None;
            let mut end = None;
            let mut wants_more = false;
            match self.parser.next(&mut left).map_err(malformed)? {
                Some(ResponseEvent::Informational(status)) => interim = Some(status),
                Some(ResponseEvent::Head(head)) => {
                    let version = match head.version {
                        Version::Http10 => "HTTP/1.0",
                        Version::Http11 => "HTTP/1.1",
                    };
                    let response = Response::new(version, head.status, headers(head.raw), head.framing);
                    self.response = Some(Response { interim: std::mem::take(&mut self.interim), ..response });
                }
                Some(ResponseEvent::Body(piece)) => self.response.iter_mut().try_for_each(|all| all.add(piece))?,
                Some(ResponseEvent::End { keep_alive }) => end = Some(keep_alive),
                None => wants_more = true,
            }
            self.at = self.input.len() - left.len();
            if let Some(status) = interim {
                self.interim.push(status);
                return Ok(FirstResponse::Interim(status));
            }
            if let Some(keep_alive) = end {
                return self.done(keep_alive);
            }
            if wants_more {
                self.input.clear();
                self.at = 0;
                match self.transport.read(&mut self.input, until) {
                    Ok(true) => self.began = true,
                    Ok(false) => return self.ended(),
                    // A server that refuses a request before it has read all of it resets the connection when it
                    // closes.
                    Err(RequestError::Reset) if self.lasts_until_close() => return self.done(false),
                    Err(failure) => return Err(failure),
                }
            }
        }
    }

    fn lasts_until_close(&self) -> bool {
        self.response.as_ref().is_some_and(|response| response.framing == Framing::UntilClose)
    }

    fn ended(&mut self) -> Result<FirstResponse, RequestError> {
        match self.parser.on_eof() {
            Ok(true) => self.done(false),
            Ok(false) => Err(RequestError::Closed),
            Err(error) => Err(malformed(error)),
        }
    }

    fn done(&mut self, keep_alive: bool) -> Result<FirstResponse, RequestError> {
        let response = self.response.take().ok_or(RequestError::Closed)?;
        let (took, tls) = (self.transport.clock().since(self.asked), self.negotiated().cloned());
        Ok(FirstResponse::Final(Box::new(Response { keep_alive, took, tls, ..response })))
    }
}

fn malformed(error: ParseError) -> RequestError {
    match error {
        ParseError::ClosedBeforeResponse => RequestError::Closed,
        ParseError::TruncatedHead | ParseError::TruncatedBody => RequestError::Cut,
        other => RequestError::Malformed(other.to_string()),
    }
}
