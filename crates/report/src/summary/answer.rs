//! Writes the sentence that answers the question of the suite, and the remarks beside it. Called by `summary`.

use weir_stats::Estimate;

use weir_model::text::{count, counted, extremes, grouped, list, short, unique};

use super::{FailedTrial, Metric, Overall, OverallRow, Section, Summary};

/// One sentence: who carries most, and who answers soonest at the rate that all were offered.
pub(super) fn answer(summary: &Summary) -> String {
    let Some(overall) = &summary.overall else { return nothing(summary) };
    let place = match overall.workloads.len() {
        0 | 1 => String::new(),
        n => format!("Over {n} workloads (geometric means), "),
    };
    let sentence = format!("{place}{}{}.", first(overall), soonest(overall));
    // The names of products are written as their makers do: only what was put before them begins a sentence.
    match sentence.strip_prefix("seen once") {
        Some(rest) => format!("Seen once{rest}"),
        None => sentence,
    }
}

/// That nobody is ranked, and the first failure, which is likely to be the cause.
fn nothing(summary: &Summary) -> String {
    let none = "No product has a measurement that may be ranked";
    let Some(FailedTrial { label, workload, load, stage, message, .. }) = summary.errors.first() else {
        return format!("{none}.");
    };
    format!("{none}; {label} on {workload} under {load} failed at {stage}: {message}.")
}

/// Which product leads by the ranked metric.
fn first(overall: &Overall) -> String {
    let ranked: Vec<&OverallRow> = overall.rows.iter().filter(|row| row.rank.is_some()).collect();
    let leaders: Vec<&OverallRow> =
        ranked.iter().copied().filter(|row| row.rank.is_some_and(|(low, _)| low == 1)).collect();
    let metric = overall.ranked_by;
    match leaders.as_slice() {
        [] => "no product has a measurement that may be ranked".to_string(),
        [only] if ranked.len() == 1 => format!("{} {}", only.label, does(only, metric)),
        [best, ..] if overall.blocks < 2 => {
            format!("seen once, {} {} {}", best.label, superlative(metric), quantity(best, metric))
        }
        [best] => {
            let by = ranked.get(1).and_then(|next| Some(versus(next, next.ratio_to_best?.value, metric)));
            format!("{} {} {}{}", best.label, superlative(metric), quantity(best, metric), by.unwrap_or_default())
        }
        many => {
            format!("{} share the first rank, {}: this run cannot tell them apart", names(many, 5), range(many, metric))
        }
    }
}

/// "; at a rate offered alike to all, haproxy has the lowest p99, 0.61 ms". Products whose intervals overlap with
/// the lowest one share the place.
fn soonest(overall: &Overall) -> String {
    let ranked = overall.rows.iter().filter(|row| row.rank.is_some());
    let mut rows: Vec<(&OverallRow, Estimate)> = ranked.filter_map(|row| Some((row, row.of(Metric::P99)?))).collect();
    rows.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let Some((least, estimate)) = rows.first().filter(|_| overall.ranked_by == Metric::Rate && overall.same_rate)
    else {
        return String::new();
    };
    let alike: Vec<&OverallRow> =
        rows.iter().filter(|(_, other)| other.low <= estimate.high).map(|(row, _)| *row).collect();
    let p99 = |row| quantity(row, Metric::P99);
    match alike.as_slice() {
        _ if rows.len() < 2 => format!("; its p99 at a given rate is {}", p99(least)),
        [only] => format!("; at a rate offered alike to all, {} has the lowest p99: {}", only.label, p99(only)),
        many => {
            let (names, range) = (names(many, 4), range(many, Metric::P99));
            format!("; at a rate offered alike to all, {names} share the lowest p99: {range}")
        }
    }
}

