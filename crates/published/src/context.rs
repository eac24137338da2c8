//! The input of every table, chart and text of this crate: the run's cases, what was published of their suite, and the
//! order of a document. [`sections`](crate::sections) builds it.

use weir_model::suite::Entry;

use super::figures::Source;
use super::layout::{Order, head};
use super::run_cases::{RunCase, RunCases};

/// A run, and what was published of its suite.
pub(crate) struct Context<'a> {
    pub cases: &'a RunCases<'a>,
    pub source: &'a Source,
    /// The parts of the suite that were scaled, one sentence for every table and chart.
    pub scaled: &'a str,
}

impl<'a> Context<'a> {
    /// The cases that `wanted` accepts, with the entries that were run of them, in a document's order: case by case
    /// with the entries of each product, or product by product within the cases of one head. Only what is in the
    /// document is returned: its tables and pictures are repeated, not extended.
    pub fn document_order(&self, order: Order, wanted: impl Fn(&str) -> bool) -> Vec<(&'a RunCase<'a>, &'a Entry)> {
        let (run, source) = (self.cases, self.source);
        let names = source.cases();
        let cases: Vec<&RunCase<'_>> =
            names.iter().filter(|case| wanted(case)).filter_map(|case| run.case(case)).collect();
        let has_figure =
            |case: &str, product: &str| source.figures.iter().any(|f| f.case == case && f.product == product);
        let mut all: Vec<(&RunCase<'_>, &Entry)> = Vec::new();
        for case in &cases {
            let products = source.products.iter().filter(|product| has_figure(case.name, &product.product));
            let entries = products.flat_map(|product| run.entries(&product.product));
            all.extend(entries.filter(|entry| !case.usable_trials(entry).is_empty()).map(|entry| (*case, entry)));
        }
        if order == Order::HeadProductTail {
            // Sorted by profile before case, so that each profile stays one line of a chart and one block of rows.
            all.sort_by_key(|(case, entry)| {
                let of_head = cases.iter().position(|other| head(other.name) == head(case.name));
                let product = source.products.iter().position(|product| product.product == entry.product);
                (of_head, product, run.profiles.iter().position(|profile| *profile == entry.profile))
            });
        }
        all
    }
}
