//! `--products all`: every product of the catalogue that can be measured on this machine.
//!
//! What is not here and cannot be got here is left out and named, where a product named by the user would be an error.

use weir_lab::catalogue::Catalogue;
use weir_lab::home::Home;
use weir_lab::install;
use weir_model::product::{Product, ProductKind};
use weir_model::record::LeftOut;
use weir_model::suite::Suite;

use crate::exit::Failure;

/// Keeps the entries whose product is here or can be installed. What is left out: the others, and products that have none of
/// the profiles asked for.
///
/// # Errors
/// When an entry's product does not exist.
pub fn keep_what_is_here(suite: &mut Suite, catalogue: &Catalogue, home: &Home) -> Result<Vec<LeftOut>, Failure> {
    let mut left_out = without_entry(suite, catalogue);
    let mut names: Vec<String> = suite.entries.iter().map(|entry| entry.product.clone()).collect();
    names.dedup();
    for name in names {
        let product = catalogue.product(&name, "--products").map_err(Failure::input)?;
        if let Some(why) = why_not_here(product, home) {
            suite.entries.retain(|entry| entry.product != name);
            left_out.push(LeftOut { product: name, profile: String::new(), workload: None, why });
        }
    }
    Ok(left_out)
}

fn without_entry(suite: &Suite, catalogue: &Catalogue) -> Vec<LeftOut> {
    let has_entry = |product: &Product| suite.entries.iter().any(|entry| entry.product == product.name);
    let missing = catalogue.products().values().filter(|product| !has_entry(product));
    let left_out = |product: &Product| LeftOut {
        product: product.name.clone(),
        profile: String::new(),
        workload: None,
        why: "has none of the profiles asked for".to_owned(),
    };
    missing.map(left_out).collect()
}

/// Why a product can neither be found nor got on this machine, in a line.
fn why_not_here(product: &Product, home: &Home) -> Option<String> {
    if product.kind == ProductKind::Direct {
        return None;
    }
    let error = install::plan(&[product], home).err()?;
    let words: Vec<String> = error.to_string().split_whitespace().map(str::to_owned).collect();
    Some(format!("is not here and cannot be got: {}", words.join(" ")))
}
