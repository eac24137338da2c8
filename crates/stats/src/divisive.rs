//! Finds where the level of a series of runs changes. Histories call it, with one number of each run, in the order of the runs.
//!
//! The values are those of whole runs, neighbours in time or in version. This module does not know what they are, which direction is
//! better, or which of them were left out.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::order::{median_of_sorted, sorted_finite};

/// The least number of values between two changes: fewer may be odd runs.
pub const SHORTEST: usize = 3;

/// A series shorter than this has no changes that could be told from chance.
pub const FEWEST: usize = 2 * SHORTEST + 2;

/// After so many resampled series that look as changed as the real one, it is certain enough that it is one of them.
const AS_LARGE: u32 = 8;

/// Of a resampled series that begins with an arbitrary value, so many values are left out.
const FORGOTTEN: usize = 30;

/// The largest share that values may carry of the one before: above it, a drift has no level.
const MOST_CARRIED: f64 = 0.9;

/// Of splits beyond the one in question, so many are looked at for levels, and each must lower the logarithm of the squares that are left,
/// times the number of values, by so many logarithms of that number. Twice of what finds levels in independent values (Yao 1988,
/// "Estimating the number of change-points via Schwarz' criterion", Statistics & Probability Letters 6): levels are found in a drift too.
const FURTHER: u32 = 4;
const PENALTY: f64 = 5.0;

/// A value from which on a series has another level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Median of the level before, up to the previous change.
    pub before: f64,
    /// Median of the new level, up to the next change.
    pub after: f64,
    /// How often a series without this change would look as changed.
    pub p: f64,
}

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changes {
    /// How often a series without any change may have one, between 0 and 1, both excluded.
    pub false_alarms: f64,
    /// The least difference between two medians, in the unit of the values.
    pub least: f64,
    /// Seed of the resampling.
    pub seed: u64,
}

/// The values from which on `series` has another level, ascending.
///
/// **Where.** E-divisive (Matteson and James 2014, "A nonparametric approach for multiple change point analysis of multivariate
/// data", Journal of the American Statistical Association 109; for benchmarks Daly and others 2020, "The use of change point
/// detection to identify software performance regressions in a continuous integration system", ICPE). A series is split where the
/// energy distance between what is before and after is largest, then its parts, and so on. [`best_split`] is one such step.
///
/// **Whether.** A split counts if at most `false_alarms` of resampled series have one as large. Where neighbours do not resemble
/// each other, resampling is the permutation of the original method, which is exact for every distribution. A machine that drifts
/// makes neighbours alike, and permutations then take each drift for a change. So the correlation of neighbours is measured beside
/// the split (its bias corrected, Kendall 1954, "Note on bias in the estimation of autocorrelation", Biometrika 41), and
/// resampled series carry as much of each value to the next (Huskova, Kirch, Praskova and Steinebach 2008, "On the detection of
/// changes in autoregressive time series, II. Resampling procedures", Journal of Statistical Planning and Inference 138). Resampling
/// ends early where the response is clear (Besag and Clifford 1991, "Sequential Monte Carlo p-values", Biometrika 78).
///
/// **How much.** Changes by which medians differ by less than `least` are left out, the smallest first.
///
/// `tests/it/divisive.rs` measures false alarms and power; `bench/EVIDENCE.md` has the tables. A change of spread alone is none, and of a
/// change that lasts for fewer than three values nothing is seen. No change below 8 values or when one is not finite.
pub fn change_points(series: &[f64], how: &Changes) -> Vec<ChangePoint> {
    let possible = how.false_alarms > 0.0 && how.false_alarms < 1.0;
    if series.len() < FEWEST || !possible || series.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut random = ChaCha8Rng::seed_from_u64(how.seed);
    let mut found: Vec<(usize, f64)> = Vec::new();
    while let Some((at, score)) = best_of(&parts(series, &found)) {
        let parts = parts(series, &found);
        let carried = carried(series, &found, at);
        let p = chance(&parts, score, carried, how.false_alarms, &mut random);
        if p > how.false_alarms {
            break;
        }
        found.push((at, p));
        found.sort_by_key(|(at, _)| *at);
    }
    that_matter(series, found, how.least)
}

/// The place at which the energy distance between what is before and what is after is largest, and the distance; at least three values
/// are on either side. What is after may end before the series does, at a further change. `None` below six values.
///
/// With n values before and m after, it is `n m / (n + m)` times twice the mean distance between a value before and one after, less
/// the mean distances between two values of the same side (Matteson and James, section 2, with an exponent of 1).
pub fn best_split(series: &[f64]) -> Option<(usize, f64)> {
    let len = series.len();
    // Of the values from the first to each: the sum of distances between any two, and below, to each value.
    let mut to_earlier = vec![0.0; len + 1];
    let mut column = vec![0.0; len + 1];
    let mut best: Option<(usize, f64)> = None;
    for end in 1..=len {
        let value = series[end - 1];
        // `column[at]`: distances between the values before `at` and those from `at` to `end`.
        let (mut earlier, mut sum) = (0.0, 0.0);
        for at in 1..end {
            sum += (value - series[at - 1]).abs();
            column[at] += sum;
            earlier = sum;
        }
        to_earlier[end] = to_earlier[end - 1] + earlier;
        let (from, to) = (SHORTEST, end.saturating_sub(SHORTEST));
        for at in from..=to {
            let (n, m) = (at as f64, (end - at) as f64);
            let (before, between) = (to_earlier[at], column[at]);
            let after = to_earlier[end] - before - between;
            let score = 2.0 * (between - before * m / (n - 1.0) - after * n / (m - 1.0)) / (n + m);
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((at, score));
            }
        }
    }
    best
}