/// Further remarks beside the answer.
pub(super) fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(first) = summary.broken.first() {
        let files = counted(summary.broken.len() as u64, "file");
        remarks
            .push(format!("{files} of the run cannot be read or not trusted, such as {}: {}.", first.file, first.why));
    }
    if !summary.hosts.is_empty() {
        remarks.push(format!("{}.", summary.hosts));
    }
    if !summary.shown.is_empty() {
        remarks.push(format!("A part of the run: {}.", summary.shown));
    }
    if let Some(planned) = summary.trials_planned.filter(|planned| summary.trials < *planned) {
        let (trials, planned) = (count(summary.trials as u64), count(planned as u64));
        remarks.push(match summary.broken.is_empty() {
            true => format!("The run is not finished: {trials} of {planned} trials have ended."),
            false => format!("{trials} of {planned} trials are shown."),
        });
    }
    if let Some(overall) = summary.overall.as_ref().filter(|overall| !overall.without.is_empty()) {
        remarks.push(format!(
            "The means leave out {}, in which fewer than half of the products have a number.",
            some(&overall.without)
        ));
    }
    for row in summary.overall.iter().flat_map(|overall| &overall.rows).filter(|row| !row.missing.is_empty()) {
        remarks.push(format!("{} is not ranked: it has no number that counts in {}.", row.label, some(&row.missing)));
    }
    remarks.extend(summary.skipped.iter().map(|sentence| format!("{sentence}.")));
    remarks.extend(caches(summary));
    remarks.extend(not_comparable(summary));
    remarks.extend(summary.outdated_words());
    for (n, what) in [
        (summary.suspect(), "suspect: ranked, marked with *, and explained under the table"),
        (summary.invalid(), "invalid: shown, not ranked"),
    ] {
        if n > 0 {
            remarks.push(format!("{} {} {what}.", counted(n as u64, "trial"), if n == 1 { "is" } else { "are" }));
        }
    }
    if !summary.errors.is_empty() {
        let failed = counted(summary.errors.len() as u64, "trial");
        remarks.push(format!("{failed} failed: no number, listed under errors."));
    }
    remarks
}

impl Section {
    /// "plain under max", for sentences.
    pub fn slug_words(&self) -> String {
        format!("{} under {}", self.workload, self.load)
    }
}

fn superlative(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "carries most:",
        _ => "has the lowest 99th percentile of latency:",
    }
}

fn does(row: &OverallRow, metric: Metric) -> String {
    match metric {
        Metric::Rate => format!("carries {}", quantity(row, metric)),
        _ => format!("answers 99 % of requests within {}", quantity(row, metric)),
    }
}

/// "45,100 requests/s (44,200-46,000)".
fn quantity(row: &OverallRow, metric: Metric) -> String {
    let Some(estimate) = row.of(metric) else { return "nothing".to_string() };
    let unit = metric.entry().quantity.unit(estimate.value);
    let value = short(estimate.value / unit.size);
    if estimate.n < 2 {
        return format!("{value} {}", unit.name);
    }
    format!("{value} {} ({}\u{2013}{})", unit.name, short(estimate.low / unit.size), short(estimate.high / unit.size))
}

fn versus(next: &OverallRow, ratio_of_next: f64, metric: Metric) -> String {
    let times = short(if metric.higher_is_better() { 1.0 / ratio_of_next } else { ratio_of_next });
    match metric {
        Metric::Rate => format!(", {times} times the next, {}", next.label),
        _ => format!("; the next, {}, has {times} times that", next.label),
    }
}

/// The products, or how many when they are more than `most`.
fn names(rows: &[&OverallRow], most: usize) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    if rows.len() > most { format!("{} products", rows.len()) } else { list(&names) }
}

/// "928 to 1,020 ms".
fn range(rows: &[&OverallRow], metric: Metric) -> String {
    let values = rows.iter().filter_map(|row| row.of(metric)).map(|estimate| estimate.value);
    let (least, most) = extremes(values).unwrap_or_default();
    let unit = metric.entry().quantity.unit(least);
    format!("{} to {} {}", short(least / unit.size), short(most / unit.size), unit.name)
}

/// The first few, and how many more.
fn some(names: &[String]) -> String {
    match names {
        [a, b, c, _, rest @ ..] => format!("{a}, {b}, {c} and {} more", rest.len() + 1),
        few => list(few),
    }
}

/// Products that did other work than those that are ranked, by what it was.
fn not_comparable(summary: &Summary) -> Vec<String> {
    let rows = summary.sections.iter().flat_map(|section| &section.rows);
    let by_reason = grouped(rows.filter_map(|row| Some((row.not_comparable?, row.label.as_str()))));
    let sentence = |(why, names): (&str, Vec<&str>)| {
        format!("{} {why}: shown, not ranked with them.", list(&unique(names.into_iter())))
    };
    by_reason.into_iter().map(sentence).collect()
}

/// Products that answered requests which they did not pass on.
fn caches(summary: &Summary) -> Option<String> {
    let rows = summary.sections.iter().flat_map(Section::all_rows).filter(|row| row.answers_itself);
    let names = unique(rows.map(|row| row.label.as_str()));
    (!names.is_empty()).then(|| {
        format!("{} answered from a cache: shown, not ranked with products that pass every request on.", list(&names))
    })
}
