//! Builds the table of the ranked number of every product in every section. Sections or products run downwards,
//! whichever are more. Called by `page`, `markdown` and `terminal`.

use weir_model::text::{Unit, least, short};

use super::cells::{profile_words, rank_words};
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{Row, Section, Summary};

/// All sections beside each other: the rank and the ranked number of each product.
pub fn matrix(summary: &Summary) -> Table {
    let entries = entries(summary);
    let (id, title) = ("overview", "Every workload under every load");
    let table = if summary.sections.len() <= entries.len().min(6) {
        let kind = |row: &&Row| if row.is_baseline() { RowKind::Baseline } else { RowKind::Plain };
        products_down(summary, &entries).table(id, title, &entries, kind)
    } else {
        sections_down(&entries).table(id, title, &summary.sections, |_| RowKind::Plain)
    };
    table.with_notes([
        "Medians over blocks of what each section ranks by: right answers a second, or the 99th percentile of latency where the \
         rate was given. A rank such as 1\u{2013}2 is shared. Each has a section below.",
    ])
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

fn products_down<'a>(summary: &'a Summary, entries: &[&'a Row]) -> TableOf<'a, &'a Row> {
    let profiles = entries.iter().any(|row| row.label != row.title);
    let mut table = TableOf::new();
    table.add(Column::text("Product"), |row: &&Row| row.title.clone());
    table.add(Column::text("Profile").dispensable(if profiles { 0 } else { 2 }), |row: &&Row| {
        profile_words(row).to_string()
    });
    for section in &summary.sections {
        let name = format!("{} {}: {}", section.workload, section.load, section.ranked_by.key());
        let column = Column::number(&name, unit(section).name).with_details().help(&section.heading());
        table.add(column, |row: &&Row| cell(row, section));
    }
    table
}

fn sections_down<'a>(entries: &[&'a Row]) -> TableOf<'a, Section> {
    let mut table = TableOf::<Section>::new();
    table.add(Column::text("Workload"), |section| section.workload.clone());
    table.add(Column::text("Load"), |section| section.load.clone());
    table.add(Column::text("Of"), |section| format!("{}, {}", section.ranked_by.key(), unit(section).name));
    for row in entries.iter().copied() {
        table.add(Column::number(&row.label, "").with_details(), move |section| cell(row, section));
    }
    table
}

fn unit(section: &Section) -> Unit {
    let values = section.all_rows().filter_map(|row| row.of(section.ranked_by)).map(|estimate| estimate.value);
    section.ranked_by.entry().quantity.unit(least(values))
}

/// What the section says of this product.
fn cell(entry: &Row, section: &Section) -> Option<Cell> {
    let row = section.all_rows().find(|row| row.entry == entry.entry)?;
    let estimate = row.of(section.ranked_by)?;
    let mark = if row.suspect() { "*" } else { "" };
    let number = Cell::number(format!("{}{mark}", short(estimate.value / unit(section).size)), estimate.value);
    Some(number.detail(match row.rank {
        _ if row.is_baseline() => "baseline".to_string(),
        Some(rank) => format!("rank {}", rank_words(rank)),
        None => "not ranked".to_string(),
    }))
}
