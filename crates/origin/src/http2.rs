//! One connection that speaks HTTP/2, or HTTP/3: it reads requests and sends each response when it is due.
//!
//! [`weir_wire::http2`] implements frames, windows and header compression. The output of one event is sent in one
//! piece, and is counted when the kernel has taken that piece.
//!
//! # Bounds
//! A peer that opens streams and reads nothing fills at most this: [`HIGH_WATER`] bytes in the driver and what
//! exceeded it (large bodies are not copied, or sent as room comes), and [`MAX_STREAMS`] requests that hold at most
//! [`MAX_PAYLOAD`] bytes of bodies together.
//!
//! The server's half of the protocol is a [`Half`]; [`crate::http3`] has that of HTTP/3.
//!
//! This module does not know what requests mean, nor what is below.

mod echo;
mod half;
mod output;
mod response;

use std::collections::VecDeque;
use std::mem;

use weir_net::Conn;
use weir_wire::grpc::Status;
use weir_wire::http2::{self, Server, ServerEvent, Stream};
use weir_wire::request_id::RequestId;

use crate::fault::Fault;
use crate::http::HttpState;
use crate::payload::MAX_PAYLOAD;
use crate::pipeline::HIGH_WATER;
use crate::resolve::Resolved;
use crate::response::Role;
use crate::sends::{Batch, Sends};
use crate::session::SessionEvent;
use crate::transport::Transport;

use self::echo::EchoedCall;
pub(crate) use self::half::Half;
use self::output::FrameOutput;
use self::response::{PacedBody, Request};

/// Streams that a client may have open.
pub(crate) const MAX_STREAMS: u32 = 1024;
/// The timer of a connection that lingers; those of streams have the streams' slots.
const LINGER: u32 = u32::MAX;

/// One connection.
#[derive(Debug)]
pub(crate) struct Http2<H: Half = Server> {
    server: H,
    conn: Conn,
    state: State,
    /// By stream slot.
    streams: Vec<Option<PendingRequest>>,
    /// The number of requests in `streams`.
    pending: usize,
    /// Bytes of request bodies in `streams`.
    buffered: usize,
    /// Slots of requests that wait for room in the driver, oldest first.
    waiting_for_room: VecDeque<Stream>,
    sends: Sends,
    /// Written in this event, and not yet given to the driver.
    written: Batch,
    /// Bytes of the lab's own responses among it.
    own: u64,
    /// See [`Half::framing_written`], as it was after the last event.
    framed: u64,
    in_flight: u64,
    requests: u64,
    /// The counters were read over this connection.
    reader: bool,
    /// [`weir_net::Event::Sent`] is requested and has not come.
    asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Nothing has been sent or received.
    New,
    Open,
    /// Accepts no more requests; closes when the accepted ones are answered.
    Draining,
    /// The peer broke the protocol, and GOAWAY was sent; the connection closes a while later.
    Lingering,
    Closed,
}

/// A request whose response is not complete.
#[derive(Debug)]
struct PendingRequest {
    request: Request,
    phase: Phase,
    /// When it is looked at again.
    timer: Option<u64>,
}

#[derive(Debug)]
enum Phase {
    /// Its body is still coming.
    Reading,
    /// Its messages are sent back as they come.
    Echoing(Box<EchoedCall>),
    /// It waits until it is due, or for room; then it is answered with this fault.
    Waiting(Option<Fault>),
    /// Its response is sent in pieces.
    Paced(Box<PacedBody>),
    /// Its response waits for the peer's window.
    Blocked,
    /// Its response has stopped on purpose.
    Stalled,
}

