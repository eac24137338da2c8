//! Times that are agreed between machines. The lab computes them, clients and samplers keep them.
//!
//! Machines' wall clocks differ and jump, so that what several do at one time is told by each machine's monotonic clock, and
//! only one wall clock, of the machine where weir runs, is written into records.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment on one machine's monotonic clock, and the wall clock's time of it for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct At {
    /// `CLOCK_MONOTONIC` of the machine that acts, ns.
    pub mono_ns: u64,
    /// Unix time of the same moment by the wall clock of the machine where weir runs, ns.
    pub unix_ns: u64,
}

impl At {
    /// The moment so much later.
    pub fn plus(self, time: Duration) -> At {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        At { mono_ns: self.mono_ns.saturating_add(ns), unix_ns: self.unix_ns.saturating_add(ns) }
    }

    /// How long it takes from this moment to a later one of the same clock; nothing to an earlier one.
    pub fn until(self, later: At) -> Duration {
        Duration::from_nanos(later.mono_ns.saturating_sub(self.mono_ns))
    }

    /// Unix time of another moment of the same monotonic clock, ms.
    pub fn unix_ms_at(self, mono_ns: u64) -> u64 {
        let ns = i128::from(self.unix_ns) + i128::from(mono_ns) - i128::from(self.mono_ns);
        u64::try_from(ns / 1_000_000).unwrap_or(0)
    }
}

/// How far the monotonic clock of a host is from that of the machine where weir runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The host's minus ours, ns.
    pub offset_ns: i64,
    /// How wrong that may be, either way, ns: half of the shortest exchange.
    pub error_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moments_wall_clock_holds_for_others_of_its_monotonic_clock() {
        let at = At { mono_ns: 5_000_000, unix_ns: 1_700_000_000_000_000_000 };
        assert_eq!(at.unix_ms_at(8_000_000), 1_700_000_000_003);
        assert_eq!(at.unix_ms_at(2_000_000), 1_699_999_999_997);
        let later = at.plus(Duration::from_millis(2));
        assert_eq!((later.mono_ns, later.unix_ns - at.unix_ns), (7_000_000, 2_000_000));
        assert_eq!((at.until(later), later.until(at)), (Duration::from_millis(2), Duration::ZERO));
    }
}
