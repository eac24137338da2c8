//! The answer to the suite's question, in a sentence. Knows the summary, nothing of pages.

use super::{Metric, Row, Section, Summary};
use crate::number::{Unit, count, short};

/// One sentence about the first section that has a ranked product.
pub(super) fn answer(summary: &Summary) -> String {
    let Some(section) = headline(summary) else {
        return "No product has a measurement that may be ranked.".to_string();
    };
    let leaders = leaders(section);
    let metric = section.ranked_by;
    let place = if summary.sections.len() > 1 { format!("On {}: ", section.slug_words()) } else { String::new() };
    match leaders.as_slice() {
        [] => "No product has a measurement that may be ranked.".to_string(),
        [only] if section.rows.iter().filter(|row| row.rank.is_some()).count() == 1 => {
            format!("{place}{} {}.", only.label, does(only, section))
        }
        [best] if section.blocks < 2 => {
            format!("{place}seen once, {} {} {}.", best.label, superlative(metric), quantity(best, section))
        }
        [best] => {
            let next = section.rows.iter().filter(|row| row.rank.is_some()).nth(1);
            let by = next.and_then(|next| next.ratio_to_best.map(|ratio| versus(next, ratio.value, metric)));
            format!(
                "{place}{} {} {}{}.",
                best.label,
                superlative(metric),
                quantity(best, section),
                by.unwrap_or_default()
            )
        }
        many => {
            let names: Vec<&str> = many.iter().map(|row| row.label.as_str()).collect();
            format!(
                "{place}{} share the first rank, {} to {}: this run cannot tell them apart.",
                join(&names),
                extreme(many, section, f64::min),
                extreme_with_unit(many, section)
            )
        }
    }
}

/// What else a reader of the answer should know.
pub(super) fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(planned) = summary.trials_planned.filter(|planned| summary.trials < *planned) {
        remarks.push(format!(
            "The run is not finished: {} of {} trials have ended.",
            count(summary.trials as u64),
            count(planned as u64)
        ));
    }
    let head = headline(summary);
    let same = |section: &Section| head.is_some_and(|head| head.slug() == section.slug());
    for section in summary.sections.iter().filter(|section| !same(section)) {
        let leaders = leaders(section);
        let names: Vec<&str> = leaders.iter().map(|row| row.label.as_str()).collect();
        let Some(best) = leaders.first() else { continue };
        let shared = if names.len() > 1 { "share the first rank" } else { "is first" };
        remarks.push(format!(
            "On {}: {} {shared}, {}{}.",
            section.slug_words(),
            join(&names),
            if names.len() > 1 { "best " } else { "" },
            quantity(best, section)
        ));
    }
    remarks.extend(summary.left_out.iter().map(|sentence| format!("{sentence}.")));
    remarks.extend(caches(summary));
    let suspects: usize = summary
        .sections
        .iter()
        .flat_map(Section::all_rows)
        .filter(|row| !row.answers_itself)
        .map(|row| row.verdicts.suspect)
        .sum();
    let invalid: usize = summary.sections.iter().map(|section| section.invalid).sum();
    for (n, what) in [
        (suspects, "suspect: ranked, marked with *, and explained under the table"),
        (invalid, "invalid: shown, not ranked"),
        (summary.errors.len(), "failed: no number, listed under errors"),
    ] {
        if n > 0 {
            let trials = if n == 1 { "trial is" } else { "trials are" };
            remarks.push(
                format!("{} {trials} {what}.", count(n as u64))
                    .replace("is failed", "failed")
                    .replace("are failed", "failed"),
            );
        }
    }
    remarks
}

/// The first section that ranks somebody: capacity before latency, in the suite's order.
pub(crate) fn headline(summary: &Summary) -> Option<&Section> {
    let ranks = |section: &&Section| section.rows.iter().any(|row| row.rank.is_some());
    let closed = summary.sections.iter().find(|section| !section.open && ranks(section));
    closed.or_else(|| summary.sections.iter().find(ranks))
}

impl Section {
    /// "plain under max", for sentences.
    pub fn slug_words(&self) -> String {
        format!("{} under {}", self.workload, self.load)
    }
}

fn leaders(section: &Section) -> Vec<&Row> {
    section.rows.iter().filter(|row| row.rank.is_some_and(|(low, _)| low == 1)).collect()
}

fn superlative(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "carries most:",
        Metric::P99 => "has the lowest 99th percentile of latency:",
    }
}

fn does(row: &Row, section: &Section) -> String {
    match section.ranked_by {
        Metric::Rate => format!("carries {}", quantity(row, section)),
        Metric::P99 => format!("answers 99 % of requests within {}", quantity(row, section)),
    }
}

/// "45,100 requests/s (44,200-46,000)".
fn quantity(row: &Row, section: &Section) -> String {
    let Some(estimate) = row.of(section.ranked_by) else { return "nothing".to_string() };
    let unit = unit_of(section, estimate.value);
    let value = short(estimate.value / unit.size);
    if estimate.n < 2 {
        return format!("{value} {}", unit.name);
    }
    format!("{value} {} ({}\u{2013}{})", unit.name, short(estimate.low / unit.size), short(estimate.high / unit.size))
}

fn unit_of(section: &Section, value: f64) -> Unit {
    match section.ranked_by {
        Metric::Rate => Unit::PER_SECOND,
        Metric::P99 => Unit::for_time(value),
    }
}

fn versus(next: &Row, ratio_of_next: f64, metric: Metric) -> String {
    let times = short(if metric.higher_is_better() { 1.0 / ratio_of_next } else { ratio_of_next });
    match metric {
        Metric::Rate => format!(", {times} times the next, {}", next.label),
        Metric::P99 => format!("; the next, {}, has {times} times that", next.label),
    }
}

fn extreme(rows: &[&Row], section: &Section, pick: fn(f64, f64) -> f64) -> String {
    let values = rows.iter().filter_map(|row| row.of(section.ranked_by)).map(|estimate| estimate.value);
    let unit = unit_of(section, smallest(rows, section));
    values.reduce(pick).map(|value| short(value / unit.size)).unwrap_or_default()
}

fn extreme_with_unit(rows: &[&Row], section: &Section) -> String {
    format!("{} {}", extreme(rows, section, f64::max), unit_of(section, smallest(rows, section)).name)
}

fn smallest(rows: &[&Row], section: &Section) -> f64 {
    rows.iter().filter_map(|row| row.of(section.ranked_by)).map(|e| e.value).fold(f64::INFINITY, f64::min)
}

/// Products that answered requests which they did not pass on.
fn caches(summary: &Summary) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in summary.sections.iter().flat_map(Section::all_rows).filter(|row| row.answers_itself) {
        if !names.contains(&row.label.as_str()) {
            names.push(&row.label);
        }
    }
    (!names.is_empty()).then(|| {
        format!("{} answered from a cache: shown, not ranked with products that pass every request on.", join(&names))
    })
}

/// "a", "a and b", "a, b and c".
fn join(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
