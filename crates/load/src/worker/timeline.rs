//! Phases, seconds, due times and timeouts: what a worker looks at between turns of its driver.

use std::cmp::Reverse;

use weir_net::Io;

use super::http2::NO_SLOT;
use super::pool::{SlotState, StreamState};
use super::{RequestSource, SWEEP_INTERVAL, Worker};
use crate::clock::{NEVER, SECOND};
use crate::cpu::CpuTime;
use crate::recorder::{Phase, Slab};
use crate::shared::Message;

impl Worker {
    /// The load starts.
    pub(super) fn begin<I: Io>(&mut self, io: &mut I, start: u64) {
        self.end = self.shared.end();
        self.window = start.saturating_add(self.plan.warmup).min(self.end);
        self.interval_end = start;
        if let RequestSource::Open(backlog) = &mut self.pace {
            backlog.begin(start, self.end);
        }
        self.next_interval();
        if !matches!(self.pace, RequestSource::Open(_)) {
            self.begin_closed(io, start);
        }
        self.look(io);
    }

    /// In a closed load every stream has its first request now, also one that is not connected. Where there are fewer
    /// requests than streams they are spread over the connections.
    fn begin_closed<I: Io>(&mut self, io: &mut I, start: u64) {
        let slots = self.pool.len();
        (0..slots).for_each(|id| self.pool.clear_free(id));
        'given: for nth in 0..self.plan.streams {
            for id in 0..slots {
                if nth >= self.pool.slot(id).streams {
                    continue;
                }
                let Some(due) = self.next_request(start) else {
                    break 'given;
                };
                self.set_pending(id, self.pool.first_stream(id) + nth, due);
            }
        }
        for id in 0..slots {
            // What one connection gets leaves together.
            self.gathering = id;
            self.serve(io, id);
            self.gathering = NO_SLOT;
            self.flush(io, id);
        }
    }

    /// Sends what waits for a connection that is up.
    fn serve<I: Io>(&mut self, io: &mut I, id: u32) {
        if self.pool.slot(id).state != SlotState::Up {
            return;
        }
        for stream in self.pool.streams_of(id) {
            let slot = self.pool.slot(id);
            if slot.pending == 0 || slot.remaining == 0 {
                return;
            }
            if self.pool.stream(stream).state == StreamState::Pending {
                let due = self.take_pending(id, stream);
                self.request(io, id, stream, due, self.clock.now());
            }
        }
    }

    /// Looks at the clock, and does what it is time for.
    pub(super) fn look<I: Io>(&mut self, io: &mut I) {
        let now = self.clock.now();
        self.follow_end(now);
        if now >= self.interval_end {
            self.roll_intervals(now);
        }
        self.count_due(now);
        self.dispatch(io, now);
        self.sweep(io, now);
    }

    /// Ends every slab whose time is over.
    pub(super) fn roll_intervals(&mut self, now: u64) {
        while now >= self.interval_end && self.phase() != Phase::Drain {
            self.count_due(self.interval_end.saturating_sub(1));
            self.next_interval();
        }
    }

    /// When to look next, at the latest.
    pub(super) fn next_wakeup(&self) -> u64 {
        self.next_due().min(self.interval_end).min(self.next_sweep)
    }

    /// When the next request falls due that could be sent then; [`NEVER`] when there is none.
    pub(super) fn next_due(&self) -> u64 {
        match &self.pace {
            // With no slot free, what becomes due can wait to be counted.
            RequestSource::Open(backlog) if !self.pool.none_free() => backlog.next_due(),
            RequestSource::Open(_) => NEVER,
            RequestSource::Closed | RequestSource::Counted(_) => self.next_think_end(),
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
        self.clock.now() >= self.interval_end || self.is_at_rest()
    }

    fn is_at_rest(&self) -> bool {
        self.busy == 0 && self.pending == 0 && (self.leaves_queue() || self.queued() == 0)
    }

    /// What is queued now is not sent any more.
    pub(super) fn leaves_queue(&self) -> bool {
        self.plan.leave_queue && self.phase() == Phase::Drain
    }

    /// Takes note of an end that has moved: the load was cut short, or all of a counted load is done.
    fn follow_end(&mut self, now: u64) {
        if self.phase() == Phase::Drain {
            return;
        }
        if !self.finished && matches!(self.pace, RequestSource::Counted(0)) && self.is_at_rest() {
            self.finished = true;
            self.shared.finish(self.last.min(now));
        }
        let end = match (&self.pace, self.shared.all_finished()) {
            (RequestSource::Counted(_), Some(last)) => last.min(self.shared.end()),
            // Word comes ahead of the time. Should it come late all the same, what has been done until now stays
            // on this side of the end, so that every request is on one side only.
            _ => self.shared.end().max(now + 1),
        };
        if end < self.end {
            self.end = end;
            self.window = self.window.min(end);
            if let RequestSource::Open(backlog) = &mut self.pace {
                backlog.end_at(end);
            }
            self.interval_end = self.end_of_interval(self.phase(), self.slab.start);
        }
    }

    /// When the slab that began at `start` is over.
    fn end_of_interval(&self, phase: Phase, start: u64) -> u64 {
        match phase {
            Phase::Connect => start,
            Phase::Warmup => self.window.min(start + SECOND).max(start),
            Phase::Window => self.end.min(start + SECOND).max(start),
            Phase::Drain => start + self.plan.timeout,
        }
    }

    /// Hands over the slab that ends at the edge, and begins the next.
    fn next_interval(&mut self) {
        let at = self.interval_end;
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
        self.interval_end = self.end_of_interval(phase, at);
    }

    /// The window begins without a queue of the warm-up's.
    fn forget_queue(&mut self) {
        self.before.unsent += self.returned.len() as u64;
        self.returned.clear();
        if let RequestSource::Open(backlog) = &mut self.pace {
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
        let RequestSource::Open(backlog) = &mut self.pace else {
            self.count_think_ends(now);
            return;
        };
        while let Some(due) = backlog.count_one(now) {
            self.slab.counts.due += 1;
            let tally = if due < self.window { &mut self.before } else { &mut self.inside };
            tally.due += 1;
        }
    }

    /// Gives due requests to free streams.
    fn dispatch<I: Io>(&mut self, io: &mut I, now: u64) {
        self.dispatch_ready(io, now);
        if self.leaves_queue() {
            return;
        }
        while self.queued() > 0
            && let Some((id, stream)) = self.pool.take()
            && let Some(due) = self.oldest_waiting()
        {
            if self.pool.slot(id).state == SlotState::Up {
                self.request(io, id, stream, due, now);
            } else {
                self.set_pending(id, stream, due);
                self.enqueue(id);
            }
        }
        self.grow();
        self.connect_some(io);
    }

    /// Makes more connections, if requests wait for which there are none, nor are any being made, and the order allows it.
    fn grow(&mut self) {
        let most = self.share.connections + self.share.more;
        let streams = u64::from(self.plan.streams);
        while self.pool.len() < most && self.queued() > (self.queue.len() as u64 + u64::from(self.connecting)) * streams
        {
            let id = self.add_slot();
            self.enqueue(id);
        }
    }

    /// Looks, a hundred times a second, for those that have waited long enough.
    pub(super) fn sweep<I: Io>(&mut self, io: &mut I, now: u64) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP_INTERVAL;
        while let Some(stream) = self.timeouts.take(now) {
            self.check_response_timeout(io, stream, now);
        }
        while let Some(id) = self.connect_timeouts.take(now) {
            self.check_connect_timeout(io, id, now);
        }
        while let Some(&Reverse((at, id))) = self.backoffs.peek()
            && at <= now
        {
            self.backoffs.pop();
            if self.pool.slot(id).state == SlotState::Down {
                self.retry(io, id, now);
            }
        }
        self.connect_some(io);
        self.show_gauges();
    }

    /// A stream began to wait a timeout ago, or waits for something newer since.
    fn check_response_timeout<I: Io>(&mut self, io: &mut I, stream_id: u32, now: u64) {
        let stream = self.pool.stream(stream_id);
        if stream.state != StreamState::InFlight {
            return;
        }
        let until = stream.sent.saturating_add(self.plan.timeout);
        if until <= now {
            self.time_out(io, self.pool.slot_of(stream_id), stream_id, now);
        } else {
            self.timeouts.watch(stream_id, until);
        }
    }

    fn check_connect_timeout<I: Io>(&mut self, io: &mut I, id: u32, now: u64) {
        let slot = self.pool.slot(id);
        if !matches!(slot.state, SlotState::Connecting | SlotState::Handshaking) {
            return;
        }
        let until = slot.begun.saturating_add(self.plan.timeout);
        if until <= now {
            self.connect_late(io, id, now);
        } else {
            self.connect_timeouts.watch(id, until);
        }
    }
}
