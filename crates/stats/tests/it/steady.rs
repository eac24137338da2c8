//! Warm-up and steadiness: series whose truth is known.

use crate::common::normals;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use weir_stats::steady_part;

/// No drift is too small to count.
const STRICT: f64 = 0.0;

/// A level of 1000 with relative noise, bent by `shape`, which gets the second.
fn series(random: &mut ChaCha8Rng, n: usize, noise: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
    normals(random, n).iter().enumerate().map(|(i, x)| 1000.0 * shape(i as f64) * (1.0 + noise * x)).collect()
}

/// Each value is half of the one before and half noise.
fn correlated(random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    let mut last = 0.0;
    normals(random, n)
        .iter()
        .map(|x| {
            last = 0.5 * last + 0.03 * x;
            1000.0 * (1.0 + last)
        })
        .collect()
}

fn share(runs: u64, holds: impl Fn(&mut ChaCha8Rng, u64) -> bool) -> f64 {
    (0..runs).filter(|&seed| holds(&mut ChaCha8Rng::seed_from_u64(seed), seed)).count() as f64 / runs as f64
}

#[test]
fn a_level_series_is_called_steady() {
    // 5 % of alarms are allowed; 600 series have a standard error of 0.9 %.
    for n in [10, 15, 30, 60, 300] {
        let alarms = share(600, |random, seed| {
            let level = series(random, n, 0.05, |_| 1.0);
            !steady_part(&level, STRICT, 0.95, seed).unwrap().steady
        });
        assert!(alarms < 0.05 + 0.027, "{n} seconds: {alarms}");
    }
}

#[test]
fn seconds_that_resemble_their_neighbours_are_not_often_called_a_drift() {
    for (n, allowed) in [(30, 0.23), (60, 0.13), (120, 0.13)] {
        let alarms =
            share(600, |random, seed| !steady_part(&correlated(random, n), STRICT, 0.95, seed).unwrap().steady);
        assert!(alarms < allowed, "{n} seconds: {alarms}");
    }
}

#[test]
fn little_of_a_level_series_is_cut_off() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let starts: Vec<f64> = (0..400)
        .map(|seed| steady_part(&series(&mut random, 60, 0.05, |_| 1.0), STRICT, 0.95, seed).unwrap().start as f64)
        .collect();
    let mean = starts.iter().sum::<f64>() / starts.len() as f64;
    assert!(mean < 12.0, "{mean} of 60 seconds");
}

#[test]
fn a_slow_start_is_cut_off() {
    // The first 10 of 60 seconds at 60 %: at least these are cut off, no more than half, and the mean is that of the
    // rest.
    let found = share(300, |random, seed| {
        let slow = series(random, 60, 0.02, |t| if t < 10.0 { 0.6 } else { 1.0 });
        let part = steady_part(&slow, 0.02, 0.95, seed).unwrap();
        part.steady && (10..=30).contains(&part.start) && (part.mean - 1000.0).abs() < 20.0
    });
    assert!(found > 0.9, "{found}");
}

#[test]
fn a_warming_virtual_machine_is_detected_and_then_steady() {
    // From 30 % to all of it, with a time constant of 8 seconds.
    let warming = |t: f64| 1.0 - 0.7 * (-t / 8.0).exp();
    let early =
        share(200, |random, seed| steady_part(&series(random, 20, 0.01, warming), 0.02, 0.95, seed).unwrap().steady);
    assert!(early < 0.05, "20 seconds: {early}");
    let late = share(200, |random, seed| {
        let part = steady_part(&series(random, 90, 0.01, warming), 0.02, 0.95, seed).unwrap();
        part.steady && part.start >= 10 && (part.mean - 1000.0).abs() < 10.0
    });
    assert!(late > 0.95, "90 seconds: {late}");
}

#[test]
fn what_never_keeps_a_level_is_not_called_steady() {
    let ramp = |t: f64| 1.0 + t / 60.0;
    let drop_late = |t: f64| if t < 45.0 { 1.0 } else { 0.8 };
    let hump = |t: f64| if (35.0..50.0).contains(&t) { 1.3 } else { 1.0 };
    for (name, shape) in [("ramp", &ramp as &dyn Fn(f64) -> f64), ("drop", &drop_late), ("hump", &hump)] {
        let called =
            share(200, |random, seed| steady_part(&series(random, 60, 0.02, shape), 0.02, 0.95, seed).unwrap().steady);
        assert!(called < 0.1, "{name}: {called}");
    }
}

