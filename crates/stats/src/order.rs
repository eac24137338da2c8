//! Order statistics: sorted finite values, their medians, and exact intervals of the median.
//!
//! [`crate::estimate`] calls it, and decides how many values make a useful interval.

/// The finite values, smallest first.
pub(crate) fn sorted_finite(xs: &[f64]) -> Vec<f64> {
    let mut kept: Vec<f64> = xs.iter().copied().filter(|x| x.is_finite()).collect();
    kept.sort_by(f64::total_cmp);
    kept
}

/// Median of values that are sorted already; `None` when there are none.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    if n % 2 == 1 {
        return Some(upper);
    }
    // Halves first: the sum of two huge values may be infinite where their mean is not.
    Some(sorted[n / 2 - 1] / 2.0 + upper / 2.0)
}

/// An exact, distribution-free interval of the median, and the share of samples in which it covers it.
///
/// `[x(k), x(n+1-k)]` covers the median of any continuous distribution with probability
/// `1 - 2 P(Bin(n, 1/2) < k)` (David and Nagaraja, *Order Statistics*, 3rd ed. 2003, section 7.1). Takes the
/// narrowest that reaches `level`; when not even the smallest to the largest does, that one with what it has.
///
/// `sorted` must not be empty and `n` must stay below 60, or the counts would overflow.
pub(crate) fn exact_median_interval(sorted: &[f64], level: f64) -> (f64, f64, f64) {
    let n = sorted.len();
    debug_assert!((1..60).contains(&n));
    let all = (1_u64 << n) as f64;
    let coverage = |outside_below: u64| (1.0 - 2.0 * outside_below as f64 / all).max(0.0);
    let (mut below, mut ways) = (1_u64, 1_u64);
    let (mut k, mut reached) = (1, coverage(below));
    while k < n.div_ceil(2) {
        ways = ways * (n - k + 1) as u64 / k as u64;
        let narrower = coverage(below + ways);
        if narrower < level {
            break;
        }
        below += ways;
        reached = narrower;
        k += 1;
    }
    (sorted[k - 1], sorted[n - k], reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_of_small_samples_is_what_tables_say() {
        let xs: Vec<f64> = (1..=9).map(f64::from).collect();
        let of = |n: usize, level| exact_median_interval(&xs[..n], level);
        assert_eq!(of(1, 0.95), (1.0, 1.0, 0.0));
        assert_eq!(of(2, 0.95), (1.0, 2.0, 0.5));
        assert_eq!(of(3, 0.95), (1.0, 3.0, 0.75));
        assert_eq!(of(5, 0.95), (1.0, 5.0, 0.9375));
        assert_eq!(of(7, 0.95), (1.0, 7.0, 1.0 - 2.0 / 128.0));
        // n = 9: one value off each end leaves 1 - 2 (1 + 9) / 512 = 0.9609, two leave 0.82.
        assert_eq!(of(9, 0.95), (2.0, 8.0, 1.0 - 20.0 / 512.0));
        assert_eq!(of(5, 0.5), (2.0, 4.0, 1.0 - 2.0 * 6.0 / 32.0));
    }

    #[test]
    fn huge_values_have_a_finite_median() {
        assert_eq!(median_of_sorted(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }
}
