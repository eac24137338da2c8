//! What clients saw of routes that changed: a row for each product, workload and load, and a sentence.

use std::slice;

use serde::Serialize;
use weir_model::change::ChangeOutcome;
use weir_model::load::{ErrorKind, LoadResult};
use weir_model::metric::{Metric, Window};
use weir_model::record::Measurement;
use weir_model::suite::{Entry, Load, Workload};
use weir_model::text::{count, counted, human_us, list};
use weir_stats::median;

use super::FailedTrial;
use crate::run::Run;

/// How requests fail whose connection ends under them.
const CUT: [ErrorKind; 4] = [ErrorKind::Reset, ErrorKind::ClosedEarly, ErrorKind::Truncated, ErrorKind::StreamReset];

/// One product under one workload and load. Counts are sums over its trials, memory and processes those of the last.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ChangeRow {
    /// Name.
    pub workload: String,
    /// Name.
    pub load: String,
    /// Title, with the profile where the run has more than one.
    pub label: String,
    /// Changes made.
    pub changes: usize,
    /// Of these, skipped for a later one.
    pub skipped: usize,
    /// Of these, never seen in a response.
    pub lost: usize,
    /// From a change's beginning to the last response with an older number, seconds: the median and the longest; `None`: none was taken.
    pub taken_s: Option<(f64, f64)>,
    /// Requests that became due.
    pub due: u64,
    /// Requests without a successful response.
    pub failed: u64,
    /// Of these, those whose connection ended under them.
    pub cut: u64,
    /// Why they failed, by kind, with the words of each trial where there are any.
    pub why: String,
    /// Connections that the product closed, with a request in flight or without.
    pub closed: u64,
    /// The 99th percentile of latency over the whole window, the median of the trials, µs.
    pub p99_us: Option<f64>,
    /// Resident memory in the first second and in the last, bytes.
    pub memory_bytes: Option<(u64, u64)>,
    /// Processes in the same seconds.
    pub processes: Option<(u64, u64)>,
}

/// The rows of a run, in its suite's order; empty where no route changed.
pub(super) fn rows(run: &Run) -> Vec<ChangeRow> {
    let suite = &run.suite;
    let loads = || suite.loads.iter().filter(|load| load.change_every.is_some());
    let cases = suite.workloads.iter().flat_map(|workload| loads().map(move |load| (workload, load)));
    cases
        .flat_map(|(workload, load)| suite.entries.iter().filter_map(move |entry| row(run, workload, load, entry)))
        .collect()
}

fn row(run: &Run, workload: &Workload, load: &Load, entry: &Entry) -> Option<ChangeRow> {
    let measured: Vec<(&Measurement, &LoadResult)> = run
        .displayed_of(slice::from_ref(workload), load, entry)
        .into_iter()
        .filter_map(|trial| Some((&trial.measurement, trial.measurement.load.as_ref()?)))
        .collect();
    let mut row = ChangeRow {
        workload: workload.name.clone(),
        load: load.name.clone(),
        label: run.label_of(entry),
        ..ChangeRow::default()
    };
    let (mut taken, mut why) = (Vec::new(), Vec::new());
    for (measurement, load) in &measured {
        let changes = measurement.changes.as_ref()?;
        for outcome in changes.outcomes(load) {
            row.changes += 1;
            match outcome {
                ChangeOutcome::Taken(seconds) => taken.push(seconds),
                ChangeOutcome::Skipped(_) => row.skipped += 1,
                ChangeOutcome::Lost => row.lost += 1,
            }
        }
        row.due += load.window.due;
        row.closed += load.window.closed_by_peer;
        row.failed += load.window.error_count();
        row.cut += CUT.iter().filter_map(|kind| load.window.errors.get(kind)).sum::<u64>();
        why.extend((!load.window.errors.is_empty()).then(|| load.list_errors(&load.window.errors)));
        (row.memory_bytes, row.processes) = (changes.memory_bytes, changes.processes);
    }
    row.why = why.join("; ");
    row.taken_s = median(&taken).map(|median| (median, taken.iter().copied().fold(0.0, f64::max)));
    let p99 = |(_, load): &(&Measurement, &LoadResult)| Metric::P99.value(&Window::of_load(load));
    row.p99_us = median(&measured.iter().filter_map(p99).collect::<Vec<_>>());
    (!measured.is_empty()).then_some(row)
}

