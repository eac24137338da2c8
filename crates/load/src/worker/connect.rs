//! Making connections, and what follows when one is lost.
//!
//! A lost connection is made again: at once if it had brought an answer, else after a pause that doubles from 10 ms
//! to half a second with each life that brought none. In a closed load the slot's next request becomes due when
//! that pause is over: whoever waits for weir's own pause does not wait for the product.
//!
//! A failed attempt ends the request that was waiting for this connection, if there was one. In an open load
//! requests wait for any connection, so only when no connection is up does a failed attempt end one: the oldest.

use std::cmp::Reverse;
use std::io;

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::http1::{Limits, ResponseParser};

use super::pool::{SlotState, StreamState};
use super::{RequestSource, SlotId, Worker};
use crate::clock::MILLI;
use crate::recorder::Phase;

/// The first pause, and the longest.
const PAUSE: u64 = 10 * MILLI;
const LONGEST_PAUSE: u64 = 500 * MILLI;

impl Worker {
    /// Puts a slot in the line of those that want to connect.
    pub(super) fn enqueue(&mut self, id: SlotId) {
        self.pool.slot(id).state = SlotState::Queued;
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

    fn connect<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let number = self.share.number(id);
        let source = self.plan.source(number, self.made);
        self.made += 1;
        if self.plan.connect_gap.is_some() && self.made <= u64::from(self.share.connections) {
            self.last_progress = now;
        }
        match io.connect(&self.plan.goal(number).address, source) {
            Ok(conn) => {
                let slot = conn.slot();
                if self.by_conn.len() <= slot {
                    self.by_conn.resize(slot + 1, 0);
                }
                self.by_conn[slot] = id;
                let slot = self.pool.slot(id);
                slot.conn = Some(conn);
                slot.state = SlotState::Connecting;
                slot.begun = now;
                self.connecting += 1;
                self.connect_timeouts.watch(id, now + self.plan.timeout);
            }
            Err(error) => self.connect_failed(id, kind_of(&error), error.to_string(), now),
        }
    }

    pub(super) fn on_connected<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        let took = now - slot.begun;
        slot.used = false;
        slot.answers = ResponseParser::new(Limits::default());
        if let Some(order) = &mut slot.order {
            order.clear();
        }
        self.connect_times.saturating_record(took);
        self.slab.counts.connections += 1;
        self.one_more();
        if !self.begin_tls(io, id, now) && !self.begin_http2(io, id) {
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
    pub(super) fn on_ready<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        self.connecting -= 1;
        self.up += 1;
        if self.up > self.max_up {
            self.max_up = self.up;
            self.last_progress = now;
        }
        let remaining = self.plan.remaining;
        let slot = self.pool.slot(id);
        slot.state = SlotState::Up;
        slot.remaining = remaining;
        let streams = slot.streams;
        let first = self.pool.first_stream(id);
        for stream in first + streams..first + self.plan.streams {
            // The peer allows fewer at a time than this connection has got.
            if self.pool.stream(stream).state == StreamState::Pending {
                let due = self.take_pending(id, stream);
                self.requeue(due);
            }
        }
        for stream in first..first + streams {
            let slot = self.pool.slot(id);
            if slot.remaining == 0 || slot.state != SlotState::Up {
                return;
            }
            match self.pool.stream(stream).state {
                StreamState::Pending => {
                    let due = self.take_pending(id, stream);
                    self.request(io, id, stream, due, now);
                }
                StreamState::Idle => self.assign_next(io, id, stream, now),
                StreamState::Free | StreamState::InFlight | StreamState::Thinking => {}
            }
        }
    }

