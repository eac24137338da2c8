//! The time of the workers: nanoseconds since one instant that all threads of a run share. Used by the whole crate.
//!
//! It reads `CLOCK_MONOTONIC`. On Linux this is a call into the vDSO (about 25 ns, no system call), so every event gets
//! its own reading and nothing is batched or cached.

use std::time::{Duration, Instant};

use weir_net::monotonic_ns;

/// One second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// One millisecond.
pub(crate) const MILLI: u64 = 1_000_000;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The clock of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Instant,
    /// The same in nanoseconds.
    zero: u64,
}

impl Clock {
    /// A clock that reads 0 now.
    pub(crate) fn start() -> Clock {
        // `instant` is earlier than `now` by the time between the two readings (some 50 ns).
        Clock { zero: monotonic_ns(), base: Instant::now() }
    }

    /// Nanoseconds since the clock started.
    pub(crate) fn now(&self) -> u64 {
        monotonic_ns() - self.zero
    }

    /// A time of this clock as a reading of `CLOCK_MONOTONIC`, nanoseconds.
    pub(crate) fn monotonic_at(&self, at: u64) -> u64 {
        self.zero.saturating_add(at)
    }

    /// A reading of `CLOCK_MONOTONIC` as a time of this clock; 0 if it was before the clock started.
    pub(crate) fn at_monotonic(&self, reading: u64) -> u64 {
        reading.saturating_sub(self.zero)
    }

    /// Converts a time to the type of a driver's deadline.
    pub(crate) fn instant(&self, at: u64) -> Instant {
        self.base + Duration::from_nanos(at)
    }
}

/// Converts seconds to nanoseconds. Negative values and NaN become 0, values that are too large [`NEVER`].
pub(crate) fn from_secs(seconds: f64) -> u64 {
    // `as` saturates and turns NaN into 0.
    (seconds * 1e9).round() as u64
}

/// Converts nanoseconds to seconds.
pub(crate) fn to_secs(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_times_are_those_of_instant() {
        let clock = Clock::start();
        let mut last = 0;
        for _ in 0..1_000 {
            let (before, now, after) = (Instant::now(), clock.now(), Instant::now());
            assert!(now >= last);
            last = now;
            let at = clock.instant(now);
            // The thread may be descheduled between the two readings of the start.
            assert!(at + Duration::from_secs(1) > before && at < after + Duration::from_secs(1));
        }
    }
}