#[test]
fn a_drift_too_small_to_matter_is_forgiven() {
    let rise: Vec<f64> = (0..60).map(|t| 1000.0 + f64::from(t) * 0.2).collect();
    let strict = steady_part(&rise, STRICT, 0.95, 1).unwrap();
    assert!(!strict.steady && strict.shift < 0.01, "{strict:?}");
    assert!(steady_part(&rise, 0.01, 0.95, 1).unwrap().steady);
}

#[test]
fn one_stolen_second_neither_decides_nor_hides_a_drift() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut stolen = series(&mut random, 60, 0.01, |_| 1.0);
    stolen[40] = 100.0;
    assert!(steady_part(&stolen, STRICT, 0.95, 1).unwrap().steady);
    let mut ramp = series(&mut random, 60, 0.01, |t| 1.0 + t / 100.0);
    ramp[40] = 100.0;
    assert!(!steady_part(&ramp, 0.02, 0.95, 1).unwrap().steady);
}

#[test]
fn a_constant_series_is_steady_from_the_first_second() {
    let part = steady_part(&[500.0; 30], STRICT, 0.95, 1).unwrap();
    assert_eq!((part.start, part.mean, part.shift, part.p, part.steady), (0, 500.0, 0.0, 1.0, true));
    let nothing = steady_part(&[0.0; 30], STRICT, 0.95, 1).unwrap();
    assert!(nothing.steady);
}

#[test]
fn too_few_values_have_no_steady_part() {
    assert_eq!(steady_part(&[1.0; 9], 0.02, 0.95, 1), None);
    let with_holes: Vec<f64> = (0..15).map(|i| if i % 3 == 0 { f64::NAN } else { 1.0 }).collect();
    assert!(steady_part(&with_holes, 0.02, 0.95, 1).is_some());
    assert_eq!(steady_part(&with_holes[..12], 0.02, 0.95, 1), None);
    for (tolerance, level) in [(-0.1, 0.95), (f64::NAN, 0.95), (0.02, 0.0), (0.02, 1.0), (0.02, f64::NAN)] {
        assert_eq!(steady_part(&[1.0; 20], tolerance, level, 1), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_are_sound(xs in prop::collection::vec(1.0..1e6, 10..120), seed: u64) {
        let part = steady_part(&xs, 0.02, 0.95, seed).unwrap();
        prop_assert!(part.start <= xs.len() / 2 + 5);
        let (least, most) = xs.iter().fold((f64::MAX, 0.0_f64), |(l, m), x| (l.min(*x), m.max(*x)));
        prop_assert!(least <= part.mean * (1.0 + 1e-9) && part.mean <= most * (1.0 + 1e-9));
        prop_assert!(part.shift >= 0.0 && part.p > 0.0 && part.p <= 1.0);
        prop_assert_eq!(part.steady, part.p > 0.05 || part.shift <= 0.02);
        prop_assert_eq!(part, steady_part(&xs, 0.02, 0.95, seed).unwrap());
    }

    #[test]
    fn scale_does_not_matter(xs in prop::collection::vec(1.0..1e6, 10..60), seed: u64) {
        // A power of two scales without rounding.
        let scaled: Vec<f64> = xs.iter().map(|x| x * 64.0).collect();
        let (one, other) = (steady_part(&xs, 0.02, 0.95, seed).unwrap(), steady_part(&scaled, 0.02, 0.95, seed).unwrap());
        prop_assert_eq!((one.start, one.mean * 64.0, one.shift, one.p), (other.start, other.mean, other.shift, other.p));
    }

    #[test]
    fn nothing_panics(xs in prop::collection::vec(any::<f64>(), 0..80), tolerance: f64, level: f64, seed: u64) {
        let _ = (steady_part(&xs, tolerance, level, seed), steady_part(&xs, 0.1, 0.9, seed));
    }
}
