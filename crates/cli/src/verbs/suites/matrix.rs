//! The table of workloads by loads, with the number of products in each cell. `weir suites show` prints it.

use serde::Serialize;
use weir_model::record::Skipped;
use weir_model::suite::{Entry, Suite};

use weir_model::text::columns;

/// One cell: the products that a workload runs with under a load.
#[derive(Debug, Serialize)]
pub struct Cell {
    workload: String,
    load: String,
    products: Vec<Entry>,
}

/// Every cell, empty ones too.
pub fn cells(suite: &Suite, skipped: &[Skipped]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for workload in &suite.workloads {
        for load in &suite.loads {
            let cases = suite.cases(load, skipped);
            let mine = cases.into_iter().filter(|(one, _)| one.name == workload.name);
            cells.push(Cell {
                workload: workload.name.clone(),
                load: load.name.clone(),
                products: mine.map(|(_, entry)| entry.clone()).collect(),
            });
        }
    }
    cells
}

/// A line for each workload and a column for each load, which is numbered because names of loads are long.
pub fn lines(suite: &Suite, skipped: &[Skipped]) -> Vec<String> {
    let cells = cells(suite, skipped);
    let numbers = (1..=suite.loads.len()).map(|number| format!("{number:>2}"));
    let head: Vec<String> = std::iter::once(String::new()).chain(numbers).collect();
    let row = |row: &[Cell]| -> Vec<String> {
        let name = row.first().map(|cell| cell.workload.clone()).unwrap_or_default();
        let count = |cell: &Cell| match cell.products.len() {
            0 => " -".to_owned(),
            products => format!("{products:>2}"),
        };
        std::iter::once(name).chain(row.iter().map(count)).collect()
    };
    let rows = cells.chunks(suite.loads.len().max(1)).map(row);
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}
