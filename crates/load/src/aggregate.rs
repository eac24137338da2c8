//! Merges the intervals of all workers second by second, and sums them. `result` reads the sums.
//!
//! A second is complete when every worker has handed in its interval. Workers agree on where seconds begin and end, so
//! seconds complete in order. This module does not know what happens to the rows.

use std::collections::BTreeMap;

use weir_model::load::{ErrorKind, LoadSecond, Quantiles};

use crate::clock::to_secs;
use crate::counts::happened;
use crate::detail::{Detail, buckets};
use crate::interval::{EventCounts, Histo, Interval, Merged, Own, Phase, TENTH, TENTHS, quantiles};
use crate::output::LogInterval;

/// One second of one phase, over all workers.
#[derive(Debug)]
struct PartialSecond {
    intervals: u32,
    start: u64,
    end: u64,
    counts: EventCounts,
    tenths: [u64; TENTHS],
    /// Connections open at its end, if every worker has reported its number.
    open: Option<u32>,
    merged: Merged,
}

/// The totals of a load.
#[derive(Debug)]
pub(crate) struct Aggregate {
    workers: u32,
    partial: BTreeMap<(Phase, u32), PartialSecond>,
    spare: Vec<Merged>,
    /// Samples of requests due in the window.
    pub samples: Merged,
    /// Their latency by kind of request, where kinds are recorded.
    pub requests: Vec<Histo>,
    /// The client's own lateness, in an open load.
    pub own: Option<Own>,
    /// What happened in the window, and in all of the load.
    pub window: EventCounts,
    pub total: EventCounts,
    /// The window's rows.
    pub series: Vec<LoadSecond>,
    /// Successful responses in each whole tenth of a second of the window.
    pub tenths: Vec<u64>,
    /// The errors of those rows that had any, by their second.
    pub errors: BTreeMap<u32, BTreeMap<ErrorKind, u64>>,
    /// The state after the last completed second.
    pub last: Quantiles,
    /// Serialised histograms of the window and of what followed it, if a log is wanted.
    pub log: Option<Vec<LogInterval>>,
}

impl Aggregate {
    /// `open`: the load is. `seconds`: rows that its window has, if that is known. They take their memory now, so that a long load's
    /// stays as it is.
    pub(crate) fn new(workers: u32, log: bool, open: bool, seconds: usize) -> Aggregate {
        Aggregate {
            workers,
            partial: BTreeMap::new(),
            spare: vec![Merged::new()],
            samples: Merged::new(),
            requests: Vec::new(),
            own: open.then(Own::new),
            window: EventCounts::default(),
            total: EventCounts::default(),
            series: with_pages(seconds, LoadSecond::default()),
            tenths: with_pages(seconds * TENTHS, u64::MAX),
            errors: BTreeMap::new(),
            last: Quantiles::default(),
            log: log.then(Vec::new),
        }
    }

    /// Merges an interval. Returns the row of a second of warm-up or window when the interval completes it.
    pub(crate) fn take(&mut self, interval: &Interval) -> Option<(Phase, LoadSecond)> {
        self.total.add(&interval.counts);
        if interval.phase == Phase::Window {
            self.window.add(&interval.counts);
        }
        if matches!(interval.phase, Phase::Window | Phase::Drain) {
            interval.add_kinds(&mut self.requests);
            if let Some(own) = &mut self.own {
                own.take(interval);
            }
        }
        let key = (interval.phase, interval.second);
        let spare = &mut self.spare;
        let so_far = self.partial.entry(key).or_insert_with(|| PartialSecond {
            intervals: 0,
            start: interval.start,
            end: interval.end,
            counts: EventCounts::default(),
            tenths: [0; TENTHS],
            open: Some(0),
            merged: spare.pop().unwrap_or_else(Merged::new),
        });
        so_far.intervals += 1;
        so_far.end = so_far.end.max(interval.end);
        so_far.counts.add(&interval.counts);
        so_far.tenths.iter_mut().zip(interval.tenths).for_each(|(sum, n)| *sum += u64::from(n));
        so_far.open = so_far.open.zip(interval.open).map(|(sum, n)| sum + n);
        so_far.merged.take(interval);
        if so_far.intervals < self.workers {
            return None;
        }
        let so_far = self.partial.remove(&key)?;
        self.finish(key, so_far)
    }

