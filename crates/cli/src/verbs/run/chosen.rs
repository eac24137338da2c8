//! What is to be run: the suite as its file says, narrowed by the user's selection, scaled, then overridden by flags.
//! Later wins. And what is left out of it, because it cannot be run here or at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weir_install::home::Home;
use weir_lab::run::overhead;
use weir_lab::skipped;
use weir_model::condition::Condition;
use weir_model::filter::FilterKey;
use weir_model::product::Product;
use weir_model::record::{Environment, Skipped};
use weir_model::select::ALL;
use weir_model::suite::{Entry, Scale, Suite};
use weir_product::catalogue::Catalogue;

use super::{all, budget};
use crate::exit::Failure;
use crate::select::Select;

/// Which part of which suite somebody wants, and how much of it.
#[derive(Debug)]
pub struct Wish<'a> {
    /// A suite's name, or the path of its file.
    pub suite: &'a str,
    /// Products, profiles and filters.
    pub select: &'a Select,
    /// How much of it.
    pub scale: Scale,
    /// Repetitions, instead of the suite's.
    pub blocks: Option<u32>,
    /// Seed, instead of the suite's.
    pub seed: Option<u64>,
    /// The product that is the origin.
    pub origin: Option<&'a str>,
    /// What the highest rate is to be found for.
    pub objective: Option<&'a [Condition]>,
    /// The time that there is.
    pub budget: Option<Duration>,
    /// A product that is not here is an error, whoever named it.
    pub strict: bool,
    /// CPUs that products have.
    pub cores: u32,
}

/// What is to be run.
#[derive(Debug)]
pub struct Chosen {
    /// The suite as resolved.
    pub suite: Suite,
    /// What the scale and the budget changed, in words.
    pub scaled: Vec<String>,
    /// What is left out, and why.
    pub skipped: Vec<Skipped>,
    /// The suite's products, and the one that is its origin.
    pub products: BTreeMap<String, Product>,
    /// Nobody named the products, so that one which cannot be got is left out and no error.
    pub lenient: bool,
}

impl Chosen {
    /// As the flags say.
    ///
    /// # Errors
    /// What is wrong in a flag or a file; that nothing is left to run, or that the budget is too small.
    pub fn of(wish: &Wish<'_>, catalogue: &Catalogue) -> Result<Chosen, Failure> {
        let selected = selected(wish, catalogue)?;
        let (mut suite, _) = selected.at_scale(wish.scale);
        let mut skipped = Vec::new();
        let all = wish.select.products.iter().flatten().any(|name| name == ALL);
        let lenient = all || (wish.select.products.is_none() && !wish.strict);
        if lenient {
            skipped = absent(wish, all, &mut suite, catalogue)?;
            if !skipped.is_empty() && !has_a_product(&suite, catalogue) {
                return Err(Failure::missing(format!(
                    "there is no product to measure\n  {}",
                    Skipped::sentences(&skipped).join("\n  ")
                )));
            }
        }
        let products = products_of(&suite, catalogue)?;
        skipped.extend(skipped::unspoken(&suite, &products));
        skipped::something_is_left(&suite, &skipped).map_err(Failure::input)?;
        let (suite, mut notes) = suite.on_cores(wish.cores);
        skipped::something_is_left(&suite, &skipped).map_err(Failure::input)?;
        let (suite, too_long) = budget::fitted(wish, suite, &skipped, &products)?;
        notes.extend(too_long);
        notes.extend(brought(wish, &suite, catalogue));
        let before = without(&selected, &skipped);
        let scaled = suite.changed_from(&before).into_iter().chain(notes).collect();
        Ok(Chosen { suite, scaled, skipped, products, lenient })
    }

    /// A run that goes on, as it was recorded.
    ///
    /// # Errors
    /// What is wrong with the folder.
    pub fn recorded(folder: &Path, catalogue: &Catalogue) -> Result<Chosen, Failure> {
        let suite = recorded_suite(folder, catalogue)?;
        let (products, skipped) = (products_of(&suite, catalogue)?, recorded_skipped(folder));
        Ok(Chosen { suite, scaled: Vec::new(), skipped, products, lenient: false })
    }

