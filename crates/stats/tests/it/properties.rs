//! What must hold whatever the numbers are.

use proptest::prelude::*;
use weir_stats::{
    Estimate, detectable_difference, median, median_interval, paired_ratio, relative_noise, shared_ranks,
};

/// The bootstrap makes 10,000 resamples a case; fewer cases than usual keep the test short.
fn few() -> ProptestConfig {
    ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() }
}

fn numbers(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(1e-3..1e6, 1..most)
}

fn pairs(most: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((1e-3..1e6, 1e-3..1e6), 1..most)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn interval_contains_the_value(xs in numbers(20), level in 0.01..0.99, seed: u64) {
        let e = median_interval(&xs, level, seed).unwrap();
        prop_assert!(e.low <= e.value && e.value <= e.high);
        prop_assert_eq!(e.n, xs.len());
        prop_assert_eq!(Some(e.value), median(&xs));
        prop_assert!(e.level <= level);
    }

    #[test]
    fn a_higher_level_is_never_narrower(xs in numbers(20), seed: u64) {
        let (narrow, wide) = (median_interval(&xs, 0.5, seed).unwrap(), median_interval(&xs, 0.95, seed).unwrap());
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
    }

    #[test]
    fn scale_does_not_matter(xs in numbers(20), seed: u64) {
        // A power of two scales without rounding.
        let scaled: Vec<f64> = xs.iter().map(|x| x * 8.0).collect();
        let (e, f) = (median_interval(&xs, 0.95, seed).unwrap(), median_interval(&scaled, 0.95, seed).unwrap());
        prop_assert_eq!((e.value * 8.0, e.low * 8.0, e.high * 8.0), (f.value, f.low, f.high));
        prop_assert_eq!(relative_noise(&xs), relative_noise(&scaled));
    }

    #[test]
    fn order_of_input_does_not_matter(
        (xs, shuffled) in numbers(20).prop_flat_map(|xs| (Just(xs.clone()), Just(xs).prop_shuffle())), seed: u64
    ) {
        prop_assert_eq!(median_interval(&xs, 0.95, seed), median_interval(&shuffled, 0.95, seed));
        prop_assert_eq!(relative_noise(&xs), relative_noise(&shuffled));
    }

    #[test]
    fn order_of_blocks_does_not_matter(
        (xs, shuffled) in pairs(20).prop_flat_map(|xs| (Just(xs.clone()), Just(xs).prop_shuffle())), seed: u64
    ) {
        let ratio = |xs: Vec<(f64, f64)>| { let (a, b): (Vec<_>, Vec<_>) = xs.into_iter().unzip(); paired_ratio(&a, &b, 0.95, seed) };
        prop_assert_eq!(ratio(xs), ratio(shuffled));
    }

    #[test]
    fn a_over_b_is_one_over_b_over_a(xs in pairs(20), seed: u64) {
        let (a, b): (Vec<_>, Vec<_>) = xs.into_iter().unzip();
        let (e, f) = (paired_ratio(&a, &b, 0.95, seed).unwrap(), paired_ratio(&b, &a, 0.95, seed).unwrap());
        prop_assert!(near(e.value, 1.0 / f.value), "{:?} {:?}", e, f);
        prop_assert!(near(e.low, 1.0 / f.high) && near(e.high, 1.0 / f.low), "{:?} {:?}", e, f);
        prop_assert!(e.low <= e.value && e.value <= e.high);
    }

    #[test]
    fn a_over_a_is_one(xs in numbers(20), seed: u64) {
        let e = paired_ratio(&xs, &xs, 0.95, seed).unwrap();
        prop_assert_eq!((e.value, e.low, e.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn ranks_are_a_permutation_with_sound_ranges(
        xs in prop::collection::vec((0.0..10.0, 0.0..3.0), 0..12), higher: bool
    ) {
        let all: Vec<Estimate> = (xs.iter())
            .map(|&(value, half)| Estimate { value, low: value - half, high: value + half, n: 5, level: 0.95 })
            .collect();
        let ranks = shared_ranks(&all, higher, |_, _| true);
        let mut seen: Vec<usize> = ranks.iter().map(|r| r.index).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..all.len()).collect::<Vec<_>>());
        for (position, r) in ranks.iter().enumerate() {
            prop_assert!(1 <= r.rank_low && r.rank_low <= r.rank_high && r.rank_high <= all.len());
            for better in &ranks[..position] {
                let (own, other) = (&all[r.index], &all[better.index]);
                let surely = if higher { own.low > other.high } else { own.high < other.low };
                prop_assert!(!surely, "a surely better one came later");
            }
        }
    }

    #[test]
    fn nothing_panics(
        a in prop::collection::vec(any::<f64>(), 0..12), b in prop::collection::vec(any::<f64>(), 0..12),
        level: f64, blocks: usize, seed: u64
    ) {
        let _ = (median(&a), relative_noise(&a));
        let same = a.len().min(b.len());
        let _ = (median_interval(&a, level, seed), paired_ratio(&a[..same], &b[..same], level, seed));
        let _ = (median_interval(&a, 0.9, seed), paired_ratio(&a[..same], &b[..same], 0.9, seed));
        let _ = detectable_difference(a.first().copied().unwrap_or(0.1), blocks, level);
        let odd: Vec<Estimate> =
            a.windows(3).map(|w| Estimate { value: w[0], low: w[1], high: w[2], n: 1, level }).collect();
        let _ = shared_ranks(&odd, seed % 2 == 0, |_, _| true);
    }
}
