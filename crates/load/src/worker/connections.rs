//! Makes connections, and makes them again when they are lost. An `impl` of `Worker`.
//!
//! A connection that brought a response is made again when a request is due for it, whoever ended it: so the request's
//! latency has connecting in it. In a closed load that is at once. Before the load begins connections are made ahead of their requests,
//! unless each carries one. In an open load so are those in place of recycled ones, and of those that brought no response. After one that
//! brought none a backoff comes first: 10 ms, doubled up to half a second with each such connection in a row. In a closed load the
//! stream's next request becomes due only after the backoff, so that weir's own waiting is not counted as the product's latency.
//!
//! A failed attempt ends the requests that were waiting for this connection. In an open load requests wait for any
//! connection, so a failed attempt ends one only when no connection is up: the oldest.

use std::io;

use weir_model::load::ErrorKind;
use weir_net::Io;

use super::Worker;
use super::pool::{SlotId, SlotState, StreamState};
use crate::interval::Phase;
use crate::protocol::Protocol;
use crate::quic;

/// What a peer does that is not there, or has no QUIC.
pub(super) const NO_RESPONSE_OVER_UDP: &str = "no response to the attempt to connect over UDP, which QUIC needs";

/// What a peer does that takes no more requests.
pub(super) const GOES_AWAY: &str = "the peer goes away (GOAWAY)";

impl<P: Protocol> Worker<P> {
    /// A slot waits for its turn to connect.
    pub(super) fn enqueue(&mut self, id: SlotId) {
        self.pool.slot(id).state = SlotState::Queued;
        self.connector.enqueue(id);
    }

    /// While the first connections are made: since when.
    pub(super) fn first_since(&self) -> Option<u64> {
        (self.recorder.phase() == Phase::Connect).then(|| self.recorder.interval_start())
    }

    /// Begins as many connections as may be made at a time.
    pub(super) fn connect_some<I: Io>(&mut self, io: &mut I) {
        while self.connector.has_next() {
            let now = io.now();
            let Some(id) = self.connector.next(self.first_since(), now) else {
                return;
            };
            self.connect(io, id, now);
        }
    }

