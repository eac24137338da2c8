//! `summary.csv`: one row a product and section, for spreadsheets. Times in microseconds, memory in bytes.

use weir_stats::Estimate;

use crate::error::ReportError;
use crate::summary::{Row, Section, Standing, Summary};

const PLAIN: [&str; 12] = [
    "workload",
    "load",
    "product",
    "profile",
    "rank_low",
    "rank_high",
    "valid",
    "suspect",
    "invalid",
    "failed",
    "requests",
    "errors",
];

/// An estimate of a row, by the name its columns begin with.
type Pick = (&'static str, fn(&Row) -> Option<Estimate>);

const ESTIMATES: [Pick; 9] = [
    ("rate", |row| row.rate),
    ("p50_us", |row| row.p50),
    ("p90_us", |row| row.p90),
    ("p99_us", |row| row.p99),
    ("p999_us", |row| row.p999),
    ("cpu_us_per_request", |row| row.cpu_us),
    ("rss_bytes", |row| row.rss_bytes),
    ("ratio_to_best", |row| row.ratio_to_best),
    ("ratio_to_direct", |row| row.ratio_to_baseline),
];

/// The file's text. An interval's cells are empty where one block gives none.
///
/// # Errors
///
/// Only when memory for it cannot be had.
pub(crate) fn draw(summary: &Summary) -> Result<Vec<u8>, ReportError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = PLAIN.iter().map(|name| (*name).to_string());
    let estimates = ESTIMATES.iter().flat_map(|(name, _)| ["", "_low", "_high"].map(|end| format!("{name}{end}")));
    let failed = |error: &dyn std::fmt::Display| ReportError::draw("summary.csv", error.to_string());
    writer.write_record(header.chain(estimates)).map_err(|error| failed(&error))?;
    for section in &summary.sections {
        for row in section.all_rows() {
            writer.write_record(record(section, row)).map_err(|error| failed(&error))?;
        }
    }
    writer.into_inner().map_err(|error| failed(&error))
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
    for (_, pick) in &ESTIMATES {
        let estimate = pick(row);
        let interval = estimate.filter(|estimate| estimate.n > 1);
        for value in [estimate.map(|e| e.value), interval.map(|e| e.low), interval.map(|e| e.high)] {
            cells.push(value.map(|value| value.to_string()).unwrap_or_default());
        }
    }
    cells
}
