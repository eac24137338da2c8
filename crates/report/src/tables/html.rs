//! Draws a table as HTML, which `page.js` can sort and filter. The template escapes everything.

use askama::Template;

use super::{REMARKS, RowKind, Table, TableRow};

#[derive(Template)]
#[template(path = "table.html")]
struct Page<'a> {
    table: &'a Table,
    baseline: Vec<&'a TableRow>,
    others: Vec<&'a TableRow>,
    /// The explanations of the headers as text, for print.
    meanings: String,
}

impl RowKind {
    fn class(&self) -> &'static str {
        match self {
            RowKind::Baseline => "baseline",
            RowKind::Plain => "plain",
            RowKind::Marked => "marked",
            RowKind::Unranked => "unranked",
        }
    }
}

/// The table, its filter and its notes as one `<figure>`.
///
/// # Errors
///
/// Only when the template is wrong.
pub fn draw(table: &Table) -> askama::Result<String> {
    let (baseline, others): (Vec<_>, Vec<_>) = table.rows.iter().partition(|row| row.kind == RowKind::Baseline);
    let meanings = table.columns.iter().filter(|column| !column.help.is_empty());
    let meanings: Vec<String> = meanings.map(|column| format!("{}: {}", column.header(), column.help)).collect();
    Page { table, baseline, others, meanings: meanings.join(" ") }.render()
}