    fn connect<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let number = self.share.number(id);
        let source = self.plan.source(number, self.connector.attempts);
        self.connector.attempt(now);
        self.pool.slot(id).used = false;
        match io.connect(&self.plan.target(number).address, source) {
            Ok(conn) => {
                self.pool.bind(id, conn);
                let slot = self.pool.slot(id);
                slot.state = SlotState::Connecting;
                slot.connecting_since = now;
                self.connector.begin(id, now);
            }
            Err(error) => self.connect_failed(id, kind_of(&error), error.to_string(), now),
        }
    }

    /// A socket is connected.
    pub(super) fn on_connected<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        self.connector.times.saturating_record(now - slot.connecting_since);
        self.connector.open += 1;
        self.shared.opened();
        self.recorder.counts().connections += 1;
        self.send_proxy_header(io, id);
        if !self.begin_tls(io, id, now) {
            self.begin_session(io, id, now);
        }
        self.connect_some(io);
    }

    /// The protocol begins on a connection.
    pub(super) fn begin_session<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let number = self.share.number(id);
        let slot = self.pool.slot(id);
        slot.state = SlotState::Handshaking;
        let ready = self.protocol.connect(&mut slot.session, number, &mut self.transport.out);
        self.flush(io, id);
        if ready {
            self.on_ready(io, id, now);
        }
    }

    /// A connection can carry requests.
    pub(super) fn on_ready<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        self.connector.ready(now);
        let slot = self.pool.slot(id);
        slot.state = SlotState::Up;
        slot.remaining = self.plan.requests_per_connection;
        if let (Some(ages), Some(most)) = (&mut self.connector.ages, self.plan.recycle) {
            slot.connected_at = now;
            ages.watch(id, now + most);
        }
        let allowed = self.pool.allowed_streams(id);
        for stream in allowed.end..self.pool.streams_of(id).end {
            // The peer allows fewer at a time than wait for this connection.
            if let Some(due) = self.pool.take_pending(id, stream) {
                self.pacing.give_back(due);
            }
        }
        for stream in allowed {
            if self.pool.slot(id).state != SlotState::Up {
                return;
            }
            match self.pool.take_pending(id, stream) {
                Some(due) => self.send_request(io, id, stream, due, now, true),
                None if self.pool.stream(stream).state == StreamState::Idle => self.assign_next(io, id, stream, now),
                None => {}
            }
        }
    }

    /// An attempt failed; the socket is gone.
    fn connect_failed(&mut self, id: SlotId, kind: ErrorKind, detail: String, now: u64) {
        self.recorder.counts().connect_failures += 1;
        self.disconnect(id);
        let slot = self.pool.slot(id);
        slot.fails = slot.fails.saturating_add(1);
        let (fails, pending) = (slot.fails, slot.pending);
        self.connector.back_off(id, fails, now);
        if pending > 0 {
            for stream in self.pool.streams_of(id) {
                if let Some(due) = self.pool.take_pending(id, stream) {
                    self.fail_unsent(due, kind, &detail, now);
                }
            }
        } else if self.connector.up == 0
            && let Some(due) = self.pacing.oldest()
        {
            self.fail_unsent(due, kind, &detail, now);
        }
        self.note_failure(kind, || detail);
    }

    /// A request ended for want of a connection.
    fn fail_unsent(&mut self, due: u64, kind: ErrorKind, detail: &str, now: u64) {
        // The name of this kind says it all.
        if kind != ErrorKind::ConnectRefused {
            self.watches.reasons.record(kind, &detail, due);
        }
        self.recorder.failed_unsent(due, kind, now);
    }

    /// Makes a note of why a connection could not be made before the start, or ended again.
    #[cold]
    fn note_failure(&mut self, kind: ErrorKind, detail: impl FnOnce() -> String) {
        if self.recorder.phase() == Phase::Connect {
            self.connector.note_failure(kind, detail());
        }
    }

    /// The peer ended a connection on which nothing was in flight.
    #[cold]
    pub(super) fn ended_by_peer(&mut self, kind: ErrorKind, detail: impl FnOnce() -> String) {
        self.recorder.counts().closed_by_peer += 1;
        self.note_failure(kind, || format!("{} on a connection without a request", detail()));
    }

    /// Closes a connection in an orderly way.
    pub(super) fn close<I: Io>(&mut self, io: &mut I, id: SlotId) {
        self.say_goodbye(io, id);
        if let Some(conn) = self.pool.slot(id).conn.take() {
            io.close(conn);
        }
    }

    /// Closes a connection at once.
    fn abort<I: Io>(&mut self, io: &mut I, id: SlotId) {
        if let Some(conn) = self.pool.slot(id).conn.take() {
            io.abort(conn);
        }
    }

    fn one_less_open(&mut self) {
        self.connector.open -= 1;
        self.shared.closed();
    }

    /// A slot gives up its connection; its session keeps what is for the next.
    fn disconnect(&mut self, id: SlotId) {
        self.protocol.ended(&mut self.pool.slot(id).session);
        self.pool.disconnect(id);
    }

    /// A connection that was up is lost.
    fn down(&mut self, id: SlotId) {
        self.disconnect(id);
        self.connector.up -= 1;
        self.one_less_open();
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
            self.connector.back_off(id, fails, now);
        }
    }

    /// Ends a connection that carries no more requests.
    pub(super) fn finish<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        self.fail_streams(id, ErrorKind::ClosedEarly, now);
        self.close(io, id);
        if self.pool.slot(id).used {
            self.down(id);
            self.retry(io, id, now);
        } else {
            self.lost(io, id, now);
        }
    }

    /// A connection takes no more requests: it is closed with its last response.
    pub(super) fn finish_if_unused<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        match slot.state {
            SlotState::Up if slot.in_flight == 0 => {
                self.note_failure(ErrorKind::ClosedEarly, || GOES_AWAY.to_owned());
                self.finish(io, id, now);
            }
            SlotState::Handshaking => {
                self.handshake_failed(io, id, ErrorKind::ClosedEarly, GOES_AWAY.to_owned(), now);
            }
            _ => {}
        }
    }

    /// A connection became ready a recycling time ago, or its slot has another one since.
    pub(super) fn check_age<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let (Some(ages), Some(most)) = (&mut self.connector.ages, self.plan.recycle) else {
            return;
        };
        let slot = &mut self.pool.slots[id as usize];
        if slot.state != SlotState::Up {
            return;
        }
        if self.recorder.phase() == Phase::Connect {
            // The load begins when all connections are up.
            slot.connected_at = now;
        }
        let until = slot.connected_at.saturating_add(most);
        if until > now {
            return ages.watch(id, until);
        }
        // With the last response the connection is finished.
        slot.remaining = 0;
        if slot.in_flight == 0 {
            self.close(io, id);
            self.down(id);
            self.retry(io, id, now);
        }
    }

    /// Cuts a connection and fails all that is in flight on it.
    pub(super) fn cut<I: Io>(&mut self, io: &mut I, id: SlotId, kind: ErrorKind, now: u64) {
        self.abort(io, id);
        self.fail_streams(id, kind, now);
        self.lost(io, id, now);
    }

    /// A slot without a connection may connect again: ahead of its next request, or when that is due.
    pub(super) fn retry<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let ahead = match self.recorder.phase() {
            Phase::Connect => true,
            // As long as there may be later requests.
            Phase::Drain => self.is_made_ahead(id) && self.pacing.waiting() > 0,
            Phase::Warmup | Phase::Window => self.is_made_ahead(id),
        };
        if !ahead {
            self.assign_pending(id, now);
        }
        if ahead || self.pool.slot(id).pending > 0 {
            self.enqueue(id);
        } else {
            self.pool.slot(id).state = SlotState::OnDemand;
            self.pool.list_free(id);
        }
        self.connect_some(io);
    }

    /// A slot connects ahead of its next request while the load runs.
    fn is_made_ahead(&self, id: SlotId) -> bool {
        let replaced = self.plan.recycle.is_some() || !self.pool.slots[id as usize].used;
        self.pacing.is_open() && !self.plan.single_use && replaced
    }

    /// The load begins, and each request is to have a connection of its own. The one that showed that there is a target is closed, and
    /// all slots wait for a request.
    pub(super) fn begin_on_demand<I: Io>(&mut self, io: &mut I) {
        for id in 0..self.pool.len() {
            if self.pool.slot(id).state == SlotState::Up {
                self.close(io, id);
                self.down(id);
            }
            if self.pool.slot(id).state == SlotState::Down {
                self.pool.slot(id).state = SlotState::OnDemand;
                self.pool.list_free(id);
            }
        }
    }

    /// Gives the streams of a slot without a connection the next requests, if there are any.
    fn assign_pending(&mut self, id: SlotId, now: u64) {
        for stream in self.pool.allowed_streams(id) {
            if self.pacing.is_open() && self.pool.slot(id).pending > 0 {
                // Others may be free sooner.
                return;
            }
            if self.pool.stream(stream).state == StreamState::Idle {
                let Some(due) = self.next_request(now) else {
                    return;
                };
                self.pool.set_pending(id, stream, due);
            }
        }
    }

    /// Makes more connections for waiting requests, if none are being made for them and the load allows it.
    pub(super) fn grow(&mut self) {
        let streams = u64::from(self.plan.streams);
        // Connections that are being made are for the requests that wait for them, and have room for others.
        let waiting = self.pacing.waiting() + u64::from(self.pool.pending);
        while self.may_grow() && waiting > self.connector.under_way() * streams {
            let id = self.add_slot();
            self.enqueue(id);
        }
    }

    /// The connection failed; `unsent` bytes of those given to the driver did not leave.
    pub(super) fn on_failed<I: Io>(&mut self, io: &mut I, id: SlotId, error: &io::Error, unsent: usize, now: u64) {
        // Those of an earlier second are left where they are counted.
        let counts = self.recorder.counts();
        counts.bytes_out = counts.bytes_out.saturating_sub(unsent as u64);
        let slot = self.pool.slot(id);
        slot.conn = None;
        match slot.state {
            SlotState::Connecting => {
                let kind = kind_of(error);
                self.failed_handshakes += u64::from(kind == ErrorKind::Tls);
                self.attempt_failed(io, id, kind, error.to_string(), now);
            }
            SlotState::Handshaking => {
                let (kind, when) = self.handshake_stage(id);
                self.handshake_failed(io, id, kind.unwrap_or(ErrorKind::Reset), format!("{error} {when}"), now);
            }
            SlotState::Up => {
                if slot.in_flight == 0 {
                    self.ended_by_peer(ErrorKind::Reset, || error.to_string());
                } else if P::QUIC {
                    // It says more than that the connection was reset.
                    self.record_reason(id, ErrorKind::Reset, error);
                }
                self.fail_streams(id, ErrorKind::Reset, now);
                self.lost(io, id, now);
            }
            // No socket, no event.
            SlotState::Down | SlotState::Queued | SlotState::OnDemand => {}
        }
    }

    /// The peer will send no more.
    pub(super) fn on_eof<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        if slot.state == SlotState::Handshaking {
            let (kind, when) = self.handshake_stage(id);
            let detail = format!("the peer closed the connection {when}");
            self.handshake_failed(io, id, kind.unwrap_or(ErrorKind::ClosedEarly), detail, now);
        } else if slot.in_flight == 0 {
            self.ended_by_peer(ErrorKind::ClosedEarly, || "the peer's end".to_owned());
            self.close(io, id);
            self.lost(io, id, now);
        } else {
            match self.protocol.end_of_input(&mut slot.session) {
                Ok(stream) => self.complete(io, id, stream, false, now),
                Err(reason) => {
                    if let Some(reason) = reason {
                        self.record_reason(id, ErrorKind::ClosedEarly, &reason);
                    }
                    self.cut(io, id, ErrorKind::ClosedEarly, now);
                }
            }
        }
    }

    /// The kind of a failure during the handshake, if it is one of TLS, and a text that says when it happened.
    pub(super) fn handshake_stage(&self, id: SlotId) -> (Option<ErrorKind>, &'static str) {
        match &self.pool.slots[id as usize].tls {
            Some(session) if !session.ready() => (Some(ErrorKind::Tls), "during the TLS handshake"),
            _ => (None, P::NEGOTIATING),
        }
    }

    /// A connection was made but is unusable.
    pub(super) fn handshake_failed<I: Io>(
        &mut self,
        io: &mut I,
        id: SlotId,
        kind: ErrorKind,
        detail: String,
        now: u64,
    ) {
        if kind == ErrorKind::Tls
            && let Some(layer) = &mut self.transport.tls
        {
            layer.counters.failed += 1;
        }
        self.one_less_open();
        self.attempt_failed(io, id, kind, detail, now);
    }

    /// An attempt that had a socket failed.
    fn attempt_failed<I: Io>(&mut self, io: &mut I, id: SlotId, kind: ErrorKind, detail: String, now: u64) {
        self.abort(io, id);
        self.connector.connecting -= 1;
        self.connect_failed(id, kind, detail, now);
        self.connect_some(io);
    }

    /// A slot began to connect a timeout ago, or has done so again since.
    pub(super) fn check_connect_timeout<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        let until = slot.connecting_since.saturating_add(self.plan.connect_timeout);
        match slot.state {
            SlotState::Connecting | SlotState::Handshaking if until > now => self.connector.timeouts.watch(id, until),
            SlotState::Connecting => {
                let detail = if P::QUIC { NO_RESPONSE_OVER_UDP } else { "no response to the attempt to connect" };
                let detail = detail.to_owned();
                self.attempt_failed(io, id, ErrorKind::ConnectTimeout, detail, now);
            }
            SlotState::Handshaking => {
                let detail = format!("no word from the peer {}", self.handshake_stage(id).1);
                self.handshake_failed(io, id, ErrorKind::ConnectTimeout, detail, now);
            }
            SlotState::Down | SlotState::Queued | SlotState::OnDemand | SlotState::Up => {}
        }
    }
}

fn kind_of(error: &io::Error) -> ErrorKind {
    if let Some(kind) = quic::kind_of(error) {
        return kind;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::ConnectRefused,
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        _ => ErrorKind::ConnectFailed,
    }
}
