//! What was published of a suite, laid beside what was measured here: ratios between products, how far the orders agree, a
//! sentence for each pair that stands in another order with what is known of why, and the document's tables and pictures
//! drawn with our numbers. Made of the figures in `suites/published/` and a run; which document is laid out how is data there,
//! and no code here knows a product.
//!
//! Does not know how a page or a markdown file looks: it yields blocks, which both draw.

mod agree;
mod causes;
mod compare;
pub(crate) mod data;
pub(crate) mod document;
pub(crate) mod draw;
mod facts;
pub(crate) mod layout;
mod opposite;
pub(crate) mod ours;
pub(crate) mod quantity;
mod shapes;
mod story;
mod tables;
pub(crate) mod variant;
mod words;

use crate::chart::Chart;
use crate::charts::{self, published::Originals};
use crate::run::{Broken, Run};
use crate::summary::Summary;
use crate::tables::Table;
use data::Source;
use ours::Ours;

/// What a report shows of published figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// In reading order.
    pub blocks: Vec<Block>,
}

/// A part with a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Anchor, unique in a report.
    pub id: String,
    /// What it is about.
    pub heading: String,
    /// In reading order.
    pub items: Vec<Item>,
}

/// Something in a block.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A paragraph.
    Paragraph(String),
    /// A list, one sentence a line.
    Sentences(Vec<String>),
    /// A list of which there may be more than somebody reads.
    Digest {
        /// One sentence a line, what matters most first.
        sentences: Vec<String>,
        /// What `every` has.
        summary: String,
        /// The same in full, to be folded up; empty where `sentences` are that.
        every: Vec<String>,
    },
    /// A table.
    Table(Table),
    /// A picture.
    Chart(Box<Chart>),
    /// Text to be kept as it is, folded up.
    Text {
        /// What it is.
        summary: String,
        /// It.
        text: String,
        /// Where it stands as a file, from the report's folder on.
        file: String,
    },
}

impl Published {
    /// Its texts that are files of their own: where each stands in the report's folder, and what is in it.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.blocks.iter().flat_map(|block| &block.items).filter_map(|item| match item {
            Item::Text { text, file, .. } => Some((file.as_str(), text.as_str())),
            _ => None,
        })
    }

    /// Its pictures.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().flat_map(|block| &block.items).filter_map(|item| match item {
            Item::Chart(chart) => Some(chart.as_ref()),
            _ => None,
        })
    }
}

/// What the report of a run shows of published figures; `None` when none were published of its suite. Files that could not be
/// read go into `broken`.
pub fn published(run: &Run, summary: &Summary, broken: &mut Vec<Broken>) -> Option<Published> {
    let source = data::source(&summary.suite)?;
    let ours = Ours::of(run, summary, &source.loads);
    let scaled = scaled(run);
    let pictures = charts::published::charts(&Originals { ours: &ours, source: &source, scaled: &scaled }, broken);
    let tables = document::tables(&ours, &source, &scaled);
    let blocks = [
        Block {
            id: "published".to_string(),
            heading: "Published figures beside ours".to_string(),
            items: comparison(&ours, &source, &scaled),
        },
        Block {
            id: "published-tables".to_string(),
            heading: "The published tables, with this run's numbers".to_string(),
            items: tables.into_iter().map(Item::Table).collect(),
        },
        Block {
            id: "published-pictures".to_string(),
            heading: "The published pictures, with this run's numbers".to_string(),
            items: pictures.into_iter().map(|chart| Item::Chart(Box::new(chart))).collect(),
        },
        Block {
            id: "published-shaped".to_string(),
            heading: "Every measurement in the document's shape".to_string(),
            items: shapes::items(&ours, &source, &scaled, broken),
        },
    ];
    let blocks: Vec<Block> = blocks.into_iter().filter(|block| !block.items.is_empty()).collect();
    (!blocks.is_empty()).then_some(Published { blocks })
}

/// What of the suite was scaled, a sentence to stand beside every figure.
fn scaled(run: &Run) -> String {
    match run.environment.as_ref().map(|environment| environment.scaled.as_slice()) {
        None => "What was scaled is not known.".to_string(),
        Some([]) => "Nothing was scaled.".to_string(),
        Some(words) => format!("Scaled here: {}.", words.join("; ")),
    }
}

fn comparison(ours: &Ours<'_>, source: &Source, scaled: &str) -> Vec<Item> {
    let all = compare::comparisons(ours, source);
    if all.is_empty() {
        return Vec::new();
    }
    let mut items = vec![Item::Paragraph(where_from(source))];
    let sentences = |items: &mut Vec<Item>, head: &str, sentences: Vec<String>| {
        if !sentences.is_empty() {
            items.push(Item::Paragraph(head.to_string()));
            items.push(Item::Sentences(sentences));
        }
    };
    items.push(Item::Sentences(agree::agreement(ours, &all)));
    let origin = story::origin(ours, source, &all);
    sentences(&mut items, "What the origin saw here, from its own counters:", origin);
    let mut document = story::document(ours, source, &all);
    document.extend(agree::missing(&all));
    sentences(&mut items, "What to know of the published figures:", document);
    items.extend(other_order(opposite::opposite(ours, source, &all)));
    items.extend(tables::agreement(ours, &all, scaled).map(Item::Table));
    let side_by_side = quantity::COMPARED.iter().filter_map(|c| tables::side_by_side(ours, *c, &all, scaled));
    items.extend(side_by_side.map(Item::Table));
    items.retain(|item| !matches!(item, Item::Sentences(sentences) if sentences.is_empty()));
    items
}

/// The pairs of products that stand in another order.
fn other_order(opposite: opposite::Opposite) -> Vec<Item> {
    let opposite::Opposite { of_all, pairs, sure, every } = opposite;
    if pairs.is_empty() {
        return Vec::new();
    }
    let first = if (1..pairs.len()).contains(&sure) { ", those first of which our intervals are sure" } else { "" };
    let head = format!("Pairs of products that stand in another order here{first}. {of_all}");
    let summary = format!("Each case of each pair, with its own numbers ({})", every.len());
    vec![Item::Paragraph(head.trim_end().to_string()), Item::Digest { sentences: pairs, summary, every }]
}

/// Where the figures come from.
fn where_from(source: &Source) -> String {
    let Some(document) = source.documents.first() else { return String::new() };
    let versions: Vec<String> = source
        .products
        .iter()
        .filter(|product| !product.version.is_empty())
        .map(|product| format!("{} {}", product.called, product.version))
        .collect();
    let of = if versions.is_empty() { String::new() } else { format!(" It measured {}.", words::list(&versions)) };
    format!("Published as \u{201c}{}\u{201d}, {}.{of}", document.title, document.address)
}
