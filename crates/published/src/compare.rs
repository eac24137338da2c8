//! Published figures beside our own. Absolutes of other machines say nothing here, so what is compared is how products stand
//! to each other: each over the one that was published as the best of the case, and the order of all.
//!
//! Over the best, and not over the geometric mean: a ratio then involves two measurements and no third one, so a figure
//! that is no capacity (a rate that was merely what was asked for, answers that were errors) spoils its own ratio and not
//! everybody's. Not over the document's first product either, for that may be such a figure itself; the best seldom is.
//! Knows no cause of anything.

use weir_model::suite::Entry;
use weir_stats::{Estimate, kendall_tau, opposite_pairs, paired_ratio};

use super::data::{Figure, Source};
use super::ours::{Ours, OwnCase};
use super::quantity::{COMPARED, Compared, size_of};
use super::variant::Variant;
use weir_report::run::BASELINE;
use weir_report::summary::{LEVEL, SEED};

/// One metric of one case, of every product that has a published figure.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub compared: Compared,
    /// The workload's name.
    pub case: String,
    /// As published.
    pub variant: String,
    /// In the document's order.
    pub rows: Vec<ComparedRow>,
    /// The row that the others are divided by.
    pub base: Option<usize>,
}

/// One product.
#[derive(Debug, Clone)]
pub(super) struct ComparedRow {
    pub product: String,
    pub title: String,
    pub figure: Figure,
    /// The figure in the base unit.
    pub published: f64,
    /// Over the base.
    pub published_ratio: Option<f64>,
    /// One a profile, in [`Ours::profiles`]' order.
    pub ours: Vec<Option<OwnFigure>>,
}

/// Our figure of one product under one profile.
#[derive(Debug, Clone)]
pub(super) struct OwnFigure {
    pub entry: Entry,
    pub by_block: Vec<f64>,
    /// In the base unit.
    pub estimate: Estimate,
    /// Over the base under the same profile, within blocks.
    pub ratio: Option<Estimate>,
    /// Shown, not ranked.
    pub invalid: bool,
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
    /// `scenario-2`, or `hello, round 3`.
    pub fn label(&self) -> String {
        match self.part() {
            None => self.case.clone(),
            Some(part) => format!("{}, {part}", self.case),
        }
    }

    /// `round 3`, where a case is measured in several parts.
    pub fn part(&self) -> Option<&str> {
        match Variant::parse(&self.variant) {
            Variant::Whole | Variant::Cores(_) | Variant::Other => None,
            Variant::Round(_) | Variant::Connections(_) | Variant::Rate(_) => Some(&self.variant),
        }
    }

    /// How far our order under a profile agrees with the published one. Without the direct path, which nobody chooses, and
    /// without what may not be ranked.
    pub fn agreement(&self, profile: usize) -> Agreement {
        let both: Vec<usize> = (0..self.rows.len()).filter(|i| self.ranked(*i, profile).is_some()).collect();
        let published: Vec<f64> = both.iter().map(|i| self.rows[*i].published).collect();
        let ours: Vec<f64> = both.iter().filter_map(|i| self.ranked(*i, profile)).collect();
        let differ = |values: &[f64], a: usize, b: usize| values[a] != values[b];
        let places = (0..both.len()).flat_map(|a| (a + 1..both.len()).map(move |b| (a, b)));
        let pairs = places.filter(|(a, b)| differ(&published, *a, *b) && differ(&ours, *a, *b)).count();
        let ahead = |(a, b): (usize, usize)| {
            let a_first = (published[a] > published[b]) == self.compared.higher_is_better;
            if a_first { (both[a], both[b]) } else { (both[b], both[a]) }
        };
        Agreement {
            products: both.len(),
            tau: kendall_tau(&published, &ours),
            pairs,
            opposite: opposite_pairs(&published, &ours).into_iter().map(ahead).collect(),
        }
    }

