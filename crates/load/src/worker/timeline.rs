//! Phases, seconds, due times and timeouts: what a worker looks at between turns of its driver.

use std::cmp::Reverse;

use weir_net::Io;

use super::seat::{Does, State};
use super::two::NOBODY;
use super::{Pace, SWEEP, Worker};
use crate::clock::{NEVER, SECOND};
use crate::cpu::CpuTime;
use crate::recorder::{Phase, Slab};
use crate::shared::Message;

impl Worker {
    /// The load starts.
    pub(super) fn begin<I: Io>(&mut self, io: &mut I, start: u64) {
        self.end = self.shared.end();
        self.window = start.saturating_add(self.plan.warmup).min(self.end);
        self.edge = start;
        if let Pace::Open(backlog) = &mut self.pace {
            backlog.begin(start, self.end);
        }
        self.turn_page();
        if !matches!(self.pace, Pace::Open(_)) {
            self.begin_closed(io, start);
        }
        self.look(io);
    }

    /// In a closed load every lane has its first request now, also one that is not connected. Where there are fewer
    /// requests than lanes they are spread over the connections.
    fn begin_closed<I: Io>(&mut self, io: &mut I, start: u64) {
        let seats = self.pool.len();
        (0..seats).for_each(|id| self.pool.forget_free(id));
        'given: for nth in 0..self.plan.lanes {
            for id in 0..seats {
                if nth >= self.pool.seat(id).lanes {
                    continue;
                }
                let Some(due) = self.next_request(start) else {
                    break 'given;
                };
                self.want(id, self.pool.first_lane(id) + nth, due);
            }
        }
        for id in 0..seats {
            // What one connection gets leaves together.
            self.held = id;
            self.serve(io, id);
            self.held = NOBODY;
            self.flush(io, id);
        }
    }

    /// Sends what waits for a connection that is up.
    fn serve<I: Io>(&mut self, io: &mut I, id: u32) {
        if self.pool.seat(id).state != State::Up {
            return;
        }
        for lane in self.pool.lanes_of(id) {
            let seat = self.pool.seat(id);
            if seat.wants == 0 || seat.room == 0 {
                return;
            }
            if self.pool.lane(lane).does == Does::Want {
                let due = self.wanted(id, lane);
                self.request(io, id, lane, due, self.clock.now());
            }
        }
    }

    /// Looks at the clock, and does what it is time for.
    pub(super) fn look<I: Io>(&mut self, io: &mut I) {
        let now = self.clock.now();
        self.obey(now);
        if now >= self.edge {
            self.turn_pages(now);
        }
        self.count_due(now);
        self.dispatch(io, now);
        self.sweep(io, now);
    }

    /// Ends every slab whose time is over.
    pub(super) fn turn_pages(&mut self, now: u64) {
        while now >= self.edge && self.phase() != Phase::Drain {
            self.count_due(self.edge.saturating_sub(1));
            self.turn_page();
        }
    }

    /// When to look next, at the latest.
    pub(super) fn next_look(&self) -> u64 {
        self.next_due().min(self.edge).min(self.next_sweep)
    }

    /// When the next request falls due that could be sent then; [`NEVER`] when there is none.
    pub(super) fn next_due(&self) -> u64 {
        match &self.pace {
            // With no seat free, what becomes due can wait to be counted.
            Pace::Open(backlog) if !self.pool.nobody_free() => backlog.next_due(),
            Pace::Open(_) => NEVER,
            Pace::Closed | Pace::Counted(_) => self.next_thought(),
        }
    }

    /// The load is over and nothing is left to wait for.
    pub(super) fn is_over(&self) -> bool {
        if self.shared.is_abandoned() {
            return true;
        }
        if self.phase() != Phase::Drain {
            return false;
        }
        self.clock.now() >= self.edge || self.is_at_rest()
    }

    fn is_at_rest(&self) -> bool {
        self.busy == 0 && self.wanting == 0 && (self.leaves_queue() || self.queued() == 0)
    }

    /// What is queued now is not sent any more.
    pub(super) fn leaves_queue(&self) -> bool {
        self.plan.leave_queue && self.phase() == Phase::Drain
    }

    /// Takes note of an end that has moved: the load was cut short, or all of a counted load is done.
    fn obey(&mut self, now: u64) {
        if self.phase() == Phase::Drain {
            return;
        }
        if !self.finished && matches!(self.pace, Pace::Counted(0)) && self.is_at_rest() {
            self.finished = true;
            self.shared.finish(self.last.min(now));
        }
        let end = match (&self.pace, self.shared.all_finished()) {
            (Pace::Counted(_), Some(last)) => last.min(self.shared.end()),
            // Word comes ahead of the time. Should it come late all the same, what has been done until now stays
            // on this side of the end, so that every request is on one side only.
            _ => self.shared.end().max(now + 1),
        };
        if end < self.end {
            self.end = end;
            self.window = self.window.min(end);
            if let Pace::Open(backlog) = &mut self.pace {
                backlog.end_at(end);
            }
            self.edge = self.edge_of(self.phase(), self.slab.start);
        }
    }

    /// When the slab that began at `start` is over.
    fn edge_of(&self, phase: Phase, start: u64) -> u64 {
        match phase {
            Phase::Connect => start,
            Phase::Warmup => self.window.min(start + SECOND).max(start),
            Phase::Window => self.end.min(start + SECOND).max(start),
            Phase::Drain => start + self.plan.timeout,
        }
    }

    /// Hands over the slab that ends at the edge, and begins the next.
    fn turn_page(&mut self) {
        let at = self.edge;
        let phase = if at < self.window {
            Phase::Warmup
        } else if at < self.end {
            Phase::Window
        } else {
            Phase::Drain
        };
        let was = self.phase();
        if phase != was {
            self.read_cpu(was, phase);
            if phase == Phase::Window && self.plan.leave_queue {
                self.forget_queue();
            }
        }
        // The calling thread gives slabs back within milliseconds. If it is more than a second behind, paying for
        // a new one is better than mixing two seconds in one.
        let mut next = self.spares.try_recv().unwrap_or_else(|_| Slab::new());
        next.second = if phase == was { self.slab.second + 1 } else { 0 };
        next.phase = phase;
        next.start = at;
        self.slab.end = at;
        self.slab.open = Some(self.open);
        let full = std::mem::replace(&mut self.slab, next);
        self.send(Message::Slab(self.share.thread, full));
        self.edge = self.edge_of(phase, at);
    }

    /// The window begins without a queue of the warm-up's.
    fn forget_queue(&mut self) {
        self.before.unsent += self.returned.len() as u64;
        self.returned.clear();
        if let Pace::Open(backlog) = &mut self.pace {
            self.before.unsent += backlog.forget();
        }
    }

    fn read_cpu(&mut self, was: Phase, phase: Phase) {
        let reading = || Some((CpuTime::of_this_thread(), self.clock.now(), self.busy_poll.spent()));
        if phase == Phase::Window {
            self.cpu[0] = reading();
        } else if was == Phase::Window {
            self.cpu[1] = reading();
        }
    }

    /// Counts what became due up to `now`.
    fn count_due(&mut self, now: u64) {
        let Pace::Open(backlog) = &mut self.pace else {
            self.count_thoughts(now);
            return;
        };
        while let Some(due) = backlog.count_one(now) {
            self.slab.counts.due += 1;
            let tally = if due < self.window { &mut self.before } else { &mut self.inside };
            tally.due += 1;
        }
    }

    /// Gives due requests to free lanes.
    fn dispatch<I: Io>(&mut self, io: &mut I, now: u64) {
        self.dispatch_thoughts(io, now);
        if self.leaves_queue() {
            return;
        }
        while self.queued() > 0
            && let Some((id, lane)) = self.pool.take()
            && let Some(due) = self.oldest_waiting()
        {
            if self.pool.seat(id).state == State::Up {
                self.request(io, id, lane, due, now);
            } else {
                self.want(id, lane, due);
                self.enqueue(id);
            }
        }
        self.grow();
        self.connect_some(io);
    }

    /// Makes more connections, if requests wait for which there are none, nor are any being made, and the order allows it.
    fn grow(&mut self) {
        let most = self.share.connections + self.share.more;
        let lanes = u64::from(self.plan.lanes);
        while self.pool.len() < most && self.queued() > (self.queue.len() as u64 + u64::from(self.connecting)) * lanes {
            let id = self.add_seat();
            self.enqueue(id);
        }
    }

    /// Looks, a hundred times a second, for those that have waited long enough.
    pub(super) fn sweep<I: Io>(&mut self, io: &mut I, now: u64) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP;
        while let Some(lane) = self.patience.take(now) {
            self.look_at_lane(io, lane, now);
        }
        while let Some(id) = self.connect_patience.take(now) {
            self.look_at_connecting(io, id, now);
        }
        while let Some(&Reverse((at, id))) = self.pauses.peek()
            && at <= now
        {
            self.pauses.pop();
            if self.pool.seat(id).state == State::Down {
                self.retry(io, id, now);
            }
        }
        self.connect_some(io);
        self.show_gauges();
    }

    /// A lane began to wait a timeout ago, or waits for something newer since.
    fn look_at_lane<I: Io>(&mut self, io: &mut I, lane_id: u32, now: u64) {
        let lane = self.pool.lane(lane_id);
        if lane.does != Does::Wait {
            return;
        }
        let until = lane.sent.saturating_add(self.plan.timeout);
        if until <= now {
            self.time_out(io, self.pool.seat_of(lane_id), lane_id, now);
        } else {
            self.patience.watch(lane_id, until);
        }
    }

    fn look_at_connecting<I: Io>(&mut self, io: &mut I, id: u32, now: u64) {
        let seat = self.pool.seat(id);
        if !matches!(seat.state, State::Connecting | State::Shaking) {
            return;
        }
        let until = seat.begun.saturating_add(self.plan.timeout);
        if until <= now {
            self.connect_late(io, id, now);
        } else {
            self.connect_patience.watch(id, until);
        }
    }
}
