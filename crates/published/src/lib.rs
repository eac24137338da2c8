//! Report sections that compare a run with what was published of its suite: what differs, the machines, every published result beside ours,
//! ratios between products, how far the orders agree, pairs of products in another order with possible causes, and the
//! document's own tables and pictures with this run's numbers. The input is the figures in `suites/published/` and a run. `weir run` and `weir report` call
//! [`sections`] and pass the result to the report; `weir run --as-published --dry-run` shows a [`Document`].
//!
//! This crate knows no product and no document by name (layouts are data). It does not know how a page or a markdown
//! file is drawn.

mod charts;
mod document_tables;
mod figures;
mod layout;
mod machines;
mod numbers;
mod pairs;
mod points;
mod ratios;
mod results;
mod run_cases;
mod tables;
mod tool_output;

use std::collections::BTreeMap;

use run_cases::{Context, RunCases};
use weir_model::text::{counted, list};
use weir_report::extra::{Extra, ExtraSection, Item};
use weir_report::run::Run;
use weir_report::summary::Summary;
use weir_report::tables::Table;

pub use figures::{Difference, Document, differences, document, other_versions};

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
    let compared = comparison(&context);
    let mut differing = Vec::new();
    if !compared.is_empty() {
        differing.push(Item::Paragraph(scaled.clone()));
        differing.extend(differences(&run.suite.name).iter().map(|one| Item::Paragraph(one.plain())));
    }
    let tables = document_tables::tables(&context).into_iter().map(Item::Table).collect();
    let pictures = charts::items(&context, summary, &mut broken);
    let shaped = tool_output::items(&context, &mut broken);
    let sections = [
        ("published", "Published figures and this run", compared),
        ("published-differences", "Differences from the document", differing),
        ("published-tables", "The published tables, with this run's numbers", tables),
        ("published-pictures", "The published pictures, with this run's numbers", pictures),
        ("published-shaped", "Every measurement in the format of the document's tool", shaped),
    ];
    let sections = sections.into_iter().filter(|(.., items): &(_, _, Vec<Item>)| !items.is_empty());
    Extra { sections: sections.map(|(id, heading, items)| ExtraSection::new(id, heading, items)).collect(), broken }
}

fn comparison(context: &Context<'_>) -> Vec<Item> {
    let all = ratios::comparisons(context.cases, context.source);
    let points = points::tables(context);
    let lines = results::lines(context);
    if lines.iter().all(|line| line.measured().is_none()) && points.is_empty() {
        return Vec::new();
    }
    let mut items = vec![Item::Paragraph(introduction(context, all.first()))];
    items.extend(machines::table(context).map(Item::Table));
    items.push(Item::Paragraph(results::sentence(&lines)));
    items.extend(charts::distances(context, &lines).map(Item::from));
    // What deserves attention stands open; what only supports it is folded where it is long.
    let [excluded, open, causes] = tables::other_order(context, &all);
    items.extend(excluded.map(Item::Table));
    items.extend([open, causes].into_iter().flatten().map(folded));
    items.extend(tables::agreement(context, &all).map(folded));
    items.extend(numbers::METRICS.iter().filter_map(|metric| tables::ratios(context, *metric, &all)).map(folded));
    items.extend(tables::origin_connections(context).map(folded));
    items.extend(points.into_iter().map(folded));
    items.push(folded(results::counts(context, &lines)));
    items.extend(results::not_taken(&lines).map(folded));
    items.push(Item::Listed {
        table: results::all_results(context, &lines),
        csv: results::csv(&context.cases.run.suite.name, &lines),
        file: results::FILE.to_string(),
    });
    items
}

/// A table with more rows than this is folded up.
const LONG: usize = 8;

fn folded(table: Table) -> Item {
    if table.rows.len() > LONG { Item::Folded(table) } else { Item::Table(table) }
}

/// The source of the figures, what was measured, and on how many cores, as far as `first` says it.
fn introduction(context: &Context<'_>, first: Option<&ratios::Comparison>) -> String {
    let source = context.source;
    let mut text = String::new();
    if let Some(document) = source.documents.first() {
        text.push_str(&format!("Published as \u{201c}{}\u{201d}, {}.", document.title, document.address));
    }
    let measured = figures::published(&source.products);
    if !measured.is_empty() {
        text.push_str(&format!(" It measured {}.", list(&measured)));
    }
    let ran = context.cases.run.environment.iter().flat_map(|environment| &environment.products);
    let ran: BTreeMap<&str, &str> = ran.map(|facts| (facts.name.as_str(), facts.version.as_str())).collect();
    let others = figures::differing(&source.products, |product| ran.get(product).copied());
    if !others.is_empty() {
        text.push_str(&format!(" Other versions ran here: {}.", others.join("; ")));
    }
    let variant = first.map_or("", |first| &first.variant);
    let machine = source.machines.iter().find(|machine| machine.ran_proxy(variant));
    let own = context.cases.cases().iter().filter_map(run_cases::RunCase::cores).max();
    if let (Some(machine), Some(own)) = (machine, own) {
        let cores = counted(u64::from(own), "CPU");
        text.push_str(&format!(" There the proxy had a machine of the type {}, here it had {cores}.", machine.words()));
    }
    text
}
