//! Key-value protocols: the session that they share. A [`Dialect`] reads requests and writes responses; this module does
//! the rest: bytes in and out, counters, delays and faults.
//!
//! All requests that arrive together are answered into one buffer of the worker, which is sent at once. A response with a
//! delay waits in its connection; what it asks for has been done by then. A dialect whose responses may come in any order
//! ([`Dialect::ORDERED`]) has no response wait behind another.
//!
//! # Bounds
//! A peer that sends requests and reads no responses is reset when [`MOST_UNSENT`] bytes wait for it.
//!
//! [`crate::origin`] chooses it. This module does not know what a request looks like, nor what is stored.

mod juno;
mod memcached;
mod redis;
mod store;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem;
use std::sync::Arc;

use weir_model::protocol::Application;
use weir_net::{Clock, Conn};
use weir_wire::messages::{Frame, Messages};

use crate::fault::{Fault, FaultKind};
use crate::options::ResponseOptions;
use crate::random::Random;
use crate::sends::{Batch, Sends};
use crate::session::{Session, SessionEvent};
use crate::state::WorkerState;
use crate::transport::Transport;
use crate::value;
pub(crate) use juno::Juno;
pub(crate) use memcached::Memcached;
pub(crate) use redis::Redis;
use store::{NEVER, Now};

/// Bytes that may wait for a peer.
const MOST_UNSENT: usize = 64 << 20;
/// Responses are given to the driver when there are more bytes of them than this, and the buffer keeps at most so many.
const BUFFER: usize = 256 << 10;

/// A key-value protocol, as a server speaks it. An instance is the state of one connection.
pub(crate) trait Dialect: Debug + Default + 'static {
    /// Finds the end of requests.
    type Frame: Frame<Error: std::fmt::Display> + Debug;
    /// What all workers share.
    type Store: Debug + Send + Sync + 'static;
    /// A request.
    type Request<'a>: Copy;

    /// Which protocol it is.
    const APPLICATION: Application;
    /// The names of operations, for counting.
    const OPERATIONS: &'static [&'static str];
    /// Responses come in the order of their requests.
    const ORDERED: bool;

    /// Finds the end of requests.
    fn frame() -> Self::Frame;

    /// An empty store. `keeps_former`: a read can be asked for what was there before the last write.
    fn store(keeps_former: bool) -> Self::Store;

    /// Keys in the store.
    fn keys(store: &Self::Store) -> u64;

    /// Reads a request that is whole. `Ok(None)`: it gets no response.
    ///
    /// # Errors
    /// The connection has to be closed, and why.
    fn read<'a>(&self, message: &'a [u8]) -> Result<Option<Self::Request<'a>>, String>;

    /// What a request asks for, and how it is counted.
    fn asks(request: &Self::Request<'_>) -> Asks;

    /// Does what a request asks for, and appends the response, if it wants one, to `out`. `lie` makes it do something else
    /// than it says, where it can.
    fn respond(&mut self, request: Self::Request<'_>, context: Context<'_, Self>, out: &mut Vec<u8>) -> Answered;

    /// Appends the response of a server that is too busy to do what was asked.
    fn busy(&self, request: Self::Request<'_>, out: &mut Vec<u8>);

    /// Appends what is sent before a connection is closed whose peer broke the protocol.
    fn malformed(&self, why: &str, out: &mut Vec<u8>);
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks {
    /// Index of its operation in [`Dialect::OPERATIONS`].
    pub(crate) operation: usize,
    /// It is about keys, and no overhead of a connection.
    pub(crate) of_keys: bool,
}

/// What an operation needs.
pub(crate) struct Context<'a, D: Dialect> {
    pub(crate) store: &'a D::Store,
    pub(crate) now: Now,
    /// For a key made of several parts.
    pub(crate) key: &'a mut Vec<u8>,
    pub(crate) wrong_reply: Option<WrongReply>,
}

/// What a server does instead of what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrongReply {
    /// It says that it has written, and has not.
    Lose,
    /// It reads what was there before the last write.
    Stale,
    /// It lets what it writes live for so many milliseconds.
    Expire(u32),
}

impl WrongReply {
    /// When a value that is written expires, that is to expire at `successful`, ms since 1970.
    fn expires(wrong_reply: Option<WrongReply>, right: u64, now: Now) -> u64 {
        match wrong_reply {
            Some(WrongReply::Expire(ms)) if right != NEVER => now.ms() + u64::from(ms),
            _ => right,
        }
    }
}

/// What an operation did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answered {
    /// For a read: whether there was a value.
    pub(crate) hit: Option<bool>,
    /// Bytes of the value written, and of the value read.
    pub(crate) value_in: usize,
    pub(crate) value_out: usize,
    /// It lied as told.
    pub(crate) lied: bool,
    /// The connection ends behind the response.
    pub(crate) close: bool,
}

