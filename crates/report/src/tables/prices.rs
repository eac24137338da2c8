//! The tables of prices. They do not know why anything costs much.

use weir_model::text::unique;
use weir_stats::Estimate;

use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{Price, PriceRow, Summary};

/// Prices in requests a second and in CPU time: a row for each workload that has a baseline, and a column for each product.
pub fn prices(summary: &Summary) -> Vec<Table> {
    let rate = table(summary, "price-rate", "Price in requests a second", |price| price.rate);
    let cpu = table(summary, "price-cpu", "Price in CPU time a request", |price| price.cpu);
    rate.into_iter().chain(cpu).collect()
}

fn table(summary: &Summary, id: &str, title: &str, ratio: fn(&Price) -> Option<Estimate>) -> Option<Table> {
    let has_some = |row: &&PriceRow| row.prices.iter().any(|price| ratio(price).is_some());
    let rows: Vec<&PriceRow> = summary.prices.iter().filter(has_some).collect();
    let first = rows.first()?;
    let products = unique(rows.iter().flat_map(|row| row.prices.iter().map(|price| price.product.clone())));
    let mut table = TableOf::<PriceRow>::new();
    table.add(Column::text("With"), |row| row.title.clone());
    if rows.iter().any(|row| row.load != first.load) {
        table.add(Column::text("Load"), |row| row.load.clone());
    }
    for product in products {
        table.add(Column::number(&product, "").with_details(), move |row| {
            let price = row.prices.iter().find(|price| price.product == product)?;
            ratio(price).map(cell)
        });
    }
    let table = table.table(id, title, rows.iter().copied(), |_| RowKind::Plain);
    Some(table.with_notes([
        "Each number is the change beside the same product without it, within blocks, with its 95 % interval.",
    ]))
}

/// A change in percent.
fn cell(ratio: Estimate) -> Cell {
    let percent = |ratio: f64| format!("{:+.0} %", (ratio - 1.0) * 100.0).replace('-', "\u{2212}");
    let detail = if ratio.n > 1 { format!("{} to {}", percent(ratio.low), percent(ratio.high)) } else { String::new() };
    Cell { detail, ..Cell::number(percent(ratio.value), ratio.value) }
}
