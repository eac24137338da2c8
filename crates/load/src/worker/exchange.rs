//! Sends requests and handles responses: it connects pacing, pool, protocol and recorder. An `impl` of `Worker`.

use std::fmt::Display;

use weir_model::load::ErrorKind;
use weir_net::{Conn, Io};

use super::Worker;
use super::connections::GOES_AWAY;
use super::pool::{NO_SLOT, SlotId, SlotState, Stream, StreamId, StreamState};
use crate::interval::Phase;
use crate::messages::MessageWatch;
use crate::plan::Plan;
use crate::protocol::{Encoded, Event, Protocol, Refusal, Responses};
use crate::request_ids::RequestIdWatch;

/// Fewer bytes than this are not worth an operation of their own: copying them costs less.
const LEAST_SKIPPED: u64 = 32 * 1024;

impl<P: Protocol> Worker<P> {
    /// The next request for a stream that is free at `now`, as its due time.
    #[inline]
    pub(super) fn next_request(&mut self, now: u64) -> Option<u64> {
        let due = self.pacing.next(now)?;
        if due.new {
            self.recorder.due(due.at, 1);
        }
        Some(due.at)
    }

    /// A stream of a connection that is up has nothing to do: it gets the next request, or stands by.
    #[inline]
    pub(super) fn assign_next<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, now: u64) {
        // Had another one been free, the request would have left with it.
        let waited = self.pool.none_free();
        if waited && self.pacing.is_open() {
            // A request that became due meanwhile waited for this stream, and not for the next look at the clock.
            self.count_due(now);
        }
        match self.next_request(now) {
            Some(due) => self.send_request(io, id, stream, due, now, waited),
            None => self.pool.release(id, stream),
        }
    }

    /// A stream of a connection that is up sends a request. `waited`: for a free connection.
    #[inline]
    pub(super) fn send_request<I: Io>(
        &mut self,
        io: &mut I,
        id: SlotId,
        stream: StreamId,
        due: u64,
        now: u64,
        waited: bool,
    ) {
        if self.transport.corked != id && !self.transport.out.is_empty() {
            // Bytes of another connection are not to be mixed with this one's.
            self.flush(io, self.transport.corked);
        }
        let nth = stream - self.pool.first_stream(id);
        let slot = &mut self.pool.slots[id as usize];
        let request = match self.plan.expectations.len() {
            1 => 0,
            _ => match self.pacing.recorded(due) {
                Some(recorded) => recorded,
                None => self.protocol.choose(&mut slot.session, slot.target, &mut self.generator),
            },
        };
        let out = &mut self.transport.out;
        let request_id = self.watches.ids.as_ref().map(RequestIdWatch::id);
        let refusal = match self.protocol.encode(&mut slot.session, nth, request, request_id, &mut self.generator, out)
        {
            Ok(Encoded::Ready(bytes, body)) => {
                let before = self.transport.flush(io, slot);
                self.recorder.counts().bytes_out += before + self.transport.send(io, slot, bytes, body);
                None
            }
            Ok(Encoded::Appended) => None,
            Err(refusal) => Some(refusal),
        };
        if self.transport.corked != id {
            self.flush(io, id);
        }
        if let Some(refusal) = refusal {
            return self.refused(io, id, stream, due, refusal, now);
        }
        self.pool.begin(id, stream, due, now, waited, self.plan.timeout);
        let carries = self.pool.stream(stream);
        carries.request = request;
        if let Some(ids) = &mut self.watches.ids {
            carries.request_id = ids.sent();
        }
        if !self.plan.paced.is_empty() {
            self.begin_messages(stream, now);
        }
        self.recorder.sent(due, request);
    }

    /// A connection did not take a request, which waits for the next stream that is free, of whatever connection.
    fn refused<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, due: u64, refusal: Refusal, now: u64) {
        self.pacing.give_back(due);
        self.pool.stream(stream).state = StreamState::Idle;
        if refusal == Refusal::Exhausted {
            self.pool.slot(id).remaining = 0;
        }
        if self.pool.slot(id).remaining == 0 {
            self.finish_if_unused(io, id, now);
        }
    }

    /// Bytes came.
    #[inline]
    pub(super) fn on_data<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        let overhead = if P::QUIC { weir_wire::quic::overhead(bytes) } else { 0 };
        self.recorder.counts().bytes_in += bytes.len() as u64 - overhead;
        if self.transport.tls.is_some() {
            self.receive_records(io, id, bytes, now);
        } else {
            self.receive(io, id, bytes, now);
        }
    }

    /// Plaintext came. What it leads to on this connection leaves together.
    #[inline]
    pub(super) fn receive<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        let overhead = if P::QUIC { weir_wire::quic::overhead(bytes) } else { 0 };
        self.recorder.counts().plaintext_in += bytes.len() as u64 - overhead;
        let conn = self.pool.slots[id as usize].conn;
        let before = std::mem::replace(&mut self.transport.corked, id);
        let streams = self.pool.streams_of(id);
        let streams = streams.start as usize..streams.end as usize;
        let mut rest = bytes;
        // As long as it is the same connection, and still there.
        while self.pool.slots[id as usize].conn == conn {
            let session = &mut self.pool.slots[id as usize].session;
            let expectations = &self.plan.expectations;
            let streams = &mut self.pool.streams[streams.clone()];
            let mut responses = Responses::new(streams, expectations, &mut self.watches, now);
            match self.protocol.receive(session, &mut rest, &mut responses, &mut self.transport.out) {
                Ok(None) => {
                    if self.may_skip {
                        let left = self.protocol.skippable(session, &mut responses);
                        if let (LEAST_SKIPPED.., Some(conn)) = (left, conn) {
                            io.skip(conn, left);
                        }
                    }
                    self.cancel_streams(io, id, now);
                    break;
                }
                Ok(Some(Event::Complete { stream, reusable })) => self.complete(io, id, stream, reusable, now),
                Ok(Some(event)) => self.on_rare_event(io, id, event, now),
                Err(error) => {
                    self.protocol_failed(io, id, &error, now);
                    break;
                }
            }
        }
        self.leave_together(io, id, conn, before);
    }

    /// Cancels the streams of a connection that the load is to cancel in their middle, where that has come just now.
    #[inline]
    fn cancel_streams<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        if let Some(messages) = &mut self.watches.messages
            && std::mem::take(&mut messages.cancels_now)
        {
            self.cancel_streams_now(io, id, now);
        }
    }

    /// The same, where one is to be cancelled. Its messages so far are a response.
    #[cold]
    fn cancel_streams_now<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        for stream_id in self.pool.streams_of(id) {
            let stream = self.pool.stream(stream_id);
            if stream.state != StreamState::InFlight || !MessageWatch::is_cancelled(stream) {
                continue;
            }
            let nth = stream_id - self.pool.first_stream(id);
            let slot = &mut self.pool.slots[id as usize];
            slot.used = true;
            let at = io.now();
            let goes_on = self.protocol.cancel(&mut slot.session, nth, &mut self.transport.out);
            self.flush(io, id);
            let stream = self.pool.end(id, stream_id);
            self.recorder.response(stream, Ok(()), now);
            if let Some(messages) = &mut self.watches.messages {
                messages.cancelled(stream, at);
            }
            if !goes_on {
                return self.finish(io, id, now);
            }
            self.stream_ended(io, id, stream_id, true, now);
        }
    }

    /// Bytes came that nobody has to look at, and were dropped.
    pub(super) fn on_skipped<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: usize, now: u64) {
        let bytes = bytes as u64;
        let counts = self.recorder.counts();
        counts.bytes_in += bytes;
        counts.plaintext_in += bytes;
        let before = std::mem::replace(&mut self.transport.corked, id);
        let streams = self.pool.streams_of(id);
        let streams = &mut self.pool.streams[streams.start as usize..streams.end as usize];
        let slot = &mut self.pool.slots[id as usize];
        let conn = slot.conn;
        let mut responses = Responses::new(streams, &self.plan.expectations, &mut self.watches, now);
        let event = self.protocol.skipped(&mut slot.session, bytes, &mut responses);
        if let Some(Event::Complete { stream, reusable }) = event {
            self.complete(io, id, stream, reusable, now);
        }
        self.leave_together(io, id, conn, before);
    }

    /// Sends what was gathered for a connection, unless it is gone; `before` was gathering before it.
    #[inline]
    fn leave_together<I: Io>(&mut self, io: &mut I, id: SlotId, conn: Option<Conn>, before: SlotId) {
        if self.pool.slots[id as usize].conn == conn {
            self.flush(io, id);
        } else {
            // It was for the connection that is gone; there may be a new one already.
            self.transport.out.clear();
        }
        self.transport.corked = before;
    }

    /// What is not part of a response.
    fn on_rare_event<I: Io>(&mut self, io: &mut I, id: SlotId, event: Event, now: u64) {
        let first = self.pool.first_stream(id);
        match event {
            Event::Complete { .. } => {}
            Event::Failed { stream, kind } => {
                self.fail(id, first + stream, kind, now);
                self.stream_ended(io, id, first + stream, true, now);
            }
            Event::Unprocessed { stream } => {
                if self.pool.slot(id).used {
                    let stream = self.pool.end(id, first + stream);
                    let (due, request) = (stream.due, stream.request);
                    self.recorder.not_sent(due, request);
                    self.pacing.give_back(due);
                } else {
                    // A peer of which no connection is of any use would be asked for ever.
                    let due = self.pool.stream(first + stream).due;
                    self.watches.reasons.record(ErrorKind::ClosedEarly, &GOES_AWAY, due);
                    self.fail(id, first + stream, ErrorKind::ClosedEarly, now);
                }
                self.stream_ended(io, id, first + stream, true, now);
            }
            Event::Streams(streams) => self.on_streams(io, id, streams.min(self.plan.streams), now),
            Event::GoAway => {
                self.recorder.counts().closed_by_peer += 1;
                self.pool.slot(id).remaining = 0;
                self.finish_if_unused(io, id, now);
            }
            Event::Delivered { connection, message, bytes } => {
                // A broadcast has one thread, and that has all connections.
                let sender = connection as SlotId;
                let streams = self.pool.streams_of(sender);
                let streams = &mut self.pool.streams[streams.start as usize..streams.end as usize];
                let session = &mut self.pool.slots[sender as usize].session;
                let mut responses = Responses::new(streams, &self.plan.expectations, &mut self.watches, now);
                if let Some(stream) = self.protocol.delivered(session, message, bytes, &mut responses) {
                    self.complete(io, sender, stream, true, now);
                }
            }
        }
    }

    /// How many streams may be open is known, or has changed.
    fn on_streams<I: Io>(&mut self, io: &mut I, id: SlotId, streams: u32, now: u64) {
        if streams == 0 {
            // Some servers allow streams a little later. For those that never do there is the timeout.
            return;
        }
        self.pool.min_streams = self.pool.min_streams.min(streams);
        let slot = self.pool.slot(id);
        let had = std::mem::replace(&mut slot.streams, streams);
        match slot.state {
            SlotState::Handshaking => self.on_ready(io, id, now),
            SlotState::Up if streams != had => {
                self.pool.clear_free(id);
                for stream in self.pool.allowed_streams(id) {
                    if self.pool.slot(id).remaining > 0 && self.pool.stream(stream).state == StreamState::Idle {
                        self.assign_next(io, id, stream, now);
                    }
                }
            }
            _ => {}
        }
    }

    /// The peer broke the protocol.
    fn protocol_failed<I: Io>(&mut self, io: &mut I, id: SlotId, error: &P::Error, now: u64) {
        // The protocol may have told the peer why.
        self.flush(io, id);
        let slot = self.pool.slot(id);
        if slot.state == SlotState::Handshaking {
            self.handshake_failed(io, id, ErrorKind::Protocol, error.to_string(), now);
            return;
        }
        if slot.in_flight == 0 {
            // Between responses some servers say why they close, with a response to no request (408).
            self.ended_by_peer(ErrorKind::Protocol, || error.to_string());
        }
        self.record_reason(id, ErrorKind::Protocol, error);
        self.cut(io, id, ErrorKind::Protocol, now);
    }

    /// A response is complete: validates and counts it. `reusable`: the connection takes more requests.
    // A call would be felt in each response.
    #[inline(always)]
    pub(super) fn complete<I: Io>(&mut self, io: &mut I, id: SlotId, nth: u32, reusable: bool, now: u64) {
        let stream_id = self.pool.first_stream(id) + nth;
        let slot = self.pool.slot(id);
        if !slot.used {
            slot.used = true;
            slot.fails = 0;
            self.connector.used += 1;
        }
        let usable = reusable && slot.remaining > 0 && nth < slot.streams;
        let unsent = self.sends_bodies && slot.in_flight == 1 && slot.conn.is_some_and(|conn| io.unsent(conn) > 0);
        let stream = self.pool.end(id, stream_id);
        if unsent {
            stream.response.before_its_request();
        }
        let expectation = &self.plan.expectations[stream.request as usize];
        let verdict = match (stream.response.coded(), &mut self.watches.codings) {
            (Some(coded), Some(codings)) => codings.validate(expectation, &stream.response, coded),
            _ => expectation.validate(&stream.response),
        };
        let verdict = self.watches.end_messages(stream, verdict);
        let waited = now.saturating_sub(stream.due);
        self.recorder.response(stream, verdict, now);
        if self.recorder.phase() == Phase::Window {
            let slot = self.pool.slot(id);
            slot.responses += 1;
            slot.waited += waited;
        }
        if self.pacing.rest(stream_id, now) {
            self.pool.stream(stream_id).state = StreamState::Resting;
        } else if usable {
            return self.assign_next(io, id, stream_id, now);
        }
        self.stream_ended(io, id, stream_id, reusable, now);
    }

    /// A stream has ended, by a response or otherwise.
    fn stream_ended<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, reusable: bool, now: u64) {
        let slot = self.pool.slot(id);
        let exhausted = slot.remaining == 0;
        if !reusable || (exhausted && slot.in_flight == 0) {
            if !reusable && !self.plan.single_use {
                self.recorder.counts().closed_by_peer += 1;
            }
            return self.finish(io, id, now);
        }
        if exhausted {
            // The responses to come are the last of this connection.
            return;
        }
        let mut allowed = self.pool.allowed_streams(id);
        // Where the peer allows fewer streams than it did, one that had to wait for this one's end can go on.
        let next = if allowed.contains(&stream) {
            Some(stream)
        } else {
            allowed.find(|stream| self.pool.streams[*stream as usize].state == StreamState::Idle)
        };
        if let Some(next) = next
            && self.pool.stream(next).state == StreamState::Idle
        {
            self.assign_next(io, id, next, now);
        }
    }

    /// All that is in flight on a connection is about to fail for this reason.
    #[cold]
    pub(super) fn record_reason(&mut self, id: SlotId, kind: ErrorKind, reason: &dyn Display) {
        for stream in self.pool.streams_of(id) {
            let stream = self.pool.stream(stream);
            if stream.state == StreamState::InFlight {
                self.watches.reasons.record(Self::failure(&self.plan, stream, kind), reason, stream.due);
            }
        }
    }

    /// The kind of a request's failure. A key-value server's response has no head, and is nothing before it is whole.
    fn failure(plan: &Plan, stream: &Stream, kind: ErrorKind) -> ErrorKind {
        if plan.spec.keyvalue.is_none() { stream.failure(kind) } else { kind }
    }

    /// All that is in flight on a connection has failed.
    pub(super) fn fail_streams(&mut self, id: SlotId, kind: ErrorKind, now: u64) {
        if self.pool.slot(id).in_flight == 0 {
            return;
        }
        for stream in self.pool.streams_of(id) {
            if self.pool.stream(stream).state == StreamState::InFlight {
                self.fail(id, stream, kind, now);
            }
        }
    }

    /// The request of a stream ended without a whole response.
    fn fail(&mut self, id: SlotId, stream: StreamId, kind: ErrorKind, now: u64) {
        let stream = self.pool.end(id, stream);
        let kind = Self::failure(&self.plan, stream, kind);
        if let Some(messages) = &mut self.watches.messages {
            messages.abort(stream);
        }
        self.recorder.failed(stream, kind, now);
    }

    /// A stream began to wait for a response a timeout ago, or has done so again since.
    pub(super) fn check_response_timeout<I: Io>(&mut self, io: &mut I, stream_id: StreamId, now: u64) {
        let stream = self.pool.stream(stream_id);
        if stream.state != StreamState::InFlight {
            return;
        }
        // Of a stream, that no more comes.
        let heard = stream.messages.as_ref().map_or(0, |messages| messages.heard());
        let until = stream.sent.max(heard).saturating_add(self.plan.timeout);
        if until > now {
            self.pool.timeouts.watch(stream_id, until);
            return;
        }
        let id = self.pool.slot_of(stream_id);
        let nth = stream_id - self.pool.first_stream(id);
        debug_assert_eq!(self.transport.corked, NO_SLOT);
        let session = &mut self.pool.slots[id as usize].session;
        if self.protocol.cancel(session, nth, &mut self.transport.out) {
            self.flush(io, id);
            self.fail(id, stream_id, ErrorKind::Timeout, now);
            self.stream_ended(io, id, stream_id, true, now);
        } else {
            // Without its connection nothing behind it can be answered either.
            self.cut(io, id, ErrorKind::Timeout, now);
        }
    }
}
