//! The progress of `weir run` on standard error: a line for each finished trial, and on a terminal a status line with
//! the running trial and the time left. Called by `verbs::run`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use console::style;
use indicatif::ProgressState;
use weir_lab::run::{Observer, RunEvent};
use weir_lab::trial::Part;
use weir_model::record::{CaseId, Measurement, Severity, Verdict};
use weir_model::suite::{Entry, Suite};
use weir_model::text::{counted, fixed_us, human_rate};

use crate::progress::{Status, minutes, template};

/// From this width on, a finished trial is shown with its median.
const ROOM_FOR_MEDIAN: usize = 100;

/// When the run is expected to end.
type Until = Arc<Mutex<Option<Instant>>>;

/// Shows a run on standard error.
#[derive(Debug)]
pub struct RunProgress {
    status: Status,
    trials: usize,
    names: CaseNames,
    now: String,
    /// Which part of the trial, with a separator before it.
    part: String,
    until: Until,
}

impl RunProgress {
    /// `quiet` shows nothing.
    pub fn new(quiet: bool, suite: &Suite) -> RunProgress {
        let until = Until::default();
        let shared = until.clone();
        let left = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Writing to the line's text does not fail.
            let _ = text.write_str(&left(&shared));
        };
        let style = template("{bar:12.cyan} {pos}/{len}{left} {wide_msg}").with_key("left", left);
        RunProgress {
            status: Status::new(quiet, style, Some(0)),
            trials: 0,
            names: CaseNames::of(suite),
            now: String::new(),
            part: String::new(),
            until,
        }
    }

    /// Shows the running trial with what is known of it now.
    fn show(&self, news: &str) {
        self.status.show(format!("{}{}{news}", self.now, self.part));
    }
}

fn left(until: &Until) -> String {
    let until = until.lock().ok().and_then(|guard| *guard);
    until.map(|end| format!(" · {} left ·", minutes(end.saturating_duration_since(Instant::now())))).unwrap_or_default()
}

impl Observer for RunProgress {
    fn notify(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Begin { trials, finished, folder } => {
                self.trials = trials;
                self.status.steps(finished, trials);
                let resumed =
                    if finished > 0 { format!(", {finished} of them already finished") } else { String::new() };
                self.status.line(&format!(
                    "{}{resumed}; files go to {}",
                    counted(trials as u64, "trial"),
                    folder.display()
                ));
            }
            RunEvent::Rate(chosen) => {
                let entry = chosen.entry.as_ref().map(|e| format!(" for {}", e.product)).unwrap_or_default();
                self.status.line(&format!(
                    "{} {}: offering {}{entry}, based on the {} of {}",
                    chosen.load,
                    chosen.workload,
                    human_rate(chosen.rate),
                    human_rate(chosen.capacity),
                    chosen.basis.product
                ));
            }
            RunEvent::Trial { planned, left } => {
                if let Ok(mut until) = self.until.lock() {
                    *until = Instant::now().checked_add(left);
                }
                self.now = self.names.describe(&planned.case);
                self.part.clear();
                self.show("");
            }
            RunEvent::Part(part) => {
                self.part = format!(" · {}", describe_part(part));
                self.show("");
            }
            RunEvent::Stage(stage) => self.show(&format!(" · {stage}")),
            RunEvent::Second(row) => self.show(&format!(
                " · {} p99 {}",
                human_rate(row.right as f64 / row.length_s.max(0.001)),
                fixed_us(row.p99_us)
            )),
            RunEvent::Finished(measurement) => {
                self.status.step();
                self.status.line(&finished(measurement, self.trials, &self.names, self.status.width()));
            }
        }
    }
}

/// Names cases; without the profile where the suite has only one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CaseNames {
    profile: bool,
    widest: usize,
}

impl CaseNames {
    fn of(suite: &Suite) -> CaseNames {
        let profiles: BTreeSet<&str> = suite.entries.iter().map(|e| e.profile.as_str()).collect();
        let mut names = CaseNames { profile: profiles.len() > 1, widest: 0 };
        let loads = suite.loads.iter().map(|load| load.name.clone()).max_by_key(|name| name.chars().count());
        let workloads = suite.workloads.iter().map(|one| one.name.clone()).max_by_key(|name| name.chars().count());
        let (workload, load) = (workloads.unwrap_or_default(), loads.unwrap_or_default());
        let widest = suite.entries.iter().map(|Entry { product, profile }| {
            let (product, profile) = (product.clone(), profile.clone());
            names.describe(&CaseId { product, profile, workload: workload.clone(), load: load.clone() }).chars().count()
        });
        names.widest = widest.max().unwrap_or(0);
        names
    }

