//! Builds the tables of a series: the products side by side for reading, and one row for each point for sorting.
//! Called by `page` and `markdown`.

use weir_model::metric::Quantity;
use weir_model::suite::Series;

use super::build::{estimate_cell, profile_order};
use super::{Cell, Column, RowKind, Table, TableRow};
use crate::run::BASELINE;
use crate::summary::{Metric, PointRow, Row, Section};
use weir_model::text::{Unit, count, percent, short};

/// Tables with the products side by side and one point of the series per row: rate, then p99. Empty if the load is not a series.
pub fn side_by_side(section: &Section) -> Vec<Table> {
    if section.series == Series::Once || section.all_rows().all(|row| row.points.is_empty()) {
        return Vec::new();
    }
    let values =
        section.all_rows().flat_map(|row| &row.points).filter_map(|point| point.of(Metric::P99)).map(|e| e.value);
    let time = Unit::for_times(values);
    vec![
        one(section, "rates", "Right answers a second", Unit::PER_SECOND, Metric::Rate),
        one(section, "p99", "99th percentile of latency", time, Metric::P99),
    ]
}

fn one(section: &Section, id: &str, what: &str, unit: Unit, metric: Metric) -> Table {
    let rows: Vec<&Row> = section.all_rows().filter(|row| !row.points.is_empty()).collect();
    let longest = rows.iter().map(|row| row.points.len()).max().unwrap_or(0);
    let mut columns = vec![place_column(section)];
    columns.extend(rows.iter().map(|row| Column::number(&row.label, unit.name).with_details()));
    let line = |place: usize| {
        let mut cells = vec![place_cell(section, &rows, place)];
        cells.extend(rows.iter().map(|row| {
            let mut cell = estimate_cell(row.points.get(place).and_then(|point| point.of(metric)), unit);
            if row.knee == Some(place) {
                cell.main.push_str(KNEE);
            }
            cell
        }));
        TableRow { kind: RowKind::Plain, cells }
    };
    let mut notes = vec!["Medians over blocks with their intervals.".to_string()];
    notes.extend(knee_words(section, KNEE.trim()));
    Table {
        id: format!("{id}-{}", section.slug()),
        title: format!("{what}: {}", section.heading()),
        columns,
        rows: (0..longest).map(line).collect(),
        notes,
    }
}

/// What marks the point at which a curve bends.
pub(crate) const KNEE: &str = " \u{25c6}";

/// What the mark means, and how it was found. The font of a chart may lack the mark of the table, so both name their own.
pub(crate) fn knee_words(section: &Section, mark: &str) -> Option<String> {
    let what = match section.series {
        Series::Shares(_) => "from which p99 climbs in its order of magnitude",
        Series::Connections(_) => "from which more connections bring little more",
        Series::Rounds(_) | Series::Once => return None,
    };
    let found = section.all_rows().any(|row| row.knee.is_some());
    Some(if found {
        format!(
            "{mark} is the knee: the point measured {what} (Kneedle, Satop\u{e4}\u{e4} et al. 2011). A curve may have none."
        )
    } else {
        "No curve bends plainly enough to have a knee (Kneedle, Satop\u{e4}\u{e4} et al. 2011).".to_string()
    })
}

fn place_column(section: &Section) -> Column {
    match section.series {
        Series::Shares(_) if section.own_rates => Column::text("Of its own capacity"),
        Series::Shares(_) => Column::number("Offered", Unit::PER_SECOND.name),
        Series::Connections(_) => Column::number("Connections", ""),
        Series::Rounds(_) | Series::Once => Column::number("Round", ""),
    }
}

fn place_cell(section: &Section, rows: &[&Row], place: usize) -> Cell {
    let first = rows.iter().find_map(|row| row.points.get(place));
    match (&section.series, first) {
        (Series::Shares(shares), _) if section.own_rates => {
            shares.get(place).map_or_else(Cell::none, |share| Cell::number(percent(*share), *share))
        }
        (Series::Shares(_), Some(PointRow { offered: Some(rate), .. })) => Cell::number(short(*rate), *rate),
        (Series::Connections(_), Some(point)) => {
            Cell::number(count(u64::from(point.connections)), f64::from(point.connections))
        }
        _ => Cell::number((place + 1).to_string(), place as f64 + 1.0),
    }
}

/// Every point of every product, a row each.
pub fn every<'a>(section: &'a Section) -> Table {
    let values =
        section.all_rows().flat_map(|row| &row.points).filter_map(|point| point.of(Metric::P99)).map(|e| e.value);
    let time = Unit::for_times(values);
    let mut columns = vec![
        Column::text("Product"),
        Column::text("Profile").dispensable(profile_order(section.all_rows())),
        Column::number("Point", ""),
        Column::number("Offered", Unit::PER_SECOND.name),
        Column::number("Connections", ""),
    ];
    let metrics = || Metric::ALL.iter().copied().filter(|metric| metric.entry().columns.points);
    let unit = |metric: Metric| match metric.entry().quantity {
        Quantity::Latency => time,
        other => other.unit(1.0),
    };
    columns.extend(metrics().map(|metric| Column::number(metric.entry().title, unit(metric).name)));
    columns.extend([Column::number("Due", "requests"), Column::number("Errors", "requests"), Column::text("Remarks")]);
    let whole = |n: u64| Cell::number(count(n), n as f64);
    let line = |row: &Row, place: usize, point: &PointRow| {
        let mut remarks = Vec::new();
        if row.knee == Some(place) {
            remarks.push("knee".to_string());
        }
        if point.invalid > 0 {
            remarks.push(format!("invalid in {} blocks", point.invalid));
        }
        let baseline = row.entry.product == BASELINE;
        let mut cells = vec![
            Cell::text(&row.title),
            Cell::text(if baseline { "no proxy" } else { &row.entry.profile }),
            whole(u64::from(point.point)),
            point.offered.map_or_else(Cell::none, |rate| Cell::number(short(rate), rate)),
            whole(u64::from(point.connections)),
        ];
        cells.extend(metrics().map(|metric| estimate_cell(point.of(metric), unit(metric))));
        cells.extend([whole(point.requests), whole(point.errors), Cell::text(remarks.join(", "))]);
        TableRow { kind: if point.invalid > 0 { RowKind::Unranked } else { RowKind::Plain }, cells }
    };
    let of_row = |row: &'a Row| row.points.iter().enumerate().map(move |(place, point)| (row, place, point));
    let rows = section.all_rows().flat_map(of_row).map(|(row, place, point)| line(row, place, point));
    Table {
        id: format!("points-{}", section.slug()),
        title: format!("Every point: {}", section.heading()),
        columns,
        rows: rows.collect(),
        notes: vec!["Medians over blocks with their intervals.".to_string()],
    }
}
