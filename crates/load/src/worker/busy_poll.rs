//! Keeps a worker awake when a request is about to fall due. Called by `worker` for each turn of its driver.
//!
//! A thread that sleeps until a due time wakes late: the timer's interrupt, the exit from the CPU's idle state and the
//! scheduler take 20 µs in the median and 50 to 100 µs at the 99th percentile on a virtual machine. In an open load
//! this lateness (lag) would be part of every latency. So a worker sleeps until shortly before the due time, then polls
//! its ring and yields the CPU to others, such as an origin on a small machine. The CPU time of polling is counted
//! apart from work, so that a waiting thread does not look full.
//!
//! Rejected: sleeping all the way with real-time priority (it needs root, and does not shorten the exit from idle);
//! polling all the time (it takes a shared CPU from the origin even when nothing is due soon).

use std::io;

use weir_net::Driver;

use super::Worker;
use crate::cpu::thread_cpu_ns;
use crate::protocol::Protocol;

/// How long before a due time a worker stays awake, nanoseconds: as long as most wake-ups take.
const SPIN: u64 = 50_000;

/// What busy-polling cost so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BusyPoll {
    /// The current poll found something: it was work.
    disturbed: bool,
    /// The thread's CPU time at the end of the last poll that found nothing; `None` after work or sleep.
    idle_since: Option<u64>,
    spent: u64,
}

impl BusyPoll {
    /// Something came.
    pub(super) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// The CPU time between the ends of consecutive polls that found nothing, nanoseconds. The first poll of a row is
    /// not included, so that the clock is read only when there is time.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    fn found_nothing(&mut self) {
        let cpu = thread_cpu_ns();
        if let Some(since) = self.idle_since {
            self.spent += cpu.saturating_sub(since);
        }
        self.idle_since = Some(cpu);
    }
}

impl<P: Protocol> Worker<P> {
    /// One turn of the driver: sleeps while no request is due soon, and polls when one is about to fall due.
    pub(super) fn wait<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        let due = self.next_due();
        let asleep_until = due.saturating_sub(SPIN).min(self.next_wakeup());
        let now = self.clock.now();
        if asleep_until > now {
            self.busy_poll.idle_since = None;
            return driver.poll(self, Some(self.clock.instant(asleep_until)));
        }
        self.busy_poll.disturbed = false;
        driver.poll(self, Some(self.clock.instant(now)))?;
        if self.busy_poll.disturbed || self.clock.now() >= due {
            self.busy_poll.idle_since = None;
            return Ok(());
        }
        std::thread::yield_now();
        self.busy_poll.found_nothing();
        Ok(())
    }
}
