//! A stretch of another level: how often one is seen that is not there, and how often one that is. Noise is simulated, and taken from
//! rates that were recorded: successful responses of nginx a tenth of a second, closed loads of 64 connections and an open one of 1,500/s, on a
//! virtual machine of 2 CPUs beside compilers.
//!
//! `cargo test -p weir-stats --release --test it change:: -- --ignored --nocapture` prints the tables of false alarms and of power.

use crate::common::normals;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_stats::other_level;

/// As the audit asks.
const MATTERS: (f64, f64) = (0.05, 0.02);

/// Per cent of the series in which a change is seen.
fn alarms(runs: u64, series: impl Fn(&mut ChaCha8Rng) -> Vec<f64>) -> f64 {
    let seen = |seed: &u64| other_level(&series(&mut ChaCha8Rng::seed_from_u64(*seed)), MATTERS).is_some();
    (0..runs).filter(seen).count() as f64 / runs as f64 * 100.0
}

/// Each value carries a part of the one before; noise of 5 %.
fn correlated(random: &mut ChaCha8Rng, n: usize, carried: f64) -> Vec<f64> {
    let mut last = 0.0;
    let mut next = |x: &f64| {
        last = carried * last + (1.0 - carried * carried).sqrt() * x;
        1.0 + 0.05 * last
    };
    normals(random, n + 50).iter().map(&mut next).skip(50).collect()
}

struct Recorded {
    name: &'static str,
    values: Vec<f64>,
}

impl Recorded {
    /// The noise of a recorded series: each value by the mean of the three seconds around it; `scale` times as much.
    fn new(name: &'static str, text: &str, scale: f64) -> Recorded {
        let raw: Vec<f64> = text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        let around = |i: usize| {
            let near = &raw[i.saturating_sub(15)..(i + 15).min(raw.len())];
            near.iter().sum::<f64>() / near.len() as f64
        };
        let values = (0..raw.len()).map(|i| 1.0 + (raw[i] / around(i) - 1.0) * scale).collect();
        Recorded { name, values }
    }

    fn all() -> [Recorded; 4] {
        let closed = [include_str!("../recorded/closed1.txt"), include_str!("../recorded/closed2.txt")];
        [
            Recorded::new("closed, 5 % of noise", closed[1], 0.25),
            Recorded::new("closed, 11 %", closed[0], 1.0),
            Recorded::new("closed, 20 %", closed[1], 1.0),
            Recorded::new("open, 3 %", include_str!("../recorded/open1.txt"), 1.0),
        ]
    }

    /// Seconds of it in any order, so that neighbours resemble each other as they did, and nothing else does.
    fn draw(&self, random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
        let mut drawn = Vec::new();
        while drawn.len() < n {
            let from = random.random_range(0..self.values.len() - 10);
            drawn.extend(&self.values[from..from + 10]);
        }
        drawn.truncate(n);
        drawn
    }

    /// Per cent in which a change of this shape over a window (0 to 1) is seen.
    fn seen(&self, runs: u64, n: usize, shape: impl Fn(f64) -> f64) -> f64 {
        alarms(runs, |random| {
            let drawn = self.draw(random, n);
            drawn.iter().enumerate().map(|(i, x)| x * shape((i as f64 + 0.5) / n as f64)).collect()
        })
    }
}

/// The level before a moment and after it.
fn step(at: f64, before: f64, after: f64) -> impl Fn(f64) -> f64 {
    move |t| if t < at { before } else { after }
}

#[test]
fn a_level_series_seldom_alarms() {
    for (n, carried, most) in [(20, 0.0, 0.5), (20, 0.5, 2.0), (50, 0.5, 0.6), (50, 0.7, 2.0), (200, 0.5, 0.5)] {
        let alarms = alarms(if n > 100 { 100 } else { 600 }, |random| correlated(random, n, carried));
        assert!(alarms <= most, "{n} values that carry {carried}: {alarms} %");
    }
    for recorded in Recorded::all() {
        for n in [20, 50, 120] {
            let alarms = recorded.seen(300, n, |_| 1.0);
            assert!(alarms <= 2.5, "{}, {n} values: {alarms} %", recorded.name);
        }
    }
}

