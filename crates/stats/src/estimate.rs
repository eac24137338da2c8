//! A number with its interval, and the median of blocks as such a number. Reports and comparisons call it.

use serde::{Deserialize, Serialize};

use crate::order::{exact_median_interval, median_of_sorted, sorted_finite};
use crate::resample::median_percentiles;

/// Up to this number of values order statistics are used, above it the bootstrap.
pub(crate) const SMALL: usize = 7;

/// A value, how far it can be trusted, and what that rests on. Units are those of the data; ratios have none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate itself. Always inside the interval.
    pub value: f64,
    /// Lower end of the interval, inclusive.
    pub low: f64,
    /// Upper end of the interval, inclusive.
    pub high: f64,
    /// The number of values it rests on (blocks; blocks without a number are not counted).
    pub n: usize,
    /// Confidence of the interval, 0 to 1: the level that was asked for, or less when so few values cannot
    /// carry it. 0 at `n == 1`: the interval is the value, and promises nothing.
    pub level: f64,
}

/// The median of the finite values; of an even number the mean of the middle two. `None` when there are none.
pub fn median(xs: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted_finite(xs))
}

/// The median of blocks with an interval at `level` (such as 0.95).
///
/// From 8 values on: percentile bootstrap, 10,000 resamples, drawn from `seed` (Efron 1979; Efron and Tibshirani
/// 1993, section 13.3). Up to 7 values: the exact order-statistic interval, which needs no resampling and no
/// assumption but continuity. What that can and cannot promise:
///
/// - `n == 1`: nothing. `low == high == value`, `level == 0`. One block cannot say how far the next would be off.
/// - `n == 3`: smallest to largest. It misses the true median in one run of four, so `level` is 0.75 whatever
///   was asked for. That two such intervals do not touch is a hint, not a proof.
/// - `n == 5`: smallest to largest, `level` 0.9375: the least number of blocks that comes near 95 %.
///
/// The interval is about blocks like these. It knows nothing of an error that all blocks share.
///
/// `None` when no value is finite, or `level` is not between 0 and 1 (both excluded). The order of the values
/// does not matter.
pub fn median_interval(xs: &[f64], level: f64, seed: u64) -> Option<Estimate> {
    if !(level > 0.0 && level < 1.0) {
        return None;
    }
    let sorted = sorted_finite(xs);
    let (value, n) = (median_of_sorted(&sorted)?, sorted.len());
    let (low, high, reached) = if n <= SMALL {
        exact_median_interval(&sorted, level)
    } else {
        let (low, high) = median_percentiles(&sorted, level, seed);
        (low, high, level)
    };
    // The symmetric resamples have the sample's median in their middle; min and max only guard level -> 0.
    Some(Estimate { value, low: low.min(value), high: high.max(value), n, level: reached.min(level) })
}