    fn describe(&self, case: &CaseId) -> String {
        let profile = if self.profile { format!(" {}", case.profile) } else { String::new() };
        format!("{}{profile} · {} · {}", case.product, case.workload, case.load)
    }
}

/// `round 3 of 9`, `20 % of the rate, 1 of 7`, `64 connections, 3 of 5`, `coarse trial 4 at 1.2k/s`.
fn describe_part(part: Part) -> String {
    match part {
        Part::Round { round, of } => format!("round {round} of {of}"),
        Part::Share { share, point, of } => format!("{:.0} % of the rate, {point} of {of}", share * 100.0),
        Part::Connections { connections, point, of } => {
            format!("{}, {point} of {of}", counted(u64::from(connections), "connection"))
        }
        Part::Probe { number, kind, rate } => {
            let at = rate.map_or(String::new(), |rate| format!(" at {}", human_rate(rate)));
            format!("{} trial {}{at}", kind.as_str(), number + 1)
        }
    }
}

fn finished(m: &Measurement, of: usize, names: &CaseNames, width: usize) -> String {
    let number = format!("[{:>w$}/{of}]", m.trial, w = of.to_string().len());
    let head = format!("{number} {:<w$}", names.describe(&m.case), w = names.widest);
    let Some(load) = &m.load else {
        let why = m.error.as_ref().map(|e| format!("{}: {}", e.stage, e.message)).unwrap_or_default();
        return format!("{head}  {} {why}", style("error").red().for_stderr());
    };
    let verdict = match m.verdict {
        Verdict::Valid => style("valid").green(),
        Verdict::Suspect => style("suspect").yellow(),
        other => style(other.as_str()).red(),
    };
    let median =
        if width >= ROOM_FOR_MEDIAN { format!("  p50 {:>7}", fixed_us(load.latency.p50_us)) } else { String::new() };
    // Notes do not change the verdict; they are in the report.
    let grave = m.findings.iter().filter(|f| f.severity > Severity::Note);
    let findings: Vec<&str> = grave.map(|f| f.check.as_str()).collect();
    let line = format!(
        "{head} {:>9}{median}  p99 {:>7}  {} {}",
        human_rate(load.rate),
        fixed_us(load.latency.p99_us),
        verdict.for_stderr(),
        findings.join(" ")
    );
    line.trim_end().to_owned()
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

    #[test]
    fn parts_of_a_trial_are_named() {
        use weir_model::load::ProbeKind::{Coarse, Guess};
        assert_eq!(describe_part(Part::Round { round: 3, of: 9 }), "round 3 of 9");
        assert_eq!(describe_part(Part::Share { share: 0.2, point: 1, of: 7 }), "20 % of the rate, 1 of 7");
        assert_eq!(describe_part(Part::Connections { connections: 1, point: 1, of: 5 }), "1 connection, 1 of 5");
        assert_eq!(describe_part(Part::Probe { number: 0, kind: Guess, rate: None }), "guess trial 1");
        assert_eq!(
            describe_part(Part::Probe { number: 3, kind: Coarse, rate: Some(1_200.0) }),
            "coarse trial 4 at 1.2k/s"
        );
    }

    fn quick() -> Suite {
        let catalogue = crate::library::catalogue(&[]).expect("built in");
        catalogue.suite("quick").expect("built in")
    }

    fn case(product: &str) -> CaseId {
        CaseId { product: product.into(), profile: "tuned".into(), workload: "medium".into(), load: "capacity".into() }
    }

    #[test]
    fn a_profile_is_named_where_there_are_two() {
        let mut suite = quick();
        let names = CaseNames::of(&suite);
        assert_eq!(names.describe(&case("haproxy")), "haproxy · medium · capacity");
        assert_eq!(names.widest, "haproxy · medium · capacity".chars().count());
        suite.entries[0].profile = "stock".into();
        assert_eq!(CaseNames::of(&suite).describe(&case("haproxy")), "haproxy tuned · medium · capacity");
    }
}
