//! Requests out, complete answers in: what every protocol has in common.

use weir_model::load::ErrorKind;
use weir_net::Io;

use super::seat::{Does, State};
use super::{LaneId, Pace, SeatId, Worker};
use crate::recorder::Phase;

impl Worker {
    /// A lane of a connection that is up has nothing to do: gives it the next request, or lets it stand by.
    pub(super) fn settle<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId, now: u64) {
        match self.next_request(now) {
            Some(due) => self.request(io, id, lane, due, now),
            None => self.pool.give(id, lane),
        }
    }

    /// The next request for a lane that is free at `now`, as its due time.
    pub(super) fn next_request(&mut self, now: u64) -> Option<u64> {
        if self.leaves_queue() {
            return None;
        }
        if !self.returned.is_empty() {
            return self.returned.pop_front();
        }
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

    /// A lane has a request that cannot be sent yet.
    pub(super) fn want(&mut self, id: SeatId, lane: LaneId, due: u64) {
        let lane = self.pool.lane(lane);
        lane.does = Does::Want;
        lane.due = due;
        self.pool.seat(id).wants += 1;
        self.wanting += 1;
    }

    /// Takes back the request that a lane has been waiting to send.
    pub(super) fn wanted(&mut self, id: SeatId, lane: LaneId) -> u64 {
        let lane = self.pool.lane(lane);
        debug_assert_eq!(lane.does, Does::Want);
        lane.does = Does::Nothing;
        let due = lane.due;
        self.pool.seat(id).wants -= 1;
        self.wanting -= 1;
        due
    }

    /// A lane of a connection that is up sends a request.
    pub(super) fn request<I: Io>(&mut self, io: &mut I, id: SeatId, lane_id: LaneId, due: u64, now: u64) {
        let seat = &mut self.pool.seats[id as usize];
        let lane = &mut self.pool.lanes[lane_id as usize];
        let ask = if self.plan.asks.len() == 1 { 0 } else { self.mix.choose(seat.target) };
        lane.ask = ask;
        if self.plan.two.is_none() {
            self.send_one(io, id, lane_id);
        } else if !self.send_two(io, id, lane_id) {
            self.give_back(due);
            self.pool.lane(lane_id).does = Does::Nothing;
            if self.pool.seat(id).room == 0 {
                self.close_used_up(io, id, now);
            }
            return;
        }
        let seat = &mut self.pool.seats[id as usize];
        seat.room = seat.room.saturating_sub(1);
        seat.busy += 1;
        let lane = &mut self.pool.lanes[lane_id as usize];
        lane.does = Does::Wait;
        lane.due = due;
        lane.sent = now;
        lane.first = 0;
        self.busy += 1;
        self.slab.counts.sent += 1;
        let tally = self.tally(due);
        tally.sent += 1;
        if let Some(of_ask) = tally.of_ask(ask) {
            of_ask.sent += 1;
        }
        self.patience.watch(lane_id, now + self.plan.timeout);
    }

    /// A request that its connection did not take waits for the next lane that is free, of whatever connection.
    pub(super) fn give_back(&mut self, due: u64) {
        self.returned.push_back(due);
    }

    /// The answer of a lane is whole. `keep_alive`: its connection can be used again.
    pub(super) fn complete<I: Io>(&mut self, io: &mut I, id: SeatId, lane_id: LaneId, keep_alive: bool, now: u64) {
        self.answered(id, lane_id, now);
        if self.plan.think.is_none() && keep_alive && self.pool.seats[id as usize].room > 0 {
            self.settle(io, id, lane_id, now);
        } else {
            self.pause(io, id, lane_id, keep_alive, now);
        }
    }

    /// Judges and counts the answer of a lane. The lane then has nothing to do.
    #[inline]
    pub(super) fn answered(&mut self, id: SeatId, lane_id: LaneId, now: u64) {
        let seat = &mut self.pool.seats[id as usize];
        seat.busy -= 1;
        if !seat.used {
            seat.used = true;
            seat.fails = 0;
            self.used += 1;
        }
        let lane = &mut self.pool.lanes[lane_id as usize];
        lane.does = Does::Nothing;
        let (due, sent) = (lane.due, lane.sent);
        let first = if lane.first == 0 { now } else { lane.first };
        let (status, size) = (lane.answer.status(), lane.answer.size());
        let ask = lane.ask;
        let verdict = self.plan.asks[ask as usize].check.judge(&lane.answer);
        self.busy -= 1;

        let tally = self.tally(due);
        tally.status(status);
        tally.body_bytes += size;
        match verdict {
            Ok(()) => {
                tally.right += 1;
                if let Some(of_ask) = tally.of_ask(ask) {
                    of_ask.right += 1;
                }
                self.slab.counts.right += 1;
                self.slab.counts.right_body_bytes += size;
                self.sample(due, sent, first, now);
            }
            Err(kind) => {
                self.sample(due, sent, first, now);
                self.count_error(due, Some(ask), kind);
            }
        }
        self.last = now;
    }

    /// What follows an answer where that is not simply the next request.
    fn pause<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId, keep_alive: bool, now: u64) {
        if self.plan.think.is_some() {
            self.think(lane, now);
        }
        let seat = self.pool.seat(id);
        if keep_alive && seat.room > 0 {
            return;
        }
        if keep_alive && seat.busy > 0 {
            // The answers to come are the last of this connection.
            return;
        }
        if !keep_alive && !self.plan.close {
            self.slab.counts.closed_by_peer += 1;
        }
        self.fail_lanes(id, ErrorKind::ClosedEarly, now);
        self.close(io, id);
        self.down(id);
        self.retry(io, id, now);
    }

    /// Cuts a connection and fails all that is in flight on it.
    pub(super) fn cut<I: Io>(&mut self, io: &mut I, id: SeatId, kind: ErrorKind, now: u64) {
        if let Some(conn) = self.pool.seat(id).conn.take() {
            io.abort(conn);
        }
        self.fail_lanes(id, kind, now);
        self.lost(io, id, now);
    }

    /// All that is in flight on a connection has failed.
    pub(super) fn fail_lanes(&mut self, id: SeatId, kind: ErrorKind, now: u64) {
        if self.pool.seat(id).busy == 0 {
            return;
        }
        for lane in self.pool.lanes_of(id) {
            if self.pool.lane(lane).does == Does::Wait {
                self.fail(id, lane, kind, now);
            }
        }
    }

    /// What a lane sent was certainly not looked at: it counts as not sent, and waits for another connection. (The second in
    /// which it left keeps it: then it was sent.)
    pub(super) fn unsend(&mut self, id: SeatId, lane: LaneId) {
        self.pool.seat(id).busy -= 1;
        self.busy -= 1;
        let lane = self.pool.lane(lane);
        lane.does = Does::Nothing;
        let (due, ask) = (lane.due, lane.ask);
        let tally = self.tally(due);
        tally.sent -= 1;
        if let Some(of_ask) = tally.of_ask(ask) {
            of_ask.sent -= 1;
        }
        self.give_back(due);
    }

    /// The request of a lane ended without a right answer. The lane then has nothing to do.
    pub(super) fn fail(&mut self, id: SeatId, lane: LaneId, kind: ErrorKind, now: u64) {
        self.pool.seat(id).busy -= 1;
        self.busy -= 1;
        let lane = self.pool.lane(lane);
        lane.does = Does::Nothing;
        let (due, sent, first) = (lane.due, lane.sent, lane.first);
        let ask = lane.ask;
        self.sample(due, sent, first, now);
        self.count_error(due, Some(ask), kind);
        self.last = now;
    }

    /// A request ended before it could be sent, for want of a connection.
    pub(super) fn fail_unsent(&mut self, due: u64, kind: ErrorKind, now: u64) {
        self.sample_unsent(due, now);
        self.count_error(due, None, kind);
        self.last = now;
    }

    /// `ask`: which of the order's requests it was, if it was sent.
    fn count_error(&mut self, due: u64, ask: Option<u32>, kind: ErrorKind) {
        let tally = self.tally(due);
        tally.error(kind);
        if let Some(of_ask) = ask.and_then(|ask| tally.of_ask(ask)) {
            of_ask.errors += 1;
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
    pub(super) fn on_data<I: Io>(&mut self, io: &mut I, id: SeatId, bytes: &[u8], now: u64) {
        self.slab.counts.bytes_in += bytes.len() as u64;
        if self.secure.is_some() {
            self.on_sealed(io, id, bytes, now);
        } else if self.plan.two.is_some() {
            self.on_frames(io, id, bytes, now);
        } else {
            self.on_answers(io, id, bytes, now);
        }
    }

    /// No answer in time.
    pub(super) fn time_out<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId, now: u64) {
        if self.plan.two.is_some() {
            self.cancel(io, id, lane, now);
        } else {
            // Without its connection nothing behind it can be answered either.
            self.cut(io, id, ErrorKind::Timeout, now);
        }
    }

    /// The peer will send no more.
    pub(super) fn on_eof<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = self.pool.seat(id);
        match seat.state {
            State::Shaking => {
                let (kind, when) = seat.shaking();
                let detail = format!("the peer closed the connection {when}");
                self.shaking_failed(io, id, kind.unwrap_or(ErrorKind::ClosedEarly), &detail, now);
            }
            _ if seat.busy > 0 && self.plan.two.is_some() => self.cut(io, id, ErrorKind::ClosedEarly, now),
            _ if seat.busy > 0 => self.end_answer(io, id, now),
            _ => {
                self.slab.counts.closed_by_peer += 1;
                self.close(io, id);
                self.lost(io, id, now);
            }
        }
    }
}
