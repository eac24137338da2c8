//! Requests out, answers in, samples and counts.

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::h1::{AnswerEvent, WireError};

use super::seat::State;
use super::{Pace, SeatId, Worker};
use crate::clock::NEVER;
use crate::recorder::Phase;

impl Worker {
    /// A seat is free: gives it the next request, or lets it stand in line. `connected` tells whether it can send at
    /// once.
    pub(super) fn settle<I: Io>(&mut self, io: &mut I, id: SeatId, connected: bool, now: u64) {
        let due = match self.wanted(id) {
            Some(due) => Some(due),
            None => self.next_request(now),
        };
        match due {
            Some(due) if connected => self.request(io, id, due, now),
            Some(due) => {
                let seat = &mut self.seats[id as usize];
                seat.wants = true;
                seat.due = due;
                self.wanting += 1;
                self.enqueue(id);
            }
            None => {
                let seat = &mut self.seats[id as usize];
                seat.state = if connected { State::Idle } else { State::Fresh };
                self.wake_at[id as usize] = NEVER;
                if !seat.in_line {
                    seat.in_line = true;
                    self.free.push_back(id);
                }
            }
        }
    }

    /// Takes the request that a seat has been waiting to send.
    fn wanted(&mut self, id: SeatId) -> Option<u64> {
        let seat = &mut self.seats[id as usize];
        if !seat.wants {
            return None;
        }
        seat.wants = false;
        self.wanting -= 1;
        Some(seat.due)
    }

    /// The next request for a free seat, as its due time.
    pub(super) fn next_request(&mut self, now: u64) -> Option<u64> {
        match &mut self.pace {
            Pace::Open(backlog) => return backlog.pop(),
            Pace::Closed | Pace::Counted(_)
                if now >= self.end || !matches!(self.slab.phase, Phase::Warmup | Phase::Window) =>
            {
                return None;
            }
            Pace::Closed => {}
            Pace::Counted(0) => return None,
            Pace::Counted(left) => *left -= 1,
        }
        self.slab.counts.due += 1;
        self.tally(now).due += 1;
        Some(now)
    }

    /// Takes the seat that has been free longest.
    pub(super) fn next_free(&mut self) -> Option<(SeatId, bool)> {
        loop {
            let id = self.free.pop_front()?;
            let seat = &mut self.seats[id as usize];
            seat.in_line = false;
            match seat.state {
                State::Idle => return Some((id, true)),
                State::Fresh => return Some((id, false)),
                // It lost its connection while it stood in line.
                State::Down | State::Queued | State::Connecting | State::Busy => {}
            }
        }
    }

    fn request<I: Io>(&mut self, io: &mut I, id: SeatId, due: u64, now: u64) {
        let seat = &mut self.seats[id as usize];
        // Only seats with a connection are asked.
        let Some(conn) = seat.conn else { return };
        seat.state = State::Busy;
        seat.due = due;
        seat.sent = now;
        seat.answers.request_sent(self.plan.head);
        let mut bytes = self.plan.bytes.len();
        match self.plan.body {
            None => io.send(conn, &self.plan.bytes),
            Some(body) => {
                io.send_with(conn, &self.plan.bytes, body);
                bytes += body.len();
            }
        }
        self.wake_at[id as usize] = now + self.plan.timeout;
        self.busy += 1;
        self.slab.counts.sent += 1;
        self.slab.counts.bytes_out += bytes as u64;
        self.tally(due).sent += 1;
    }

    pub(super) fn on_data<I: Io>(&mut self, io: &mut I, id: SeatId, bytes: &[u8], now: u64) {
        self.slab.counts.bytes_in += bytes.len() as u64;
        let seat = &mut self.seats[id as usize];
        let mut rest = bytes;
        let end = loop {
            match seat.answers.next(&mut rest) {
                Ok(Some(AnswerEvent::Head(head))) => seat.answer.head(head.status, head.framing),
                Ok(Some(AnswerEvent::Body(piece))) => seat.answer.body(piece, &self.plan.check),
                Ok(Some(AnswerEvent::Informational(_))) => {}
                Ok(Some(AnswerEvent::End { keep_alive })) => break Ok(keep_alive),
                Ok(None) => return,
                Err(error) => break Err(error),
            }
        };
        match end {
            // One request at a time is in flight, so whatever follows its answer nobody asked for.
            Ok(_) if !rest.is_empty() => self.broken(io, id, &WireError::Unsolicited, now),
            Ok(keep_alive) => self.complete(io, id, keep_alive, now),
            Err(error) => self.broken(io, id, &error, now),
        }
    }

