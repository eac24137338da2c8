//! HTTP: the session that finds out the version of a connection, and what the HTTP sessions of one worker share.
//!
//! A client with prior knowledge of HTTP/2 begins with a preface (RFC 9113 section 3.4), which is not a valid request
//! of HTTP/1. With TLS the two ends agree by ALPN; if they have not, the first bytes decide here, too.
//! [`crate::worker`] calls the session.

use std::rc::Rc;
use std::time::Duration;

use weir_net::{Clock, Conn};
use weir_wire::http1::{HeadMemo, RequestHead, RequestLine};
use weir_wire::http2::{self, Detected};
use weir_wire::openai;
use weir_wire::request_id::{OWN, REQUEST_ID_LENGTH, RESPONSE_LENGTH, RequestId, ResponseKey};

use crate::counters::WorkerCounters;
use crate::fault::Fault;
use crate::held::Room;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::member_faults::Effect;
use crate::options::ResponseOptions;
use crate::random::Random;
use crate::request_check::{BodyCheck, RequestCheck};
use crate::request_ids::RequestIdMemory;
use crate::resolve::{Cache, Resolved, Source};
use crate::response::{Echoed, Response, Role, Writer, Written, counters_page};
use crate::response_faults::Rendered;
use crate::session::{Session, SessionEvent};
use crate::state::WorkerState;
use crate::transport::{Sink, Transport};
use crate::value;

/// Request buffers kept for reuse.
const SPARE: usize = 64;
/// The largest request buffer kept, bytes.
const SPARE_SIZE: usize = 64 << 10;
/// The largest buffer for HTTP/2 frames kept, bytes.
const FRAMES_SIZE: usize = 256 << 10;

/// The state of a worker that serves HTTP.
pub(crate) type HttpState = WorkerState<HttpShared>;

/// What the HTTP sessions of one worker share.
#[derive(Debug)]
pub(crate) struct HttpShared {
    /// Prepared responses, by target.
    pub(crate) cache: Cache,
    writer: Writer,
    spare: Vec<Vec<u8>>,
    /// For what is repeated of requests.
    pub(crate) room: Room,
    /// The last head of HTTP/1, of whatever connection.
    pub(crate) heads: HeadMemo<RequestLine>,
    /// For HTTP/2 frames.
    frames: Vec<u8>,
    /// Delay and faults of responses whose target does not specify them.
    options: ResponseOptions,
    /// The options ask for a delay or a fault.
    special: bool,
    random: Random,
    /// The header with the request IDs, in lower case, and the IDs that this worker has seen.
    request_id_header: Box<str>,
    ids: RequestIdMemory,
    /// Compares them with what the client sent.
    pub(crate) check: RequestCheck,
    worker: usize,
    /// Streams so far.
    streams: u64,
}

/// The ID of a counted request, and the check of its body.
#[derive(Debug, Default)]
pub(crate) struct IdentifiedRequest {
    /// Its ID, if it has one.
    pub(crate) id: Option<RequestId>,
    /// The check of its body, if it has one to compare.
    pub(crate) check: Option<Box<BodyCheck>>,
}

impl HttpShared {
    /// The shared state of the worker with this number. Request IDs are in the header `request_ids`; responses to them are tagged with
    /// this key.
    pub(crate) fn new(
        options: ResponseOptions,
        ids: &str,
        response_key: ResponseKey,
        worker: usize,
        clock: &Clock,
    ) -> HttpShared {
        HttpShared {
            request_id_header: ids.to_ascii_lowercase().into(),
            ids: RequestIdMemory::default(),
            check: RequestCheck::new(response_key.into()),
            worker,
            streams: 0,
            cache: Cache::new(&options.headers, clock.clone()),
            writer: Writer::new(worker as u16, response_key, clock.clone()),
            spare: Vec::new(),
            room: Room::default(),
            heads: HeadMemo::new(Some(ids)),
            frames: Vec::new(),
            special: options.is_special(),
            random: Random::new(options.seed, worker),
            options,
        }
    }

    /// The number of the next stream, which no other worker's has.
    pub(crate) fn next_stream(&mut self) -> u64 {
        self.streams += 1;
        ((self.worker as u64) << 48) | self.streams
    }

    fn draw_delay_and_fault(&mut self, clock: &Clock, resolved: &Resolved) -> (Option<u64>, Option<Fault>) {
        let delay = match resolved.plan.delay.or(self.options.delay) {
            Some(delay) => value::delay_at(delay, self.random.unit()),
            None => Duration::ZERO,
        };
        let faults = resolved.plan.faults.as_deref().unwrap_or(&self.options.faults);
        let fault =
            faults.draw(&mut self.random).filter(|fault| *fault != Fault::Error || resolved.plan.stream.is_some());
        ((!delay.is_zero()).then(|| clock.now() + delay.as_nanos() as u64), fault)
    }
}

impl HttpState {
    /// Gives a response to the driver.
    pub(crate) fn write(&mut self, to: &mut impl Sink, response: &Response) -> Written {
        let counters = || self.all_counters.counters();
        self.shared.writer.write(to, response, counters)
    }