    /// How long it takes.
    pub fn takes(&self) -> Duration {
        self.suite.takes(&self.skipped, &overheads(&self.products))
    }
}

/// What a trial takes beside its load, by what is started in it.
pub fn overheads(products: &BTreeMap<String, Product>) -> impl Fn(&Entry) -> Duration {
    |entry| products.get(&entry.product).map_or(Duration::ZERO, overhead)
}

/// The suite with what the user's flags say of it, before it is scaled.
fn selected(wish: &Wish<'_>, catalogue: &Catalogue) -> Result<Suite, Failure> {
    let suite = crate::library::suite(catalogue, wish.suite)?;
    let select = wish.select;
    let only = select.filters().map_err(Failure::input)?;
    let (products, profile) = (select.products.as_deref(), select.profile.as_deref());
    let mut suite = suite.select(products, profile, &only, catalogue).map_err(Failure::input)?;
    if products.is_some() {
        // Products that the user names run at every scale.
        suite.scales.values_mut().for_each(|scale| scale.products = None);
    }
    if let Some(objective) = wish.objective {
        suite = suite.with_objective(objective.to_vec(), !select.names_loads()).map_err(Failure::input)?;
    }
    if let Some(blocks) = wish.blocks {
        suite.blocks = blocks;
        suite.scales.values_mut().for_each(|scale| scale.blocks = None);
    }
    suite.seed = wish.seed.or(suite.seed);
    if let Some(name) = wish.origin {
        suite.origin = Some(origin(name, catalogue)?);
    }
    Ok(suite)
}

/// What is not here and cannot be got, taken out of the suite.
fn absent(wish: &Wish<'_>, all: bool, suite: &mut Suite, catalogue: &Catalogue) -> Result<Vec<Skipped>, Failure> {
    let home = Home::from_env().map_err(Failure::missing)?;
    let mut skipped = Vec::new();
    // What a filter takes away is no product that is missing.
    let by_filter = |key| matches!(key, FilterKey::Product | FilterKey::Profile);
    let filters = wish.select.filters().map_err(Failure::input)?;
    if all && !filters.iter().any(|filter| by_filter(filter.key)) {
        skipped = all::without_profile(suite, catalogue);
    }
    skipped.extend(all::keep_what_is_here(suite, catalogue, &home)?);
    Ok(skipped)
}

/// What stays that nobody named, and why.
fn brought(wish: &Wish<'_>, suite: &Suite, catalogue: &Catalogue) -> Option<String> {
    let named = wish.select.products.as_ref()?;
    let is_direct = |product: &str| weir_model::Catalogue::is_direct(catalogue, product);
    if named.iter().any(|name| name == ALL || is_direct(name.split(':').next().unwrap_or_default())) {
        return None;
    }
    let direct = suite.entries.iter().find(|entry| is_direct(&entry.product))?;
    Some(format!("product {} is run, too: rates are shares of what it carries", direct.product))
}

/// Whether anything but the baseline is left.
fn has_a_product(suite: &Suite, catalogue: &Catalogue) -> bool {
    suite.entries.iter().any(|entry| !weir_model::Catalogue::is_direct(catalogue, &entry.product))
}

/// The suite without products that are left out altogether: the scale did not take them, and is not said to have.
fn without(suite: &Suite, skipped: &[Skipped]) -> Suite {
    let mut suite = suite.clone();
    let gone = |product: &str| skipped.iter().any(|one| one.product == product && one.profile.is_empty());
    suite.entries.retain(|entry| !gone(&entry.product));
    suite
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
fn recorded_skipped(folder: &Path) -> Vec<Skipped> {
    let bytes = std::fs::read(folder.join("environment.json")).unwrap_or_default();
    serde_json::from_slice::<Environment>(&bytes).map(|environment| environment.skipped).unwrap_or_default()
}
