//! A client connection that uses HTTP/2. The checks `http2` and `tls`, and `crosstalk`, use it.

use std::time::{Duration, Instant};

use weir_wire::http1::{Framing, Version};
use weir_wire::http2::{Body, Client, ClientEvent, ClientOptions, Prepared, Request};
use weir_wire::tls::Negotiated;

use super::{Endpoint, Failure, Response, TIMEOUT, Transport};

/// One connection.
#[derive(Debug)]
pub struct Http2 {
    transport: Transport,
    client: Client,
    authority: String,
    scheme: &'static str,
}

impl Http2 {
    /// Opens a connection. Without TLS it uses HTTP/2 with prior knowledge.
    ///
    /// # Errors
    /// How the connection failed.
    pub fn open(endpoint: &Endpoint) -> Result<Http2, Failure> {
        let until = Instant::now() + TIMEOUT;
        let mut transport = Transport::open(endpoint, until)?;
        let mut client = Client::new(&ClientOptions::default());
        let mut out = Vec::new();
        client.start(&mut out);
        transport.write(&out, until)?;
        Ok(Http2 { transport, client, authority: endpoint.authority(), scheme: endpoint.scheme() })
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.transport.negotiated()
    }

    /// The number of concurrent streams that the peer allows, at most the 100 that this client asks for.
    pub fn streams(&self) -> u32 {
        self.client.streams()
    }

    /// Sends GETs for these targets at once, each on its own stream, and waits for all responses.
    ///
    /// # Errors
    /// How one of the requests failed.
    pub fn get_all(&mut self, targets: &[&str], timeout: Duration) -> Result<Vec<Response>, Failure> {
        let begun = Instant::now();
        let mut out = Vec::new();
        for (tag, target) in (0u32..).zip(targets) {
            let request =
                Request { method: "GET", scheme: self.scheme, authority: &self.authority, path: target, headers: &[] };
            let prepared = Prepared::request(&request).map_err(|e| Failure::Stream(e.to_string()))?;
            self.client
                .request(tag, &prepared, Body::None, &mut out)
                .map_err(|refused| Failure::Stream(refused.to_string()))?;
        }
        self.transport.write(&out, begun + timeout)?;
        let mut response: Vec<Option<Response>> = vec![None; targets.len()];
        let mut open = targets.len();
        let mut input = Vec::new();
        while open > 0 {
            input.clear();
            if !self.transport.read(&mut input, begun + timeout)? {
                return Err(if response.iter().any(Option::is_some) { Failure::Cut } else { Failure::Closed });
            }
            let mut out = Vec::new();
            let taken = self.take(&input, &mut response, &mut open, begun, &mut out);
            self.transport.write(&out, begun + timeout)?;
            taken?;
        }
        Ok(response.into_iter().flatten().collect())
    }

    fn take(
        &mut self,
        mut input: &[u8],
        response: &mut [Option<Response>],
        open: &mut usize,
        begun: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        while let Some(event) = self.client.next(&mut input, out).map_err(|e| Failure::Malformed(e.to_string()))? {
            match event {
                ClientEvent::Head { tag, head } => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let headers = head.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
                    if let Some(slot) = response.get_mut(tag as usize) {
                        *slot = Some(Response {
                            interim: Vec::new(),
                            version: Version::Http11,
                            status: head.status,
                            headers,
                            framing: head.length.map_or(Framing::UntilClose, Framing::Length),
                            body: Vec::new(),
                            keep_alive: true,
                            took: Duration::ZERO,
                        });
                    }
                }
                ClientEvent::Data { tag, bytes } => {
                    if let Some(Some(response)) = response.get_mut(tag as usize) {
                        response.body.extend_from_slice(bytes);
                    }
                }
                ClientEvent::End { tag } => {
                    if let Some(Some(response)) = response.get_mut(tag as usize) {
                        response.took = begun.elapsed();
                    }
                    *open = open.saturating_sub(1);
                }
                ClientEvent::Reset { cause, .. } => return Err(Failure::Stream(cause.to_string())),
                ClientEvent::Settings | ClientEvent::Informational { .. } | ClientEvent::GoAway { .. } => {}
            }
        }
        Ok(())
    }
}
