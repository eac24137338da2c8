//! Says which protocol the products spoke with the origin, according to the counters of the origin. Called by
//! `section`.

use weir_model::text::{grouped, list, unique};

use crate::run::{BASELINE, Run, Trial};

/// The rest of a sentence, such as `products speak plain HTTP/1.1 with the origin`; empty when no trial has counters.
pub(super) fn spoken(run: &Run, trials: &[&Trial]) -> String {
    let counted = trials.iter().filter(|trial| trial.counts() && trial.measurement.case.product != BASELINE);
    let mut seen: Vec<(String, String)> =
        counted.flat_map(|trial| of_trial(trial).into_iter().map(|way| (way, run.label_of(&trial.entry())))).collect();
    seen.sort();
    seen.dedup();
    let everybody = unique(seen.iter().map(|(_, label)| label)).len();
    // The protocols, and the products that spoke them.
    let ways = grouped(seen.iter().map(|(way, label)| (way, label)));
    let Some((most, by_most)) = ways.iter().max_by_key(|(_, labels)| labels.len()) else { return String::new() };
    if ways.len() == 1 {
        return format!("products speak {most} with the origin");
    }
    let others = ways.iter().filter(|(way, _)| way != most);
    let others: Vec<String> = others.map(|(way, labels)| format!("{} {way}", names(labels, everybody))).collect();
    format!("with the origin, by its counters, {}; {} {most}", list(&others), names(by_most, everybody))
}

/// "a and b speak", or "all speak".
fn names(labels: &[&String], all: usize) -> String {
    if labels.len() == all {
        return "all speak".to_string();
    }
    let verb = if labels.len() == 1 { "speaks" } else { "speak" };
    format!("{} {verb}", list(labels))
}

/// `plain HTTP/1.1`, `HTTP/2 over TLS`: one for each version that a thousandth of the requests came in, since a probe of a
/// product's own is no way of speaking.
fn of_trial(trial: &Trial) -> Vec<String> {
    let Some(counters) = &trial.measurement.origin else { return Vec::new() };
    let secret = counters.tls.handshakes > 0 || !counters.tls.versions.is_empty();
    let all: u64 = counters.versions.values().sum();
    let spoken = counters.versions.iter().filter(|(_, n)| **n * 1_000 >= all);
    let way = |version: &String| if secret { format!("{version} over TLS") } else { format!("plain {version}") };
    spoken.map(|(version, _)| way(version)).collect()
}