    /// An attempt failed; the socket is gone.
    pub(super) fn connect_failed(&mut self, id: SlotId, kind: ErrorKind, detail: String, now: u64) {
        self.slab.counts.connect_failures += 1;
        if self.phase() == Phase::Connect {
            self.permanent_failures &= matches!(kind, ErrorKind::ConnectRefused | ErrorKind::Tls | ErrorKind::Protocol);
            self.connect_failure = Some((kind, detail));
        }
        let slot = self.pool.slot(id);
        slot.conn = None;
        slot.tls = None;
        slot.http2 = None;
        slot.state = SlotState::Down;
        slot.fails = slot.fails.saturating_add(1);
        let (fails, pending) = (slot.fails, slot.pending);
        self.backoffs.push(Reverse((now + pause(fails), id)));
        if pending > 0 {
            for stream in self.pool.streams_of(id) {
                if self.pool.stream(stream).state == StreamState::Pending {
                    let due = self.take_pending(id, stream);
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
    pub(super) fn close<I: Io>(&mut self, io: &mut I, id: SlotId) {
        self.close_http2(io, id);
        self.close_tls(io, id);
        if let Some(conn) = self.pool.slot(id).conn.take() {
            io.close(conn);
        }
    }

    /// A connection that was up is up no more.
    pub(super) fn down(&mut self, id: SlotId) {
        let slot = self.pool.slot(id);
        slot.conn = None;
        slot.tls = None;
        slot.http2 = None;
        slot.state = SlotState::Down;
        self.up -= 1;
        self.one_less();
        self.pool.clear_free(id);
    }

    /// A connection that was up is gone, and what was in flight has been counted.
    pub(super) fn lost<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        self.down(id);
        let slot = self.pool.slot(id);
        let fails = slot.fails;
        slot.fails = fails.saturating_add(1);
        if fails == 0 {
            self.retry(io, id, now);
        } else {
            self.backoffs.push(Reverse((now + pause(fails), id)));
        }
    }

    /// A slot without a connection may have one again.
    pub(super) fn retry<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let kept_up = match &self.pace {
            // For requests to come, as long as there may be some.
            RequestSource::Open(backlog) if !self.plan.close => self.phase() != Phase::Drain || backlog.waiting() > 0,
            _ => self.phase() == Phase::Connect,
        };
        if !kept_up {
            self.assign_pending(id, now);
        }
        if kept_up || self.pool.slot(id).pending > 0 {
            self.enqueue(id);
        } else {
            self.pool.slot(id).state = SlotState::OnDemand;
            self.pool.list_free(id);
        }
        self.connect_some(io);
    }

    /// Gives the streams of a slot without a connection the next requests, if there are any.
    fn assign_pending(&mut self, id: SlotId, now: u64) {
        let open = matches!(self.pace, RequestSource::Open(_));
        let streams = self.pool.first_stream(id)..self.pool.first_stream(id) + self.pool.slot(id).streams;
        for stream in streams {
            if open && self.pool.slot(id).pending > 0 {
                // Others may be free sooner.
                return;
            }
            if self.pool.stream(stream).state == StreamState::Idle {
                let Some(due) = self.next_request(now) else {
                    return;
                };
                self.set_pending(id, stream, due);
            }
        }
    }

    /// The connection failed; `unsent` bytes of those given to the driver did not leave.
    pub(super) fn on_failed<I: Io>(&mut self, io: &mut I, id: SlotId, error: &io::Error, unsent: usize, now: u64) {
        // Those of an earlier second are left where they are counted.
        self.slab.counts.bytes_out = self.slab.counts.bytes_out.saturating_sub(unsent as u64);
        let slot = self.pool.slot(id);
        slot.conn = None;
        match slot.state {
            SlotState::Connecting => {
                self.connecting -= 1;
                self.connect_failed(id, kind_of(error), error.to_string(), now);
                self.connect_some(io);
            }
            SlotState::Handshaking => {
                let (kind, when) = slot.handshake_stage();
                let detail = format!("{error} {when}");
                self.handshake_failed(io, id, kind.unwrap_or(ErrorKind::Reset), &detail, now);
            }
            SlotState::Up => {
                if slot.busy == 0 {
                    self.slab.counts.closed_by_peer += 1;
                }
                self.fail_streams(id, ErrorKind::Reset, now);
                self.lost(io, id, now);
            }
            // No socket, no event.
            SlotState::Down | SlotState::Queued | SlotState::OnDemand => {}
        }
    }

    /// A connection that was made could not be made use of.
    pub(super) fn handshake_failed<I: Io>(&mut self, io: &mut I, id: SlotId, kind: ErrorKind, detail: &str, now: u64) {
        if kind == ErrorKind::Tls
            && let Some(secure) = &mut self.secure
        {
            secure.counters.failed += 1;
        }
        if let Some(conn) = self.pool.slot(id).conn.take() {
            io.abort(conn);
        }
        self.one_less();
        self.connecting -= 1;
        self.connect_failed(id, kind, detail.to_owned(), now);
        self.connect_some(io);
    }

    /// A connection is not made in time.
    pub(super) fn connect_late<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        if slot.state == SlotState::Handshaking {
            let (_, when) = slot.handshake_stage();
            let detail = format!("no word from the peer {when}");
            self.handshake_failed(io, id, ErrorKind::ConnectTimeout, &detail, now);
            return;
        }
        let detail = "no answer to the attempt to connect";
        if let Some(conn) = slot.conn.take() {
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
