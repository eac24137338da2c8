//! The progress of `weir run` on standard error. On a terminal it is a status line with the running trial and the time left,
//! and below it the order of products so far; elsewhere a line for each block, or each minute of a long one. Trials that
//! fail have a line of their own, with `--verbose` all trials. Called by `verbs::run`.

mod words;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::ProgressState;
use weir_lab::rates::ChosenRate;
use weir_lab::run::{Observer, RunEvent};
use weir_model::record::{Measurement, Verdict};
use weir_model::suite::Suite;
use weir_model::text::{counted, fixed_us, human_rate, wrapped};
use weir_report::run::Trial;
use weir_report::summary::provisional;

use crate::progress::{Status, minutes, template};
use words::{CaseNames, describe_part, finished, ranking};

/// Where there is no terminal, a line that stays comes after each block, and at least so often.
const EVERY: Duration = Duration::from_secs(60);

/// Lines of the order of products below the status line.
const RANKING_LINES: usize = 2;

/// Characters of it where there is no terminal.
const RANKING_ROOM: usize = 160;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Nothing.
    Nothing,
    /// Where the run stands.
    Status,
    /// That, and a line for each trial.
    Trials,
}

/// When the run is expected to end.
type Until = Arc<Mutex<Option<Instant>>>;

/// Shows a run on standard error.
#[derive(Debug)]
pub struct RunProgress {
    status: Status,
    wanted: Show,
    suite: Suite,
    names: CaseNames,
    trials: usize,
    measured: Vec<Trial>,
    now: String,
    /// Which part of the trial, with a separator before it.
    part: String,
    until: Until,
    /// The order of products so far, in lines of the terminal's width.
    ranking: Arc<Mutex<String>>,
    /// That of the running trial.
    block: Option<u32>,
    /// When the last line was written that stays.
    said: Instant,
    /// Failures that were shown: what fails once is likely to fail in each block.
    failures: BTreeSet<String>,
}

impl RunProgress {
    /// The progress of a run of this suite.
    pub fn new(wanted: Show, suite: &Suite) -> RunProgress {
        let (until, ranking) = (Until::default(), Arc::<Mutex<String>>::default());
        let (ending, order) = (until.clone(), ranking.clone());
        // Writing to the line's text does not fail.
        let left = move |_: &ProgressState, text: &mut dyn Write| {
            let _ = text.write_str(&left(&ending));
        };
        let order = move |_: &ProgressState, text: &mut dyn Write| {
            let order = order.lock().map(|order| order.clone()).unwrap_or_default();
            let _ = text.write_str(&order);
        };
        let style = template("{bar:12.cyan} {pos}/{len}{left} {wide_msg}\n{ranking}");
        let style = style.with_key("left", left).with_key("ranking", order);
        RunProgress {
            status: Status::new(wanted == Show::Nothing, style, Some(0)),
            wanted,
            suite: suite.clone(),
            names: CaseNames::of(suite),
            trials: 0,
            measured: Vec::new(),
            now: String::new(),
            part: String::new(),
            until,
            ranking,
            block: None,
            said: Instant::now(),
            failures: BTreeSet::new(),
        }
    }

    /// Shows the running trial with what is known of it now.
    fn show(&self, news: &str) {
        self.status.show(format!("{}{}{news}", self.now, self.part));
    }

    /// Writes where the run stands, as a line that stays, when a block has ended or it was long ago.
    fn say(&mut self, block_ended: bool) {
        let for_lines = !self.status.live && self.wanted == Show::Status;
        if !for_lines || !(block_ended || self.said.elapsed() >= EVERY) {
            return;
        }
        self.said = Instant::now();
        let left = time_left(&self.until).map(|left| format!(", {left} left")).unwrap_or_default();
        let order = self.order(RANKING_ROOM).map(|order| format!("; {order}")).unwrap_or_default();
        let done = self.measured.len();
        self.status.line(&format!("{done} of {} trials{left}, now {}{order}", self.trials, self.now));
    }

    /// The order of products so far.
    fn order(&self, room: usize) -> Option<String> {
        Some(ranking(&provisional(&self.suite, &self.measured)?, &self.names, room))
    }

    fn add(&mut self, measurement: &Measurement) {
        self.measured.push(Trial { folder: String::new(), measurement: measurement.clone() });
    }

    /// Computes the order anew for the lines below the status line.
    fn rank(&self) {
        let width = self.status.width();
        let order = if self.status.live { self.order(width * RANKING_LINES - width / 4) } else { None };
        if let Ok(mut shown) = self.ranking.lock() {
            *shown = order.map(|order| wrapped(&order, width, 2)).unwrap_or_default();
        }
    }

    fn ended(&mut self, measurement: &Measurement) {
        self.add(measurement);
        self.status.step();
        self.rank();
        let failure = measurement.error.as_ref().filter(|_| measurement.verdict == Verdict::Error);
        let failure = failure.map(|e| format!("{} {} {}", measurement.case.product, e.stage, e.message));
        if failure.is_some_and(|failure| self.failures.insert(failure)) || self.wanted == Show::Trials {
            self.status.line(&finished(measurement, self.trials, &self.names, self.status.width()));
        }
    }
}

fn time_left(until: &Until) -> Option<String> {
    let end = until.lock().ok().and_then(|guard| *guard)?;
    Some(minutes(end.saturating_duration_since(Instant::now())))
}

fn left(until: &Until) -> String {
    time_left(until).map(|left| format!(" · {left} left ·")).unwrap_or_default()
}

fn chosen_words(chosen: &ChosenRate) -> String {
    let entry = chosen.entry.as_ref().map(|e| format!(" for {}", e.product)).unwrap_or_default();
    format!(
        "{} {}: offering {}{entry}, based on the {} of {}",
        chosen.load,
        chosen.workload,
        human_rate(chosen.rate),
        human_rate(chosen.capacity),
        chosen.basis.product
    )
}

impl Observer for RunProgress {
    fn notify(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Begin { trials, finished, folder } => {
                self.trials = trials;
                finished.iter().for_each(|measurement| self.add(measurement));
                self.status.steps(finished.len(), trials);
                self.rank();
                let done = finished.len();
                let resumed = if done > 0 { format!(", {done} of them already finished") } else { String::new() };
                self.status.line(&format!(
                    "{}{resumed}; files go to {}",
                    counted(trials as u64, "trial"),
                    folder.display()
                ));
            }
            RunEvent::Rate(chosen) => {
                if self.wanted == Show::Trials {
                    self.status.line(&chosen_words(chosen));
                }
            }
            RunEvent::Trial { planned, left } => {
                if let Ok(mut until) = self.until.lock() {
                    *until = Instant::now().checked_add(left);
                }
                self.now = self.names.describe(&planned.case);
                self.part.clear();
                self.show("");
                let before = self.block.replace(planned.block);
                self.say(before.is_some_and(|before| before != planned.block));
            }
            RunEvent::Part(part) => {
                self.part = format!(" · {}", describe_part(part));
                self.show("");
            }
            RunEvent::Stage(stage) => self.show(&format!(" · {stage}")),
            RunEvent::Second(row) => {
                self.show(&format!(
                    " · {} p99 {}",
                    human_rate(row.successful as f64 / row.length_s.max(0.001)),
                    fixed_us(row.p99_us)
                ));
                self.say(false);
            }
            RunEvent::Finished(measurement) => self.ended(measurement),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_shown_once_it_is_known() {
        let until = Until::default();
        assert_eq!(left(&until), "");
        *until.lock().expect("not poisoned") = Some(Instant::now());
        assert_eq!(left(&until), " · 0s left ·");
    }
}
