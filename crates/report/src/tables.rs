//! A table as plain data: columns with units, rows and notes. The submodules build the tables of a report, and draw a
//! table as text, markdown or HTML. `page`, `markdown` and `terminal` use them, and so do `weir-compare` and
//! `weir-published`.

mod changes;
mod costs;
mod gateways;
pub mod html;
pub mod markdown;
mod prices;
mod products;
mod streams;
pub mod text;
mod trials;

pub(crate) use costs::knee_words;
pub use costs::{cost, every as points, parts, side_by_side};
pub use products::{estimate_cell, matrix, metric_cell, overall, ranking, usage_cell};
pub(crate) use products::{rank_words, row_kind};
pub use trials::{
    broken_files, clients, environment, errors, faults, findings, host_facts, machine_facts, operations, run_facts,
    trials,
};

use crate::run::Run;
use crate::summary::{Section, Summary};
use weir_model::record::Verdict;
use weir_model::text::{count, short};

/// The tables that answer a suite's question where ranks do not: of streams, of prices, and of routes that changed.
pub fn particular(summary: &Summary) -> Vec<Table> {
    let (streams, changes) = (streams::streams(summary), changes::changes(summary));
    streams.into_iter().chain(prices::prices(summary)).chain(changes).collect()
}

/// The tables of a section that not every section has, in reading order.
pub fn occasional(run: &Run, section: &Section) -> impl Iterator<Item = Table> {
    let of_parts = [parts(run, section), operations(run, section), faults(run, section)];
    let of_gateways = [gateways::spread(run, section), gateways::access_logs(run, section)];
    of_parts.into_iter().chain(of_gateways).flatten().chain(clients(section))
}

/// Columns, rows, and how the numbers were obtained.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Anchor, unique in a report.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// From top to bottom.
    pub rows: Vec<TableRow>,
    /// Sentences beside it.
    pub notes: Vec<String>,
    /// Remarks on single rows, a list below it.
    pub remarks: Vec<String>,
}

/// More remarks than this are folded up.
const REMARKS: usize = 5;

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Header.
    pub name: String,
    /// Unit, empty for none.
    pub unit: String,
    /// Numbers stand right.
    pub numeric: bool,
    /// 0 is always drawn; where space is short the largest go first.
    pub dispensable: u8,
    /// Intervals are drawn in text and markdown too, not only in HTML.
    pub details: bool,
    /// What the header means, one sentence; empty when it says so itself.
    pub help: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// The kind of row.
    pub kind: RowKind,
    /// One a column.
    pub cells: Vec<Cell>,
}

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// On top, apart; stays there whatever the table is sorted by.
    Baseline,
    /// An ordinary row.
    Plain,
    /// A row with a mark.
    Marked,
    /// Shown and not ranked.
    Unranked,
}

impl From<Verdict> for RowKind {
    fn from(verdict: Verdict) -> RowKind {
        match verdict {
            Verdict::Valid => RowKind::Plain,
            Verdict::Suspect => RowKind::Marked,
            Verdict::Invalid | Verdict::Error => RowKind::Unranked,
        }
    }
}

/// One cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// What is read first.
    pub main: String,
    /// What stands behind it, such as the interval; empty for nothing.
    pub detail: String,
    /// What a number is sorted by.
    pub sort: Option<f64>,
    /// Where it leads to on a page; empty for nowhere.
    pub link: String,
}

/// What stands in a column for one thing.
type Filled<'a, T> = Box<dyn Fn(&T) -> Cell + 'a>;

/// A table of things of one type under construction: each column with what stands in it.
pub struct TableOf<'a, T> {
    columns: Vec<(Column, Filled<'a, T>)>,
}

impl<'a, T: 'a> TableOf<'a, T> {
    /// A table without columns.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        TableOf { columns: Vec::new() }
    }

    /// Adds a column to the right of the others.
    pub fn add<C: Into<Cell>>(&mut self, column: Column, cell: impl Fn(&T) -> C + 'a) {
        self.columns.push((column, Box::new(move |row| cell(row).into())));
    }

    /// The table with a row for each of `rows`.
    pub fn table<'r>(
        self,
        id: impl Into<String>,
        title: impl Into<String>,
        rows: impl IntoIterator<Item = &'r T>,
        kind: impl Fn(&T) -> RowKind,
    ) -> Table
    where
        T: 'r,
    {
        let cells = |row| self.columns.iter().map(|(_, cell)| cell(row)).collect();
        let rows = rows.into_iter().map(|row| TableRow { kind: kind(row), cells: cells(row) }).collect();
        let columns = self.columns.into_iter().map(|(column, _)| column).collect();
        Table { id: id.into(), title: title.into(), columns, rows, ..Table::default() }
    }
}

