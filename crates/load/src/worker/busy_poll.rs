//! Keeps a worker awake when a request is about to fall due.
//!
//! A thread that sleeps until a due time wakes late ([`weir_net::Driver::wake_latency`]). In an open load this lateness (lag) would
//! be part of every latency. So a worker sleeps until shortly before the due time, then polls
//! its ring and yields the CPU to others, such as an origin on a small machine. The CPU time of polling is counted
//! apart from work, so that a waiting thread does not look full.
//!
//! Yielding does not help against a busy neighbour, who keeps the CPU for a time slice of milliseconds. So the lab puts the threads of
//! client and origin into the real-time class, where that is allowed. Direct path, client and origin on one CPU, 12,000/s, two
//! builds beside: 99th percentile of the lag 3.6 ms and of the latency 4.5 ms; with both in the class 0.05 and 0.2 ms. With the client
//! alone in it, the origin starves beside the polling. A short slice (`sched_setattr`) and a nice value of -20 changed nothing.
//! They are in it from the last connection to the last response. Handshakes and closes of thousands of connections take seconds without a
//! pause. In the class they would keep the CPU from the rest of weir, such as the watch of CPU and memory at the window's end.
//! Such a thread must leave its CPU some time: when it was busy for nine tenths of a sweep it sleeps all the way in the next.
//!
//! Rejected: sleeping all the way with real-time priority (the exit from idle stays: 24 µs in the median, not 10);
//! polling all the time (it takes a shared CPU from the origin even when nothing is due soon).

use weir_net::{Driver, SchedulingClass};

use super::Worker;
use crate::protocol::Protocol;

/// What busy-polling cost so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BusyPoll {
    /// The current poll found something: it was work.
    disturbed: bool,
    /// The current poll is one that does not sleep, until this request is due.
    until: Option<u64>,
    /// How long before a due time to stay awake, nanoseconds: as long as most wake-ups take.
    wake_latency: u64,
    /// The thread was of the real-time class while it was under load.
    real_time: bool,
    /// It sleeps all the way until the next sweep.
    rests: bool,
    /// When the last sweep was.
    swept: u64,
    /// The thread's CPU time at the end of the last poll that found nothing; `None` after work or sleep.
    idle_since: Option<u64>,
    spent: u64,
}

impl BusyPoll {
    /// Nothing polled yet.
    pub(super) fn new(wake_latency: u64) -> BusyPoll {
        BusyPoll { wake_latency, ..BusyPoll::default() }
    }

    /// The thread waits for its start, and has to be on time from now on. If the kernel does not allow it, the result says so.
    pub(super) fn enter_real_time(&mut self, driver: &mut impl Driver) {
        self.real_time = driver.set_scheduling_class(SchedulingClass::RealTime).is_ok();
    }

    /// The load is over, and what is left may take as long as it takes.
    pub(super) fn leave_real_time(&self, driver: &mut impl Driver) {
        if self.real_time {
            // Every thread may leave the class.
            let _ = driver.set_scheduling_class(SchedulingClass::Ordinary);
        }
    }

    /// A sweep: since the last one the thread had the CPU for so long, nanoseconds.
    pub(super) fn swept(&mut self, now: u64, worked: u64) {
        let passed = now - std::mem::replace(&mut self.swept, now);
        self.rests = self.real_time && !self.rests && worked > passed / 10 * 9;
    }

    /// How long before a due time to stay awake.
    fn awake_before(&self) -> u64 {
        if self.rests { 0 } else { self.wake_latency }
    }

    /// Whether the thread was of the real-time class while it was under load.
    pub(super) fn real_time(&self) -> bool {
        self.real_time
    }

    /// Something came.
    pub(super) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// The CPU time between the ends of consecutive polls that found nothing, nanoseconds. The first poll of a row is
    /// not included, so that the clock is read only when there is time.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    fn found_nothing(&mut self, cpu: u64) {
        if let Some(since) = self.idle_since {
            self.spent += cpu.saturating_sub(since);
        }
        self.idle_since = Some(cpu);
    }
}

impl<P: Protocol> Worker<P> {
    /// Until when the next poll may sleep: not at all when a request is about to fall due.
    pub(super) fn sleep_until<D: Driver>(&mut self, driver: &mut D) -> u64 {
        let due = self.next_due();
        let until = due.saturating_sub(self.busy_poll.awake_before()).min(self.next_wakeup());
        let now = driver.now();
        if until > now {
            self.busy_poll.idle_since = None;
            return until;
        }
        self.busy_poll.disturbed = false;
        self.busy_poll.until = Some(due);
        now
    }

    /// A poll is over. One that did not sleep and found nothing leaves the CPU to others.
    pub(super) fn end_poll<D: Driver>(&mut self, driver: &mut D) {
        let Some(due) = self.busy_poll.until.take() else { return };
        if self.busy_poll.disturbed || driver.now() >= due {
            self.busy_poll.idle_since = None;
            return;
        }
        driver.yield_now();
        self.busy_poll.found_nothing(driver.cpu_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: u64 = 50_000;

    #[test]
    fn a_real_time_thread_that_was_always_busy_rests_every_second_time() {
        let mut poll = BusyPoll { real_time: true, ..BusyPoll::new(SPIN) };
        let awake: Vec<u64> = (1..5_u64)
            .map(|nth| {
                poll.swept(nth * 1_000, 950);
                poll.awake_before()
            })
            .collect();
        assert_eq!(awake, [0, SPIN, 0, SPIN]);
        poll.swept(5_000, 800);
        assert_eq!(poll.awake_before(), SPIN);
        let mut ordinary = BusyPoll::new(SPIN);
        ordinary.swept(1_000, 1_000);
        assert_eq!(ordinary.awake_before(), SPIN);
    }
}
