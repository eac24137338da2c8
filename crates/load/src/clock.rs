//! Time as the workers keep it: nanoseconds since one instant that all threads of a run share.
//!
//! It reads `CLOCK_MONOTONIC` through [`Instant`]. On Linux that is a call into the vDSO, about 25 ns and no
//! system call, so every event gets a reading of its own and nothing is batched or cached.

use std::time::{Duration, Instant};

/// One second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// One millisecond.
pub(crate) const MILLI: u64 = 1_000_000;

/// A time that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// The clock of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Instant,
}

impl Clock {
    /// A clock that reads 0 now.
    pub(crate) fn start() -> Clock {
        Clock { base: Instant::now() }
    }

    /// Nanoseconds since the clock started.
    pub(crate) fn now(&self) -> u64 {
        // u64 nanoseconds last 584 years.
        self.base.elapsed().as_nanos() as u64
    }

    /// What drivers take as a time to wait until.
    pub(crate) fn instant(&self, at: u64) -> Instant {
        self.base + Duration::from_nanos(at)
    }
}

/// Nanoseconds of so many seconds; negative and not-a-number count as none, and what is too long as [`NEVER`].
pub(crate) fn from_secs(seconds: f64) -> u64 {
    // `as` saturates and turns NaN into 0.
    (seconds * 1e9).round() as u64
}

/// Seconds of so many nanoseconds.
pub(crate) fn to_secs(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
