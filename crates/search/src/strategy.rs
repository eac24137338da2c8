//! Chooses the next rate of a search from the results so far. A state machine that `search` drives; it knows neither loads
//! nor a clock.
//!
//! Its only state is a table of rates, with the number of trials of each that met the conditions and that failed. The
//! majority of a rate's trials decides. One trial is enough unless its result was near the bound; then two that agree are
//! needed. The table gives the lowest rate that failed, and the highest rate below it that met the conditions. These two
//! decide the next step:
//!
//! 1. Neither is known: a closed load gives a first guess, and a part of that rate is tried.
//! 2. Only one is known: the search moves away from it, in growing steps.
//! 3. Both are known and too far apart: their geometric mean is tried, in trials that get longer as the two converge.
//! 4. Both are close enough: the lower one is tried at full length. Before that, an upper one that failed only once is
//!    tried again, since a disturbance (a pause of the machine) makes a good rate fail far more often than a bad one pass.
//! 5. A rate that fails at full length twice has failed, whatever short trials showed. Rates a little below it are then
//!    tried at full length, a few times.
//!
//! Because everything follows from the table, a changed result needs no special case: when a failed rate passes on its
//! second trial, the search continues upwards from there.

use weir_model::load::{ProbeKind, SHORT_WINDOW_S, SearchEnd, SearchOptions};

/// The first rate tried, as a share of the closed load's rate: most conditions hold there, and few hold far above.
const FIRST: f64 = 0.7;

/// The first step away from a rate, as a factor; each further step is twice as long (on the logarithmic scale), up to
/// [`LONGEST_STEP`].
const STEP: f64 = 1.25;
const LONGEST_STEP: f64 = 4.0;

/// The share of the first guess below which the search ends with the result that no rate meets the conditions.
const DEEPEST: f64 = 1e-3;

/// The number of trials of one rate after which the majority decides in any case.
const MOST_TRIALS: u32 = 3;

/// Rates that may fail at full length before the search gives up.
const MOST_FALLS: u32 = 5;

/// The next step of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// A closed load.
    Guess {
        /// Seconds.
        window_s: f64,
    },
    /// An open load.
    Try {
        kind: ProbeKind,
        /// Requests a second.
        rate: f64,
        /// Seconds.
        window_s: f64,
    },
    /// Nothing more.
    End(SearchEnd),
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WindowOutcome {
    /// The conditions were met.
    pub met: bool,
    /// Noise may have decided the result.
    pub near: bool,
    /// Its total time, seconds.
    pub seconds: f64,
}

/// A rate, and the results of its trials.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tried {
    rate: f64,
    /// Trials of less than full length, and those of full length.
    short: Votes,
    full: Votes,
}

/// Trials of one rate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Votes {
    met: u32,
    failed: u32,
    /// The last was near its bound.
    near: bool,
}

/// The verdict on a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    Failed,
    /// More trials are needed.
    Open,
    /// More trials of full length are needed.
    OpenAtFull,
}

impl Votes {
    fn add(&mut self, outcome: WindowOutcome) {
        self.near = outcome.near;
        if outcome.met { self.met += 1 } else { self.failed += 1 }
    }

    fn count(self) -> u32 {
        self.met + self.failed
    }

    /// The result of the majority; `None` while it is not clear. One clear trial is enough, or two that agree.
    fn majority(self) -> Option<bool> {
        let clear = match self.count() {
            0 => false,
            1 => !self.near,
            _ => self.met != self.failed,
        };
        (clear || self.count() >= MOST_TRIALS).then_some(self.met > self.failed)
    }
}

impl Tried {
    fn verdict(&self) -> Verdict {
        // A rate that passes its first trial of full length stands, however narrowly, since short trials have passed
        // before. Two failures at full length are needed to reject it, however clear: one may be a disturbance.
        let full = match (self.full.met, self.full.failed) {
            (_, 0) => Some(true),
            (0, 1) => None,
            _ => self.full.majority(),
        };
        match (self.full.count(), full, self.short.majority()) {
            (1.., Some(true), _) => Verdict::Met,
            (1.., Some(false), _) => Verdict::Failed,
            (1.., None, _) => Verdict::OpenAtFull,
            (_, _, Some(true)) => Verdict::Met,
            (_, _, Some(false)) => Verdict::Failed,
            (_, _, None) => Verdict::Open,
        }
    }

    /// It met the conditions at full length.
    fn stands(&self) -> bool {
        self.full.count() > 0 && self.verdict() == Verdict::Met
    }

    /// It failed at full length.
    fn fell(&self) -> bool {
        self.full.count() > 0 && self.verdict() == Verdict::Failed
    }

    /// Only one short trial failed, and none passed.
    fn failed_once(&self) -> bool {
        self.full.count() == 0 && self.short.failed == 1 && self.short.met == 0
    }
}

