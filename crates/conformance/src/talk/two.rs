//! A connection that speaks HTTP/2.

use std::time::{Duration, Instant};

use weir_wire::http1::{Framing, Version};
use weir_wire::http2::{Body, Client, ClientEvent, ClientOptions, Prepared, Request};
use weir_wire::tls::Negotiated;

use super::{Door, Heard, PATIENCE, Pipe, Trouble};

/// One connection.
#[derive(Debug)]
pub struct Two {
    pipe: Pipe,
    client: Client,
    authority: String,
    scheme: &'static str,
}

impl Two {
    /// A new connection. Without TLS, HTTP/2 is spoken with prior knowledge.
    ///
    /// # Errors
    /// What went wrong.
    pub fn open(door: &Door) -> Result<Two, Trouble> {
        let until = Instant::now() + PATIENCE;
        let mut pipe = Pipe::open(door, until)?;
        let mut client = Client::new(&ClientOptions::default());
        let mut out = Vec::new();
        client.start(&mut out);
        pipe.write(&out, until)?;
        Ok(Two { pipe, client, authority: door.authority(), scheme: door.scheme() })
    }

    /// What TLS came to.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.pipe.negotiated()
    }

    /// How many streams the peer takes at a time, as far as this client wants them (100).
    pub fn streams(&self) -> u32 {
        self.client.streams()
    }

    /// Sends GETs for these targets at once, each on a stream of its own, and waits for all.
    ///
    /// # Errors
    /// What came instead of one of the answers.
    pub fn get_all(&mut self, targets: &[&str], patience: Duration) -> Result<Vec<Heard>, Trouble> {
        let begun = Instant::now();
        let mut out = Vec::new();
        for (tag, target) in (0u32..).zip(targets) {
            let request =
                Request { method: "GET", scheme: self.scheme, authority: &self.authority, path: target, headers: &[] };
            let prepared = Prepared::request(&request).map_err(|e| Trouble::Stream(e.to_string()))?;
            self.client
                .request(tag, &prepared, Body::None, &mut out)
                .map_err(|refused| Trouble::Stream(refused.to_string()))?;
        }
        self.pipe.write(&out, begun + patience)?;
        let mut heard: Vec<Option<Heard>> = vec![None; targets.len()];
        let mut open = targets.len();
        let mut input = Vec::new();
        while open > 0 {
            input.clear();
            if !self.pipe.read(&mut input, begun + patience)? {
                return Err(if heard.iter().any(Option::is_some) { Trouble::Cut } else { Trouble::Closed });
            }
            let mut out = Vec::new();
            let taken = self.take(&input, &mut heard, &mut open, begun, &mut out);
            self.pipe.write(&out, begun + patience)?;
            taken?;
        }
        Ok(heard.into_iter().flatten().collect())
    }

    fn take(
        &mut self,
        mut input: &[u8],
        heard: &mut [Option<Heard>],
        open: &mut usize,
        begun: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), Trouble> {
        while let Some(event) = self.client.next(&mut input, out).map_err(|e| Trouble::Malformed(e.to_string()))? {
            match event {
                ClientEvent::Head { tag, head } => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let headers = head.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
                    if let Some(slot) = heard.get_mut(tag as usize) {
                        *slot = Some(Heard {
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
                    if let Some(Some(heard)) = heard.get_mut(tag as usize) {
                        heard.body.extend_from_slice(bytes);
                    }
                }
                ClientEvent::End { tag } => {
                    if let Some(Some(heard)) = heard.get_mut(tag as usize) {
                        heard.took = begun.elapsed();
                    }
                    *open = open.saturating_sub(1);
                }
                ClientEvent::Reset { cause, .. } => return Err(Trouble::Stream(cause.to_string())),
                ClientEvent::Settings | ClientEvent::Informational { .. } | ClientEvent::GoAway { .. } => {}
            }
        }
        Ok(())
    }
}
