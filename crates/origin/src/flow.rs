//! One connection's requests and answers: in at one end, out at the other, in order.
//!
//! A request that is complete becomes an [`Answer`]. Answers leave in the order of their requests; one whose time
//! has not come holds up those behind it, as HTTP/1.1 wants. One that nothing holds up is handed to the driver
//! at once and never stands in the queue.
//!
//! # Bounds
//! A peer that sends requests and reads no answers fills at most this: [`HIGH_WATER`] bytes in the driver (and
//! the answer that went over it), [`MAX_WAITING`] answers in the queue, holding at most
//! [`MAX_PAYLOAD`] bytes of request bodies. What goes beyond is refused as malformed.
//!
//! This module does not know how bytes become requests.

use std::collections::VecDeque;
use std::fmt::Display;
use std::mem;
use std::rc::Rc;
use std::time::{Duration, Instant};

use weir_net::Conn;
use weir_wire::http1::{self, Framing, RequestHead, Version};

use crate::answer::{Answer, Given, Role, Written};
use crate::counters::Protocol;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::handed::Handed;
use crate::line::Line;
use crate::payload::MAX_PAYLOAD;
use crate::resolve::{Resolved, Source};
use crate::spoil::{self, Drip};
use crate::timers::TimerId;

/// Bytes queued in the driver above which answers wait in the connection's own queue.
pub(crate) const HIGH_WATER: usize = 256 << 10;
/// Most answers that wait on one connection.
pub(crate) const MAX_WAITING: usize = 4096;
/// How long a connection whose peer broke the protocol stays readable after the 400: closing while bytes still come
/// would reset it, and the peer might never see why.
pub(crate) const LINGER: Duration = Duration::from_millis(100);

/// One connection, without its parser.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The request whose body is being read.
    current: Option<Current>,
    /// Answers that something holds up.
    waiting: VecDeque<Answer>,
    /// Bytes of request bodies held by `waiting`.
    waiting_bytes: usize,
    handed: Handed,
    /// Bytes read of a head that is not complete: whose they are shows when it is.
    unattributed: u64,
    /// Counted requests without a complete answer.
    in_flight: u64,
    /// Counted requests.
    requests: u64,
    /// The counters were read over it.
    reader: bool,
    conn: Option<Conn>,
    state: State,
    /// [`weir_net::Event::Sent`] is asked for and has not come.
    asked: bool,
    /// The timer that is set.
    timer: Option<TimerId>,
    /// How it ends, once it is to end.
    end: End,
    /// An answer has stopped in the middle on purpose: nothing is sent until the peer gives up.
    stalled: bool,
    /// The answer that is let out slowly, before those that wait.
    drip: Option<Box<Drip>>,
}

/// How a connection ends after its last answer.
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

/// How far a connection is in its life. Only goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum State {
    /// Reads requests.
    #[default]
    Open,
    /// Reads no more requests; answers are still to be queued.
    Deaf,
    /// The last answer is queued, or there is none.
    Closing,
    /// No longer ours.
    Gone,
}

/// A request of which the head has come.
#[derive(Debug)]
struct Current {
    resolved: Rc<Resolved>,
    given: Given,
    role: Role,
    version: Version,
    head_only: bool,
    /// Its body cannot be echoed.
    too_large: bool,
}

impl Flow {
    /// A new connection in place of an old one.
    pub(crate) fn begin(&mut self, conn: Conn) {
        debug_assert!(self.waiting.is_empty() && self.handed.is_empty());
        *self = Flow {
            conn: Some(conn),
            waiting: mem::take(&mut self.waiting),
            handed: mem::take(&mut self.handed),
            ..Flow::default()
        };
    }

    /// Its connection.
    pub(crate) fn conn(&self) -> Option<Conn> {
        self.conn
    }

    /// Whether the connection is no longer ours.
    pub(crate) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Whether requests are still read.
    pub(crate) fn reads(&self) -> bool {
        self.state == State::Open
    }

    /// The kernel may have taken more since the last event: brings the counters up to date.
    #[inline]
    pub(crate) fn settle<L: Line>(&mut self, line: &L, desk: &Desk) {
        if !self.handed.is_empty() {
            self.settle_at(line.unsent(), desk);
        }
    }

