//! Builds the table of one section: rank, what the load asks for, latency, cost and errors. Called by `page`,
//! `markdown` and `terminal`. The columns depend on how requests arrived, and an empty column is left out.

use weir_model::metric::Quantity;
use weir_model::suite::{LoadKind, Series};
use weir_model::text::{Unit, least};
use weir_stats::Estimate;

use super::cells::{add_product, add_rank, errors_cell, estimate_cell, marked, row_kind, verdict_words};
use super::cost::add_warmup;
use super::{Cell, Column, Table, TableOf};
use crate::summary::{Metric, PointRow, Row, Section};

/// Of one section: rank, rate, latency, cost, memory, errors.
pub fn ranking(section: &Section) -> Table {
    let medians = section.all_rows().filter_map(|row| row.of(Metric::P50)).map(|p50| p50.value);
    let time = Quantity::Latency.unit(least(medians));
    let mut table = TableOf::<Row>::new();
    add_rank(&mut table);
    add_product(&mut table, section.tells_profiles_apart(), 2);
    add_rate(&mut table, section);
    match (&section.series, &section.kind) {
        (Series::Once, LoadKind::Search { .. }) => add_search(&mut table),
        (Series::Once, LoadKind::Count { .. }) => {
            let column = Column::number("Total", "s").help("From the first request to the last answer.");
            add_estimate(&mut table, column, Unit::SECONDS, |row| row.of(Metric::Total));
        }
        (Series::Once, _) => {}
        (Series::Rounds(_), _) => {
            let round = |name: &str| Column::number(name, Unit::PER_SECOND.name).dispensable(3);
            let rate = |point: Option<&PointRow>| point?.of(Metric::Rate);
            add_estimate(&mut table, round("First round"), Unit::PER_SECOND, move |row| rate(row.points.first()));
            add_estimate(&mut table, round("Last round"), Unit::PER_SECOND, move |row| rate(row.points.last()));
        }
        (Series::Shares(_), _) => add_knee_of_rates(&mut table, time),
        (Series::Connections(_), _) => {
            let column =
                Column::number("Knee at", "connections").help("Connections from which the rate climbs no more.");
            table.add(column, |row| Some(Cell::count(knee(row)?.connections)));
        }
    }
    add_ratios(&mut table);
    add_metrics(&mut table, section, time);
    let memory = Column::number("Memory", Unit::MEBIBYTES.name).dispensable(7).help("Largest memory of the proxy.");
    add_estimate(&mut table, memory, Unit::MEBIBYTES, |row| row.memory.map(|memory| memory.bytes));
    let errors = Column::number("Errors", "requests").dispensable(2);
    table.add(errors.help("Requests of the ranked windows without a right answer."), |row| errors_cell(row, true));
    if section.all_rows().any(|row| row.warmup.is_some()) {
        add_warmup(&mut table, 5);
    }
    table.add(Column::text("Trials").dispensable(8), |row| verdict_words(row.verdicts));
    let with_remarks = section.all_rows().filter(|row| !row.remarks.is_empty());
    let remarks =
        with_remarks.map(|r| format!("{}: {}.", marked(&r.label, r), r.remarks.join("; ").trim_end_matches('.')));
    let id = format!("ranking-{}", section.slug());
    let table = table.table(id, section.heading(), section.all_rows(), |row| row_kind(row));
    table.with_notes(section.how.iter().cloned().chain(remarks))
}

fn add_estimate<'a>(
    table: &mut TableOf<'a, Row>,
    column: Column,
    unit: Unit,
    pick: impl Fn(&Row) -> Option<Estimate> + 'a,
) {
    table.add(column, move |row| estimate_cell(pick(row), unit));
}

/// What the load asks for.
fn add_rate(table: &mut TableOf<'_, Row>, section: &Section) {
    let (name, help) = match (&section.series, &section.kind) {
        (Series::Once, LoadKind::Search { .. }) => ("Capacity", "The highest rate found that meets the objective."),
        (Series::Once, _) => ("Rate", "Right answers a second."),
        (Series::Rounds(_), _) => ("Rate", "Right answers a second, of the round in the middle of their rates."),
        _ => ("Most", "The most right answers a second at any point of the series."),
    };
    let column = Column::number(name, Unit::PER_SECOND.name).with_details_if(section.ranked_by == Metric::Rate);
    add_estimate(table, column.help(help), Unit::PER_SECOND, |row| row.of(Metric::Rate));
}

/// The point at which the curve bends.
fn knee(row: &Row) -> Option<&PointRow> {
    row.points.get(row.knee?)
}

fn add_knee_of_rates(table: &mut TableOf<'_, Row>, time: Unit) {
    let column = Column::number("Knee at", Unit::PER_SECOND.name).help("The offered rate from which p99 climbs.");
    table.add(column, |row| knee(row)?.offered.map(Cell::short));
    for (name, help, metric) in [
        ("p50 there", "Median latency at the knee.", Metric::P50),
        ("p99 there", "99th percentile of latency at the knee.", Metric::P99),
    ] {
        add_estimate(table, Column::number(name, time.name).help(help), time, move |row| knee(row)?.of(metric));
    }
}

fn add_ratios(table: &mut TableOf<'_, Row>) {
    let ratio = |name: &str, order, help: &str| Column::number(name, "ratio").dispensable(order).help(help);
    let help = "Of what the ranks go by: this product over the direct path, the median of ratios within blocks.";
    add_estimate(table, ratio("To direct", 4, help), Unit::NONE, |row| row.ratio_to_baseline);
    add_estimate(table, ratio("To best", 5, "The same over the first in rank."), Unit::NONE, |row| row.ratio_to_best);
}

fn add_search(table: &mut TableOf<'_, Row>) {
    let rate = |name: &str, help: &str| Column::number(name, Unit::PER_SECOND.name).dispensable(3).help(help);
    let column = rate("Met up to", "The highest rate that met the objective in all its trials.");
    add_estimate(table, column, Unit::PER_SECOND, |row| row.search.as_ref()?.met_up_to);
    let column = rate("Failed from", "The lowest rate that failed.");
    add_estimate(table, column, Unit::PER_SECOND, |row| row.search.as_ref()?.failed_from);
    let column = Column::text("Confirmed").help("Searches whose rate met the objective in a trial of full length too.");
    table.add(column, |row| {
        row.search.as_ref().map(|search| Cell::from(format!("{} of {}", search.confirmed, search.of)))
    });
    table.add(Column::text("Limit").help("Who could not do more."), |row| {
        let limits = &row.search.as_ref()?.limits;
        let several = limits.len() > 1;
        let words = limits.iter().map(|(who, n)| if several { format!("{who} ({n})") } else { (*who).into() });
        Some(Cell::from(words.collect::<Vec<String>>().join(", ")))
    });
}

/// The metrics that the table of metrics shows here.
fn add_metrics(table: &mut TableOf<'_, Row>, section: &Section, time: Unit) {
    // At the highest rate the queue is as long as the client waits, so the latency says nothing about the product.
    let with_latency = !matches!(section.series, Series::Shares(_));
    for metric in Metric::ALL.iter().copied() {
        let (entry, latency) = (metric.entry(), metric.entry().quantity == Quantity::Latency);
        let Some(order) = entry.columns.ranking.filter(|_| with_latency || !latency) else { continue };
        let unit = if latency { time } else { entry.quantity.unit(1.0) };
        let column = Column::number(entry.title, unit.name).dispensable(order).help(entry.help);
        let column = column.with_details_if(metric == section.ranked_by);
        add_estimate(table, column, unit, move |row| row.of(metric));
    }
}