/// The search.
#[derive(Debug)]
pub(super) struct Strategy {
    options: SearchOptions,
    /// Length of a trial of full length, seconds.
    full_s: f64,
    /// The number of requests that a trial needs for meaningful percentiles.
    samples: f64,
    guess: Option<f64>,
    /// By rate, ascending.
    tried: Vec<Tried>,
    /// The step that was returned last.
    asked: Option<Next>,
    spent_s: f64,
    /// The most that a trial took beyond its window, seconds.
    overhead_s: f64,
    ended: Option<SearchEnd>,
}

impl Strategy {
    /// A search whose trials of full length last `full_s` seconds, and whose trials should have `samples` requests.
    pub(super) fn new(options: &SearchOptions, full_s: f64, samples: f64) -> Strategy {
        Strategy {
            guess: options.guess.map(|guess| guess.min(options.ceiling.unwrap_or(f64::INFINITY))),
            options: options.clone(),
            full_s,
            samples,
            tried: Vec::new(),
            asked: None,
            spent_s: 0.0,
            overhead_s: 0.0,
            ended: None,
        }
    }

    /// The next step. Unless it is the end, the caller reports its result with [`Strategy::guessed`] or
    /// [`Strategy::record`].
    pub(super) fn next(&mut self) -> Next {
        let next = match self.ended {
            Some(end) => Next::End(end),
            None => self.affordable(self.wish()),
        };
        match next {
            Next::End(end) => self.ended = Some(end),
            Next::Guess { .. } | Next::Try { .. } => self.asked = Some(next),
        }
        next
    }

    /// Records the result of the closed load: its rate (requests a second) and its total time (seconds).
    pub(super) fn guessed(&mut self, carried: f64, seconds: f64) {
        if let Some(Next::Guess { window_s }) = self.asked.take() {
            self.spend(seconds, window_s);
            // At least one request a second: a target without any response may have been asleep.
            let first = (carried * FIRST).max(1.0);
            self.guess = Some(rounded(first).min(self.options.ceiling.unwrap_or(f64::INFINITY)));
        }
    }

    /// Records the result of the last trial.
    pub(super) fn record(&mut self, outcome: WindowOutcome) {
        let Some(Next::Try { kind, rate, window_s }) = self.asked.take() else { return };
        self.spend(outcome.seconds, window_s);
        let at = self.tried.partition_point(|tried| tried.rate < rate);
        if self.tried.get(at).is_none_or(|tried| tried.rate != rate) {
            self.tried.insert(at, Tried { rate, short: Votes::default(), full: Votes::default() });
        }
        let tried = &mut self.tried[at];
        if kind == ProbeKind::Confirm { tried.full.add(outcome) } else { tried.short.add(outcome) }
    }

    /// Ends the search before its time.
    pub(super) fn stop(&mut self) {
        self.ended.get_or_insert(SearchEnd::CutShort);
    }

    /// The lowest rate that failed, requests a second.
    pub(super) fn failed_from(&self) -> Option<f64> {
        self.high().map(|tried| tried.rate)
    }

    /// The highest rate that met the conditions, below all that failed.
    pub(super) fn best(&self) -> Option<f64> {
        self.low().map(|tried| tried.rate)
    }

    /// The highest rate that met the conditions each time, below all that failed.
    pub(super) fn met_up_to(&self) -> Option<f64> {
        let always = |tried: &&Tried| tried.verdict() == Verdict::Met && tried.short.failed + tried.full.failed == 0;
        self.below_failed().filter(always).last().map(|tried| tried.rate)
    }

    /// Whether [`Strategy::best`] met the conditions at full length too.
    pub(super) fn confirmed(&self) -> bool {
        self.low().is_some_and(Tried::stands)
    }

    fn high(&self) -> Option<&Tried> {
        self.tried.iter().find(|tried| tried.verdict() == Verdict::Failed)
    }

    fn low(&self) -> Option<&Tried> {
        self.below_failed().filter(|tried| tried.verdict() == Verdict::Met).last()
    }

    fn below_failed(&self) -> impl Iterator<Item = &Tried> {
        self.tried.iter().take_while(|tried| tried.verdict() != Verdict::Failed)
    }

    fn spend(&mut self, seconds: f64, window_s: f64) {
        self.spent_s += seconds;
        self.overhead_s = self.overhead_s.max(seconds - window_s);
    }

    /// The next step if time does not matter.
    fn wish(&self) -> Next {
        let Some(guess) = self.guess else {
            return Next::Guess { window_s: SHORT_WINDOW_S.min(self.full_s) };
        };
        let with = |verdict| self.tried.iter().find(|tried| tried.verdict() == verdict);
        if let Some(open) = with(Verdict::OpenAtFull) {
            return self.full(open.rate);
        }
        if let Some(open) = with(Verdict::Open) {
            return self.short(open.rate);
        }
        match (self.low(), self.high()) {
            (None, None) => self.short(guess),
            (Some(low), None) => self.upward(low),
            (None, Some(high)) => self.downward(high, guess),
            (Some(low), Some(high)) => self.between(low, high),
        }
    }

