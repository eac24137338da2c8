//! The client's protocols: each encodes the requests and parses the responses of one connection.
//!
//! A protocol implements [`Protocol`], or [`keyvalue::Dialect`], and knows nothing of sockets, TLS, pacing or counting. The
//! worker is compiled once for each protocol, so that no call goes through a pointer. To add one, add a file here and a line
//! in `LoadTasks::new`.

mod http1;
mod http2;
mod http3;
mod http_template;
mod juno;
mod keyvalue;
mod memcached;
mod redis;
mod websocket;

use std::fmt;
use std::time::Duration;

use weir_model::load::{ErrorKind, LoadProtocol, LoadSpec};

use crate::changes::ChangeWatch;
use crate::codings::CodingWatch;
use crate::error::SpecError;
use crate::generator::Generator;
use crate::headers::HeaderWatch;
use crate::messages::MessageWatch;
use crate::reasons::Reasons;
use crate::request_ids::RequestIdWatch;
use crate::response_check::Expectation;
use crate::worker::Stream;
use weir_wire::request_id::RequestId;

pub(crate) use http1::Http1;
pub(crate) use http2::Http2;
pub(crate) use http3::Http3;
pub(crate) use websocket::WebSocket;
pub(crate) type Juno = keyvalue::KeyValue<juno::Juno>;
pub(crate) type Memcached = keyvalue::KeyValue<memcached::Memcached>;
pub(crate) type Redis = keyvalue::KeyValue<redis::Redis>;

/// One load of all those that a server sees.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Instance {
    /// A number that differs from load to load.
    pub nonce: u64,
    /// When it was made, nanoseconds.
    pub now: u64,
}

/// A protocol, with the requests of one load made ready. Each worker has a clone.
pub(crate) trait Protocol: Clone + Send + fmt::Debug + 'static {
    /// A connection sends requests and nothing else, so that unsent bytes are the end of the last request.
    const SENDS_REQUESTS_ALONE: bool = false;

    /// Its connections are QUIC's, with TLS inside, which the driver makes; they carry frames of streams.
    const QUIC: bool = false;

    /// For error texts: when a connection that is still negotiating failed, such as `before its SETTINGS came`.
    const NEGOTIATING: &'static str = "before it was ready";

    /// The state of one connection. The default is that of a slot without a connection: it should be small.
    type Session: Default + fmt::Debug + Send;

    /// The peer's violation of the protocol.
    type Error: fmt::Display;

    /// Makes a load's requests ready.
    ///
    /// # Errors
    /// The request that cannot be sent, as text for people.
    fn new(spec: &LoadSpec, instance: Instance) -> Result<Self, SpecError>;

    /// The keys of the load were written before it, and that took so long.
    fn preloaded(&mut self, _took: Duration) {}

    /// Connection `number` (of all) was made, and its TLS negotiated: begins its session, which is the default or what
    /// [`Protocol::ended`] left of the slot's last one, and writes what is sent first. `true`: it is ready for requests; else
    /// it becomes so with its first [`Event::Streams`].
    fn connect(&self, _session: &mut Self::Session, _number: u32, _out: &mut Vec<u8>) -> bool {
        true
    }

    /// The connection is gone, and what was in flight on it will not be answered. What is left in the session is for the slot's
    /// next connection.
    fn ended(&self, session: &mut Self::Session) {
        *session = Self::Session::default();
    }

    /// Which of the load's requests to this target is next on a connection, where there are several.
    #[inline]
    fn choose(&self, _session: &mut Self::Session, target: u32, generator: &mut Generator) -> u32 {
        generator.choose(target)
    }

    /// Encodes the next request of a kind (an index into the load's requests) on a stream (from 0) that is free, with its ID where
    /// the load's requests have IDs.
    ///
    /// # Errors
    /// The connection does not take it; nothing was written.
    fn encode<'a>(
        &'a self,
        session: &mut Self::Session,
        stream: u32,
        kind: u32,
        id: Option<RequestId>,
        generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal>;

    /// Sends the next message of a request whose messages are sent one by one. `ends`: it is the last. False: the request is over, and
    /// nothing was sent.
    fn send_message(
        &self,
        _session: &mut Self::Session,
        _stream: u32,
        _message: &[u8],
        _ends: bool,
        _out: &mut Vec<u8>,
    ) -> bool {
        false
    }

    /// Takes bytes from `input` up to the next event; `None` when all were taken and no event is left. What the protocol itself
    /// wants to send goes to `out`.
    ///
    /// # Errors
    /// What ends the connection.
    fn receive(
        &mut self,
        session: &mut Self::Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Self::Error>;

    /// Bytes that come next and that nobody looks at: the driver may drop them. 0 where all have to come to [`Protocol::receive`], which
    /// has just returned `None`.
    fn skippable(&self, _session: &mut Self::Session, _responses: &mut Responses<'_>) -> u64 {
        0
    }

    /// So many of them came, at least one.
    fn skipped(&self, _session: &mut Self::Session, _bytes: u64, _responses: &mut Responses<'_>) -> Option<Event> {
        None
    }

    /// The peer closed with requests in flight. Returns the stream whose response that completes.
    ///
    /// # Errors
    /// It completes none; and what was wrong then, where there is more to say than that the connection was closed early.
    fn end_of_input(&self, _session: &mut Self::Session) -> Result<u32, Option<Self::Error>> {
        Err(None)
    }

    /// A message of this connection has come to all ([`Event::Delivered`]). Returns the stream whose response that completes, if it still waits.
    fn delivered(
        &self,
        _session: &mut Self::Session,
        _message: u32,
        _bytes: u32,
        _responses: &mut Responses<'_>,
    ) -> Option<u32> {
        None
    }

    /// Gives up a request. `false`: the protocol cannot, and the connection has to end.
    fn cancel(&self, _session: &mut Self::Session, _stream: u32, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// The connection is about to be closed in an orderly way.
    fn close(&self, _session: &mut Self::Session, _out: &mut Vec<u8>) {}
}

/// What TLS negotiates for a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// Nothing.
    None,
    /// The ID is offered; a peer that does not choose it may speak the protocol all the same.
    Offered(&'static str),
    /// The peer has to choose it.
    Required(&'static str),
}

impl Alpn {
    pub(crate) fn of(protocol: LoadProtocol) -> Alpn {
        match protocol {
            LoadProtocol::Http1 { .. } => Alpn::Offered("http/1.1"),
            LoadProtocol::Http2 { .. } => Alpn::Required("h2"),
            LoadProtocol::Http3 { .. } => Alpn::Required("h3"),
            _ => Alpn::None,
        }
    }

    /// The name.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Alpn::None => None,
            Alpn::Offered(name) | Alpn::Required(name) => Some(name),
        }
    }
}

