//! The calling thread's counters: slabs of all workers put together, second by second, and their sums.
//!
//! A page is one second of one phase. It is complete when every worker has handed in its slab; workers agree on
//! where seconds begin and end, so pages complete in order. It does not know what becomes of the rows.

use std::collections::BTreeMap;

use weir_model::load::{LoadSecond, Quantiles};

use crate::clock::to_secs;
use crate::detail::Detail;
use crate::output::Interval;
use crate::recorder::{EventCounts, Merged, Phase, Slab, quantiles};

/// One second of one phase, over all workers.
#[derive(Debug)]
struct Page {
    slabs: u32,
    start: u64,
    end: u64,
    counts: EventCounts,
    /// Connections open at its end, if each worker has said how many it has.
    open: Option<u32>,
    merged: Merged,
}

/// The counters.
#[derive(Debug)]
pub(crate) struct Aggregate {
    workers: u32,
    pages: BTreeMap<(Phase, u32), Page>,
    spare: Vec<Merged>,
    /// Samples of requests due in the window.
    pub samples: Merged,
    /// What happened in the window, and in all of the load.
    pub window: EventCounts,
    pub total: EventCounts,
    /// The window's rows.
    pub series: Vec<LoadSecond>,
    /// Of the last second that was completed.
    pub last: Quantiles,
    /// Serialised histograms of the window and of what followed it, if a log is wanted.
    pub log: Option<Vec<Interval>>,
}

impl Aggregate {
    pub(crate) fn new(workers: u32, log: bool) -> Aggregate {
        Aggregate {
            workers,
            pages: BTreeMap::new(),
            spare: vec![Merged::new()],
            samples: Merged::new(),
            window: EventCounts::default(),
            total: EventCounts::default(),
            series: Vec::new(),
            last: Quantiles::default(),
            log: log.then(Vec::new),
        }
    }

    /// Takes a slab. When it completes a second of warm-up or window, that second's row comes back.
    pub(crate) fn take(&mut self, slab: &Slab) -> Option<(Phase, LoadSecond)> {
        self.total.add(&slab.counts);
        if slab.phase == Phase::Window {
            self.window.add(&slab.counts);
        }
        let key = (slab.phase, slab.second);
        let spare = &mut self.spare;
        let page = self.pages.entry(key).or_insert_with(|| Page {
            slabs: 0,
            start: slab.start,
            end: slab.end,
            counts: EventCounts::default(),
            open: Some(0),
            merged: spare.pop().unwrap_or_else(Merged::new),
        });
        page.slabs += 1;
        page.end = page.end.max(slab.end);
        page.counts.add(&slab.counts);
        page.open = page.open.zip(slab.open).map(|(sum, n)| sum + n);
        page.merged.take(slab);
        if page.slabs < self.workers {
            return None;
        }
        let page = self.pages.remove(&key)?;
        self.finish(key, page)
    }

    /// Ends the counters: pages that not every worker wrote (the last ones of a load that was cut short, or whose
    /// threads finished at different times) are finished as they are, and rows end where the window did.
    pub(crate) fn close(&mut self, window: u64, end: u64) {
        for (key, mut page) in std::mem::take(&mut self.pages) {
            // Of the workers that are missing nobody knows how many they have.
            page.open = None;
            self.finish(key, page);
        }
        let length = to_secs(end.saturating_sub(window));
        // Seconds that some threads began after the last answer of all are empty.
        self.series.retain(|row| f64::from(row.second) < length || !is_empty(row));
        if let Some(last) = self.series.last_mut() {
            last.length_s = (length - f64::from(last.second)).clamp(0.0, 1.0);
        }
    }

    /// More of how it stands than a row says.
    pub(crate) fn detail(&self, open: u32, in_flight: u64) -> Detail {
        Detail::new(&self.last, &self.samples.latency, &self.window.by_kind, open, in_flight)
    }

