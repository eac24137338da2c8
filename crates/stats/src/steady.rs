//! Finds from where on a series keeps its level, and whether it does. The lab calls it to check a trial.
//!
//! The values are those of one trial, second after second: neighbours, not blocks. They decide only whether a trial
//! counts, never how one product compares with another. This module does not know what the values are.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use crate::noise::robust_sigma;
use crate::order::{median_of_sorted, sorted_finite};

/// With fewer values than this, nothing can be said about a level.
const FEWEST: usize = 10;

/// Permutations drawn for one test: a p of 5 % is then known to half a percent.
const PERMUTATIONS: u32 = 2_000;

/// Robust standard deviations beyond which a batch counts as no farther off: one stolen second is an outlier, a
/// quarter of the series at another level is not.
const FAR: f64 = 4.0;

/// The steadiest part of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SteadyPart {
    /// Index in the input of its first value. All before it is warm-up. At most a batch beyond the middle.
    pub start: usize,
    /// Mean from there on, in the unit of the series.
    pub mean: f64,
    /// The largest difference between the means before and after any moment of it that leaves a quarter on either
    /// side, as a share of `mean`.
    pub shift: f64,
    /// The probability that a series without any order would look at least as much like a drift.
    pub p: f64,
    /// Whether it keeps its level: no drift shows at the given level, or `shift` is within the tolerance.
    pub steady: bool,
}

/// Where the warm-up of `series` ends, and whether what follows keeps its level.
///
/// The end of the warm-up is the point from which on the mean has the smallest marginal standard error, over means of
/// batches (MSER: White 1997, "An effective truncation heuristic for bias reduction in simulation output", Simulation
/// 69; MSER-5: White, Cobb and Spratt 2000, "A comparison of five steady-state truncation heuristics for simulation",
/// Winter Simulation Conference). Batches are of 5 values, in series of less than 50 of fewer, so that there are
/// always 10. Only the first half is searched: what is not level by then has not shown that it will be.
///
/// MSER gives an end to anything, a ramp included. So what follows is tested: the sum of squares of the cumulated
/// deviations from the mean, which is what detects a change of level at an unknown time best (Gardner 1969, "On
/// detecting changes in the mean of normal variates", Annals of Mathematical Statistics 40), against random
/// permutations of them (exact for values in no order; drawn from `seed`). The values are means of up to 5, so that
/// neighbours that resemble each other weigh less; deviations beyond 4 robust standard deviations count as 4, so that
/// one stolen second neither decides nor hides a drift. A significant drift too small to matter is forgiven:
/// `tolerance` (0.02: two percent of the mean) says what is too small.
///
/// It cannot see a change slower than the series is long, or a swing that comes and goes within a batch. If it is
/// called every second while a product warms up, it will at some time return true; and with 10 values that means
/// little. So pass as many seconds as the warm-up may take.
///
/// Neighbouring seconds that resemble each other look like a drift. At 95 %, and with no tolerance, one level series of
/// twenty is called a drift when its seconds are independent; when each carries half of the one before, one of ten
/// (60 values and more) to one of five (30).
///
/// Values that are not finite are left out, and keep their places. `None` when fewer than 10 remain, `level` is not
/// between 0 and 1 (both excluded), or `tolerance` is negative.
pub fn steady_part(series: &[f64], tolerance: f64, level: f64, seed: u64) -> Option<SteadyPart> {
    let places: Vec<usize> = (0..series.len()).filter(|&i| series[i].is_finite()).collect();
    if places.len() < FEWEST || !(level > 0.0 && level < 1.0) || tolerance.is_nan() || tolerance < 0.0 {
        return None;
    }
    // In parts of the largest, no square or sum can overflow.
    let largest = places.iter().map(|&i| series[i].abs()).fold(f64::MIN_POSITIVE, f64::max);
    let values: Vec<f64> = places.iter().map(|&i| series[i] / largest).collect();
    let start = warm_up(&values);
    let kept = &values[start..];
    // A test of few batches finds nothing: with six of them even a clean step has a p of 10 %.
    let means = batch_means(kept, (kept.len() / 20).clamp(1, 5));
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let shift = largest_shift(&means) / mean.abs();
    let shift = if shift.is_nan() { 0.0 } else { shift };
    let p = drift_p(&means, seed);
    let steady = p > 1.0 - level || shift <= tolerance;
    Some(SteadyPart { start: places[start], mean: mean * largest, shift, p, steady })
}