/// A request ready to be sent.
#[derive(Debug)]
pub(crate) enum Encoded<'a> {
    /// These bytes, copied, and then these, sent from where they are.
    Ready(&'a [u8], &'static [u8]),
    /// It was appended to `out`.
    Appended,
}

/// Why a connection does not take a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its streams are all in use.
    Full,
    /// It takes no more.
    Exhausted,
}

/// What came, as far as it concerns the worker. Streams count from 0 on each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// So many streams may be open. The first ends the negotiation.
    Streams(u32),
    /// A response is complete. Not `reusable`: the connection takes no more requests, and its other responses are lost.
    Complete { stream: u32, reusable: bool },
    /// A request failed and the connection goes on.
    Failed { stream: u32, kind: ErrorKind },
    /// The peer certainly did not process a request.
    Unprocessed { stream: u32 },
    /// The peer takes no more requests; those in flight go on.
    GoAway,
    /// A message of a connection (by its number among all), with so many bytes, has come to the last one: [`Protocol::delivered`].
    Delivered { connection: u32, message: u32, bytes: u32 },
}

/// What a worker watches responses for.
#[derive(Debug, Clone)]
pub(crate) struct Watches {
    pub headers: HeaderWatch,
    /// Where requests have IDs.
    pub ids: Option<RequestIdWatch>,
    /// Where requests accept a content coding.
    pub codings: Option<Box<CodingWatch>>,
    /// Where responses are streams.
    pub messages: Option<Box<MessageWatch>>,
    /// Where responses have the number of a change.
    pub changes: Option<Box<ChangeWatch>>,
    /// Why requests failed.
    pub reasons: Reasons,
}

/// A connection's responses in the making.
#[derive(Debug)]
pub(crate) struct Responses<'a> {
    streams: &'a mut [Stream],
    expectations: &'a [Expectation],
    watches: &'a mut Watches,
    now: u64,
}

impl<'a> Responses<'a> {
    #[inline]
    pub(crate) fn new(
        streams: &'a mut [Stream],
        expectations: &'a [Expectation],
        watches: &'a mut Watches,
        now: u64,
    ) -> Responses<'a> {
        Responses { streams, expectations, watches, now }
    }

    /// The time, of the run's clock.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The response that a stream waits for.
    #[inline]
    pub(crate) fn of(&mut self, stream: u32) -> PartialResponse<'_> {
        let stream = &mut self.streams[stream as usize];
        let expectation = &self.expectations[stream.request as usize];
        PartialResponse { stream, expectation, watches: &mut *self.watches, now: self.now }
    }
}

