//! Orders products while a run goes on, by what is measured so far. `weir run` shows it. It leaves out what the report will
//! not rank either, but it has no intervals and no shared ranks: more blocks may change the order.

use std::collections::BTreeSet;

use weir_model::metric::Metric;
use weir_model::suite::{Entry, Load, LoadKind, Series, Suite, Workload};

use super::overall::rate_order;
use super::row::Cases;
use super::section::is_ranked;
use crate::run::{BASELINE, Trial};

/// The order of products so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Provisional {
    /// What it goes by: the rate, or p99 where no load asks for a rate.
    pub metric: Metric,
    /// Best first, each with its geometric mean over the workloads that all of these were measured in: requests a second, or
    /// microseconds.
    pub products: Vec<(Entry, f64)>,
    /// How many workloads that are.
    pub workloads: usize,
    /// Workloads of the suite.
    pub of: usize,
    /// Products without a number in these workloads, so far.
    pub without: usize,
    /// Products with a workload in which no trial may be ranked, so far.
    pub excluded: usize,
}

/// What is known of a product in a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    /// Nothing.
    Unmeasured,
    /// That it may not be ranked.
    Excluded,
    /// Its median over the blocks.
    Value(f64),
}

/// The order after these trials; `None` until two products have a number in one workload. Products are compared only over
/// workloads that all of them were measured in: at first in that which most of them were measured in.
pub fn provisional(suite: &Suite, trials: &[Trial]) -> Option<Provisional> {
    let (metric, loads) = leading(suite);
    let entries: Vec<&Entry> = suite.entries.iter().filter(|entry| entry.product != BASELINE).collect();
    let columns: Vec<Vec<Cell>> =
        suite.workloads.iter().map(|workload| column(workload, &loads, &entries, trials, metric)).collect();
    let excluded: Vec<bool> = (0..entries.len()).map(|i| columns.iter().any(|c| c[i] == Cell::Excluded)).collect();
    let value = |column: &Vec<Cell>, i: usize| match column[i] {
        Cell::Value(value) if !excluded[i] => Some(value),
        _ => None,
    };
    let measured = |column: &Vec<Cell>| (0..entries.len()).filter(|i| value(column, *i).is_some()).collect::<Vec<_>>();
    // The last of several largest is the first of the suite.
    let among = columns.iter().rev().map(measured).max_by_key(Vec::len).filter(|among| among.len() > 1)?;
    let common: Vec<&Vec<Cell>> =
        columns.iter().filter(|column| among.iter().all(|i| value(column, *i).is_some())).collect();
    let mean = |i: &usize| {
        let logs: f64 = common.iter().filter_map(|column| value(column, *i)).map(f64::ln).sum();
        (logs / common.len() as f64).exp()
    };
    let mut products: Vec<(Entry, f64)> = among.iter().map(|i| (entries[*i].clone(), mean(i))).collect();
    products.sort_by(|a, b| if metric.higher_is_better() { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let excluded = excluded.iter().filter(|out| **out).count();
    Some(Provisional {
        metric,
        workloads: common.len(),
        of: suite.workloads.len(),
        without: entries.len() - products.len() - excluded,
        excluded,
        products,
    })
}

/// The metric that the order goes by, and the loads that it may come from, best first.
fn leading(suite: &Suite) -> (Metric, Vec<&Load>) {
    let mut rates: Vec<&Load> = suite.loads.iter().filter(|load| !gives_rate(load)).collect();
    rates.sort_by_key(|load| rate_order(&load.series, &load.kind));
    if !rates.is_empty() {
        return (Metric::Rate, rates);
    }
    let alike: Vec<&Load> = suite.loads.iter().filter(|load| !load.kind.own_rates()).collect();
    (Metric::P99, if alike.is_empty() { suite.loads.iter().collect() } else { alike })
}

/// Whether a load offers a rate that can be carried, so that it asks for latency.
fn gives_rate(load: &Load) -> bool {
    matches!(load.kind, LoadKind::Open { .. }) && !load.saturating && load.series == Series::Once
}

/// What is known of each product in a workload, under the first load in which somebody may be ranked.
fn column(workload: &Workload, loads: &[&Load], entries: &[&Entry], trials: &[Trial], metric: Metric) -> Vec<Cell> {
    let mut first = None;
    for load in loads {
        let cells = cells(workload, load, entries, trials, metric);
        if cells.iter().any(|cell| matches!(cell, Cell::Value(_))) {
            return cells;
        }
        first.get_or_insert(cells);
    }
    first.unwrap_or_default()
}

fn cells(workload: &Workload, load: &Load, entries: &[&Entry], trials: &[Trial], metric: Metric) -> Vec<Cell> {
    let of_section = |trial: &&Trial| {
        let case = &trial.measurement.case;
        case.workload == workload.name && case.load == load.name
    };
    let trials: Vec<&Trial> = trials.iter().filter(of_section).collect();
    let blocks: BTreeSet<u32> = trials.iter().map(|trial| trial.measurement.block).collect();
    let blocks: Vec<u32> = blocks.into_iter().collect();
    let cases: Vec<Cases<'_>> = entries.iter().filter_map(|entry| Cases::of(entry, load, &trials)).collect();
    let cell = |entry: &&Entry| {
        let Some(own) = cases.iter().find(|cases| cases.entry == *entry) else { return Cell::Unmeasured };
        let values = own.by_block(&blocks, |window| metric.value(window));
        let values: Vec<f64> = values.into_iter().filter(|value| *value > 0.0).collect();
        match weir_stats::median(&values).filter(|_| is_ranked(own, &cases)) {
            Some(value) => Cell::Value(value),
            None => Cell::Excluded,
        }
    };
    entries.iter().map(cell).collect()
}
