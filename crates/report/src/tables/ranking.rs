//! Builds the table of one section: rank, what the load asks for, latency, cost and errors. Called by `page`,
//! `markdown` and `terminal`. The columns depend on how requests arrived, and an empty column is left out.

use weir_model::metric::Quantity;
use weir_model::suite::{LoadKind, Series};
use weir_stats::Estimate;

use super::build::{errors_cell, estimate_cell, marked, profile_order, rank_cell_of, row_kind, verdict_words_of};
use super::{Cell, Column, Table, TableRow};
use crate::summary::{Metric, Row, Section};
use weir_model::text::{Unit, count, least, short};

/// What stands in a column of a row; the flag says that the row is the baseline.
type Filled<'a> = Box<dyn Fn(&Row, bool) -> Cell + 'a>;

/// A column and what stands in it.
struct Drawn<'a> {
    column: Column,
    cell: Filled<'a>,
}

fn drawn<'a>(column: Column, cell: impl Fn(&Row, bool) -> Cell + 'a) -> Drawn<'a> {
    Drawn { column, cell: Box::new(cell) }
}

/// An estimate of each row.
fn of<'a>(column: Column, unit: Unit, pick: impl Fn(&Row) -> Option<Estimate> + 'a) -> Drawn<'a> {
    drawn(column, move |row, _| estimate_cell(pick(row), unit))
}

const NO_UNIT: Unit = Unit { name: "", size: 1.0 };

/// Of one section: rank, rate, latency, cost, memory, errors.
pub fn ranking(section: &Section) -> Table {
    let medians = section.all_rows().filter_map(|row| row.of(Metric::P50)).map(|p50| p50.value);
    let time = Quantity::Latency.unit(least(medians));
    let mut all = vec![
        drawn(Column::text("Rank").help("The best and the worst rank that the intervals allow."), |row, baseline| {
            rank_cell_of(row.rank, baseline)
        }),
        drawn(Column::text("Product"), |row, _| Cell::text(marked(&row.title, row))),
        drawn(Column::text("Profile").dispensable(profile_order(section.all_rows())), |row, baseline| {
            Cell::text(if baseline { "no proxy" } else { &row.entry.profile })
        }),
    ];
    all.extend(asked(section, time));
    all.extend(metrics(section, time));
    all.extend(cost(section));
    all.push(drawn(Column::text("Trials").dispensable(8), |row, _| Cell::text(verdict_words_of(row.verdicts))));
    let rows = section.baseline.iter().map(|row| (row, true)).chain(section.rows.iter().map(|row| (row, false)));
    let rows = rows.map(|(row, baseline)| TableRow {
        kind: row_kind(row, baseline),
        cells: all.iter().map(|drawn| (drawn.cell)(row, baseline)).collect(),
    });
    let rows = rows.collect();
    let with_remarks = section.all_rows().filter(|row| !row.remarks.is_empty());
    let remarks =
        with_remarks.map(|r| format!("{}: {}.", marked(&r.label, r), r.remarks.join("; ").trim_end_matches('.')));
    Table {
        id: format!("ranking-{}", section.slug()),
        title: section.heading(),
        columns: all.into_iter().map(|drawn| drawn.column).collect(),
        rows,
        notes: section.how.iter().cloned().chain(remarks).collect(),
    }
}

