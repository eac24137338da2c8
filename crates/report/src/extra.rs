//! Sections that a caller of [`make_of`](crate::make_of) adds to a report: prose, tables, charts and text files.
//! `weir-published` makes them; `page` and `markdown` draw them like all other sections.

use std::fmt::Write as _;

use askama::Template;

use crate::charts::Chart;
use crate::error::ReportError;
use crate::page;
use crate::run::Broken;
use crate::tables::{Table, html, markdown as markdown_table};

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
    /// A picture.
    Chart(Box<Chart>),
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

impl Extra {
    /// The items of all sections.
    fn items(&self) -> impl Iterator<Item = &self::Item> {
        self.sections.iter().flat_map(|section| &section.items)
    }

    /// Its texts that are files: path in the report's folder, and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items().filter_map(|item| match item {
            Item::Text { text, file, .. } => Some((file.as_str(), text.as_str())),
            _ => None,
        })
    }

    /// Its pictures.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.items().filter_map(|item| match item {
            Item::Chart(chart) => Some(chart.as_ref()),
            _ => None,
        })
    }
}

#[derive(Template)]
#[template(path = "extra.html")]
struct Page<'a> {
    sections: Vec<DrawnSection<'a>>,
}

struct DrawnSection<'a> {
    id: &'a str,
    heading: &'a str,
    items: Vec<Drawn<'a>>,
}

enum Drawn<'a> {
    Paragraph(&'a str),
    /// Escaped already.
    Html(String),
    Text(&'a str, &'a str, &'a str),
}

/// The sections as sections of the page.
///
/// # Errors
///
/// Only when a template is wrong.
pub(crate) fn html(extra: &[ExtraSection]) -> Result<String, ReportError> {
    let mut sections = Vec::new();
    for section in extra {
        let items = section.items.iter().map(drawn).collect::<Result<_, _>>()?;
        sections.push(DrawnSection { id: &section.id, heading: &section.heading, items });
    }
    Page { sections }.render().map_err(|error| ReportError::draw("extra sections", error))
}

fn drawn(item: &Item) -> Result<Drawn<'_>, ReportError> {
    Ok(match item {
        Item::Paragraph(text) => Drawn::Paragraph(text),
        Item::Table(table) => Drawn::Html(html::draw(table)?),
        Item::Chart(chart) => Drawn::Html(page::chart(chart)?),
        Item::Text { summary, text, file } => Drawn::Text(summary, text, file),
    })
}

/// The sections as markdown. Preformatted texts are linked as files.
pub(crate) fn markdown(extra: &[ExtraSection]) -> String {
    let mut text = String::new();
    for section in extra {
        let _ = writeln!(text, "## {}\n", markdown_table::escape(&section.heading));
        items(&mut text, section);
    }
    text
}

fn items(text: &mut String, section: &ExtraSection) {
    let mut in_list = false;
    for item in &section.items {
        let list = matches!(item, Item::Text { .. });
        if in_list && !list {
            text.push('\n');
        }
        in_list = list;
        match item {
            Item::Paragraph(words) => {
                let _ = writeln!(text, "{}\n", markdown_table::escape(words));
            }
            Item::Table(table) => {
                let _ =
                    writeln!(text, "### {}\n\n{}", markdown_table::escape(&table.title), markdown_table::draw(table));
            }
            Item::Chart(chart) => {
                let _ = writeln!(text, "![{}](charts/{}.svg)\n", markdown_table::escape(&chart.alt), chart.name);
            }
            Item::Text { summary, file, .. } => {
                let _ = writeln!(text, "- [{}]({file})", markdown_table::escape(summary));
            }
        }
    }
    if in_list {
        text.push('\n');
    }
}
