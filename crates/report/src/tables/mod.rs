//! A table as plain data: columns with units, rows and notes. The submodules build the tables of a report, and draw a
//! table as text, markdown or HTML. `page`, `markdown` and `terminal` use them, and so do `weir-compare` and
//! `weir-published`.

mod build;
mod cost;
pub mod html;
pub mod markdown;
mod matrix;
mod overall;
mod points;
mod ranking;
pub mod text;

pub use build::{broken_files, environment, errors, findings, trials};
pub(crate) use build::{estimate_cell, rank_words};
pub use cost::cost;
pub use matrix::matrix;
pub use overall::overall;
pub(crate) use points::knee_words;
pub use points::{every as points, side_by_side};
pub use ranking::ranking;

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
}

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

/// One cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// What is read first.
    pub main: String,
    /// What stands behind it, such as the interval; empty for nothing.
    pub detail: String,
    /// What a number is sorted by.
    pub sort: Option<f64>,
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
    pub fn with_details(mut self) -> Column {
        self.details = true;
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
    /// Words.
    pub fn text(main: impl Into<String>) -> Cell {
        Cell { main: main.into(), ..Cell::default() }
    }

    /// A number as it is shown, and the one that it is sorted by.
    pub fn number(main: impl Into<String>, sort: f64) -> Cell {
        Cell { main: main.into(), detail: String::new(), sort: sort.is_finite().then_some(sort) }
    }

    /// An empty cell.
    pub fn none() -> Cell {
        Cell::text("\u{2013}")
    }

    /// "45,100 (44,200-46,000)", or only the first part.
    pub fn words(&self, details: bool) -> String {
        if details && !self.detail.is_empty() { format!("{} ({})", self.main, self.detail) } else { self.main.clone() }
    }
}

/// Text from a run may hold anything; a table's cell is one line without control characters.
pub fn one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}
