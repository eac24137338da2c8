//! Sections that a caller of [`make_of`](crate::make_of) adds to a report: prose, tables, charts and text files.
//! `weir-published` makes them; `page` draws them like all other sections.

use crate::charts::Chart;
use crate::run::Broken;
use crate::tables::Table;

/// What a caller adds to a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra {
    /// In reading order; they stand behind the report's own sections.
    pub sections: Vec<ExtraSection>,
    /// Files of the run that could not be read for them.
    pub broken: Vec<Broken>,
}

/// A section with a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtraSection {
    /// Anchor, unique in a report.
    pub id: String,
    /// What it is about.
    pub heading: String,
    /// In reading order.
    pub items: Vec<Item>,
}

/// An element of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A paragraph.
    Paragraph(String),
    /// A table.
    Table(Table),
    /// A long table, folded up.
    Folded(Table),
    /// A list of everything: folded up on the page, a file beside `report.md`.
    Listed {
        /// The list.
        table: Table,
        /// The same as CSV.
        csv: String,
        /// Path of the file in the report's folder.
        file: String,
    },
    /// A picture.
    Chart(Box<Chart>),
    /// Pictures of one kind: folded up on the page, links in `report.md`.
    Charts {
        /// Their title.
        summary: String,
        /// In reading order.
        charts: Vec<Chart>,
    },
    /// Preformatted text: folded up on the page, a file beside `report.md`.
    Text {
        /// Its title.
        summary: String,
        /// The text.
        text: String,
        /// Path of the file in the report's folder.
        file: String,
    },
}

impl ExtraSection {
    /// A section of that anchor and heading.
    pub fn new(id: impl Into<String>, heading: impl Into<String>, items: Vec<Item>) -> ExtraSection {
        ExtraSection { id: id.into(), heading: heading.into(), items }
    }

    /// Its texts that are files: path in the report's folder, and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items.iter().filter_map(|item| match item {
            Item::Text { text, file, .. } | Item::Listed { csv: text, file, .. } => {
                Some((file.as_str(), text.as_str()))
            }
            _ => None,
        })
    }

    /// Its pictures.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.items.iter().flat_map(|item| match item {
            Item::Chart(chart) => std::slice::from_ref(chart.as_ref()),
            Item::Charts { charts, .. } => charts.as_slice(),
            _ => &[],
        })
    }
}

impl Extra {
    /// Its texts that are files: path in the report's folder, and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().flat_map(ExtraSection::files)
    }

    /// Its pictures.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.sections.iter().flat_map(ExtraSection::charts)
    }
}

impl From<Chart> for Item {
    fn from(chart: Chart) -> Item {
        Item::Chart(Box::new(chart))
    }
}
