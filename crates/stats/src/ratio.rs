//! Compares two products within blocks. Reports call it.

use crate::estimate::{Estimate, SMALL, median_interval};
use crate::student;

/// How many times `a` is `b`: the median of the per-block ratios `a[i] / b[i]`, with an interval at `level`.
///
/// Pairs, because the machine's drift acts on both trials of a block, and in the ratio it cancels. On the
/// logarithmic scale, because there "twice" and "half" are equally far from "equal": swapping `a` and `b` gives
/// the reciprocal estimate (to the last bits). The median and not the geometric mean, because the blocks that go
/// wrong on a shared machine go wrong by a lot (a stolen second, a compaction), and one of them must not decide; the
/// price is an interval about a quarter wider than the mean's when nothing goes wrong (the median's efficiency under
/// normal noise is 2/pi = 64 %).
///
/// The interval: from 8 pairs on the percentile bootstrap, below that order statistics, as in
/// [`median_interval`]. But a comparison is a decision, and order statistics of 3 pairs would declare a product
/// different from itself in one run of four. So where so few pairs cannot carry `level` (5 and fewer at
/// 95 %), the interval is widened to Student's t on the logarithms (Student 1908), which keeps its promise when
/// log ratios are near normal. With 2 or 3 pairs that is wide, as it should be: t has a factor of 12.7 and 4.3.
/// With 1 pair there is no interval: `low == high == value`, `level == 0`.
///
/// Pairs in which a value is not finite or not positive are left out. `None` when none remains, the lengths
/// differ, or `level` is not between 0 and 1 (both excluded).
pub fn paired_ratio(a: &[f64], b: &[f64], level: f64, seed: u64) -> Option<Estimate> {
    let logs = log_ratios(a, b)?;
    let mut estimate = median_interval(&logs, level, seed)?;
    if estimate.level < level && (2..=SMALL).contains(&logs.len()) {
        let (low, high) = student_interval(&logs, level)?;
        estimate.low = estimate.low.min(low);
        estimate.high = estimate.high.max(high);
        estimate.level = level;
    }
    Some(Estimate { value: estimate.value.exp(), low: estimate.low.exp(), high: estimate.high.exp(), ..estimate })
}

/// `ln a - ln b` of each usable pair, smallest first (so that sums do not depend on the input's order). `None`
/// when the lengths differ.
pub(crate) fn log_ratios(a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    if a.len() != b.len() {
        return None;
    }
    let usable = |x: f64| x.is_finite() && x > 0.0;
    let pairs = a.iter().zip(b).filter(|&(&x, &y)| usable(x) && usable(y));
    // A difference of logarithms, not the logarithm of a quotient: it cannot overflow, and swaps exactly.
    let mut logs: Vec<f64> = pairs.map(|(x, y)| x.ln() - y.ln()).collect();
    logs.sort_by(f64::total_cmp);
    Some(logs)
}

/// The t interval of the mean; needs two values.
fn student_interval(xs: &[f64], level: f64) -> Option<(f64, f64)> {
    let n = xs.len() as f64;
    let mean = xs.iter().sum::<f64>() / n;
    let variance = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student::two_sided(level, xs.len() - 1)? * (variance / n).sqrt();
    Some((mean - half, mean + half))
}
