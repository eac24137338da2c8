//! Comparisons of two runs: by hand, by simulation, and with arbitrary numbers.

use crate::common::normals;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use weir_stats::{Estimate, detectable_change, unpaired_ratio};

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn four_against_four_by_hand() {
    // All sixteen ratios lie between 6 / 4 and 9 / 1; four against four cut none off at 95 % (2 / 70 of U is 0).
    let e = unpaired_ratio(&[9.0, 8.0, 7.0, 6.0], &[1.0, 2.0, 3.0, 4.0], 0.95).unwrap();
    close(e.low, 1.5);
    close(e.high, 9.0);
    // The middle two of 9/1, 8/1, 7/1, 6/1, 9/2, 8/2, 7/2, [9/3, 6/2], 8/3, 7/3, 9/4, 8/4, 6/3, 7/4, 6/4.
    close(e.value, 3.0);
    assert_eq!((e.n, e.level), (4, 0.95));
}

#[test]
fn three_against_three_is_widened_to_welch() {
    // Logs 0, 1, 2 and 0, 0.5, 1: difference of means 0.5, error^2 1/3 + 0.25/3, freedom 2.94 taken as 2.
    let a: Vec<f64> = [0.0_f64, 1.0, 2.0].iter().map(|x| x.exp()).collect();
    let b: Vec<f64> = [0.0_f64, 0.5, 1.0].iter().map(|x| x.exp()).collect();
    let e = unpaired_ratio(&a, &b, 0.95).unwrap();
    let half = 4.302_652_73 * (1.25_f64 / 3.0).sqrt();
    assert!((e.low.ln() - (0.5 - half)).abs() < 1e-6, "{e:?}");
    assert!((e.high.ln() - (0.5 + half)).abs() < 1e-6, "{e:?}");
    assert_eq!((e.n, e.level), (3, 0.95));
}

#[test]
fn one_block_promises_little() {
    let one = unpaired_ratio(&[3.0], &[2.0], 0.95).unwrap();
    close(one.value, 1.5);
    assert_eq!((one.low, one.high, one.n, one.level), (one.value, one.value, 1, 0.0));
    // One against three: that the one is within the three holds in two orders of four.
    let e = unpaired_ratio(&[2.0], &[1.0, 2.0, 4.0], 0.95).unwrap();
    close(e.low, 0.5);
    close(e.high, 2.0);
    assert!((e.level - 0.5).abs() < 1e-12);
}

#[test]
fn refuses_what_is_no_level_or_no_data() {
    for level in [0.0, 1.0, -0.5, 2.0, f64::NAN] {
        assert_eq!(unpaired_ratio(&[1.0, 2.0], &[1.0, 2.0], level), None);
    }
    assert_eq!(unpaired_ratio(&[], &[1.0], 0.95), None);
    assert_eq!(unpaired_ratio(&[f64::NAN, 0.0, -1.0], &[1.0], 0.95), None);
}

#[test]
fn blocks_without_noise_have_an_exact_ratio() {
    let e = unpaired_ratio(&[3.0; 3], &[2.0; 3], 0.95).unwrap();
    close(e.value, 1.5);
    assert!(e.low <= e.value && e.value <= e.high && e.high - e.low < 1e-9, "{e:?}");
}

/// Blocks of a run: log-normal about `mean`.
fn blocks(random: &mut ChaCha8Rng, n: usize, mean: f64, noise: f64) -> Vec<f64> {
    normals(random, n).iter().map(|x| mean * (noise * x).exp()).collect()
}

fn alarm(e: &Estimate) -> bool {
    e.high < 1.0 || 1.0 < e.low
}

#[test]
fn the_same_product_raises_one_alarm_in_twenty_at_most() {
    // Up to 5 % are allowed; 4,000 comparisons have a standard error of 0.34 %.
    for (n, m, runs) in
        [(2, 2, 4000), (3, 3, 4000), (4, 4, 4000), (5, 5, 4000), (3, 8, 4000), (10, 10, 4000), (45, 41, 500)]
    {
        let mut random = ChaCha8Rng::seed_from_u64((n * 100 + m) as u64);
        let alarms = (0..runs)
            .filter(|_| {
                let (a, b) = (blocks(&mut random, n, 1e4, 0.05), blocks(&mut random, m, 1e4, 0.05));
                alarm(&unpaired_ratio(&a, &b, 0.95).unwrap())
            })
            .count();
        let share = alarms as f64 / f64::from(runs);
        assert!(share < 0.05 + 3.0 * (0.05 * 0.95 / f64::from(runs)).sqrt(), "{n} against {m}: {share}");
    }
}

/// Alarms of a run of 20 cases against itself, with 5 blocks each.
fn alarms_of_twenty(random: &mut ChaCha8Rng, level: f64) -> usize {
    let mut run = || blocks(random, 5, 1e4, 0.03);
    (0..20).filter(|_| alarm(&unpaired_ratio(&run(), &run(), level).unwrap())).count()
}

