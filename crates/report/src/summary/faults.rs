//! What clients lost while something failed, or while slow clients were there: a sentence for each workload.

use weir_model::suite::{Entry, Workload};
use weir_model::text::{list, percent};

use crate::run::{BASELINE, Run, displayed};

/// More workloads than this share one sentence.
const MOST_SENTENCES: usize = 3;

/// A share of the rate that needs no cause.
const ALL: f64 = 0.95;

/// A product in the worst second of all its faults.
#[derive(Debug, Clone, PartialEq)]
struct Worst {
    label: String,
    /// Successful responses a second, as a share of those before the fault.
    kept: f64,
    /// Title of the load with that fault.
    load: String,
}

/// How much of its rate each product kept in the worst second of a fault; `None` where most loads have none.
pub(super) fn answer(run: &Run) -> Option<String> {
    let suite = &run.suite;
    let faulty = suite.loads.iter().filter(|load| !load.faults.is_empty()).count();
    if 2 * faulty <= suite.loads.len() {
        return None;
    }
    let entries = || suite.entries.iter().filter(|entry| entry.product != BASELINE);
    let of =
        |workloads: &[Workload]| -> Vec<Worst> { entries().filter_map(|entry| worst(run, workloads, entry)).collect() };
    let groups: Vec<(&str, Vec<Worst>)> = if suite.workloads.len() > MOST_SENTENCES {
        vec![("", of(&suite.workloads))]
    } else {
        suite.workloads.iter().map(|one| (one.title.as_str(), of(std::slice::from_ref(one)))).collect()
    };
    let groups: Vec<_> = groups.into_iter().filter(|(_, worst)| !worst.is_empty()).collect();
    let several = groups.len() > 1;
    let sentences: Vec<String> =
        groups.into_iter().map(|(title, worst)| sentence(if several { title } else { "" }, worst)).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The worst second of a product over these workloads; `None` where no fault was seen with a second before it.
fn worst(run: &Run, workloads: &[Workload], entry: &Entry) -> Option<Worst> {
    let mut least: Option<(f64, &str)> = None;
    for load in run.suite.loads.iter().filter(|load| !load.faults.is_empty()) {
        let places = workloads.iter().flat_map(|workload| run.places_of(&workload.name, &load.name));
        let trials = places.filter_map(|place| run.trials.get(place)).filter(|trial| trial.is_of(entry));
        for trial in displayed(trials) {
            let Some(result) = &trial.measurement.load else { continue };
            for (before, after) in trial.measurement.faults.iter().filter_map(|fault| Some(fault.outcome(result)?.rate))
            {
                let kept = (after / before).min(1.0);
                if before > 0.0 && least.is_none_or(|(least, _)| kept < least) {
                    least = Some((kept, &load.title));
                }
            }
        }
    }
    least.map(|(kept, load)| Worst { label: run.label_of(entry), kept, load: load.to_owned() })
}

/// "In the worst second of a fault, A keeps 99 % of its earlier rate and B 12 % (a member is killed)."
fn sentence(title: &str, mut worst: Vec<Worst>) -> String {
    worst.sort_by(|a, b| b.kept.total_cmp(&a.kept));
    let mut verb = " keeps";
    let mut of_what = " of its earlier rate";
    let each: Vec<String> = worst
        .iter()
        .map(|one| {
            let cause = if one.kept < ALL { format!(" ({})", one.load) } else { String::new() };
            let (verb, of_what) = (std::mem::take(&mut verb), std::mem::take(&mut of_what));
            format!("{}{verb} {}{of_what}{cause}", one.label, percent(one.kept))
        })
        .collect();
    let place = if title.is_empty() { "In".to_owned() } else { format!("\u{201c}{title}\u{201d}: in") };
    format!("{place} the worst second of a fault, {}.", list(&each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_who_kept_most_and_what_cost_the_others_most() {
        let worst = |label: &str, kept: f64| Worst { label: label.into(), kept, load: "a member is killed".into() };
        let says = "In the worst second of a fault, B keeps 99 % of its earlier rate and A 12 % (a member is killed).";
        assert_eq!(sentence("", vec![worst("A", 0.12), worst("B", 0.99)]), says);
        let says = "\u{201c}GET\u{201d}: in the worst second of a fault, A keeps 0 % of its earlier rate (a member is killed).";
        assert_eq!(sentence("GET", vec![worst("A", 0.0)]), says);
    }
}