    /// Finishes the totals. Seconds that some workers did not hand in (the last ones of a load that was cut short, or
    /// whose threads finished at different times) are completed as they are. Rows end with the window.
    pub(crate) fn close(&mut self, window: u64, end: u64) {
        for (key, mut so_far) in std::mem::take(&mut self.partial) {
            // The number of connections of the missing workers is unknown.
            so_far.open = None;
            self.finish(key, so_far);
        }
        let length = to_secs(end.saturating_sub(window));
        // Seconds that some threads began after the last response are empty.
        self.series.retain(|row| f64::from(row.second) < length || !is_empty(row));
        self.tenths.truncate((end.saturating_sub(window) / TENTH) as usize);
        if let Some(last) = self.series.last_mut() {
            last.length_s = (length - f64::from(last.second)).clamp(0.0, 1.0);
        }
    }

    /// The load's state in more detail than a row.
    pub(crate) fn detail(&self, open: u32, in_flight: u64) -> Detail {
        Detail {
            second: self.last.clone(),
            so_far: quantiles(&self.samples.latency),
            errors: happened(&self.window.by_kind).collect(),
            open,
            in_flight,
            buckets: buckets(&self.samples.latency),
        }
    }

    fn finish(&mut self, (phase, second): (Phase, u32), mut so_far: PartialSecond) -> Option<(Phase, LoadSecond)> {
        self.last = quantiles(&so_far.merged.latency);
        let row = row(second, &so_far, &self.last);
        if matches!(phase, Phase::Window | Phase::Drain) {
            self.samples.add(&so_far.merged);
            if let Some(log) = &mut self.log {
                log.push(LogInterval::new(so_far.start, so_far.end, &so_far.merged));
            }
        }
        so_far.merged.clear();
        self.spare.push(so_far.merged);
        match phase {
            Phase::Window => {
                self.series.push(row.clone());
                self.tenths.extend(so_far.tenths);
                if so_far.counts.errors > 0 {
                    self.errors.insert(second, happened(&so_far.counts.by_kind).collect());
                }
            }
            Phase::Warmup => {}
            Phase::Connect | Phase::Drain => return None,
        }
        Some((phase, row))
    }
}

fn row(second: u32, so_far: &PartialSecond, latency: &Quantiles) -> LoadSecond {
    let length_s = to_secs(so_far.end.saturating_sub(so_far.start));
    LoadSecond {
        second,
        length_s,
        due: so_far.counts.due,
        sent: so_far.counts.sent,
        successful: so_far.counts.successful,
        errors: so_far.counts.errors,
        bytes_in: so_far.counts.bytes_in,
        p50_us: latency.p50_us,
        p99_us: latency.p99_us,
        max_us: latency.max_us,
        in_flight: in_flight(latency, length_s),
        lag_max_us: quantiles(&so_far.merged.lag).max_us,
        stalled_us: so_far.counts.stalls.total_us,
        connections_open: so_far.open,
    }
}

/// An empty list whose memory the kernel has given already, because something was written to it.
fn with_pages<T: Clone>(count: usize, value: T) -> Vec<T> {
    let mut list = vec![value; count];
    list.clear();
    list
}

/// Requests in flight in the mean, by the latencies of those that ended in so many seconds.
pub(crate) fn in_flight(latency: &Quantiles, length_s: f64) -> f64 {
    if length_s > 0.0 { latency.total_s() / length_s } else { 0.0 }
}