#[test]
fn twenty_cases_against_themselves_seldom_raise_two_alarms() {
    // Five against five reject 3.2 % of equal samples at 95 %: at most one alarm in 87 % of runs of twenty cases.
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let quiet = (0..300).filter(|_| alarms_of_twenty(&mut random, 0.95) <= 1).count();
    assert!((240..=285).contains(&quiet), "{quiet} of 300");
    // One response over all twenty, as the documentation advises: no alarm at all in 95 %.
    let silent = (0..300).filter(|_| alarms_of_twenty(&mut random, 1.0 - 0.05 / 20.0) == 0).count();
    assert!(silent >= 275, "{silent} of 300");
}

#[test]
fn a_tenth_slower_is_found() {
    // With 5 blocks and 2 % of noise, and with 10 blocks and 5 %.
    for (n, noise) in [(5, 0.02), (10, 0.05)] {
        let mut random = ChaCha8Rng::seed_from_u64(n as u64);
        let found = (0..1000)
            .filter(|_| {
                let (slower, before) = (blocks(&mut random, n, 9e3, noise), blocks(&mut random, n, 1e4, noise));
                unpaired_ratio(&slower, &before, 0.95).unwrap().high < 1.0
            })
            .count();
        assert!(found > 950, "{n} blocks, noise {noise}: {found} of 1000");
    }
}

#[test]
fn the_interval_covers_the_true_ratio() {
    for (n, m) in [(3, 3), (6, 4), (12, 12)] {
        let mut random = ChaCha8Rng::seed_from_u64(7 + n as u64);
        let covered = (0..4000)
            .filter(|_| {
                let (a, b) = (blocks(&mut random, n, 130.0, 0.1), blocks(&mut random, m, 100.0, 0.1));
                let e = unpaired_ratio(&a, &b, 0.95).unwrap();
                e.low <= 1.3 && 1.3 <= e.high
            })
            .count();
        assert!(covered >= 3760, "{n} against {m}: {covered} of 4000");
    }
}

fn sample() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(1e-3..1e6, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_over_b_is_one_over_b_over_a(a in sample(), b in sample(), level in 0.01..0.99) {
        let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * x.abs().max(y.abs());
        let (e, f) = (unpaired_ratio(&a, &b, level).unwrap(), unpaired_ratio(&b, &a, level).unwrap());
        prop_assert!(near(e.value, 1.0 / f.value) && near(e.low, 1.0 / f.high) && near(e.high, 1.0 / f.low), "{:?} {:?}", e, f);
        prop_assert_eq!((e.n, e.level), (f.n, f.level));
    }

    #[test]
    fn the_interval_holds_the_value_and_grows_with_the_level(a in sample(), b in sample()) {
        let (narrow, wide) = (unpaired_ratio(&a, &b, 0.6).unwrap(), unpaired_ratio(&a, &b, 0.95).unwrap());
        for e in [narrow, wide] {
            prop_assert!(e.low <= e.value && e.value <= e.high, "{:?}", e);
        }
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high || narrow.level < 0.6, "{:?} {:?}", narrow, wide);
    }

    #[test]
    fn order_does_not_matter(
        (a, shuffled) in sample().prop_flat_map(|xs| (Just(xs.clone()), Just(xs).prop_shuffle())), b in sample()
    ) {
        prop_assert_eq!(unpaired_ratio(&a, &b, 0.95), unpaired_ratio(&shuffled, &b, 0.95));
    }

    #[test]
    fn nothing_panics(
        a in prop::collection::vec(any::<f64>(), 0..60), b in prop::collection::vec(any::<f64>(), 0..60), level: f64
    ) {
        let _ = (unpaired_ratio(&a, &b, level), unpaired_ratio(&a, &b, 0.9), unpaired_ratio(&a, &b, 1e-12));
    }
}

/// A change of the detectable size is found in about four comparisons of five, by the interval that decides.
#[test]
fn a_detectable_change_is_found() {
    for (n, m, level) in [(3, 3, 0.95), (5, 5, 0.95), (5, 5, 0.99), (8, 8, 0.95), (4, 8, 0.99)] {
        let mut random = ChaCha8Rng::seed_from_u64(11 + (n * m) as u64);
        let draw = |random: &mut ChaCha8Rng, n, mean| blocks(random, n, mean, 0.03);
        let mut told: Vec<f64> = (0..1001)
            .map(|_| detectable_change(&draw(&mut random, n, 1.0), &draw(&mut random, m, 1.0), level))
            .collect();
        told.sort_by(f64::total_cmp);
        let change = told[500];
        let found = (0..1000)
            .filter(|_| {
                let (a, b) = (draw(&mut random, n, change), draw(&mut random, m, 1.0));
                alarm(&unpaired_ratio(&a, &b, level).unwrap())
            })
            .count();
        assert!((730..=870).contains(&found), "{n} against {m} at {level}: {change:.3} is found in {found} of 1000");
    }
    assert_eq!(detectable_change(&[1.0], &[1.0, 1.1], 0.95), f64::INFINITY);
    assert_eq!(detectable_change(&[1.0, 1.1], &[1.0, 1.1], 1.0), f64::INFINITY);
    assert_eq!(detectable_change(&[1.0, 1.0], &[1.0, 1.0], 0.95), 1.0);
}