impl Table {
    /// The same with sentences beside it.
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = impl Into<String>>) -> Table {
        self.notes.extend(notes.into_iter().map(Into::into));
        self
    }
}

impl Column {
    /// A column of words.
    pub fn text(name: &str) -> Column {
        Column {
            name: name.to_string(),
            unit: String::new(),
            numeric: false,
            dispensable: 0,
            details: true,
            help: String::new(),
        }
    }

    /// A column of numbers; `unit` may be empty.
    pub fn number(name: &str, unit: &str) -> Column {
        Column { unit: unit.to_string(), numeric: true, details: false, ..Column::text(name) }
    }

    /// Leaves out the column where there is no room; of several the highest `order` first.
    pub fn dispensable(mut self, order: u8) -> Column {
        self.dispensable = order;
        self
    }

    /// Shows the details of its cells.
    pub fn with_details(self) -> Column {
        self.with_details_if(true)
    }

    /// Shows the details of its cells, or does not.
    pub fn with_details_if(mut self, details: bool) -> Column {
        self.details = details;
        self
    }

    /// Adds an explanation that is shown when the reader points at the header.
    pub fn help(mut self, help: &str) -> Column {
        self.help = help.to_string();
        self
    }

    /// "p99, ms".
    pub fn header(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{}, {}", self.name, self.unit) }
    }
}

impl Cell {
    /// A number as it is shown, and the one that it is sorted by.
    pub fn number(main: impl Into<String>, sort: f64) -> Cell {
        Cell { main: main.into(), sort: sort.is_finite().then_some(sort), ..Cell::default() }
    }

    /// A number in three digits.
    pub fn short(value: f64) -> Cell {
        Cell::number(short(value), value)
    }

    /// A count in all its digits.
    pub fn count(n: impl Into<u64>) -> Cell {
        let n = n.into();
        Cell::number(count(n), n as f64)
    }

    /// An empty cell.
    pub fn none() -> Cell {
        Cell::from("\u{2013}")
    }

    /// The cell with something behind it.
    pub fn detail(mut self, detail: impl Into<String>) -> Cell {
        self.detail = detail.into();
        self
    }

    /// The cell with a link on its page.
    pub fn link(mut self, address: impl Into<String>) -> Cell {
        self.link = address.into();
        self
    }

    /// "45,100 (44,200-46,000)", or only the first part.
    pub fn words(&self, details: bool) -> String {
        if details && !self.detail.is_empty() { format!("{} ({})", self.main, self.detail) } else { self.main.clone() }
    }
}

impl From<String> for Cell {
    fn from(main: String) -> Cell {
        Cell { main, ..Cell::default() }
    }
}

impl From<&str> for Cell {
    fn from(main: &str) -> Cell {
        Cell::from(main.to_string())
    }
}

impl From<Option<Cell>> for Cell {
    fn from(cell: Option<Cell>) -> Cell {
        cell.unwrap_or_else(Cell::none)
    }
}

/// The columns that fit into `room`, by their places: those that can be spared go first, the most dispensable before others.
fn fitting(table: &Table, room: usize, width: impl Fn(usize) -> usize) -> Vec<usize> {
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut kept: Vec<usize> = (0..table.columns.len()).collect();
    while kept.iter().map(|i| widths[*i]).sum::<usize>() > room {
        let least_wanted = kept.iter().copied().max_by_key(|i| table.columns[*i].dispensable);
        match least_wanted.filter(|i| table.columns[*i].dispensable > 0) {
            Some(i) => kept.retain(|kept| *kept != i),
            None => break,
        }
    }
    kept
}

/// The names of the columns that are not among `kept`; `None` when all are.
fn dropped(table: &Table, kept: &[usize]) -> Option<String> {
    let names = (0..table.columns.len()).filter(|i| !kept.contains(i)).map(|i| table.columns[i].name.as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The first digits of a SHA-256.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Text from a run may hold anything; a table's cell is one line without control characters.
pub fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}
