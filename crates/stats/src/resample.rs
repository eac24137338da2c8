//! The bootstrap of the median: seeded, and symmetric by construction.
//!
//! [`crate::estimate`] calls it, and decides when order statistics are better.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::order::median_of_sorted;

/// Resamples drawn for one interval.
pub(crate) const RESAMPLES: usize = 10_000;

/// How many combinations of sample size and seed are cached.
const REMEMBERED: usize = 32;

/// How often each pair of ranks was in the middle of a resample; of an odd number of values both are one.
type Middles = Rc<Vec<((usize, usize), usize)>>;

thread_local! {
    // Which ranks a resample takes depends on how many values there are and on the seed, not on the values. A report
    // asks for tens of thousands of intervals of equally many blocks.
    static DRAWN: RefCell<BTreeMap<(usize, u64), Middles>> = const { RefCell::new(BTreeMap::new()) };
}

/// Percentile interval of the median of `sorted` (at least one value) at `level`.
///
/// Efron (1979), "Bootstrap methods: another look at the jackknife". Resamples come in pairs: whenever one takes
/// the values of ranks i, j, ..., its partner takes ranks n-1-i, n-1-j, ... (Hall 1989, "Antithetic resampling
/// for the bootstrap"). So the interval of the negated values is exactly the negated interval: comparing A with
/// B says the same as comparing B with A, which plain resampling only promises on average.
pub(crate) fn median_percentiles(sorted: &[f64], level: f64, seed: u64) -> (f64, f64) {
    let middles = middles(sorted.len(), seed);
    let of = |(low, high): (usize, usize)| median_of_sorted(&[sorted[low], sorted[high]]).unwrap_or(f64::NAN);
    let mut medians: Vec<(f64, usize)> = middles.iter().map(|(pair, times)| (of(*pair), *times)).collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    tails(&medians, level)
}

/// The ranks in the middle of each resample of `n` values.
fn middles(n: usize, seed: u64) -> Middles {
    DRAWN.with_borrow_mut(|drawn| {
        if let Some(known) = drawn.get(&(n, seed)) {
            return Rc::clone(known);
        }
        if drawn.len() >= REMEMBERED {
            drawn.clear();
        }
        let new = Rc::new(draw(n, seed));
        drawn.insert((n, seed), Rc::clone(&new));
        new
    })
}

fn draw(n: usize, seed: u64) -> Vec<((usize, usize), usize)> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut counts = vec![0_usize; n];
    let mut middles: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for _ in 0..RESAMPLES / 2 {
        counts.fill(0);
        for _ in 0..n {
            counts[random.random_range(0..n)] += 1;
        }
        let (low, high) = middle(&counts);
        for pair in [(low, high), (n - 1 - high, n - 1 - low)] {
            *middles.entry(pair).or_default() += 1;
        }
    }
    middles.into_iter().collect()
}

/// The ranks in the middle of a sample that holds each rank as often as its count says.
fn middle(counts: &[usize]) -> (usize, usize) {
    let n = counts.len();
    let rank_of = |place: usize| {
        let mut before = 0;
        counts.iter().position(|count| {
            before += count;
            before > place
        })
    };
    let last = n.saturating_sub(1);
    (rank_of(last / 2).unwrap_or(last), rank_of(n / 2).unwrap_or(last))
}

/// Cuts `(1 - level) / 2` of the sorted values, each there so many times, off each end, by the same count at both.
fn tails(sorted: &[(f64, usize)], level: f64) -> (f64, f64) {
    let all: usize = sorted.iter().map(|(_, times)| times).sum();
    let last = all - 1;
    let cut = ((1.0 - level) / 2.0 * all as f64).round() as usize;
    let cut = cut.min(last / 2);
    let at = |place: usize| {
        let mut before = 0;
        let found = sorted.iter().find(|(_, times)| {
            before += times;
            before > place
        });
        found.map_or(f64::NAN, |(value, _)| *value)
    };
    (at(cut), at(last - cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_cut_alike_at_both_ends() {
        let xs: Vec<(f64, usize)> = (0..100).map(|x| (f64::from(x), 1)).collect();
        assert_eq!(tails(&xs, 0.9), (5.0, 94.0));
        assert_eq!(tails(&xs, 1.0), (0.0, 99.0));
        assert_eq!(tails(&[(4.0, 1)], 0.5), (4.0, 4.0));
        assert_eq!(tails(&[(1.0, 4), (2.0, 92), (3.0, 4)], 0.9), (2.0, 2.0));
        assert_eq!(tails(&[(1.0, 6), (2.0, 88), (3.0, 6)], 0.9), (1.0, 3.0));
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
    fn the_middle_of_a_counted_sample() {
        assert_eq!(middle(&[1, 1, 1, 1]), (1, 2));
        assert_eq!(middle(&[0, 2, 2, 0]), (1, 2));
        assert_eq!(middle(&[3, 0, 0, 1]), (0, 0));
        assert_eq!(middle(&[0, 1, 4, 0, 0]), (2, 2));
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
