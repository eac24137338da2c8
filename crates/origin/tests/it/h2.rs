//! A client of HTTP/2 on a connection of the simulated world: what comes is fed to the load's own client, with its times.

use std::collections::BTreeMap;

use weir_wire::http2::{Body, Client, ClientEvent, Code, Options, Prepared, Request, ResetCause};

use crate::sim;

/// A connection.
pub struct Http2 {
    pub connection: sim::Client,
    client: Client,
    pub responses: BTreeMap<u32, Response>,
    pub went_away: Option<Code>,
    out: Vec<u8>,
}

fn asked(responses: &mut BTreeMap<u32, Response>, tag: u32) -> &mut Response {
    responses.get_mut(&tag).expect("asked for")
}

/// A response, as far as it has come.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    pub length: Option<u64>,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// When it was complete.
    pub ended: Option<u64>,
    pub reset: Option<ResetCause>,
}

impl Response {
    pub fn is_over(&self) -> bool {
        self.ended.is_some() || self.reset.is_some()
    }
}

impl Http2 {
    pub fn new(connection: sim::Client) -> Http2 {
        Http2::with(connection, &Options { max_streams: 1000, ..Options::client() })
    }

    /// The client of a connection, when the origin has said what it allows.
    pub fn with(connection: sim::Client, options: &Options) -> Http2 {
        let mut client = Client::new(options);
        let mut out = Vec::new();
        client.start(&mut out);
        let mut two = Http2 { connection, client, responses: BTreeMap::new(), went_away: None, out };
        two.flush();
        assert!(two.read(), "the origin says what it allows");
        two
    }

    fn flush(&mut self) {
        let out = std::mem::take(&mut self.out);
        if !out.is_empty() {
            self.connection.send(out);
        }
    }

    pub fn ask(&mut self, tag: u32, method: &str, path: &str, headers: &[(&str, &str)], body: &'static [u8]) {
        let request = Request { method, scheme: "http", authority: "origin", path, headers };
        let prepared = Prepared::request(&request).expect("a request");
        let body = if body.is_empty() { Body::None } else { Body::Static(body) };
        self.client.request(tag, &prepared, body, &mut self.out).expect("room for a stream");
        self.responses.insert(tag, Response::default());
        self.flush();
    }

    pub fn cancel(&mut self, tag: u32) {
        self.client.cancel(tag, &mut self.out);
        self.flush();
    }

    /// Waits for more; false: the connection has ended.
    pub fn read(&mut self) -> bool {
        let Some((at, bytes)) = self.connection.receive() else { return false };
        let mut input = bytes.as_slice();
        while let Some(event) = self.client.next(&mut input, &mut self.out).expect("the origin speaks HTTP/2") {
            match event {
                ClientEvent::Head { tag, head } => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let headers = head.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
                    *asked(&mut self.responses, tag) =
                        Response { status: head.status, length: head.length, headers, ..Response::default() };
                }
                ClientEvent::Data { tag, bytes } => asked(&mut self.responses, tag).body.extend_from_slice(bytes),
                ClientEvent::End { tag, .. } => asked(&mut self.responses, tag).ended = Some(at),
                ClientEvent::Reset { tag, cause } => asked(&mut self.responses, tag).reset = Some(cause),
                ClientEvent::GoAway { code } => self.went_away = Some(code),
                ClientEvent::Settings | ClientEvent::Informational { .. } | ClientEvent::Trailers { .. } => {}
            }
        }
        self.flush();
        true
    }

    pub fn response(&mut self, tag: u32) -> Response {
        while !self.responses[&tag].is_over() {
            assert!(self.read(), "the connection ended before the response: {:?}", self.responses[&tag]);
        }
        self.responses.remove(&tag).expect("asked for")
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.ask(0, "GET", path, &[], b"");
        self.response(0)
    }

    pub fn read_to_end(&mut self) {
        while self.read() {}
    }
}
