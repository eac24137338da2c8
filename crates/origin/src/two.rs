//! One connection that speaks HTTP/2: streams in, answers out, each when its own time has come.
//!
//! Frames, windows and header compression are [`weir_wire::http2`]'s. What one event leads to leaves in one piece, and is
//! counted when the kernel has taken that piece.
//!
//! # Bounds
//! A peer that opens streams and reads nothing fills at most this: [`HIGH_WATER`] bytes in the driver and what went over
//! it (large bodies are not copied, or let out as room comes), [`MAX_STREAMS`] requests, holding at most
//! [`MAX_PAYLOAD`] bytes of bodies together.
//!
//! This module does not know what requests mean, nor whether there is TLS below.

mod out;
mod reply;

use std::collections::VecDeque;
use std::mem;
use std::time::Instant;

use weir_net::Conn;
use weir_wire::http2::{self, Server, ServerEvent, ServerOptions, Stream};

use crate::answer::Role;
use crate::counters::Protocol;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::flow::HIGH_WATER;
use crate::line::Line;
use crate::payload::MAX_PAYLOAD;
use crate::resolve::Resolved;
use crate::talk::Heard;
use crate::timers::TimerId;

use self::out::Out;
use self::reply::{Request, Slow};

/// Streams that a client may have open.
pub(crate) const MAX_STREAMS: u32 = 1024;
/// The timer of a connection that lingers; those of streams have the streams' slots.
const LINGER: u32 = u32::MAX;

/// One connection.
#[derive(Debug)]
pub(crate) struct Two {
    server: Server,
    conn: Conn,
    state: State,
    /// By the streams' slots.
    streams: Vec<Option<Pending>>,
    /// How many there are of those.
    pending: usize,
    /// Bytes of request bodies that they hold.
    given: usize,
    /// Slots of requests that wait for room in the driver, oldest first.
    no_room: VecDeque<Stream>,
    handed: Handed,
    /// Written in this event, and not yet handed over.
    written: Tally,
    in_flight: u64,
    requests: u64,
    /// The counters were read over it.
    reader: bool,
    /// [`weir_net::Event::Sent`] is asked for and has not come.
    asked: bool,
    linger: Option<TimerId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Nothing has been said.
    New,
    Open,
    /// Takes no more requests; closes when those that came are answered.
    Leaving,
    /// The peer broke the protocol and has been told; closes a while later.
    Lingering,
    Gone,
}

/// A request that is not answered to the end.
#[derive(Debug)]
struct Pending {
    request: Request,
    phase: Phase,
    timer: Option<TimerId>,
}

#[derive(Debug)]
enum Phase {
    /// Its body is still coming.
    Reading,
    /// It waits for its time, or for room; then this goes wrong.
    Waiting(Option<Fault>),
    /// Its answer is let out bit by bit.
    Slow(Box<Slow>),
    /// Its answer waits for the peer's window.
    Blocked,
    /// Its answer has stopped on purpose.
    Stalled,
}

/// What is written or handed over, of counted requests.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    answered: u64,
    body: u64,
    /// Bytes of the lab's own answers.
    own: u64,
}

/// What the driver was given and the kernel has not taken, event by event.
#[derive(Debug, Default)]
struct Handed {
    queued: u64,
    taken: u64,
    marks: VecDeque<(u64, u64, Tally)>,
}

impl Two {
    /// A new connection, whose first bytes are still to be read.
    pub(crate) fn new(conn: Conn) -> Two {
        let options = ServerOptions { max_streams: MAX_STREAMS, ..ServerOptions::default() };
        Two {
            server: Server::new(&options),
            conn,
            state: State::New,
            streams: Vec::new(),
            pending: 0,
            given: 0,
            no_room: VecDeque::new(),
            handed: Handed::default(),
            written: Tally::default(),
            in_flight: 0,
            requests: 0,
            reader: false,
            asked: false,
            linger: None,
        }
    }

