//! Keeps the products that can run on this machine: those that are installed or can be. The others are skipped and
//! named, unless the user asked for them by name. Called by `run::resolve` and `verbs::run`.

use std::collections::BTreeMap;

use weir_install::home::Home;
use weir_install::{self as install, Found, Installed};
use weir_lab::skipped;
use weir_model::product::Product;
use weir_model::record::Skipped;
use weir_model::suite::Suite;
use weir_model::text::unique;
use weir_product::catalogue::Catalogue;

use super::resolve::ResolvedSuite;
use crate::exit::Failure;
use crate::verbs::products::{self, Attempt};

/// Keeps the entries whose product is or can be installed, and returns the others.
///
/// # Errors
/// When an entry's product does not exist.
pub fn keep_available(suite: &mut Suite, catalogue: &Catalogue, home: &Home) -> Result<Vec<Skipped>, Failure> {
    let mut skipped = Vec::new();
    let mut names: Vec<String> = suite.entries.iter().map(|entry| entry.product.clone()).collect();
    names.dedup();
    for name in names {
        let product = catalogue.product(&name, "--products").map_err(Failure::input)?;
        if let Some(why) = why_unavailable(product, home) {
            suite.entries.retain(|entry| entry.product != name);
            skipped.push(absent(name, why));
        }
    }
    Ok(skipped)
}

/// Installs what is missing, one product at a time. What cannot be installed after all is skipped.
///
/// # Errors
/// When the user declines or interrupts, the origin cannot be installed, or nothing is left to run.
pub fn install(
    resolved: ResolvedSuite,
    home: &Home,
    yes: bool,
) -> Result<(ResolvedSuite, BTreeMap<String, Installed>), Failure> {
    let all: Vec<&Product> = resolved.products.values().collect();
    let otherwise = || only_installed(&resolved, home);
    let Attempt { here, failed } = products::attempt(&all, home, yes, otherwise)?;
    Ok((without(resolved, failed)?, here))
}

/// The flag that leaves only products that are installed; `None` when none is.
fn only_installed(resolved: &ResolvedSuite, home: &Home) -> Option<String> {
    let is_here = |product: &Product| matches!(install::quick_find(product, home), Ok(Found::Yes(_)));
    let entries = resolved.suite.entries.iter().filter_map(|entry| resolved.products.get(&entry.product));
    let here: Vec<&Product> = entries.filter(|product| product.program().is_none() || is_here(product)).collect();
    let names = unique(here.iter().map(|product| product.name.as_str()));
    let some = here.iter().any(|product| product.program().is_some());
    some.then(|| format!("to measure only what is installed: --products {}", names.join(",")))
}

/// The suite without the products that could not be installed, by name with the reason.
///
/// # Errors
/// When the origin is one of them, or nothing is left to run.
pub fn without(mut resolved: ResolvedSuite, failed: BTreeMap<String, String>) -> Result<ResolvedSuite, Failure> {
    for (name, why) in failed {
        if resolved.suite.origin.as_ref() == Some(&name) {
            return Err(Failure::missing(format!("--origin: {name} cannot be installed: {why}")));
        }
        resolved.suite.entries.retain(|entry| entry.product != name);
        resolved.skipped.retain(|one| one.product != name);
        resolved.skipped.push(absent(name, format!("could not be installed: {why}")));
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

/// Why a product cannot be installed on this machine, in a line.
fn why_unavailable(product: &Product, home: &Home) -> Option<String> {
    product.program()?;
    let error = install::plan(&[product], home).err()?;
    let said = error.to_string();
    // The other lines say what was tried.
    let first = said.lines().next().unwrap_or_default().trim_end_matches(':');
    let first = first.strip_prefix(product.name.as_str()).map_or(first, str::trim_start);
    Some(format!("{first}; `weir products show {}` says how to get it", product.name))
}
