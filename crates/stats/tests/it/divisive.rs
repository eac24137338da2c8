//! Change points over runs: how often one is found that is not there, for the kinds of noise that runs have, and how often one that
//! is. Everything is simulated from seeds, in logarithms, as histories are.
//!
//! `cargo test -p weir-stats --test it divisive:: -- --ignored --nocapture` prints the tables of `bench/EVIDENCE.md`.

use crate::common::normals;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_stats::{Changes, best_split, change_points};

/// As a history asks of one series: 5 % of false alarms, and changes of 2 % at least.
const USUAL: Changes = Changes { false_alarms: 0.05, least: 0.0198, seed: 1 };

/// The noise of runs, made so large that what matters never decides.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Most runs are fast, a few much slower: a gamma distribution, of shape 1.
    Skewed,
    /// One run in twenty is off by ten times the noise, either way.
    Outliers,
    /// Each run carries this share of the deviation of the one before: a shared machine that drifts.
    Drift(f64),
    /// Nothing of a deviation is ever lost.
    Walk,
}

impl Noise {
    /// So many deviations, of about one standard deviation.
    fn draw(self, random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
        let normal = normals(random, n + 60);
        match self {
            Noise::Normal => normal[..n].to_vec(),
            Noise::Skewed => (0..n).map(|_| -(1.0 - random.random::<f64>()).ln()).collect(),
            Noise::Outliers => {
                let wild = |x: &f64| if random.random::<f64>() < 0.05 { 10.0 * x.signum() } else { *x };
                normal[..n].iter().map(wild).collect()
            }
            Noise::Drift(carried) => {
                let mut last = 0.0;
                let mut next = |x: &f64| {
                    last = carried * last + (1.0 - carried * carried).sqrt() * x;
                    last
                };
                normal.iter().map(&mut next).skip(60).collect()
            }
            Noise::Walk => {
                let mut sum = 0.0;
                let mut next = |x: &f64| {
                    sum += 0.3 * x;
                    sum
                };
                normal[..n].iter().map(&mut next).collect()
            }
        }
    }
}

/// Of so many series, the per cent in which `says` holds of the places of changes.
fn share(
    series: u64,
    changes: Changes,
    made: impl Fn(&mut ChaCha8Rng) -> Vec<f64>,
    says: impl Fn(&[usize]) -> bool,
) -> f64 {
    let one = |seed: u64| {
        let values = made(&mut ChaCha8Rng::seed_from_u64(seed));
        let found = change_points(&values, &Changes { seed, ..changes });
        says(&found.iter().map(|change| change.at).collect::<Vec<_>>())
    };
    (0..series).filter(|seed| one(*seed)).count() as f64 / series as f64 * 100.0
}

/// Per cent of series without a change in which one is found. Noise is 10 %, so that no change is too small to count.
fn false_alarms(series: u64, noise: Noise, n: usize, asked: f64) -> f64 {
    let changes = Changes { false_alarms: asked, ..USUAL };
    let level = |random: &mut ChaCha8Rng| noise.draw(random, n).iter().map(|x| 0.1 * x).collect();
    share(series, changes, level, |found| !found.is_empty())
}

/// Per cent of series in which a step of `step` with so many runs behind it is found, at most two runs off.
fn power(series: u64, noise: Noise, (n, behind): (usize, usize), deviation: f64, step: f64, asked: f64) -> f64 {
    let changes = Changes { false_alarms: asked, ..USUAL };
    let stepped = |random: &mut ChaCha8Rng| {
        let drawn = noise.draw(random, n);
        let level = |i: usize| if i >= n - behind { (1.0 + step).ln() } else { 0.0 };
        drawn.iter().enumerate().map(|(i, x)| deviation * x + level(i)).collect()
    };
    share(series, changes, stepped, |found| found.iter().any(|at| at.abs_diff(n - behind) <= 2))
}

#[test]
fn independent_runs_alarm_as_often_as_asked() {
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers] {
        for (n, asked) in [(12, 0.05), (20, 0.05), (40, 0.05), (40, 0.01), (100, 0.05)] {
            let alarms = false_alarms(if n > 40 { 500 } else { 1500 }, noise, n, asked);
            // Three standard errors of so many series.
            let most = 100.0 * (asked + 3.0 * (asked * (1.0 - asked) / if n > 40 { 500.0 } else { 1500.0 }).sqrt());
            assert!(alarms <= most, "{noise:?}, {n} runs, {asked} asked: {alarms} %");
        }
    }
}

#[test]
fn a_machine_that_drifts_alarms_more_often_but_seldom() {
    for (carried, n, most) in [(0.3, 40, 12.0), (0.5, 40, 18.0), (0.5, 100, 14.0), (0.7, 40, 30.0)] {
        let alarms = false_alarms(1000, Noise::Drift(carried), n, 0.05);
        assert!(alarms <= most, "{n} runs that carry {carried}: {alarms} %");
    }
}

/// The check above can fail: permutations alone take such a drift for changes. A step in it is there as often.
#[test]
fn a_walk_is_taken_for_changes() {
    assert!(false_alarms(300, Noise::Walk, 40, 0.05) > 10.0);
}

#[test]
fn a_step_of_five_per_cent_is_found() {
    for (noise, deviation, behind, least) in [
        (Noise::Normal, 0.01, 5, 95.0),
        (Noise::Normal, 0.02, 10, 90.0),
        (Noise::Normal, 0.02, 20, 95.0),
        (Noise::Skewed, 0.02, 20, 90.0),
        (Noise::Outliers, 0.01, 20, 90.0),
        (Noise::Drift(0.3), 0.02, 20, 70.0),
    ] {
        let found = power(500, noise, (40, behind), deviation, 0.05, 0.05);
        assert!(found >= least, "{noise:?} of {deviation}, {behind} runs behind: {found} %");
    }
}

