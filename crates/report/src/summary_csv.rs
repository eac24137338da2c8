//! Writes `summary.csv` for spreadsheets: one row for each product and section. Times are in microseconds, memory is in bytes.

use weir_model::text::csv_cell;
use weir_stats::Estimate;

use crate::error::DrawError;
use crate::summary::{Metric, Row, Section, Summary};

/// The columns before those of the estimates.
const PLAIN: &str = "workload load product profile rank_low rank_high valid suspect invalid failed requests errors";

/// The estimates of a row: those of the table of metrics that have a column, then the ratios.
fn estimates(row: &Row) -> impl Iterator<Item = Option<Estimate>> {
    columns().map(|(metric, _)| row.of(metric)).chain([row.ratio_to_best, row.ratio_to_baseline])
}

fn columns() -> impl Iterator<Item = (Metric, &'static str)> {
    Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry().columns.csv?)))
}

/// The file's text. An interval's cells are empty where one block gives none.
///
/// # Errors
///
/// Only when memory for it cannot be had.
pub(crate) fn draw(summary: &Summary) -> Result<Vec<u8>, DrawError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = columns().map(|(_, name)| name).chain(["ratio_to_best", "ratio_to_direct"]);
    let estimates = names.flat_map(|name| ["", "_low", "_high"].map(|end| format!("{name}{end}")));
    writer.write_record(PLAIN.split(' ').map(str::to_owned).chain(estimates))?;
    for section in &summary.sections {
        for row in section.all_rows() {
            writer.write_record(record(section, row).iter().map(|cell| csv_cell(cell)))?;
        }
    }
    Ok(writer.into_inner()?)
}

fn record(section: &Section, row: &Row) -> Vec<String> {
    let rank = |pick: fn((usize, usize)) -> usize| row.rank.map(|rank| pick(rank).to_string()).unwrap_or_default();
    let mut cells = vec![
        section.workload.clone(),
        section.load.clone(),
        row.entry.product.clone(),
        row.entry.profile.clone(),
        rank(|(low, _)| low),
        rank(|(_, high)| high),
        row.verdicts.valid.to_string(),
        row.verdicts.suspect.to_string(),
        row.verdicts.invalid.to_string(),
        row.verdicts.error.to_string(),
        row.requests.to_string(),
        row.error_count().to_string(),
    ];
    for estimate in estimates(row) {
        let interval = estimate.filter(|estimate| estimate.n > 1);
        for value in [estimate.map(|e| e.value), interval.map(|e| e.low), interval.map(|e| e.high)] {
            cells.push(value.map(|value| value.to_string()).unwrap_or_default());
        }
    }
    cells
}
