//! Resolves the suite that `weir run` and `weir suites` work on: its file, narrowed by the user's selection, scaled,
//! then overridden by flags. It also lists what is skipped because it cannot run here.

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

use super::{available, budget};
use crate::args::Select;
use crate::exit::Failure;

/// The flags that decide what is run.
#[derive(Debug)]
pub struct SuiteRequest<'a> {
    /// A suite's name, or the path of its file.
    pub suite: &'a str,
    /// Products, profiles and filters.
    pub select: &'a Select,
    /// The scale.
    pub scale: Scale,
    /// Repetitions, instead of the suite's.
    pub blocks: Option<u32>,
    /// Seed, instead of the suite's.
    pub seed: Option<u64>,
    /// The product that is the origin.
    pub origin: Option<&'a str>,
    /// The conditions of --objective.
    pub objective: Option<&'a [Condition]>,
    /// The time that the run may take.
    pub budget: Option<Duration>,
    /// A missing product is an error, also when the suite names it.
    pub strict: bool,
    /// Number of CPUs of the product.
    pub cores: u32,
}

/// What is run.
#[derive(Debug)]
pub struct ResolvedSuite {
    /// The suite as resolved.
    pub suite: Suite,
    /// What the scale and the budget changed, in words.
    pub scaled: Vec<String>,
    /// What is skipped, and why.
    pub skipped: Vec<Skipped>,
    /// The suite's products, and the one that is its origin.
    pub products: BTreeMap<String, Product>,
    /// The user named no products, so one that cannot be installed is skipped.
    pub lenient: bool,
}

impl ResolvedSuite {
    /// As the flags say.
    ///
    /// # Errors
    /// What is wrong in a flag or a file; that nothing is left to run, or that the budget is too small.
    pub fn resolve(request: &SuiteRequest<'_>, catalogue: &Catalogue) -> Result<ResolvedSuite, Failure> {
        let selected = selected(request, catalogue)?;
        let (mut suite, _) = selected.at_scale(request.scale);
        let mut skipped = Vec::new();
        let all = request.select.products.iter().flatten().any(|name| name == ALL);
        let lenient = all || (request.select.products.is_none() && !request.strict);
        if lenient {
            skipped = absent(request, all, &mut suite, catalogue)?;
            if !skipped.is_empty() && !has_a_product(&suite, catalogue) {
                return Err(Failure::missing(format!(
                    "there is no product to measure\n  {}",
                    Skipped::sentences(&skipped).join("\n  ")
                )));
            }
        }
        let products = products_of(&suite, catalogue)?;
        skipped.extend(skipped::unsupported(&suite, &products));
        skipped::check_not_empty(&suite, &skipped).map_err(Failure::input)?;
        let (suite, mut notes) = suite.on_cores(request.cores);
        skipped::check_not_empty(&suite, &skipped).map_err(Failure::input)?;
        let (suite, note) = budget::fit(request, suite, &skipped, &products)?;
        notes.extend(note);
        notes.extend(direct_note(request, &suite, catalogue));
        let before = without(&selected, &skipped);
        let scaled = suite.changed_from(&before).into_iter().chain(notes).collect();
        Ok(ResolvedSuite { suite, scaled, skipped, products, lenient })
    }

    /// A run that is resumed, as it was recorded.
    ///
    /// # Errors
    /// What is wrong with the folder.
    pub fn recorded(folder: &Path, catalogue: &Catalogue) -> Result<ResolvedSuite, Failure> {
        let suite = recorded_suite(folder, catalogue)?;
        let (products, skipped) = (products_of(&suite, catalogue)?, recorded_skipped(folder));
        Ok(ResolvedSuite { suite, scaled: Vec::new(), skipped, products, lenient: false })
    }

    /// How long it takes.
    pub fn takes(&self) -> Duration {
        self.suite.takes(&self.skipped, &overheads(&self.products))
    }
}

/// Time of a trial besides its load.
pub fn overheads(products: &BTreeMap<String, Product>) -> impl Fn(&Entry) -> Duration {
    |entry| products.get(&entry.product).map_or(Duration::ZERO, overhead)
}

/// The suite with what the user's flags say of it, before it is scaled.
fn selected(request: &SuiteRequest<'_>, catalogue: &Catalogue) -> Result<Suite, Failure> {
    let suite = crate::library::suite(catalogue, request.suite)?;
    let select = request.select;
    let (products, profile) = (select.products.as_deref(), select.profile.as_deref());
    let mut suite = suite.select(products, profile, &select.only, catalogue).map_err(Failure::input)?;
    if products.is_some() {
        // Products that the user named run at every scale.
        suite.scales.values_mut().for_each(|scale| scale.products = None);
    }
    if let Some(objective) = request.objective {
        suite = suite.with_objective(objective.to_vec(), !select.names_loads()).map_err(Failure::input)?;
    }
    if let Some(blocks) = request.blocks {
        suite.blocks = blocks;
        suite.scales.values_mut().for_each(|scale| scale.blocks = None);
    }
    suite.seed = request.seed.or(suite.seed);
    if let Some(name) = request.origin {
        suite.origin = Some(origin(name, catalogue)?);
    }
    Ok(suite)
}

/// Removes products that cannot be installed from the suite.
fn absent(
    request: &SuiteRequest<'_>,
    all: bool,
    suite: &mut Suite,
    catalogue: &Catalogue,
) -> Result<Vec<Skipped>, Failure> {
    let home = Home::from_env().map_err(Failure::missing)?;
    let mut skipped = Vec::new();
    // A product that a filter removed is not missing.
    let by_filter = |key| matches!(key, FilterKey::Product | FilterKey::Profile);
    if all && !request.select.only.iter().any(|filter| by_filter(filter.key)) {
        skipped = available::without_profile(suite, catalogue);
    }
    skipped.extend(available::keep_available(suite, catalogue, &home)?);
    Ok(skipped)
}

/// Why the direct path runs although the user did not name it.
fn direct_note(request: &SuiteRequest<'_>, suite: &Suite, catalogue: &Catalogue) -> Option<String> {
    let named = request.select.products.as_ref()?;
    let is_direct = |product: &str| weir_model::Catalogue::is_direct(catalogue, product);
    if named.iter().any(|name| name == ALL || is_direct(name.split(':').next().unwrap_or_default())) {
        return None;
    }
    let direct = suite.entries.iter().find(|entry| is_direct(&entry.product))?;
    Some(format!("product {} runs, too, because rates are shares of what it carries", direct.product))
}

/// Whether anything but the baseline is left.
fn has_a_product(suite: &Suite, catalogue: &Catalogue) -> bool {
    suite.entries.iter().any(|entry| !weir_model::Catalogue::is_direct(catalogue, &entry.product))
}

/// The suite without products that are skipped altogether, so that they do not count as changes by the scale.
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
        "--origin: \"{name}\" cannot be the origin{}\n  expected: {}; without --origin it is weir's own",
        weir_model::text::suggestion(name, names()),
        weir_model::text::one_of(names())
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
            "--resume: {} is not a run folder: it has no run.toml\n  expected: a folder that `weir run` made, such as runs/20260102-101500-quick",
            folder.display()
        )));
    }
    catalogue.suite(&path.display().to_string()).map_err(Failure::input)
}

/// What the run skipped. A folder without this record is refused later, when the run is resumed.
fn recorded_skipped(folder: &Path) -> Vec<Skipped> {
    let bytes = std::fs::read(folder.join("environment.json")).unwrap_or_default();
    serde_json::from_slice::<Environment>(&bytes).map(|environment| environment.skipped).unwrap_or_default()
}
