//! Tests of the search strategy on a simulated server with a known capacity and seeded noise. Run by `cargo test`.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::strategy::{Next, Strategy, WindowOutcome};
use weir_model::load::{ProbeKind, SearchEnd, SearchOptions};

/// A queue with one server and exponential times (M/M/1): the 99th percentile of the time in it is ln(100) / (capacity
/// - rate). Measured times have noise that falls with the root of the trial's length, and now and then a disturbance.
struct Server {
    capacity: f64,
    /// The bound of the p99, seconds.
    bound: f64,
    /// The standard deviation of the logarithm of a measurement of two seconds.
    noise: f64,
    /// The probability that a pause in a trial makes its p99 twenty times as long.
    mishap: f64,
    /// Warm-up, connecting and drain, seconds.
    overhead: f64,
    random: ChaCha8Rng,
}

impl Server {
    fn allows(&self) -> f64 {
        self.capacity - 100f64.ln() / self.bound
    }

    fn p99(&mut self, rate: f64, window_s: f64) -> f64 {
        // Over capacity the queue grows all through the window.
        let still = 100f64.ln() / (self.capacity - rate).max(self.capacity * 1e-3);
        let grown = ((rate / self.capacity - 1.0) * window_s).max(0.0);
        let normal: f64 = (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0;
        let noise = (self.noise * (2.0 / window_s).sqrt() * normal).exp();
        let mishap = if self.random.random_bool(self.mishap) { 20.0 } else { 1.0 };
        (still + grown) * noise * mishap
    }

    fn respond(&mut self, rate: f64, window_s: f64) -> WindowOutcome {
        let p99 = self.p99(rate, window_s);
        let met = p99 < self.bound;
        WindowOutcome { met, near: (p99 / self.bound - 1.0).abs() < 0.2, seconds: window_s + self.overhead }
    }
}

/// The result of a search.
#[derive(Debug)]
struct Found {
    end: SearchEnd,
    rate: Option<f64>,
    met_up_to: Option<f64>,
    failed_from: Option<f64>,
    confirmed: bool,
    trials: u32,
    seconds: f64,
}

fn search(server: &mut Server, options: &SearchOptions) -> Found {
    search_with(server, options, 10.0)
}

/// A search whose confirming trial has a window of so many seconds.
fn search_with(server: &mut Server, options: &SearchOptions, full_s: f64) -> Found {
    let mut strategy = Strategy::new(options, full_s, 500.0);
    let (mut trials, mut seconds) = (0, 0.0);
    let end = loop {
        assert!(trials < 200, "no end");
        match strategy.next() {
            Next::End(end) => break end,
            Next::Guess { window_s } => {
                seconds += window_s + server.overhead;
                strategy.guessed(server.capacity * 0.97, window_s + server.overhead);
            }
            Next::Try { rate, window_s, .. } => {
                let outcome = server.respond(rate, window_s);
                seconds += outcome.seconds;
                strategy.record(outcome);
            }
        }
        trials += 1;
    };
    Found {
        end,
        rate: strategy.best(),
        met_up_to: strategy.met_up_to(),
        failed_from: strategy.failed_from(),
        confirmed: strategy.confirmed(),
        trials,
        seconds,
    }
}

fn server(seed: u64, noise: f64, mishap: f64) -> Server {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // From 200 to 200,000 requests a second; the bound lets through 80 to 98 % of that.
    let capacity = 200.0 * 1000f64.powf(random.random());
    let utilisation = random.random_range(0.8..0.98);
    let bound = 100f64.ln() / (capacity * (1.0 - utilisation));
    Server { capacity, bound, noise, mishap, overhead: 1.0, random }
}

fn patient() -> SearchOptions {
    SearchOptions { budget_s: 900.0, ..SearchOptions::default() }
}

#[test]
fn two_hundred_searches_find_the_rate() {
    let options = patient();
    let (mut within, mut seconds, mut trials) = (0, 0.0, 0);
    for seed in 0..200 {
        let mut server = server(seed, 0.05, 0.02);
        let allowed = server.allows();
        let found = search(&mut server, &options);
        let rate = found.rate.unwrap_or_else(|| panic!("seed {seed}: {found:?}"));
        assert!(rate <= allowed * (1.0 + options.tolerance), "seed {seed}: {allowed} is allowed: {found:?}");
        assert_eq!((found.end, found.confirmed), (SearchEnd::Found, true), "seed {seed}: {found:?}");
        assert!(found.met_up_to <= found.rate && found.rate < found.failed_from, "seed {seed}: {found:?}");
        within += u32::from((rate / allowed - 1.0).abs() <= options.tolerance);
        seconds += found.seconds;
        trials += found.trials;
    }
    assert!(within >= 190, "{within} of 200 within tolerance");
    // The mean cost of a search must stay far below its budget.
    assert!(trials / 200 <= 18 && seconds / 200.0 < 100.0, "{trials} trials, {seconds} s");
}

#[test]
fn a_search_in_a_trial_has_the_time_that_it_needs() {
    for full_s in [0.5, 1.0, 2.0, 5.0, 15.0] {
        let options = SearchOptions::for_windows(Duration::from_millis(200), Duration::from_secs_f64(full_s));
        let confirmed = (0..200).filter(|seed| {
            let mut server = Server { overhead: 0.5, ..server(*seed, 0.05, 0.02) };
            search_with(&mut server, &options, full_s).confirmed
        });
        let confirmed = confirmed.count();
        assert!(confirmed >= 190, "{confirmed} of 200 at {full_s} s");
    }
}

#[test]
fn much_noise_makes_a_search_less_exact_and_not_more_hopeful() {
    let options = patient();
    let mut within = 0;
    for seed in 0..200 {
        let mut server = server(seed, 0.2, 0.05);
        let allowed = server.allows();
        let found = search(&mut server, &options);
        let rate = found.rate.unwrap_or_else(|| panic!("seed {seed}: {found:?}"));
        assert!(rate <= allowed * 1.05, "seed {seed}: {allowed} is allowed: {found:?}");
        within += u32::from((rate / allowed - 1.0).abs() <= 0.05);
    }
    assert!(within >= 180, "{within} of 200 within 5 %");
}

#[test]
fn without_noise_the_interval_is_as_narrow_as_was_asked_for() {
    for (seed, tolerance) in (0..200).flat_map(|seed| [(seed, 0.1), (seed, 0.02), (seed, 0.002)]) {
        let mut server = server(seed, 0.0, 0.0);
        let allowed = server.allows();
        let found = search(&mut server, &SearchOptions { tolerance, ..patient() });
        let (Some(rate), Some(failed)) = (found.rate, found.failed_from) else { panic!("seed {seed}: {found:?}") };
        assert_eq!(found.met_up_to, Some(rate));
        assert!(rate < allowed && allowed <= failed, "seed {seed}: {allowed}: {found:?}");
        assert!(failed / rate <= 1.0 + tolerance, "seed {seed}: {found:?}");
    }
}

#[test]
fn a_guess_may_be_far_off() {
    for (seed, factor) in (0..20).flat_map(|seed| [(seed, 0.01), (seed, 0.3), (seed, 20.0)]) {
        let mut server = server(seed, 0.0, 0.0);
        let allowed = server.allows();
        let guess = Some(allowed * factor);
        let found = search(&mut server, &SearchOptions { guess, ..patient() });
        assert_eq!(found.end, SearchEnd::Found, "{found:?}");
        assert!(found.rate.is_some_and(|rate| rate < allowed && rate > allowed * 0.98), "{allowed}: {found:?}");
        assert!(found.trials < 30, "{found:?}");
    }
}

#[test]
fn a_ceiling_is_not_exceeded() {
    let mut server = server(1, 0.0, 0.0);
    for share in [0.2, 0.9] {
        let ceiling = Some(server.allows() * share);
        let found = search(&mut server, &SearchOptions { ceiling, ..patient() });
        assert_eq!((found.end, found.rate, found.confirmed), (SearchEnd::Ceiling, ceiling, true));
        assert_eq!(found.failed_from, None);
    }
    let above = Some(server.allows() * 3.0);
    assert_eq!(search(&mut server, &SearchOptions { ceiling: above, ..patient() }).end, SearchEnd::Found);
}

#[test]
fn what_cannot_be_met_is_said_to_be_so() {
    let mut server = server(1, 0.0, 0.0);
    server.bound = 1e-9;
    let found = search(&mut server, &patient());
    assert_eq!((found.end, found.rate, found.met_up_to, found.confirmed), (SearchEnd::NothingMet, None, None, false));
    assert!(found.failed_from.is_some() && found.trials < 20, "{found:?}");
}

#[test]
fn the_budget_is_kept_and_the_best_is_confirmed_with_what_is_left() {
    for (budget_s, least) in [(5.0, 0), (25.0, 35), (60.0, 40), (120.0, 43)] {
        let mut confirmed = 0;
        for seed in 0..50 {
            let mut server = server(seed, 0.05, 0.02);
            let found = search(&mut server, &SearchOptions { budget_s, ..patient() });
            // Only a first trial can exceed it, since its overhead is not known before.
            assert!(found.seconds <= budget_s + server.overhead, "{budget_s}: {found:?}");
            assert!(matches!(found.end, SearchEnd::Budget | SearchEnd::Found), "{found:?}");
            confirmed += u32::from(found.confirmed);
        }
        assert!(confirmed >= least, "{confirmed} of 50 were confirmed within {budget_s} s");
    }
}

#[test]
fn a_server_that_tires_is_not_steady() {
    // Short trials pass at any rate, long ones never.
    let mut strategy = Strategy::new(&SearchOptions { guess: Some(1000.0), ..patient() }, 10.0, 1.0);
    let mut fulls = 0;
    let end = loop {
        match strategy.next() {
            Next::End(end) => break end,
            Next::Guess { .. } => panic!("a guess was given"),
            Next::Try { rate, window_s, kind } => {
                let full = kind == ProbeKind::Confirm;
                fulls += u32::from(full);
                strategy.record(WindowOutcome { met: !full && rate < 5_000.0, near: false, seconds: window_s });
            }
        }
        assert!(fulls < 20, "it gives up");
    };
    assert_eq!(end, SearchEnd::Unsteady);
    assert!(!strategy.confirmed());
}

#[test]
fn after_a_fall_a_wide_bracket_is_narrowed_before_lower_rates_are_confirmed() {
    // Short trials pass or fail at random, as on a shared machine; long ones fail from 3000/s.
    for seed in 0..50 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut strategy = Strategy::new(&SearchOptions { guess: Some(10_000.0), ..patient() }, 10.0, 1.0);
        let mut fulls = Vec::new();
        let end = loop {
            match strategy.next() {
                Next::End(end) => break end,
                Next::Guess { .. } => panic!("a guess was given"),
                Next::Try { rate, window_s, kind } => {
                    let full = kind == ProbeKind::Confirm;
                    let met = rate < 3_000.0 || !full && random.random_bool(0.5);
                    if full {
                        fulls.push(rate);
                    }
                    strategy.record(WindowOutcome { met, near: false, seconds: window_s });
                }
            }
            assert!(fulls.len() < 20, "it gives up: {fulls:?}");
        };
        // A rate that it reports as confirmed is right.
        assert!(matches!(end, SearchEnd::Found | SearchEnd::Unsteady), "seed {seed}: {end:?}");
        if strategy.confirmed() {
            assert!(strategy.best().is_some_and(|rate| rate < 3_000.0), "seed {seed}: {fulls:?}");
        }
    }
}

#[test]
fn a_search_can_be_stopped() {
    let mut strategy = Strategy::new(&patient(), 10.0, 1.0);
    strategy.next();
    strategy.guessed(1_000.0, 3.0);
    assert!(matches!(strategy.next(), Next::Try { rate: 700.0, .. }));
    strategy.record(WindowOutcome { met: true, near: false, seconds: 3.0 });
    strategy.stop();
    assert_eq!(strategy.next(), Next::End(SearchEnd::CutShort));
    assert_eq!((strategy.best(), strategy.confirmed()), (Some(700.0), false));
}