    /// The next step when all rates tried met the conditions.
    fn upward(&self, low: &Tried) -> Next {
        let ceiling = self.options.ceiling.unwrap_or(f64::INFINITY);
        if low.rate >= ceiling {
            return if low.stands() { Next::End(SearchEnd::Ceiling) } else { self.full(low.rate) };
        }
        let before = self.tried.iter().rev().map(|tried| tried.rate).find(|rate| *rate < low.rate);
        self.short(rounded(low.rate * self.step(before.map(|before| low.rate / before))).min(ceiling))
    }

    /// The next step when all rates tried failed.
    fn downward(&self, high: &Tried, guess: f64) -> Next {
        // A trial needs at least two requests to be distinguishable from one without any.
        if high.rate <= (guess * DEEPEST).max(2.0 / self.full_s) {
            return Next::End(SearchEnd::NothingMet);
        }
        let before = self.tried.iter().map(|tried| tried.rate).find(|rate| *rate > high.rate);
        self.short(rounded(high.rate / self.step(before.map(|before| before / high.rate))))
    }

    /// The factor of the next step after a step of factor `last`.
    fn step(&self, last: Option<f64>) -> f64 {
        let shortest = 1.0 + 2.0 * self.options.tolerance;
        last.map_or(STEP, |last| (last * last).clamp(shortest, LONGEST_STEP))
    }

    /// The next step when some rates met the conditions and higher ones failed.
    fn between(&self, low: &Tried, high: &Tried) -> Next {
        let tolerance = self.options.tolerance;
        if low.stands() && (self.falls() > 0 || high.rate / low.rate <= 1.0 + tolerance) {
            return Next::End(SearchEnd::Found);
        }
        let wide = high.rate / low.rate > 1.0 + 4.0 * tolerance;
        match self.falls() {
            0 => {}
            // The remaining lower rate may still pass at full length.
            MOST_FALLS if low.full.count() == 0 => return self.full(low.rate),
            falls if falls >= MOST_FALLS => return Next::End(SearchEnd::Unsteady),
            falls if !wide => {
                let lower = rounded(high.rate / (1.0 + tolerance / 2.0 * f64::from(1u32 << (falls - 1))));
                return self.full(lower.max(low.rate));
            }
            _ => {}
        }
        // The bracket shrinks to half the tolerance; the other half is left for the noise.
        let middle = rounded((low.rate * high.rate).sqrt());
        if high.rate / low.rate > 1.0 + tolerance / 2.0 && low.rate < middle && middle < high.rate {
            return self.short(middle);
        }
        if high.failed_once() {
            return Next::Try { kind: ProbeKind::Again, rate: high.rate, window_s: self.window_s(high.rate) };
        }
        self.full(low.rate)
    }

    /// The number of rates that failed at full length.
    fn falls(&self) -> u32 {
        self.tried.iter().map(|tried| u32::from(tried.fell())).sum()
    }

    fn full(&self, rate: f64) -> Next {
        Next::Try { kind: ProbeKind::Confirm, rate, window_s: self.full_s }
    }

    fn short(&self, rate: f64) -> Next {
        let kind = if self.low().is_some() && self.high().is_some() { ProbeKind::Fine } else { ProbeKind::Coarse };
        Next::Try { kind, rate, window_s: self.window_s(rate) }
    }

    /// The length of a trial: longer for a narrower bracket, and long enough for the samples.
    fn window_s(&self, rate: f64) -> f64 {
        let times = match (self.low(), self.high()) {
            (Some(low), Some(high)) if high.rate / low.rate <= 1.0 + 1.5 * self.options.tolerance => 3.0,
            (Some(low), Some(high)) if high.rate / low.rate <= 1.0 + 5.0 * self.options.tolerance => 2.0,
            _ => 1.0,
        };
        (SHORT_WINDOW_S * times).max(self.samples / rate).min(self.full_s)
    }

    /// The wished step if the time allows it. Otherwise the best rate so far is confirmed instead of improved.
    fn affordable(&self, wish: Next) -> Next {
        let left = self.options.budget_s - self.spent_s;
        let cost = |window_s: f64| window_s + self.overhead_s;
        let full = cost(self.full_s);
        // Time for a confirming trial is reserved once a rate has passed.
        let reserve = if self.low().is_some() { full } else { 0.0 };
        let unconfirmed = self.low().filter(|low| !low.stands());
        match wish {
            Next::End(_) => wish,
            Next::Try { kind: ProbeKind::Confirm, .. } if full <= left => wish,
            Next::Guess { window_s } | Next::Try { window_s, .. } if cost(window_s) + reserve <= left => wish,
            _ => match unconfirmed {
                Some(low) if full <= left => self.full(low.rate),
                _ => Next::End(SearchEnd::Budget),
            },
        }
    }
}

/// Rounds to five digits: finer than any tolerance, and short enough to read.
fn rounded(rate: f64) -> f64 {
    let unit = 10f64.powi(rate.log10().floor() as i32 - 4);
    // Dividing by a whole power of ten is exact where multiplying by its inverse is not.
    if unit < 1.0 { (rate / unit).round() / (1.0 / unit).round() } else { (rate / unit).round() * unit }
}
