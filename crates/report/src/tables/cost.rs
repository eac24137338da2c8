//! Builds the table of what a product costs: CPU time of all three roles, memory and time to warm up.
//! Called by `page`.

use super::build::{estimate_cell, marked, profile_order, row_kind};
use super::{Cell, Column, Table, TableRow};
use crate::summary::{Metric, Row, Section};
use weir_model::text::Unit;

/// The cost table of one section; `None` if no usage was recorded.
pub fn cost(section: &Section) -> Option<Table> {
    let known = |row: &Row| row.of(Metric::Cpu).or(row.of(Metric::ClientCpu)).is_some();
    if !section.all_rows().any(known) {
        return None;
    }
    let with_warmup = section.all_rows().any(|row| row.warmup.is_some());
    let mut columns =
        vec![Column::text("Product"), Column::text("Profile").dispensable(profile_order(section.all_rows()))];
    columns.extend(metrics().map(|(metric, order)| {
        let entry = metric.entry();
        let title = if metric == Metric::Cpu { "Proxy CPU" } else { entry.title };
        let column = Column::number(title, entry.quantity.unit(1.0).name).dispensable(order).help(entry.help);
        if metric == Metric::Cpu { column.with_details() } else { column }
    }));
    columns.extend([
        Column::number("Memory", Unit::MEBIBYTES.name).help("Largest memory of the proxy's processes."),
        Column::number("Memory", "KiB/connection").help("The same by the client's connections."),
        Column::text("Memory is").dispensable(4).help("Which measure of memory the kernel gave."),
    ]);
    if with_warmup {
        columns.push(
            Column::number("Warm-up", "s").with_details().help("Until what it carried each second kept its level."),
        );
    }
    let line = |row: &Row, baseline: bool| {
        let memory = row.memory;
        let mut cells = vec![
            Cell::text(marked(&row.title, row)),
            Cell::text(if baseline { "no proxy" } else { &row.entry.profile }),
        ];
        cells.extend(metrics().map(|(metric, _)| estimate_cell(row.of(metric), metric.entry().quantity.unit(1.0))));
        cells.extend([
            estimate_cell(memory.map(|memory| memory.bytes), Unit::MEBIBYTES),
            estimate_cell(memory.and_then(|memory| memory.by_connection), Unit::KIBIBYTES),
            memory.map_or_else(Cell::none, |memory| Cell::text(if memory.proportional { "PSS" } else { "RSS" })),
        ]);
        if with_warmup {
            cells.push(warmup_cell(row));
        }
        TableRow { kind: row_kind(row, baseline), cells }
    };
    let baseline = section.baseline.iter().map(|row| line(row, true));
    Some(Table {
        id: format!("costs-{}", section.slug()),
        title: format!("Cost: {}", section.heading()),
        columns,
        rows: baseline.chain(section.rows.iter().map(|row| line(row, false))).collect(),
        notes: notes(with_warmup),
    })
}

/// The metrics of this table, with the order in which their columns go.
fn metrics() -> impl Iterator<Item = (Metric, u8)> {
    Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry().columns.cost?)))
}

fn notes(with_warmup: bool) -> Vec<String> {
    let mut notes = vec![
        "CPU: user and system time of a role's processes in the window, by the answers that the client got in the window. Per \
         core: answers a second of the proxy's CPU time."
            .to_string(),
        "Memory: the largest in the window. PSS counts a page that several processes share once, RSS once for each of them, so \
         that RSS is too much where a product has many processes. By connection: all of it over the client's connections, the \
         product's own needs included."
            .to_string(),
    ];
    if with_warmup {
        notes.push(
            "Warm-up: how long the product was kept busy until what it carried each second kept its level; \u{201c}never\u{201d}: \
             it had not when the time allowed was over, and what was measured then is of a product that was still changing."
                .to_string(),
        );
    }
    notes
}

/// "4.0", "never (in 30 s)".
pub(super) fn warmup_cell(row: &Row) -> Cell {
    let Some(warmup) = &row.warmup else { return Cell::none() };
    let seconds = warmup.seconds;
    if warmup.never == warmup.of {
        let mut cell = Cell::number("never", f64::MAX);
        cell.detail = format!("in {} s", weir_model::text::short(seconds.value));
        return cell;
    }
    let mut cell = estimate_cell(Some(seconds), Unit { name: "s", size: 1.0 });
    if warmup.never > 0 {
        cell.detail = format!("never in {} of {} trials", warmup.never, warmup.of);
    }
    cell
}
