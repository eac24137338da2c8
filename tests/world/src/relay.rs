//! A proxy for streams, with one connection to the origin for each of a client's: it passes bytes on as they come, or does to them what
//! proxies are known to do. Of what it has to understand it knows that each message of weir's origin is a chunk of HTTP/1.1, or a frame of
//! HTTP/2 with one request at a time, or of WebSocket.

use std::collections::HashMap;
use std::io;

use weir_net::{Address, Conn, Driver, Event, Handler, Io, Next, Task};
use weir_wire::http1::encode::{LAST_CHUNK, chunk};
use weir_wire::http1::{Limits, ResponseEvent, ResponseParser};

/// What it does to responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayFault {
    /// Nothing.
    None,
    /// Holds bytes of a stream until so many are there, or it ends.
    Buffer(usize),
    /// Holds what comes within so many nanoseconds of what it sent last of a response.
    Gather(u64),
    /// Does not send the message with this number.
    Drop(usize),
    /// Sends it twice.
    Double(usize),
    /// Sends it after the next one.
    Delay(usize),
    /// Changes a byte in it.
    Alter(usize),
    /// Ends a response like a complete one when the origin's connection ends.
    EndCleanly,
    /// Goes on reading from the origin when the client has ended its connection.
    Keep,
}

/// See the module. Its listener is given to its driver.
#[derive(Debug)]
pub struct Relay {
    origin: Address,
    fault: RelayFault,
    /// The other end of each connection.
    others: HashMap<Conn, Conn>,
    /// The responses of origins, by their connection.
    responses: HashMap<Conn, Response>,
}

/// What comes from an origin.
#[derive(Debug)]
struct Response {
    parser: ResponseParser,
    /// Something has come.
    begun: bool,
    /// What the origin sends in place of HTTP/1.1, and the beginning of a frame of it.
    frames: Option<Frames>,
    rest: Vec<u8>,
    /// Messages so far.
    messages: usize,
    delayed: Option<Vec<u8>>,
    held: Vec<u8>,
    /// When it is sent.
    flush_at: u64,
    ended: bool,
}

impl Relay {
    /// A relay to an origin.
    pub fn new(origin: Address, fault: RelayFault) -> Relay {
        Relay { origin, fault, others: HashMap::new(), responses: HashMap::new() }
    }

    fn receive<I: Io>(&mut self, io: &mut I, from: Conn, bytes: &[u8]) {
        let (Some(to), Some(response)) = (self.others.get(&from), self.responses.get_mut(&from)) else { return };
        match self.fault {
            RelayFault::None | RelayFault::Keep => io.send(*to, bytes),
            RelayFault::Buffer(least) => {
                response.held.extend_from_slice(bytes);
                let is_stream =
                    !response.held.starts_with(b"HTTP/") || response.held.windows(7).any(|word| word == b"chunked");
                if response.held.len() >= least || bytes.ends_with(LAST_CHUNK) || !is_stream {
                    io.send(*to, &std::mem::take(&mut response.held));
                }
            }
            RelayFault::Gather(within) => {
                response.held.extend_from_slice(bytes);
                let ends = bytes.ends_with(LAST_CHUNK);
                if ends || io.now() >= response.flush_at {
                    response.flush(io, *to, within);
                }
                if ends {
                    response.flush_at = 0;
                }
            }
            fault => {
                let out = response.rewrite(fault, bytes);
                io.send(*to, &out);
            }
        }
    }

    /// A connection has ended, and so does the one to the other side.
    fn end<I: Io>(&mut self, io: &mut I, conn: Conn, failed: bool) {
        let Some(other) = self.others.remove(&conn) else { return };
        self.others.remove(&other);
        if self.fault == RelayFault::Keep && self.responses.contains_key(&other) {
            return;
        }
        let response = self.responses.remove(&conn);
        self.responses.remove(&other);
        if let Some(response) = response {
            io.send(other, &response.held);
            if self.fault == RelayFault::EndCleanly && !response.ended {
                io.send(other, LAST_CHUNK);
                return io.close(other);
            }
        }
        if failed { io.abort(other) } else { io.close(other) }
    }
}

impl Response {
    fn new() -> Response {
        let mut parser = ResponseParser::new(Limits::default());
        parser.request_sent(false);
        Response {
            parser,
            begun: false,
            frames: None,
            rest: Vec::new(),
            messages: 0,
            delayed: None,
            held: Vec::new(),
            flush_at: 0,
            ended: false,
        }
    }

    fn flush<I: Io>(&mut self, io: &mut I, to: Conn, within: u64) {
        if !self.held.is_empty() {
            io.send(to, &std::mem::take(&mut self.held));
            self.flush_at = io.now() + within;
        }
    }

