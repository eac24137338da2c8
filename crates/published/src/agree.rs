//! How far the order of products here agrees with the published one, in sentences, and which products it leaves out. Knows no
//! product's name, and not why an order is another one.

use super::compare::{ComparedRow, Comparison};
use super::ours::Ours;
use super::words::list;
use weir_model::text::short;

/// How far the orders agree, a sentence a metric and profile.
pub(super) fn agreement(ours: &Ours<'_>, comparisons: &[Comparison]) -> Vec<String> {
    let mut sentences = Vec::new();
    for compared in super::quantity::COMPARED {
        let own: Vec<&Comparison> = comparisons.iter().filter(|c| c.compared == compared).collect();
        for (profile, name) in ours.profiles.iter().enumerate() {
            let all: Vec<_> = own.iter().map(|c| (c, c.agreement(profile))).filter(|(_, a)| a.pairs > 0).collect();
            let unsure: usize =
                all.iter().map(|(c, a)| a.opposite.iter().filter(|places| !c.is_sure(profile, **places)).count()).sum();
            let all: Vec<_> = all.into_iter().map(|(_, agreement)| agreement).collect();
            let pairs: usize = all.iter().map(|agreement| agreement.pairs).sum();
            let opposite: usize = all.iter().map(|agreement| agreement.opposite.len()).sum();
            let Some(tau) = pooled(pairs, opposite) else { continue };
            let rounds = own.iter().any(|comparison| comparison.label() != comparison.case);
            let cases = match (all.len(), rounds) {
                (1, _) => "one case".to_string(),
                (n, true) => format!("{n} cases and rounds"),
                (n, false) => format!("{n} cases"),
            };
            sentences.push(format!(
                "{}, {name}: {} of {pairs} pairs of products in {cases} stand in the published order (Kendall's tau {}){}.",
                compared.heading,
                pairs - opposite,
                short(tau),
                others(opposite, unsure)
            ));
        }
    }
    sentences
}

/// What the pairs that stand otherwise are worth.
fn others(opposite: usize, unsure: usize) -> String {
    match (opposite, unsure) {
        (0, _) => String::new(),
        (1, 1) => "; of the other one our interval does not exclude it".to_string(),
        (1, _) => "; of the other one our interval excludes it".to_string(),
        (n, 0) => format!("; of the other {n} our intervals exclude it"),
        (n, unsure) if n == unsure => format!("; of the other {n} our intervals do not exclude it"),
        (n, unsure) => format!("; of {unsure} of the other {n} our intervals do not exclude it"),
    }
}

/// Kendall's tau over the pairs within all cases together: products of different cases are no pair.
pub(super) fn pooled(pairs: usize, opposite: usize) -> Option<f64> {
    (pairs > 0).then(|| (pairs as f64 - 2.0 * opposite as f64) / pairs as f64)
}

/// Products of a comparison that have a published figure and none here.
pub(super) fn missing(comparisons: &[Comparison]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let has = |product: &str| {
        let of_product = |row: &&ComparedRow| row.product == product;
        comparisons.iter().any(|c| c.rows.iter().filter(of_product).any(|row| row.ours.iter().any(Option::is_some)))
    };
    for row in comparisons.iter().flat_map(|comparison| &comparison.rows) {
        if !has(&row.product) && !names.contains(&row.title.as_str()) {
            names.push(&row.title);
        }
    }
    (!names.is_empty()).then(|| format!("Published, and without a number in this run: {}.", list(&names)))
}
