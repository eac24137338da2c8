//! The requests and responses of one HTTP/1 connection, in order.
//!
//! A complete request becomes a [`Response`]. Responses leave in the order of their requests. A response that is not
//! due yet holds up those behind it, as HTTP/1.1 requires. A response that nothing holds up goes to the driver at
//! once and never enters the queue.
//!
//! # Bounds
//! A peer that sends requests and reads no responses fills at most this: [`HIGH_WATER`] bytes in the driver (and
//! the response that went over it), [`MAX_WAITING`] responses in the queue, holding at most
//! [`MAX_PAYLOAD`] bytes of request bodies. Requests beyond that are refused as malformed.
//!
//! This module does not know how bytes become requests.

use std::collections::VecDeque;
use std::fmt::Display;
use std::mem;
use std::rc::Rc;

use weir_model::protocol::Application;
use weir_net::Conn;
use weir_wire::http1::{self, ConnectionHeader, Framing, RequestHead, Version};
use weir_wire::request_id::RequestId;

use crate::fault::Fault;
use crate::held::Room;
use crate::http::{HttpState, IdentifiedRequest};
use crate::in_flight::InFlight;
use crate::paced::{Paced, PacedStream};
use crate::payload::MAX_PAYLOAD;
use crate::request_check::BodyCheck;
use crate::resolve::{Resolved, Source};
use crate::response::{Echoed, Response, Role, Written};
use crate::response_faults::{self, Pace, PacedResponse};
use crate::stream::{MessageStream, Shape};
use crate::transport::Transport;
use crate::websocket::WebSocket;

/// With more bytes than this queued in the driver, responses wait in the connection's own queue.
pub(crate) const HIGH_WATER: usize = 256 << 10;
/// The most responses that wait on one connection.
pub(crate) const MAX_WAITING: usize = 4096;
/// How long a connection stays readable after the 400, when its peer broke the protocol. Closing while bytes still
/// arrive would reset it, and the peer might never see the reason.
pub(crate) const LINGER: u64 = 100_000_000;

/// One connection, without its parser.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    /// The request whose body is being read.
    current: Option<Current>,
    /// Responses that something holds up.
    waiting: VecDeque<Response>,
    /// Bytes of request bodies held by `waiting`.
    waiting_bytes: u32,
    sends: InFlight,
    /// Bytes read of an incomplete head. Whether they are counted is known when the head is complete.
    head_bytes: u64,
    /// Counted requests without a complete response.
    in_flight: u32,
    /// Counted requests.
    requests: u64,
    /// The counters were read over this connection.
    reader: bool,
    conn: Option<Conn>,
    state: State,
    /// [`weir_net::Event::Sent`] is requested and has not come.
    sent_requested: bool,
    /// A timer is set.
    timer: bool,
    /// How the connection ends, once it is to end.
    end: End,
    /// A response has stopped in the middle on purpose. Nothing is sent until the peer gives up.
    stalled: bool,
    /// The response that is sent slowly, before those that wait.
    paced: Option<Box<Paced>>,
}

/// How a connection ends after its last response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum End {
    /// Closed at once.
    #[default]
    Close,
    /// Closed a while later.
    Linger,
    /// Reset.
    Reset,
}

/// The phase of a connection. It only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum State {
    /// Reads requests.
    #[default]
    Open,
    /// Reads no more requests; responses are still to be queued.
    Draining,
    /// The last response is queued, or there is none.
    Closing,
    /// Closed or gone.
    Closed,
}

/// A request whose head has arrived.
#[derive(Debug)]
struct Current {
    resolved: Rc<Resolved>,
    echoed: Echoed,
    role: Role,
    /// Its ID, if it has one: apart, which takes 8 bytes less of each connection than an `Option`.
    id: RequestId,
    has_id: bool,
    /// The check of its body.
    check: Option<Box<BodyCheck>>,
    version: Version,
    head_only: bool,
    /// Its body is too large to be echoed.
    too_large: bool,
}

