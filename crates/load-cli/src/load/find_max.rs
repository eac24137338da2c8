//! `weir load --find-max`: searches for the highest rate, shows progress, and prints the result. Called by
//! `verbs::load`.

mod report;

use std::time::Instant;

use weir_load::{Progress, StopFlag};
use weir_model::condition::Condition;
use weir_model::load::{LoadSpec, SearchEnd, SearchOptions, SearchResult};
use weir_search::SearchProgress;

use super::describe::protocol;
use super::flags::Args;
use super::{exit_status, failure};
use crate::exit::{Exit, VerbResult};
use crate::progress::{Status, minutes, minutes_s, template};
use weir_model::text::{fixed_us, full_rate};

/// Runs it.
///
/// # Errors
/// When a trial could not be run at all.
pub fn main(args: &Args, conditions: &[Condition], spec: &LoadSpec, title: &str, stop: &StopFlag) -> VerbResult {
    let options = SearchOptions { budget_s: args.load.budget.0.as_secs_f64(), ..SearchOptions::default() };
    let mut live = Live::new(args.output.quiet, title, spec, conditions, &options);
    let found = weir_search::find_max(spec, conditions, &options, stop, &mut |progress| live.update(&progress));
    drop(live);
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
    match (&found.confirmation, args.responses.fail_if.is_empty()) {
        (Some(result), false) => exit_status(&args.responses.fail_if, result),
        _ => Ok(Exit::Ok),
    }
}

/// One line for each finished trial; on a terminal also a status line.
struct Live {
    status: Status,
    begun: Instant,
    budget_s: f64,
    trial: String,
}

impl Live {
    fn new(quiet: bool, title: &str, spec: &LoadSpec, conditions: &[Condition], options: &SearchOptions) -> Live {
        let status = Status::new(quiet, template("{wide_msg}"), None);
        status.line(title);
        status.line(&report::question(conditions));
        let protocol = protocol(spec, spec.protocol.streams()).map(|words| format!(", {words}")).unwrap_or_default();
        status.line(&format!("{}{protocol}", report::with(spec)));
        status.line(report::HEADINGS);
        Live { status, begun: Instant::now(), budget_s: options.budget_s, trial: String::new() }
    }

    fn update(&mut self, progress: &SearchProgress) {
        match progress {
            SearchProgress::Begins { number, kind, rate: offered, window_s } => {
                let what = offered.map_or("as fast as the target answers".to_owned(), full_rate);
                self.trial = format!("trial {}, {}: {what} for {window_s:.1} s", number + 1, kind.as_str());
                self.show("");
            }
            SearchProgress::Load(Progress::Second(row)) => {
                let now = row.successful as f64 / row.length_s.max(1e-3);
                self.show(&format!(", now {} p99 {}", full_rate(now), fixed_us(row.p99_us)));
            }
            SearchProgress::Ends(probe) => self.status.line(&report::row(probe)),
            _ => {}
        }
    }

    fn show(&self, now: &str) {
        let (spent, budget) = (minutes(self.begun.elapsed()), minutes_s(self.budget_s));
        self.status.show(format!("{spent} of {budget} · {}{now}", self.trial));
    }
}
