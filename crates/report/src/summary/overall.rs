//! The numbers of the first screen: each product over all workloads, and the order so far while a run goes on. Rates come from the load
//! that asks how much a product carries, latencies from the load that offers the same rate to all. Over several workloads a number is
//! their geometric mean, the only mean whose ratios do not depend on the reference workload (Fleming and Wallace 1986, "How not to lie
//! with statistics"). It is computed within each block first, so that its interval is one over blocks.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use weir_model::metric::{Metric, Quantity, Window};
use weir_model::suite::{Entry, Load, LoadKind, Series, Suite, Workload};
use weir_stats::{Estimate, median_interval};

use super::rows::{Cases, Estimates};
use super::section::{is_ranked, sorted};
use super::{LEVEL, Row, SEED, Section, Standing, rows, section};
use crate::run::{BASELINE, Run, Trial};

/// Each product over all workloads.
#[derive(Debug, Clone, Serialize)]
pub struct Overall {
    /// What the ranks go by.
    pub ranked_by: Metric,
    /// Workloads that the numbers are a geometric mean of; with one they are its own.
    pub workloads: Vec<String>,
    /// Workloads in which fewer than half of the products have a number that may be ranked: in no mean.
    pub without: Vec<String>,
    /// Sections that rate, cost and memory come from, by their slugs.
    pub rate_from: Vec<String>,
    /// Sections that latency comes from.
    pub latency_from: Vec<String>,
    /// Latency is at a rate that was offered to all alike; else that of the load that asks for the rate.
    pub same_rate: bool,
    /// Requests a second of that rate, least and most over the workloads.
    pub offered_rate: Option<(f64, f64)>,
    /// Blocks with at least one number.
    pub blocks: usize,
    /// The direct path: apart, not ranked.
    pub baseline: Vec<OverallRow>,
    /// Ranked products best first, then the others.
    pub rows: Vec<OverallRow>,
}

/// One product under one profile. Times in microseconds, memory in bytes.
#[derive(Debug, Clone, Serialize)]
pub struct OverallRow {
    /// What it has in common with a row of a section.
    #[serde(flatten)]
    pub standing: Standing,
    /// Memory of the proxy by the client's connections.
    pub memory: Option<Estimate>,
    /// That memory is of proportional sets, not of resident ones.
    pub proportional: bool,
    /// Workloads in which it has no number that may be ranked; then it is not ranked here.
    pub missing: Vec<String>,
}

impl Deref for OverallRow {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        &self.standing
    }
}

impl DerefMut for OverallRow {
    fn deref_mut(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

impl Overall {
    /// Sections that the ranks come from, by their slugs.
    pub fn leading(&self) -> &[String] {
        if self.ranked_by == Metric::Rate { &self.rate_from } else { &self.latency_from }
    }

    /// Baseline first, then the products.
    pub fn all_rows(&self) -> impl Iterator<Item = &OverallRow> {
        self.baseline.iter().chain(&self.rows)
    }
}

/// A section that was chosen, with its cases.
struct Chosen<'a> {
    section: &'a Section,
    cases: Vec<Cases<'a>>,
}

impl<'a> Chosen<'a> {
    fn of(run: &'a Run, section: &'a Section) -> Chosen<'a> {
        Chosen { section, cases: section::cases_of(run, section) }
    }

    fn cases(&self, entry: &Entry) -> Option<&Cases<'a>> {
        self.cases.iter().find(|cases| cases.entry == entry).filter(|cases| section::is_ranked(cases, &self.cases))
    }

    fn row(&self, entry: &Entry) -> Option<&'a Row> {
        self.section.all_rows().find(|row| row.entry == *entry)
    }
}