    #[inline]
    fn settle_at(&mut self, unsent: usize, desk: &Desk) {
        let progress = self.handed.settle(unsent);
        self.in_flight -= progress.answered;
        let counters = desk.counters();
        counters.bytes_out.add(progress.bytes);
        counters.body_bytes_out.add(progress.body);
        counters.answered.add(progress.answered);
    }

    /// So many bytes were read, in the middle of whatever is being read.
    #[inline]
    pub(crate) fn read(&mut self, bytes: usize, desk: &Desk) {
        match &self.current {
            None if self.reads() => self.unattributed += bytes as u64,
            Some(current) if current.role == Role::Own => {}
            _ => desk.counters().bytes_in.add(bytes as u64),
        }
    }

    /// A head is complete.
    pub(crate) fn on_head<L: Line>(&mut self, line: &mut L, desk: &mut Desk, head: &RequestHead<'_>, read: usize) {
        let resolved = desk.cache.resolve(head.target);
        let role = if resolved.own { Role::Own } else { Role::Counted };
        let read = mem::take(&mut self.unattributed) + read as u64;
        self.count(desk, role, resolved.source, head, read);
        let given = match resolved.source {
            Source::Echo => Given::begin(desk.buffer(), http1::header(head.raw, "content-type").unwrap_or_default()),
            Source::Headers => {
                let mut given = Given::begin(desk.buffer(), b"");
                given.push(head.raw);
                given
            }
            Source::Fixed | Source::Counters => Given::default(),
        };
        let announced = matches!(head.framing, Framing::Length(length) if length > MAX_PAYLOAD as u64);
        let too_large = resolved.source == Source::Echo && announced;
        let (version, head_only) = (head.version, head.method == b"HEAD");
        self.current = Some(Current { resolved, given, role, version, head_only, too_large });
        if head.expects_continue && head.framing != Framing::None {
            if too_large {
                // The peer has asked first: the answer is no, and it need not send the body.
                return self.on_end(line, desk, false);
            }
            self.enqueue(line, desk, Answer::interim());
        }
    }

    #[inline]
    fn count(&mut self, desk: &Desk, role: Role, source: Source, head: &RequestHead<'_>, read: u64) {
        if role == Role::Own {
            desk.own_request(source, &mut self.reader);
            return;
        }
        let counters = desk.counters();
        self.requests += 1;
        counters.request(self.requests, Protocol::One);
        counters.request_one(head.version, head.connection);
        counters.bytes_in.add(read);
        self.in_flight += 1;
        counters.max_in_flight.raise(self.in_flight);
    }

    /// A piece of the body of the current request.
    pub(crate) fn on_body(&mut self, desk: &Desk, piece: &[u8]) {
        let Some(current) = &mut self.current else {
            return;
        };
        if current.role == Role::Counted {
            desk.counters().body_bytes_in.add(piece.len() as u64);
        }
        if current.resolved.source == Source::Echo && !current.too_large {
            if current.given.body().len() + piece.len() > MAX_PAYLOAD {
                // What follows is read and dropped, so that the connection can go on.
                current.too_large = true;
                current.given = Given::default();
            } else {
                current.given.push(piece);
            }
        }
    }

    /// The current request is complete.
    pub(crate) fn on_end<L: Line>(&mut self, line: &mut L, desk: &mut Desk, keep_alive: bool) {
        let Some(current) = self.current.take() else {
            return;
        };
        let Current { resolved, given, role, version, head_only, too_large } = current;
        let resolved = if too_large { Rc::new(Resolved::too_large()) } else { resolved };
        let (due, fault) = desk.fate(&resolved, role);
        let plan = &resolved.plan;
        let ends_by_close = plan.chunked && version == Version::Http10;
        let close = !keep_alive || plan.close || ends_by_close;
        self.enqueue(line, desk, Answer { resolved, given, due, fault, role, head_only, version, close });
        if self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_PAYLOAD {
            self.on_malformed(line, desk, 400, &"too many requests wait for their answers");
        }
    }

    /// The peer broke the protocol (or the bounds): it is told, with this status, after the answers that are due to it.
    pub(crate) fn on_malformed<L: Line>(&mut self, line: &mut L, desk: &mut Desk, status: u16, why: &dyn Display) {
        if !self.reads() {
            return;
        }
        let counters = desk.counters();
        counters.malformed.add(1);
        counters.bytes_in.add(mem::take(&mut self.unattributed));
        if self.current.take().is_some_and(|current| current.role == Role::Counted) {
            self.in_flight -= 1;
        }
        self.enqueue(line, desk, Answer::malformed(status, why));
    }