fn is_empty(row: &LoadSecond) -> bool {
    row.due + row.sent + row.successful + row.errors + row.bytes_in == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use crate::interval::Kinds;

    fn interval(phase: Phase, second: u32, successful: u64) -> Box<Interval> {
        let mut interval = Interval::new(Kinds::default());
        interval.phase = phase;
        interval.second = second;
        interval.start = u64::from(second) * SECOND;
        interval.end = interval.start + SECOND;
        interval.counts.successful = successful;
        interval.tenths[9] = successful as u32;
        interval.sample(0, 1, 1, 1_000_001, false);
        interval
    }

    #[test]
    fn a_row_comes_when_every_worker_has_handed_in() {
        let mut aggregate = Aggregate::new(2, true, false, 0);
        assert!(aggregate.take(&interval(Phase::Warmup, 0, 1)).is_none());
        let (phase, row) = aggregate.take(&interval(Phase::Warmup, 0, 2)).unwrap();
        assert_eq!((phase, row.successful, row.length_s), (Phase::Warmup, 3, 1.0));
        assert!(aggregate.take(&interval(Phase::Window, 0, 4)).is_none());
        assert!(aggregate.take(&interval(Phase::Window, 1, 5)).is_none());
        assert_eq!(aggregate.take(&interval(Phase::Window, 0, 6)).unwrap().1.successful, 10);
        assert!(aggregate.take(&interval(Phase::Drain, 0, 7)).is_none());
        // The other worker stopped half a second into second 1.
        aggregate.close(0, SECOND + SECOND / 2);
        let rows: Vec<_> = aggregate.series.iter().map(|r| (r.second, r.successful, r.length_s)).collect();
        assert_eq!(rows, [(0, 10, 1.0), (1, 5, 0.5)]);
        assert_eq!(aggregate.tenths, [0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0], "whole ones");
        assert_eq!((aggregate.window.successful, aggregate.total.successful), (15, 25));
        // Warm-up's samples are left out, the drain's are in.
        assert_eq!(aggregate.samples.latency.len(), 4);
        assert_eq!(aggregate.log.unwrap().len(), 3);
    }

    #[test]
    fn connections_open_are_those_of_all_workers_or_not_known() {
        let mut aggregate = Aggregate::new(2, false, false, 0);
        let of = |second: u32, open: Option<u32>| {
            let mut interval = interval(Phase::Window, second, 1);
            interval.open = open;
            interval
        };
        assert!(aggregate.take(&of(0, Some(3))).is_none());
        // One worker may be ahead of the other.
        assert!(aggregate.take(&of(1, Some(9))).is_none());
        assert_eq!(aggregate.take(&of(0, Some(4))).unwrap().1.connections_open, Some(7));
        assert_eq!(aggregate.take(&of(1, Some(0))).unwrap().1.connections_open, Some(9));
        aggregate.take(&of(2, Some(9)));
        assert_eq!(aggregate.take(&of(2, None)).unwrap().1.connections_open, None, "one did not come to its end");
        aggregate.take(&of(3, Some(9)));
        aggregate.close(0, 4 * SECOND);
        assert_eq!(aggregate.series.last().map(|row| (row.second, row.connections_open)), Some((3, None)));
    }

    #[test]
    fn rows_of_a_window_of_known_length_stay_where_they_are() {
        let mut aggregate = Aggregate::new(1, false, false, 100);
        let places = |aggregate: &Aggregate| (aggregate.series.as_ptr(), aggregate.tenths.as_ptr());
        let before = places(&aggregate);
        for second in 0..100 {
            assert!(aggregate.take(&interval(Phase::Window, second, 1)).is_some());
        }
        assert_eq!((aggregate.series.len(), aggregate.tenths.len()), (100, 1_000));
        assert_eq!(places(&aggregate), before);
    }

    #[test]
    fn empty_seconds_past_the_end_are_dropped() {
        let mut aggregate = Aggregate::new(1, false, false, 0);
        aggregate.take(&interval(Phase::Window, 0, 1));
        let mut empty = Interval::new(Kinds::default());
        (empty.phase, empty.second) = (Phase::Window, 1);
        aggregate.take(&empty);
        aggregate.close(0, SECOND);
        assert_eq!(aggregate.series.len(), 1);
    }
}
