//! Builds the sentences of a history: its result, its alarms and its remarks.

use weir_model::text::{counted, list, percent, significant, unique};
use weir_report::run::BASELINE;
use weir_stats::FEWEST_RUNS;

use super::{Change, FailOn, History, Order, Series, SkippedRun, Verdict};
use crate::compared_run::divisor;

/// The number of changes that the answer names; the others are counted.
const NAMED: usize = 3;

/// Reasons that are said of runs that are left out or skipped; the others are counted.
const REASONS: usize = 5;

/// `alder tuned, tiny, capacity`.
pub(super) fn case(series: &Series) -> String {
    format!("{}, {}, {}", series.label, series.case.workload, series.case.load)
}

/// `alder tuned, tiny, capacity: cpu 5.1 % more from 20260102-101500-quick on`.
pub(super) fn change(series: &Series, change: &Change) -> String {
    let ratio = change.after / change.before;
    let than = series.metric.entry().compared.map_or("", |compared| compared.comparatives[usize::from(ratio > 1.0)]);
    let size = percent((ratio - 1.0).abs());
    let name = series.metric.compared_name();
    let metric = if series.case.load == name { String::new() } else { format!("{name} ") };
    format!("{}: {metric}{size} {than} from {} on", case(series), change.run)
}

/// `0.0004`, `below 0.0001`.
pub(super) fn p(p: f64) -> String {
    if p < 1e-4 { "below 0.0001".to_owned() } else { significant(p, 1) }
}

pub(super) fn alarms(history: &History) -> Vec<String> {
    let counts = |(_, change): &&(&Series, &Change)| {
        let asked = match history.options.fail_on {
            FailOn::Worse => change.worse,
            FailOn::Any => true,
            FailOn::Never => false,
        };
        asked && change.newest && change.verdict == Verdict::Changed
    };
    let changes = history.changes();
    changes.iter().filter(counts).map(|(series, one)| change(series, one)).collect()
}

/// The result, one sentence.
pub(super) fn answer(history: &History) -> String {
    if history.claims.claims == 0 {
        return format!(
            "Nothing can be claimed: no number of a case has {FEWEST_RUNS} runs on one machine, which is the least."
        );
    }
    let changes: Vec<(&Series, &Change)> =
        history.changes().into_iter().filter(|(_, change)| change.verdict == Verdict::Changed).collect();
    let numbers = counted(history.claims.claims as u64, "number");
    match changes.as_slice() {
        [] => format!("No change found in {numbers}."),
        changes => {
            let named: Vec<String> = changes.iter().take(NAMED).map(|(series, one)| change(series, one)).collect();
            let more = match changes.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            format!("{} in {numbers}: {}{more}.", counted(changes.len() as u64, "change"), named.join("; "))
        }
    }
}