    /// The peer will send no more. It may still read.
    pub(crate) fn on_eof<L: Line>(&mut self, line: &mut L, desk: &mut Desk) {
        if self.end == End::Linger {
            self.end = End::Close;
        }
        self.stop(line, desk);
    }

    /// Reads no more, answers what is complete, and closes.
    pub(crate) fn stop<L: Line>(&mut self, line: &mut L, desk: &mut Desk) {
        desk.counters().bytes_in.add(mem::take(&mut self.unattributed));
        self.current = None;
        self.stalled = false;
        self.state = self.state.max(State::Deaf);
        match (self.waiting.back_mut(), &mut self.drip) {
            (Some(last), _) => last.close = true,
            (None, Some(drip)) => drip.close = true,
            (None, None) => self.state = self.state.max(State::Closing),
        }
        self.pump(line, desk);
    }

    /// The connection is gone, and the kernel has not taken so many bytes.
    pub(crate) fn on_failed(&mut self, desk: &mut Desk, unsent: usize, reset: bool) {
        self.settle_at(unsent, desk);
        if reset {
            desk.counters().connections_reset.add(1);
        }
        self.forget(desk);
    }

    /// Ends it now, whatever is under way.
    pub(crate) fn abort<L: Line>(&mut self, line: &mut L, desk: &mut Desk) {
        self.settle(line, desk);
        line.abort();
        self.forget(desk);
    }

    /// Everything that was queued has been taken.
    pub(crate) fn on_sent<L: Line>(&mut self, line: &mut L, desk: &mut Desk) {
        self.asked = false;
        self.settle(line, desk);
        // The word can be of before more was written in the same turn; without another, that would not be counted until
        // something else happens here.
        if !self.handed.is_empty() {
            self.ask(line);
        }
        self.pump(line, desk);
    }

    fn ask<L: Line>(&mut self, line: &mut L) {
        if !mem::replace(&mut self.asked, true) {
            line.want_sent();
        }
    }

    /// The time that was asked for has come.
    pub(crate) fn on_time<L: Line>(&mut self, line: &mut L, desk: &mut Desk) {
        self.timer = None;
        self.settle(line, desk);
        if self.state == State::Closing && self.end == End::Linger {
            self.end = End::Close;
        }
        self.pump(line, desk);
    }

    fn enqueue<L: Line>(&mut self, line: &mut L, desk: &mut Desk, answer: Answer) {
        if answer.close {
            self.state = self.state.max(State::Deaf);
        }
        if self.waiting.is_empty() && answer.due.is_none() && self.drip.is_none() && self.has_room(line) {
            self.write(line, desk, answer);
        } else {
            self.waiting_bytes += answer.given.body().len();
            self.waiting.push_back(answer);
            self.pump(line, desk);
        }
    }

    /// Queues what can go, and closes when nothing is left to wait for.
    fn pump<L: Line>(&mut self, line: &mut L, desk: &mut Desk) {
        if self.stalled {
            return;
        }
        if self.drip.is_some() && !self.drip_on(line, desk) {
            return;
        }
        while let Some(front) = self.waiting.front() {
            if let Some(due) = front.due
                && due > Instant::now()
            {
                return self.set_timer(due, desk);
            }
            if !self.has_room(line) {
                // Sent will come when it has.
                return;
            }
            if let Some(answer) = self.waiting.pop_front() {
                self.waiting_bytes -= answer.given.body().len();
                self.write(line, desk, answer);
                if self.stalled || self.drip.is_some() {
                    return;
                }
            }
        }
        if self.state == State::Closing && self.handed.is_empty() {
            match self.end {
                End::Linger => return self.set_timer(Instant::now() + LINGER, desk),
                End::Close => line.close(),
                End::Reset => line.abort(),
            }
            self.forget(desk);
        }
    }

    fn set_timer(&mut self, at: Instant, desk: &mut Desk) {
        if let (None, Some(conn)) = (self.timer, self.conn) {
            self.timer = Some(desk.timers.set(at, (conn, 0)));
        }
    }

    fn has_room<L: Line>(&self, line: &L) -> bool {
        self.handed.is_empty() || line.unsent() <= HIGH_WATER
    }

