//! Draws the blocks of published figures, for the page and for markdown. What a run or a document says is escaped here, as
//! everywhere. Knows blocks, nothing of what is in them.

use std::fmt::Write as _;

use askama::Template;

use super::{Block, Item, Published};
use crate::error::ReportError;
use crate::page;
use crate::tables::{html, markdown};

/// So many sentences of a digest stand in markdown: it is read from top to bottom, and nothing in it can be folded up everywhere.
const SHOWN: usize = 6;

/// The page beside the markdown file.
const PAGE: &str = "report.html";

#[derive(Template)]
#[template(path = "published.html")]
struct Page<'a> {
    blocks: Vec<DrawnBlock<'a>>,
}

struct DrawnBlock<'a> {
    id: &'a str,
    heading: &'a str,
    items: Vec<Drawn<'a>>,
}

enum Drawn<'a> {
    Paragraph(&'a str),
    List(&'a [String]),
    /// A list, and what is folded up behind it.
    Digest(&'a [String], &'a str, &'a [String]),
    /// Escaped already.
    Html(String),
    Text(&'a str, &'a str, &'a str),
}

/// The blocks as sections of the page.
///
/// # Errors
///
/// Only when a template is wrong.
pub(crate) fn html(published: &Published) -> Result<String, ReportError> {
    let mut blocks = Vec::new();
    for block in &published.blocks {
        let items = block.items.iter().map(drawn).collect::<Result<_, _>>()?;
        blocks.push(DrawnBlock { id: &block.id, heading: &block.heading, items });
    }
    Page { blocks }.render().map_err(|error| ReportError::draw("published figures", error))
}

fn drawn(item: &Item) -> Result<Drawn<'_>, ReportError> {
    Ok(match item {
        Item::Paragraph(words) => Drawn::Paragraph(words),
        Item::Sentences(sentences) => Drawn::List(sentences),
        Item::Digest { sentences, summary, every } => Drawn::Digest(sentences, summary, every),
        Item::Table(table) => Drawn::Html(html::draw(table)?),
        Item::Chart(chart) => Drawn::Html(page::chart(chart)?),
        Item::Text { summary, text, file } => Drawn::Text(summary, text, file),
    })
}

/// The blocks as markdown. Texts that are kept as they are are files beside it, and linked.
pub(crate) fn markdown(published: &Published) -> String {
    let mut text = String::new();
    for block in &published.blocks {
        let _ = writeln!(text, "## {}\n", markdown::escape(&block.heading));
        items(&mut text, block);
    }
    text
}

fn list_of<'a>(text: &mut String, sentences: impl IntoIterator<Item = &'a String>) {
    for sentence in sentences {
        let _ = writeln!(text, "- {}", markdown::escape(sentence));
    }
}

/// Where what is left out stands.
fn rest(more: usize, every: usize) -> String {
    let page = format!("[{PAGE}]({PAGE})");
    match (more, every) {
        (0, 0) => String::new(),
        (0, every) => format!("\nEach of the {every} cases, with its own numbers, is in {page}.\n"),
        (more, 0) => format!("- and {more} more, in {page}\n"),
        (more, every) => format!("- and {more} more, in {page}, with each of the {every} cases and its own numbers\n"),
    }
}

fn items(text: &mut String, block: &Block) {
    let mut in_list = false;
    for item in &block.items {
        let list = matches!(item, Item::Text { .. });
        if in_list && !list {
            text.push('\n');
        }
        in_list = list;
        match item {
            Item::Paragraph(words) => {
                let _ = writeln!(text, "{}\n", markdown::escape(words));
            }
            Item::Sentences(sentences) => {
                list_of(text, sentences);
                text.push('\n');
            }
            Item::Digest { sentences, every, .. } => {
                list_of(text, sentences.iter().take(SHOWN));
                text.push_str(&rest(sentences.len().saturating_sub(SHOWN), every.len()));
                text.push('\n');
            }
            Item::Table(table) => {
                let _ = writeln!(text, "### {}\n\n{}", markdown::escape(&table.title), markdown::draw(table));
            }
            Item::Chart(chart) => {
                let _ = writeln!(text, "![{}](charts/{}.svg)\n", markdown::escape(&chart.alt), chart.name);
            }
            Item::Text { summary, file, .. } => {
                let _ = writeln!(text, "- [{}]({file})", markdown::escape(summary));
            }
        }
    }
    if in_list {
        text.push('\n');
    }
}
