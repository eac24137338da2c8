//! Published figures with what was measured of them in a run. Figures of other machines do not compare as they are, so products
//! are compared with each other: each divided by the best published one of its case, and the order of all. `tables` shows them.
//!
//! Each is divided by the best, and not by the geometric mean: a figure that is no capacity (a rate that was only what was
//! offered, responses that were errors) then spoils its own ratio and no other. The document's first product may be such a
//! figure; the best seldom is.

use weir_model::suite::Entry;
use weir_stats::{Estimate, kendall_tau, opposite_pairs, paired_ratio};

use super::figures::{Figure, Source};
use super::metrics::{METRICS, Metric, unit_size};
use super::run_cases::{RunCase, RunCases};
use super::variant::Variant;
use weir_report::run::BASELINE;
use weir_report::summary::{LEVEL, SEED};

/// One metric of one case, of every product that has a published figure.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub metric: Metric,
    /// The workload's name.
    pub case: String,
    /// As published.
    pub variant: String,
    /// In the document's order.
    pub rows: Vec<ComparisonRow>,
    /// The row that the others are divided by.
    pub base: Option<usize>,
}

/// One product.
#[derive(Debug, Clone)]
pub(super) struct ComparisonRow {
    pub product: String,
    pub title: String,
    pub figure: Figure,
    /// The figure in the base unit.
    pub published: f64,
    /// Over the base.
    pub published_ratio: Option<f64>,
    /// One for each profile, in the order of [`RunCases::profiles`].
    pub measured: Vec<Option<MeasuredFigure>>,
}

/// What was measured of one product under one profile.
#[derive(Debug, Clone)]
pub(super) struct MeasuredFigure {
    pub entry: Entry,
    pub by_block: Vec<f64>,
    /// In the base unit.
    pub estimate: Estimate,
    /// Over the base under the same profile, within blocks.
    pub ratio: Option<Estimate>,
    /// It is shown and not ranked.
    pub invalid: bool,
}

/// True when an interval excludes 1, which is the order of two products the other way round, or none.
pub(super) fn excludes_one(ratio: &Estimate) -> bool {
    ratio.n > 1 && (ratio.low > 1.0 || ratio.high < 1.0)
}

/// How far two orders of products agree.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Agreement {
    /// Products that both have.
    pub products: usize,
    pub tau: Option<f64>,
    /// Pairs of products that both order.
    pub pairs: usize,
    /// Of these, pairs that they order oppositely, as (published ahead, published behind), indices of rows.
    pub opposite: Vec<(usize, usize)>,
}

impl Comparison {
    /// `scenario-2`, or `hello, round 3` where a case is measured in several parts.
    pub fn label(&self) -> String {
        match Variant::parse(&self.variant) {
            Variant::Whole | Variant::Cores(_) | Variant::Other => self.case.clone(),
            Variant::Round(_) | Variant::Connections(_) | Variant::Rate(_) => {
                format!("{}, {}", self.case, self.variant)
            }
        }
    }

    /// How far the order measured under a profile agrees with the published one, without the direct path and without what may
    /// not be ranked.
    pub fn agreement(&self, profile: usize) -> Agreement {
        let both: Vec<usize> = (0..self.rows.len()).filter(|i| self.ranked(*i, profile).is_some()).collect();
        let published: Vec<f64> = both.iter().map(|i| self.rows[*i].published).collect();
        let measured: Vec<f64> = both.iter().filter_map(|i| self.ranked(*i, profile)).collect();
        let differ = |values: &[f64], a: usize, b: usize| values[a] != values[b];
        let places = (0..both.len()).flat_map(|a| (a + 1..both.len()).map(move |b| (a, b)));
        let pairs = places.filter(|(a, b)| differ(&published, *a, *b) && differ(&measured, *a, *b)).count();
        let ahead = |(a, b): (usize, usize)| {
            let a_first = (published[a] > published[b]) == self.metric.higher_is_better;
            if a_first { (both[a], both[b]) } else { (both[b], both[a]) }
        };
        Agreement {
            products: both.len(),
            tau: kendall_tau(&published, &measured),
            pairs,
            opposite: opposite_pairs(&published, &measured).into_iter().map(ahead).collect(),
        }
    }

    /// The ratio of two rows measured under a profile.
    pub fn ratio(&self, profile: usize, (a, b): (usize, usize)) -> Option<Estimate> {
        let blocks = |row: usize| Some(&self.rows.get(row)?.measured.get(profile)?.as_ref()?.by_block);
        paired_ratio(blocks(a)?, blocks(b)?, LEVEL, SEED)
    }