/// The socket that a request without a body opens, where its target is one, and the response that says so.
#[inline(never)]
fn accept_socket(resolved: &Resolved, head: &RequestHead<'_>) -> Option<(Box<WebSocket>, String)> {
    let shape = resolved.plan.socket().filter(|_| head.framing == Framing::None)?;
    WebSocket::accept(head, shape).map(|(socket, response)| (Box::new(socket), response))
}

impl Pipeline {
    /// Resets the state for a new connection.
    pub(crate) fn begin(&mut self, conn: Conn) {
        debug_assert!(self.waiting.is_empty() && self.sends.is_empty());
        *self = Pipeline {
            conn: Some(conn),
            waiting: mem::take(&mut self.waiting),
            sends: mem::take(&mut self.sends),
            ..Pipeline::default()
        };
    }

    /// Its connection.
    pub(crate) fn conn(&self) -> Option<Conn> {
        self.conn
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether requests are still read.
    pub(crate) fn reads(&self) -> bool {
        self.state == State::Open
    }

    /// The kernel may have taken more since the last event: brings the counters up to date.
    #[inline]
    pub(crate) fn account_sent<T: Transport>(&mut self, transport: &T, state: &HttpState) {
        if !self.sends.is_empty() {
            self.account_sent_up_to(transport.unsent(), state);
        }
    }

    #[inline]
    fn account_sent_up_to(&mut self, unsent: usize, state: &HttpState) {
        let progress = self.sends.account_sent(unsent);
        self.in_flight -= progress.answered as u32;
        let counters = state.counters();
        counters.bytes_out.add(progress.bytes);
        counters.body_bytes_out.add(progress.body);
        counters.answered.add(progress.answered);
    }

    /// Accounts for bytes that were read in the middle of a head or body.
    #[inline]
    pub(crate) fn read(&mut self, bytes: usize, state: &HttpState) {
        match &self.current {
            None if self.reads() => self.head_bytes += bytes as u64,
            Some(current) if current.role == Role::Own => {}
            _ => state.counters().bytes_in.add(bytes as u64),
        }
    }

    /// A head is complete. Returns what the connection is from now on, if it is no longer one of HTTP.
    pub(crate) fn on_head<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut HttpState,
        head: &RequestHead<'_>,
        read: usize,
    ) -> Option<Box<WebSocket>> {
        let mut resolved = state.shared.cache.resolve(head.target);
        if !resolved.fixed {
            if let Some((socket, response)) = accept_socket(&resolved, head) {
                self.head_bytes = 0;
                state.own_request(resolved.source, &mut self.reader);
                self.send_apart(transport, response.as_bytes(), Role::Own);
                return Some(socket);
            }
            resolved = resolved.chosen(|name| http1::header(head.raw, name));
            // A call has trailers, and nobody reads those of HTTP/1.1.
            if resolved.plan.is_call() {
                resolved = Rc::new(Resolved::status_page(505));
            }
        }
        let role = if resolved.own { Role::Own } else { Role::Counted };
        let read = mem::take(&mut self.head_bytes) + read as u64;
        self.count(state, role, resolved.source, head, read);
        let IdentifiedRequest { id, check } =
            if role == Role::Counted { state.identify_http1(head) } else { IdentifiedRequest::default() };
        let (mut echoed, mut too_large) = (Echoed::default(), false);
        if !resolved.fixed {
            let write_head = |echoed: &mut Echoed, room: &Room| _ = echoed.push(room, head.raw);
            echoed = state.begin_echo(&resolved, |name| http1::header(head.raw, name), write_head);
            let announced = matches!(head.framing, Framing::Length(length) if length > MAX_PAYLOAD as u64);
            too_large = resolved.reads_request_body() && announced;
        }
        let (version, head_only) = (head.version, head.method == b"HEAD");
        let (has_id, id) = (id.is_some(), id.unwrap_or_default());
        self.current = Some(Current { resolved, echoed, role, id, has_id, check, version, head_only, too_large });
        if head.expects_continue && head.framing != Framing::None {
            if too_large {
                // The peer waits for permission to send the body. It is refused, and need not send it.
                if let Some(check) = self.current.as_mut().and_then(|current| current.check.take()) {
                    state.shared.check.give_back(check);
                }
                self.on_end(transport, state, false);
                return None;
            }
            self.enqueue(transport, state, Response::interim());
        }
        None
    }

