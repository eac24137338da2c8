//! Builds the table of the first screen, for readers who have to choose a product.
//! Called by `page`, `markdown` and `terminal`.

use super::build::{estimate_cell, rank_cell_of, verdict_words_of};
use super::{Cell, Column, RowKind, Table, TableRow};
use crate::summary::{Metric, Overall, OverallRow, Rankable as _, Summary};
use weir_model::metric::Quantity;
use weir_model::text::{Unit, count, least, percent, short};

/// Each product over all workloads; `None` when nothing may be ranked.
pub fn overall(summary: &Summary) -> Option<Table> {
    let overall = summary.overall.as_ref()?;
    let latency =
        if overall.same_rate { "at the rate offered alike to all" } else { "under the load that asks for the rate" };
    let metrics: Vec<(Metric, u8)> =
        Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry().columns.overall?))).collect();
    // Latencies share a unit, which the median decides.
    let median = least(overall.all_rows().filter_map(|row| row.of(Metric::P50)).map(|p50| p50.value));
    let unit = |metric: Metric| metric.entry().quantity.unit(median);
    let column = |(metric, order): &(Metric, u8)| {
        let entry = metric.entry();
        let at = if entry.quantity == Quantity::Latency { format!(" {latency}.") } else { ".".to_string() };
        let help = format!("{}{at}", entry.help.trim_end_matches('.'));
        let column = Column::number(entry.title, unit(*metric).name).dispensable(*order).help(&help);
        // One interval in a terminal and a README; the page has them all.
        if *metric == overall.ranked_by { column.with_details() } else { column }
    };
    let profiles = overall.all_rows().any(|row| row.label != row.title);
    let memory = if overall.rows.iter().all(|row| row.proportional) { "proportional" } else { "resident" };
    let mut columns = vec![
        Column::text("Rank").help("The best and the worst rank that the intervals allow."),
        Column::text("Product"),
        Column::text("Profile").dispensable(if profiles { 0 } else { 9 }).help("The configuration it ran with."),
    ];
    columns.extend(metrics.iter().map(column));
    columns.extend([
        Column::number("Memory", "KiB/connection")
            .dispensable(5)
            .help(&format!("Largest {memory} set of the proxy's processes by the client's connections.")),
        Column::number("Errors", "requests").dispensable(1).help("Requests without a right answer."),
        Column::text("Trials").dispensable(3).help("What the audit says of the trials that the numbers come from."),
    ]);
    let line = |row: &OverallRow, baseline: bool| {
        let mut cells = vec![
            rank_cell_of(row.rank, baseline),
            Cell::text(if row.verdicts.suspect > 0 { format!("{} *", row.title) } else { row.title.clone() }),
            Cell::text(if baseline { "no proxy" } else { &row.entry.profile }),
        ];
        cells.extend(metrics.iter().map(|(metric, _)| estimate_cell(row.of(*metric), unit(*metric))));
        cells.extend([
            estimate_cell(row.memory, Unit::KIBIBYTES),
            errors(row),
            Cell::text(verdict_words_of(row.verdicts)),
        ]);
        TableRow { kind: kind(row, baseline), cells }
    };
    let baseline = overall.baseline.iter().map(|row| line(row, true));
    Some(Table {
        id: "overall".to_string(),
        title: title(overall),
        columns,
        rows: baseline.chain(overall.rows.iter().map(|row| line(row, false))).collect(),
        notes: notes(summary, overall, memory),
    })
}

fn kind(row: &OverallRow, baseline: bool) -> RowKind {
    match row.rank {
        _ if baseline => RowKind::Baseline,
        None => RowKind::Unranked,
        Some(_) if row.verdicts.suspect > 0 => RowKind::Marked,
        Some(_) => RowKind::Plain,
    }
}

fn errors(row: &OverallRow) -> Cell {
    let errors = row.error_count();
    if row.requests == 0 && errors == 0 {
        return Cell::none();
    }
    let mut cell = Cell::number(count(errors), errors as f64);
    if errors > 0 {
        cell.detail = percent(errors as f64 / row.requests.max(1) as f64);
    }
    cell
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
    match headings {
        [] => "of no load".to_string(),
        [only] => format!("under \u{201c}{only}\u{201d}"),
        several => format!(
            "under {}",
            several.iter().map(|one| format!("\u{201c}{one}\u{201d}")).collect::<Vec<_>>().join(", ")
        ),
    }
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
