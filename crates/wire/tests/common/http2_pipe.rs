//! A client and a server with a pipe between them, and what both see, as values that own their bytes.
#![allow(dead_code, reason = "shared by several tests")]

use std::fmt;

use weir_wire::http2::{
    Body, Client, ClientEvent, Code, ConnectionError, Headers, Options, Prepared, ResetCause, Server, ServerEvent,
    Stream,
};

/// What one of them saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Settings,
    Request(String),
    RequestData(Vec<u8>),
    RequestEnd,
    RequestReset(ResetCause),
    Malformed(weir_wire::http2::StreamError),
    SendStatus,
    Interim(u32, u16),
    Head(u32, String),
    Data(u32, Vec<u8>),
    End(u32),
    Reset(u32, ResetCause),
    GoAway(Code),
    Error(ConnectionError),
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::Settings => f.write_str("settings"),
            Seen::Request(text) => write!(f, "request {text}"),
            Seen::RequestData(bytes) => write!(f, "request \"{}\"", bytes.escape_ascii()),
            Seen::RequestEnd => f.write_str("request ends"),
            Seen::RequestReset(cause) => write!(f, "request reset: {cause:?}"),
            Seen::Malformed(fault) => write!(f, "malformed: {fault:?}"),
            Seen::SendStatus => f.write_str("sent"),
            Seen::Interim(tag, status) => write!(f, "{tag}: interim {status}"),
            Seen::Head(tag, text) => write!(f, "{tag}: {text}"),
            Seen::Data(tag, bytes) => write!(f, "{tag}: \"{}\"", bytes.escape_ascii()),
            Seen::End(tag) => write!(f, "{tag}: end"),
            Seen::Reset(tag, cause) => write!(f, "{tag}: reset: {cause:?}"),
            Seen::GoAway(code) => write!(f, "goaway {code}"),
            Seen::Error(error) => write!(f, "error {:?}", error.violation),
        }
    }
}

fn with_headers(mut text: String, headers: Headers<'_>) -> String {
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| format!("{}: {}", name.escape_ascii(), value.escape_ascii())).collect();
    if !headers.is_empty() {
        text.push(' ');
        text.push_str(&headers.join(", "));
    }
    text
}

impl Seen {
    pub fn by_client(event: ClientEvent<'_>) -> Seen {
        match event {
            ClientEvent::Settings => Seen::Settings,
            ClientEvent::Informational { tag, status } => Seen::Interim(tag, status),
            ClientEvent::Head { tag, head } => {
                let mut text = head.status.to_string();
                if let Some(length) = head.length {
                    text.push_str(&format!(" length {length}"));
                }
                Seen::Head(tag, with_headers(text, head.headers))
            }
            ClientEvent::Data { tag, bytes } => Seen::Data(tag, bytes.to_vec()),
            ClientEvent::Trailers { tag, headers } => Seen::Head(tag, with_headers("trailers".to_owned(), headers)),
            ClientEvent::End { tag, .. } => Seen::End(tag),
            ClientEvent::Reset { tag, cause } => Seen::Reset(tag, cause),
            ClientEvent::GoAway { code } => Seen::GoAway(code),
        }
    }

    pub fn by_server(event: ServerEvent<'_>) -> Seen {
        match event {
            ServerEvent::Settings => Seen::Settings,
            ServerEvent::Request { head, .. } => {
                let parts = [head.method, head.scheme, head.authority, head.path];
                let text = parts.map(|part| part.escape_ascii().to_string()).join(" ");
                Seen::Request(with_headers(text, head.headers))
            }
            ServerEvent::Data { bytes, .. } => Seen::RequestData(bytes.to_vec()),
            ServerEvent::End { .. } => Seen::RequestEnd,
            ServerEvent::Sent { .. } => Seen::SendStatus,
            ServerEvent::Reset { cause, .. } => Seen::RequestReset(cause),
            ServerEvent::Malformed { fault } => Seen::Malformed(fault),
            ServerEvent::GoAway { code } => Seen::GoAway(code),
        }
    }
}

