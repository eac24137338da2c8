//! Compares published figures with those measured in a run. Figures of different machines cannot be compared directly,
//! so products are compared with each other: each is divided by the best published product of its case, and the orders
//! are compared. `tables` shows the result, and `facts` builds on it.
//!
//! The geometric mean was rejected as the divisor: a figure that is no capacity (a rate that was only what was offered,
//! responses that were errors) then spoils every ratio and not only its own. The document's first product may be such a
//! figure; the best seldom is.

use weir_model::metric::Metric;
use weir_model::suite::Entry;
use weir_model::text::unique;
use weir_stats::{Estimate, paired_ratio};

use crate::figures::{Figure, Source, Variant};
use crate::numbers::{METRICS, metric_name, unit_size};
use crate::run_cases::{RunCase, RunCases};
use weir_report::run::BASELINE;
use weir_report::summary::{LEVEL, SEED};

/// One metric of one case under one profile, for every product with a published figure.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub metric: Metric,
    /// The workload's name.
    pub case: String,
    /// The published variant.
    pub variant: String,
    pub profile: String,
    /// The rows in the document's order.
    pub rows: Vec<ComparisonRow>,
}

/// One product.
#[derive(Debug, Clone)]
pub(super) struct ComparisonRow {
    pub product: String,
    pub title: String,
    pub figure: Figure,
    /// The published figure in the base unit.
    pub published: f64,
    /// The figure divided by that of the best published product among those measured.
    pub published_ratio: Option<f64>,
    pub measured: Option<MeasuredFigure>,
}

/// The measured result of a product.
#[derive(Debug, Clone)]
pub(super) struct MeasuredFigure {
    /// The entry of the comparison's profile, or of another one if the product ran under that one only.
    pub entry: Entry,
    pub by_block: Vec<f64>,
    /// The value in the base unit.
    pub estimate: Estimate,
    /// The value divided by that of the same product as the published ratio, within blocks.
    pub ratio: Option<Estimate>,
    /// The result is shown but not ranked.
    pub invalid: bool,
}

/// True when the interval excludes 1, so that the order of the two products is certain.
pub(super) fn excludes_one(ratio: &Estimate) -> bool {
    ratio.n > 1 && (ratio.low > 1.0 || ratio.high < 1.0)
}

/// How far two orders of products agree.
#[derive(Debug)]
pub(super) struct Agreement<'a> {
    /// Products in both orders.
    pub products: usize,
    pub tau: Option<f64>,
    /// Pairs of products that both order.
    pub pairs: usize,
    /// The pairs among them in opposite order, as (published ahead, published behind).
    pub opposite: Vec<(&'a ComparisonRow, &'a ComparisonRow)>,
}

impl Comparison {
    /// `scenario-2`, or `hello, round 3` where a case is measured in several parts.
    pub fn label(&self) -> String {
        match Variant::parse(&self.variant) {
            Variant::Round(_) => format!("{}, {}", self.case, self.variant),
            _ => self.case.clone(),
        }
    }

    /// How far the measured order agrees with the published one, without the direct path and without products that may
    /// not be ranked.
    pub fn agreement(&self) -> Agreement<'_> {
        let ranked =
            |row: &&ComparisonRow| row.product != BASELINE && row.measured.as_ref().is_some_and(|m| !m.invalid);
        let both: Vec<&ComparisonRow> = self.rows.iter().filter(ranked).collect();
        let published: Vec<f64> = both.iter().map(|row| row.published).collect();
        let measured: Vec<f64> = both.iter().flat_map(|row| &row.measured).map(|own| own.estimate.value).collect();
        let ahead_first = |(a, b): (usize, usize)| {
            let a_first = (published[a] > published[b]) == self.metric.higher_is_better();
            if a_first { (both[a], both[b]) } else { (both[b], both[a]) }
        };
        let weir_stats::Agreement { tau, pairs, opposite } = weir_stats::agreement(&published, &measured);
        Agreement { products: both.len(), tau, pairs, opposite: opposite.into_iter().map(ahead_first).collect() }
    }
}

/// The ratio of two measured rows, within blocks.
pub(super) fn ratio(a: &ComparisonRow, b: &ComparisonRow) -> Option<Estimate> {
    paired_ratio(&a.measured.as_ref()?.by_block, &b.measured.as_ref()?.by_block, LEVEL, SEED)
}

