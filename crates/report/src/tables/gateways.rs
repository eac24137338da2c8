//! Tables of gateways: how requests were spread over a pool of origins, and what products wrote into their access logs. They do not
//! know why a product spreads as it does.

use weir_model::text::{Unit, percent};

use super::products::{marked, row_kind};
use super::{Cell, Column, Table, TableOf};
use crate::run::{Run, Trial, displayed};
use crate::summary::{Row, Section};

/// Origins with a column of their own; the shares of larger pools are given by the least and the most.
const COLUMNS: usize = 8;

/// The products of a section with what their displayed trials have, for those that have it.
fn by_product<'s, T>(run: &Run, section: &'s Section, read: impl Fn(&[&Trial]) -> Option<T>) -> Vec<(&'s Row, T)> {
    let of_row = |row: &'s Row| {
        let trials = displayed(section.trials(run).filter(|trial| trial.is_of(&row.entry)));
        Some((row, read(&trials)?))
    };
    section.all_rows().filter_map(of_row).collect()
}

/// A product before a pool, with the requests of each origin, of all blocks that count.
type Spread<'a> = (&'a Row, Vec<u64>);

/// A row for each product before a pool; `None` where there is no pool.
pub fn spread(run: &Run, section: &Section) -> Option<Table> {
    let rows: Vec<Spread<'_>> = by_product(run, section, |trials| {
        let mut requests: Vec<u64> = Vec::new();
        let origins = trials.iter().filter_map(|trial| trial.measurement.origin.as_ref());
        for (nth, address) in origins.flat_map(|origin| origin.addresses.iter().enumerate()) {
            requests.resize(requests.len().max(nth + 1), 0);
            requests[nth] += address.requests;
        }
        (requests.len() > 1).then_some(requests)
    });
    let count = rows.iter().map(|(_, requests)| requests.len()).max()?;
    let mut table = TableOf::<Spread<'_>>::new();
    table.add(Column::text("Product"), |(row, _)| marked(&row.label, row));
    if count <= COLUMNS {
        for nth in 0..count {
            let column = Column::number(&format!("Origin {}", nth + 1), "");
            table.add(column, move |(_, requests)| share(requests, requests.get(nth)));
        }
    } else {
        table.add(Column::number("Least", ""), |(_, requests)| share(requests, requests.iter().min()));
        table.add(Column::number("Most", ""), |(_, requests)| share(requests, requests.iter().max()));
    }
    table.add(Column::number("Requests", ""), |(_, requests)| Cell::count(requests.iter().sum::<u64>()));
    let title = format!("Spread over {count} origins: {}", section.heading());
    Some(table.table(format!("spread-{}", section.slug()), title, &rows, |(row, _)| row_kind(row)))
}

/// The share of an origin in all requests.
fn share(requests: &[u64], own: Option<&u64>) -> Option<Cell> {
    let all: u64 = requests.iter().sum();
    let share = *own.filter(|_| all > 0)? as f64 / all as f64;
    Some(Cell::number(percent(share), share))
}

/// What a product wrote into its access log.
struct Logged {
    lines: u64,
    bytes: u64,
    sent: u64,
    /// Successful responses a second, the mean of the blocks.
    rate: f64,
}

impl Logged {
    fn bytes_a_line(&self) -> f64 {
        self.bytes as f64 / self.lines.max(1) as f64
    }
}

/// A row for each product with an access log; `None` where there is none.
pub fn access_logs(run: &Run, section: &Section) -> Option<Table> {
    let rows: Vec<(&Row, Logged)> = by_product(run, section, |trials| {
        let measurements = trials.iter().map(|trial| &trial.measurement);
        let logs: Vec<_> = measurements.filter_map(|of| of.access_log.as_ref().zip(of.load.as_ref())).collect();
        (!logs.is_empty()).then(|| Logged {
            lines: logs.iter().map(|(log, _)| log.lines).sum(),
            bytes: logs.iter().map(|(log, _)| log.bytes).sum(),
            sent: logs.iter().map(|(_, load)| load.total.sent).sum(),
            rate: logs.iter().map(|(_, load)| load.rate).sum::<f64>() / logs.len() as f64,
        })
    });
    let mut table = TableOf::<(&Row, Logged)>::new();
    table.add(Column::text("Product"), |(row, _)| marked(&row.label, row));
    table.add(Column::number("Lines", Unit::PER_SECOND.name), |(_, log)| Cell::short(log.rate));
    table.add(Column::number("Bytes", "a line"), |(_, log)| Cell::short(log.bytes_a_line()));
    table.add(Column::number("Written", "MB/s"), |(_, log)| Cell::short(log.bytes_a_line() * log.rate / 1e6));
    table.add(Column::number("Missing", "lines"), |(_, log)| Cell::count(log.sent.saturating_sub(log.lines)));
    let title = format!("Access logs: {}", section.heading());
    let id = format!("access-logs-{}", section.slug());
    (!rows.is_empty()).then(|| table.table(id, title, &rows, |(row, _)| row_kind(row)))
}