/// The series between the changes found so far, each with the index of its first value.
fn parts<'a>(series: &'a [f64], found: &[(usize, f64)]) -> Vec<(usize, &'a [f64])> {
    let starts = std::iter::once(0).chain(found.iter().map(|(at, _)| *at));
    let ends = found.iter().map(|(at, _)| *at).chain([series.len()]);
    starts.zip(ends).map(|(start, end)| (start, &series[start..end])).collect()
}

/// The best split of any part: its index in the series, and its score.
fn best_of(parts: &[(usize, &[f64])]) -> Option<(usize, f64)> {
    let splits = parts.iter().filter_map(|(start, part)| best_split(part).map(|(at, score)| (start + at, score)));
    splits.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The share of resampled series whose best split is at least as large as `score`.
fn chance(parts: &[(usize, &[f64])], score: f64, carried: f64, false_alarms: f64, random: &mut ChaCha8Rng) -> f64 {
    let most = (f64::from(AS_LARGE) / false_alarms).ceil() as u32;
    let mut as_large = 0;
    for resampled in 1..most {
        let largest = parts.iter().filter_map(|(_, part)| best_split(&resample(part, carried, random)));
        if largest.fold(f64::NEG_INFINITY, |most, (_, score)| most.max(score)) >= score {
            as_large += 1;
            if as_large == AS_LARGE {
                return f64::from(as_large) / f64::from(resampled);
            }
        }
    }
    f64::from(as_large + 1) / f64::from(most)
}

/// The same values in another order; where neighbours are alike, new values made of the old one's surprises.
fn resample(part: &[f64], carried: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
    if carried <= 0.0 {
        let mut values = part.to_vec();
        values.shuffle(random);
        return values;
    }
    let mean = part.iter().sum::<f64>() / part.len() as f64;
    let surprises: Vec<f64> = part.windows(2).map(|two| (two[1] - mean) - carried * (two[0] - mean)).collect();
    let usual = surprises.iter().sum::<f64>() / surprises.len() as f64;
    let mut value = 0.0;
    let mut next = || {
        value = carried * value + surprises[random.random_range(0..surprises.len())] - usual;
        value
    };
    (0..FORGOTTEN).for_each(|_| {
        next();
    });
    (0..part.len()).map(|_| next()).collect()
}

/// The share of each value that the next one carries, 0 to [`MOST_CARRIED`], once levels are taken out: those between the changes
/// found and a split at `at`, and between as many further splits as explain much more than a drift has ([`PENALTY`]).
fn carried(series: &[f64], found: &[(usize, f64)], at: usize) -> f64 {
    let len = series.len() as f64;
    let mut splits = found.to_vec();
    let (mut next, mut best) = (Some(at), (f64::INFINITY, 0.0));
    for further in 0..=FURTHER {
        let Some(at) = next else { break };
        splits.push((at, 0.0));
        splits.sort_by_key(|(at, _)| *at);
        let parts = parts(series, &splits);
        let (together, own) = products(&parts);
        if own <= 0.0 {
            return 0.0;
        }
        let criterion = len * own.ln() + f64::from(further) * PENALTY * len.ln();
        if criterion < best.0 {
            let measured = together / own;
            // Each mean that is taken out makes neighbours look less alike.
            best = (criterion, measured + parts.len() as f64 * (1.0 + 3.0 * measured.max(0.0)) / len);
        }
        next = best_of(&parts).map(|(at, _)| at);
    }
    best.1.clamp(0.0, MOST_CARRIED)
}

/// Of deviations from the means of parts: the sum of products of neighbours, and of squares.
fn products(parts: &[(usize, &[f64])]) -> (f64, f64) {
    let (mut together, mut own) = (0.0, 0.0);
    for (_, part) in parts {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        together += part.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>();
        own += part.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    }
    (together, own)
}

/// The changes that are large enough.
fn that_matter(series: &[f64], mut found: Vec<(usize, f64)>, least: f64) -> Vec<ChangePoint> {
    loop {
        let medians: Vec<f64> = parts(series, &found).iter().map(|(_, part)| median(part)).collect();
        let changes: Vec<ChangePoint> = found
            .iter()
            .zip(medians.windows(2))
            .map(|((at, p), two)| ChangePoint { at: *at, before: two[0], after: two[1], p: *p })
            .collect();
        let size = |change: &ChangePoint| (change.after - change.before).abs();
        let smallest = changes.iter().min_by(|a, b| size(a).total_cmp(&size(b)));
        match smallest.filter(|change| size(change) < least) {
            Some(small) => found.retain(|(at, _)| *at != small.at),
            None => return changes,
        }
    }
}

fn median(values: &[f64]) -> f64 {
    median_of_sorted(&sorted_finite(values)).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that carry half of the one before keep that and their spread, and have no level of their own.
    #[test]
    fn resampled_values_stay_about_zero() {
        let part: Vec<f64> = (0..40).map(|n| 100.0 + f64::from(n * 7 % 11)).collect();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let all: Vec<f64> = (0..500).flat_map(|_| resample(&part, 0.5, &mut random)).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!(mean.abs() < 0.2, "{mean}");
    }

    #[test]
    fn a_change_that_is_seen_matters_from_the_least_difference_on() {
        let series: Vec<f64> = (0..60).map(|n| if n < 30 { 1.0 } else { 1.01 } + f64::from(n % 3) * 1e-4).collect();
        let at = |least| {
            let changes = change_points(&series, &Changes { false_alarms: 0.05, least, seed: 1 });
            changes.iter().map(|change| change.at).collect::<Vec<_>>()
        };
        assert_eq!((at(0.005), at(0.02)), (vec![30], vec![]));
    }
}