/// What the connections of one worker share.
#[derive(Debug)]
pub(crate) struct Shared<D: Dialect> {
    /// By address.
    stores: Arc<[D::Store]>,
    options: ResponseOptions,
    /// There is a delay or a fault.
    special: bool,
    random: Random,
    /// Responses to what arrived at once.
    out: Vec<u8>,
    key: Vec<u8>,
}

impl<D: Dialect> Shared<D> {
    /// The shared state of the worker with this number.
    pub(crate) fn new(stores: Arc<[D::Store]>, options: ResponseOptions, worker: usize) -> Shared<D> {
        let (special, random) = (options.is_special(), Random::new(options.seed, worker));
        Shared { stores, options, special, random, out: Vec::new(), key: Vec::new() }
    }

    /// When the next response is due (`None`: at once), and its fault.
    #[inline]
    fn delay_and_fault(&mut self, clock: &Clock, asks: Asks) -> (Option<u64>, Option<Fault>) {
        if !(self.special && asks.of_keys) {
            return (None, None);
        }
        let delay = self.options.delay.map(|delay| value::delay_at(delay, self.random.unit()));
        let due = delay.filter(|delay| !delay.is_zero()).map(|delay| clock.now() + delay.as_nanos() as u64);
        (due, self.options.faults.draw(&mut self.random))
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct KeyValueSession<D: Dialect> {
    reader: Messages<D::Frame>,
    responses: Responder<D>,
}

/// The responses of a connection.
#[derive(Debug, Default)]
struct Responder<D> {
    conn: Option<Conn>,
    dialect: D,
    sends: Sends,
    /// Responses that wait for their time, the next one first.
    late: VecDeque<Late>,
    /// Bytes in `late`.
    late_bytes: usize,
    /// When the timer expires that was set for the first of them.
    timer: Option<u64>,
    /// Counted requests, and those without a complete response.
    requests: u64,
    in_flight: u64,
    /// [`weir_net::Event::Sent`] is requested and has not come.
    sent_requested: bool,
    reading: Reading,
}

/// Whether requests are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    #[default]
    Yes,
    /// No more; the connection is closed behind the last response.
    Ended,
    /// What comes is dropped, and nothing is answered until the peer gives up.
    Stalled,
}

/// A response that waits.
#[derive(Debug)]
struct Late {
    due: u64,
    bytes: Box<[u8]>,
    batch: Batch,
}

/// How it goes on behind a request.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Read,
    Close,
    Reset,
    Stall,
}

impl<D: Dialect> Session for KeyValueSession<D> {
    type Shared = Shared<D>;

    const ALPN: &'static [&'static str] = &[];
    const OPERATIONS: &'static [&'static str] = D::OPERATIONS;

    fn new() -> KeyValueSession<D> {
        KeyValueSession { reader: Messages::new(D::frame()), responses: Responder::default() }
    }

    fn begin(&mut self, conn: Conn) {
        let Responder { sends, late, .. } = mem::take(&mut self.responses);
        self.reader = Messages::new(D::frame());
        self.responses = Responder { conn: Some(conn), sends, late, ..Responder::default() };
    }

    #[inline]
    fn on_event<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut WorkerState<Shared<D>>,
        event: SessionEvent<'_>,
    ) {
        match event {
            SessionEvent::Data(bytes) => self.on_data(transport, state, bytes),
            event => self.responses.on_event(transport, state, event),
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.responses.conn.is_none()
    }
}

impl<D: Dialect> KeyValueSession<D> {
    #[inline]
    fn on_data<T: Transport>(&mut self, transport: &mut T, state: &mut WorkerState<Shared<D>>, bytes: &[u8]) {
        self.responses.account_sent(transport, state);
        state.counters().bytes_in.add(bytes.len() as u64);
        if self.responses.reading != Reading::Yes {
            return;
        }
        let mut out = mem::take(&mut state.shared.out);
        let next = self.respond_to_all(transport, state, bytes, &mut out);
        out.clear();
        out.shrink_to(BUFFER);
        state.shared.out = out;
        self.responses.go_on(transport, state, next);
    }

    /// Answers everything that is complete.
    fn respond_to_all<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut WorkerState<Shared<D>>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Next {
        let KeyValueSession { reader, responses } = self;
        let now = Now(state.clock.unix_now());
        let (mut input, mut batch, mut next) = (bytes, Batch::default(), Next::Read);
        while next == Next::Read {
            next = match reader.next(&mut input) {
                Ok(None) => break,
                Ok(Some(message)) => responses.respond(message, state, now, out, &mut batch),
                Err(error) => responses.malformed(&error.to_string(), state, out),
            };
            if out.len() > BUFFER || responses.late_bytes > BUFFER {
                responses.send(transport, out, mem::take(&mut batch));
                if transport.unsent() + responses.late_bytes > MOST_UNSENT {
                    return Next::Reset;
                }
            }
        }
        responses.send(transport, out, batch);
        responses.wait_for_late(state);
        next
    }
}

