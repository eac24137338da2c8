//! Compares two samples of blocks that share nothing, such as two runs of one suite. Comparisons of runs call it.
//!
//! It does not know which of the two is newer, or how large a change matters.

use crate::estimate::Estimate;
use crate::order::median_of_sorted;
use crate::student;

/// Up to this size of a sample the exact distribution is counted. Above it the normal approximation is used, which then
/// differs by less than a tenth of a percent of coverage.
const COUNTED: usize = 40;

/// Stands for the normal distribution where [`student`] expects degrees of freedom.
const NORMAL: usize = usize::MAX;

/// How many times `a` is `b`, from blocks that belong to no common pair, with an interval at `level`.
///
/// Where blocks of both were taken in turn, [`crate::paired_ratio`] says more, because the machine's drift cancels
/// there. Here it does not. **The interval knows the noise between blocks of one run, and nothing of what befell one
/// whole run and not the other** (another host, another day, a busy neighbour). Two runs of the same product may
/// differ by more than either's blocks; dividing each block by its own `direct` before it comes here takes out what
/// the machine did to all.
///
/// The value is the median of all ratios `a[i] / b[j]` (Hodges and Lehmann 1963, "Estimates of location based on
/// rank tests", Annals of Mathematical Statistics 34), on the logarithmic scale, so that swapping the samples gives
/// the reciprocal. One wild block moves it little. The interval are the ratios that the Mann-Whitney test does not
/// reject (Mann and Whitney 1947; Bauer 1972, "Constructing confidence sets using rank statistics", JASA 67): exact
/// for any continuous noise that both share.
///
/// Where so few blocks cannot carry `level` (at 95 %: 3 against 3, which reach 90 %, and fewer), it is widened to
/// Welch's t on the logarithms (Welch 1947, Biometrika 34), as wide as that is. With one block in either sample
/// there is no interval: `low` and `high` are the extreme ratios and `level` is what they promise, 0 for one against
/// one. [`Estimate::n`] is the size of the smaller sample.
///
/// A judgement on many cases at once makes many errors at 5 % each; whoever needs one response over `k` cases asks for
/// `1 - (1 - level) / k` here.
///
/// Values that are not finite or not positive are left out. `None` when a sample has none left, or `level` is not
/// between 0 and 1 (both excluded).
pub fn unpaired_ratio(a: &[f64], b: &[f64], level: f64) -> Option<Estimate> {
    if !(level > 0.0 && level < 1.0) {
        return None;
    }
    let (a, b) = (sorted_logs(a), sorted_logs(b));
    let mut differences: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x - y)).collect();
    differences.sort_by(f64::total_cmp);
    let value = median_of_sorted(&differences)?;
    let (cut, mut reached) = cut_off(a.len(), b.len(), level);
    let (mut low, mut high) = (differences[cut], differences[differences.len() - 1 - cut]);
    if reached < level
        && let Some((below, above)) = welch(&a, &b, level)
    {
        (low, high, reached) = (low.min(below), high.max(above), level);
    }
    let n = a.len().min(b.len());
    Some(Estimate { value: value.exp(), low: low.exp(), high: high.exp(), n, level: reached.min(level) })
}

/// Sorted, so that no sum depends on the order of the input.
pub(crate) fn sorted_logs(xs: &[f64]) -> Vec<f64> {
    let mut logs: Vec<f64> = xs.iter().filter(|x| x.is_finite() && **x > 0.0).map(|x| x.ln()).collect();
    logs.sort_by(f64::total_cmp);
    logs
}

/// How many of the sorted `n x m` differences to cut off each end, and the share of samples in which what remains
/// covers the true difference: `1 - 2 P(U <= cut)`. When not even all of them reach `level`, none is cut off.
pub(crate) fn cut_off(n: usize, m: usize, level: f64) -> (usize, f64) {
    if n > COUNTED || m > COUNTED {
        return (normal_cut(n, m, level), level);
    }
    let (mut cut, mut reached, mut below) = (0, 0.0, 0.0);
    // The smaller first, so that swapped samples give the same bits.
    for (u, chance) in mann_whitney(n.min(m), n.max(m)).into_iter().enumerate() {
        below += chance;
        let covers = (1.0 - 2.0 * below).max(0.0);
        if u > 0 && covers < level {
            break;
        }
        (cut, reached) = (u, covers);
    }
    // At a low level the cut may reach the middle; the median stays inside.
    (cut.min((n * m - 1) / 2), reached)
}

