//! The bootstrap of the median: seeded, and symmetric by construction.
//!
//! Does not know what the values are, or when a bootstrap is worth less than order statistics.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::order::median_of_sorted;

/// Resamples drawn for one interval.
pub(crate) const RESAMPLES: usize = 10_000;

/// Percentile interval of the median of `sorted` (at least one value) at `level`.
///
/// Efron (1979), "Bootstrap methods: another look at the jackknife". Resamples come in pairs: whenever one takes
/// the values of ranks i, j, ..., its partner takes ranks n-1-i, n-1-j, ... (Hall 1989, "Antithetic resampling
/// for the bootstrap"). So the interval of the negated values is exactly the negated interval: comparing A with
/// B says the same as comparing B with A, which plain resampling only promises on average.
pub(crate) fn median_percentiles(sorted: &[f64], level: f64, seed: u64) -> (f64, f64) {
    let n = sorted.len();
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut counts = vec![0_u32; n];
    let mut sample = Vec::with_capacity(n);
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES / 2 {
        counts.fill(0);
        for _ in 0..n {
            counts[random.random_range(0..n)] += 1;
        }
        medians.extend(counted_median(sorted, counts.iter(), &mut sample));
        medians.extend(counted_median(sorted, counts.iter().rev(), &mut sample));
    }
    medians.sort_by(f64::total_cmp);
    tails(&medians, level)
}

/// Median of the sample that holds each value as often as its count says. Sorted input gives sorted output, so
/// no resample needs sorting.
fn counted_median<'a>(sorted: &[f64], counts: impl Iterator<Item = &'a u32>, sample: &mut Vec<f64>) -> Option<f64> {
    sample.clear();
    for (value, count) in sorted.iter().zip(counts) {
        sample.extend(std::iter::repeat_n(*value, *count as usize));
    }
    median_of_sorted(sample)
}

/// Cuts `(1 - level) / 2` of the sorted values off each end, by the same count at both.
fn tails(sorted: &[f64], level: f64) -> (f64, f64) {
    let last = sorted.len() - 1;
    let cut = ((1.0 - level) / 2.0 * sorted.len() as f64).round() as usize;
    let cut = cut.min(last / 2);
    (sorted[cut], sorted[last - cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_cut_alike_at_both_ends() {
        let xs: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(tails(&xs, 0.9), (5.0, 94.0));
        assert_eq!(tails(&xs, 1.0), (0.0, 99.0));
        assert_eq!(tails(&[4.0], 0.5), (4.0, 4.0));
    }

    /// The bootstrap distribution of an odd sample's median is known: P(median* <= x(k)) =
    /// P(Bin(n, k/n) >= (n+1)/2) (Efron 1979, section 3). For n = 11: P(Bin(11, 2/11) >= 6) = 0.0065 and
    /// P(Bin(11, 3/11) >= 6) = 0.0506, so that the 2.5 % point is x(3), and by symmetry the other is x(9).
    #[test]
    fn agrees_with_the_exact_distribution() {
        let xs: Vec<f64> = (1..=11).map(f64::from).collect();
        for seed in 0..5 {
            assert_eq!(median_percentiles(&xs, 0.95, seed), (3.0, 9.0));
        }
    }

    #[test]
    fn negated_values_give_the_negated_interval() {
        let xs = [1.0, 1.5, 2.0, 7.0, 7.25, 8.0, 9.0, 30.0, 31.0, 50.0];
        let mut negated: Vec<f64> = xs.iter().map(|x| -x).collect();
        negated.reverse();
        for seed in 0..20 {
            let (low, high) = median_percentiles(&xs, 0.9, seed);
            assert_eq!(median_percentiles(&negated, 0.9, seed), (-high, -low));
        }
    }
}
