//! Resolves the suite that `weir run` and `weir suites` work on: its file, narrowed by the user's selection, scaled,
//! then overridden by flags. It also lists what is skipped because it cannot run here.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weir_lab::run::overhead;
use weir_lab::skipped;
use weir_model::condition::Condition;
use weir_model::filter::FilterKey;
use weir_model::product::Product;
use weir_model::record::{Environment, Skipped};
use weir_model::select::ALL;
use weir_model::suite::{Entry, Scale, Suite};
use weir_model::text::{one_of, suggestion};
use weir_product::catalogue::Catalogue;

use super::available::{self, Availability};
use super::budget;
use crate::args::{Select, choice, parse_count};
use crate::exit::Failure;
use crate::verbs::products::Demand;

/// The flags that decide what is run.
#[derive(Debug, Clone, clap::Args)]
pub struct SuiteRequest {
    /// A suite's name (see `weir suites list`), or the path of a .toml file.
    #[arg(required_unless_present = "resume")]
    pub suite: Option<String>,
    /// Run exactly what the suite's document ran: its products as published, at full scale, each case once. No product is skipped
    /// (--strict); --products measures others in their place.
    #[arg(long, conflicts_with_all = ["profile", "blocks", "budget", "objective"])]
    pub as_published: bool,
    #[command(flatten)]
    pub select: Select,
    /// Find the highest rate at which these hold, such as 'p99<5ms, errors<0.1%'. Replaces the suite's loads unless --only load=
    /// names some.
    #[arg(long, value_name = "CONDITIONS", value_parser = Condition::list)]
    pub objective: Option<std::vec::Vec<Condition>>,
    /// Number of times that each case is repeated [default: the suite's].
    #[arg(long, value_name = "N", value_parser = parse_count(1..=1000u32))]
    pub blocks: Option<u32>,
    /// How much of the suite to run [default: fit; with --as-published full].
    #[arg(long, value_parser = choice(&SCALES))]
    pub scale: Option<Scale>,
    /// Time that the run may take; windows, requests and blocks are reduced to fit [default: 20m at --scale fit].
    #[arg(long, value_name = "TIME", value_parser = budget::parse)]
    pub budget: Option<Duration>,
    /// Fail when a product of the suite cannot be installed, instead of skipping it.
    #[arg(long)]
    pub strict: bool,
    /// Use this product as the origin instead of weir's own. It has no counters.
    #[arg(long, value_name = "PRODUCT")]
    pub origin: Option<String>,
    /// Seed of the order within blocks and of arrivals [default: random, and recorded].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    pub seed: Option<u64>,
}

/// Scales by name.
const SCALES: [(&str, &str, Scale); 3] = [
    ("smoke", "Seconds: checks that everything works; the numbers mean nothing", Scale::Smoke),
    ("fit", "Fitted to this machine", Scale::Fit),
    ("full", "As long as the suite says", Scale::Full),
];

impl SuiteRequest {
    /// The suite, or nothing when a run is resumed.
    pub fn name(&self) -> &str {
        self.suite.as_deref().unwrap_or_default()
    }

    /// How much of it.
    pub fn scale(&self) -> Scale {
        self.scale.unwrap_or(if self.as_published { Scale::Full } else { Scale::Fit })
    }
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
    /// As the flags say, on a machine where the product has so many cores; `None`: they are not known yet, and
    /// [`ResolvedSuite::on_cores`] follows. `known` says which products can be installed, as far as that was found out before.
    ///
    /// # Errors
    /// What is wrong in a flag or a file; that nothing is left to run, or that the budget is too small.
    pub fn resolve(
        request: &SuiteRequest,
        cores: Option<usize>,
        catalogue: &Catalogue,
        known: &mut Availability,
    ) -> Result<ResolvedSuite, Failure> {
        let selected = selected(request, catalogue)?;
        let (mut suite, _) = selected.at_scale(request.scale());
        let mut skipped = Vec::new();
        let all = request.select.products.iter().flatten().any(|name| name == ALL);
        let lenient = all || (request.select.products.is_none() && !request.strict && !request.as_published);
        if lenient {
            skipped = absent(request, all, &mut suite, catalogue, known)?;
            if !skipped.is_empty() && !has_a_product(&suite, catalogue) {
                return Err(available::none_left(&skipped));
            }
        }
        let products = products_of(&suite, catalogue)?;
        skipped.extend(skipped::unsupported(&suite, &products));
        skipped::check_not_empty(&suite, &skipped).map_err(Failure::input)?;
        let resolved = ResolvedSuite { suite, scaled: Vec::new(), skipped, products, lenient };
        let ResolvedSuite { suite, scaled: mut notes, skipped, products, lenient } = match cores {
            Some(cores) => resolved.on_cores(cores)?,
            None => resolved,
        };
        let (suite, note) = budget::fit(request, suite, &skipped, &products)?;
        notes.extend(note);
        notes.extend(direct_note(request, &suite, catalogue));
        let before = without(&selected, &skipped);
        let scaled = suite.changed_from(&before).into_iter().chain(notes).collect();
        Ok(ResolvedSuite { suite, scaled, skipped, products, lenient })
    }

