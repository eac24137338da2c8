//! Tables of pools of origins: how requests were spread over them. They do not know why a product spreads as it does.

use weir_model::text::percent;

use super::products::{marked, row_kind};
use super::{Cell, Column, Table, TableOf};
use crate::run::{Run, displayed};
use crate::summary::{Row, Section};

/// Origins with a column of their own; the shares of larger pools are given by the least and the most.
const COLUMNS: usize = 8;

/// A product before a pool.
struct Spread<'a> {
    row: &'a Row,
    /// Requests of each origin, of all blocks that count.
    requests: Vec<u64>,
}

impl Spread<'_> {
    /// The share of an origin, as a cell.
    fn share(&self, requests: Option<u64>) -> Cell {
        let all: u64 = self.requests.iter().sum();
        requests.filter(|_| all > 0).map_or_else(Cell::default, |requests| {
            let share = requests as f64 / all as f64;
            Cell::number(percent(share), share)
        })
    }
}

/// A row for each product before a pool; `None` where there is no pool.
pub fn spread(run: &Run, section: &Section) -> Option<Table> {
    let mut rows: Vec<Spread<'_>> = Vec::new();
    for row in section.all_rows() {
        let mut requests: Vec<u64> = Vec::new();
        for trial in displayed(section.trials(run).filter(|trial| trial.is_of(&row.entry))) {
            let addresses = trial.measurement.origin.iter().flat_map(|origin| &origin.addresses);
            for (nth, address) in addresses.enumerate() {
                requests.resize(requests.len().max(nth + 1), 0);
                requests[nth] += address.requests;
            }
        }
        if requests.len() > 1 {
            rows.push(Spread { row, requests });
        }
    }
    let count = rows.iter().map(|spread| spread.requests.len()).max()?;
    let mut table = TableOf::<Spread<'_>>::new();
    table.add(Column::text("Product"), |spread| marked(&spread.row.label, spread.row));
    if count <= COLUMNS {
        for nth in 0..count {
            let column = Column::number(&format!("Origin {}", nth + 1), "");
            table.add(column, move |spread| spread.share(spread.requests.get(nth).copied()));
        }
    } else {
        table.add(Column::number("Least", ""), |spread| spread.share(spread.requests.iter().min().copied()));
        table.add(Column::number("Most", ""), |spread| spread.share(spread.requests.iter().max().copied()));
    }
    table.add(Column::number("Requests", ""), |spread| Cell::count(spread.requests.iter().sum::<u64>()));
    let title = format!("Spread over {count} origins: {}", section.heading());
    Some(table.table(format!("spread-{}", section.slug()), title, &rows, |spread| row_kind(spread.row)))
}
