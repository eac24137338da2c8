//! `weir load --find-max`: searches for the highest rate, shows progress, and prints the result. Called by
//! `verbs::load`.

mod report;

use std::time::Instant;

use console::Term;
use weir_load::{Progress, SearchProgress, StopFlag};
use weir_model::load::{LoadSpec, Probe, SearchEnd, SearchOptions, SearchResult};

use super::describe::protocol;
use super::flag_values::ConditionList;
use super::flags::Args;
use super::live::Redraw;
use super::{fail_if, failure};
use crate::exit::{Exit, VerbResult};
use crate::progress::minutes;
use weir_model::text::{fixed_us, full_rate};

/// Runs it.
///
/// # Errors
/// When a trial could not be run at all.
pub fn main(args: &Args, conditions: &ConditionList, spec: &LoadSpec, title: &str, stop: &StopFlag) -> VerbResult {
    let options = SearchOptions { budget_s: args.load.budget.0.as_secs_f64(), ..SearchOptions::default() };
    let mut live = Live::new(args.output.quiet, title, spec, conditions, &options);
    let found = weir_load::find_max(spec, &conditions.0, &options, stop, &mut |progress| live.update(&progress));
    live.clear();
    let found = found.map_err(|error| failure(&error))?;
    if args.output.json {
        crate::out::json(&found)?;
    } else {
        let blank = if args.output.quiet { "" } else { "\n" };
        output!("{blank}{}", report::report(&found, spec, title).trim_end());
    }
    end(args, &found)
}

/// 0 when the rate was confirmed.
fn end(args: &Args, found: &SearchResult) -> VerbResult {
    if found.end == SearchEnd::CutShort {
        return Ok(Exit::Interrupted);
    }
    if found.rate.is_none() || !found.confirmed {
        return Ok(Exit::Failed);
    }
    match (&found.confirmation, args.answers.fail_if.is_empty()) {
        (Some(result), false) => fail_if::exit_status(&args.answers.fail_if, result),
        _ => Ok(Exit::Ok),
    }
}

/// One line for each finished trial; on a terminal also a status line.
struct Live {
    quiet: bool,
    redraw: Option<Redraw<Term>>,
    begun: Instant,
    budget_s: f64,
    trial: String,
}

impl Live {
    fn new(quiet: bool, title: &str, spec: &LoadSpec, conditions: &ConditionList, options: &SearchOptions) -> Live {
        if !quiet {
            remark!("{title}\n{}", report::question(&conditions.0));
            remark!("{}{}", report::with(spec), protocol(spec).map(|words| format!(", {words}")).unwrap_or_default());
            remark!("{}", report::HEADINGS);
        }
        let term = Term::buffered_stderr();
        let redraw = (!quiet && term.is_term()).then(|| Redraw::new(term));
        Live { quiet, redraw, begun: Instant::now(), budget_s: options.budget_s, trial: String::new() }
    }

    fn update(&mut self, progress: &SearchProgress) {
        match progress {
            SearchProgress::Begins { number, kind, rate: offered, window_s } => {
                let what = offered.map_or("as fast as the target answers".to_owned(), full_rate);
                self.trial = format!("trial {}, {}: {what} for {window_s:.1} s", number + 1, kind.as_str());
                self.show("");
            }
            SearchProgress::Load(Progress::Second(row)) => {
                let now = row.right as f64 / row.length_s.max(1e-3);
                self.show(&format!(", now {} p99 {}", full_rate(now), fixed_us(row.p99_us)));
            }
            SearchProgress::Ends(probe) => self.line(probe),
            _ => {}
        }
    }

    fn show(&mut self, now: &str) {
        let spent = self.begun.elapsed();
        let budget = std::time::Duration::try_from_secs_f64(self.budget_s).unwrap_or_default();
        if let Some(redraw) = &mut self.redraw {
            let width = Term::stderr().size().1.into();
            redraw.draw(&[format!("{} of {} · {}{now}", minutes(spent), minutes(budget), self.trial)], width);
        }
    }

    fn line(&mut self, probe: &Probe) {
        self.clear();
        if !self.quiet {
            remark!("{}", report::row(probe));
        }
    }

    fn clear(&mut self) {
        if let Some(redraw) = &mut self.redraw {
            redraw.clear(Term::stderr().size().1.into());
        }
    }
}
