//! The timers of one worker: the [`TimerWheel`] on the worker's clock.
//!
//! Sessions set timers, and the worker asks which have expired. Times are nanoseconds of [`weir_net::Io::now`].

use weir_net::Conn;

use crate::timer_wheel::TimerWheel;

pub(crate) use crate::timer_wheel::TimerId;

/// What a timer wakes: a connection, and the number that its session chose.
pub(crate) type Wakes = (Conn, u32);

/// Timers of one worker.
#[derive(Debug)]
pub(crate) struct Timers {
    wheel: TimerWheel<Wakes>,
    /// The wheel counts from here.
    start: u64,
}

impl Timers {
    /// No timers yet.
    pub(crate) fn new(now: u64) -> Timers {
        Timers { wheel: TimerWheel::default(), start: now }
    }

    /// Sets a timer.
    pub(crate) fn set(&mut self, at: u64, wakes: Wakes) -> TimerId {
        self.wheel.set(at.saturating_sub(self.start), wakes)
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
    pub(crate) fn next(&self) -> Option<u64> {
        self.wheel.next().map(|at| self.start + at)
    }

    /// Takes the next timer that is due at `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Wakes> {
        self.wheel.pop(now.saturating_sub(self.start))
    }
}
