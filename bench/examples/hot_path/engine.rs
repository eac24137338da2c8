//! What the client does beside the protocol: recording a sample, and the next due time.

use std::hint::black_box;

use weir_model::suite::{Arrivals, LoadKind};

use crate::load::interval::{Interval, Kinds};
use crate::load::schedule::Timetable;

/// One sample between 20 us and 1 ms, of a request sent when it was due: all those of closed loads.
pub fn record_prompt(count: u64) -> anyhow::Result<()> {
    record(count, 0)
}

/// The same of a request sent later than it was due.
pub fn record_late(count: u64) -> anyhow::Result<()> {
    record(count, 3_000)
}

fn record(count: u64, lag: u64) -> anyhow::Result<()> {
    let mut interval = Interval::new(Kinds::default());
    for at in 0..count {
        let latency = 20_000 + at * 7_919 % 980_000;
        interval.sample(0, black_box(at), black_box(at + lag), black_box(at + latency), false);
    }
    black_box(&interval);
    Ok(())
}

/// The next due time of 20,000 a second.
pub fn next_due(arrivals: Arrivals, count: u64) -> anyhow::Result<()> {
    let table = Timetable::new(&LoadKind::open(20_000.0, arrivals), 0, u64::MAX);
    let mut schedule = table.ok_or_else(|| anyhow::anyhow!("an open load has a timetable"))?.schedule(1, 0, 1);
    for _ in 0..count {
        black_box(schedule.next_due());
    }
    Ok(())
}
