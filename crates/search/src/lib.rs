//! Searches for the highest open rate that meets conditions, such as `p99<5ms, errors<0.1%`.
//!
//! [`find_max`] runs one load after another. `strategy` chooses the next rate from the results so far, and does not know
//! loads. `judge` decides whether a load's result meets the conditions. This crate does not know how a load is made.

use std::time::Duration;

use weir_load::{Gate, LoadError, Outputs, Progress, SpecError, StopFlag};
use weir_model::Condition;
use weir_model::load::{
    LoadResult, LoadSpec, Probe, ProbeKind, RequestIds, SEARCH_SCHEMA, SearchEnd, SearchLimit, SearchOptions,
    SearchResult,
};
use weir_model::suite::{Arrivals, LoadKind};

use judge::{Judgement, judge};
use strategy::{Next, Strategy, WindowOutcome};

mod judge;
#[cfg(test)]
mod simulated;
mod strategy;
#[cfg(test)]
mod tests;

/// The pause before the one retry of a target that refuses connections after a trial.
const RECOVERY: Duration = Duration::from_secs(2);

/// An event of a running search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SearchProgress {
    /// A trial begins.
    Begins {
        /// Its number, 0-based.
        number: usize,
        /// Its purpose.
        kind: ProbeKind,
        /// Its rate, requests a second; `None` for the closed load.
        rate: Option<f64>,
        /// Length of its window, seconds.
        window_s: f64,
    },
    /// An event of the trial's load.
    Load(Progress),
    /// The trial is over.
    Ends(Probe),
}

/// Finds the highest rate at which all conditions hold and the responses keep up with the requests. The specification
/// gives everything else: connections, warm-up (a fresh one for every trial), the length of the confirming trial (its
/// duration), and the spacing of arrivals if its kind is open with one rate. Otherwise arrivals are evenly spaced.
/// Think times are ignored.
///
/// # Errors
/// The error of [`weir_load::run()`] for the first trial that could not run, or a specification or options that do not
/// describe a search. A stop is not an error: the result has what was found until then.
pub fn find_max(
    spec: &LoadSpec,
    conditions: &[Condition],
    options: &SearchOptions,
    stop: &StopFlag,
    progress: &mut dyn FnMut(SearchProgress),
) -> Result<SearchResult, LoadError> {
    find_max_to(spec, conditions, options, &Outputs::default(), None, stop, progress)
}

/// Like [`find_max`], and writes the files of the confirming trial. Each trial of full length replaces the files of the
/// previous one. With a gate every trial waits there for its start.
///
/// # Errors
/// As for [`find_max`], [`LoadError::Late`], and when a file cannot be written.
pub fn find_max_to(
    spec: &LoadSpec,
    conditions: &[Condition],
    options: &SearchOptions,
    outputs: &Outputs,
    gate: Option<&Gate>,
    stop: &StopFlag,
    progress: &mut dyn FnMut(SearchProgress),
) -> Result<SearchResult, LoadError> {
    find_max_on(&mut Machine { outputs, gate, stop }, spec, conditions, options, stop, progress)
}

/// Like [`find_max`], on another bench than this machine.
///
/// # Errors
/// As for [`find_max`].
pub fn find_max_on(
    bench: &mut dyn SearchBench,
    spec: &LoadSpec,
    conditions: &[Condition],
    options: &SearchOptions,
    stop: &StopFlag,
    progress: &mut dyn FnMut(SearchProgress),
) -> Result<SearchResult, LoadError> {
    Search::new(spec, conditions, options, bench.now())?.carry_out(bench, stop, progress)
}

/// Where a search runs its loads, and the clock of that place.
pub trait SearchBench {
    /// Runs the load of a trial.
    ///
    /// # Errors
    /// The error of the load.
    fn run(
        &mut self,
        spec: &LoadSpec,
        kind: ProbeKind,
        progress: &mut dyn FnMut(SearchProgress),
    ) -> Result<LoadResult, LoadError>;