impl<D: Dialect> Responder<D> {
    /// Appends the response to one request to `out`, and adds it to `batch`.
    #[inline]
    fn respond(
        &mut self,
        message: &[u8],
        state: &mut WorkerState<Shared<D>>,
        now: Now,
        out: &mut Vec<u8>,
        batch: &mut Batch,
    ) -> Next {
        let request = match self.dialect.read(message) {
            Ok(Some(request)) => request,
            Ok(None) => return Next::Read,
            Err(why) => return self.malformed(&why, state, out),
        };
        let (asks, start) = (D::asks(&request), out.len());
        self.count(asks, state);
        let (due, fault) = state.shared.delay_and_fault(&state.clock, asks);
        let (answered, next) = carry_out(&mut self.dialect, request, state, now, fault, out);
        let next = if answered.close && next == Next::Read { Next::Close } else { next };
        let cut = matches!(fault, Some(Fault::Close | Fault::Stall));
        if out.len() == start && asks.of_keys && !cut {
            // A request that wants no response.
            self.in_flight -= 1;
            state.counters().answered.add(1);
            return next;
        }
        let one = Batch { responses: u64::from(asks.of_keys && !cut), values: answered.value_out as u64, bytes: 0 };
        if next != Next::Stall && (due.is_some() || D::ORDERED && !self.late.is_empty()) {
            self.late_bytes += out.len() - start;
            put_off::<D>(&mut self.late, &state.clock, due, out.drain(start..).collect(), one);
        } else if !cut {
            batch.add(one);
        }
        // Where answers may come in any order, the others come.
        if next == Next::Stall && !D::ORDERED { Next::Read } else { next }
    }

    #[cold]
    fn malformed(&self, why: &str, state: &WorkerState<Shared<D>>, out: &mut Vec<u8>) -> Next {
        state.counters().malformed.add(1);
        self.dialect.malformed(why, out);
        Next::Close
    }

    #[inline]
    fn count(&mut self, asks: Asks, state: &WorkerState<Shared<D>>) {
        let counters = state.counters();
        counters.operation(asks.operation);
        if asks.of_keys {
            self.requests += 1;
            self.in_flight += 1;
            counters.request(self.requests, D::APPLICATION);
            counters.max_in_flight.raise(self.in_flight);
        } else {
            counters.own_requests.add(1);
        }
    }

    /// Goes on behind the requests that were answered.
    #[inline]
    fn go_on<T: Transport>(&mut self, transport: &mut T, state: &mut WorkerState<Shared<D>>, next: Next) {
        match next {
            Next::Read => {}
            Next::Close => {
                self.reading = Reading::Ended;
                self.end_if_done(transport, state);
            }
            Next::Stall => self.reading = Reading::Stalled,
            Next::Reset => {
                transport.abort();
                self.release(state);
            }
        }
    }

