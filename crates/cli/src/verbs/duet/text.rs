//! A duet in words: what is asked, and what came of it. Called by `verbs::duet`.

use std::fmt::Write as _;

use weir_lab::duet::judged::{Change, Verdict};
use weir_lab::duet::{Asked, Ended, Outcome};
use weir_model::metric::{Metric, Quantity};
use weir_model::suite::{LoadKind, RateSpec, Suite};
use weir_model::text::{counted, human_rate, human_us, list, percent};
use weir_report::tables::markdown::escape;

use crate::out::columns;
use crate::progress::minutes_s;

/// What is asked, before it begins.
pub fn question(asked: &Asked, suite: &Suite) -> String {
    let (workload, load) = (&suite.workloads[0], &suite.loads[0]);
    let how = match &load.kind {
        LoadKind::Open { rate: RateSpec::Fixed(rate), .. } => format!("at {}", human_rate(*rate)),
        _ => "as fast as responses come".to_owned(),
    };
    let [a, b] = &asked.labels;
    format!(
        "{a} (A) and {b} (B): {}, {how} over {}, until {} is found or excluded, at most {}",
        workload.title,
        counted(u64::from(load.connections), "connection"),
        percent(asked.find),
        minutes_s(asked.budget_s)
    )
}

/// The table and how it ended.
pub fn result(outcome: &Outcome) -> String {
    let [a, b] = &outcome.labels;
    let mut lines = vec![format!("A {a}   B {b}")];
    let indented = |[name, rest @ ..]: [String; 5]| [vec![format!("  {name}")], rest.into()].concat();
    let rows: Vec<Vec<String>> = outcome.changes.iter().map(|change| indented(row(change))).collect();
    if !rows.is_empty() {
        lines.push(columns("lrrll", usize::MAX, &rows));
    }
    lines.extend(ending(outcome));
    lines.push(format!("files: {}", outcome.folder.display()));
    lines.join("\n")
}

/// The same as GitHub's Markdown, for a pull request.
pub fn markdown(outcome: &Outcome) -> String {
    let [a, b] = outcome.labels.each_ref().map(|label| escape(label));
    let mut text = format!("### {a} (A) and {b} (B)\n\n");
    if !outcome.changes.is_empty() {
        text.push_str("| number | A | B | B to A | |\n|---|---:|---:|---:|---|\n");
        for change in &outcome.changes {
            let _ = writeln!(text, "| {} |", row(change).map(|cell| escape(&cell)).join(" | "));
        }
        text.push('\n');
    }
    ending(outcome).iter().for_each(|line| text.push_str(&format!("- {}\n", escape(line))));
    text
}

/// How it ended, and what spoils its numbers.
fn ending(outcome: &Outcome) -> Vec<String> {
    let mut lines = vec![ended(outcome)];
    lines.extend(omitted(outcome));
    let seen: Vec<String> =
        outcome.findings.iter().map(|(check, [a, b])| format!("{check} in {a} slices of A and {b} of B")).collect();
    if !seen.is_empty() {
        lines.push(format!("suspect: {}", seen.join("; ")));
    }
    lines.extend(outcome.error.iter().map(|error| format!("{}: {}", error.message, error.evidence)));
    lines
}

/// Name, A, B, B to A, and what that says.
fn row(change: &Change) -> [String; 5] {
    let said = match change.verdict {
        Verdict::Sure if change.worse() => "sure: worse",
        Verdict::Sure => "sure: better",
        Verdict::Same => "sure: no such difference",
        Verdict::Open => "open",
    };
    let (a, b) = (number(change.metric, change.a), number(change.metric, change.b));
    [change.metric.compared_name().to_owned(), a, b, ratio(change), said.to_owned()]
}

fn number(metric: Metric, value: f64) -> String {
    match metric.entry().quantity {
        Quantity::Rate => human_rate(value),
        Quantity::CpuTime => format!("{value:.2} us"),
        _ => human_us(value),
    }
}

/// `+3.1 % [+1.2, +5.0]`.
fn ratio(change: &Change) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    let ratio = &change.ratio;
    match ratio.high.is_finite() {
        true => format!("{} % [{}, {}]", percent(ratio.value), percent(ratio.low), percent(ratio.high)),
        false => format!("{} % [not known yet]", percent(ratio.value)),
    }
}

/// `cpu +3.1 % [+1.2, +5.0]`.
pub fn change(change: &Change) -> String {
    format!("{} {}", change.metric.compared_name(), ratio(change))
}

fn ended(outcome: &Outcome) -> String {
    let why = match outcome.ended {
        Some(Ended::Sure) => "the difference is sure".to_owned(),
        Some(Ended::Same) => format!("a difference of {} or more is excluded", percent(outcome.find)),
        Some(Ended::Budget) => "the budget ended".to_owned(),
        Some(Ended::Failed) => "a product failed".to_owned(),
        Some(Ended::Stopped) | None => "stopped".to_owned(),
    };
    let pairs = counted(outcome.pairs as u64, "pair");
    let starts = counted(u64::from(outcome.starts), "start");
    format!("ended after {}: {why} ({pairs} of slices, {starts} of both)", minutes_s(outcome.took_s))
}

/// Which pairs do not count.
pub fn omitted(outcome: &Outcome) -> Option<String> {
    let each: Vec<String> = outcome.omitted.iter().map(|(check, n)| format!("{n} for {check}")).collect();
    (!each.is_empty()).then(|| format!("pairs left out: {}", list(&each)))
}