    /// Whether our interval excludes that two rows stand the other way round, or alike.
    pub fn is_sure(&self, profile: usize, (a, b): (usize, usize)) -> bool {
        let blocks = |row: usize| self.rows.get(row)?.ours.get(profile)?.as_ref().map(|own| &own.by_block);
        let ratio = blocks(a).zip(blocks(b)).and_then(|(a, b)| paired_ratio(a, b, LEVEL, SEED));
        ratio.is_some_and(|ratio| ratio.n > 1 && (ratio.low > 1.0 || ratio.high < 1.0))
    }

    fn ranked(&self, row: usize, profile: usize) -> Option<f64> {
        let row = &self.rows[row];
        let own = row.ours.get(profile)?.as_ref()?;
        (row.product != BASELINE && !own.invalid).then_some(own.estimate.value)
    }
}

/// Every published figure that may be compared and whose case was run.
pub(super) fn comparisons(ours: &Ours<'_>, source: &Source) -> Vec<Comparison> {
    let mut all = Vec::new();
    for compared in COMPARED {
        for name in source.cases() {
            let Some(case) = ours.case(name) else { continue };
            let own: Vec<&Figure> = source.results(compared.metric).filter(|f| f.case == name).collect();
            for variant in variants(&own, case) {
                let figures: Vec<&Figure> = own.iter().copied().filter(|f| f.variant == variant).collect();
                all.extend(comparison(ours, source, case, compared, &variant, &figures));
            }
        }
    }
    all
}

/// Those variants of which we may have a counterpart; of several numbers of cores the one closest to ours.
fn variants(figures: &[&Figure], case: &OwnCase<'_>) -> Vec<String> {
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
    ours: &Ours<'_>,
    source: &Source,
    case: &OwnCase<'_>,
    compared: Compared,
    variant: &str,
    figures: &[&Figure],
) -> Option<Comparison> {
    let mut rows = Vec::new();
    for product in &source.products {
        let Some(figure) = figures.iter().find(|figure| figure.product == product.product) else { continue };
        let Some(size) = size_of(&figure.unit) else { continue };
        let own =
            ours.profiles.iter().map(|profile| own_figure(ours, case, compared, variant, &figure.product, profile));
        rows.push(ComparedRow {
            product: figure.product.clone(),
            title: ours.run.title_of(&figure.product).to_string(),
            figure: (*figure).clone(),
            published: figure.value * size,
            published_ratio: None,
            ours: own.collect(),
        });
    }
    if rows.iter().all(|row| row.ours.iter().all(Option::is_none)) {
        return None;
    }
    let mut comparison =
        Comparison { compared, case: case.name.to_string(), variant: variant.to_string(), rows, base: None };
    divide(&mut comparison);
    Some(comparison)
}

fn own_figure(
    ours: &Ours<'_>,
    case: &OwnCase<'_>,
    compared: Compared,
    variant: &str,
    product: &str,
    profile: &str,
) -> Option<OwnFigure> {
    let entry = ours.entry(product, profile)?;
    let variant = Variant::parse(variant);
    let by_block = ours.by_block(case, variant, entry, compared.metric);
    let estimate = weir_stats::median_interval(&by_block, LEVEL, SEED)?;
    Some(OwnFigure { entry: entry.clone(), by_block, estimate, ratio: None, invalid: case.invalid(entry) })
}

/// Divides by the best published of those that we have too.
fn divide(comparison: &mut Comparison) {
    let better = |a: f64, b: f64| if comparison.compared.higher_is_better { a > b } else { a < b };
    let measured = |row: &ComparedRow| row.ours.iter().flatten().any(|own| !own.invalid);
    let mut base: Option<usize> = None;
    for (i, row) in comparison.rows.iter().enumerate() {
        let possible = row.product != BASELINE && row.published > 0.0 && measured(row);
        if possible && base.is_none_or(|best| better(row.published, comparison.rows[best].published)) {
            base = Some(i);
        }
    }
    comparison.base = base;
    let Some(base) = base.map(|base| comparison.rows[base].clone()) else { return };
    for row in &mut comparison.rows {
        row.published_ratio = Some(row.published / base.published);
        for (own, base) in row.ours.iter_mut().zip(&base.ours) {
            if let (Some(own), Some(base)) = (own, base) {
                own.ratio = paired_ratio(&own.by_block, &base.by_block, LEVEL, SEED);
            }
        }
    }
}