/// The number of values to cut off.
fn warm_up(values: &[f64]) -> usize {
    let batch = (values.len() / 10).clamp(1, 5);
    let means = batch_means(values, batch);
    match least_marginal_error(&means) {
        0 => 0,
        // The first batch has the remainder; all others begin at multiples from the end.
        cut => values.len() - (means.len() - cut) * batch,
    }
}

/// Means of batches from the end backwards; the first batch has the remainder.
fn batch_means(values: &[f64], batch: usize) -> Vec<f64> {
    let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len() as f64;
    let (head, tail) = values.split_at(batch + values.len() % batch);
    std::iter::once(mean(head)).chain(tail.chunks(batch).map(mean)).collect()
}

/// How many batches to cut off, at most half of them, so that the sum of squared deviations of the rest over the
/// square of its number is least. The fewest of equals.
fn least_marginal_error(means: &[f64]) -> usize {
    // From the back, one value more each time (Welford 1962).
    let (mut mean, mut squares, mut kept) = (0.0, 0.0, 0.0);
    let (mut best, mut least) = (0, f64::INFINITY);
    for (cut, value) in means.iter().enumerate().rev() {
        kept += 1.0;
        let off = value - mean;
        mean += off / kept;
        squares += off * (value - mean);
        let error = squares / (kept * kept);
        if cut <= means.len() / 2 && error <= least {
            (best, least) = (cut, error);
        }
    }
    best
}

/// The largest difference between the means on both sides of a moment that leaves a quarter on either.
fn largest_shift(means: &[f64]) -> f64 {
    let (n, total) = (means.len(), means.iter().sum::<f64>());
    let side = n.div_ceil(4);
    let mut before = 0.0;
    let mut largest: f64 = 0.0;
    for (passed, mean) in (1..).zip(means) {
        before += mean;
        if (side..=n - side).contains(&passed) {
            let difference = (total - before) / (n - passed) as f64 - before / passed as f64;
            largest = largest.max(difference.abs());
        }
    }
    largest
}

/// The share of permutations whose cumulated deviations are at least as large; the order seen counts as one of them.
fn drift_p(means: &[f64], seed: u64) -> f64 {
    let mut scores = scores(means);
    let seen = cumulated(&scores);
    // Sums of the same numbers in another order may differ in their last bits.
    let seen = seen - seen * 1e-9;
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut as_large = 1_u32;
    for _ in 0..PERMUTATIONS {
        scores.shuffle(&mut random);
        as_large += u32::from(cumulated(&scores) >= seen);
    }
    f64::from(as_large) / f64::from(PERMUTATIONS + 1)
}

fn cumulated(deviations: &[f64]) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for deviation in deviations {
        sum += deviation;
        squares += sum * sum;
    }
    squares
}

/// Each value's distance from the median, cut off at [`FAR`] robust standard deviations (Huber 1964, "Robust estimation
/// of a location parameter"), less the mean of these. Where more than half of the values are equal, nothing is cut.
fn scores(values: &[f64]) -> Vec<f64> {
    let sorted = sorted_finite(values);
    let middle = median_of_sorted(&sorted).unwrap_or(0.0);
    let far = match robust_sigma(&sorted) {
        Some(sigma) if sigma > 0.0 => FAR * sigma,
        _ => f64::INFINITY,
    };
    let cut: Vec<f64> = values.iter().map(|x| (x - middle).clamp(-far, far)).collect();
    let mean = cut.iter().sum::<f64>() / cut.len() as f64;
    cut.iter().map(|x| x - mean).collect()
}