/// `None` when no section ranks anybody.
pub(super) fn overall(run: &Run, sections: &[Section]) -> Option<Overall> {
    let workloads = &run.suite.workloads;
    let of = |choose: fn(&Section) -> Option<u8>| -> Vec<Chosen<'_>> {
        let best = |name: &str| {
            let own = sections
                .iter()
                .filter(|section| section.workload == name && section.rows.iter().any(|row| row.rank.is_some()));
            own.filter_map(|section| Some((choose(section)?, section))).min_by_key(|(order, _)| *order)
        };
        workloads.iter().filter_map(|w| best(&w.name)).map(|(_, section)| Chosen::of(run, section)).collect()
    };
    let (mut rates, mut latencies) = (of(asks_for_rate), of(offers_the_same));
    let ranked_by = if rates.is_empty() { Metric::P99 } else { Metric::Rate };
    if rates.is_empty() && latencies.is_empty() {
        // Each product at a rate of its own is better than nothing.
        latencies = of(|section| (section.open && !section.of_streams()).then_some(0));
    }
    let leading = if rates.is_empty() { &latencies } else { &rates };
    let (kept, without) = kept(run, leading);
    let keep = |chosen: &mut Vec<Chosen<'_>>| chosen.retain(|one| kept.contains(&one.section.workload));
    keep(&mut rates);
    keep(&mut latencies);
    let same_rate = !latencies.is_empty();
    let table = Table { run, rates: &rates, latencies: &latencies, ranked_by };
    let (baseline, rows) = table.rows();
    let blocks = rates.iter().chain(&latencies).map(|chosen| chosen.section.blocks).max().unwrap_or(0);
    let slugs = |chosen: &[Chosen<'_>]| chosen.iter().map(|one| one.section.slug()).collect();
    let offered = latencies.iter().filter_map(|one| one.section.offered_rate);
    rows.iter().any(|row| row.rank.is_some()).then(|| Overall {
        ranked_by,
        workloads: kept,
        without,
        rate_from: slugs(&rates),
        latency_from: slugs(if same_rate { &latencies } else { &rates }),
        same_rate,
        offered_rate: offered.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))),
        blocks,
        baseline,
        rows,
    })
}

/// How well a section says what a product carries; the least is best.
fn asks_for_rate(section: &Section) -> Option<u8> {
    (section.ranked_by == Metric::Rate).then(|| rate_order(&section.series, &section.kind))
}

/// How well a load says what a product carries; the least is best.
pub(super) fn rate_order(series: &Series, kind: &LoadKind) -> u8 {
    match (series, kind) {
        (Series::Once, LoadKind::Closed) => 0,
        (Series::Once, LoadKind::Search { .. }) => 1,
        (Series::Once, LoadKind::Open { .. }) => 2,
        (Series::Once, LoadKind::Count { .. }) => 3,
        (Series::Connections(_), _) => 4,
        (Series::Rounds(_), _) => 5,
        (Series::Shares(_), _) => 6,
    }
}

/// Sections in which all products were offered one rate that they can carry.
fn offers_the_same(section: &Section) -> Option<u8> {
    (section.ranked_by == Metric::P99 && !section.own_rates && section.series == Series::Once).then_some(0)
}

/// The workloads that at least half of the products have a number in, and the others.
fn kept(run: &Run, chosen: &[Chosen<'_>]) -> (Vec<String>, Vec<String>) {
    let products = || run.suite.entries.iter().filter(|entry| entry.product != BASELINE);
    let anywhere = products().filter(|entry| chosen.iter().any(|one| one.cases(entry).is_some())).count();
    let there = |one: &Chosen<'_>| products().filter(|entry| one.cases(entry).is_some()).count();
    let (kept, without): (Vec<_>, Vec<_>) = chosen.iter().partition(|one| there(one) * 2 >= anywhere);
    let names = |chosen: Vec<&Chosen<'_>>| chosen.into_iter().map(|one| one.section.workload.clone()).collect();
    (names(kept), names(without))
}

/// What the rows are made from.
struct Table<'a> {
    run: &'a Run,
    rates: &'a [Chosen<'a>],
    latencies: &'a [Chosen<'a>],
    ranked_by: Metric,
}

