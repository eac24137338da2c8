//! The interval that may be looked at after every value: false claims and what it finds, by simulation.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_stats::anytime_ratio;

const EXPERIMENTS: u32 = 2000;
const VALUES: usize = 120;

/// Normal noise of variance 1, by Box and Muller.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// One value in ten is ten times as far away: a slice during which something else ran.
fn wild(random: &mut ChaCha8Rng) -> f64 {
    let size = if random.random::<f64>() < 0.1 { 10.0 } else { 1.0 };
    size * normal(random)
}

/// After how many values the interval first excludes 1, if it does.
fn found(effect: f64, noise: fn(&mut ChaCha8Rng) -> f64, seed: u32) -> Option<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(seed));
    let mut values = Vec::new();
    for n in 1..=VALUES {
        values.push(0.02 * (effect + noise(&mut random)));
        let seen = anytime_ratio(&values, 0.95).expect("values");
        assert!(seen.low <= seen.value && seen.value <= seen.high && seen.n == n);
        if seen.low > 1.0 || seen.high < 1.0 {
            return Some(n);
        }
    }
    None
}

fn share(effect: f64, noise: fn(&mut ChaCha8Rng) -> f64) -> (f64, usize) {
    let mut all: Vec<usize> = (0..EXPERIMENTS).filter_map(|seed| found(effect, noise, seed)).collect();
    all.sort_unstable();
    (all.len() as f64 / f64::from(EXPERIMENTS), all.get(all.len() / 2).copied().unwrap_or(VALUES))
}

#[test]
fn looking_after_every_value_makes_no_false_claims() {
    for (name, noise) in [("normal", normal as fn(&mut ChaCha8Rng) -> f64), ("wild", wild)] {
        let (alarms, _) = share(0.0, noise);
        assert!(alarms < 0.05, "{name}: {alarms} of the experiments without a difference");
    }
    // The test can fail: a plain interval of two standard errors is wrong far more often.
    let wrong = (0..EXPERIMENTS).filter(|seed| {
        let mut random = ChaCha8Rng::seed_from_u64(u64::from(*seed));
        let mut sum = 0.0;
        (1..=VALUES).any(|n| {
            sum += normal(&mut random);
            n >= 6 && sum.abs() > 1.96 * (n as f64).sqrt()
        })
    });
    assert!(wrong.count() as f64 / f64::from(EXPERIMENTS) > 0.2);
}

#[test]
fn a_difference_is_found_and_a_large_one_soon() {
    for (effect, least, within) in [(0.5, 0.95, 40), (1.0, 0.999, 15), (3.0, 0.999, 7)] {
        let (power, median) = share(effect, normal);
        assert!(power >= least && median <= within, "{effect}: {power} found, half of them after {median}");
    }
}

#[test]
fn it_is_exact_where_it_can_be_checked_by_hand() {
    // 8 values, variance 1 of the sample: the width is that of the martingale at 20.
    let values = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0].map(|x: f64| x * (7.0_f64 / 8.0).sqrt());
    let seen = anytime_ratio(&values, 0.95).expect("values");
    let t = seen.high.ln() * 8.0_f64.sqrt();
    let martingale = ((1.0 + t * t / 7.0) / (1.0 + t * t / 63.0)).powi(4) / 3.0;
    assert!((martingale - 20.0).abs() < 1e-9, "{martingale}");
    assert!((seen.low * seen.high - 1.0).abs() < 1e-12);
}

#[test]
fn too_few_values_claim_nothing_and_bad_ones_are_left_out() {
    for values in [&[0.1][..], &[0.1, 0.1001], &[0.1, 0.1001, 0.1002, 0.1]] {
        let seen = anytime_ratio(values, 0.95).expect("values");
        assert_eq!((seen.low, seen.high), (0.0, f64::INFINITY), "{values:?}");
    }
    assert_eq!(anytime_ratio(&[f64::NAN], 0.95), None);
    assert_eq!(anytime_ratio(&[0.1], 1.0), None);
    assert_eq!(anytime_ratio(&[0.1, f64::NAN, 0.3], 0.9).expect("two").n, 2);
    // Equal values: no noise was seen, and the interval is a point.
    let equal = anytime_ratio(&[0.01; 8], 0.95).expect("values");
    assert!(equal.low > 1.0 && equal.high / equal.low < 1.0 + 1e-9);
}
