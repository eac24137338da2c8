//! This machine's clocks.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use weir_model::At;

/// Now, by both clocks of this machine.
pub fn now() -> At {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    At { mono_ns: mono_ns(), unix_ns: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX) }
}

/// `CLOCK_MONOTONIC`, ns: the clock of all times that are sent ahead.
pub fn mono_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// CPU time of the calling thread, µs.
pub(crate) fn own_cpu_us() -> u64 {
    own_cpu_ns() / 1000
}

/// The same, ns.
pub(crate) fn own_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}