#[test]
fn several_steps_are_found_where_they_are() {
    let values = three_steps(&mut ChaCha8Rng::seed_from_u64(7), 0.01);
    let found = change_points(&values, &USUAL);
    let places: Vec<usize> = found.iter().map(|change| change.at).collect();
    assert_eq!(places, [15, 25, 45]);
    assert!(found.iter().all(|change| change.p <= 0.05), "{found:?}");
    let sizes: Vec<f64> = found.iter().map(|change| change.after - change.before).collect();
    for (size, true_size) in sizes.iter().zip([0.06, -0.06, -0.05]) {
        assert!((size - true_size).abs() < 0.015, "{sizes:?}");
    }
    assert_eq!(change_points(&values, &USUAL), found, "equal arguments give equal changes");
}

#[test]
fn small_changes_are_left_out() {
    let steps = |step: f64| -> Vec<f64> {
        (0..40).map(|i| if i < 20 { 0.0 } else { step } + 0.001 * f64::from((i * 7) % 5)).collect()
    };
    assert_eq!(change_points(&steps(0.01), &USUAL), []);
    assert_eq!(change_points(&steps(0.03), &USUAL).iter().map(|change| change.at).collect::<Vec<_>>(), [20]);
}

#[test]
fn what_cannot_be_judged_has_no_changes() {
    let step = |n: usize| -> Vec<f64> { (0..n).map(|i| if i < n / 2 { 1.0 } else { 2.0 }).collect() };
    assert_eq!(change_points(&step(7), &USUAL), []);
    assert_eq!(change_points(&step(16), &USUAL).len(), 1);
    assert_eq!(change_points(&[], &USUAL), []);
    assert_eq!(change_points(&[1.0; 30], &USUAL), []);
    let mut broken = step(16);
    broken[3] = f64::NAN;
    assert_eq!(change_points(&broken, &USUAL), []);
    for wrong in [0.0, 1.0, f64::NAN] {
        assert_eq!(change_points(&step(16), &Changes { false_alarms: wrong, ..USUAL }), []);
    }
}

/// An odd run at the end is no new level; three are.
#[test]
fn an_odd_run_is_no_change() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut values: Vec<f64> = normals(&mut random, 40).iter().map(|x| 0.01 * x).collect();
    values[39] = 0.3;
    assert_eq!(change_points(&values, &USUAL), []);
    values[37..].fill(0.3);
    assert_eq!(change_points(&values, &USUAL).iter().map(|change| change.at).collect::<Vec<_>>(), [37]);
}

/// Energy distances, and the place of the largest, as another implementation has them.
#[test]
fn the_split_is_that_of_another_implementation() {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("../recorded/divisive.json")).expect("JSON");
    let series = recorded["series"].as_array().expect("series");
    assert!(series.len() >= 5);
    for one in series {
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        let values: Vec<f64> = one["values"].as_array().expect("values").iter().map(number).collect();
        let (at, score) = best_split(&values).expect("a split");
        assert_eq!(at as u64, one["at"].as_u64().expect("a place"), "{}", one["name"]);
        let (score, theirs) = (score, number(&one["score"]));
        assert!((score / theirs - 1.0).abs() < 1e-9, "{}: {score}, and theirs is {theirs}", one["name"]);
    }
}

/// Levels that come and go: a loss that was mended, and another one.
fn three_steps(random: &mut ChaCha8Rng, deviation: f64) -> Vec<f64> {
    let levels = [(15, 0.0), (10, 0.06), (20, 0.0), (12, -0.05)];
    let levels = levels.iter().flat_map(|(runs, level)| std::iter::repeat_n(*level, *runs));
    let noise = normals(random, 57);
    levels.zip(noise).map(|(level, x)| level + deviation * x).collect()
}

const KINDS: [Noise; 6] =
    [Noise::Normal, Noise::Skewed, Noise::Outliers, Noise::Drift(0.3), Noise::Drift(0.5), Noise::Drift(0.7)];

#[test]
#[ignore = "prints a table; nothing is asserted"]
fn figures_of_false_alarms() {
    println!("false alarms, per cent of 2,000 series, at 5 % (and at 1 %), of 12, 20, 40, 100 runs:");
    for noise in KINDS.into_iter().chain([Noise::Drift(0.9), Noise::Walk]) {
        let of = |n| [0.05, 0.01].map(|asked| false_alarms(2000, noise, n, asked));
        println!("  {noise:?}: {:.1?}", [12, 20, 40, 100].map(of));
    }
}

#[test]
#[ignore = "prints a table; nothing is asserted"]
fn figures_of_power() {
    println!(
        "steps of 5 % found, per cent of 200 series of 40 runs, at 5 % (and at 1 %), 3, 5, 10, 20 runs behind it:"
    );
    for noise in KINDS {
        for deviation in [0.01, 0.02, 0.03] {
            let of = |behind| [0.05, 0.01].map(|asked| power(200, noise, (40, behind), deviation, 0.05, asked));
            println!("  {noise:?} of {deviation}: {:.0?}", [3, 5, 10, 20].map(of));
        }
    }
    for deviation in [0.01, 0.015, 0.02] {
        let found =
            |least: usize| share(200, USUAL, |random| three_steps(random, deviation), |found| found.len() >= least);
        println!("  three steps of 5 to 6 %, normal noise of {deviation}: any {:.0}, all {:.0}", found(1), found(3));
    }
}
