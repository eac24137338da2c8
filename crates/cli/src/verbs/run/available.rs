//! Keeps the products that can run on this machine: those that are installed or can be. The others are skipped and
//! named, unless the user asked for them by name. Called by `run::resolve` and `verbs::run`.

use std::collections::BTreeMap;

use weir_install::home::Home;
use weir_install::{Want, plan};
use weir_lab::skipped;
use weir_model::product::{Product, ProductKind};
use weir_model::record::Skipped;
use weir_model::suite::{Entry, Suite};
use weir_product::catalogue::Catalogue;

use super::resolve::ResolvedSuite;
use crate::exit::Failure;

/// Why products cannot be installed on this machine, by name; `None`: they can. It is found out once for each, because apt is slow.
pub type Availability = BTreeMap<String, Option<String>>;

/// Keeps the entries whose product is or can be installed, and returns the others.
///
/// # Errors
/// When an entry's product does not exist.
pub fn keep_available(
    suite: &mut Suite,
    catalogue: &Catalogue,
    known: &mut Availability,
) -> Result<Vec<Skipped>, Failure> {
    let home = Home::from_env().map_err(Failure::input)?;
    let mut skipped = Vec::new();
    let mut names: Vec<String> = suite.entries.iter().map(|entry| entry.product.clone()).collect();
    names.dedup();
    for name in names {
        let product = catalogue.product(&name, "--products").map_err(Failure::input)?;
        let why = known.entry(name.clone()).or_insert_with(|| why_unavailable(product, &home));
        if let Some(why) = why.clone() {
            suite.entries.retain(|entry| entry.product != name);
            skipped.push(absent(name, why));
        }
    }
    Ok(skipped)
}

/// Whether anything but the baseline is left.
fn has_a_product(resolved: &ResolvedSuite) -> bool {
    let product = |entry: &Entry| resolved.products.get(&entry.product);
    resolved.suite.entries.iter().filter_map(product).any(|product| !matches!(product.kind, ProductKind::Direct))
}

/// That nothing but the baseline can be measured, and why.
pub fn none_left(skipped: &[Skipped]) -> Failure {
    Failure::missing(format!("there is no product to measure\n  {}", Skipped::sentences(skipped).join("\n  ")))
}

/// The suite without the products that could not be installed, by name with the reason.
///
/// # Errors
/// When the origin is one of them, or nothing is left to run but the baseline.
pub fn without(mut resolved: ResolvedSuite, failed: BTreeMap<String, String>) -> Result<ResolvedSuite, Failure> {
    let had_one = has_a_product(&resolved);
    for (name, why) in failed {
        if resolved.suite.origin.as_ref() == Some(&name) {
            return Err(Failure::missing(format!("--origin: {name} cannot be installed: {why}")));
        }
        resolved.suite.entries.retain(|entry| entry.product != name);
        resolved.skipped.retain(|one| one.product != name);
        resolved.skipped.push(absent(name, format!("could not be installed: {why}")));
    }
    if had_one && !has_a_product(&resolved) {
        return Err(none_left(&resolved.skipped));
    }
    skipped::check_not_empty(&resolved.suite, &resolved.skipped).map_err(Failure::input)?;
    Ok(resolved)
}

fn absent(product: String, why: String) -> Skipped {
    Skipped { product, profile: String::new(), workload: None, why }
}

/// Products without an entry, because they have none of the profiles asked for.
pub fn without_profile(suite: &Suite, catalogue: &Catalogue) -> Vec<Skipped> {
    let has_entry = |product: &Product| suite.entries.iter().any(|entry| entry.product == product.name);
    let missing = catalogue.products().values().filter(|product| !has_entry(product));
    missing.map(|product| absent(product.name.clone(), "has none of the profiles asked for".to_owned())).collect()
}

/// Why a product cannot be installed on this machine, in a line; `None` where it can be, or weir may not look yet.
fn why_unavailable(product: &Product, home: &Home) -> Option<String> {
    product.program().filter(|_| product.unagreed.is_none())?;
    let error = plan(&[product], home, Want::Present).err()?;
    let said = error.to_string();
    // The other lines say what was tried.
    let first = said.lines().next().unwrap_or_default().trim_end_matches(':');
    let first = first.strip_prefix(product.name.as_str()).map_or(first, str::trim_start);
    Some(format!("{first}; `weir products show {}` says how to get it", product.name))
}
