//! One response of HTTP/1: its content, when it is due, and how its bytes are sent.
//!
//! This module does not know parsers, queues of responses or the counters.

use std::mem;
use std::rc::Rc;

use weir_model::counters::OriginCounters;
use weir_model::load::RESPONSE_HEADER;
use weir_net::Clock;
use weir_wire::http1::Version;
use weir_wire::http1::encode::{self, BodyFraming, Persistence};
use weir_wire::request_id::{RESPONSE_LENGTH, RequestId, ResponseKey, ResponseTag};

use crate::fault::Fault;
use crate::held::Room;
use crate::resolve::{self, Body, Resolved, SMALL, Source};
use crate::response_faults::Rendered;
use crate::stream::Shape;
use crate::transport::Sink;

const LINE_END: &[u8] = b"\r\n";

/// The size of a chunk of a chunked response, in bytes.
const CHUNK: usize = 16 << 10;

/// Something to be sent on a connection, in its turn.
#[derive(Debug)]
pub(crate) struct Response {
    /// What the target meant.
    pub(crate) resolved: Rc<Resolved>,
    /// What the response repeats of the request.
    pub(crate) echoed: Echoed,
    /// It is not sent before this time.
    pub(crate) due: Option<u64>,
    /// The fault of the response.
    pub(crate) fault: Option<Fault>,
    /// How it is counted.
    pub(crate) role: Role,
    /// The ID of its request.
    pub(crate) id: Option<RequestId>,
    /// The request was HEAD: the head of what GET would get.
    pub(crate) head_only: bool,
    /// Version of the request.
    pub(crate) version: Version,
    /// The connection closes after this.
    pub(crate) close: bool,
}

/// How a response is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The response to a counted request.
    Counted,
    /// The response to one of the lab's own requests.
    Own,
    /// The refusal of input that is not HTTP.
    Malformed,
    /// `100 Continue`.
    Continue,
    /// A part of the response to a counted request: not its end, or of a response without an end.
    Part,
}

/// What a response repeats of its request: a content type, and behind it a body (or a head). It is one buffer, so
/// that it can be reused.
#[derive(Debug, Default)]
pub(crate) struct Echoed {
    bytes: Vec<u8>,
    // Both are below `MAX_HELD`.
    type_length: u32,
    /// How much of the worker's room it has, bytes.
    held: u32,
    room: Option<Room>,
}

impl Echoed {
    /// Begins with a reused buffer.
    pub(crate) fn begin(mut buffer: Vec<u8>, content_type: &[u8]) -> Echoed {
        buffer.clear();
        buffer.extend_from_slice(content_type);
        Echoed { bytes: buffer, type_length: content_type.len() as u32, held: 0, room: None }
    }

    /// Adds a piece of the body. False: the worker has no room for it, and it is dropped.
    pub(crate) fn push(&mut self, room: &Room, piece: &[u8]) -> bool {
        let fits = room.take(piece.len());
        if fits {
            self.room.get_or_insert_with(|| room.clone());
            self.held += piece.len() as u32;
            self.bytes.extend_from_slice(piece);
        }
        fits
    }

    /// The body.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.type_length as usize..]
    }

    /// Whether the body is too large to be given to the driver at once.
    pub(crate) fn is_large(&self) -> bool {
        self.body().len() > resolve::LARGE
    }

    /// Returns the buffer.
    pub(crate) fn into_buffer(mut self) -> Vec<u8> {
        mem::take(&mut self.bytes)
    }

    /// Drops the bytes, of which there is a copy now. Their room stays taken.
    pub(crate) fn forget_bytes(&mut self) {
        self.bytes = Vec::new();
        self.type_length = 0;
    }

    /// The content type, if there is one and it is text.
    pub(crate) fn content_type(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.bytes[..self.type_length as usize]).ok()?;
        Some(text).filter(|text| !text.is_empty())
    }
}

impl Drop for Echoed {
    fn drop(&mut self) {
        if let Some(room) = &self.room {
            room.give_back(self.held as usize);
        }
    }
}

/// What was given to the driver for one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    /// All bytes.
    pub(crate) bytes: u64,
    /// Those of the body, without chunk framing.
    pub(crate) body: u64,
    /// How many bytes come before the body.
    pub(crate) before_body: u64,
}

/// Writes responses to a driver.
#[derive(Debug)]
pub(crate) struct Writer {
    scratch: Vec<u8>,
    worker: u16,
    response_key: ResponseKey,
    clock: Clock,
    named: Named,
}

/// The usual response to a request with an ID: that to the last one, in which the header is written anew.
#[derive(Debug, Default)]
struct Named {
    of: Option<Rc<Resolved>>,
    bytes: Vec<u8>,
    /// Where the header's value begins, and where the head ends.
    at: usize,
    head: usize,
}

impl Named {
    /// The whole of it with this header.
    #[inline]
    fn of(&mut self, resolved: &Rc<Resolved>, response: &[u8; RESPONSE_LENGTH]) -> &Named {
        if !self.of.as_ref().is_some_and(|of| Rc::ptr_eq(of, resolved)) {
            self.prepare(resolved);
        }
        self.bytes[self.at..self.at + RESPONSE_LENGTH].copy_from_slice(response);
        self
    }