    fn finish(&mut self, (phase, second): (Phase, u32), mut page: Page) -> Option<(Phase, LoadSecond)> {
        self.last = quantiles(&page.merged.latency);
        let row = row(second, &page, &self.last);
        if matches!(phase, Phase::Window | Phase::Drain) {
            self.samples.add(&page.merged);
            if let Some(log) = &mut self.log {
                log.push(Interval::new(page.start, page.end, &page.merged));
            }
        }
        page.merged.clear();
        self.spare.push(page.merged);
        match phase {
            Phase::Window => self.series.push(row.clone()),
            Phase::Warmup => {}
            Phase::Connect | Phase::Drain => return None,
        }
        Some((phase, row))
    }
}

fn row(second: u32, page: &Page, latency: &Quantiles) -> LoadSecond {
    LoadSecond {
        second,
        length_s: to_secs(page.end.saturating_sub(page.start)),
        due: page.counts.due,
        sent: page.counts.sent,
        right: page.counts.right,
        errors: page.counts.errors,
        bytes_in: page.counts.bytes_in,
        p50_us: latency.p50_us,
        p99_us: latency.p99_us,
        max_us: latency.max_us,
        lag_max_us: quantiles(&page.merged.lag).max_us,
        connections_open: page.open,
    }
}

fn is_empty(row: &LoadSecond) -> bool {
    row.due + row.sent + row.right + row.errors + row.bytes_in == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    fn slab(phase: Phase, second: u32, right: u64) -> Box<Slab> {
        let mut slab = Slab::new();
        slab.phase = phase;
        slab.second = second;
        slab.start = u64::from(second) * SECOND;
        slab.end = slab.start + SECOND;
        slab.counts.right = right;
        slab.sample(1, Some(1), 1_000_001);
        slab
    }

    #[test]
    fn a_row_comes_when_every_worker_has_handed_in() {
        let mut aggregate = Aggregate::new(2, true);
        assert!(aggregate.take(&slab(Phase::Warmup, 0, 1)).is_none());
        let (phase, row) = aggregate.take(&slab(Phase::Warmup, 0, 2)).unwrap();
        assert_eq!((phase, row.right, row.length_s), (Phase::Warmup, 3, 1.0));
        assert!(aggregate.take(&slab(Phase::Window, 0, 4)).is_none());
        assert!(aggregate.take(&slab(Phase::Window, 1, 5)).is_none());
        assert_eq!(aggregate.take(&slab(Phase::Window, 0, 6)).unwrap().1.right, 10);
        assert!(aggregate.take(&slab(Phase::Drain, 0, 7)).is_none());
        // The other worker stopped half a second into second 1.
        aggregate.close(0, SECOND + SECOND / 2);
        let rows: Vec<_> = aggregate.series.iter().map(|r| (r.second, r.right, r.length_s)).collect();
        assert_eq!(rows, [(0, 10, 1.0), (1, 5, 0.5)]);
        assert_eq!((aggregate.window.right, aggregate.total.right), (15, 25));
        // Warm-up's samples are left out, the drain's are in.
        assert_eq!(aggregate.samples.latency.len(), 4);
        assert_eq!(aggregate.log.unwrap().len(), 3);
    }

    #[test]
    fn connections_open_are_those_of_all_workers_or_not_known() {
        let mut aggregate = Aggregate::new(2, false);
        let of = |second: u32, open: Option<u32>| {
            let mut slab = slab(Phase::Window, second, 1);
            slab.open = open;
            slab
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
    fn empty_seconds_past_the_end_are_dropped() {
        let mut aggregate = Aggregate::new(1, false);
        aggregate.take(&slab(Phase::Window, 0, 1));
        let mut empty = Slab::new();
        (empty.phase, empty.second) = (Phase::Window, 1);
        aggregate.take(&empty);
        aggregate.close(0, SECOND);
        assert_eq!(aggregate.series.len(), 1);
    }
}