    /// Whether the connection is no longer ours.
    pub(crate) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Deals with what happened.
    pub(crate) fn hear<L: Line>(&mut self, line: &mut L, desk: &mut Desk, heard: Heard<'_>) {
        match heard {
            Heard::Failed(unsent, reset) => return self.failed(desk, unsent, reset),
            Heard::Abort => {
                self.settle(line.unsent(), desk);
                line.abort();
                return self.forget(desk);
            }
            Heard::Broken => return self.forget(desk),
            _ => {}
        }
        self.settle(line.unsent(), desk);
        let mut out = Out::new(line, desk.frames());
        match heard {
            Heard::Data(bytes) => self.on_data(&mut out, desk, bytes),
            Heard::Sent => {
                self.asked = false;
                self.go_on(&mut out, desk);
            }
            Heard::Time(LINGER) => {
                self.linger = None;
                self.state = State::Leaving;
            }
            Heard::Time(slot) => self.on_time(&mut out, desk, slot as usize),
            Heard::Eof => self.leave(&mut out, desk, false),
            Heard::Stop => self.leave(&mut out, desk, true),
            Heard::Failed(..) | Heard::Abort | Heard::Broken => {}
        }
        self.hand_over(out, desk);
    }

    fn on_data<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, bytes: &[u8]) {
        if self.state == State::New {
            self.state = State::Open;
            self.server.start(out);
        }
        let mut input = bytes;
        while self.state < State::Lingering {
            let before = input.len();
            let event = match self.server.next(&mut input, out) {
                Ok(Some(event)) => event,
                Ok(None) => return desk.counters().bytes_in.add(before as u64),
                Err(_) => {
                    desk.counters().malformed.add(1);
                    self.linger(desk);
                    break;
                }
            };
            let read = (before - input.len()) as u64;
            let mut role = Role::Counted;
            match event {
                ServerEvent::Request { stream, head } => {
                    let (ends, expects_continue) = (head.ends, head.expects_continue);
                    let request = Request::new(desk, stream, &head);
                    role = request.role;
                    self.on_request(out, desk, request, ends, expects_continue);
                }
                ServerEvent::Data { stream, bytes } => {
                    let slot = self.streams.get_mut(stream.slot());
                    if let Some(Some(pending)) = slot
                        && pending.request.stream == stream
                    {
                        role = pending.request.role;
                        if role == Role::Counted {
                            desk.counters().body_bytes_in.add(bytes.len() as u64);
                        }
                        let others = self.given - pending.request.given.body().len();
                        pending.request.body(bytes, MAX_PAYLOAD.saturating_sub(self.given));
                        self.given = others + pending.request.given.body().len();
                    }
                }
                ServerEvent::End { stream } => self.on_end(out, desk, stream),
                ServerEvent::Sent { stream } => self.on_written(out, desk, stream),
                ServerEvent::Reset { stream, cause } => {
                    if matches!(cause, http2::ResetCause::Malformed(_)) {
                        desk.counters().malformed.add(1);
                    }
                    self.drop_stream(desk, stream);
                }
                ServerEvent::Malformed { .. } => desk.counters().malformed.add(1),
                ServerEvent::Settings | ServerEvent::GoAway { .. } => {}
            }
            if role == Role::Counted {
                desk.counters().bytes_in.add(read);
            }
        }
        desk.counters().bytes_in.add(input.len() as u64);
    }

    fn on_request<L: Line>(
        &mut self,
        out: &mut Out<'_, L>,
        desk: &mut Desk,
        request: Request,
        ends: bool,
        expects_continue: bool,
    ) {
        if request.role == Role::Counted {
            self.requests += 1;
            self.in_flight += 1;
            let counters = desk.counters();
            counters.request(self.requests, Protocol::Two);
            counters.request_two();
            counters.max_in_flight.raise(self.in_flight);
        } else {
            desk.own_request(request.resolved.source, &mut self.reader);
        }
        if ends {
            // What follows is its end, which has nothing more to say.
            return self.complete(out, desk, request);
        }
        if expects_continue && !request.too_large {
            // SendError only if the stream is gone, and then there is nobody to go on.
            let _ = self.server.interim(request.stream, 100, out);
        }
        self.keep(Pending { request, phase: Phase::Reading, timer: None });
    }

    fn on_end<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, stream: Stream) {
        let reads = self.pending(stream).is_some_and(|pending| matches!(pending.phase, Phase::Reading));
        if reads && let Some(pending) = self.take(stream) {
            self.complete(out, desk, pending.request);
        }
    }

    /// A request is complete: it is answered now, or when its time has come.
    fn complete<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, mut request: Request) {
        if request.too_large {
            request.resolved = std::rc::Rc::new(Resolved::too_large());
        }
        let (due, fault) = desk.fate(&request.resolved, request.role);
        if let Some(due) = due {
            let timer = Some(self.set_timer(desk, due, request.stream));
            return self.keep(Pending { request, phase: Phase::Waiting(fault), timer });
        }
        if !self.has_room(out) {
            self.no_room.push_back(request.stream);
            return self.keep(Pending { request, phase: Phase::Waiting(fault), timer: None });
        }
        self.answer(out, desk, request, fault);
    }

    fn on_time<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, slot: usize) {
        let Some(Some(pending)) = self.streams.get_mut(slot) else {
            return;
        };
        pending.timer = None;
        let stream = pending.request.stream;
        self.resume(out, desk, stream);
    }

    /// There is room again.
    fn go_on<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk) {
        for _ in 0..self.no_room.len() {
            if !self.has_room(out) {
                return;
            }
            if let Some(stream) = self.no_room.pop_front() {
                self.resume(out, desk, stream);
            }
        }
    }

    /// Goes on with a request that waited, if it is still there.
    fn resume<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, stream: Stream) {
        if self.pending(stream).is_none_or(|pending| pending.timer.is_some()) {
            return;
        }
        if !self.has_room(out) {
            return self.no_room.push_back(stream);
        }
        let Some(pending) = self.take(stream) else {
            return;
        };
        match pending.phase {
            Phase::Waiting(fault) => self.answer(out, desk, pending.request, fault),
            Phase::Slow(slow) => self.let_out(out, desk, pending.request, slow),
            phase => self.keep(Pending { phase, ..pending }),
        }
    }

    fn answer<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, mut request: Request, fault: Option<Fault>) {
        if fault.is_some() || (L::COPIES && request.is_large()) || request.resolved.plan.close {
            return self.answer_specially(out, desk, request, fault);
        }
        let before = out.written();
        let sent = request.answer(&mut self.server, desk, out);
        if request.role == Role::Own {
            self.written.own += out.written() - before;
        }
        match sent {
            Ok(http2::SendStatus::All) => self.wrote(desk, request),
            Ok(http2::SendStatus::Waiting) => self.keep(Pending { request, phase: Phase::Blocked, timer: None }),
            Err(_) => self.lost(&request),
        }
    }

    /// An answer has been written to the end.
    fn wrote(&mut self, desk: &mut Desk, request: Request) {
        if request.role == Role::Counted {
            self.written.answered += 1;
            self.written.body += request.body_length;
        }
        desk.give_back(request.given.into_buffer());
    }

    /// What the peer's window held up has been written: an answer to its end, or a piece of one.
    fn on_written<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, stream: Stream) {
        let piece = self.pending(stream).is_some_and(|pending| matches!(pending.phase, Phase::Slow(_)));
        if piece {
            self.resume(out, desk, stream);
        } else if let Some(pending) = self.take(stream) {
            self.wrote(desk, pending.request);
        }
    }

    /// A request that gets no answer, or no whole one.
    fn lost(&mut self, request: &Request) {
        if request.role == Role::Counted {
            self.in_flight -= 1;
        }
    }

    fn drop_stream(&mut self, desk: &mut Desk, stream: Stream) {
        if let Some(pending) = self.take(stream) {
            if let Some(timer) = pending.timer {
                desk.timers.cancel(timer);
            }
            self.lost(&pending.request);
        }
    }

    /// Takes no more requests, answers those that are complete, and closes. Those that wait for something that will not
    /// come are given up.
    fn leave<L: Line>(&mut self, out: &mut Out<'_, L>, desk: &mut Desk, says_so: bool) {
        if says_so && self.state == State::Open {
            self.server.go_away(out);
        }
        self.state = self.state.max(State::Leaving);
        for slot in 0..self.streams.len() {
            let Some(pending) = &self.streams[slot] else {
                continue;
            };
            let hopeless = match &pending.phase {
                Phase::Reading | Phase::Stalled => true,
                // Its window may still open, unless the peer has gone.
                Phase::Blocked => !says_so,
                Phase::Slow(slow) => slow.is_held() && !says_so,
                Phase::Waiting(_) => false,
            };
            if hopeless {
                self.drop_stream(desk, pending.request.stream);
            }
        }
    }

    /// The peer broke the protocol; it has been told, and gets a while to read that.
    fn linger(&mut self, desk: &mut Desk) {
        self.drop_all(desk);
        self.state = State::Lingering;
        self.linger = Some(desk.timers.set(Instant::now() + crate::flow::LINGER, (self.conn, LINGER)));
    }

    /// Gives what was written to the driver, and closes if nothing is left to wait for.
    fn hand_over<L: Line>(&mut self, mut out: Out<'_, L>, desk: &mut Desk) {
        if self.state == State::Gone {
            return desk.keep_frames(out.into_buffer());
        }
        out.flush();
        let bytes = out.written();
        let line = out.line();
        if bytes > 0 {
            self.handed.push(bytes, mem::take(&mut self.written));
        }
        // Also when nothing was written now: a `Sent` may be of before the queue filled again, and without another one
        // those that wait for room would wait for ever.
        if !self.handed.marks.is_empty() && !mem::replace(&mut self.asked, true) {
            line.want_sent();
        }
        if self.state == State::Leaving && self.pending == 0 && self.handed.marks.is_empty() {
            line.close();
            self.forget(desk);
        }
        desk.keep_frames(out.into_buffer());
    }

    fn has_room<L: Line>(&self, out: &Out<'_, L>) -> bool {
        out.waiting() <= HIGH_WATER
    }

    fn set_timer(&self, desk: &mut Desk, at: Instant, stream: Stream) -> TimerId {
        // Below MAX_STREAMS.
        desk.timers.set(at, (self.conn, stream.slot() as u32))
    }

    fn pending(&self, stream: Stream) -> Option<&Pending> {
        let pending = self.streams.get(stream.slot())?.as_ref()?;
        (pending.request.stream == stream).then_some(pending)
    }

    fn keep(&mut self, pending: Pending) {
        let slot = pending.request.stream.slot();
        if self.streams.len() <= slot {
            self.streams.resize_with(slot + 1, || None);
        }
        self.given += pending.request.given.body().len();
        self.pending += 1;
        self.streams[slot] = Some(pending);
    }

    fn take(&mut self, stream: Stream) -> Option<Pending> {
        self.pending(stream)?;
        let pending = self.streams[stream.slot()].take()?;
        self.pending -= 1;
        self.given -= pending.request.given.body().len();
        Some(pending)
    }

    fn settle(&mut self, unsent: usize, desk: &Desk) {
        let (bytes, tally) = self.handed.settle(unsent);
        self.in_flight -= tally.answered;
        let counters = desk.counters();
        counters.bytes_out.add(bytes - tally.own);
        counters.body_bytes_out.add(tally.body);
        counters.answered.add(tally.answered);
    }

    fn failed(&mut self, desk: &mut Desk, unsent: usize, reset: bool) {
        self.settle(unsent, desk);
        if reset {
            desk.counters().connections_reset.add(1);
        }
        self.forget(desk);
    }

    fn drop_all(&mut self, desk: &mut Desk) {
        for slot in 0..self.streams.len() {
            if let Some(pending) = &self.streams[slot] {
                self.drop_stream(desk, pending.request.stream);
            }
        }
    }

    fn forget(&mut self, desk: &mut Desk) {
        self.drop_all(desk);
        if let Some(timer) = self.linger.take() {
            desk.timers.cancel(timer);
        }
        desk.closed(self.reader);
        self.state = State::Gone;
    }
}

impl Handed {
    fn push(&mut self, bytes: u64, tally: Tally) {
        self.queued += bytes;
        self.marks.push_back((self.queued, bytes, tally));
    }

    /// What the kernel has taken since the last look: whole events only.
    fn settle(&mut self, unsent: usize) -> (u64, Tally) {
        let (mut sum, mut all) = (Tally::default(), 0);
        self.taken = self.taken.max(self.queued.saturating_sub(unsent as u64));
        while let Some(&(end, bytes, tally)) = self.marks.front()
            && end <= self.taken
        {
            self.marks.pop_front();
            all += bytes;
            sum.answered += tally.answered;
            sum.body += tally.body;
            sum.own += tally.own;
        }
        (all, sum)
    }
}