    /// Handles an event that brings no bytes.
    fn on_event<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut WorkerState<Shared<D>>,
        event: SessionEvent<'_>,
    ) {
        match event {
            SessionEvent::Data(_) | SessionEvent::Broadcast(_) => {}
            SessionEvent::Sent => {
                self.sent_requested = false;
                self.account_sent(transport, state);
                if !self.sends.is_empty() {
                    self.request_sent(transport);
                }
                self.end_if_done(transport, state);
            }
            SessionEvent::Timeout(_) => {
                // An earlier timer for a later time may expire now.
                if self.timer.is_none_or(|due| due > state.clock.now()) {
                    return;
                }
                self.timer = None;
                self.account_sent(transport, state);
                self.send_late(transport, state);
            }
            SessionEvent::Eof | SessionEvent::Stop => {
                self.account_sent(transport, state);
                self.reading = Reading::Ended;
                self.end_if_done(transport, state);
            }
            SessionEvent::Failed { unsent, reset } => {
                self.account_sent_up_to(unsent, state);
                state.counters().connections_reset.add(u64::from(reset));
                self.release(state);
            }
            SessionEvent::Abort => {
                self.account_sent(transport, state);
                transport.abort();
                self.release(state);
            }
            SessionEvent::TlsFailed => self.release(state),
        }
    }

    /// Gives responses to the driver.
    #[inline]
    fn send<T: Transport>(&mut self, transport: &mut T, out: &mut Vec<u8>, batch: Batch) {
        if !out.is_empty() {
            transport.send(out);
            self.sends.push(out.len() as u64, batch);
            out.clear();
            self.request_sent(transport);
        }
    }

    /// Sends the late responses that are due.
    fn send_late<T: Transport>(&mut self, transport: &mut T, state: &mut WorkerState<Shared<D>>) {
        let now = state.clock.now();
        while self.late.front().is_some_and(|late| late.due <= now)
            && let Some(late) = self.late.pop_front()
        {
            self.late_bytes -= late.bytes.len();
            transport.send(&late.bytes);
            self.sends.push(late.bytes.len() as u64, late.batch);
            self.request_sent(transport);
        }
        self.wait_for_late(state);
        self.end_if_done(transport, state);
    }

    /// Sets the timer for the next late response, which may be due before the one that it was set for.
    #[inline]
    fn wait_for_late(&mut self, state: &mut WorkerState<Shared<D>>) {
        let (Some(late), Some(conn)) = (self.late.front(), self.conn) else { return };
        if self.timer.is_none_or(|due| due > late.due) {
            self.timer = Some(late.due);
            state.timers.push(late.due, (conn, 0));
        }
    }

    fn request_sent<T: Transport>(&mut self, transport: &mut T) {
        if !mem::replace(&mut self.sent_requested, true) {
            transport.want_sent();
        }
    }

    /// The kernel may have taken more since the last event: brings the counters up to date.
    #[inline]
    fn account_sent<T: Transport>(&mut self, transport: &T, state: &WorkerState<Shared<D>>) {
        if !self.sends.is_empty() {
            self.account_sent_up_to(transport.unsent(), state);
        }
    }

    fn account_sent_up_to(&mut self, unsent: usize, state: &WorkerState<Shared<D>>) {
        let (bytes, batch) = self.sends.account(unsent);
        self.in_flight -= batch.responses;
        let counters = state.counters();
        counters.bytes_out.add(bytes);
        counters.body_bytes_out.add(batch.values);
        counters.answered.add(batch.responses);
    }

    /// Closes the connection when no request is read any more and every response was taken.
    fn end_if_done<T: Transport>(&mut self, transport: &mut T, state: &mut WorkerState<Shared<D>>) {
        if self.reading == Reading::Ended && self.late.is_empty() && self.sends.is_empty() {
            transport.close();
            self.release(state);
        }
    }

    /// The connection has ended.
    fn release(&mut self, state: &mut WorkerState<Shared<D>>) {
        if self.conn.take().is_none() {
            return;
        }
        state.connection_closed(false);
        self.late.clear();
        self.late.shrink_to(64);
        self.sends.clear();
    }
}

/// Does what a request asks for, with its fault, and appends what is sent of the response.
#[inline]
fn carry_out<D: Dialect>(
    dialect: &mut D,
    request: D::Request<'_>,
    state: &mut WorkerState<Shared<D>>,
    now: Now,
    fault: Option<Fault>,
    out: &mut Vec<u8>,
) -> (Answered, Next) {
    let start = out.len();
    if matches!(fault, Some(Fault::Busy)) {
        dialect.busy(request, out);
        state.counters().fault(FaultKind::Busy);
        return (Answered::default(), Next::Read);
    }
    let wrong_reply = match fault {
        Some(Fault::Lose) => Some(WrongReply::Lose),
        Some(Fault::Stale) => Some(WrongReply::Stale),
        Some(Fault::Expire(ms)) => Some(WrongReply::Expire(ms)),
        _ => None,
    };
    let address = state.address();
    let Shared { stores, key, .. } = &mut state.shared;
    let answered = dialect.respond(request, Context { store: &stores[address], now, key, wrong_reply }, out);
    let counters = state.counters();
    counters.body_bytes_in.add(answered.value_in as u64);
    match answered.hit {
        Some(true) => counters.hits.add(1),
        Some(false) => counters.misses.add(1),
        None => {}
    }
    let Some(fault) = fault.filter(|_| wrong_reply.is_none() || answered.lied) else { return (answered, Next::Read) };
    counters.fault(fault.kind());
    let next = match fault {
        Fault::Reset { .. } => Next::Reset,
        Fault::Close => {
            out.truncate(start + (out.len() - start) / 2);
            Next::Close
        }
        Fault::Stall => {
            out.truncate(start);
            Next::Stall
        }
        _ => Next::Read,
    };
    (answered, next)
}

/// Keeps a response until it is due. `None`: until those before it have left.
fn put_off<D: Dialect>(late: &mut VecDeque<Late>, clock: &Clock, due: Option<u64>, bytes: Box<[u8]>, batch: Batch) {
    let due = due.unwrap_or_else(|| clock.now());
    let last = late.back().map_or(due, |last| last.due);
    let (due, at) = match D::ORDERED {
        true => (due.max(last), late.len()),
        false => (due, late.partition_point(|other| other.due <= due)),
    };
    late.insert(at, Late { due, bytes, batch });
}