    /// The same frames, changed.
    fn rewrite_frames(&mut self, frames: Frames, fault: RelayFault, bytes: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some((length, is_message)) = frames.next(&self.rest) {
            let mut frame: Vec<u8> = self.rest.drain(..length).collect();
            if !is_message {
                // What is behind the messages, or before them.
                self.messages = 0;
                out.extend_from_slice(&frame);
                continue;
            }
            let number = self.messages;
            self.messages += 1;
            match fault {
                RelayFault::Drop(n) if n == number => continue,
                RelayFault::Double(n) if n == number => out.extend_from_slice(&frame),
                RelayFault::Delay(n) if n == number => {
                    self.delayed = Some(frame);
                    continue;
                }
                RelayFault::Alter(n) if n == number => frame[length - 20] ^= 1,
                _ => {}
            }
            out.extend_from_slice(&frame);
            out.extend(self.delayed.take().into_iter().flatten());
        }
        out
    }

    /// The same response, changed.
    fn rewrite(&mut self, fault: RelayFault, bytes: &[u8]) -> Vec<u8> {
        if !std::mem::replace(&mut self.begun, true) && !bytes.starts_with(b"HTTP/") {
            self.frames = Some(Frames::Http2);
        } else if bytes.starts_with(b"HTTP/1.1 101") {
            self.frames = Some(Frames::WebSocket);
        }
        if let Some(frames) = self.frames {
            return self.rewrite_frames(frames, fault, bytes);
        }
        let (mut input, mut out) = (bytes, Vec::new());
        while let Ok(Some(event)) = self.parser.next(&mut input) {
            match event {
                ResponseEvent::Head(head) => out.extend_from_slice(head.raw),
                ResponseEvent::Informational(_) => {}
                ResponseEvent::Body(piece) => {
                    let number = self.messages;
                    self.messages += 1;
                    let mut message = piece.to_vec();
                    let middle = message.len() / 2;
                    match fault {
                        RelayFault::Drop(n) if n == number => continue,
                        RelayFault::Double(n) if n == number => chunk(&mut out, &message),
                        RelayFault::Delay(n) if n == number => {
                            self.delayed = Some(message);
                            continue;
                        }
                        // Behind the stamp.
                        RelayFault::Alter(n) if n == number => message[middle] ^= 1,
                        _ => {}
                    }
                    chunk(&mut out, &message);
                    if let Some(delayed) = self.delayed.take() {
                        chunk(&mut out, &delayed);
                    }
                }
                ResponseEvent::End { .. } => {
                    out.extend_from_slice(LAST_CHUNK);
                    self.parser.request_sent(false);
                    (self.messages, self.ended) = (0, true);
                }
            }
        }
        out
    }
}

/// What has messages in frames.
#[derive(Debug, Clone, Copy)]
enum Frames {
    Http2,
    WebSocket,
}

impl Frames {
    /// How long the next frame is, and whether it has a message; `None`: it is not whole.
    fn next(self, bytes: &[u8]) -> Option<(usize, bool)> {
        if let Frames::WebSocket = self {
            // Short ones of a server, and the head before them.
            if bytes.starts_with(b"HTTP/") {
                let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
                return Some((end + 4, false));
            }
            let [first, short, high, low] = *bytes.first_chunk()?;
            let whole =
                if short < 126 { 2 + usize::from(short) } else { 4 + (usize::from(high) << 8 | usize::from(low)) };
            return (bytes.len() >= whole).then_some((whole, first & 0x0f < 8));
        }
        let [a, b, c, kind, ..] = *bytes.first_chunk::<9>()?;
        let payload = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        (bytes.len() >= 9 + payload).then_some((9 + payload, kind == 0 && payload > 0))
    }
}

impl Handler for Relay {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Accepted(_) => match io.connect(&self.origin, None) {
                Ok(origin) => {
                    self.others.extend([(conn, origin), (origin, conn)]);
                    self.responses.insert(origin, Response::new());
                }
                Err(_) => io.abort(conn),
            },
            Event::Data(bytes) if self.responses.contains_key(&conn) => self.receive(io, conn, bytes),
            Event::Data(bytes) => {
                if let Some(origin) = self.others.get(&conn) {
                    if let Some(response) = self.responses.get_mut(origin) {
                        response.ended = false;
                    }
                    io.send(*origin, bytes);
                }
            }
            Event::Eof => {
                io.close(conn);
                self.end(io, conn, false);
            }
            Event::Failed { .. } => self.end(io, conn, true),
            Event::Connected | Event::Datagrams(_) | Event::Skipped(_) | Event::Sent => {}
        }
    }
}

impl<D: Driver> Task<D> for Relay {
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        let RelayFault::Gather(within) = self.fault else { return Ok(Next::Poll(None)) };
        let now = driver.now();
        let mut next = None;
        for (origin, response) in &mut self.responses {
            if !response.held.is_empty() && now >= response.flush_at {
                response.flush(driver, self.others[origin], within);
            }
            if !response.held.is_empty() {
                next = Some(next.map_or(response.flush_at, |next: u64| next.min(response.flush_at)));
            }
        }
        Ok(Next::Poll(next))
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}