/// What the load asks for.
fn asked(section: &Section, time: Unit) -> Vec<Drawn<'_>> {
    let by_rate = section.ranked_by == Metric::Rate;
    let (name, help) = match (&section.series, &section.kind) {
        (Series::Once, LoadKind::Search { .. }) => ("Capacity", "The highest rate found that meets the objective."),
        (Series::Once, _) => ("Rate", "Right answers a second."),
        (Series::Rounds(_), _) => ("Rate", "Right answers a second, of the round in the middle of their rates."),
        _ => ("Most", "The most right answers a second at any point of the series."),
    };
    let rate = Column::number(name, Unit::PER_SECOND.name).help(help);
    let mut all =
        vec![of(if by_rate { rate.with_details() } else { rate }, Unit::PER_SECOND, |row| row.of(Metric::Rate))];
    match (&section.series, &section.kind) {
        (Series::Once, LoadKind::Search { .. }) => all.extend(search()),
        (Series::Once, LoadKind::Count { .. }) => all.push(of(
            Column::number("Total", "s").help("From the first request to the last answer."),
            NO_UNIT,
            |row| row.of(Metric::Total),
        )),
        (Series::Once, _) => {}
        (Series::Rounds(_), _) => {
            let of_round = |name: &str, pick: fn(&Row) -> Option<Estimate>| {
                of(Column::number(name, Unit::PER_SECOND.name).dispensable(3), Unit::PER_SECOND, pick)
            };
            all.push(of_round("First round", |row| row.points.first()?.of(Metric::Rate)));
            all.push(of_round("Last round", |row| row.points.last()?.of(Metric::Rate)));
        }
        (Series::Shares(_), _) => all.extend([
            knee("Knee at", "requests/s", "The offered rate from which p99 climbs.", |row| {
                let offered = row.points.get(row.knee?)?.offered?;
                Some(Cell::number(short(offered), offered))
            }),
            knee("p50 there", time.name, "Median latency at the knee.", move |row| {
                Some(estimate_cell(row.points.get(row.knee?)?.of(Metric::P50), time))
            }),
            knee("p99 there", time.name, "99th percentile of latency at the knee.", move |row| {
                Some(estimate_cell(row.points.get(row.knee?)?.of(Metric::P99), time))
            }),
        ]),
        (Series::Connections(_), _) => {
            all.push(knee("Knee at", "connections", "Connections from which the rate climbs no more.", |row| {
                let connections = row.points.get(row.knee?)?.connections;
                Some(Cell::number(count(u64::from(connections)), f64::from(connections)))
            }))
        }
    }
    let ratio_help = "Of what the ranks go by: this product over the direct path, the median of ratios within blocks.";
    all.push(of(Column::number("To direct", "ratio").dispensable(4).help(ratio_help), NO_UNIT, |row| {
        row.ratio_to_baseline
    }));
    let best = Column::number("To best", "ratio").dispensable(5).help("The same over the first in rank.");
    all.push(of(best, NO_UNIT, |row| row.ratio_to_best));
    all
}

fn knee<'a>(name: &str, unit: &str, help: &str, cell: impl Fn(&Row) -> Option<Cell> + 'a) -> Drawn<'a> {
    drawn(Column::number(name, unit).help(help), move |row, _| cell(row).unwrap_or_else(Cell::none))
}

fn search() -> Vec<Drawn<'static>> {
    let rate = |name: &str, help: &str| Column::number(name, Unit::PER_SECOND.name).dispensable(3).help(help);
    vec![
        of(rate("Met up to", "The highest rate that met the objective in all its trials."), Unit::PER_SECOND, |row| {
            row.search.as_ref()?.met_up_to
        }),
        of(rate("Failed from", "The lowest rate that failed."), Unit::PER_SECOND, |row| {
            row.search.as_ref()?.failed_from
        }),
        drawn(
            Column::text("Confirmed").help("Searches whose rate met the objective in a trial of full length too."),
            |row, _| {
                row.search.as_ref().map_or_else(Cell::none, |s| Cell::text(format!("{} of {}", s.confirmed, s.of)))
            },
        ),
        drawn(Column::text("Limit").help("Who could not do more."), |row, _| {
            let Some(search) = &row.search else { return Cell::none() };
            let several = search.limits.len() > 1;
            let words =
                search.limits.iter().map(|(who, n)| if several { format!("{who} ({n})") } else { (*who).into() });
            Cell::text(words.collect::<Vec<String>>().join(", "))
        }),
    ]
}

/// The metrics that the table of metrics shows here.
fn metrics(section: &Section, time: Unit) -> Vec<Drawn<'_>> {
    // At the highest rate the queue is as long as the client waits, so the latency says nothing about the product.
    let with_latency = !matches!(section.series, Series::Shares(_));
    let shown =
        Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry(), metric.entry().columns.ranking?)));
    shown
        .filter(|(_, entry, _)| with_latency || entry.quantity != Quantity::Latency)
        .map(|(metric, entry, order)| {
            let unit = if entry.quantity == Quantity::Latency { time } else { entry.quantity.unit(1.0) };
            let column = Column::number(entry.title, unit.name).dispensable(order).help(entry.help);
            let column = if metric == section.ranked_by { column.with_details() } else { column };
            of(column, unit, move |row| row.of(metric))
        })
        .collect()
}

fn cost(section: &Section) -> Vec<Drawn<'_>> {
    let memory = Column::number("Memory", Unit::MEBIBYTES.name).dispensable(7).help("Largest memory of the proxy.");
    let errors = Column::number("Errors", "requests")
        .dispensable(2)
        .help("Requests of the ranked windows without a right answer.");
    let mut all = vec![
        of(memory, Unit::MEBIBYTES, |row| row.memory.map(|memory| memory.bytes)),
        drawn(errors, |row, _| errors_cell(row)),
    ];
    if section.all_rows().any(|row| row.warmup.is_some()) {
        let help = "Until what it carried each second kept its level.";
        all.push(drawn(Column::number("Warm-up", "s").with_details().dispensable(5).help(help), |row, _| {
            super::cost::warmup_cell(row)
        }));
    }
    all
}
