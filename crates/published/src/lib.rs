//! Sections of a report that compare a run with what was published of its suite: ratios between products, how far the orders
//! agree, what is known of pairs that stand in another order, and the document's own tables and pictures with this run's
//! numbers. Made from the figures in `suites/published/` and a run. `weir run` and `weir report` call [`sections`] and hand the
//! result to the report.
//!
//! Knows no product by name, and not how a page or a markdown file is drawn.

mod agree;
mod causes;
mod charts;
mod compare;
mod data;
mod document;
mod facts;
mod layout;
mod opposite;
mod ours;
mod quantity;
mod shapes;
mod story;
mod tables;
mod variant;
mod words;

use charts::Originals;
use data::Source;
use ours::Ours;
use weir_report::extra::{Extra, ExtraSection, Item};
use weir_report::run::Run;
use weir_report::summary::Summary;

/// What the report of a run shows of published figures; no sections when none were published of its suite.
pub fn sections(run: &Run, summary: &Summary) -> Extra {
    let Some(source) = data::source(&summary.suite) else { return Extra::default() };
    let mut broken = Vec::new();
    let ours = Ours::of(run, summary, &source.loads);
    let scaled = scaled(run);
    let pictures = charts::charts(&Originals { ours: &ours, source: &source, scaled: &scaled }, &mut broken);
    let tables = document::tables(&ours, &source, &scaled);
    let sections = [
        ExtraSection {
            id: "published".to_string(),
            heading: "Published figures beside ours".to_string(),
            items: comparison(&ours, &source, &scaled),
        },
        ExtraSection {
            id: "published-tables".to_string(),
            heading: "The published tables, with this run's numbers".to_string(),
            items: tables.into_iter().map(Item::Table).collect(),
        },
        ExtraSection {
            id: "published-pictures".to_string(),
            heading: "The published pictures, with this run's numbers".to_string(),
            items: pictures.into_iter().map(|chart| Item::Chart(Box::new(chart))).collect(),
        },
        ExtraSection {
            id: "published-shaped".to_string(),
            heading: "Every measurement in the document's shape".to_string(),
            items: shapes::items(&ours, &source, &scaled, &mut broken),
        },
    ];
    let sections = sections.into_iter().filter(|section| !section.items.is_empty()).collect();
    Extra { sections, broken }
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
