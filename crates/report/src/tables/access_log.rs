//! The table of access logs: what products wrote, and what is missing.

use weir_model::text::Unit;

use super::products::{marked, row_kind};
use super::{Cell, Column, Table, TableOf};
use crate::run::{Run, displayed};
use crate::summary::{Row, Section};

/// A product that writes an access log.
struct Logged<'a> {
    row: &'a Row,
    lines: u64,
    bytes: u64,
    sent: u64,
    /// Successful responses a second, the mean of the blocks.
    rate: f64,
}

/// A row for each product with an access log; `None` where there is none.
pub fn access_logs(run: &Run, section: &Section) -> Option<Table> {
    let mut rows: Vec<Logged<'_>> = Vec::new();
    for row in section.all_rows() {
        let mut logged = Logged { row, lines: 0, bytes: 0, sent: 0, rate: 0.0 };
        let mut windows = 0.0;
        for trial in displayed(section.trials(run).filter(|trial| trial.is_of(&row.entry))) {
            let measurement = &trial.measurement;
            let Some((log, load)) = measurement.access_log.as_ref().zip(measurement.load.as_ref()) else { continue };
            logged.lines += log.lines;
            logged.bytes += log.bytes;
            logged.sent += load.total.sent;
            logged.rate += load.rate;
            windows += 1.0;
        }
        if windows > 0.0 {
            logged.rate /= windows;
            rows.push(logged);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let a_line = |logged: &Logged<'_>| logged.bytes as f64 / logged.lines.max(1) as f64;
    let mut table = TableOf::<Logged<'_>>::new();
    table.add(Column::text("Product"), |logged| marked(&logged.row.label, logged.row));
    table.add(Column::number("Lines", Unit::PER_SECOND.name), |logged| Cell::short(logged.rate));
    table.add(Column::number("Bytes", "a line"), move |logged| Cell::short(a_line(logged)));
    table.add(Column::number("Written", "MB/s"), move |logged| Cell::short(a_line(logged) * logged.rate / 1e6));
    table.add(Column::number("Missing", "lines"), |logged| Cell::count(logged.sent.saturating_sub(logged.lines)));
    let title = format!("Access logs: {}", section.heading());
    Some(table.table(format!("access-logs-{}", section.slug()), title, &rows, |logged| row_kind(logged.row)))
}