/// Every published figure that may be compared and whose case was run.
pub(super) fn comparisons(run_cases: &RunCases<'_>, source: &Source) -> Vec<Comparison> {
    let mut all = Vec::new();
    for metric in METRICS {
        let name = metric_name(metric);
        for case in source.cases() {
            let Some(case) = run_cases.case(case) else { continue };
            let own: Vec<&Figure> = source.results(&name).filter(|f| f.case == case.name).collect();
            for variant in variants(&own, case) {
                let figures: Vec<&Figure> = own.iter().copied().filter(|f| f.variant == variant).collect();
                let of_profile =
                    |profile: &String| comparison(run_cases, source, case, metric, &variant, &figures, profile);
                all.extend(run_cases.profiles.iter().filter_map(of_profile));
            }
        }
    }
    all
}

/// The variants that the run may have measured. Of several numbers of cores, only the one closest to the run's.
fn variants(figures: &[&Figure], case: &RunCase<'_>) -> Vec<String> {
    let names = unique(figures.iter().map(|figure| figure.variant.as_str()));
    let own = case.cores().unwrap_or(1);
    let distance = |name: &str| match Variant::parse(name) {
        Variant::Cores(cores) => Some(cores.abs_diff(own)),
        _ => None,
    };
    let closest = names.iter().filter_map(|name| distance(name)).min();
    let wanted = |name: &&str| match Variant::parse(name) {
        Variant::Whole => true,
        Variant::Cores(_) => distance(name) == closest,
        Variant::Round(_) => case.rounds() > 0,
        // `points` compares curves: their points belong together by their share of the most.
        Variant::Connections(_) | Variant::Rate(_) => false,
        // Of listings no product is ahead of another.
        Variant::Machine | Variant::Process(_) | Variant::Other => false,
    };
    names.into_iter().filter(wanted).map(str::to_string).collect()
}

/// `None` when nothing was measured. If only other profiles were measured, the first profile's comparison contains
/// them.
fn comparison(
    run_cases: &RunCases<'_>,
    source: &Source,
    case: &RunCase<'_>,
    metric: Metric,
    variant: &str,
    figures: &[&Figure],
    profile: &str,
) -> Option<Comparison> {
    let mut rows = Vec::new();
    for product in &source.products {
        let Some(figure) = figures.iter().find(|figure| figure.product == product.product) else { continue };
        let Some(size) = unit_size(&figure.unit) else { continue };
        let entry = run_cases.entry(&figure.product, profile);
        rows.push(ComparisonRow {
            product: figure.product.clone(),
            title: run_cases.run.title_of(&figure.product).to_string(),
            figure: (*figure).clone(),
            published: figure.value * size,
            published_ratio: None,
            measured: entry.and_then(|entry| {
                let by_block = run_cases.by_block(case, Variant::parse(variant), entry, &metric_name(metric));
                let estimate = weir_stats::median_interval(&by_block, LEVEL, SEED)?;
                Some(MeasuredFigure {
                    entry: entry.clone(),
                    by_block,
                    estimate,
                    ratio: None,
                    invalid: case.invalid(entry),
                })
            }),
        });
    }
    let mut measured = rows.iter().flat_map(|row| &row.measured);
    let first = run_cases.profiles.first().is_some_and(|first| first == profile);
    measured.find(|own| first || own.entry.profile == profile)?;
    divide(&mut rows, metric.higher_is_better());
    let (case, variant, profile) = (case.name.to_string(), variant.to_string(), profile.to_string());
    Some(Comparison { metric, case, variant, profile, rows })
}

/// Divides by the best published product among those measured.
fn divide(rows: &mut [ComparisonRow], higher_is_better: bool) {
    let valid = |row: &&ComparisonRow| row.measured.as_ref().is_some_and(|own| !own.invalid);
    let possible = rows.iter().filter(|row| row.product != BASELINE && row.published > 0.0).filter(valid);
    let better = |best: &&ComparisonRow, row: &&ComparisonRow| {
        if higher_is_better { row.published > best.published } else { row.published < best.published }
    };
    let Some(best) = possible.reduce(|best, row| if better(&best, &row) { row } else { best }).cloned() else { return };
    for row in rows {
        row.published_ratio = Some(row.published / best.published);
        let measured_ratio = ratio(row, &best);
        if let Some(own) = &mut row.measured {
            own.ratio = measured_ratio;
        }
    }
}
