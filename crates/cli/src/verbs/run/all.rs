//! `--products all`: every product of the catalogue that can be measured on this machine.
//!
//! What is not here and cannot be got here is left out and named, where a product named by the user would be an error.

use std::collections::BTreeMap;

use weir_install::home::Home;
use weir_install::{self as install, Installed};
use weir_lab::skipped;
use weir_model::product::{Product, ProductKind};
use weir_model::record::Skipped;
use weir_model::suite::Suite;
use weir_product::catalogue::Catalogue;

use super::chosen::Chosen;
use crate::exit::Failure;
use crate::verbs::products::{self, Attempt};

/// Keeps the entries whose product is here or can be installed. What is left out: the others.
///
/// # Errors
/// When an entry's product does not exist.
pub fn keep_what_is_here(suite: &mut Suite, catalogue: &Catalogue, home: &Home) -> Result<Vec<Skipped>, Failure> {
    let mut skipped = Vec::new();
    let mut names: Vec<String> = suite.entries.iter().map(|entry| entry.product.clone()).collect();
    names.dedup();
    for name in names {
        let product = catalogue.product(&name, "--products").map_err(Failure::input)?;
        if let Some(why) = why_not_here(product, home) {
            suite.entries.retain(|entry| entry.product != name);
            skipped.push(absent(name, why));
        }
    }
    Ok(skipped)
}

/// Installs what is missing, one product at a time. What cannot be got after all is left out.
///
/// # Errors
/// When the user says no or stops it, the origin cannot be got, or nothing is left to run.
pub fn install(mut chosen: Chosen, home: &Home, yes: bool) -> Result<(Chosen, BTreeMap<String, Installed>), Failure> {
    let Attempt { here, failed } = products::attempt(&chosen.products.values().collect::<Vec<_>>(), home, yes)?;
    for (name, why) in failed {
        if chosen.suite.origin.as_ref() == Some(&name) {
            return Err(Failure::missing(format!("--origin: {name} cannot be got: {why}")));
        }
        chosen.suite.entries.retain(|entry| entry.product != name);
        chosen.skipped.retain(|one| one.product != name);
        chosen.skipped.push(absent(name, format!("could not be got: {why}")));
    }
    skipped::something_is_left(&chosen.suite, &chosen.skipped).map_err(Failure::input)?;
    Ok((chosen, here))
}

fn absent(product: String, why: String) -> Skipped {
    Skipped { product, profile: String::new(), workload: None, why }
}

/// Products of the catalogue that have no entry in the suite, because they have none of the profiles asked for.
pub fn without_profile(suite: &Suite, catalogue: &Catalogue) -> Vec<Skipped> {
    let has_entry = |product: &Product| suite.entries.iter().any(|entry| entry.product == product.name);
    let missing = catalogue.products().values().filter(|product| !has_entry(product));
    missing.map(|product| absent(product.name.clone(), "has none of the profiles asked for".to_owned())).collect()
}

/// Why a product can neither be found nor got on this machine, in a line.
fn why_not_here(product: &Product, home: &Home) -> Option<String> {
    if product.kind == ProductKind::Direct {
        return None;
    }
    let error = install::plan(&[product], home).err()?;
    let said = error.to_string();
    // The first line says that; those after it say what was tried, which is for whoever asks for the product by name.
    let first = said.lines().next().unwrap_or_default().trim_end_matches(':');
    let first = first.strip_prefix(product.name.as_str()).map_or(first, str::trim_start);
    Some(format!("{first}; `weir products show {}` says how to get it", product.name))
}