    /// The monotonic clock, nanoseconds.
    fn now(&self) -> u64;

    /// Waits.
    fn sleep(&mut self, time: Duration);
}

/// This machine.
struct Machine<'a> {
    outputs: &'a Outputs,
    gate: Option<&'a Gate>,
    stop: &'a StopFlag,
}

impl SearchBench for Machine<'_> {
    fn run(
        &mut self,
        spec: &LoadSpec,
        kind: ProbeKind,
        progress: &mut dyn FnMut(SearchProgress),
    ) -> Result<LoadResult, LoadError> {
        let none = Outputs::default();
        let outputs = if kind == ProbeKind::Confirm { self.outputs } else { &none };
        weir_load::run_gated(spec, outputs, self.gate, self.stop, &mut |news| progress(SearchProgress::Load(news)))
    }

    fn now(&self) -> u64 {
        weir_net::monotonic_ns()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A running search.
struct Search<'a> {
    spec: &'a LoadSpec,
    conditions: &'a [Condition],
    options: &'a SearchOptions,
    strategy: Strategy,
    begun: u64,
    probes: Vec<Probe>,
    /// Loads that were begun.
    loads: u16,
    confirmation: Option<Box<LoadResult>>,
}

impl<'a> Search<'a> {
    fn new(
        spec: &'a LoadSpec,
        conditions: &'a [Condition],
        options: &'a SearchOptions,
        begun: u64,
    ) -> Result<Self, LoadError> {
        check(conditions, options).map_err(LoadError::InvalidSpec)?;
        if spec.part.is_some() {
            let why =
                "a search by one of several clients, which do not know each other's results; expected: one client";
            return Err(LoadError::InvalidSpec(why.into()));
        }
        Ok(Search {
            spec,
            conditions,
            options,
            strategy: Strategy::new(options, spec.duration_s, judge::samples(conditions)),
            begun,
            probes: Vec::new(),
            loads: 0,
            confirmation: None,
        })
    }

