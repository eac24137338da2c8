//! Finds the stretch of a series whose level differs most from the rest. The audit calls it with what was answered in tenths of a
//! second. It does not know what the values are.

use crate::noise::MAD_TO_SIGMA;
use crate::order::{median_of_sorted, sorted_finite};

/// Fewer values say too little about their own noise.
const FEWEST: usize = 18;

/// More values are taken in batches, so that all stretches can be looked at.
const MOST: usize = 400;

/// A shorter stretch is one odd value.
const SHORTEST: usize = 2;

/// Lengths of the batches between whose means noise is measured, and how many differences that takes at least.
const BATCHES: [usize; 4] = [1, 2, 3, 5];
const DIFFERENCES: usize = 9;

/// A stretch of a series with another level than the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Index of its first value.
    pub start: usize,
    /// Index of the first value after it.
    pub end: usize,
    /// Its mean.
    pub inside: f64,
    /// The mean of the rest.
    pub outside: f64,
    /// The difference of both, in standard errors.
    score: f64,
}

/// The stretch whose level differs most from that of the rest, if that cannot be chance and matters.
///
/// A step anywhere is such a stretch (it reaches to an end), and so is a dip, a peak, or the half of a ramp. All stretches are
/// compared with the rest, by the likelihood ratio of an epidemic change (Levin and Kline 1985, "The cusum test of homogeneity with
/// an application in spontaneous abortion epidemiology", Statistics in Medicine 4). `matters`: the least difference, as a share of
/// the mean, and the least by which it moves the mean of the whole, so that neither a small change nor a short one counts.
///
/// **Noise** comes from differences between neighbouring means of 1, 2, 3 and 5 values: a step spoils one of them, which the median
/// forgives. The largest counts, in its long-run size, so that values that resemble their neighbours do not look like a change.
///
/// **False alarms.** The score has to be 6 + 20/n. Of 3,000 series of normal noise of 5 % each, with `matters` of 5 % and 2 %, at most
/// 0.7 % alarm (n = 20) and 0.1 % (50 and 200), where each value carries up to half of the one before; where it carries 0.7, 2.9 %
/// (n = 20), 0.7 % and 1.3 %. Of recorded rates a tenth of a second, cut into seconds and shuffled, at most 2 % (`tests/it/change.rs`, which
/// also has the power).
///
/// **Power**, in per cent of 300 series made of recorded noise: steps of -20 % and -50 % at a tenth, a half and nine tenths of the
/// window, and ramps of 20 %, for noise of 5 % and of 20 % a value (the ignored test of `tests/it/change.rs` prints all):
///
/// | values | -20 %, 5 % | -50 %, 5 % | ramp, 5 % | -20 %, 20 % | -50 %, 20 % | ramp, 20 % |
/// |---|---|---|---|---|---|---|
/// | 20 | 15 61 3 | 100 100 92 | 10 | 1 1 0 | 17 34 1 | 0 |
/// | 50 | 47 89 20 | 100 100 99 | 16 | 0 1 0 | 47 70 0 | 0 |
/// | 120 | 100 100 86 | 100 100 100 | 95 | 2 16 0 | 100 100 48 | 0 |
/// | 400 | 100 100 99 | 100 100 100 | 100 | 51 100 16 | 100 100 100 | 10 |
///
/// It cannot see changes that come and go all the time: they are the noise. `None` below 18 values, or when one is not finite.
pub fn other_level(series: &[f64], matters: (f64, f64)) -> Option<Stretch> {
    if series.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let batch = series.len().div_ceil(MOST).max(1);
    let values = means(series, batch);
    let n = values.len();
    if n < FEWEST {
        return None;
    }
    let sums = sums(&values);
    let mean = sums[n] / n as f64;
    let noise = noise(&values);
    let (least, effect) = (matters.0 * mean.abs(), matters.1 * mean.abs() * n as f64);
    let mut most: Option<Stretch> = None;
    for start in 0..n {
        for end in start + SHORTEST..=n.min(start + n - SHORTEST) {
            let (length, sum) = ((end - start) as f64, sums[end] - sums[start]);
            let rest = n as f64 - length;
            let (inside, outside) = (sum / length, (sums[n] - sum) / rest);
            let shift = (inside - outside).abs();
            let score = shift / noise * (length * rest / n as f64).sqrt();
            if shift >= least && shift * length.min(rest) >= effect && most.is_none_or(|most| score > most.score) {
                most = Some(Stretch { start: start * batch, end: end * batch, inside, outside, score });
            }
        }
    }
    most.filter(|most| most.score >= 6.0 + 20.0 / n as f64)
}

fn means(values: &[f64], batch: usize) -> Vec<f64> {
    values.chunks_exact(batch).map(|some| some.iter().sum::<f64>() / batch as f64).collect()
}

/// The sum of the values before each, and of all.
fn sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        sums.push(sums[sums.len() - 1] + value);
    }
    sums
}

/// The standard deviation of a value as it would be if the means of batches varied only by it. At least a thousandth of the mean,
/// because a series without any noise has no score.
fn noise(values: &[f64]) -> f64 {
    let of = |batch: usize| {
        let means = means(values, batch);
        let differences: Vec<f64> = means.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
        let median = median_of_sorted(&sorted_finite(&differences)).filter(|_| differences.len() >= DIFFERENCES)?;
        Some(median * MAD_TO_SIGMA * (batch as f64 / 2.0).sqrt())
    };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    BATCHES.into_iter().filter_map(of).fold(mean.abs() * 1e-3, f64::max).max(f64::MIN_POSITIVE)
}