/// A response in the making.
#[derive(Debug)]
pub(crate) struct PartialResponse<'a> {
    stream: &'a mut Stream,
    expectation: &'a Expectation,
    watches: &'a mut Watches,
    now: u64,
}

impl PartialResponse<'_> {
    /// When its request was sent, of the run's clock.
    #[inline]
    pub(crate) fn sent(&self) -> u64 {
        self.stream.sent()
    }

    /// A byte of it came.
    #[inline]
    pub(crate) fn begun(&mut self) {
        if self.stream.first == 0 {
            self.stream.first = self.now;
        }
    }

    /// Its status came, and the length of its body if that is known.
    #[inline]
    pub(crate) fn head(&mut self, status: u16, length: Option<u64>) {
        self.begun();
        self.stream.response.head(status, length);
        if let Some(messages) = &mut self.watches.messages {
            messages.begin(self.stream, self.expectation.is_successful_status(status), self.now);
        }
    }

    /// All of it came, with a body of so many bytes that its protocol has checked.
    #[inline]
    pub(crate) fn whole(&mut self, status: u16, size: u64) {
        self.head(status, Some(size));
        self.stream.response.checked(size);
    }

    /// Its headers came, which are looked at if one is expected, and in samples.
    // As `on_head` of HTTP/2.
    #[inline(always)]
    pub(crate) fn headers<'h>(&mut self, headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) {
        if self.expectation.is_successful_status(self.stream.response.status()) {
            self.watches.headers.record_response(self.stream.request, self.now, headers.clone());
        }
        if self.expectation.checks_headers() || self.watches.messages.is_some() {
            self.check_headers(headers);
        }
    }

    #[inline(never)]
    fn check_headers<'h>(&mut self, headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) {
        if let Some(messages) = &mut self.watches.messages {
            messages.check_type(self.stream, headers.clone());
        }
        if self.expectation.checks_headers() {
            self.expectation.check_headers(headers.clone(), &mut self.stream.response);
            if let Some(changes) = &mut self.watches.changes
                && self.expectation.is_successful_status(self.stream.response.status())
                && !changes.record(self.now, headers)
            {
                self.stream.response.wrong(ErrorKind::WrongHeader);
            }
        }
    }

    /// Headers came behind its body.
    pub(crate) fn trailers<'h>(&mut self, headers: impl Iterator<Item = (&'h [u8], &'h [u8])>) {
        if let Some(messages) = &mut self.watches.messages {
            messages.check_status(self.stream, headers);
        }
    }

    /// Its headers came; `value` is that of the header with its ID.
    #[inline]
    pub(crate) fn check_id<'h>(&mut self, value: impl FnOnce() -> Option<&'h [u8]>) {
        if let Some(ids) = &mut self.watches.ids {
            ids.check(self.stream.request_id, self.stream.sent(), value());
        }
    }

    /// It is complete, and a part of its request was not sent.
    #[cold]
    pub(crate) fn before_its_request(&mut self) {
        self.stream.response.before_its_request();
    }

    /// It is wrong in a way that its protocol knows.
    #[inline]
    pub(crate) fn wrong(&mut self, kind: ErrorKind) {
        self.stream.response.wrong(kind);
    }

    /// Its request fails, or it is wrong, for a reason that the protocol knows.
    pub(crate) fn reason(&mut self, kind: ErrorKind, reason: &dyn fmt::Display) {
        self.watches.reasons.record(self.stream.failure(kind), reason, self.stream.due());
    }

    /// Whether nobody looks at what its body says.
    pub(crate) fn is_unread(&self) -> bool {
        !self.expectation.reads_bodies() && !self.stream.response.is_coded() && self.watches.messages.is_none()
    }

    /// So many bytes of its body came, and nobody looked at them.
    pub(crate) fn skipped(&mut self, bytes: u64) {
        self.stream.response.skipped(bytes);
    }

    /// A piece of its body came.
    #[inline]
    pub(crate) fn body(&mut self, piece: &[u8]) {
        self.stream.response.body(piece, self.expectation);
        if let Some(messages) = &mut self.watches.messages {
            messages.body(self.stream, piece, self.now);
        }
    }
}

/// The drivers take bodies that live for ever, since the kernel may read them after the worker has moved on. A load gives
/// away each of its bodies once.
fn leak(body: Vec<u8>) -> &'static [u8] {
    if body.is_empty() { &[] } else { Vec::leak(body) }
}