    fn prepare(&mut self, resolved: &Rc<Resolved>) {
        let (head, body) = resolved.ready.split_at(resolved.ready_head);
        self.bytes.clear();
        self.bytes.extend_from_slice(head);
        self.at = put_response(&mut self.bytes, &[0; RESPONSE_LENGTH]);
        self.head = self.bytes.len();
        self.bytes.extend_from_slice(body);
        self.of = Some(Rc::clone(resolved));
    }
}

/// Puts the header into a head before the empty line at its end. Returns where its value begins.
fn put_response(head: &mut Vec<u8>, value: &[u8; RESPONSE_LENGTH]) -> usize {
    head.truncate(head.len() - LINE_END.len());
    head.extend_from_slice(RESPONSE_HEADER.as_bytes());
    head.extend_from_slice(b": ");
    let at = head.len();
    head.extend_from_slice(value);
    head.extend_from_slice(LINE_END);
    head.extend_from_slice(LINE_END);
    at
}

impl Writer {
    /// For the worker with this number.
    pub(crate) fn new(worker: u16, response_key: ResponseKey, clock: Clock) -> Writer {
        Writer { scratch: Vec::new(), worker, response_key, clock, named: Named::default() }
    }

    /// What the response to a request with an ID says of itself, if it is written now.
    #[inline]
    pub(crate) fn response_to(&self, id: RequestId) -> [u8; RESPONSE_LENGTH] {
        let at_us = self.clock.now() / 1_000;
        ResponseTag { id, worker: self.worker, at_us }.text(self.response_key)
    }

    /// Queues the whole response. `counters` is called if the response contains the counters.
    pub(crate) fn write(
        &mut self,
        to: &mut impl Sink,
        response: &Response,
        counters: impl FnOnce() -> OriginCounters,
    ) -> Written {
        let resolved = &*response.resolved;
        if response.role == Role::Continue {
            to.send(encode::CONTINUE);
            return Written { bytes: encode::CONTINUE.len() as u64, ..Written::default() };
        }
        let usual = response.version == Version::Http11 && !response.close && resolved.source == Source::Fixed;
        let usual = usual && response.fault.is_none();
        if usual && (response.head_only || !resolved.plan.chunked) {
            return match response.id {
                None => send_ready(to, resolved, (&resolved.ready, resolved.ready_head), response.head_only),
                Some(id) => {
                    let text = self.response_to(id);
                    let named = self.named.of(&response.resolved, &text);
                    send_ready(to, resolved, (&named.bytes, named.head), response.head_only)
                }
            };
        }
        match resolved.source {
            Source::Fixed => match &resolved.body {
                Body::Copied(bytes) => self.send(to, response, resolved.content_type, bytes),
                Body::Static(bytes) => self.send_static(to, response, bytes),
            },
            Source::Echo => {
                let content_type = response.echoed.content_type().unwrap_or(resolved.content_type);
                self.send(to, response, content_type, response.echoed.body())
            }
            Source::Headers | Source::Request => self.send(to, response, resolved.content_type, response.echoed.body()),
            // The messages follow, if there are any.
            Source::Stream => {
                self.head(response, resolved.content_type, 0);
                to.send(&self.scratch);
                let bytes = self.scratch.len() as u64;
                Written { bytes, body: 0, before_body: bytes }
            }
            Source::Counters => {
                let text = counters_page(&counters());
                self.send(to, response, resolved.content_type, &text)
            }
        }
    }

    /// Renders the whole response without sending it.
    pub(crate) fn render(
        &mut self,
        response: &Response,
        counters: impl FnOnce() -> OriginCounters,
    ) -> (Rendered, Written) {
        let mut rendered = Rendered::default();
        let written = self.write(&mut rendered, response, counters);
        (rendered, written)
    }

    /// Sends a body that the driver copies.
    fn send(&mut self, to: &mut impl Sink, response: &Response, content_type: &str, body: &[u8]) -> Written {
        let framing = self.head(response, content_type, body.len());
        let before_body = self.scratch.len() as u64;
        let body = if response.has_body() { body } else { &[] };
        let mut sent = Sent::default();
        if framing == BodyFraming::Chunked && response.has_body() {
            for piece in body.chunks(CHUNK) {
                encode::chunk(&mut self.scratch, piece);
                sent.copied(to, &mut self.scratch);
            }
            self.scratch.extend_from_slice(encode::LAST_CHUNK);
        } else if body.len() <= SMALL {
            self.scratch.extend_from_slice(body);
        } else {
            sent.copied(to, &mut self.scratch);
            to.send(body);
            sent.0 += body.len() as u64;
        }
        sent.copied(to, &mut self.scratch);
        Written { bytes: sent.0, body: body.len() as u64, before_body }
    }

