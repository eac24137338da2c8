//! A sentence for each pair of products that stand in another order here than published, with what is known of why. Pairs of
//! one metric that differ for the same reasons on several cases share a sentence. Knows no product's name.

use super::causes::{Cause, causes};
use super::compare::{ComparedRow, Comparison};
use super::data::Source;
use super::facts::{Pair, pair};
use super::ours::Ours;
use super::words::{list, with_interval};
use crate::number::short;

/// A pair on one or more cases.
struct Group {
    profile: usize,
    first: Pair,
    causes: Vec<Cause>,
    /// Causes have other numbers on other cases.
    differ: bool,
    /// Case, and both ratios in words.
    cases: Vec<(String, String)>,
}

/// The sentences, in the order of metrics, profiles and cases.
pub(super) fn sentences(ours: &Ours<'_>, source: &Source, comparisons: &[Comparison]) -> Vec<String> {
    let mut groups: Vec<Group> = Vec::new();
    for comparison in comparisons {
        for profile in 0..ours.profiles.len() {
            for places in comparison.agreement(profile).opposite {
                if let Some(pair) = pair(ours, source, comparison, profile, places)
                    && is_of(&pair, &ours.profiles[profile])
                {
                    add(&mut groups, pair, profile, &comparison.label());
                }
            }
        }
    }
    groups.iter().map(|group| sentence(group, ours)).collect()
}

/// Whether one of the two runs under a profile: of products that both stand in with another, that one's sentence is enough.
fn is_of(pair: &Pair, profile: &str) -> bool {
    [&pair.ahead, &pair.behind].iter().any(|side| side.ours.profile == profile)
}

fn add(groups: &mut Vec<Group>, pair: Pair, profile: usize, case: &str) {
    let known = causes(&pair);
    let rules = |causes: &[Cause]| causes.iter().map(|cause| cause.rule).collect::<Vec<_>>();
    let numbers = (case.to_string(), ratios(&pair));
    let same = groups.iter_mut().find(|group| {
        group.profile == profile
            && group.first.compared == pair.compared
            && group.first.ahead.title == pair.ahead.title
            && group.first.behind.title == pair.behind.title
            && rules(&group.causes) == rules(&known)
    });
    match same {
        Some(group) => {
            group.differ |= group.causes != known;
            group.cases.push(numbers);
        }
        None => groups.push(Group { profile, first: pair, causes: known, differ: false, cases: vec![numbers] }),
    }
}

fn ratios(pair: &Pair) -> String {
    let ours = pair.our_ratio.map_or_else(|| "not known".to_string(), |ratio| with_interval(&ratio, 1.0));
    format!("{} as published, {ours} here", short(pair.published_ratio))
}

fn sentence(group: &Group, ours: &Ours<'_>) -> String {
    let pair = &group.first;
    let numbers: Vec<String> = group.cases.iter().map(|(case, ratios)| format!("{case}: {ratios}")).collect();
    let own = &pair.ahead.ours.profile;
    let other = &pair.behind.ours.profile;
    let profile = if own == other { own.clone() } else { ours.profiles[group.profile].clone() };
    format!(
        "{} over {}, {}, {profile}: {}. {}",
        pair.ahead.title,
        pair.behind.title,
        pair.compared.words,
        numbers.join("; "),
        why(group)
    )
}

fn why(group: &Group) -> String {
    if group.causes.is_empty() {
        return "Nothing in this run's records or in the document says why.".to_string();
    }
    let words: Vec<&str> = group.causes.iter().map(|cause| cause.words.as_str()).collect();
    let of = match group.cases.as_slice() {
        [(first, _), ..] if group.differ => format!(" (numbers of {first})"),
        _ => String::new(),
    };
    format!("What is known{of}: {}.", words.join("; "))
}

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