    /// The answer is whole.
    fn complete<I: Io>(&mut self, io: &mut I, id: SeatId, keep_alive: bool, now: u64) {
        let seat = &mut self.seats[id as usize];
        seat.fails = 0;
        let (due, sent) = (seat.due, seat.sent);
        let (status, size) = (seat.answer.status(), seat.answer.size());
        let verdict = self.plan.check.judge(&seat.answer);
        self.busy -= 1;

        let tally = self.tally(due);
        tally.status(status);
        tally.body_bytes += size;
        match verdict {
            Ok(()) => {
                tally.right += 1;
                self.slab.counts.right += 1;
                self.slab.counts.right_body_bytes += size;
                self.sample(due, Some(sent), now);
            }
            Err(kind) => self.fail(due, Some(sent), kind, now),
        }
        self.last = now;

        if keep_alive && !self.plan.close {
            self.settle(io, id, true, now);
            return;
        }
        if !self.plan.close {
            self.slab.counts.closed_by_peer += 1;
        }
        let seat = &mut self.seats[id as usize];
        if let Some(conn) = seat.conn.take() {
            io.close(conn);
        }
        seat.state = State::Down;
        self.up -= 1;
        self.retry(io, id, now);
    }

    /// What came is not HTTP, or not an answer to anything.
    fn broken<I: Io>(&mut self, io: &mut I, id: SeatId, _error: &WireError, now: u64) {
        let seat = &mut self.seats[id as usize];
        if seat.state == State::Busy {
            self.cut(io, id, ErrorKind::Protocol, now);
            return;
        }
        // Between answers some servers say why they close, with an answer to no request (408).
        self.slab.counts.closed_by_peer += 1;
        if let Some(conn) = seat.conn.take() {
            io.abort(conn);
        }
        self.lost(io, id, now);
    }

    /// Ends a busy connection and fails its request.
    pub(super) fn cut<I: Io>(&mut self, io: &mut I, id: SeatId, kind: ErrorKind, now: u64) {
        let seat = &mut self.seats[id as usize];
        let (due, sent) = (seat.due, seat.sent);
        if let Some(conn) = seat.conn.take() {
            io.abort(conn);
        }
        self.busy -= 1;
        self.wake_at[id as usize] = NEVER;
        self.fail(due, Some(sent), kind, now);
        self.lost(io, id, now);
    }

    pub(super) fn on_eof<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = &mut self.seats[id as usize];
        if seat.state == State::Busy {
            match seat.answers.on_eof() {
                // A body that lasts until the peer closes.
                Ok(true) => self.complete(io, id, false, now),
                Ok(false) | Err(_) => self.cut(io, id, ErrorKind::ClosedEarly, now),
            }
            return;
        }
        self.slab.counts.closed_by_peer += 1;
        if let Some(conn) = seat.conn.take() {
            io.close(conn);
        }
        self.lost(io, id, now);
    }

    /// A request ended without a right answer.
    pub(super) fn fail(&mut self, due: u64, sent: Option<u64>, kind: ErrorKind, now: u64) {
        self.sample(due, sent, now);
        self.tally(due).error(kind);
        self.slab.counts.error(kind);
        self.last = now;
    }

    /// Records a request that ended. One that was due in warm-up leaves no sample behind in the window.
    pub(super) fn sample(&mut self, due: u64, sent: Option<u64>, now: u64) {
        if due >= self.window || self.slab.phase == Phase::Warmup {
            self.slab.sample(due, sent, now);
        }
    }
}
