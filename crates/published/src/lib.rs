//! Report sections that compare a run with what was published of its suite: ratios between products, how far the orders
//! agree, pairs of products in another order with possible causes, and the document's own tables and pictures with this
//! run's numbers. The input is the figures in `suites/published/` and a run. `weir run` and `weir report` call
//! [`sections`] and pass the result to the report.
//!
//! This crate knows no product and no document by name (layouts are data). It does not know how a page or a markdown
//! file is drawn.

mod causes;
mod charts;
mod context;
mod document_tables;
mod facts;
mod figures;
mod layout;
mod metrics;
mod points;
mod ratios;
mod run_cases;
mod tables;
mod tool_output;
mod variant;

use context::Context;
use run_cases::RunCases;
use weir_model::text::{counted, list};
use weir_report::extra::{Extra, ExtraSection, Item};
use weir_report::run::Run;
use weir_report::summary::Summary;

/// The sections of a run's report; empty when nothing was published of its suite.
pub fn sections(run: &Run, summary: &Summary) -> Extra {
    let Some(source) = figures::source(&summary.suite) else { return Extra::default() };
    let scaled = match run.environment.as_ref().map(|environment| environment.scaled.as_slice()) {
        None => "What was scaled is not known.".to_string(),
        Some([]) => "Nothing was scaled.".to_string(),
        Some(parts) => format!("Scaled here: {}.", parts.join("; ")),
    };
    let cases = RunCases::of(run, summary, &source.layout.loads());
    let context = Context { cases: &cases, source: &source, scaled: &scaled };
    let mut broken = Vec::new();
    let sections = [
        ("published", "Published figures and this run", comparison(&context)),
        (
            "published-tables",
            "The published tables, with this run's numbers",
            document_tables::tables(&context).into_iter().map(Item::Table).collect(),
        ),
        (
            "published-pictures",
            "The published pictures, with this run's numbers",
            charts::items(&context, summary, &mut broken),
        ),
        (
            "published-shaped",
            "Every measurement in the format of the document's tool",
            tool_output::items(&context, &mut broken),
        ),
    ];
    let sections = sections.into_iter().filter(|(_, _, items): &(_, _, Vec<Item>)| !items.is_empty());
    let sections =
        sections.map(|(id, heading, items)| ExtraSection { id: id.to_string(), heading: heading.to_string(), items });
    Extra { sections: sections.collect(), broken }
}

fn comparison(context: &Context<'_>) -> Vec<Item> {
    let all = ratios::comparisons(context.cases, context.source);
    let points = points::tables(context);
    if all.is_empty() && points.is_empty() {
        return Vec::new();
    }
    let mut items = vec![Item::Paragraph(introduction(context, all.first()))];
    items.extend(tables::agreement(context, &all).map(Item::Table));
    items.extend(metrics::METRICS.iter().filter_map(|metric| tables::ratios(context, *metric, &all)).map(Item::Table));
    items.extend(tables::other_order(context, &all).into_iter().map(Item::Table));
    items.extend(tables::origin_connections(context).map(Item::Table));
    items.extend(points.into_iter().map(Item::Table));
    items
}

/// The source of the figures, what was measured, and on how many cores, as far as `first` says it.
fn introduction(context: &Context<'_>, first: Option<&ratios::Comparison>) -> String {
    let source = context.source;
    let mut text = String::new();
    if let Some(document) = source.documents.first() {
        text.push_str(&format!("Published as \u{201c}{}\u{201d}, {}.", document.title, document.address));
    }
    let with_version = source.products.iter().filter(|product| !product.version.is_empty());
    let versions: Vec<String> = with_version.map(|product| format!("{} {}", product.called, product.version)).collect();
    if !versions.is_empty() {
        text.push_str(&format!(" It measured {}.", list(&versions)));
    }
    let published = first.and_then(|first| source.condition(&first.case, "", &first.variant, "cores"));
    let own = first.and_then(|first| context.cases.case(&first.case)).and_then(run_cases::RunCase::cores);
    if let (Some(published), Some(own)) = (published, own) {
        let cores = |n: f64| counted(n as u64, "core");
        text.push_str(&format!(" The proxy had {} there and {} here.", cores(published.value), cores(f64::from(own))));
    }
    text
}