    /// Without the loads that ask for more cores than the product has.
    ///
    /// # Errors
    /// When nothing is left to run.
    pub fn on_cores(self, cores: usize) -> Result<ResolvedSuite, Failure> {
        let (suite, notes) = self.suite.on_cores(u32::try_from(cores).unwrap_or(u32::MAX));
        if suite.loads.is_empty() {
            return Err(Failure::missing(notes.join("\n")));
        }
        skipped::check_not_empty(&suite, &self.skipped).map_err(Failure::input)?;
        let scaled = [self.scaled, notes].concat();
        Ok(ResolvedSuite { suite, scaled, ..self })
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

    /// Which of its products have to be installed.
    pub fn demand(&self) -> Demand {
        if self.lenient { Demand::ForRun } else { Demand::All }
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
fn selected(request: &SuiteRequest, catalogue: &Catalogue) -> Result<Suite, Failure> {
    let suite = crate::library::suite(catalogue, request.name())?;
    let suite = if request.as_published { as_published(request, &suite, catalogue)? } else { suite };
    let select = &request.select;
    let (products, profile) = (select.products.as_deref(), select.profile.as_deref());
    let mut suite = suite.select(products, profile, &select.only, catalogue).map_err(Failure::input)?;
    if products.is_some() {
        // Products that the user named run at every scale.
        suite.scales.values_mut().for_each(|scale| scale.products = None);
    }
    if let Some(objective) = request.objective.clone() {
        suite = suite.with_objective(objective, !select.names_loads()).map_err(Failure::input)?;
    }
    if let Some(blocks) = request.blocks {
        suite.blocks = blocks;
        suite.scales.values_mut().for_each(|scale| scale.blocks = None);
    }
    suite.seed = request.seed.or(suite.seed);
    if let Some(name) = &request.origin {
        suite.origin = Some(origin(name, catalogue)?);
    }
    Ok(suite)
}

/// The part of the suite that its document ran.
fn as_published(request: &SuiteRequest, suite: &Suite, catalogue: &Catalogue) -> Result<Suite, Failure> {
    if request.scale() == Scale::Fit {
        let found = "--as-published runs what a document ran, and fit shortens it to this machine";
        return Err(Failure::wrong("--scale", found, "full, which is the default then, or smoke to try it"));
    }
    suite.as_published().ok_or_else(|| {
        let repeats = |name: &&String| catalogue.suite(name).is_ok_and(|suite| suite.as_published.is_some());
        let found = format!("suite \"{}\" repeats no document: it has no [as_published]", suite.name);
        Failure::wrong("--as-published", found, one_of(catalogue.suites().keys().filter(repeats)))
    })
}

/// Removes products that cannot be installed from the suite.
fn absent(
    request: &SuiteRequest,
    all: bool,
    suite: &mut Suite,
    catalogue: &Catalogue,
    known: &mut Availability,
) -> Result<Vec<Skipped>, Failure> {
    let mut skipped = Vec::new();
    // A product that a filter removed is not missing.
    let by_filter = |key| matches!(key, FilterKey::Product | FilterKey::Profile);
    if all && !request.select.only.iter().any(|filter| by_filter(filter.key)) {
        skipped = available::without_profile(suite, catalogue);
    }
    skipped.extend(available::keep_available(suite, catalogue, known)?);
    Ok(skipped)
}

/// Why the direct path runs although the user did not name it.
fn direct_note(request: &SuiteRequest, suite: &Suite, catalogue: &Catalogue) -> Option<String> {
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
    let found = format!("\"{name}\" cannot be the origin{}", suggestion(name, &known));
    Err(Failure::wrong("--origin", found, format!("{}; without --origin it is weir's own", one_of(&known))))
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
        let found = format!("{} is not a run folder: it has no run.toml", folder.display());
        let wanted = "a folder that `weir run` made, such as runs/20260102-101500-quick";
        return Err(Failure::wrong("--resume", found, wanted));
    }
    catalogue.suite(&path.display().to_string()).map_err(Failure::input)
}

/// What the run skipped. A folder without this record is refused later, when the run is resumed.
fn recorded_skipped(folder: &Path) -> Vec<Skipped> {
    let bytes = weir_model::regular::read(&folder.join("environment.json")).unwrap_or_default();
    serde_json::from_slice::<Environment>(&bytes).map(|environment| environment.skipped).unwrap_or_default()
}
