//! Making connections, and what follows when one is lost.
//!
//! A lost connection is made again: at once if it had brought an answer, else after a pause that doubles from 10 ms
//! to half a second with each life that brought none. In a closed load the seat's next request becomes due when
//! that pause is over: whoever waits for weir's own pause does not wait for the product.
//!
//! A failed attempt ends the request that was waiting for this connection, if there was one. In an open load
//! requests wait for any connection, so only when no connection is up does a failed attempt end one: the oldest.

use std::cmp::Reverse;
use std::io;

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::http1::{Limits, ResponseParser};

use super::seat::{Does, State};
use super::{Pace, SeatId, Worker};
use crate::clock::MILLI;
use crate::recorder::Phase;

/// The first pause, and the longest.
const PAUSE: u64 = 10 * MILLI;
const LONGEST_PAUSE: u64 = 500 * MILLI;

impl Worker {
    /// Puts a seat in the line of those that want to connect.
    pub(super) fn enqueue(&mut self, id: SeatId) {
        self.pool.seat(id).state = State::Queued;
        self.queue.push_back(id);
    }

    /// Begins as many connections as may be made at a time.
    pub(super) fn connect_some<I: Io>(&mut self, io: &mut I) {
        while self.connecting < self.plan.connecting_at_once && !self.queue.is_empty() {
            let now = self.clock.now();
            if now < self.next_attempt() {
                return;
            }
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            self.connect(io, id, now);
        }
    }

    /// When the next attempt to connect may be made: while the first connections are made, the order may set a rate.
    pub(super) fn next_attempt(&self) -> u64 {
        match self.plan.connect_gap {
            Some(gap) if self.phase() == Phase::Connect => self.slab.start + (self.made as f64 * gap) as u64,
            _ => 0,
        }
    }

