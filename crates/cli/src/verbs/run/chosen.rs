//! What is to be run: the suite as its file says, narrowed by the user's selection, scaled, then overridden by flags.
//! Later wins. And what is left out of it, because it cannot be run here or at all.

use std::collections::BTreeMap;
use std::path::Path;

use weir_lab::catalogue::Catalogue;
use weir_lab::home::Home;
use weir_lab::left_out;
use weir_model::Filter;
use weir_model::filter::FilterKey;
use weir_model::product::Product;
use weir_model::record::{Environment, LeftOut};
use weir_model::select::ALL;
use weir_model::suite::Suite;

use super::{Args, all};
use crate::exit::Failure;

/// What is to be run.
#[derive(Debug)]
pub struct Chosen {
    /// The suite as resolved.
    pub suite: Suite,
    /// What the scale changed, in words.
    pub scaled: Vec<String>,
    /// What is left out, and why.
    pub left_out: Vec<LeftOut>,
    /// The suite's products, and the one that is its origin.
    pub products: BTreeMap<String, Product>,
    /// All products were asked for, so that one which cannot be got is left out and no error.
    pub all: bool,
}

impl Chosen {
    /// As the flags say; for a run that goes on, as it was recorded.
    ///
    /// # Errors
    /// What is wrong in a flag or a file; that nothing is left to run.
    pub fn of(args: &Args, catalogue: &Catalogue) -> Result<Chosen, Failure> {
        if let Some(folder) = &args.resume {
            let suite = recorded_suite(folder, catalogue)?;
            let (products, left_out) = (products_of(&suite, catalogue)?, recorded_left_out(folder));
            return Ok(Chosen { suite, scaled: Vec::new(), left_out, products, all: false });
        }
        let only = filters(args)?;
        let (mut suite, scaled) = chosen_suite(args, &only, catalogue)?;
        let mut left_out = Vec::new();
        let all = args.products.iter().flatten().any(|name| name == ALL);
        if all {
            let home = Home::from_env().map_err(Failure::missing)?;
            // What a filter takes away is no product that is missing.
            if !only.iter().any(|filter| matches!(filter.key, FilterKey::Product | FilterKey::Profile)) {
                left_out = all::without_profile(&suite, catalogue);
            }
            left_out.extend(all::keep_what_is_here(&mut suite, catalogue, &home)?);
        }
        let products = products_of(&suite, catalogue)?;
        left_out.extend(left_out::unspoken(&suite, &products));
        left_out::something_is_left(&suite, &left_out).map_err(Failure::input)?;
        Ok(Chosen { suite, scaled, left_out, products, all })
    }
}

fn filters(args: &Args) -> Result<Vec<Filter>, Failure> {
    args.only.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>().map_err(Failure::input)
}

fn chosen_suite(args: &Args, only: &[Filter], catalogue: &Catalogue) -> Result<(Suite, Vec<String>), Failure> {
    let name = args.suite.as_deref().unwrap_or_default();
    let suite = crate::library::suite(catalogue, name)?;
    let mut selected =
        suite.select(args.products.as_deref(), args.profile.as_deref(), only, catalogue).map_err(Failure::input)?;
    if args.products.is_some() {
        // Products that the user names run at every scale.
        selected.scales.values_mut().for_each(|scale| scale.products = None);
    }
    let (mut suite, scaled) = selected.at_scale(args.scale.into());
    if let Some(blocks) = args.blocks {
        suite.blocks = blocks;
    }
    if args.seed.is_some() {
        suite.seed = args.seed;
    }
    if let Some(name) = &args.origin {
        suite.origin = Some(origin(name, catalogue)?);
    }
    Ok((suite, scaled))
}

fn origin(name: &str, catalogue: &Catalogue) -> Result<String, Failure> {
    let known = weir_model::Catalogue::origins(catalogue);
    if known.iter().any(|origin| origin == name) {
        return Ok(name.to_owned());
    }
    let names = || known.iter().map(String::as_str);
    Err(Failure::input(format!(
        "--origin: \"{name}\" is no product that can be the origin{}\n  would be right: {}; without --origin it is weir's own",
        weir_model::file::suggestion(name, names()),
        weir_model::file::listed(names())
    )))
}

fn products_of(suite: &Suite, catalogue: &Catalogue) -> Result<BTreeMap<String, Product>, Failure> {
    let mut products = BTreeMap::new();
    for name in suite.entries.iter().map(|entry| &entry.product).chain(&suite.origin) {
        let product = catalogue.product(name, "--products").map_err(Failure::input)?;
        products.insert(name.clone(), product.clone());
    }
    Ok(products)
}

fn recorded_suite(folder: &Path, catalogue: &Catalogue) -> Result<Suite, Failure> {
    let path = folder.join("run.toml");
    if !path.is_file() {
        return Err(Failure::input(format!(
            "--resume: {} is not a run folder: there is no run.toml in it\n  would be right: a folder that `weir run` made, such as runs/20260102-101500-quick",
            folder.display()
        )));
    }
    catalogue.suite(&path.display().to_string()).map_err(Failure::input)
}

/// What the run was begun without. A folder that does not say is refused when the run goes on, with its own message.
fn recorded_left_out(folder: &Path) -> Vec<LeftOut> {
    let bytes = std::fs::read(folder.join("environment.json")).unwrap_or_default();
    serde_json::from_slice::<Environment>(&bytes).map(|environment| environment.left_out).unwrap_or_default()
}