impl<H: Half> Http2<H> {
    /// A new connection, whose first bytes are still to be read.
    pub(crate) fn new(conn: Conn) -> Http2<H> {
        Http2 {
            server: H::new(),
            conn,
            state: State::New,
            streams: Vec::new(),
            pending: 0,
            buffered: 0,
            waiting_for_room: VecDeque::new(),
            sends: Sends::default(),
            written: Batch::default(),
            own: 0,
            framed: 0,
            in_flight: 0,
            requests: 0,
            reader: false,
            asked: false,
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Handles an event.
    pub(crate) fn on_event<T: Transport>(&mut self, transport: &mut T, state: &mut HttpState, event: SessionEvent<'_>) {
        match event {
            SessionEvent::Failed { unsent, reset } => return self.failed(state, unsent, reset),
            SessionEvent::Abort => {
                self.account_sent(transport.unsent(), state);
                transport.abort();
                return self.release(state);
            }
            SessionEvent::TlsFailed => return self.release(state),
            _ => {}
        }
        self.account_sent(transport.unsent(), state);
        let mut output = FrameOutput::new(transport, state.frames());
        match event {
            SessionEvent::Data(bytes) => self.on_data(&mut output, state, bytes),
            SessionEvent::Sent => {
                self.asked = false;
                self.resume_waiting(&mut output, state);
            }
            SessionEvent::Timeout(LINGER) => {
                self.state = State::Draining;
            }
            SessionEvent::Timeout(slot) => self.on_timeout(&mut output, state, slot as usize),
            SessionEvent::Eof => self.drain(&mut output, state, false),
            SessionEvent::Stop => self.drain(&mut output, state, true),
            SessionEvent::Failed { .. }
            | SessionEvent::Abort
            | SessionEvent::TlsFailed
            | SessionEvent::Broadcast(_) => {}
        }
        self.flush(output, state);
    }

    fn on_data<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, bytes: &[u8]) {
        if self.state == State::New {
            self.state = State::Open;
            self.server.start(output);
        }
        let mut input = bytes;
        while self.state < State::Lingering {
            let (before, mut framing) = (input.len(), 0);
            let event = match self.server.next_event(&mut input, output, &mut framing) {
                Ok(Some(event)) => event,
                Ok(None) => return state.counters().bytes_in.add(before as u64 - framing),
                Err(_) => {
                    state.counters().malformed.add(1);
                    self.linger(state);
                    break;
                }
            };
            let read = (before - input.len()) as u64 - framing;
            let mut role = Role::Counted;
            match event {
                ServerEvent::Request { stream, head } => {
                    let (ends, expects_continue) = (head.ends, head.expects_continue);
                    let request = Request::new(state, stream, &head);
                    role = request.role;
                    self.on_request(output, state, request, ends, expects_continue);
                }
                ServerEvent::Data { stream, bytes } => {
                    let mut echoes = false;
                    let slot = self.streams.get_mut(stream.slot());
                    if let Some(Some(pending)) = slot
                        && pending.request.stream == stream
                    {
                        role = pending.request.role;
                        if role == Role::Counted {
                            state.counters().body_bytes_in.add(bytes.len() as u64);
                        }
                        if let Phase::Echoing(call) = &mut pending.phase {
                            call.read(bytes);
                            echoes = true;
                        }
                        let others = self.buffered - pending.request.echoed.body().len();
                        pending.request.body(state, bytes, MAX_PAYLOAD.saturating_sub(self.buffered));
                        self.buffered = others + pending.request.echoed.body().len();
                    }
                    if echoes {
                        self.go_on_with_echo(output, state, stream);
                    }
                }
                ServerEvent::End { stream } => self.on_end(output, state, stream),
                ServerEvent::Sent { stream } => self.on_written(output, state, stream),
                ServerEvent::Reset { stream, cause } => {
                    if matches!(cause, http2::ResetCause::Malformed(_)) {
                        state.counters().malformed.add(1);
                    }
                    self.drop_stream(state, stream);
                }
                ServerEvent::Malformed { .. } => state.counters().malformed.add(1),
                ServerEvent::Settings | ServerEvent::GoAway { .. } => {}
            }
            if role == Role::Counted {
                state.counters().bytes_in.add(read);
            }
        }
        state.counters().bytes_in.add(input.len() as u64);
    }

    fn on_request<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        request: Request,
        ends: bool,
        expects_continue: bool,
    ) {
        if request.role == Role::Counted {
            self.requests += 1;
            self.in_flight += 1;
            let counters = state.counters();
            counters.request(self.requests, H::APPLICATION);
            counters.request_streams(H::APPLICATION);
            counters.max_in_flight.raise(self.in_flight);
        } else {
            state.own_request(request.resolved.source, &mut self.reader);
        }
        if !request.resolved.fixed && request.echoes() {
            return self.begin_echo(output, state, request, ends);
        }
        if ends {
            // Only its end follows, which carries nothing more.
            return self.complete(output, state, request);
        }
        if expects_continue && !request.too_large {
            // This fails only if the stream is gone, and then no response is needed.
            let _ = self.server.interim(request.stream, 100, output);
        }
        self.insert(PendingRequest { request, phase: Phase::Reading, timer: None });
    }

