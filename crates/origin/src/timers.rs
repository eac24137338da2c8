//! The timers of one worker: the [`TimerWheel`] on the real clock.
//!
//! Sessions set timers, and the worker asks which have expired.

use std::time::{Duration, Instant};

use weir_net::Conn;

use crate::timer_wheel::TimerWheel;

pub(crate) use crate::timer_wheel::TimerId;

/// What a timer wakes: a connection, and the number that its session chose.
pub(crate) type Wakes = (Conn, u32);

/// Timers of one worker.
#[derive(Debug)]
pub(crate) struct Timers {
    wheel: TimerWheel<Wakes>,
    /// Times are counted from here.
    start: Instant,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { wheel: TimerWheel::default(), start: Instant::now() }
    }
}

impl Timers {
    /// Sets a timer.
    pub(crate) fn set(&mut self, at: Instant, wakes: Wakes) -> TimerId {
        self.wheel.set(self.since_start(at), wakes)
    }

    /// Cancels a timer that has not expired.
    pub(crate) fn cancel(&mut self, id: TimerId) {
        self.wheel.cancel(id);
    }

    /// Whether no timer is set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// When the next timer may expire.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.wheel.next().map(|at| self.start + Duration::from_nanos(at))
    }

    /// Takes the next timer that is due at `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Wakes> {
        self.wheel.pop(self.since_start(now))
    }

    fn since_start(&self, at: Instant) -> u64 {
        // Rounded down for `now` and `at` alike: the clock counts in nanoseconds, too.
        u64::try_from(at.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }
}
