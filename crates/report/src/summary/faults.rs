//! What clients lost while something failed, or while slow clients were there: a sentence for each workload.

use weir_model::suite::{Entry, Workload};
use weir_model::text::{list, percent};

use crate::run::{BASELINE, Run};

/// More workloads than this share one sentence.
const MOST_SENTENCES: usize = 3;

/// A share of the rate that needs no cause.
const ALL: f64 = 0.95;

/// A product over all its faults.
#[derive(Debug, Clone, Default, PartialEq)]
struct Outcome {
    label: String,
    /// Requests without a successful response in the windows with a fault, of all that became due in them.
    failed: u64,
    due: u64,
    /// Successful responses a second in the worst second, as a share of those before the fault, and the title of its load.
    kept: Option<(f64, String)>,
}

/// Which products lost requests while something failed; where none did, how much of its rate each kept. `None` where most loads have no fault.
pub(super) fn answer(run: &Run) -> Option<String> {
    let suite = &run.suite;
    let faulty = suite.loads.iter().filter(|load| !load.faults.is_empty()).count();
    if 2 * faulty <= suite.loads.len() {
        return None;
    }
    let of = |workloads: &[Workload]| -> Vec<Outcome> {
        let entries = suite.entries.iter().filter(|entry| entry.product != BASELINE);
        entries.filter_map(|entry| outcome(run, workloads, entry)).collect()
    };
    let groups: Vec<(&str, Vec<Outcome>)> = if suite.workloads.len() > MOST_SENTENCES {
        vec![("", of(&suite.workloads))]
    } else {
        suite.workloads.iter().map(|one| (one.title.as_str(), of(std::slice::from_ref(one)))).collect()
    };
    let groups: Vec<_> = groups.into_iter().filter(|(_, outcomes)| !outcomes.is_empty()).collect();
    let several = groups.len() > 1;
    let sentences: Vec<String> =
        groups.into_iter().map(|(title, outcomes)| sentence(if several { title } else { "" }, outcomes)).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// A product over these workloads; `None` where it has no measurement with a fault.
fn outcome(run: &Run, workloads: &[Workload], entry: &Entry) -> Option<Outcome> {
    let mut sum = Outcome { label: run.label_of(entry), ..Outcome::default() };
    for load in run.suite.loads.iter().filter(|load| !load.faults.is_empty()) {
        for trial in run.displayed_of(workloads, load, entry) {
            let Some(result) = &trial.measurement.load else { continue };
            (sum.failed, sum.due) = (sum.failed + result.window.error_count(), sum.due + result.window.due);
            let rates = trial.measurement.faults.iter().filter_map(|fault| Some(fault.outcome(result)?.rate));
            for kept in rates.filter(|(before, _)| *before > 0.0).map(|(before, after)| (after / before).min(1.0)) {
                if sum.kept.as_ref().is_none_or(|(least, _)| kept < *least) {
                    sum.kept = Some((kept, load.title.clone()));
                }
            }
        }
    }
    (sum.due > 0).then_some(sum)
}

/// "A and B lose no request; C loses 0.3 % and D 12 %."
fn sentence(title: &str, mut outcomes: Vec<Outcome>) -> String {
    let place = if title.is_empty() { String::new() } else { format!("\u{201c}{title}\u{201d}: ") };
    if outcomes.iter().all(|outcome| outcome.failed == 0) {
        let no = if title.is_empty() { "No" } else { "no" };
        return format!("{place}{no} request is lost.{}", kept(outcomes));
    }
    let share = |outcome: &Outcome| outcome.failed as f64 / outcome.due as f64;
    outcomes.sort_by(|a, b| share(a).total_cmp(&share(b)));
    let (clean, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|outcome| outcome.failed == 0);
    let clean: Vec<String> = clean.into_iter().map(|outcome| outcome.label).collect();
    let lose = if clean.len() == 1 { "loses" } else { "lose" };
    let first = (!clean.is_empty()).then(|| format!("{} {lose} no request", list(&clean)));
    let mut verb = " loses";
    let lost = |one: &Outcome| format!("{}{} {}", one.label, std::mem::take(&mut verb), percent(share(one)));
    let lost = list(&others.iter().map(lost).collect::<Vec<_>>());
    format!("{place}{}.", first.into_iter().chain([lost]).collect::<Vec<_>>().join("; "))
}

/// " In the worst second of a fault, A keeps 99 % of its earlier rate and B 12 % (1,000 slow readers)."
fn kept(outcomes: Vec<Outcome>) -> String {
    let mut kept: Vec<_> = outcomes.into_iter().filter_map(|outcome| Some((outcome.label, outcome.kept?))).collect();
    kept.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
    let mut verb = " keeps";
    let mut of_what = " of its earlier rate";
    let each: Vec<String> = kept
        .into_iter()
        .map(|(label, (kept, load))| {
            let cause = if kept < ALL { format!(" ({load})") } else { String::new() };
            let (verb, of_what) = (std::mem::take(&mut verb), std::mem::take(&mut of_what));
            format!("{label}{verb} {}{of_what}{cause}", percent(kept))
        })
        .collect();
    if each.is_empty() { String::new() } else { format!(" In the worst second of a fault, {}.", list(&each)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_who_lost_requests_or_else_who_kept_most() {
        let kept = |label: &str, kept| Outcome {
            label: label.into(),
            due: 1_000,
            kept: Some((kept, "1,000 slow readers".into())),
            ..Outcome::default()
        };
        let says = "\u{201c}GET\u{201d}: no request is lost. In the worst second of a fault, B keeps 99 % of its earlier rate and A 12 % \
                    (1,000 slow readers).";
        assert_eq!(sentence("GET", vec![kept("A", 0.12), kept("B", 0.99)]), says);
        assert_eq!(sentence("", vec![Outcome { due: 1, ..Outcome::default() }]), "No request is lost.");
        let lost = |label: &str, failed| Outcome { failed, ..kept(label, 0.0) };
        let says = "C loses no request; B loses 0.30 % and A 1.2 %.";
        assert_eq!(sentence("", vec![lost("A", 12), lost("B", 3), kept("C", 0.5)]), says);
    }
}