    fn on_end<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, stream: Stream) {
        if self.pending == 0 {
            return;
        }
        let reads = self.pending(stream).is_some_and(|pending| matches!(pending.phase, Phase::Reading));
        if reads && let Some(pending) = self.remove(stream) {
            self.complete(output, state, pending.request);
        }
        self.end_echo(output, state, stream, Status::OK);
    }

    /// A call whose messages are sent back ends so.
    fn end_echo<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        stream: Stream,
        status: Status,
    ) {
        if let Some(Some(PendingRequest { phase: Phase::Echoing(call), .. })) = self.streams.get_mut(stream.slot()) {
            call.end(status);
            self.go_on_with_echo(output, state, stream);
        }
    }

    /// A request is complete: it is answered now, or when its response is due.
    // Inlined, because otherwise the request is copied from call to call.
    #[inline(always)]
    fn complete<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, mut request: Request) {
        state.end_check(request.check.take());
        if request.too_large {
            request.resolved = std::rc::Rc::new(Resolved::too_large());
        }
        if !request.resolved.fixed {
            state.choose(&mut request.resolved, &mut request.echoed);
        }
        let (due, fault) = state.delay_and_fault(&request.resolved, request.role);
        if let Some(due) = due {
            let timer = self.set_timer(state, due, request.stream);
            return self.insert(PendingRequest { request, phase: Phase::Waiting(fault), timer });
        }
        if !self.has_room(output) {
            self.waiting_for_room.push_back(request.stream);
            return self.insert(PendingRequest { request, phase: Phase::Waiting(fault), timer: None });
        }
        self.respond(output, state, request, fault);
    }

    fn on_timeout<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, slot: usize) {
        let Some(Some(pending)) = self.streams.get_mut(slot) else {
            return;
        };
        // The timer may be of a stream that had the slot before.
        if pending.timer.is_none_or(|due| due > state.clock.now()) {
            return;
        }
        pending.timer = None;
        let stream = pending.request.stream;
        self.resume(output, state, stream);
    }

    /// There is room again.
    fn resume_waiting<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState) {
        for _ in 0..self.waiting_for_room.len() {
            if !self.has_room(output) {
                return;
            }
            if let Some(stream) = self.waiting_for_room.pop_front() {
                self.resume(output, state, stream);
            }
        }
    }

    /// Continues with a request that waited, if it is still there.
    fn resume<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, stream: Stream) {
        let Some(pending) = self.pending(stream).filter(|pending| pending.timer.is_none()) else {
            return;
        };
        if matches!(pending.phase, Phase::Echoing(_)) {
            return self.end_echo(output, state, stream, Status::DEADLINE_EXCEEDED);
        }
        if !self.has_room(output) {
            return self.waiting_for_room.push_back(stream);
        }
        let Some(pending) = self.remove(stream) else {
            return;
        };
        match pending.phase {
            Phase::Waiting(fault) => self.respond(output, state, pending.request, fault),
            Phase::Paced(paced) => self.write_body(output, state, pending.request, paced),
            phase => self.insert(PendingRequest { phase, ..pending }),
        }
    }

    fn respond<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        mut request: Request,
        fault: Option<Fault>,
    ) {
        let resolved = &request.resolved;
        if fault.is_some()
            || resolved.plan.close
            || (T::COPIES && request.is_large())
            || (!resolved.fixed && (request.echoed.is_large() || request.messages().is_some()))
        {
            return self.respond_specially(output, state, request, fault);
        }
        let (before, framed) = (output.written(), self.server.framing_written());
        let sent = request.respond(&mut self.server, state, output);
        if request.role == Role::Own {
            self.own += output.written() - before - (self.server.framing_written() - framed);
        }
        match sent {
            Ok(http2::SendStatus::All) => self.finished(state, request),
            Ok(http2::SendStatus::Waiting) => {
                self.insert(PendingRequest { request, phase: Phase::Blocked, timer: None })
            }
            Err(_) => self.abandon(&request),
        }
    }

    /// A response has been written completely.
    #[inline]
    fn finished(&mut self, state: &mut HttpState, request: Request) {
        if request.role == Role::Counted {
            self.written.responses += 1;
            self.written.values += request.body_length;
        }
        state.give_back(request.echoed.into_buffer());
    }

    /// The peer's window has opened, and the blocked part is written: the rest of a response, or a piece of it.
    fn on_written<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, stream: Stream) {
        let pending = self.streams.get_mut(stream.slot()).and_then(Option::as_mut);
        match pending.filter(|pending| pending.request.stream == stream).map(|pending| &mut pending.phase) {
            Some(Phase::Paced(_)) => self.resume(output, state, stream),
            Some(Phase::Echoing(call)) => {
                call.sent();
                self.go_on_with_echo(output, state, stream);
            }
            _ => {
                if let Some(pending) = self.remove(stream) {
                    self.finished(state, pending.request);
                }
            }
        }
    }

    /// A request gets no response, or only a part of one.
    fn abandon(&mut self, request: &Request) {
        if request.role == Role::Counted {
            self.in_flight -= 1;
        }
    }

    fn drop_stream(&mut self, state: &mut HttpState, stream: Stream) {
        if let Some(pending) = self.remove(stream) {
            let number = match &pending.phase {
                Phase::Paced(paced) => paced.stream_number(),
                Phase::Echoing(_) => pending.request.id.map(RequestId::bits),
                _ => None,
            };
            number.into_iter().for_each(|number| state.all_counters().ended_early(number, state.clock.now()));
            self.abandon(&pending.request);
            state.give_up_check(pending.request.check);
        }
    }

    /// Accepts no more requests, answers the complete ones, and closes. Requests that wait for input which will not
    /// come are given up.
    fn drain<T: Transport>(&mut self, output: &mut FrameOutput<'_, T>, state: &mut HttpState, send_goaway: bool) {
        if send_goaway && self.state == State::Open {
            self.server.go_away(output);
        }
        self.state = self.state.max(State::Draining);
        for slot in 0..self.streams.len() {
            let Some(pending) = &self.streams[slot] else {
                continue;
            };
            let cannot_finish = match &pending.phase {
                Phase::Reading | Phase::Echoing(_) | Phase::Stalled => true,
                // The peer may still open its window, unless it has gone.
                Phase::Blocked => !send_goaway,
                Phase::Paced(paced) => paced.is_blocked() && !send_goaway,
                Phase::Waiting(_) => false,
            };
            if cannot_finish {
                self.drop_stream(state, pending.request.stream);
            }
        }
    }

    /// The peer broke the protocol. It was notified, and gets a while to read that.
    fn linger(&mut self, state: &mut HttpState) {
        self.drop_all(state);
        self.state = State::Lingering;
        state.timers.push(state.clock.now() + crate::pipeline::LINGER, (self.conn, LINGER));
    }

    /// Gives the driver what was written, and closes if nothing is left to wait for.
    fn flush<T: Transport>(&mut self, mut output: FrameOutput<'_, T>, state: &mut HttpState) {
        if self.state == State::Closed {
            return state.keep_frames(output.into_buffer());
        }
        output.flush();
        let framed = self.server.framing_written();
        let bytes = output.written() - (framed - std::mem::replace(&mut self.framed, framed));
        let transport = output.transport();
        if bytes > 0 {
            let own = mem::take(&mut self.own);
            self.sends.push(bytes, Batch { bytes: bytes - own, ..mem::take(&mut self.written) });
        }
        // Also when nothing was written now: a `Sent` may be older than what is queued. Without another one, requests
        // that wait for room would wait for ever.
        if !self.sends.is_empty() && !mem::replace(&mut self.asked, true) {
            transport.want_sent();
        }
        if self.state == State::Draining && self.pending == 0 && self.sends.is_empty() {
            transport.close();
            self.release(state);
        }
        state.keep_frames(output.into_buffer());
    }

    fn has_room<T: Transport>(&self, output: &FrameOutput<'_, T>) -> bool {
        output.waiting() <= HIGH_WATER
    }

    /// Returns when it expires.
    fn set_timer(&self, state: &mut HttpState, at: u64, stream: Stream) -> Option<u64> {
        // Below MAX_STREAMS.
        state.timers.push(at, (self.conn, stream.slot() as u32));
        Some(at)
    }

    fn pending(&self, stream: Stream) -> Option<&PendingRequest> {
        let pending = self.streams.get(stream.slot())?.as_ref()?;
        (pending.request.stream == stream).then_some(pending)
    }

    fn insert(&mut self, pending: PendingRequest) {
        let slot = pending.request.stream.slot();
        if self.streams.len() <= slot {
            self.streams.resize_with(slot + 1, || None);
        }
        self.buffered += pending.request.echoed.body().len();
        self.pending += 1;
        self.streams[slot] = Some(pending);
    }

    fn remove(&mut self, stream: Stream) -> Option<PendingRequest> {
        self.pending(stream)?;
        let pending = self.streams[stream.slot()].take()?;
        self.pending -= 1;
        self.buffered -= pending.request.echoed.body().len();
        Some(pending)
    }

    fn account_sent(&mut self, unsent: usize, state: &HttpState) {
        let (_, Batch { responses, values, bytes }) = self.sends.account(unsent);
        self.in_flight -= responses;
        let counters = state.counters();
        counters.bytes_out.add(bytes);
        counters.body_bytes_out.add(values);
        counters.answered.add(responses);
    }

    fn failed(&mut self, state: &mut HttpState, unsent: usize, reset: bool) {
        self.account_sent(unsent, state);
        if reset {
            state.counters().connections_reset.add(1);
        }
        self.release(state);
    }

    fn drop_all(&mut self, state: &mut HttpState) {
        for slot in 0..self.streams.len() {
            if let Some(pending) = &self.streams[slot] {
                self.drop_stream(state, pending.request.stream);
            }
        }
    }

    fn release(&mut self, state: &mut HttpState) {
        self.drop_all(state);
        state.connection_closed(self.reader);
        self.state = State::Closed;
    }
}