    /// Renders what [`HttpState::write`] would send.
    pub(crate) fn render(&mut self, response: &Response) -> (Rendered, Written) {
        let counters = || self.all_counters.counters();
        self.shared.writer.render(response, counters)
    }

    /// When the response to a complete request is due, and its fault. The clock is read only for delays.
    #[inline]
    pub(crate) fn delay_and_fault(&mut self, resolved: &Resolved, role: Role) -> (Option<u64>, Option<Fault>) {
        // A health check is a request of weir's own, and sees them, too.
        if !self.faults.is_empty()
            && let Some(injected) = self.member_fault()
        {
            return injected;
        }
        if role != Role::Counted || !(self.shared.special || resolved.special) {
            return (None, None);
        }
        self.shared.draw_delay_and_fault(&self.clock, resolved)
    }

    /// The same by the fault that this member of the pool has now.
    // Few origins have any, and inlined it keeps the rest from being so.
    #[inline(never)]
    fn member_fault(&self) -> Option<(Option<u64>, Option<Fault>)> {
        Some(match self.faults.effect(self.address(), self.clock.now())? {
            Effect::Slow(delay) => (Some(self.clock.now() + delay), None),
            Effect::Held(until) => (Some(until), None),
            Effect::Reset => (None, Some(Fault::Reset { middle: Some(false) })),
            Effect::Unavailable => (None, Some(Fault::Status(503))),
        })
    }

    /// The head of a counted request of HTTP/1.1 came: its ID, and whether it is as the client sent it.
    #[inline]
    pub(crate) fn identify_http1(&mut self, head: &RequestHead<'_>) -> IdentifiedRequest {
        self.identify(head.marked, |check, value, counters| check.head_http1(head, value, counters))
    }

    /// The same of HTTP/2.
    #[inline]
    pub(crate) fn identify_http2(&mut self, head: &http2::RequestHead<'_>) -> IdentifiedRequest {
        let value = head.headers.get(&self.shared.request_id_header);
        self.identify(value, |check, value, counters| check.head_http2(head, value, counters))
    }

    /// The head of a counted request came, with this value in the header of IDs, and is checked so.
    #[inline]
    fn identify(
        &mut self,
        value: Option<&[u8]>,
        check_head: impl FnOnce(&mut RequestCheck, &[u8], &WorkerCounters) -> Option<Box<BodyCheck>>,
    ) -> IdentifiedRequest {
        let Some((value, id)) = value.and_then(|value| Some((value, self.read_id(value)?))) else {
            return IdentifiedRequest::default();
        };
        // A request of weir's own has no digest.
        if id.load() == OWN.0 {
            return IdentifiedRequest { id: Some(id), check: None };
        }
        let (counters, shared) = self.counters_and_shared();
        IdentifiedRequest { id: Some(id), check: check_head(&mut shared.check, value, counters) }
    }

    /// Begins the part of a response that repeats its request: as much of it as the head has.
    #[inline(never)]
    pub(crate) fn begin_echo<'a>(
        &mut self,
        resolved: &Resolved,
        header: impl FnOnce(&str) -> Option<&'a [u8]>,
        write_head: impl FnOnce(&mut Echoed, &Room),
    ) -> Echoed {
        match resolved.source {
            Source::Echo => Echoed::begin(self.buffer(), header("content-type").unwrap_or_default()),
            Source::Headers | Source::Request => {
                let mut echoed = Echoed::begin(self.buffer(), b"");
                write_head(&mut echoed, &self.shared.room);
                echoed
            }
            _ if resolved.reads_request_body() => Echoed::begin(self.buffer(), b""),
            Source::Fixed | Source::Counters | Source::Stream => Echoed::default(),
        }
    }

    /// A request is complete: takes the response that its body asks for, where there are two, and drops the body then.
    #[inline(never)]
    pub(crate) fn choose(&mut self, resolved: &mut Rc<Resolved>, body: &mut Echoed) {
        let Some(streamed) = resolved.streamed() else { return };
        if openai::asks_for_stream(body.body()) {
            *resolved = Rc::clone(streamed);
        }
        self.give_back(std::mem::take(body).into_buffer());
    }

    /// A request is complete.
    #[inline]
    pub(crate) fn end_check(&mut self, check: Option<Box<BodyCheck>>) {
        if let Some(check) = check {
            let (counters, shared) = self.counters_and_shared();
            shared.check.end(check, counters);
        }
    }

    /// The rest of a request will not come.
    pub(crate) fn give_up_check(&mut self, check: Option<Box<BodyCheck>>) {
        if let Some(check) = check {
            let (counters, shared) = self.counters_and_shared();
            shared.check.give_up(check, counters);
        }
    }

    /// A counted request came with this value in the header of IDs: the ID, and behind it the digest.
    #[inline]
    fn read_id(&mut self, value: &[u8]) -> Option<RequestId> {
        let parted =
            value.split_at_checked(REQUEST_ID_LENGTH).filter(|(_, rest)| rest.first().is_none_or(|byte| *byte == b'-'));
        let Some(id) = parted.and_then(|(id, _)| RequestId::parse(id)) else {
            self.counters().malformed_ids.add(1);
            return None;
        };
        self.counters().identified.add(1);
        let shared = &mut self.shared;
        if !shared.ids.saw(id, &self.all_counters.ids, shared.worker) {
            self.counters().unremembered.add(1);
        }
        Some(id)
    }

    /// What the response to a request with an ID says of itself, if it is written now.
    pub(crate) fn response_to(&self, id: RequestId) -> [u8; RESPONSE_LENGTH] {
        self.shared.writer.response_to(id)
    }

    /// Counts a request of the lab's own. If it asks for the counters, its connection becomes a reader's: only the
    /// lab itself reads them, and requests nothing but `/_weir/ready` through a product.
    pub(crate) fn own_request(&self, source: Source, reader: &mut bool) {
        self.counters().own_requests.add(1);
        if source == Source::Counters && !std::mem::replace(reader, true) {
            self.all_counters().has_reader();
        }
    }

    /// The counters, as a page.
    pub(crate) fn counters_page(&self) -> Vec<u8> {
        counters_page(&self.all_counters().counters())
    }

    /// Takes the buffer for frames, empty. [`HttpShared::keep_frames`] returns it.
    pub(crate) fn frames(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.shared.frames)
    }

    /// Returns the buffer for frames.
    pub(crate) fn keep_frames(&mut self, mut frames: Vec<u8>) {
        frames.clear();
        frames.shrink_to(FRAMES_SIZE);
        self.shared.frames = frames;
    }

    /// A buffer for a request's bytes. It may contain old bytes.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.shared.spare.pop().unwrap_or_default()
    }

    /// Returns a buffer.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        if (1..=SPARE_SIZE).contains(&buffer.capacity()) && self.shared.spare.len() < SPARE {
            self.shared.spare.push(buffer);
        }
    }
}

