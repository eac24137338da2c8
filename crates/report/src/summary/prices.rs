//! The price of more work: each workload that has a `baseline` compared with that, in requests a second and CPU time a request, by
//! product. Ratios are of trials of the same block. It does not know how a table looks.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_model::suite::{Entry, LoadKind, Workload};
use weir_model::text::{grouped, list, unique};
use weir_stats::{Estimate, paired_ratio};

use super::rows::Cases;
use super::section::cases_of;
use super::{LEVEL, Metric, SEED, Section};
use crate::run::{BASELINE, Run};

/// A workload compared with its baseline, under one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PriceRow {
    /// Name.
    pub workload: String,
    /// Name.
    pub load: String,
    /// The workload's title.
    pub title: String,
    /// The prices for all products, in the suite's order. A product that cannot do it has no numbers.
    pub prices: Vec<Price>,
}

/// Its price for one product.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Price {
    /// The product's title.
    pub product: String,
    /// Requests a second: of the workload over its baseline's. `None` also for a rate that is offered, whatever the workload costs.
    pub rate: Option<Estimate>,
    /// CPU time of the product a request: the same.
    pub cpu: Option<Estimate>,
}

/// The rows of a run, in its suite's order; empty where no workload has a baseline.
pub(super) fn rows(run: &Run, sections: &[Section]) -> Vec<PriceRow> {
    let find = |name: &str| run.suite.workloads.iter().find(|workload| workload.name == name);
    let row = |section: &Section| row(run, sections, section, find(&section.workload)?);
    sections.iter().filter_map(row).collect()
}

fn row(run: &Run, sections: &[Section], section: &Section, workload: &Workload) -> Option<PriceRow> {
    let (name, profile) = workload.baseline()?;
    let beside = sections.iter().find(|other| other.workload == name && other.load == section.load)?;
    let (own, others) = (cases_of(run, section), cases_of(run, beside));
    let offered = matches!(section.kind, LoadKind::Open { .. });
    let price = |cases: &Cases<'_>| {
        let profile = profile.unwrap_or(&cases.entry.profile);
        let is_base = |entry: &Entry| entry.product == cases.entry.product && entry.profile == profile;
        let base = others.iter().find(|other| is_base(other.entry) && other.ranked())?;
        let blocks = &section.block_numbers;
        let ratio = |metric: Metric| {
            let values = |of: &Cases<'_>| of.by_block(blocks, |window| metric.value(window));
            paired_ratio(&values(cases), &values(base), LEVEL, SEED)
        };
        Some(Price {
            product: run.title_of(&cases.entry.product).to_owned(),
            rate: if offered { None } else { ratio(Metric::Rate) },
            cpu: ratio(Metric::Cpu),
        })
    };
    let products = run.suite.entries.iter().map(|entry| entry.product.as_str()).filter(|product| *product != BASELINE);
    let of = |product: &str| {
        let found = own.iter().find(|cases| cases.entry.product == product && cases.ranked()).and_then(price);
        found.unwrap_or_else(|| Price { product: run.title_of(product).to_owned(), rate: None, cpu: None })
    };
    let prices: Vec<Price> = unique(products).into_iter().map(of).collect();
    prices.iter().any(|price| price.rate.is_some() || price.cpu.is_some()).then(|| PriceRow {
        workload: section.workload.clone(),
        load: section.load.clone(),
        title: section.workload_title.clone(),
        prices,
    })
}

/// The highest price of each product, in requests a second, the highest of all first; `None` where nothing costs any.
pub(super) fn answer(rows: &[PriceRow]) -> Option<String> {
    let mut most: BTreeMap<&str, (f64, &str)> = BTreeMap::new();
    for (row, price) in rows.iter().flat_map(|row| row.prices.iter().map(move |price| (row, price))) {
        let Some(rate) = price.rate.filter(|rate| rate.value < 1.0) else { continue };
        let highest = most.entry(&price.product).or_insert((rate.value, &row.title));
        if rate.value < highest.0 {
            *highest = (rate.value, &row.title);
        }
    }
    let mut products: Vec<_> = most.into_iter().collect();
    products.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let cost = |(product, (ratio, title)): (&str, (f64, &str))| {
        let lost = ((1.0 - ratio) * 100.0).round();
        (title.to_owned(), format!("{product} ({lost} %)"))
    };
    let of_feature =
        |(title, products): (String, Vec<String>)| format!("that of \u{201c}{title}\u{201d} for {}", list(&products));
    let highest: Vec<String> = grouped(products.into_iter().map(cost)).into_iter().map(of_feature).collect();
    (!highest.is_empty()).then(|| format!("The highest price in requests a second is {}.", list(&highest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(product: &str, value: f64) -> Price {
        let rate = Some(Estimate { value, low: value, high: value, n: 3, level: LEVEL });
        Price { product: product.to_owned(), rate, cpu: None }
    }

    fn row(title: &str, prices: Vec<Price>) -> PriceRow {
        PriceRow { workload: "w".to_owned(), load: "l".to_owned(), title: title.to_owned(), prices }
    }

    #[test]
    fn the_answer_names_what_each_product_pays_most_for() {
        let rows = [
            row("a log", vec![price("A", 0.93), price("B", 0.81)]),
            row("JWT", vec![price("A", 0.42)]),
            row("routes", vec![price("B", 1.04), price("C", 1.01)]),
        ];
        let says = "The highest price in requests a second is that of \u{201c}JWT\u{201d} for A (58 %) and that of \
                    \u{201c}a log\u{201d} for B (19 %).";
        assert_eq!(answer(&rows).as_deref(), Some(says));
        let alike = [row("JWT", vec![price("A", 0.42), price("B", 0.5), price("C", 0.9)])];
        let says = "The highest price in requests a second is that of \u{201c}JWT\u{201d} for A (58 %), B (50 %) and C (10 %).";
        assert_eq!(answer(&alike).as_deref(), Some(says));
        assert_eq!(answer(&[]), None);
    }
}
