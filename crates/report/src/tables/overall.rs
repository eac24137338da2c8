//! Builds the table of the first screen, for readers who have to choose a product.
//! Called by `page`, `markdown` and `terminal`.

use weir_model::metric::Quantity;
use weir_model::text::{Unit, least, short};

use super::cells::{add_product, add_rank, errors_cell, metric_cell, row_kind, usage_cell, verdict_words};
use super::{Column, Table, TableOf};
use crate::summary::{Metric, Overall, OverallRow, Summary};

/// Each product over all workloads; `None` when nothing may be ranked.
pub fn overall(summary: &Summary) -> Option<Table> {
    let overall = summary.overall.as_ref()?;
    let at =
        if overall.same_rate { "at the rate offered alike to all" } else { "under the load that asks for the rate" };
    // Latencies share a unit, which the median decides.
    let median = least(overall.all_rows().filter_map(|row| row.of(Metric::P50)).map(|p50| p50.value));
    let mut table = TableOf::<OverallRow>::new();
    add_rank(&mut table);
    add_product(&mut table, overall.all_rows().any(|row| row.label != row.title), 9);
    for metric in Metric::ALL.iter().copied() {
        let (entry, unit) = (metric.entry(), metric.entry().quantity.unit(median));
        let Some(order) = entry.columns.overall else { continue };
        let at = if entry.quantity == Quantity::Latency { format!(" {at}.") } else { ".".to_string() };
        let help = format!("{}{at}", entry.help.trim_end_matches('.'));
        // One interval in a terminal and a README; the page has them all.
        let column = Column::number(entry.title, unit.name).with_details_if(metric == overall.ranked_by);
        table.add(column.dispensable(order).help(&help), move |row| metric_cell(row, metric, unit));
    }
    let measure = if overall.rows.iter().all(|row| row.proportional) { "proportional" } else { "resident" };
    let help = format!("Largest {measure} set of the proxy's processes by the client's connections.");
    let memory = Column::number("Memory", "KiB/connection").dispensable(5).help(&help);
    table.add(memory, |row| usage_cell(row, row.memory, Unit::KIBIBYTES));
    let errors = Column::number("Errors", "requests").dispensable(1).help("Requests without a right answer.");
    table.add(errors, |row| errors_cell(row, false));
    let trials = Column::text("Trials").dispensable(3);
    table.add(trials.help("What the audit says of the trials that the numbers come from."), |row| {
        verdict_words(row.verdicts)
    });
    let table = table.table("overall", title(overall), overall.all_rows(), |row| row_kind(row));
    Some(table.with_notes(notes(summary, overall, measure)))
}

fn title(overall: &Overall) -> String {
    match overall.workloads.as_slice() {
        [] => "Each product".to_string(),
        [only] => format!("Each product on {only}"),
        several => format!("Each product over {} workloads: geometric means", several.len()),
    }
}

/// How each column was obtained, in words: what a pointer shows over a header is lost in print.
fn notes(summary: &Summary, overall: &Overall, memory: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if overall.workloads.len() > 1 {
        notes.push(format!(
            "Each number is the geometric mean over {}, taken within each block.",
            overall.workloads.join(", ")
        ));
    }
    notes.push(intervals(overall));
    let rate_from = headings(summary, &overall.rate_from);
    let latency_from = headings(summary, &overall.latency_from);
    let offered = match overall.offered_rate {
        Some((least, most)) if most > least * 1.001 => format!(" ({} to {} requests/s)", short(least), short(most)),
        Some((rate, _)) => format!(" ({} requests/s)", short(rate)),
        None => String::new(),
    };
    match overall.ranked_by {
        Metric::Rate => {
            notes.push(format!("Rate: right answers a second, {}.", from(&rate_from)));
            notes.push(if overall.same_rate {
                format!("p50 and p99: due to answered, at a rate{offered} offered alike to all, {}.", from(&latency_from))
            } else {
                "p50 and p99: due to answered, of the same load; where each connection waits for its answer, that is the time in \
                 the product's queue. This run has no load that offers all the same."
                    .to_string()
            });
        }
        _ => notes.push(format!(
            "p50 and p99: due to answered, {}{offered}; ranked by p99. Rate: right answers a second under that load.",
            from(&latency_from)
        )),
    }
    notes.push(format!(
        "CPU: user and system time of the proxy's processes by the answers it gave; per core: answers a second of that time. \
         Memory: the largest {memory} set of its processes by the client's connections, the product's own needs included. \
         All three under the load that the rank comes from. Errors: requests without a right answer, of these loads."
    ));
    notes
}

fn intervals(overall: &Overall) -> String {
    match overall.blocks {
        0 | 1 => "One block has no interval: it cannot say how far the next would be off.".to_string(),
        n => format!(
            "Behind or below a number stands the interval of the median over {n} blocks{}.",
            if n < 6 { ", smallest to largest" } else { " (95 %)" }
        ),
    }
}

fn from(headings: &[String]) -> String {
    let quoted: Vec<String> = headings.iter().map(|heading| format!("\u{201c}{heading}\u{201d}")).collect();
    if quoted.is_empty() { "of no load".to_string() } else { format!("under {}", quoted.join(", ")) }
}

/// The loads of sections, each once.
fn headings(summary: &Summary, slugs: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for section in summary.sections.iter().filter(|section| slugs.contains(&section.slug())) {
        let load = if section.load_title.is_empty() { &section.load } else { &section.load_title };
        if !all.contains(load) {
            all.push(load.clone());
        }
    }
    all
}
