//! The table of routes that changed: what clients saw of it.

use weir_model::text::{Unit, human_bytes};

use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{ChangeRow, Summary};

/// A row for each product, workload and load whose route changed; `None` where none did.
pub fn changes(summary: &Summary) -> Option<Table> {
    let rows = &summary.changes;
    let first = rows.first()?;
    let millis = |s: Option<f64>| s.map(|s| Cell::number(format!("{:.1}", s * 1e3), s));
    let mut table = TableOf::<ChangeRow>::new();
    table.add(Column::text("Product"), |row| row.label.clone());
    if rows.iter().any(|row| (&row.workload, &row.load) != (&first.workload, &first.load)) {
        table.add(Column::text("Workload, load"), |row| format!("{}, {}", row.workload, row.load));
    }
    table.add(Column::number("Failed", "requests"), |row| Cell::count(row.failed));
    let help =
        "Failed requests whose connection ended under them: reset, closed early, or in the middle of a response.";
    table.add(Column::number("Cut", "requests").help(help).dispensable(2), |row| Cell::count(row.cut));
    let help = "From the time that weir began a change to the last response without it, the median of the changes.";
    table.add(Column::number("Taken, median", Unit::MILLIS.name).help(help), move |row| {
        millis(row.taken_s.map(|s| s.0))
    });
    table.add(Column::number("longest", Unit::MILLIS.name), move |row| millis(row.taken_s.map(|s| s.1)));
    let help = "Changes that no response showed, those skipped for a later one among them.";
    table.add(Column::text("Not seen").help(help), |row| format!("{} of {}", row.skipped + row.lost, row.changes));
    let help = "Connections that the product closed in the window, most of them between two requests.";
    table.add(Column::number("Closed", "connections").help(help).dispensable(3), |row| Cell::count(row.closed));
    table.add(Column::number("p99", Unit::MILLIS.name), |row| {
        row.p99_us.map(|us| Cell::number(format!("{:.2}", us / 1e3), us))
    });
    let pair = |pair: Option<(u64, u64)>, text: fn(u64) -> String| {
        pair.map(|(before, after)| Cell::number(format!("{} \u{2192} {}", text(before), text(after)), after as f64))
    };
    let help = "Resident memory in the first second of the window and in the last.";
    table.add(Column::text("Memory").help(help).dispensable(1), move |row| {
        pair(row.memory_bytes, |bytes| human_bytes(bytes as f64))
    });
    let help = "Processes in the first second of the window and in the last.";
    table.add(Column::text("Processes").help(help).dispensable(4), move |row| pair(row.processes, |n| n.to_string()));
    table.add(Column::text("Why requests failed").dispensable(5), |row| row.why.clone());
    let kind = |row: &ChangeRow| match row.failed as usize + row.skipped + row.lost {
        0 => RowKind::Plain,
        _ => RowKind::Marked,
    };
    Some(table.table("changes", "A route that changes under load", rows, kind))
}