/// What a reader must know besides the answer.
pub(super) fn remarks(history: &History) -> Vec<String> {
    let mut remarks = Vec::new();
    let machines = &history.machines;
    if machines.len() > 1 {
        let each = machines.iter().map(|machine| format!("{}: {}", machine.label, runs(machine.runs.len())));
        let each: Vec<String> = each.collect();
        remarks.push(format!(
            "{} machines, which are not compared with each other: {}.",
            machines.len(),
            each.join("; ")
        ));
    }
    if history.options.any_host {
        remarks.push("Machines that differ in nothing but their names are taken for one (--any-host).".to_owned());
    }
    let apart = unique(history.series.iter().filter_map(|series| {
        let why = series.apart.as_ref()?;
        Some(format!("{} is apart from {} on: {why}", case(series), series.points.first()?.run))
    }));
    remarks.extend(apart.into_iter().map(|sentence| format!("{sentence}.")));
    let claims = || history.series.iter().filter(|series| !series.of_machine && !series.points.is_empty());
    let divided = claims().filter(|series| series.divided).count();
    let as_measured = claims()
        .filter(|series| !series.divided && divisor(series.metric, &history.options.reference).is_some())
        .count();
    let reference = reference(&history.options.reference);
    if divided > 0 {
        let other_metrics = match history.options.reference.as_str() {
            BASELINE => " (CPU by the origin's CPU per response, memory by nothing)",
            _ => "",
        };
        remarks.push(format!(
            "Each run's numbers were divided by those of {reference} in the same block, and multiplied by its median over all \
             runs, because machines drift{other_metrics}; --absolute takes them as measured."
        ));
    }
    if as_measured > 0 {
        let absent = format!("{reference} is not in half of the runs");
        let why = if history.options.absolute { "--absolute" } else { &absent };
        remarks.push(format!(
            "{} as measured ({why}): what the machine did then looks like a change of the product.",
            if divided > 0 { "Some numbers are" } else { "Numbers are" }
        ));
    }
    let short: Vec<&Series> = claims().filter(|series| series.points.len() < FEWEST_RUNS).collect();
    if !short.is_empty() && history.claims.claims > 0 {
        let cases = unique(short.iter().map(|series| format!("{} on {}", case(series), series.machine)));
        let cases = some(&cases);
        remarks.push(format!("Fewer than {FEWEST_RUNS} runs, of which nothing can be claimed: {cases}."));
    }
    let unclear = claims().flat_map(|series| &series.changes).filter(|one| one.verdict == Verdict::Unclear).count();
    if unclear > 0 {
        remarks.push(format!(
            "{} of times when divided, and not as measured, which {reference} alone may explain: unclear.",
            counted(unclear as u64, "change")
        ));
    }
    remarks.extend(without(history));
    remarks.extend(skipped(&history.skipped).map(|why| format!("Skipped: {why}.")));
    remarks
}

/// `the direct path`, or the name of the product.
pub(super) fn reference(product: &str) -> &str {
    if product == BASELINE { "the direct path" } else { product }
}

/// Runs without a number, by the reason.
fn without(history: &History) -> Vec<String> {
    let all =
        history.series.iter().filter(|series| !series.of_machine).flat_map(|series| {
            series.without.iter().map(move |left| ((case(series), left.why.clone()), left.run.clone()))
        });
    let reasons = weir_model::text::grouped(all).into_iter();
    let sentences: Vec<String> =
        reasons.map(|((case, why), names)| format!("{case}: {} left out: {why}.", runs(unique(names).len()))).collect();
    match sentences.len() {
        n if n > REASONS => {
            let rest = counted((n - REASONS) as u64, "more case");
            let more = format!("{rest} with runs that are left out; --json has all.");
            sentences.into_iter().take(REASONS).chain([more]).collect()
        }
        _ => sentences,
    }
}

/// Runs that are not used, by the reason; `None` when there is none.
fn skipped(skipped: &[SkippedRun]) -> Option<String> {
    let names = skipped.iter().map(|one| {
        let name = one.folder.file_name().unwrap_or(one.folder.as_os_str());
        (one.why.clone(), name.to_string_lossy().into_owned())
    });
    let reasons: Vec<String> = weir_model::text::grouped(names)
        .into_iter()
        .map(|(why, names)| format!("{} ({why})", if names.len() > 2 { runs(names.len()) } else { list(&names) }))
        .collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The message when no run can be used.
pub(super) fn none_left(all: &[SkippedRun]) -> String {
    format!("no run can be used: {}", skipped(all).unwrap_or_default())
}

fn some(names: &[String]) -> String {
    match names.len() {
        n if n > REASONS => format!("{} and {} more", names[..REASONS].join("; "), n - REASONS),
        _ => names.join("; "),
    }
}

pub(super) fn runs(n: usize) -> String {
    counted(n as u64, "run")
}

/// `by date`, for a heading.
pub(super) fn order(by: Order) -> &'static str {
    match by {
        Order::Date => "date",
        Order::Version => "the product's version",
        Order::Weir => "weir's version",
        Order::Kernel => "kernel",
    }
}
