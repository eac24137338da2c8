//! Builds the tables of a series: the products side by side for reading, and one row for each point for sorting.
//! Called by `page` and `markdown`.

use weir_model::metric::Quantity;
use weir_model::suite::Series;
use weir_model::text::{Unit, percent};

use super::cells::{add_product, estimate_cell};
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{Metric, PointRow, Row, Section, Standing};

const INTERVALS: &str = "Medians over blocks with their intervals.";

/// Tables with the products side by side and one point of the series per row: rate, then p99. Empty if the load is not a series.
pub fn side_by_side(section: &Section) -> Vec<Table> {
    if section.series == Series::Once || section.all_rows().all(|row| row.points.is_empty()) {
        return Vec::new();
    }
    vec![one(section, "rates", Metric::Rate), one(section, "p99", Metric::P99)]
}

fn one(section: &Section, id: &str, metric: Metric) -> Table {
    let unit = point_unit(section, metric);
    let longest = section.all_rows().map(|row| row.points.len()).max().unwrap_or(0);
    let mut table = TableOf::<usize>::new();
    table.add(place_column(section), |place| place_cell(section, *place));
    for row in section.all_rows().filter(|row| !row.points.is_empty()) {
        table.add(Column::number(&row.label, unit.name).with_details(), move |place| {
            let mut cell = estimate_cell(row.points.get(*place).and_then(|point| point.of(metric)), unit);
            if row.knee == Some(*place) {
                cell.main.push_str(KNEE);
            }
            cell
        });
    }
    let (id, title) = (format!("{id}-{}", section.slug()), format!("{}: {}", metric.entry().name, section.heading()));
    let table = table.table(id, title, &(0..longest).collect::<Vec<_>>(), |_| RowKind::Plain);
    table.with_notes([INTERVALS]).with_notes(knee_words(section, KNEE.trim()))
}

/// The unit of a metric for all points of a section. Latencies share one.
fn point_unit(section: &Section, metric: Metric) -> Unit {
    let points = section.all_rows().flat_map(|row| &row.points);
    match metric.entry().quantity {
        Quantity::Latency => Unit::for_times(points.filter_map(|point| point.of(Metric::P99)).map(|p99| p99.value)),
        other => other.unit(1.0),
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

fn place_cell(section: &Section, place: usize) -> Cell {
    let first = section.all_rows().find_map(|row| row.points.get(place));
    match (&section.series, first) {
        (Series::Shares(shares), _) if section.own_rates => {
            shares.get(place).map(|share| Cell::number(percent(*share), *share)).into()
        }
        (Series::Shares(_), Some(PointRow { offered: Some(rate), .. })) => Cell::short(*rate),
        (Series::Connections(_), Some(point)) => Cell::count(point.connections),
        _ => Cell::count(place as u64 + 1),
    }
}

/// A point of a product.
struct Measured<'a> {
    row: &'a Row,
    place: usize,
    point: &'a PointRow,
}

impl std::ops::Deref for Measured<'_> {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        self.row
    }
}

/// Every point of every product, a row each.
pub fn every<'s>(section: &'s Section) -> Table {
    let mut table = TableOf::<Measured<'_>>::new();
    add_product(&mut table, section.tells_profiles_apart(), 2);
    table.add(Column::number("Point", ""), |of| Cell::count(of.point.point));
    table.add(Column::number("Offered", Unit::PER_SECOND.name), |of| of.point.offered.map(Cell::short));
    table.add(Column::number("Connections", ""), |of| Cell::count(of.point.connections));
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.entry().columns.points) {
        let unit = point_unit(section, metric);
        let column = Column::number(metric.entry().title, unit.name);
        table.add(column, move |of| estimate_cell(of.point.of(metric), unit));
    }
    table.add(Column::number("Due", "requests"), |of| Cell::count(of.point.requests));
    table.add(Column::number("Errors", "requests"), |of| Cell::count(of.point.errors));
    table.add(Column::text("Remarks"), |of| {
        let knee = (of.row.knee == Some(of.place)).then(|| "knee".to_string());
        let invalid = (of.point.invalid > 0).then(|| format!("invalid in {} blocks", of.point.invalid));
        knee.into_iter().chain(invalid).collect::<Vec<_>>().join(", ")
    });
    let numbered =
        |row: &'s Row| row.points.iter().enumerate().map(move |(place, point)| Measured { row, place, point });
    let rows: Vec<Measured<'_>> = section.all_rows().flat_map(numbered).collect();
    let (id, title) = (format!("points-{}", section.slug()), format!("Every point: {}", section.heading()));
    let kind = |of: &Measured<'_>| if of.point.invalid > 0 { RowKind::Unranked } else { RowKind::Plain };
    table.table(id, title, &rows, kind).with_notes([INTERVALS])
}
