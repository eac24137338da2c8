//! Data of a load beyond its rows and its result: its state after each second for a live view, and whole distributions
//! for formats that need every bucket. `aggregate` fills it; callers of [`crate::run()`] get it through `Progress`.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use weir_model::load::{ErrorKind, Quantiles};

use crate::interval::{Merged, quantiles};

/// The state of a load at the end of a second of its window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detail {
    /// The latency of requests that were due in the window and ended in this second.
    pub second: Quantiles,
    /// The latency of requests that were due in the window and have ended so far.
    pub so_far: Quantiles,
    /// Requests that failed in the window so far, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Connections open now.
    pub open: u32,
    /// Requests that are due and have not ended.
    pub in_flight: u64,
    /// The latencies of `so_far` in buckets.
    pub buckets: Buckets,
}

/// Upper ends of [`Buckets`] in seconds: those that OpenTelemetry advises for HTTP, with finer ones below its first, because a
/// proxy answers in less.
pub const BUCKETS_S: [f64; 20] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0,
];

/// A distribution in few buckets. At an end, samples within the histogram's resolution (3 digits) may be in either neighbour.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets {
    /// Samples in each bucket of [`BUCKETS_S`], and those above all.
    pub counts: [u64; BUCKETS_S.len() + 1],
    /// The sum of all samples, seconds.
    pub sum_s: f64,
}

/// The buckets of a histogram of nanoseconds.
pub fn buckets(histo: &Histogram<u64>) -> Buckets {
    let mut buckets = Buckets { sum_s: quantiles(histo).mean_us * histo.len() as f64 / 1e6, ..Buckets::default() };
    for step in histo.iter_recorded() {
        // A step's samples are not all at its upper end: its middle decides.
        let seconds = histo.median_equivalent(step.value_iterated_to()) as f64 / 1e9;
        buckets.counts[BUCKETS_S.partition_point(|end| *end < seconds)] += step.count_since_last_iteration();
    }
    buckets
}

/// The distributions of requests due in the window. **Values are nanoseconds**, from 1 µs (values below about half of
/// it count as 0) to 1 h, with 3 significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributions {
    /// Due to answered.
    pub latency: Histogram<u64>,
    /// Sent to answered.
    pub service: Histogram<u64>,
    /// Due to sent.
    pub lag: Histogram<u64>,
}

impl Distributions {
    pub(crate) fn of(merged: &Merged) -> Distributions {
        Distributions { latency: merged.latency.clone(), service: merged.service.clone(), lag: merged.lag.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::histo;

    #[test]
    fn every_sample_is_in_one_bucket() {
        let mut histo = histo();
        for nanos in [0, 30_000, 60_000, 900_000, 1_100_000, 20_000_000_000] {
            histo.record(nanos).expect("in range");
        }
        let Buckets { counts, sum_s } = buckets(&histo);
        assert_eq!(counts.iter().sum::<u64>(), 6);
        assert_eq!((counts[0], counts[1], counts[4], counts[5], counts[20]), (2, 1, 1, 1, 1));
        assert!((sum_s / 20.002_09 - 1.0).abs() < 1e-3, "{sum_s}");
        assert_eq!(buckets(&crate::interval::histo()), Buckets::default());
        assert!(BUCKETS_S.is_sorted());
    }
}
