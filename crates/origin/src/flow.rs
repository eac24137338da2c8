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

use weir_net::{Conn, Io};
use weir_wire::h1::{self, Framing, RequestHead, Version};

use crate::answer::{Answer, Given, Role};
use crate::desk::Desk;
use crate::handed::Handed;
use crate::payload::MAX_PAYLOAD;
use crate::resolve::{Resolved, Source};

/// Bytes queued in the driver above which answers wait in the connection's own queue.
pub(crate) const HIGH_WATER: usize = 256 << 10;
/// Most answers that wait on one connection.
pub(crate) const MAX_WAITING: usize = 4096;
/// How long a connection whose peer broke the protocol stays readable after the 400: closing while bytes still come
/// would reset it, and the peer might never see why.
const LINGER: Duration = Duration::from_millis(100);

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
    conn: Option<Conn>,
    state: State,
    /// Has carried a request that was not the lab's own.
    used: bool,
    /// [`weir_net::Event::Sent`] is asked for and has not come.
    asked: bool,
    /// A timer is set.
    timed: bool,
    /// Closes a while after the last answer, not at once.
    lingers: bool,
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

    /// Whether this is `conn` and still open.
    pub(crate) fn is(&self, conn: Conn) -> bool {
        self.open_conn() == Some(conn)
    }

    /// The connection, while it is open.
    pub(crate) fn open_conn(&self) -> Option<Conn> {
        self.conn.filter(|_| self.state != State::Gone)
    }

    /// Whether requests are still read.
    pub(crate) fn reads(&self) -> bool {
        self.state == State::Open
    }

    /// The kernel may have taken more since the last event: brings the books up to date.
    pub(crate) fn settle<I: Io>(&mut self, io: &I, conn: Conn, desk: &Desk) {
        if !self.handed.is_empty() {
            self.settle_at(io.unsent(conn), desk);
        }
    }

    fn settle_at(&mut self, unsent: usize, desk: &Desk) {
        let progress = self.handed.settle(unsent);
        self.in_flight -= progress.answered;
        let counters = desk.counters();
        counters.bytes_out.add(progress.bytes);
        counters.body_bytes_out.add(progress.body);
        counters.answered.add(progress.answered);
    }

    /// So many bytes were read, in the middle of whatever is being read.
    pub(crate) fn read(&mut self, bytes: usize, desk: &Desk) {
        match &self.current {
            None if self.reads() => self.unattributed += bytes as u64,
            Some(current) if current.role == Role::Own => {}
            _ => desk.counters().bytes_in.add(bytes as u64),
        }
    }

    /// A head is complete.
    pub(crate) fn on_head<I: Io>(
        &mut self,
        io: &mut I,
        conn: Conn,
        desk: &mut Desk,
        head: &RequestHead<'_>,
        read: usize,
    ) {
        let resolved = desk.cache.resolve(head.target);
        let role = if resolved.own { Role::Own } else { Role::Counted };
        let read = mem::take(&mut self.unattributed) + read as u64;
        self.count(desk, role, head, read);
        let given = match resolved.source {
            Source::Echo => Given::begin(desk.buffer(), h1::header(head.raw, "content-type").unwrap_or_default()),
            Source::Headers => {
                let mut given = Given::begin(desk.buffer(), b"");
                given.push(head.raw);
                given
            }
            Source::Fixed | Source::Books => Given::default(),
        };
        let announced = matches!(head.framing, Framing::Length(length) if length > MAX_PAYLOAD as u64);
        let too_large = resolved.source == Source::Echo && announced;
        let (version, head_only) = (head.version, head.method == b"HEAD");
        self.current = Some(Current { resolved, given, role, version, head_only, too_large });
        if head.expects_continue && head.framing != Framing::None {
            if too_large {
                // The peer has asked first: the answer is no, and it need not send the body.
                return self.on_end(io, conn, desk, false);
            }
            self.enqueue(io, conn, desk, Answer::interim());
        }
    }

    fn count(&mut self, desk: &Desk, role: Role, head: &RequestHead<'_>, read: u64) {
        let counters = desk.counters();
        if role == Role::Own {
            counters.own_requests.add(1);
            return;
        }
        if !mem::replace(&mut self.used, true) {
            counters.connections_used.add(1);
        }
        counters.request(head.version, head.connection);
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
    pub(crate) fn on_end<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk, keep_alive: bool) {
        let Some(current) = self.current.take() else {
            return;
        };
        let Current { resolved, given, role, version, head_only, too_large } = current;
        let resolved = if too_large { Rc::new(Resolved::too_large()) } else { resolved };
        let plan = &resolved.plan;
        // The clock is read for delays only.
        let due = (!plan.delay.is_zero()).then(|| Instant::now() + plan.delay);
        let ends_by_close = plan.chunked && version == Version::Http10;
        let close = !keep_alive || plan.close || ends_by_close;
        self.enqueue(io, conn, desk, Answer { resolved, given, due, role, head_only, version, close });
        if self.waiting.len() > MAX_WAITING || self.waiting_bytes > MAX_PAYLOAD {
            self.on_malformed(io, conn, desk, 400, &"too many requests wait for their answers");
        }
    }

    /// The peer broke the protocol (or the bounds): it is told, with this status, after the answers that are due to it.
    pub(crate) fn on_malformed<I: Io>(
        &mut self,
        io: &mut I,
        conn: Conn,
        desk: &mut Desk,
        status: u16,
        why: &dyn Display,
    ) {
        if !self.reads() {
            return;
        }
        let counters = desk.counters();
        counters.malformed.add(1);
        counters.bytes_in.add(mem::take(&mut self.unattributed));
        if self.current.take().is_some_and(|current| current.role == Role::Counted) {
            self.in_flight -= 1;
        }
        self.enqueue(io, conn, desk, Answer::malformed(status, why));
    }

    /// The peer will send no more. It may still read.
    pub(crate) fn on_eof<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk) {
        self.lingers = false;
        self.stop(io, conn, desk);
    }

    /// Reads no more, answers what is complete, and closes.
    pub(crate) fn stop<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk) {
        desk.counters().bytes_in.add(mem::take(&mut self.unattributed));
        self.current = None;
        self.state = self.state.max(State::Deaf);
        match self.waiting.back_mut() {
            Some(last) => last.close = true,
            None => self.state = self.state.max(State::Closing),
        }
        self.pump(io, conn, desk);
    }

    /// The connection is gone.
    pub(crate) fn on_failed<I: Io>(&mut self, io: &I, conn: Conn, desk: &Desk, reset: bool) {
        // A driver that has forgotten the connection says 0, which then does not mean that all was sent.
        let unsent = io.unsent(conn);
        if unsent > 0 {
            self.settle_at(unsent, desk);
        }
        if reset {
            desk.counters().connections_reset.add(1);
        }
        self.forget(desk);
    }

    /// Ends it now, whatever is under way.
    pub(crate) fn abort<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &Desk) {
        self.settle(io, conn, desk);
        io.abort(conn);
        self.forget(desk);
    }

    /// Everything that was queued has been taken.
    pub(crate) fn on_sent<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk) {
        self.asked = false;
        self.settle(io, conn, desk);
        self.pump(io, conn, desk);
    }

    /// The time that was asked for has come.
    pub(crate) fn on_time<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk) {
        self.timed = false;
        self.settle(io, conn, desk);
        if self.state == State::Closing {
            self.lingers = false;
        }
        self.pump(io, conn, desk);
    }

    fn enqueue<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk, answer: Answer) {
        if answer.close {
            self.state = self.state.max(State::Deaf);
        }
        if self.waiting.is_empty() && answer.due.is_none() && self.has_room(io, conn) {
            self.write(io, conn, desk, answer);
        } else {
            self.waiting_bytes += answer.given.body().len();
            self.waiting.push_back(answer);
            self.pump(io, conn, desk);
        }
    }

    /// Queues what can go, and closes when nothing is left to wait for.
    fn pump<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk) {
        while let Some(front) = self.waiting.front() {
            if let Some(due) = front.due
                && due > Instant::now()
            {
                return self.set_timer(due, conn, desk);
            }
            if !self.has_room(io, conn) {
                // Sent will come when it has.
                return;
            }
            if let Some(answer) = self.waiting.pop_front() {
                self.waiting_bytes -= answer.given.body().len();
                self.write(io, conn, desk, answer);
            }
        }
        if self.state == State::Closing && self.handed.is_empty() {
            if self.lingers {
                self.set_timer(Instant::now() + LINGER, conn, desk);
            } else {
                io.close(conn);
                self.forget(desk);
            }
        }
    }

    fn set_timer(&mut self, at: Instant, conn: Conn, desk: &mut Desk) {
        if !mem::replace(&mut self.timed, true) {
            desk.timers.set(at, conn);
        }
    }

    fn has_room<I: Io>(&self, io: &I, conn: Conn) -> bool {
        self.handed.is_empty() || io.unsent(conn) <= HIGH_WATER
    }

    fn write<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk, answer: Answer) {
        let written = desk.write(io, conn, &answer);
        self.handed.push(written, answer.role);
        if !mem::replace(&mut self.asked, true) {
            io.want_sent(conn);
        }
        if answer.close {
            // Nothing is behind it: requests are not read once an answer that closes is in the queue.
            self.state = State::Closing;
            self.lingers = answer.role == Role::Malformed;
        }
        desk.give_back(answer.given.into_buffer());
    }

    fn forget(&mut self, desk: &Desk) {
        desk.counters().bytes_in.add(mem::take(&mut self.unattributed));
        desk.closed();
        self.state = State::Gone;
        self.current = None;
        self.waiting.clear();
        self.waiting.shrink_to(64);
        self.handed.clear();
    }
}
