//! The versions of what a run measures: those that a profile's files do not fit are left out or stop it before it starts, and those that are
//! older than any that weir has tried, or other than the published ones, are said. Called by `verbs::run` and `verbs::duet`.

use std::collections::BTreeMap;

use weir_install::Installed;
use weir_lab::skipped;
use weir_model::product::Product;
use weir_model::record::Skipped;
use weir_model::suite::{Entry, Suite};

use super::resolve::ResolvedSuite;
use crate::exit::Failure;

/// The suite without the profiles whose files do not fit the version that is here, where the user named no products; they are
/// skipped, with the reason.
///
/// # Errors
/// The first of them, where the user named products or it is the origin; that nothing is left to run.
pub fn fitting(mut resolved: ResolvedSuite, installed: &BTreeMap<String, Installed>) -> Result<ResolvedSuite, Failure> {
    if let Some(origin) = &resolved.suite.origin {
        let product = resolved.products.get(origin);
        let profile = product.map(|product| product.origin_profile(&resolved.suite.name)).unwrap_or_default();
        fits(origin, &profile, &resolved.products, installed)?;
    }
    let entries = resolved.suite.entries.clone();
    for Entry { product, profile } in &entries {
        if !resolved.lenient {
            fits(product, profile, &resolved.products, installed)?;
        } else if let Some(why) = why_not(product, profile, &resolved.products, installed) {
            resolved.suite.entries.retain(|entry| entry.product != *product || entry.profile != *profile);
            let (product, profile) = (product.clone(), profile.clone());
            resolved.skipped.push(Skipped { product, profile, workload: None, why });
        }
    }
    skipped::check_not_empty(&resolved.suite, &resolved.skipped).map_err(Failure::input)?;
    Ok(resolved)
}

/// Checks that the version of a product fits a profile.
///
/// # Errors
/// When it does not: product, profile, and both versions.
pub fn fits(
    name: &str,
    profile: &str,
    products: &BTreeMap<String, Product>,
    installed: &BTreeMap<String, Installed>,
) -> Result<(), Failure> {
    let Some(why) = why_not(name, profile, products, installed) else { return Ok(()) };
    let from = installed.get(name).map(|here| here.from.as_str()).unwrap_or_default();
    Err(Failure::to_fix(
        format!("{name}:{profile} {why} ({from})"),
        format!("another version of {name}, or another profile"),
    ))
}

fn why_not(
    name: &str,
    profile: &str,
    products: &BTreeMap<String, Product>,
    installed: &BTreeMap<String, Installed>,
) -> Option<String> {
    products.get(name)?.too_old_for(profile, &installed.get(name)?.version)
}

/// What a reader has to know of the versions before the numbers come, a line each.
pub fn notes(
    suite: &Suite,
    products: &BTreeMap<String, Product>,
    installed: &BTreeMap<String, Installed>,
) -> Vec<String> {
    let untried = installed.iter().filter_map(|(name, here)| {
        let product = products.get(name)?;
        let tried = product.untried(&here.version).then(|| product.program()?.version.at_least.as_deref()).flatten()?;
        Some(format!(
            "{name} {} was never run by weir: its files were tried with {tried} and later, and it may refuse them",
            here.version
        ))
    });
    let others = weir_published::other_versions(&suite.name, |name| installed.get(name).map(|it| it.version.as_str()));
    let others = (!others.is_empty()).then(|| format!("other versions than published: {}", others.join("; ")));
    untried.chain(others).collect()
}
