//! Builds the table of what a product costs: CPU time of all three roles, memory and time to warm up.
//! Called by `page`.

use weir_model::text::{Unit, short};

use super::cells::{add_product, estimate_cell, metric_cell, row_kind, usage_cell};
use super::{Cell, Column, Table, TableOf};
use crate::summary::{Metric, Row, Section};

/// The cost table of one section; `None` if no usage was recorded.
pub fn cost(section: &Section) -> Option<Table> {
    let known = |row: &Row| row.of(Metric::Cpu).or(row.of(Metric::ClientCpu)).is_some();
    if !section.all_rows().any(known) {
        return None;
    }
    let mut table = TableOf::<Row>::new();
    add_product(&mut table, section.tells_profiles_apart(), 2);
    for metric in Metric::ALL.iter().copied() {
        let (entry, unit) = (metric.entry(), metric.entry().quantity.unit(1.0));
        let Some(order) = entry.columns.cost else { continue };
        let proxy = metric == Metric::Cpu;
        let column = Column::number(if proxy { "Proxy CPU" } else { entry.title }, unit.name).with_details_if(proxy);
        table.add(column.dispensable(order).help(entry.help), move |row| metric_cell(row, metric, unit));
    }
    let memory = Column::number("Memory", Unit::MEBIBYTES.name).help("Largest memory of the proxy's processes.");
    table.add(memory, |row| usage_cell(row, row.memory.map(|memory| memory.bytes), Unit::MEBIBYTES));
    let memory = Column::number("Memory", "KiB/connection").help("The same by the client's connections.");
    table.add(memory, |row| estimate_cell(row.memory.and_then(|memory| memory.by_connection), Unit::KIBIBYTES));
    let measure = Column::text("Memory is").dispensable(4).help("Which measure of memory the kernel gave.");
    table.add(measure, |row| Some(Cell::from(if row.memory?.proportional { "PSS" } else { "RSS" })));
    let with_warmup = section.all_rows().any(|row| row.warmup.is_some());
    if with_warmup {
        add_warmup(&mut table, 0);
    }
    let table = table.table(
        format!("costs-{}", section.slug()),
        format!("Cost: {}", section.heading()),
        section.all_rows(),
        |row| row_kind(row),
    );
    let with_speed = section.all_rows().any(|row| row.of(Metric::RateBySpeed).is_some());
    Some(
        table
            .with_notes(NOTES)
            .with_notes(with_speed.then_some(SPEED_NOTE))
            .with_notes(with_warmup.then_some(WARMUP_NOTE)),
    )
}

const NOTES: [&str; 2] = [
    "CPU: user and system time of a role's processes in the window, by the answers that the client got in the window. Per core: \
     answers a second of the proxy's CPU time.",
    "Memory: the largest in the window. PSS counts a page that several processes share once, RSS once for each of them, so that RSS \
     is too much where a product has many processes. By connection: all of it over the client's connections, the product's own \
     needs included.",
];

const SPEED_NOTE: &str = "Calc: a calculation of a fixed length, by which runs on machines, or days, of another speed compare better than by \
                          time. The speed is the mean of the block.";

const WARMUP_NOTE: &str = "Warm-up: how long the product was kept busy until what it carried each second kept its level; \
                           \u{201c}never\u{201d}: it had not when the time allowed was over, and what was measured then is of a \
                           product that was still changing.";

/// Adds the time to warm up: "4.0", "never (in 30 s)".
pub(super) fn add_warmup(table: &mut TableOf<'_, Row>, order: u8) {
    let column = Column::number("Warm-up", "s").with_details().dispensable(order);
    table.add(column.help("Until what it carried each second kept its level."), |row| {
        let warmup = row.warmup?;
        if warmup.never == warmup.of {
            return Some(Cell::number("never", f64::MAX).detail(format!("in {} s", short(warmup.seconds.value))));
        }
        let seconds = estimate_cell(Some(warmup.seconds), Unit::SECONDS);
        let never = format!("never in {} of {} trials", warmup.never, warmup.of);
        Some(if warmup.never > 0 { seconds.detail(never) } else { seconds })
    });
}