    #[inline]
    fn write<L: Line>(&mut self, line: &mut L, desk: &mut Desk, answer: Answer) {
        if answer.fault.is_some() {
            return self.write_spoiled(line, desk, answer);
        }
        if L::COPIES && answer.is_large() {
            return self.pour(line, desk, &answer);
        }
        let written = desk.write(line, &answer);
        self.hand(line, written, answer.role);
        if answer.close {
            self.last_is_queued(if answer.role == Role::Malformed { End::Linger } else { End::Close });
        }
        desk.give_back(answer.given.into_buffer());
    }

    /// Something was queued.
    fn hand<L: Line>(&mut self, line: &mut L, written: Written, role: Role) {
        self.handed.push(written, role);
        self.ask(line);
    }

    /// Nothing is behind it: requests are not read once an answer that closes is in the queue.
    fn last_is_queued(&mut self, end: End) {
        self.state = State::Closing;
        self.end = end;
    }

    #[cold]
    fn write_spoiled<L: Line>(&mut self, line: &mut L, desk: &mut Desk, mut answer: Answer) {
        let Some(fault) = answer.fault else {
            return;
        };
        desk.counters().fault(fault.kind());
        match fault {
            Fault::Status(status) => {
                let given = mem::take(&mut answer.given);
                desk.give_back(given.into_buffer());
                let resolved = Rc::new(Resolved::status_page(status));
                self.write(line, desk, Answer { resolved, fault: None, ..answer });
            }
            Fault::Length { .. } => {
                let written = desk.write(line, &answer);
                self.hand(line, written, answer.role);
                if answer.close {
                    self.last_is_queued(End::Close);
                }
            }
            Fault::Reset { middle: Some(true) } => self.cut(line, desk, &answer, false, Some(End::Reset)),
            Fault::Reset { .. } => {
                line.abort();
                self.forget(desk);
            }
            Fault::Close => self.cut(line, desk, &answer, false, Some(End::Close)),
            Fault::Stall => self.cut(line, desk, &answer, true, None),
            Fault::Drip(rate) => {
                let (rendered, written) = desk.render(&answer);
                self.drip = Some(Box::new(Drip::new(rendered, written, &answer, rate)));
                self.pump(line, desk);
            }
        }
    }

    /// Sends an answer as room comes, so that no copy of all of it is made.
    fn pour<L: Line>(&mut self, line: &mut L, desk: &mut Desk, answer: &Answer) {
        let (rendered, written) = desk.render(answer);
        self.drip = Some(Box::new(Drip::pour(rendered, written, answer)));
        self.pump(line, desk);
    }

    /// Sends an answer up to the end of its head, or to the middle of its body; then the connection ends, or stalls.
    /// Requests behind it get no answers.
    fn cut<L: Line>(&mut self, line: &mut L, desk: &mut Desk, answer: &Answer, in_head: bool, end: Option<End>) {
        let (mut rendered, written) = desk.render(answer);
        let (head, middle) = spoil::cuts(written);
        let bytes = rendered.let_out(if in_head { head } else { middle }, line) as u64;
        let before_body = written.before_body.min(bytes);
        self.hand(line, Written { bytes, body: bytes - before_body, before_body }, Role::Part);
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.state = State::Deaf;
        match end {
            Some(end) => self.last_is_queued(end),
            None => self.stalled = true,
        }
    }

    /// Lets out what is due of the answer that drips; true when all of it is out.
    fn drip_on<L: Line>(&mut self, line: &mut L, desk: &mut Desk) -> bool {
        let now = Instant::now();
        while let Some(drip) = &mut self.drip {
            if let Some(next) = drip.next()
                && next > now
            {
                self.set_timer(next, desk);
                return false;
            }
            if line.unsent() > HIGH_WATER {
                // Sent will come when there is room.
                return false;
            }
            let (written, role) = drip.drop_out(line);
            let (done, close) = (drip.is_done(), drip.close);
            self.hand(line, written, role);
            if done {
                self.drip = None;
                if close {
                    self.last_is_queued(End::Close);
                }
            }
        }
        true
    }

    /// The connection is no longer ours.
    pub(crate) fn forget(&mut self, desk: &mut Desk) {
        desk.counters().bytes_in.add(mem::take(&mut self.unattributed));
        desk.closed(self.reader);
        if let Some(timer) = self.timer.take() {
            desk.timers.cancel(timer);
        }
        self.state = State::Gone;
        self.current = None;
        self.drip = None;
        self.waiting.clear();
        self.waiting.shrink_to(64);
        self.waiting_bytes = 0;
        self.handed.clear();
    }
}