    fn carry_out(
        mut self,
        bench: &mut dyn SearchBench,
        stop: &StopFlag,
        progress: &mut dyn FnMut(SearchProgress),
    ) -> Result<SearchResult, LoadError> {
        loop {
            let next = self.strategy.next();
            let (kind, rate, window_s) = match next {
                Next::End(end) => return Ok(self.result(end, bench.now())),
                Next::Guess { window_s } => (ProbeKind::Guess, None, window_s),
                Next::Try { kind, rate, window_s } => (kind, Some(rate), window_s),
            };
            progress(SearchProgress::Begins { number: self.probes.len(), kind, rate, window_s });
            let at_s = span_s(self.begun, bench.now());
            let mut result = bench.run(&self.order(rate, window_s), kind, progress);
            if matches!(result, Err(LoadError::NoConnection { .. })) && !self.probes.is_empty() {
                // The target worked before. It may need a moment to recover from the last trial.
                bench.sleep(RECOVERY);
                result = bench.run(&self.order(rate, window_s), kind, progress);
            }
            let result = match result {
                Ok(result) if !result.cut_short => result,
                Ok(_) | Err(LoadError::Stopped) => {
                    self.strategy.stop();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let seconds = span_s(self.begun, bench.now()) - at_s;
            let probe = self.take(kind, rate, at_s, seconds, result);
            progress(SearchProgress::Ends(probe.clone()));
            self.probes.push(probe);
            if stop.is_set() {
                self.strategy.stop();
            }
        }
    }

    /// The specification of one trial.
    fn order(&mut self, rate: Option<f64>, window_s: f64) -> LoadSpec {
        let nth = self.loads;
        self.loads = nth.wrapping_add(1);
        let arrivals = match self.spec.kind {
            LoadKind::Open { arrivals, .. } => arrivals,
            _ => Arrivals::Constant,
        };
        let kind = rate.map_or(LoadKind::Closed, |rate| LoadKind::open(rate, arrivals));
        LoadSpec {
            max_connections: self.spec.max_connections.filter(|_| kind.is_open()),
            kind,
            think: None,
            duration_s: window_s,
            // Each trial has its own arrivals: repeating them would repeat their random effects and make these look
            // systematic.
            seed: self.spec.seed.wrapping_add(self.probes.len() as u64),
            request_ids: self
                .spec
                .request_ids
                .clone()
                .map(|ids| RequestIds { load: ids.load.wrapping_add(nth), ..ids }),
            ..self.spec.clone()
        }
    }

    /// Gives the result of a trial to the strategy.
    fn take(&mut self, kind: ProbeKind, rate: Option<f64>, at_s: f64, seconds: f64, result: LoadResult) -> Probe {
        let connections = self.spec.max_connections.unwrap_or(self.spec.connections);
        let streams = u64::from(connections) * u64::from(self.spec.protocol.streams());
        let Judgement { values, kept_up, met, near, busiest, client_limited } =
            judge(&result, self.conditions, streams, self.spec.warmup_s);
        match rate {
            // A closed load keeps its threads as busy as the target allows, so full threads show no limit here.
            None => self.strategy.guessed(result.rate, seconds),
            Some(_) => self.strategy.record(WindowOutcome { met, near, seconds }),
        }
        let probe = Probe {
            kind,
            offered: rate,
            carried: result.rate,
            values,
            kept_up: kept_up || rate.is_none(),
            met: rate.map(|_| met),
            near: near && rate.is_some(),
            busiest,
            lag_p99_us: result.lag.p99_us,
            client_limited,
            at_s,
            window_s: result.window_s,
            seconds,
        };
        if kind == ProbeKind::Confirm {
            self.confirmation = Some(Box::new(result));
        }
        probe
    }

    fn result(self, end: SearchEnd, now: u64) -> SearchResult {
        let failed_from = self.strategy.failed_from();
        SearchResult {
            schema: SEARCH_SCHEMA,
            conditions: self.conditions.to_vec(),
            options: self.options.clone(),
            end,
            rate: self.strategy.best(),
            confirmed: self.strategy.confirmed(),
            met_up_to: self.strategy.met_up_to(),
            failed_from,
            limit: failed_from.map(|rate| limit(&self.probes, rate)),
            seconds: span_s(self.begun, now),
            probes: self.probes,
            confirmation: self.confirmation,
        }
    }
}

/// Seconds between two times of a bench's clock.
fn span_s(from: u64, to: u64) -> f64 {
    Duration::from_nanos(to.saturating_sub(from)).as_secs_f64()
}

/// Whether client or target limited this rate: the client, if it was at its own limit in most of the failed trials.
fn limit(probes: &[Probe], rate: f64) -> SearchLimit {
    let failed = || probes.iter().filter(|probe| probe.offered == Some(rate) && probe.met == Some(false));
    let limited = failed().filter(|probe| probe.client_limited).count();
    if 2 * limited > failed().count() { SearchLimit::Client } else { SearchLimit::Target }
}

fn check(conditions: &[Condition], options: &SearchOptions) -> Result<(), SpecError> {
    let must = |so: bool, wrong: String| if so { Ok(()) } else { Err(SpecError::from(wrong)) };
    let SearchOptions { tolerance, budget_s, ceiling, guess } = options;
    must(!conditions.is_empty(), "a search needs conditions, such as p99<5ms".to_owned())?;
    must(
        (0.001..=0.5).contains(tolerance),
        format!("a search's tolerance of {tolerance}; expected: 0.001 to 0.5 (of the rate)"),
    )?;
    must(*budget_s > 0.0 && budget_s.is_finite(), format!("a search's time of {budget_s} s; expected: more than 0 s"))?;
    for (what, rate) in [("ceiling", ceiling), ("first guess", guess)] {
        must(
            rate.is_none_or(|rate| rate > 0.0 && rate <= 1e9),
            format!("a search's {what} of {} requests/s; expected: above 0 and at most 1e9", rate.unwrap_or_default()),
        )?;
    }
    Ok(())
}
