//! Warming a product up until what it carries each second keeps its level: a load that is not measured, by a client of its
//! own, before the first point.
//!
//! When it ends is decided by [`Level`], which knows numbers and neither loads nor the clock.

use std::time::Duration;

use weir_model::load::{LoadSecond, LoadSpec, Shape};
use weir_model::record::Warmup;
use weir_stats::steady_part;

use super::TrialEvent;
use super::work::Work;
use weir_host::role::ClientReport;
use weir_product::failure::Failure;

/// Name of the folder, in the trial's, with the warming client's files.
pub const FOLDER: &str = "warm-up";

/// Rows after which it is asked again whether the level is kept: a batch of the method.
const CHECK_EVERY: usize = 5;

/// Rows that must have kept the level, the method's least number.
const LEAST_ROWS: usize = 10;

/// Drift that does not matter, as a share of the mean: products differ by more where a difference is worth a sentence.
const TOLERANCE: f64 = 0.02;

/// A level counts as kept while a drift shows in less than one of five series without one: much is asked, because it is asked
/// again and again, and to say no costs five seconds, where a yes too early costs the measurement.
const LEVEL: f64 = 0.8;

/// The permutations are drawn alike every time: the same rows have the same answer.
const SEED: u64 = 1;

/// A row shorter than this, at the end of a load, says nothing of a second.
const LEAST_LENGTH_S: f64 = 0.5;

/// Decides when a series of rates has come to its level: from the point on that MSER-5 finds (White 1997; White, Cobb and
/// Spratt 2000) at least ten seconds have kept it, by the permutation test that [`steady_part`] describes, twice in a row
/// and five seconds apart.
///
/// By simulation, of series that rise from half of their level to all of it, with a time constant of 3 s and of 10 s and noise
/// of 5 % of each second: it said yes after 26 s and 50 s in the mean, and in one of 40 at less than 97 % of the level.
/// Of series that are level from the start, after 21 s. Noise of 10 % hides a rise with a time constant of 10 s in one of
/// four: no test sees what is smaller than the noise of the seconds that it has.
#[derive(Debug, Default)]
pub struct Level {
    rates: Vec<f64>,
    kept_before: bool,
}

impl Level {
    /// Takes a second. Says whether the level is reached.
    pub fn take(&mut self, row: &LoadSecond) -> bool {
        if row.length_s < LEAST_LENGTH_S {
            return false;
        }
        self.rates.push(row.right as f64 / row.length_s);
        if !self.rates.len().is_multiple_of(CHECK_EVERY) {
            return false;
        }
        let kept = self.kept();
        let reached = kept && self.kept_before;
        self.kept_before = kept;
        reached
    }

    /// Whether it is kept, asked once.
    pub fn kept(&self) -> bool {
        steady_part(&self.rates, TOLERANCE, LEVEL, SEED)
            .is_some_and(|part| part.steady && self.rates.len() - part.start >= LEAST_ROWS)
    }
}

/// The order of the warming load: the measured one, as long as it may take; where that ends or changes by itself, a closed one.
pub fn warmup_spec(spec: LoadSpec, most: Duration) -> LoadSpec {
    let shape = match spec.shape {
        Shape::Open { .. } => spec.shape,
        _ => Shape::Closed,
    };
    LoadSpec { shape, warmup_s: 0.0, duration_s: most.as_secs_f64(), ..spec }
}

/// Follows the warming load until the level is reached, or its time is over. What was seen last then decides.
pub fn warm_up(mut work: Work<'_>, notify: &mut dyn FnMut(TrialEvent<'_>)) -> Result<Warmup, Failure> {
    let mut level = Level::default();
    let mut reached = false;
    let result = loop {
        match work.receive()? {
            Some(ClientReport::Second(row)) => {
                notify(TrialEvent::Second(&row));
                if !reached && level.take(&row) {
                    reached = true;
                    work.ask_to_end()?;
                }
            }
            Some(ClientReport::Done(result)) => break *result,
            Some(ClientReport::Failed(why)) => return Err(work.failed(why)),
            _ => {}
        }
    };
    work.end()?;
    Ok(Warmup { seconds: result.window_s, steady: reached || level.kept() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn row(right: f64) -> LoadSecond {
        LoadSecond { length_s: 1.0, right: right.round() as u64, ..LoadSecond::default() }
    }

    /// After how many seconds a series of two minutes came to its level.
    fn settles(rate: impl Fn(f64) -> f64, noise: f64, seed: u64) -> Option<u32> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut level = Level::default();
        (1..=120).find(|second| {
            let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            level.take(&row(rate(f64::from(*second)) * (1.0 + noise * normal)))
        })
    }

    fn rising(time_constant: f64) -> impl Fn(f64) -> f64 {
        move |second| 50_000.0 * (1.0 - 0.5 * (-second / time_constant).exp())
    }

    #[test]
    fn what_is_level_from_the_start_is_soon_believed() {
        let seconds: Vec<u32> = (0..20).filter_map(|seed| settles(|_| 50_000.0, 0.03, seed)).collect();
        assert_eq!(seconds.len(), 20);
        assert!(seconds.iter().all(|second| *second >= 15), "two answers, five seconds apart: {seconds:?}");
        let mean = f64::from(seconds.iter().sum::<u32>()) / 20.0;
        assert!(mean < 30.0, "{seconds:?}");
    }

    #[test]
    fn what_rises_is_waited_for() {
        for (time_constant, noise) in [(3.0, 0.01), (3.0, 0.05), (10.0, 0.01), (10.0, 0.03)] {
            let rate = rising(time_constant);
            let seen: Vec<Option<f64>> = (0..20)
                .map(|seed| settles(&rate, noise, seed).map(|second| rate(f64::from(second)) / 50_000.0))
                .collect();
            let early = seen.iter().flatten().filter(|level| **level < 0.97).count();
            assert!(early <= 1, "{time_constant} s, {noise}: {seen:?}");
            assert!(seen.iter().flatten().count() >= 17, "{time_constant} s, {noise}: {seen:?}");
        }
    }

    #[test]
    fn what_never_comes_to_rest_is_never_believed() {
        assert_eq!(settles(|second| 100.0 * second, 0.01, 1), None);
        assert_eq!(settles(rising(60.0), 0.01, 1), None);
    }

    #[test]
    fn a_few_seconds_say_nothing_and_ten_may() {
        let mut level = Level::default();
        for _ in 0..9 {
            assert!(!level.take(&row(500.0)));
        }
        assert!(!level.kept());
        assert!(!level.take(&LoadSecond { length_s: 0.1, ..row(7.0) }), "the rest of a second is left out");
        assert!(!level.take(&row(500.0)) && level.kept());
    }

    #[test]
    fn the_warming_load_is_the_measured_one_without_its_end() {
        use weir_model::load::Target;
        use weir_model::suite::{Arrivals, Expect, Request};
        let request = Request { method: "GET".into(), path: "/".into(), headers: Vec::new(), body: Vec::new() };
        let target = Target::tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 9)), "a");
        let spec = LoadSpec { warmup_s: 1.0, ..LoadSpec::new(target, request, Expect::default()) };
        let of = |shape: Shape| warmup_spec(LoadSpec { shape, ..spec.clone() }, Duration::from_secs(30));
        let open = Shape::Open { rate: 5.0, arrivals: Arrivals::Poisson };
        assert_eq!(of(open.clone()).shape, open);
        assert_eq!(of(Shape::Count { requests: 9 }).shape, Shape::Closed);
        assert_eq!((of(Shape::Closed).warmup_s, of(Shape::Closed).duration_s), (0.0, 30.0));
    }
}
