//! Says which protocol the products spoke with the origin, according to the counters of the origin. Called by
//! `section`.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::text::list;

use crate::run::{BASELINE, Run, Trial};

/// The rest of a sentence, such as `products speak plain HTTP/1.1 with the origin`; empty when no trial has counters.
pub(super) fn spoken(run: &Run, trials: &[&Trial]) -> String {
    // The protocols, and the products that spoke them.
    let mut ways: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.counts() && trial.measurement.case.product != BASELINE) {
        let label = run.label_of(&trial.entry());
        for way in of_trial(trial) {
            let labels = ways.entry(way).or_default();
            if !labels.contains(&label) {
                labels.push(label.clone());
            }
        }
    }
    let everybody: BTreeSet<&String> = ways.values().flatten().collect();
    let most = ways.iter().max_by_key(|(_, labels)| labels.len()).map(|(way, _)| way.clone());
    match (ways.len(), most) {
        (_, None) => String::new(),
        (1, Some(way)) => format!("products speak {way} with the origin"),
        (_, Some(most)) => {
            let others: Vec<String> = (ways.iter())
                .filter(|(way, _)| **way != most)
                .map(|(way, labels)| format!("{} {way}", names(labels, everybody.len())))
                .collect();
            let rest = ways.get(&most).map(|labels| names(labels, everybody.len())).unwrap_or_default();
            format!("with the origin, by its counters, {}; {rest} {most}", list(&others))
        }
    }
}

/// "a and b speak", or "all speak".
fn names(labels: &[String], all: usize) -> String {
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