/// The same cut by the normal approximation with its continuity correction.
fn normal_cut(n: usize, m: usize, level: f64) -> usize {
    let (n, m) = (n as f64, m as f64);
    let z = student::two_sided(level, NORMAL).unwrap_or(f64::INFINITY);
    let cut = n * m / 2.0 - z * (n * m * (n + m + 1.0) / 12.0).sqrt() - 0.5;
    // A float to an integer saturates: what is below zero cuts nothing.
    cut.min((n * m - 1.0) / 2.0).floor() as usize
}

/// P(U = u) for u from 0 to `n m`, when both samples come from one continuous distribution: the recursion of Mann
/// and Whitney (1947), on whose sample the largest value is. All terms are positive, so nothing cancels.
fn mann_whitney(n: usize, m: usize) -> Vec<f64> {
    // Row i holds the distributions of i against 0 to m.
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        let mut next: Vec<Vec<f64>> = Vec::with_capacity(m + 1);
        next.push(vec![1.0]);
        for j in 1..=m {
            let mut chances = vec![0.0; i * j + 1];
            let (from_a, from_b) = (i as f64 / (i + j) as f64, j as f64 / (i + j) as f64);
            for (u, chance) in row[j].iter().enumerate() {
                chances[u + j] += from_a * chance;
            }
            for (u, chance) in next[j - 1].iter().enumerate() {
                chances[u] += from_b * chance;
            }
            next.push(chances);
        }
        row = next;
    }
    row.pop().unwrap_or_default()
}

/// Welch's interval of the difference of means; needs two values in each.
fn welch(a: &[f64], b: &[f64], level: f64) -> Option<(f64, f64)> {
    let ((mean_a, error_a), (mean_b, error_b)) = (mean_and_error(a)?, mean_and_error(b)?);
    let freedom = welch_freedom((a.len(), error_a), (b.len(), error_b));
    let half = student::two_sided(level, freedom)? * (error_a + error_b).sqrt();
    Some((mean_a - mean_b - half, mean_a - mean_b + half))
}

/// Welch's degrees of freedom of a difference of means, of two samples with their sizes (at least 2) and the squares of
/// their standard errors.
pub(crate) fn welch_freedom((n, error_a): (usize, f64), (m, error_b): (usize, f64)) -> usize {
    let error = error_a + error_b;
    let least = n.min(m) - 1;
    let freedom = error * error / (error_a * error_a / (n - 1) as f64 + error_b * error_b / (m - 1) as f64);
    // Rounded down, which widens. Without any noise it is 0 / 0, and any will do.
    if freedom.is_finite() { (freedom as usize).max(least) } else { least }
}

/// Mean, and the square of its standard error.
pub(crate) fn mean_and_error(xs: &[f64]) -> Option<(f64, f64)> {
    if xs.len() < 2 {
        return None;
    }
    let n = xs.len() as f64;
    let mean = xs.iter().sum::<f64>() / n;
    let variance = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, variance / n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the published tables of Mann and Whitney's U.
    #[test]
    fn the_counted_distribution_is_the_tables() {
        let at_most = |n, m, u: usize| mann_whitney(n, m)[..=u].iter().sum::<f64>();
        for (n, m, u, table) in [(3, 3, 0, 0.05), (4, 4, 0, 1.0 / 70.0), (4, 4, 1, 2.0 / 70.0), (3, 5, 1, 2.0 / 56.0)] {
            assert!((at_most(n, m, u) - table).abs() < 1e-12, "P(U({n}, {m}) <= {u})");
        }
        // Critical values, two-sided 5 %: U must be at most this to reject.
        for (n, m, critical) in [(4, 4, 0), (5, 5, 2), (5, 8, 6), (8, 8, 13), (10, 10, 23), (20, 20, 127)] {
            assert!(2.0 * at_most(n, m, critical) <= 0.05, "{n} {m}");
            assert!(2.0 * at_most(n, m, critical + 1) > 0.05, "{n} {m}");
            assert_eq!(cut_off(n, m, 0.95).0, critical, "{n} {m}");
        }
    }

    #[test]
    fn the_approximation_meets_the_count_where_it_takes_over() {
        for (n, m) in [(40, 40), (40, 10), (25, 31)] {
            let (counted, _) = cut_off(n, m, 0.95);
            assert!(counted.abs_diff(normal_cut(n, m, 0.95)) <= 1, "{n} {m}");
        }
    }

    #[test]
    fn too_few_values_cut_nothing_and_lower_the_level() {
        assert_eq!(cut_off(1, 1, 0.95), (0, 0.0));
        let (cut, reached) = cut_off(3, 3, 0.95);
        assert_eq!(cut, 0);
        assert!((reached - 0.9).abs() < 1e-12);
    }
}
