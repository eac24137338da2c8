//! Warming a product up until its rate is steady: a load that is not measured, with its own client, before the first point. The
//! series of a trial calls it.
//!
//! [`Level`] decides when it ends. It knows only numbers, neither loads nor the clock.

use std::time::Duration;

use weir_model::load::{LoadSecond, LoadSpec};
use weir_model::record::Warmup;
use weir_model::suite::LoadKind;
use weir_stats::steady_part;

use super::running_load::RunningLoad;
use crate::progress::{Observer, RunEvent};
use weir_host::role::{ClientCommand, ClientReport};
use weir_product::failure::Failure;

/// Name of the folder, in the trial's, with the warming client's files.
pub const FOLDER: &str = "warm-up";

/// The level is checked again after this many rows: a batch of the method.
const CHECK_EVERY: usize = 5;

/// How many rows must have kept the level: the method's minimum.
const LEAST_ROWS: usize = 10;

/// Drift that does not matter, as a share of the mean. Smaller differences between products are not worth reporting.
const TOLERANCE: f64 = 0.02;

/// Confidence level of the test for drift. It is low, so that drift is assumed easily: the test is repeated, a wrong "drift"
/// costs five seconds, and a wrong "steady" costs the measurement.
const LEVEL: f64 = 0.8;

/// A fixed seed for the permutations, so that the same rows always give the same result.
const SEED: u64 = 1;

/// Shorter rows, at the end of a load, are ignored.
const LEAST_LENGTH_S: f64 = 0.5;

/// Decides when a series of rates is steady: from the point that MSER-5 finds (White 1997; White, Cobb and Spratt 2000), at
/// least ten seconds have kept their level by the permutation test of [`steady_part`], in two checks in a row, five seconds
/// apart.
///
/// In a simulation, series rose from half of their level to all of it with a time constant of 3 s or 10 s and noise of 5 % of
/// each second. They were steady after 26 s and 50 s in the mean, and one of 40 was below 97 % of the level then. Series that
/// were level from the start were steady after 21 s. Noise of 10 % hides a rise with a time constant of 10 s in one of four
/// series: no test sees what is smaller than the noise.
#[derive(Debug, Default)]
pub struct Level {
    rates: Vec<f64>,
    kept_before: bool,
}

impl Level {
    /// Adds a second. Returns whether the level is reached.
    pub fn take(&mut self, row: &LoadSecond) -> bool {
        if row.length_s < LEAST_LENGTH_S {
            return false;
        }
        self.rates.push(row.successful as f64 / row.length_s);
        if !self.rates.len().is_multiple_of(CHECK_EVERY) {
            return false;
        }
        let kept = self.kept();
        let reached = kept && self.kept_before;
        self.kept_before = kept;
        reached
    }

    /// Whether one check finds the level kept.
    pub fn kept(&self) -> bool {
        steady_part(&self.rates, TOLERANCE, LEVEL, SEED)
            .is_some_and(|part| part.steady && self.rates.len() - part.start >= LEAST_ROWS)
    }
}

/// The load for the warm-up: the measured load for at most `most`. A load that is neither open nor closed becomes a closed one.
pub fn warmup_spec(spec: LoadSpec, most: Duration) -> LoadSpec {
    let kind = match spec.kind {
        LoadKind::Open { .. } => spec.kind,
        _ => LoadKind::Closed,
    };
    LoadSpec { kind, warmup_s: 0.0, duration_s: most.as_secs_f64(), slow_clients: Vec::new(), ..spec }
}

/// Follows the warm-up until the level is reached or its time is over. Then the last check decides.
pub fn warm_up(mut running_load: RunningLoad<'_>, observer: &mut dyn Observer) -> Result<Warmup, Failure> {
    let mut level = Level::default();
    let mut reached = false;
    let result = loop {
        match running_load.receive()? {
            Some(ClientReport::Second(row)) => {
                observer.notify(RunEvent::Second(&row));
                if !reached && level.take(&row) {
                    reached = true;
                    running_load.send(ClientCommand::End)?;
                }
            }
            Some(ClientReport::Done(result)) => break *result,
            Some(ClientReport::Failed(why)) => return Err(running_load.failed(why)),
            _ => {}
        }
    };
    running_load.end()?;
    Ok(Warmup { seconds: result.window_s, steady: reached || level.kept() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn row(successful: f64) -> LoadSecond {
        LoadSecond { length_s: 1.0, successful: successful.round() as u64, ..LoadSecond::default() }
    }

    /// After how many seconds a series of two minutes was steady.
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
    fn a_series_that_is_level_from_the_start_is_soon_steady() {
        let seconds: Vec<u32> = (0..20).filter_map(|seed| settles(|_| 50_000.0, 0.03, seed)).collect();
        assert_eq!(seconds.len(), 20);
        assert!(seconds.iter().all(|second| *second >= 15), "two responses, five seconds apart: {seconds:?}");
        let mean = f64::from(seconds.iter().sum::<u32>()) / 20.0;
        assert!(mean < 30.0, "{seconds:?}");
    }

    #[test]
    fn a_rising_series_is_not_steady_before_it_has_risen() {
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
    fn a_series_that_keeps_rising_is_never_steady() {
        assert_eq!(settles(|second| 100.0 * second, 0.01, 1), None);
        assert_eq!(settles(rising(60.0), 0.01, 1), None);
    }

    #[test]
    fn fewer_than_ten_seconds_are_never_steady() {
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
        use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
        let request = Request { method: "GET".into(), path: "/".into(), headers: Vec::new(), body: Vec::new() };
        let target = Target::tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 9)), "a");
        let spec = LoadSpec { warmup_s: 1.0, ..LoadSpec::new(target, request, Expect::default()) };
        let of = |kind| warmup_spec(LoadSpec { kind, ..spec.clone() }, Duration::from_secs(30));
        let open = LoadKind::open(5.0, Arrivals::Poisson);
        assert_eq!(of(open.clone()).kind, open);
        assert_eq!(of(LoadKind::Count { requests: 9 }).kind, LoadKind::Closed);
        assert_eq!((of(LoadKind::Closed).warmup_s, of(LoadKind::Closed).duration_s), (0.0, 30.0));
    }
}