    /// Sends a body that the driver need not copy.
    fn send_static(&mut self, to: &mut impl Sink, response: &Response, body: &'static [u8]) -> Written {
        let framing = self.head(response, response.resolved.content_type, body.len());
        let before_body = self.scratch.len() as u64;
        let body = if response.has_body() { body } else { &[] };
        let mut sent = Sent::default();
        if framing == BodyFraming::Chunked && response.has_body() {
            for piece in body.chunks(CHUNK) {
                encode::chunk_head(&mut self.scratch, piece.len());
                sent.with(to, &mut self.scratch, piece);
                self.scratch.extend_from_slice(encode::CHUNK_END);
            }
            self.scratch.extend_from_slice(encode::LAST_CHUNK);
            sent.copied(to, &mut self.scratch);
        } else {
            sent.with(to, &mut self.scratch, body);
        }
        Written { bytes: sent.0, body: body.len() as u64, before_body }
    }

    /// Writes the head into the scratch buffer. Returns how the body is delimited.
    fn head(&mut self, response: &Response, content_type: &str, length: usize) -> BodyFraming {
        let framing = match (response.resolved.plan.chunked, response.version) {
            (false, _) => BodyFraming::Length(length as u64),
            (true, Version::Http11) => BodyFraming::Chunked,
            // HTTP/1.0 has no chunks: the end of the connection is the end of the body. Such a response closes.
            (true, Version::Http10) => BodyFraming::None,
        };
        let framing = response.false_length(length as u64).map_or(framing, BodyFraming::Length);
        let persistence = match (response.close, response.version) {
            (true, _) => Persistence::Close,
            (false, Version::Http11) => Persistence::Implied,
            (false, Version::Http10) => Persistence::KeepAlive,
        };
        self.scratch.clear();
        response.resolved.encode_head(&mut self.scratch, content_type, framing, persistence);
        if let Some(id) = response.id {
            let text = self.response_to(id);
            put_response(&mut self.scratch, &text);
        }
        framing
    }
}

impl Response {
    /// A `100 Continue`.
    pub(crate) fn interim() -> Response {
        Response {
            role: Role::Continue,
            close: false,
            ..Response::closing(Resolved::fixed(200, Body::text(""), false))
        }
    }

    /// The refusal (400, 431 ...) of input that is not HTTP or exceeds a limit.
    pub(crate) fn malformed(status: u16, why: &dyn std::fmt::Display) -> Response {
        Response { role: Role::Malformed, ..Response::closing(Resolved::malformed(status, why)) }
    }

    fn closing(resolved: Resolved) -> Response {
        Response {
            resolved: Rc::new(resolved),
            echoed: Echoed::default(),
            due: None,
            fault: None,
            role: Role::Counted,
            id: None,
            head_only: false,
            version: Version::Http11,
            close: true,
        }
    }

    /// The false length that this response claims, if it claims one.
    pub(crate) fn false_length(&self, length: u64) -> Option<u64> {
        false_length(self.fault, length)
    }

    /// Whether the body is too large to be copied at once.
    pub(crate) fn is_large(&self) -> bool {
        self.resolved.is_large()
    }

    /// The messages that follow the head, if it is a stream.
    pub(crate) fn stream(&self) -> Option<Shape> {
        self.resolved.plan.stream.filter(|_| self.resolved.source == Source::Stream && self.has_body())
    }

    /// Whether a body follows the head.
    pub(crate) fn has_body(&self) -> bool {
        !self.head_only && !resolve::bodiless(self.resolved.plan.status) && self.resolved.plan.status != 205
    }
}

/// The false length that a response with this fault claims, if it claims one.
pub(crate) fn false_length(fault: Option<Fault>, length: u64) -> Option<u64> {
    let Some(Fault::Length { more }) = fault else {
        return None;
    };
    // No length is less than zero.
    Some(if more == Some(true) || length == 0 { length + length / 2 + 1 } else { length / 2 })
}

/// The counters as the body of a page.
pub(crate) fn counters_page(counters: &OriginCounters) -> Vec<u8> {
    // A struct of numbers and maps is always JSON.
    let mut text = serde_json::to_vec_pretty(counters).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Counts what is queued.
#[derive(Debug, Default)]
struct Sent(u64);

impl Sent {
    fn copied(&mut self, to: &mut impl Sink, scratch: &mut Vec<u8>) {
        to.send(scratch);
        self.0 += scratch.len() as u64;
        scratch.clear();
    }

    fn with(&mut self, to: &mut impl Sink, scratch: &mut Vec<u8>, body: &'static [u8]) {
        to.send_with(scratch, body);
        self.0 += (scratch.len() + body.len()) as u64;
        scratch.clear();
    }
}

/// The usual response: bytes that were prepared when the target was first resolved, and how many of them are its head.
fn send_ready(to: &mut impl Sink, resolved: &Resolved, (ready, head): (&[u8], usize), head_only: bool) -> Written {
    let before_body = head as u64;
    match &resolved.body {
        _ if head_only => {
            to.send(&ready[..head]);
            Written { bytes: before_body, body: 0, before_body }
        }
        Body::Copied(body) => {
            to.send(ready);
            Written { bytes: ready.len() as u64, body: body.len() as u64, before_body }
        }
        Body::Static(body) => {
            to.send_with(&ready[..head], body);
            Written { bytes: before_body + body.len() as u64, body: body.len() as u64, before_body }
        }
    }
}