    fn ranked(&self, row: usize, profile: usize) -> Option<f64> {
        let row = &self.rows[row];
        let own = row.measured.get(profile)?.as_ref()?;
        (row.product != BASELINE && !own.invalid).then_some(own.estimate.value)
    }
}

/// Every published figure that may be compared and whose case was run.
pub(super) fn comparisons(run_cases: &RunCases<'_>, source: &Source) -> Vec<Comparison> {
    let mut all = Vec::new();
    for metric in METRICS {
        for name in source.cases() {
            let Some(case) = run_cases.case(name) else { continue };
            let own: Vec<&Figure> = source.results(metric.name).filter(|f| f.case == name).collect();
            for variant in variants(&own, case) {
                let figures: Vec<&Figure> = own.iter().copied().filter(|f| f.variant == variant).collect();
                all.extend(comparison(run_cases, source, case, metric, &variant, &figures));
            }
        }
    }
    all
}

/// The variants that the run may have measured; of several numbers of cores the one closest to the run's.
fn variants(figures: &[&Figure], case: &RunCase<'_>) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if !names.contains(&figure.variant.as_str()) {
            names.push(&figure.variant);
        }
    }
    let own = case.cores().unwrap_or(1);
    let distance = |name: &str| match Variant::parse(name) {
        Variant::Cores(cores) => Some(cores.abs_diff(own)),
        _ => None,
    };
    let closest = names.iter().filter_map(|name| distance(name)).min();
    let wanted = |name: &&str| match Variant::parse(name) {
        Variant::Whole => true,
        Variant::Cores(_) => distance(name) == closest,
        Variant::Round(_) | Variant::Connections(_) | Variant::Rate(_) => case.rounds() > 0,
        Variant::Other => false,
    };
    names.into_iter().filter(wanted).map(str::to_string).collect()
}

fn comparison(
    run_cases: &RunCases<'_>,
    source: &Source,
    case: &RunCase<'_>,
    metric: Metric,
    variant: &str,
    figures: &[&Figure],
) -> Option<Comparison> {
    let mut rows = Vec::new();
    for product in &source.products {
        let Some(figure) = figures.iter().find(|figure| figure.product == product.product) else { continue };
        let Some(size) = unit_size(&figure.unit) else { continue };
        let own = run_cases
            .profiles
            .iter()
            .map(|profile| own_figure(run_cases, case, metric, variant, &figure.product, profile));
        rows.push(ComparisonRow {
            product: figure.product.clone(),
            title: run_cases.run.title_of(&figure.product).to_string(),
            figure: (*figure).clone(),
            published: figure.value * size,
            published_ratio: None,
            measured: own.collect(),
        });
    }
    if rows.iter().all(|row| row.measured.iter().all(Option::is_none)) {
        return None;
    }
    let mut comparison =
        Comparison { metric, case: case.name.to_string(), variant: variant.to_string(), rows, base: None };
    divide(&mut comparison);
    Some(comparison)
}

fn own_figure(
    run_cases: &RunCases<'_>,
    case: &RunCase<'_>,
    metric: Metric,
    variant: &str,
    product: &str,
    profile: &str,
) -> Option<MeasuredFigure> {
    let entry = run_cases.entry(product, profile)?;
    let variant = Variant::parse(variant);
    let by_block = run_cases.by_block(case, variant, entry, metric.name);
    let estimate = weir_stats::median_interval(&by_block, LEVEL, SEED)?;
    Some(MeasuredFigure { entry: entry.clone(), by_block, estimate, ratio: None, invalid: case.invalid(entry) })
}

/// Divides by the best published of those that were measured.
fn divide(comparison: &mut Comparison) {
    let better = |a: f64, b: f64| if comparison.metric.higher_is_better { a > b } else { a < b };
    let has_valid = |row: &ComparisonRow| row.measured.iter().flatten().any(|own| !own.invalid);
    let mut base: Option<usize> = None;
    for (i, row) in comparison.rows.iter().enumerate() {
        let possible = row.product != BASELINE && row.published > 0.0 && has_valid(row);
        if possible && base.is_none_or(|best| better(row.published, comparison.rows[best].published)) {
            base = Some(i);
        }
    }
    comparison.base = base;
    let Some(base) = base.map(|base| comparison.rows[base].clone()) else { return };
    for row in &mut comparison.rows {
        row.published_ratio = Some(row.published / base.published);
        for (own, base) in row.measured.iter_mut().zip(&base.measured) {
            if let (Some(own), Some(base)) = (own, base) {
                own.ratio = paired_ratio(&own.by_block, &base.by_block, LEVEL, SEED);
            }
        }
    }
}