    fn connect<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let number = self.share.number(id);
        let source = self.plan.source(number, self.made);
        self.made += 1;
        if self.plan.connect_gap.is_some() && self.made <= u64::from(self.share.connections) {
            self.last_up = now;
        }
        match io.connect(&self.plan.goal(number).address, source) {
            Ok(conn) => {
                let slot = conn.slot();
                if self.by_slot.len() <= slot {
                    self.by_slot.resize(slot + 1, 0);
                }
                self.by_slot[slot] = id;
                let seat = self.pool.seat(id);
                seat.conn = Some(conn);
                seat.state = State::Connecting;
                seat.begun = now;
                self.connecting += 1;
                self.connect_patience.watch(id, now + self.plan.timeout);
            }
            Err(error) => self.connect_failed(id, kind_of(&error), error.to_string(), now),
        }
    }

    pub(super) fn on_connected<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = self.pool.seat(id);
        let took = now - seat.begun;
        seat.used = false;
        seat.answers = ResponseParser::new(Limits::default());
        if let Some(order) = &mut seat.order {
            order.clear();
        }
        self.connect_times.saturating_record(took);
        self.slab.counts.connections += 1;
        self.one_more();
        if !self.begin_secure(io, id, now) && !self.begin_two(io, id) {
            self.on_ready(io, id, now);
        }
        self.connect_some(io);
    }

    fn one_more(&mut self) {
        self.open += 1;
        self.shared.opened();
    }

    fn one_less(&mut self) {
        self.open -= 1;
        self.shared.closed();
    }

    /// A connection can carry requests.
    pub(super) fn on_ready<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        self.connecting -= 1;
        self.up += 1;
        if self.up > self.most_up {
            self.most_up = self.up;
            self.last_up = now;
        }
        let room = self.plan.room;
        let seat = self.pool.seat(id);
        seat.state = State::Up;
        seat.room = room;
        let lanes = seat.lanes;
        let first = self.pool.first_lane(id);
        for lane in first + lanes..first + self.plan.lanes {
            // The peer allows fewer at a time than this connection has got.
            if self.pool.lane(lane).does == Does::Want {
                let due = self.wanted(id, lane);
                self.give_back(due);
            }
        }
        for lane in first..first + lanes {
            let seat = self.pool.seat(id);
            if seat.room == 0 || seat.state != State::Up {
                return;
            }
            match self.pool.lane(lane).does {
                Does::Want => {
                    let due = self.wanted(id, lane);
                    self.request(io, id, lane, due, now);
                }
                Does::Nothing => self.settle(io, id, lane, now),
                Does::Free | Does::Wait | Does::Think => {}
            }
        }
    }

    /// An attempt failed; the socket is gone.
    pub(super) fn connect_failed(&mut self, id: SeatId, kind: ErrorKind, detail: String, now: u64) {
        self.slab.counts.connect_failures += 1;
        if self.phase() == Phase::Connect {
            self.hopeless &= matches!(kind, ErrorKind::ConnectRefused | ErrorKind::Tls | ErrorKind::Protocol);
            self.connect_failure = Some((kind, detail));
        }
        let seat = self.pool.seat(id);
        seat.conn = None;
        seat.tls = None;
        seat.two = None;
        seat.state = State::Down;
        seat.fails = seat.fails.saturating_add(1);
        let (fails, wants) = (seat.fails, seat.wants);
        self.pauses.push(Reverse((now + pause(fails), id)));
        if wants > 0 {
            for lane in self.pool.lanes_of(id) {
                if self.pool.lane(lane).does == Does::Want {
                    let due = self.wanted(id, lane);
                    self.fail_unsent(due, kind, now);
                }
            }
        } else if self.up == 0
            && let Some(due) = self.oldest_waiting()
        {
            self.fail_unsent(due, kind, now);
        }
    }

    /// Closes a connection in the orderly way.
    pub(super) fn close<I: Io>(&mut self, io: &mut I, id: SeatId) {
        self.close_two(io, id);
        self.close_secure(io, id);
        if let Some(conn) = self.pool.seat(id).conn.take() {
            io.close(conn);
        }
    }

    /// A connection that was up is up no more.
    pub(super) fn down(&mut self, id: SeatId) {
        let seat = self.pool.seat(id);
        seat.conn = None;
        seat.tls = None;
        seat.two = None;
        seat.state = State::Down;
        self.up -= 1;
        self.one_less();
        self.pool.forget_free(id);
    }

    /// A connection that was up is gone, and what was in flight has been counted.
    pub(super) fn lost<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        self.down(id);
        let seat = self.pool.seat(id);
        let fails = seat.fails;
        seat.fails = fails.saturating_add(1);
        if fails == 0 {
            self.retry(io, id, now);
        } else {
            self.pauses.push(Reverse((now + pause(fails), id)));
        }
    }

    /// A seat without a connection may have one again.
    pub(super) fn retry<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let kept_up = match &self.pace {
            // For requests to come, as long as there may be some.
            Pace::Open(backlog) if !self.plan.close => self.phase() != Phase::Drain || backlog.waiting() > 0,
            _ => self.phase() == Phase::Connect,
        };
        if !kept_up {
            self.find_wants(id, now);
        }
        if kept_up || self.pool.seat(id).wants > 0 {
            self.enqueue(id);
        } else {
            self.pool.seat(id).state = State::Fresh;
            self.pool.stand_in_line(id);
        }
        self.connect_some(io);
    }

    /// Gives the lanes of a seat without a connection the next requests, if there are any.
    fn find_wants(&mut self, id: SeatId, now: u64) {
        let open = matches!(self.pace, Pace::Open(_));
        let lanes = self.pool.first_lane(id)..self.pool.first_lane(id) + self.pool.seat(id).lanes;
        for lane in lanes {
            if open && self.pool.seat(id).wants > 0 {
                // Others may be free sooner.
                return;
            }
            if self.pool.lane(lane).does == Does::Nothing {
                let Some(due) = self.next_request(now) else {
                    return;
                };
                self.want(id, lane, due);
            }
        }
    }

    /// The connection failed; `unsent` bytes of those given to the driver did not leave.
    pub(super) fn on_failed<I: Io>(&mut self, io: &mut I, id: SeatId, error: &io::Error, unsent: usize, now: u64) {
        // Those of an earlier second are left where they are counted.
        self.slab.counts.bytes_out = self.slab.counts.bytes_out.saturating_sub(unsent as u64);
        let seat = self.pool.seat(id);
        seat.conn = None;
        match seat.state {
            State::Connecting => {
                self.connecting -= 1;
                self.connect_failed(id, kind_of(error), error.to_string(), now);
                self.connect_some(io);
            }
            State::Shaking => {
                let (kind, when) = seat.shaking();
                let detail = format!("{error} {when}");
                self.shaking_failed(io, id, kind.unwrap_or(ErrorKind::Reset), &detail, now);
            }
            State::Up => {
                if seat.busy == 0 {
                    self.slab.counts.closed_by_peer += 1;
                }
                self.fail_lanes(id, ErrorKind::Reset, now);
                self.lost(io, id, now);
            }
            // No socket, no event.
            State::Down | State::Queued | State::Fresh => {}
        }
    }

    /// A connection that was made could not be made use of.
    pub(super) fn shaking_failed<I: Io>(&mut self, io: &mut I, id: SeatId, kind: ErrorKind, detail: &str, now: u64) {
        if kind == ErrorKind::Tls
            && let Some(secure) = &mut self.secure
        {
            secure.counters.failed += 1;
        }
        if let Some(conn) = self.pool.seat(id).conn.take() {
            io.abort(conn);
        }
        self.one_less();
        self.connecting -= 1;
        self.connect_failed(id, kind, detail.to_owned(), now);
        self.connect_some(io);
    }

    /// A connection is not made in time.
    pub(super) fn connect_late<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = self.pool.seat(id);
        if seat.state == State::Shaking {
            let (_, when) = seat.shaking();
            let detail = format!("no word from the peer {when}");
            self.shaking_failed(io, id, ErrorKind::ConnectTimeout, &detail, now);
            return;
        }
        let detail = "no answer to the attempt to connect";
        if let Some(conn) = seat.conn.take() {
            io.abort(conn);
        }
        self.connecting -= 1;
        self.connect_failed(id, ErrorKind::ConnectTimeout, detail.to_owned(), now);
        self.connect_some(io);
    }
}

fn pause(fails: u8) -> u64 {
    let doublings = u32::from(fails.saturating_sub(1)).min(6);
    (PAUSE << doublings).min(LONGEST_PAUSE)
}

fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::ConnectRefused,
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        _ => ErrorKind::ConnectFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_second() {
        let ms: Vec<u64> = [1, 2, 3, 6, 7, 255].map(|f| pause(f) / MILLI).to_vec();
        assert_eq!(ms, [10, 20, 40, 320, 500, 500]);
    }
}
