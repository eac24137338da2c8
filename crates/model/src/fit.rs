//! Fits a suite into a time budget: shorter windows and warm-ups first, then fewer requests, then fewer blocks. `weir
//! run --budget` and `weir suites list` call it. It never removes a case: the suite and the user choose those.
//!
//! The order loses the least information first. A shorter window measures the same value with a wider interval, down to
//! a floor below which the product does not reach its steady level. Fewer requests are a shorter window too. Fewer
//! blocks show less well whether a difference repeats, so they come last.

use std::time::Duration;

use crate::fault::Fault;
use crate::record::Skipped;
use crate::suite::{Entry, Load, LoadKind, Series, Suite};

/// The shortest measured window: the 99th percentile of a latency needs some hundred responses.
const LEAST_WINDOW: Duration = Duration::from_secs(1);

/// The shortest round of a series without a restart: the curve of a virtual machine that warms up must be visible.
const LEAST_ROUND: Duration = Duration::from_secs(2);

/// The shortest trial of a search: a longer trial does not confirm the rate that a shorter one carries.
const LEAST_SEARCH: Duration = Duration::from_secs(3);

/// The shortest warm-up: the windows of connections and the connection pools have to open.
const LEAST_WARMUP: Duration = Duration::from_millis(300);

/// The shortest time to become steady: a steady level takes some seconds to see.
const LEAST_STEADY: Duration = Duration::from_secs(20);

/// The fewest requests per connection: its first ones are not like the others.
const LEAST_REQUESTS_A_CONNECTION: u64 = 20;

/// Lengths are whole multiples, so that people can read them.
const STEP: Duration = Duration::from_millis(100);

/// Steps between nothing shortened and everything at its floor.
const STEPS: u32 = 1000;

/// What a suite is fitted to.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// The time that there is.
    pub time: Duration,
    /// What a trial takes beside its load, by what is started in it.
    pub overhead: &'a dyn Fn(&Entry) -> Duration,
    /// Cases that are left out.
    pub skipped: &'a [Skipped],
    /// Blocks stay as many as they are: somebody asked for them.
    pub keep_blocks: bool,
}

/// A suite that takes longer than the budget, however small it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct TooLong {
    /// The smallest that it can be made.
    pub smallest: Suite,
    /// What that takes.
    pub takes: Duration,
    /// Of that, what each load takes.
    pub loads: Vec<(String, Duration)>,
}

impl Suite {
    /// The suite with as much of its lengths, requests and blocks as the budget has time for. One that fits as it is stays
    /// as it is.
    ///
    /// # Errors
    /// [`TooLong`] when even the smallest takes longer.
    pub fn fitted(&self, budget: &Budget<'_>) -> Result<Suite, Box<TooLong>> {
        let fits = |suite: &Suite| suite.takes(budget.skipped, budget.overhead) <= budget.time;
        if fits(self) {
            return Ok(self.clone());
        }
        let least_blocks = if budget.keep_blocks { self.blocks } else { 1 };
        if !fits(&self.shrunk(least_blocks, 0, 0)) {
            return Err(Box::new(self.too_long(least_blocks, budget)));
        }
        let blocks = most(least_blocks, self.blocks, |blocks| fits(&self.shrunk(blocks, 0, 0)));
        let requests = most(0, STEPS, |requests| fits(&self.shrunk(blocks, 0, requests)));
        let windows = most(0, STEPS, |windows| fits(&self.shrunk(blocks, windows, requests)));
        Ok(self.shrunk(blocks, windows, requests))
    }

    fn too_long(&self, blocks: u32, budget: &Budget<'_>) -> TooLong {
        let smallest = self.shrunk(blocks, 0, 0);
        let takes = smallest.takes(budget.skipped, budget.overhead);
        let of = |load: &Load| (load.name.clone(), smallest.takes_under(load, budget.skipped, budget.overhead));
        let loads = smallest.loads.iter().map(of).collect();
        TooLong { smallest, takes, loads }
    }

    /// The suite with this many blocks, and with lengths and requests this many steps above their floors.
    fn shrunk(&self, blocks: u32, windows: u32, requests: u32) -> Suite {
        let mut suite = Suite { blocks, ..self.clone() };
        for load in &mut suite.loads {
            shrink(load, windows, requests);
        }
        suite
    }
}

fn shrink(load: &mut Load, windows: u32, share: u32) {
    if let LoadKind::Count { requests } = &mut load.kind {
        let floor = LEAST_REQUESTS_A_CONNECTION.saturating_mul(u64::from(load.connections));
        *requests = fewer(*requests, floor, share);
        return;
    }
    let least = match (&load.kind, &load.series) {
        (LoadKind::Search { .. }, _) => LEAST_SEARCH,
        (_, Series::Rounds(_)) => LEAST_ROUND,
        _ => LEAST_WINDOW,
    };
    // A fault has to end in the window.
    let least = load.faults.iter().map(Fault::end).fold(least, Duration::max);
    load.duration = shorter(load.duration, least, windows);
    load.warmup = shorter(load.warmup, LEAST_WARMUP, windows);
    load.steady = load.steady.map(|most| shorter(most, LEAST_STEADY, windows));
}

/// A share of a time in [`STEPS`], in whole [`STEP`]s, never below the floor and never longer than it was.
fn shorter(time: Duration, floor: Duration, share: u32) -> Duration {
    if share >= STEPS {
        return time;
    }
    let part = time / STEPS * share;
    let rounded = part.saturating_sub(Duration::from_nanos((part.as_nanos() % STEP.as_nanos()) as u64));
    rounded.max(floor).min(time)
}

/// The same of a number, in two digits.
fn fewer(number: u64, floor: u64, share: u32) -> u64 {
    if share >= STEPS {
        return number;
    }
    let part = u128::from(number) * u128::from(share) / u128::from(STEPS);
    // Not larger than what it is a part of.
    let part = u64::try_from(part).unwrap_or(number);
    let unit = 10u64.saturating_pow(part.checked_ilog10().unwrap_or(0).saturating_sub(1));
    (part / unit * unit).max(floor).min(number)
}

/// The largest number from `least` to `largest` that fits, where the least is known to and one that fits has none below it that
/// does not.
fn most(least: u32, largest: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut fitting, mut above) = (least, largest);
    while fitting < above {
        let middle = above - (above - fitting) / 2;
        match fits(middle) {
            true => fitting = middle,
            false => above = middle - 1,
        }
    }
    fitting
}

#[cfg(test)]
mod tests;