/// Puts pieces of bodies together that came in a row.
pub fn joined(seen: Vec<Seen>) -> Vec<Seen> {
    let mut out: Vec<Seen> = Vec::new();
    for event in seen {
        match (out.last_mut(), event) {
            (Some(Seen::Data(a, before)), Seen::Data(b, more)) if *a == b => before.extend_from_slice(&more),
            (Some(Seen::RequestData(before)), Seen::RequestData(more)) => before.extend_from_slice(&more),
            (_, event) => out.push(event),
        }
    }
    out
}

/// All data that the server saw, and all that the client saw.
pub fn bodies(seen: &[Seen]) -> (Vec<u8>, Vec<u8>) {
    let mut bodies = (Vec::new(), Vec::new());
    for event in seen {
        match event {
            Seen::RequestData(bytes) => bodies.0.extend_from_slice(bytes),
            Seen::Data(_, bytes) => bodies.1.extend_from_slice(bytes),
            _ => {}
        }
    }
    bodies
}

/// A connection between the two.
pub struct Pipe {
    pub client: Client,
    pub server: Server,
    pub to_server: Vec<u8>,
    pub to_client: Vec<u8>,
    seen: Vec<Seen>,
    /// How many bytes each side gets at a time, in turn; all at once when empty.
    pub pieces: Vec<usize>,
    turn: usize,
}

impl Pipe {
    pub fn new(client: &Options, server: &Options) -> Pipe {
        Pipe {
            client: Client::new(client),
            server: Server::new(server),
            to_server: Vec::new(),
            to_client: Vec::new(),
            seen: Vec::new(),
            pieces: Vec::new(),
            turn: 0,
        }
    }

    /// Two that have sent and received their first bytes.
    pub fn started(client: &Options, server: &Options) -> Pipe {
        let mut pipe = Pipe::new(client, server);
        pipe.start();
        pipe
    }

    /// A request, carried to the server.
    pub fn ask(&mut self, tag: u32, request: &Prepared, body: Body<'_>) -> Stream {
        self.client.request(tag, request, body, &mut self.to_server).unwrap();
        self.run().pop().unwrap()
    }

    /// What was seen since, each event as a text.
    pub fn texts(&mut self) -> Vec<String> {
        self.take().iter().map(Seen::to_string).collect()
    }

    /// Both send and receive their first bytes.
    pub fn start(&mut self) {
        self.client.start(&mut self.to_server);
        self.server.start(&mut self.to_client);
        assert!(self.run().is_empty());
        assert_eq!(self.take(), [Seen::Settings, Seen::Settings]);
    }

    fn piece(&mut self, available: usize) -> usize {
        if self.pieces.is_empty() {
            return available;
        }
        self.turn += 1;
        self.pieces[self.turn % self.pieces.len()].clamp(1, available)
    }

    /// Carries bytes until there are none; gives the streams of new requests.
    pub fn run(&mut self) -> Vec<Stream> {
        let mut streams = Vec::new();
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            if !self.to_server.is_empty() {
                let size = self.piece(self.to_server.len());
                let bytes: Vec<u8> = self.to_server.drain(..size).collect();
                streams.extend(self.feed_server(&bytes));
            }
            if !self.to_client.is_empty() {
                let size = self.piece(self.to_client.len());
                let bytes: Vec<u8> = self.to_client.drain(..size).collect();
                self.feed_client(&bytes);
            }
        }
        streams
    }

    pub fn feed_server(&mut self, bytes: &[u8]) -> Vec<Stream> {
        let mut streams = Vec::new();
        let mut input = bytes;
        loop {
            match self.server.next(&mut input, &mut self.to_client) {
                Ok(Some(event)) => {
                    if let ServerEvent::Request { stream, .. } = event {
                        streams.push(stream);
                    }
                    self.seen.push(Seen::by_server(event));
                }
                Ok(None) => break,
                Err(error) => {
                    self.seen.push(Seen::Error(error));
                    return streams;
                }
            }
        }
        assert!(input.is_empty());
        streams
    }

    pub fn feed_client(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        loop {
            match self.client.next(&mut input, &mut self.to_server) {
                Ok(Some(event)) => self.seen.push(Seen::by_client(event)),
                Ok(None) => break,
                Err(error) => {
                    self.seen.push(Seen::Error(error));
                    return;
                }
            }
        }
        assert!(input.is_empty());
    }

    /// What was seen since.
    pub fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }
}
