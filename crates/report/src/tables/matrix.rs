//! Builds the table of the ranked number of every product in every section. Sections or products run downwards,
//! whichever are more. Called by `page`, `markdown` and `terminal`.

use super::build::rank_words;
use super::{Cell, Column, RowKind, Table, TableRow};
use crate::run::BASELINE;
use crate::summary::{Row, Section, Summary};
use weir_model::text::{Unit, least, short};

/// All sections beside each other: the rank and the ranked number of each product.
pub fn matrix(summary: &Summary) -> Table {
    let entries = entries(summary);
    let units: Vec<Unit> = summary.sections.iter().map(unit).collect();
    let by_product = summary.sections.len() <= entries.len().min(6);
    let (columns, rows) =
        if by_product { products_down(summary, &entries, &units) } else { sections_down(summary, &entries, &units) };
    Table {
        id: "overview".to_string(),
        title: "Every workload under every load".to_string(),
        columns,
        rows,
        notes: vec![
            "Medians over blocks of what each section ranks by: right answers a second, or the 99th percentile of latency \
             where the rate was given. A rank such as 1\u{2013}2 is shared. Each has a section below."
                .to_string(),
        ],
    }
}

/// Every product with its profile, each once: the baseline first.
fn entries(summary: &Summary) -> Vec<&Row> {
    let mut entries: Vec<&Row> = Vec::new();
    let baselines = summary.sections.iter().flat_map(|section| &section.baseline);
    for row in baselines.chain(summary.sections.iter().flat_map(|section| &section.rows)) {
        if !entries.iter().any(|known| known.entry == row.entry) {
            entries.push(row);
        }
    }
    entries
}

fn unit(section: &Section) -> Unit {
    let values = section.all_rows().filter_map(|row| row.of(section.ranked_by)).map(|estimate| estimate.value);
    section.ranked_by.entry().quantity.unit(least(values))
}

fn products_down(summary: &Summary, entries: &[&Row], units: &[Unit]) -> (Vec<Column>, Vec<TableRow>) {
    let profiles = entries.iter().any(|row| row.label != row.title);
    let mut columns = vec![Column::text("Product"), Column::text("Profile").dispensable(if profiles { 0 } else { 2 })];
    for (section, unit) in summary.sections.iter().zip(units) {
        let name = format!("{} {}: {}", section.workload, section.load, section.ranked_by.key());
        columns.push(Column::number(&name, unit.name).with_details().help(&section.heading()));
    }
    let rows = entries.iter().map(|entry| {
        let baseline = entry.entry.product == BASELINE;
        let profile = if baseline { "no proxy" } else { &entry.entry.profile };
        let mut cells = vec![Cell::text(&entry.title), Cell::text(profile)];
        cells.extend(summary.sections.iter().zip(units).map(|(section, unit)| cell(entry, section, *unit)));
        TableRow { kind: if baseline { RowKind::Baseline } else { RowKind::Plain }, cells }
    });
    (columns, rows.collect())
}

fn sections_down(summary: &Summary, entries: &[&Row], units: &[Unit]) -> (Vec<Column>, Vec<TableRow>) {
    let mut columns = vec![Column::text("Workload"), Column::text("Load"), Column::text("Of")];
    columns.extend(entries.iter().map(|entry| Column::number(&entry.label, "").with_details()));
    let rows = summary.sections.iter().zip(units).map(|(section, unit)| {
        let of = format!("{}, {}", section.ranked_by.key(), unit.name);
        let mut cells = vec![Cell::text(&section.workload), Cell::text(&section.load), Cell::text(of)];
        cells.extend(entries.iter().map(|entry| cell(entry, section, *unit)));
        TableRow { kind: RowKind::Plain, cells }
    });
    (columns, rows.collect())
}

fn cell(entry: &Row, section: &Section, unit: Unit) -> Cell {
    let row = section.all_rows().find(|row| row.entry == entry.entry);
    let Some((row, estimate)) = row.and_then(|row| Some((row, row.of(section.ranked_by)?))) else {
        return Cell::none();
    };
    let mark = if row.suspect() { "*" } else { "" };
    let mut cell = Cell::number(format!("{}{mark}", short(estimate.value / unit.size)), estimate.value);
    cell.detail = match row.rank {
        _ if row.entry.product == BASELINE => "baseline".to_string(),
        Some(rank) => format!("rank {}", rank_words(rank)),
        None => "not ranked".to_string(),
    };
    cell
}
