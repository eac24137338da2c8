//! Requests out, complete answers in: what every protocol has in common.

use weir_model::load::ErrorKind;
use weir_net::Io;

use super::pool::{SlotState, StreamState};
use super::{RequestSource, SlotId, StreamId, Worker};
use crate::recorder::Phase;

impl Worker {
    /// A stream of a connection that is up has nothing to do: gives it the next request, or lets it stand by.
    pub(super) fn assign_next<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, now: u64) {
        match self.next_request(now) {
            Some(due) => self.request(io, id, stream, due, now),
            None => self.pool.give(id, stream),
        }
    }

    /// The next request for a stream that is free at `now`, as its due time.
    pub(super) fn next_request(&mut self, now: u64) -> Option<u64> {
        if self.leaves_queue() {
            return None;
        }
        if !self.returned.is_empty() {
            return self.returned.pop_front();
        }
        match &mut self.pace {
            RequestSource::Open(backlog) => return backlog.pop(),
            RequestSource::Closed | RequestSource::Counted(_)
                if now >= self.end || !matches!(self.slab.phase, Phase::Warmup | Phase::Window) =>
            {
                return None;
            }
            RequestSource::Closed => {}
            RequestSource::Counted(0) => return None,
            RequestSource::Counted(left) => *left -= 1,
        }
        self.slab.counts.due += 1;
        self.tally(now).due += 1;
        Some(now)
    }

    /// A stream has a request that cannot be sent yet.
    pub(super) fn set_pending(&mut self, id: SlotId, stream: StreamId, due: u64) {
        let stream = self.pool.stream(stream);
        stream.state = StreamState::Pending;
        stream.due = due;
        self.pool.slot(id).pending += 1;
        self.pending += 1;
    }

    /// Takes back the request that a stream has been waiting to send.
    pub(super) fn take_pending(&mut self, id: SlotId, stream: StreamId) -> u64 {
        let stream = self.pool.stream(stream);
        debug_assert_eq!(stream.state, StreamState::Pending);
        stream.state = StreamState::Idle;
        let due = stream.due;
        self.pool.slot(id).pending -= 1;
        self.pending -= 1;
        due
    }

    /// A stream of a connection that is up sends a request.
    pub(super) fn request<I: Io>(&mut self, io: &mut I, id: SlotId, stream_id: StreamId, due: u64, now: u64) {
        let slot = &mut self.pool.slots[id as usize];
        let stream = &mut self.pool.streams[stream_id as usize];
        let request = if self.plan.requests.len() == 1 { 0 } else { self.generator.choose(slot.target) };
        stream.request = request;
        if self.plan.http2.is_none() {
            self.send_http1(io, id, stream_id);
        } else if !self.send_http2(io, id, stream_id) {
            self.requeue(due);
            self.pool.stream(stream_id).state = StreamState::Idle;
            if self.pool.slot(id).remaining == 0 {
                self.close_used_up(io, id, now);
            }
            return;
        }
        let slot = &mut self.pool.slots[id as usize];
        slot.remaining = slot.remaining.saturating_sub(1);
        slot.busy += 1;
        let stream = &mut self.pool.streams[stream_id as usize];
        stream.state = StreamState::InFlight;
        stream.due = due;
        stream.sent = now;
        stream.first = 0;
        self.busy += 1;
        self.slab.counts.sent += 1;
        let tally = self.tally(due);
        tally.sent += 1;
        if let Some(of_request) = tally.of_request(request) {
            of_request.sent += 1;
        }
        self.timeouts.watch(stream_id, now + self.plan.timeout);
    }

    /// A request that its connection did not take waits for the next stream that is free, of whatever connection.
    pub(super) fn requeue(&mut self, due: u64) {
        self.returned.push_back(due);
    }

    /// The answer of a stream is whole. `keep_alive`: its connection can be used again.
    pub(super) fn complete<I: Io>(&mut self, io: &mut I, id: SlotId, stream_id: StreamId, keep_alive: bool, now: u64) {
        self.answered(id, stream_id, now);
        if self.plan.think.is_none() && keep_alive && self.pool.slots[id as usize].remaining > 0 {
            self.assign_next(io, id, stream_id, now);
        } else {
            self.pause(io, id, stream_id, keep_alive, now);
        }
    }

    /// Judges and counts the answer of a stream. The stream then has nothing to do.
    #[inline]
    pub(super) fn answered(&mut self, id: SlotId, stream_id: StreamId, now: u64) {
        let slot = &mut self.pool.slots[id as usize];
        slot.busy -= 1;
        if !slot.used {
            slot.used = true;
            slot.fails = 0;
            self.used += 1;
        }
        let stream = &mut self.pool.streams[stream_id as usize];
        stream.state = StreamState::Idle;
        let (due, sent) = (stream.due, stream.sent);
        let first = if stream.first == 0 { now } else { stream.first };
        let (status, size) = (stream.answer.status(), stream.answer.size());
        let request = stream.request;
        let verdict = self.plan.requests[request as usize].check.judge(&stream.answer);
        self.busy -= 1;

        let tally = self.tally(due);
        tally.status(status);
        tally.body_bytes += size;
        match verdict {
            Ok(()) => {
                tally.right += 1;
                if let Some(of_request) = tally.of_request(request) {
                    of_request.right += 1;
                }
                self.slab.counts.right += 1;
                self.slab.counts.right_body_bytes += size;
                self.sample(due, sent, first, now);
            }
            Err(kind) => {
                self.sample(due, sent, first, now);
                self.count_error(due, Some(request), kind);
            }
        }
        self.last = now;
    }

    /// What follows an answer where that is not simply the next request.
    fn pause<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, keep_alive: bool, now: u64) {
        if self.plan.think.is_some() {
            self.think(stream, now);
        }
        let slot = self.pool.slot(id);
        if keep_alive && slot.remaining > 0 {
            return;
        }
        if keep_alive && slot.busy > 0 {
            // The answers to come are the last of this connection.
            return;
        }
        if !keep_alive && !self.plan.close {
            self.slab.counts.closed_by_peer += 1;
        }
        self.fail_streams(id, ErrorKind::ClosedEarly, now);
        self.close(io, id);
        self.down(id);
        self.retry(io, id, now);
    }

    /// Cuts a connection and fails all that is in flight on it.
    pub(super) fn cut<I: Io>(&mut self, io: &mut I, id: SlotId, kind: ErrorKind, now: u64) {
        if let Some(conn) = self.pool.slot(id).conn.take() {
            io.abort(conn);
        }
        self.fail_streams(id, kind, now);
        self.lost(io, id, now);
    }

    /// All that is in flight on a connection has failed.
    pub(super) fn fail_streams(&mut self, id: SlotId, kind: ErrorKind, now: u64) {
        if self.pool.slot(id).busy == 0 {
            return;
        }
        for stream in self.pool.streams_of(id) {
            if self.pool.stream(stream).state == StreamState::InFlight {
                self.fail(id, stream, kind, now);
            }
        }
    }

    /// What a stream sent was certainly not looked at: it counts as not sent, and waits for another connection. (The second in
    /// which it left keeps it: then it was sent.)
    pub(super) fn return_unprocessed(&mut self, id: SlotId, stream: StreamId) {
        self.pool.slot(id).busy -= 1;
        self.busy -= 1;
        let stream = self.pool.stream(stream);
        stream.state = StreamState::Idle;
        let (due, request) = (stream.due, stream.request);
        let tally = self.tally(due);
        tally.sent -= 1;
        if let Some(of_request) = tally.of_request(request) {
            of_request.sent -= 1;
        }
        self.requeue(due);
    }

    /// The request of a stream ended without a right answer. The stream then has nothing to do.
    pub(super) fn fail(&mut self, id: SlotId, stream: StreamId, kind: ErrorKind, now: u64) {
        self.pool.slot(id).busy -= 1;
        self.busy -= 1;
        let stream = self.pool.stream(stream);
        stream.state = StreamState::Idle;
        let (due, sent, first) = (stream.due, stream.sent, stream.first);
        let request = stream.request;
        self.sample(due, sent, first, now);
        self.count_error(due, Some(request), kind);
        self.last = now;
    }

    /// A request ended before it could be sent, for want of a connection.
    pub(super) fn fail_unsent(&mut self, due: u64, kind: ErrorKind, now: u64) {
        self.sample_unsent(due, now);
        self.count_error(due, None, kind);
        self.last = now;
    }

    /// `request`: which of the order's requests it was, if it was sent.
    fn count_error(&mut self, due: u64, request: Option<u32>, kind: ErrorKind) {
        let tally = self.tally(due);
        tally.error(kind);
        if let Some(of_request) = request.and_then(|request| tally.of_request(request)) {
            of_request.errors += 1;
        }
        self.slab.counts.error(kind);
    }

    /// Records a request that ended, and of whose answer the first byte came at `first` (0: none came). One that was due
    /// in warm-up leaves no sample behind in the window.
    #[inline]
    fn sample(&mut self, due: u64, sent: u64, first: u64, now: u64) {
        if due >= self.window || self.slab.phase == Phase::Warmup {
            self.slab.sample(due, Some(sent), now);
            if first != now {
                self.slab.first_byte(sent, first, now);
            }
        }
    }

    pub(super) fn sample_unsent(&mut self, due: u64, now: u64) {
        if due >= self.window || self.slab.phase == Phase::Warmup {
            self.slab.sample(due, None, now);
        }
    }

    /// Bytes came.
    #[inline]
    pub(super) fn on_data<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        self.slab.counts.bytes_in += bytes.len() as u64;
        if self.secure.is_some() {
            self.on_records(io, id, bytes, now);
        } else if self.plan.http2.is_some() {
            self.on_frames(io, id, bytes, now);
        } else {
            self.on_answers(io, id, bytes, now);
        }
    }

    /// No answer in time.
    pub(super) fn time_out<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, now: u64) {
        if self.plan.http2.is_some() {
            self.cancel(io, id, stream, now);
        } else {
            // Without its connection nothing behind it can be answered either.
            self.cut(io, id, ErrorKind::Timeout, now);
        }
    }

    /// The peer will send no more.
    pub(super) fn on_eof<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        match slot.state {
            SlotState::Handshaking => {
                let (kind, when) = slot.handshake_stage();
                let detail = format!("the peer closed the connection {when}");
                self.handshake_failed(io, id, kind.unwrap_or(ErrorKind::ClosedEarly), &detail, now);
            }
            _ if slot.busy > 0 && self.plan.http2.is_some() => self.cut(io, id, ErrorKind::ClosedEarly, now),
            _ if slot.busy > 0 => self.end_answer(io, id, now),
            _ => {
                self.slab.counts.closed_by_peer += 1;
                self.close(io, id);
                self.lost(io, id, now);
            }
        }
    }
}
