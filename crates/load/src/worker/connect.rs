//! Making connections, and what follows when one is lost.
//!
//! A lost connection is made again: at once if it had brought an answer, else after a pause that doubles from 10 ms
//! to half a second with each life that brought none. In a closed load the seat's next request becomes due when
//! that pause is over: whoever waits for weir's own pause does not wait for the product.
//!
//! A failed attempt ends the request that was waiting for this connection, if there was one. In an open load
//! requests wait for any connection, so only when no connection is up does a failed attempt end one: the oldest.

use std::io;

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::h1::{Answers, Limits};

use super::seat::State;
use super::{CONNECTING_AT_ONCE, Pace, SeatId, Worker};
use crate::clock::{MILLI, NEVER};
use crate::recorder::Phase;

/// The first pause, and the longest.
const PAUSE: u64 = 10 * MILLI;
const LONGEST_PAUSE: u64 = 500 * MILLI;

impl Worker {
    /// Puts a seat in the line of those that want to connect.
    pub(super) fn enqueue(&mut self, id: SeatId) {
        self.seats[id as usize].state = State::Queued;
        self.wake_at[id as usize] = NEVER;
        self.queue.push_back(id);
    }

    /// Begins as many connections as may be made at a time.
    pub(super) fn connect_some<I: Io>(&mut self, io: &mut I) {
        while self.connecting < CONNECTING_AT_ONCE {
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            let now = self.clock.now();
            let source = self.plan.source(self.share.first + id, self.made);
            self.made += 1;
            match io.connect(self.plan.target, source) {
                Ok(conn) => {
                    let slot = conn.slot();
                    if self.by_slot.len() <= slot {
                        self.by_slot.resize(slot + 1, 0);
                    }
                    self.by_slot[slot] = id;
                    let seat = &mut self.seats[id as usize];
                    seat.conn = Some(conn);
                    seat.state = State::Connecting;
                    seat.begun = now;
                    self.wake_at[id as usize] = now + self.plan.timeout;
                    self.connecting += 1;
                }
                Err(error) => self.connect_failed(id, kind_of(&error), error.to_string(), now),
            }
        }
    }

    pub(super) fn on_connected<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = &mut self.seats[id as usize];
        seat.answers = Answers::new(Limits::default());
        let took = now - seat.begun;
        self.connect_times.saturating_record(took);
        self.slab.counts.connections += 1;
        self.connecting -= 1;
        self.up += 1;
        self.settle(io, id, true, now);
        self.connect_some(io);
    }

    /// An attempt failed; the socket is gone.
    pub(super) fn connect_failed(&mut self, id: SeatId, kind: ErrorKind, detail: String, now: u64) {
        self.slab.counts.connect_failures += 1;
        if self.phase() == Phase::Connect {
            self.only_refused &= kind == ErrorKind::ConnectRefused;
            self.connect_failure = Some((kind, detail));
        }
        let seat = &mut self.seats[id as usize];
        seat.conn = None;
        seat.state = State::Down;
        seat.fails = seat.fails.saturating_add(1);
        self.wake_at[id as usize] = now + pause(seat.fails);
        if seat.wants {
            seat.wants = false;
            let due = seat.due;
            self.wanting -= 1;
            self.fail(due, None, kind, now);
        } else if self.up == 0
            && let Some(due) = self.oldest_waiting()
        {
            self.fail(due, None, kind, now);
        }
    }

    /// A connection that was up is gone, and what was in flight has been counted.
    pub(super) fn lost<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = &mut self.seats[id as usize];
        seat.conn = None;
        seat.state = State::Down;
        let fails = seat.fails;
        seat.fails = fails.saturating_add(1);
        self.up -= 1;
        if fails == 0 {
            self.retry(io, id, now);
        } else {
            self.wake_at[id as usize] = now + pause(fails);
        }
    }

    /// A seat without a connection may have one again.
    pub(super) fn retry<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        self.wake_at[id as usize] = NEVER;
        let standing_by = match &self.pace {
            // Kept up for requests to come, as long as there may be some.
            Pace::Open(backlog) if !self.plan.close => self.phase() != Phase::Drain || backlog.waiting() > 0,
            _ => false,
        };
        if self.phase() == Phase::Connect || self.seats[id as usize].wants || standing_by {
            self.enqueue(id);
        } else {
            self.settle(io, id, false, now);
        }
        self.connect_some(io);
    }

    pub(super) fn on_failed<I: Io>(&mut self, io: &mut I, id: SeatId, error: &io::Error, now: u64) {
        let seat = &mut self.seats[id as usize];
        let (due, sent) = (seat.due, seat.sent);
        match seat.state {
            State::Connecting => {
                self.connecting -= 1;
                self.connect_failed(id, kind_of(error), error.to_string(), now);
                self.connect_some(io);
            }
            State::Busy => {
                self.busy -= 1;
                self.wake_at[id as usize] = NEVER;
                self.fail(due, Some(sent), ErrorKind::Reset, now);
                self.lost(io, id, now);
            }
            State::Idle => {
                self.slab.counts.closed_by_peer += 1;
                self.lost(io, id, now);
            }
            // No socket, no event.
            State::Down | State::Queued | State::Fresh => {}
        }
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