/// 60,000 to 17,000/s at second 1, 4, 6, 8 and 11 of 12, and the other way round.
#[test]
fn a_large_step_is_seen_at_every_position() {
    for recorded in Recorded::all().iter().filter(|recorded| !recorded.name.contains("20 %")) {
        for second in [1.0, 4.0, 6.0, 8.0, 11.0] {
            for (before, after) in [(60.0, 17.0), (17.0, 60.0)] {
                let seen = recorded.seen(50, 120, step(second / 12.0, before, after));
                assert!(seen >= 90.0, "{}, second {second}, {before} to {after}: {seen} %", recorded.name);
            }
        }
    }
    let quiet = &Recorded::all()[0];
    for tenth in [2.0, 5.0, 10.0, 15.0, 18.0] {
        for (before, after) in [(60.0, 17.0), (17.0, 60.0)] {
            let seen = quiet.seen(100, 20, step(tenth / 20.0, before, after));
            assert!(seen >= 85.0, "2 s, tenth {tenth}, {before} to {after}: {seen} %");
        }
    }
}

#[test]
fn ramps_and_dips_are_seen() {
    let quiet = &Recorded::all()[0];
    assert!(quiet.seen(50, 120, |t| 0.8 + 0.4 * t) >= 95.0);
    assert!(quiet.seen(50, 120, |t| 1.2 - 0.4 * t) >= 95.0);
    for at in [0.0, 0.3, 0.92] {
        let dip = |t: f64| if (at..at + 0.08).contains(&t) { 0.2 } else { 1.0 };
        assert!(quiet.seen(50, 120, dip) >= 95.0, "a second of 12 at {at}");
    }
}

#[test]
fn what_does_not_matter_is_forgiven() {
    let mut level = vec![100.0; 200];
    assert_eq!(other_level(&level, MATTERS), None, "no noise and no change");
    level[50..].iter_mut().for_each(|x| *x = 104.0);
    assert_eq!(other_level(&level, MATTERS), None, "4 %");
    level[50..].iter_mut().for_each(|x| *x = 110.0);
    let found = other_level(&level, MATTERS).expect("10 % for three quarters");
    let (at, levels) = ((found.start, found.end), (found.inside, found.outside));
    assert!((at, levels) == ((0, 50), (100.0, 110.0)) || (at, levels) == ((50, 200), (110.0, 100.0)), "{found:?}");
    let mut odd = vec![100.0; 200];
    odd[70] = 0.0;
    odd[120] = 0.0;
    assert_eq!(other_level(&odd, MATTERS), None, "single values");
}

#[test]
fn what_cannot_be_judged_is_not() {
    assert_eq!(other_level(&[1.0; 17], MATTERS), None);
    let mut series = vec![1.0; 40];
    series[20..].fill(5.0);
    assert!(other_level(&series, MATTERS).is_some());
    series[3] = f64::NAN;
    assert_eq!(other_level(&series, MATTERS), None);
    assert_eq!(other_level(&[0.0; 40], MATTERS), None);
    let long: Vec<f64> = (0..36_000).map(|i| if i < 9_000 { 1.0 } else { 2.0 }).collect();
    assert!(other_level(&long, MATTERS).is_some(), "an hour");
}

#[test]
#[ignore = "prints a table; nothing is asserted"]
fn power() {
    for carried in [0.0, 0.5, 0.7] {
        let of = |n: usize| alarms(3_000, |random| correlated(random, n, carried));
        println!("false alarms where each value carries {carried}: {:.1?} % of 20, 50, 200", [20, 50, 200].map(of));
    }
    for recorded in Recorded::all() {
        println!("{}", recorded.name);
        for n in [20, 50, 120, 400] {
            let runs = 300;
            print!("  {:>4.0} s: none {:>4.1} |", n as f64 / 10.0, recorded.seen(runs, n, |_| 1.0));
            for (level, name) in [(0.9, "-10"), (0.8, "-20"), (0.5, "-50"), (0.28, "-72")] {
                let at = [0.1, 0.25, 0.5, 0.75, 0.9].map(|at| recorded.seen(runs, n, step(at, 1.0, level)));
                print!(" {name} % {} |", at.map(|seen| format!("{seen:.0}")).join(" "));
            }
            let ramps = [0.1, 0.2, 0.4].map(|all| recorded.seen(runs, n, |t| 1.0 + all * (t - 0.5)));
            println!(" ramps {}", ramps.map(|seen| format!("{seen:.0}")).join(" "));
        }
    }
}

#[test]
fn the_shortest_stretch_is_found_wherever_it_is() {
    let noise = normals(&mut ChaCha8Rng::seed_from_u64(1), 60);
    // At an end it and the rest are one change.
    for at in 1..58 {
        let level = |i: usize| if (at..at + 2).contains(&i) { 0.2 } else { 1.0 };
        let series: Vec<f64> = noise.iter().enumerate().map(|(i, x)| level(i) + 0.01 * x).collect();
        let found = other_level(&series, MATTERS).map(|stretch| (stretch.start, stretch.end));
        assert_eq!(found, Some((at, at + 2)));
    }
}