    /// A message of a socket came, and goes back in these bytes.
    pub(crate) fn echo<T: Transport>(&mut self, transport: &mut T, state: &HttpState, bytes: &[u8], written: Written) {
        let counters = state.counters();
        self.requests += 1;
        self.in_flight += 1;
        counters.request(self.requests, Application::Http1);
        counters.request_http1(Version::Http11, ConnectionHeader::None);
        counters.max_in_flight.raise(self.in_flight.into());
        transport.send(bytes);
        self.account_queued(transport, written, Role::Counted);
    }

    /// Sends what is no response.
    pub(crate) fn send_apart<T: Transport>(&mut self, transport: &mut T, bytes: &[u8], role: Role) {
        transport.send(bytes);
        let bytes = bytes.len() as u64;
        self.account_queued(transport, Written { bytes, body: 0, before_body: bytes }, role);
    }

    /// A socket ends with these bytes; `broken`: its peer broke the protocol.
    pub(crate) fn end_socket<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut HttpState,
        bytes: &[u8],
        broken: bool,
    ) {
        if !bytes.is_empty() {
            self.send_apart(transport, bytes, Role::Part);
        }
        self.last_is_queued(if broken { End::Linger } else { End::Close });
        self.flush_ready(transport, state);
    }

    #[inline]
    fn count(&mut self, state: &HttpState, role: Role, source: Source, head: &RequestHead<'_>, read: u64) {
        if role == Role::Own {
            state.own_request(source, &mut self.reader);
            return;
        }
        let counters = state.counters();
        self.requests += 1;
        counters.request(self.requests, Application::Http1);
        counters.request_http1(head.version, head.connection);
        counters.bytes_in.add(read);
        self.in_flight += 1;
        counters.max_in_flight.raise(self.in_flight.into());
    }

    /// A piece of the body of the current request.
    pub(crate) fn on_body(&mut self, state: &HttpState, piece: &[u8]) {
        let Some(current) = &mut self.current else {
            return;
        };
        if current.role == Role::Counted {
            state.counters().body_bytes_in.add(piece.len() as u64);
        }
        if let Some(check) = &mut current.check {
            state.shared.check.piece(check, piece);
        }
        if current.resolved.reads_request_body() && !current.too_large {
            let fits = current.echoed.body().len() + piece.len() <= MAX_PAYLOAD;
            if !fits || !current.echoed.push(&state.shared.room, piece) {
                // The rest is read and dropped, so that the connection can continue.
                current.too_large = true;
                current.echoed = Echoed::default();
            }
        }
    }

    /// The current request is complete.
    pub(crate) fn on_end<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, keep_alive: bool) {
        if let Some(current) = &mut self.current
            && !current.resolved.fixed
        {
            state.choose(&mut current.resolved, &mut current.echoed);
        }
        let Some(current) = self.current.take() else {
            return;
        };
        let Current { resolved, echoed, role, id, has_id, check, version, head_only, too_large } = current;
        let id = has_id.then_some(id);
        state.end_check(check);
        let resolved = if too_large { Rc::new(Resolved::too_large()) } else { resolved };
        let (due, fault) = state.delay_and_fault(&resolved, role);
        let plan = &resolved.plan;
        let ends_by_close = plan.chunked && version == Version::Http10;
        let close = !keep_alive || plan.close || ends_by_close;
        self.enqueue(transport, state, Response { resolved, echoed, due, fault, role, id, head_only, version, close });
        if self.waiting.len() > MAX_WAITING || self.waiting_bytes as usize > MAX_PAYLOAD {
            self.on_malformed(transport, state, 400, &"too many requests wait for their responses");
        }
    }

    /// The peer broke the protocol or a limit. It gets this status after the responses that are due.
    pub(crate) fn on_malformed<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut HttpState,
        status: u16,
        why: &dyn Display,
    ) {
        if !self.reads() {
            return;
        }
        let counters = state.counters();
        counters.malformed.add(1);
        counters.bytes_in.add(mem::take(&mut self.head_bytes));
        if self.give_up_current(state) == Some(Role::Counted) {
            self.in_flight -= 1;
        }
        self.enqueue(transport, state, Response::malformed(status, why));
    }

    /// The rest of the current request will not come, or is not read. Returns whose it was.
    fn give_up_current(&mut self, state: &mut HttpState) -> Option<Role> {
        let current = self.current.take()?;
        state.give_up_check(current.check);
        Some(current.role)
    }

    /// The peer has finished sending. It may still read.
    pub(crate) fn on_eof<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) {
        if self.end == End::Linger {
            self.end = End::Close;
        }
        self.note_early_end(state);
        self.stop(transport, state);
    }

    /// Reads no more requests, answers the complete ones, and closes.
    pub(crate) fn stop<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) {
        state.counters().bytes_in.add(mem::take(&mut self.head_bytes));
        self.give_up_current(state);
        self.stalled = false;
        self.state = self.state.max(State::Draining);
        match (self.waiting.back_mut(), &mut self.paced) {
            (Some(last), _) => last.close = true,
            (None, Some(paced)) => *paced.close() = true,
            (None, None) => self.state = self.state.max(State::Closing),
        }
        self.flush_ready(transport, state);
    }

    /// The connection is gone, and the kernel has not taken `unsent` bytes.
    pub(crate) fn on_failed(&mut self, state: &mut HttpState, unsent: usize, reset: bool) {
        self.account_sent_up_to(unsent, state);
        self.note_early_end(state);
        if reset {
            state.counters().connections_reset.add(1);
        }
        self.release(state);
    }

    /// The peer ends the connection: a stream under way ends before its last message, unless the peer still reads.
    fn note_early_end(&self, state: &HttpState) {
        if let Some(Paced::Stream(stream)) = self.paced.as_deref() {
            state.all_counters().ended_early(stream.messages.id(), state.clock.now());
        }
    }

    /// Ends it now, whatever is under way.
    pub(crate) fn abort<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) {
        self.account_sent(transport, state);
        transport.abort();
        self.release(state);
    }

    /// The kernel has taken everything that was queued.
    pub(crate) fn on_sent<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) {
        self.sent_requested = false;
        self.account_sent(transport, state);
        // The event may be older than what was written in the same turn. Without another one, that would not be
        // counted until the next event here.
        if !self.sends.is_empty() {
            self.request_sent(transport);
        }
        self.flush_ready(transport, state);
    }

    fn request_sent<T: Transport>(&mut self, transport: &mut T) {
        if !mem::replace(&mut self.sent_requested, true) {
            transport.want_sent();
        }
    }

    /// The timer has expired.
    pub(crate) fn on_timeout<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) {
        self.timer = false;
        self.account_sent(transport, state);
        if self.state == State::Closing && self.end == End::Linger {
            self.end = End::Close;
        }
        self.flush_ready(transport, state);
    }

    fn enqueue<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, response: Response) {
        if response.close {
            self.state = self.state.max(State::Draining);
        }
        if self.waiting.is_empty() && response.due.is_none() && self.paced.is_none() && self.has_room(transport) {
            self.write(transport, state, response);
        } else {
            self.waiting_bytes += response.echoed.body().len() as u32;
            self.waiting.push_back(response);
            self.flush_ready(transport, state);
        }
    }

    /// Queues what is due, and closes when nothing is left to wait for.
    fn flush_ready<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) {
        if self.stalled {
            return;
        }
        if self.paced.is_some() && !self.write_paced(transport, state) {
            return;
        }
        while let Some(front) = self.waiting.front() {
            if let Some(due) = front.due
                && due > state.clock.now()
            {
                return self.set_timer(due, state);
            }
            if !self.has_room(transport) {
                // `Sent` will come when it has.
                return;
            }
            if let Some(response) = self.waiting.pop_front() {
                self.waiting_bytes -= response.echoed.body().len() as u32;
                self.write(transport, state, response);
                if self.stalled || self.paced.is_some() {
                    return;
                }
            }
        }
        if self.state == State::Closing && self.sends.is_empty() {
            match self.end {
                End::Linger => return self.set_timer(state.clock.now() + LINGER, state),
                End::Close => transport.close(),
                End::Reset => transport.abort(),
            }
            self.release(state);
        }
    }

    fn set_timer(&mut self, at: u64, state: &mut HttpState) {
        if let (false, Some(conn)) = (self.timer, self.conn) {
            self.timer = true;
            state.timers.push(at, (conn, 0));
        }
    }

    fn has_room<T: Transport>(&self, transport: &T) -> bool {
        self.sends.is_empty() || transport.unsent() <= HIGH_WATER
    }

    #[inline]
    fn write<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, response: Response) {
        if let Some(shape) = response.stream() {
            return self.write_stream(transport, state, response, shape);
        }
        if response.fault.is_some() {
            return self.write_with_fault(transport, state, response);
        }
        if (T::COPIES && response.is_large()) || response.echoed.is_large() {
            return self.write_in_pieces(transport, state, response);
        }
        let written = state.write(transport, &response);
        self.account_queued(transport, written, response.role);
        if response.close {
            self.last_is_queued(if response.role == Role::Malformed { End::Linger } else { End::Close });
        }
        state.give_back(response.echoed.into_buffer());
    }

    /// Accounts for queued bytes.
    fn account_queued<T: Transport>(&mut self, transport: &mut T, written: Written, role: Role) {
        self.sends.push(written, role);
        self.request_sent(transport);
    }

    /// The last response is queued: no requests are read once a response that closes is in the queue.
    fn last_is_queued(&mut self, end: End) {
        self.state = State::Closing;
        self.end = end;
    }

    #[cold]
    fn write_with_fault<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, mut response: Response) {
        let Some(fault) = response.fault else {
            return;
        };
        state.counters().fault(fault.kind());
        match fault {
            Fault::Status(status) => {
                let echoed = mem::take(&mut response.echoed);
                state.give_back(echoed.into_buffer());
                let resolved = Rc::new(Resolved::status_page(status));
                self.write(transport, state, Response { resolved, fault: None, ..response });
            }
            Fault::Length { .. } => {
                let written = state.write(transport, &response);
                self.account_queued(transport, written, response.role);
                if response.close {
                    self.last_is_queued(End::Close);
                }
            }
            Fault::Reset { middle: Some(true) } => self.cut(transport, state, &response, false, Some(End::Reset)),
            Fault::Reset { .. } => {
                transport.abort();
                self.release(state);
            }
            Fault::Close => self.cut(transport, state, &response, false, Some(End::Close)),
            Fault::Stall => self.cut(transport, state, &response, true, None),
            // No such response has them, which is checked when faults are read.
            Fault::Error | Fault::Busy | Fault::Lose | Fault::Stale | Fault::Expire(_) => {
                self.write(transport, state, Response { fault: None, ..response });
            }
            Fault::Drip(rate) => {
                let (rendered, written) = state.render(&response);
                let pace = Pace::new(rate, state.clock.now());
                let paced = PacedResponse::new(rendered, written, response, pace);
                self.paced = Some(Box::new(Paced::Rendered(paced)));
                self.flush_ready(transport, state);
            }
        }
    }

    /// Sends a response as room comes, so that it is never copied as a whole.
    fn write_in_pieces<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, response: Response) {
        let (rendered, written) = state.render(&response);
        self.paced = Some(Box::new(Paced::Rendered(PacedResponse::in_pieces(rendered, written, response))));
        self.flush_ready(transport, state);
    }

    /// Sends the head of a stream, whose messages follow as they fall due, and its fault instead of the one in the middle.
    fn write_stream<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut HttpState,
        mut response: Response,
        shape: Shape,
    ) {
        match response.fault {
            Some(Fault::Status(_) | Fault::Reset { middle: None | Some(false) }) => {
                return self.write_with_fault(transport, state, response);
            }
            Some(fault @ (Fault::Reset { .. } | Fault::Close | Fault::Stall | Fault::Error)) => {
                state.counters().fault(fault.kind())
            }
            // The origin's own may be others, which no stream has.
            _ => response.fault = None,
        }
        let written = state.write(transport, &response);
        self.account_queued(transport, written, Role::Part);
        let Response { id, fault, version, close, role, .. } = response;
        let messages = MessageStream::begin(shape, state.shared.next_stream(), id, fault, state.clock.now());
        let chunked = version == Version::Http11;
        self.paced = Some(Box::new(Paced::Stream(PacedStream { messages, chunked, close, role })));
        self.flush_ready(transport, state);
    }

    /// Sends a response up to the end of its head, or to the middle of its body; then the connection ends, or stalls.
    fn cut<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut HttpState,
        response: &Response,
        in_head: bool,
        end: Option<End>,
    ) {
        let (mut rendered, written) = state.render(response);
        let (head, middle) = response_faults::cuts(written);
        let bytes = rendered.write_up_to(if in_head { head } else { middle }, transport) as u64;
        let before_body = written.before_body.min(bytes);
        self.account_queued(transport, Written { bytes, body: bytes - before_body, before_body }, Role::Part);
        self.end_early(end);
    }

    /// The response under way ends before its end, or stalls. Requests behind it get no response.
    fn end_early(&mut self, end: Option<End>) {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.state = State::Draining;
        match end {
            Some(end) => self.last_is_queued(end),
            None => self.stalled = true,
        }
    }

    /// Sends what is due of the paced response; true when all of it is sent.
    fn write_paced<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState) -> bool {
        let now = state.clock.now();
        while let Some(paced) = &mut self.paced {
            if let Some(next) = paced.next()
                && next > now
            {
                self.set_timer(next, state);
                return false;
            }
            if transport.unsent() > HIGH_WATER {
                // `Sent` will come when there is room.
                return false;
            }
            if let Some(fault) = paced.fault() {
                self.paced = None;
                self.end_early(match fault {
                    Fault::Close => Some(End::Close),
                    Fault::Stall => None,
                    _ => Some(End::Reset),
                });
                return true;
            }
            let mut scratch = state.buffer();
            let (written, role) = paced.write_next(now, &mut scratch, transport);
            state.give_back(scratch);
            let (done, close) = (paced.is_done(), *paced.close());
            self.account_queued(transport, written, role);
            if done {
                self.paced = None;
                if close {
                    self.last_is_queued(End::Close);
                }
            }
        }
        true
    }

    /// The connection has ended.
    pub(crate) fn release(&mut self, state: &mut HttpState) {
        state.counters().bytes_in.add(mem::take(&mut self.head_bytes));
        state.connection_closed(self.reader);
        self.timer = false;
        self.state = State::Closed;
        self.give_up_current(state);
        self.paced = None;
        self.waiting.clear();
        self.waiting.shrink_to(64);
        self.waiting_bytes = 0;
        self.sends.clear();
    }
}