/// Which products failed requests while their routes changed, and how long until a change was everywhere; `None` where no route changed.
pub(super) fn answer(rows: &[ChangeRow], errors: &[FailedTrial]) -> Option<String> {
    let changes = rows.first()?.changes;
    let named = |row: &ChangeRow| {
        let several = rows.iter().any(|other| (&other.workload, &other.load) != (&row.workload, &row.load));
        if several { format!("{} ({} under {})", row.label, row.workload, row.load) } else { row.label.clone() }
    };
    let is_clean = |row: &&ChangeRow| row.failed == 0 && row.skipped + row.lost == 0;
    let clean: Vec<String> = rows.iter().filter(is_clean).map(named).collect();
    let mut words = Vec::new();
    if !clean.is_empty() {
        words.push(format!("{} failed no request over {}", list(&clean), counted(changes as u64, "change")));
    }
    for row in rows.iter().filter(|row| !is_clean(row)) {
        let mut what = vec![format!("failed {} of {}", count(row.failed), counted(row.due, "request"))];
        if row.skipped + row.lost > 0 {
            what.push(format!("did not show {} of {}", row.skipped + row.lost, counted(row.changes as u64, "change")));
        }
        words.push(format!("{} {}", named(row), list(&what)));
    }
    let of_changes = errors.iter().filter(|error| rows.iter().any(|row| row.load == error.load));
    words.extend(of_changes.map(|error| format!("{} has no measurement: {}", error.label, error.message)));
    let taken = rows.iter().filter_map(|row| Some((row, row.taken_s?.0)));
    let taken: Vec<String> =
        taken.map(|(row, median)| format!("{} ({})", human_us(median * 1e6), named(row))).collect();
    if taken.is_empty() {
        return Some(format!("{}.", words.join("; ")));
    }
    Some(format!("{}. Until every response showed a change it took {} in the median.", words.join("; "), list(&taken)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_tells_who_failed_requests_and_how_long_changes_took() {
        let row = |label: &str, taken_s| ChangeRow {
            load: "changing".to_owned(),
            label: label.to_owned(),
            changes: 20,
            taken_s,
            due: 12_345,
            ..ChangeRow::default()
        };
        let (a, b) = (row("A", Some((0.0123, 0.1))), row("B", Some((0.25, 0.5))));
        let c = ChangeRow { skipped: 15, failed: 7, ..row("C", None) };
        let words = "A and B failed no request over 20 changes. Until every response showed a change it took 12.3 ms (A) and 250 ms (B) \
                     in the median.";
        assert_eq!(answer(&[a.clone(), b], &[]).as_deref(), Some(words));
        let died = |load: &str| FailedTrial {
            trial: "1".into(),
            block: 1,
            label: "D".into(),
            workload: String::new(),
            load: load.to_owned(),
            stage: "load".into(),
            message: "D ended".into(),
            evidence: String::new(),
            remedy: String::new(),
        };
        let words = "C failed 7 of 12,345 requests and did not show 15 of 20 changes; D has no measurement: D ended.";
        assert_eq!(answer(std::slice::from_ref(&c), &[died("changing"), died("still")]).as_deref(), Some(words));
        let other = ChangeRow { load: "other".to_owned(), ..a.clone() };
        let words = answer(&[a, other], &[]).expect("a sentence");
        assert!(words.starts_with("A ( under changing) and A ( under other) failed no request"), "{words}");
        assert_eq!(answer(&[], &[died("changing")]), None);
    }
}