/// A connection that speaks HTTP/1 or HTTP/2.
#[derive(Debug)]
pub(crate) struct HttpSession {
    version: Version,
    http1: Http1,
    /// Boxed, because most connections speak HTTP/1.
    http2: Option<Box<Http2>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// This many bytes of the HTTP/2 preface have arrived, and nothing else.
    Unknown(u8),
    Http1,
    Http2,
}

impl Session for HttpSession {
    type Shared = HttpShared;

    const ALPN: &'static [&'static str] = &["h2", "http/1.1"];

    fn new() -> HttpSession {
        HttpSession { version: Version::Unknown(0), http1: Http1::new(), http2: None }
    }

    fn begin(&mut self, conn: Conn) {
        self.version = Version::Unknown(0);
        self.http1.begin(conn);
    }

    fn on_negotiated(&mut self, alpn: Option<&str>) {
        match alpn {
            Some("h2") => self.use_http2(),
            Some(_) => self.version = Version::Http1,
            // The first bytes decide.
            None => {}
        }
    }

    #[inline(always)]
    fn on_event<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, event: SessionEvent<'_>) {
        match (self.version, event) {
            (Version::Http1, event) => self.http1.on_event(transport, state, event),
            (_, event) => self.on_other_event(transport, state, event),
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        match self.version {
            Version::Http1 | Version::Unknown(_) => self.http1.pipeline.is_closed(),
            Version::Http2 => self.http2.as_ref().is_none_or(|http2| http2.is_closed()),
        }
    }
}

impl HttpSession {
    fn use_http2(&mut self) {
        if let Some(conn) = self.http1.pipeline.conn() {
            self.version = Version::Http2;
            self.http2 = Some(Box::new(Http2::new(conn)));
        }
    }

    /// Handles an event of a connection that is not known to speak HTTP/1.
    fn on_other_event<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, event: SessionEvent<'_>) {
        match (self.version, event) {
            (Version::Unknown(seen), SessionEvent::Data(bytes)) => self.detect(transport, state, seen, bytes),
            (Version::Unknown(_) | Version::Http1, event) => self.http1.on_event(transport, state, event),
            (Version::Http2, event) => {
                if let Some(http2) = &mut self.http2 {
                    http2.on_event(transport, state, event);
                    if http2.is_closed() {
                        self.http2 = None;
                    }
                }
            }
        }
    }

    #[cold]
    fn detect<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, seen: u8, bytes: &[u8]) {
        // These bytes are the beginning of the preface, so they need not be stored.
        let before = &http2::PREFACE[..usize::from(seen)];
        let mut first = [0; http2::PREFACE.len()];
        let more = bytes.len().min(first.len() - before.len());
        first[..before.len()].copy_from_slice(before);
        first[before.len()..][..more].copy_from_slice(&bytes[..more]);
        match http2::detect(&first[..before.len() + more]) {
            // Undecided means fewer bytes than the preface has, so these are all.
            Detected::Undecided => return self.version = Version::Unknown((before.len() + more) as u8),
            Detected::Http1 => self.version = Version::Http1,
            Detected::Http2 => self.use_http2(),
        }
        if !before.is_empty() {
            self.on_event(transport, state, SessionEvent::Data(before));
        }
        self.on_event(transport, state, SessionEvent::Data(bytes));
    }
}
