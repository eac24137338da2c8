//! A client connection that uses HTTP/2. [`crate::http`] and some of the conformance checks use it.

use std::time::Duration;

use weir_model::At;
use weir_model::suite::Request;
use weir_wire::http1::Framing;
use weir_wire::http2::{self, Body, Client, ClientEvent, Options, Prepared};
use weir_wire::tls::Negotiated;

use super::{Endpoint, RequestError, Response, Transport, texts};

/// One connection.
#[derive(Debug)]
pub struct Http2 {
    transport: Transport,
    client: Client,
    authority: String,
    scheme: &'static str,
    /// A response to the last requests has begun.
    began: bool,
}

impl Http2 {
    /// Opens a connection. Without TLS it uses HTTP/2 with prior knowledge.
    ///
    /// # Errors
    /// How the connection failed.
    pub fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Http2, RequestError> {
        let until = endpoint.network.clock().now().plus(timeout);
        let mut transport = Transport::open(endpoint, timeout)?;
        let mut client = Client::new(&Options::client());
        let mut out = Vec::new();
        client.start(&mut out);
        transport.write(&out, until)?;
        let (authority, scheme) = (endpoint.authority(), endpoint.scheme());
        Ok(Http2 { transport, client, authority, scheme, began: false })
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.transport.negotiated()
    }

    /// Whether a response to the last requests has begun, or may have.
    pub fn began(&self) -> bool {
        self.began
    }

    /// The number of concurrent streams that the peer allows, at most the 100 that this client asks for.
    pub fn streams(&self) -> u32 {
        self.client.streams()
    }

    /// Sends GETs for these targets at once, each on its own stream, and waits for all responses.
    ///
    /// # Errors
    /// How one of the requests failed.
    pub fn get_all(&mut self, targets: &[&str], timeout: Duration) -> Result<Vec<Response>, RequestError> {
        self.ask_all(&targets.iter().map(|target| Request::get(target)).collect::<Vec<_>>(), timeout)
    }

    /// Sends these requests at once, each on its own stream, and waits for all responses.
    ///
    /// # Errors
    /// How one of the requests failed.
    pub fn ask_all(&mut self, requests: &[Request], timeout: Duration) -> Result<Vec<Response>, RequestError> {
        let begun = self.transport.clock().now();
        let until = begun.plus(timeout);
        self.began = false;
        let mut out = Vec::new();
        for (tag, request) in (0u32..).zip(requests) {
            let head = self.head(request)?;
            let body = if request.body.is_empty() { Body::None } else { Body::Copied(&request.body) };
            self.client.request(tag, &head, body, &mut out).map_err(stream_failed)?;
        }
        let mut responses: Vec<Option<Response>> = vec![None; requests.len()];
        let mut open = requests.len();
        let mut input = Vec::new();
        while open > 0 {
            self.transport.write(&out, until)?;
            out.clear();
            input.clear();
            if !self.transport.read(&mut input, until)? {
                return Err(if self.began { RequestError::Cut } else { RequestError::Closed });
            }
            let taken = self.take(&input, &mut responses, &mut open, begun, &mut out);
            if taken.is_err() || open == 0 {
                self.transport.write(&out, until)?;
            }
            taken?;
        }
        Ok(responses.into_iter().flatten().collect())
    }

    /// `Host` is written as `:authority`, and the encoder writes `Content-Length`.
    fn head(&self, request: &Request) -> Result<Prepared, RequestError> {
        let head = http2::Request {
            method: &request.method,
            scheme: self.scheme,
            authority: request.header("host").unwrap_or(&self.authority),
            path: &request.path,
            headers: &request.headers_but(&["host", "content-length"]),
        };
        Prepared::request(&head).map_err(stream_failed)
    }

    fn take(
        &mut self,
        mut input: &[u8],
        responses: &mut [Option<Response>],
        open: &mut usize,
        begun: At,
        out: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        loop {
            let event = self.client.next(&mut input, out).map_err(|error| {
                self.began = true;
                RequestError::Malformed(error.to_string())
            })?;
            match event {
                None => return Ok(()),
                Some(ClientEvent::Head { tag, head }) => {
                    self.began = true;
                    if let Some(slot) = responses.get_mut(tag as usize) {
                        let framing = head.length.map_or(Framing::UntilClose, Framing::Length);
                        let response = Response::new("HTTP/2", head.status, head.headers.iter(), framing);
                        *slot = Some(Response { tls: self.transport.negotiated().cloned(), ..response });
                    }
                }
                Some(ClientEvent::Data { tag, bytes }) => {
                    if let Some(Some(response)) = responses.get_mut(tag as usize) {
                        response.add(bytes)?;
                    }
                }
                Some(ClientEvent::Trailers { tag, headers }) => {
                    if let Some(Some(response)) = responses.get_mut(tag as usize) {
                        response.trailers = texts(headers.iter());
                    }
                }
                Some(ClientEvent::End { tag, .. }) => {
                    if let Some(Some(response)) = responses.get_mut(tag as usize) {
                        response.took = self.transport.clock().since(begun);
                    }
                    *open = open.saturating_sub(1);
                }
                Some(ClientEvent::Reset { cause, .. }) => {
                    self.began |= !cause.not_processed();
                    return Err(stream_failed(cause));
                }
                Some(ClientEvent::Settings | ClientEvent::Informational { .. } | ClientEvent::GoAway { .. }) => {}
            }
        }
    }
}

fn stream_failed(why: impl std::fmt::Display) -> RequestError {
    RequestError::Stream(why.to_string())
}