impl Table<'_> {
    fn rows(&self) -> (Vec<OverallRow>, Vec<OverallRow>) {
        let there = |entry: &&Entry| self.all().any(|one| one.row(entry).is_some());
        let (baseline, products): (Vec<&Entry>, Vec<&Entry>) =
            self.run.suite.entries.iter().filter(there).partition(|entry| entry.product == BASELINE);
        let rows: Vec<OverallRow> = products.iter().map(|entry| self.row(entry)).collect();
        let leading = |entry: &&Entry| by_block(self.leading(), entry, &|window| self.ranked_by.value(window));
        let values: Vec<Vec<f64>> = products.iter().map(leading).collect();
        let sorted = sorted(rows, &values, self.ranked_by, |_, row| row.missing.is_empty());
        (baseline.iter().map(|entry| self.row(entry)).collect(), sorted.rows)
    }

    fn all(&self) -> impl Iterator<Item = &Chosen<'_>> {
        self.rates.iter().chain(self.latencies)
    }

    /// The sections that the ranks come from.
    fn leading(&self) -> &[Chosen<'_>] {
        if self.ranked_by == Metric::Rate { self.rates } else { self.latencies }
    }

    /// The sections that latency comes from.
    fn latency(&self) -> &[Chosen<'_>] {
        if self.latencies.is_empty() { self.rates } else { self.latencies }
    }

    fn row(&self, entry: &Entry) -> OverallRow {
        let costs = self.leading();
        let estimate = |metric: Metric| {
            let from = match metric.entry().quantity {
                Quantity::Latency => self.latency(),
                _ if metric == Metric::Rate && !self.rates.is_empty() => self.rates,
                _ => costs,
            };
            median_interval(&by_block(from, entry, &|window| metric.value(window)), LEVEL, SEED)
        };
        let mut standing = Standing::before_measuring(self.run, entry);
        standing.estimates = Estimates::of(|metric| metric.entry().columns.overall.is_some(), estimate);
        for own in self.all().filter_map(|one| one.row(entry)) {
            standing.requests += own.requests;
            for (kind, n) in &own.errors {
                *standing.errors.entry(kind.clone()).or_default() += n;
            }
            standing.verdicts += own.verdicts;
        }
        let (memory, proportional) = memory(costs, entry);
        let missing = self.leading().iter().filter(|one| one.cases(entry).is_none());
        let missing = missing.map(|one| one.section.workload.clone()).collect();
        OverallRow { standing, memory, proportional, missing }
    }
}

/// In each block the geometric mean over the sections; NaN where one of them has no number.
fn by_block(from: &[Chosen<'_>], entry: &Entry, value: &dyn Fn(&Window<'_>) -> Option<f64>) -> Vec<f64> {
    let blocks: BTreeSet<u32> = from.iter().flat_map(|one| one.section.block_numbers.iter().copied()).collect();
    let blocks: Vec<u32> = blocks.into_iter().collect();
    let mut logs = vec![0.0; blocks.len()];
    for one in from {
        let values = one.cases(entry).map_or_else(|| vec![f64::NAN; blocks.len()], |c| c.by_block(&blocks, value));
        for (log, value) in logs.iter_mut().zip(values) {
            *log += if value > 0.0 { value.ln() } else { f64::NAN };
        }
    }
    logs.into_iter().map(|log| if from.is_empty() { f64::NAN } else { (log / from.len() as f64).exp() }).collect()
}

/// Memory by connection, in one measure for all sections.
fn memory(from: &[Chosen<'_>], entry: &Entry) -> (Option<Estimate>, bool) {
    let own: Vec<&Row> = from.iter().filter_map(|one| one.row(entry)).collect();
    let proportional = !own.is_empty() && own.iter().all(|row| row.memory.is_some_and(|memory| memory.proportional));
    let planned = from.iter().find_map(|one| one.section.connections);
    let value = |window: &Window<'_>| rows::by_connection(window, proportional, planned);
    (median_interval(&by_block(from, entry, &value), LEVEL, SEED), proportional)
}

/// The order of products so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Provisional {
    /// The metric of the order: the rate, or p99 where no load asks for a rate.
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
