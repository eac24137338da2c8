//! Runs all checks for one product in one profile, in the order in which they disturb the product least.
//! `weir products test` calls [`test()`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_model::product::Product;
use weir_model::record::TrialError;
use weir_model::suite::{Protocol, Tls};
use weir_wire::tls::TlsError;

use super::cell::{Cell, Verdict};
use super::real::RealTestbed;
use super::table::{CHECKS, Check, Kind};
use weir_host::Host;
use weir_host::stop::Stop;
use weir_product::launch::{Installed, Launcher};
use weir_product::tls::RunTls;

/// The state that all products of a run share. TLS sessions may be resumed, because a check tests this.
///
/// # Errors
/// When no certificate can be generated.
pub fn launcher(host: Arc<dyn Host>, installed: BTreeMap<String, Installed>) -> Result<Launcher, TlsError> {
    Ok(Launcher { tls: RunTls::new(Tls { resumption: true, ..Tls::default() })?, host, installed })
}

/// What to test: one product in one profile.
#[derive(Debug)]
pub struct TestSpec<'a> {
    /// What is needed to start products.
    pub launcher: &'a Launcher,
    /// Which product.
    pub product: &'a Product,
    /// Which profile.
    pub profile: &'a str,
    /// The names of the checks to run; empty means all.
    pub only: &'a [String],
    /// An empty folder, absolute, for configurations and outputs.
    pub folder: &'a Path,
}

/// The progress of a run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The product is being started for this protocol.
    Starting(Protocol),
    /// A check begins.
    Asking(&'static Check),
    /// A check has ended.
    Answered(&'static Check, &'a Cell),
}

/// The results of one product in one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProductReport {
    /// The product's name.
    pub product: String,
    /// The profile's name.
    pub profile: String,
    /// The kinds of protocols that it speaks.
    pub kinds: Vec<Kind>,
    /// The cells by the check's name, in the order of the table. Checks that were not selected have none, nor have those of
    /// another kind of protocols.
    pub cells: Vec<(String, Cell)>,
    /// Why the product could not be started; there are no cells then.
    pub error: Option<TrialError>,
    /// The run was stopped before all checks were made.
    pub cut_short: bool,
    /// The duration in seconds.
    pub took_s: f64,
}

impl ProductReport {
    /// The cell of a check.
    pub fn cell(&self, check: &str) -> Option<&Cell> {
        self.cells.iter().find(|(name, _)| name == check).map(|(_, cell)| cell)
    }
}

/// How long a product may take to serve again after a check.
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);

/// Runs the checks.
pub fn test(spec: &TestSpec<'_>, stop: &Stop, notify: &mut dyn FnMut(Progress<'_>)) -> ProductReport {
    let begun = Instant::now();
    let mut cells = Vec::new();
    let (mut error, mut has_started) = (None, false);
    let spoken = spec.product.spoken_under(spec.profile);
    let kinds = kinds(spec.product, spec.profile);
    let wanted: Vec<&'static Check> =
        wanted(spec.only).filter(|check| kinds.iter().any(|kind| kind.has(check))).collect();
    let unspoken = wanted.iter().filter(|check| !spoken.iter().any(|protocol| check.protocol.fits(*protocol)));
    cells.extend(unspoken.map(|check| (*check, Cell::absent(""))));
    for &protocol in Protocol::ALL.iter().filter(|protocol| spoken.contains(protocol)) {
        let asked = wanted.iter().filter(|check| check.protocol.fits(protocol));
        let mut due: Vec<&'static Check> = asked.copied().collect();
        due.sort_by_key(|check| check.when);
        if due.is_empty() || stop.is_requested() {
            continue;
        }
        notify(Progress::Starting(protocol));
        match RealTestbed::start(spec, protocol, stop) {
            Ok(mut bed) => {
                has_started = true;
                let mut found = Vec::new();
                run_checks(&mut bed, &due, stop, notify, &mut found);
                found.into_iter().for_each(|(check, cell)| add(&mut cells, check, cell, protocol));
            }
            Err(_) if stop.is_requested() => {}
            // Over plain TCP: it does not work at all.
            Err(why) if !has_started && protocol == protocol.upstream() => {
                error = Some(why);
                break;
            }
            Err(why) => due.iter().for_each(|check| add(&mut cells, check, not_started(&why, spec.folder), protocol)),
        }
    }
    let place = |check: &Check| CHECKS.iter().position(|one| one.name == check.name);
    cells.sort_by_key(|(check, _)| place(check));
    ProductReport {
        product: spec.product.name.clone(),
        profile: spec.profile.to_owned(),
        kinds,
        cells: cells.into_iter().map(|(check, cell)| (check.name.clone(), cell)).collect(),
        error,
        cut_short: stop.is_requested(),
        took_s: begun.elapsed().as_secs_f64(),
    }
}

/// The kinds of protocols that a product speaks under a profile.
pub fn kinds(product: &Product, profile: &str) -> Vec<Kind> {
    let spoken = product.spoken_under(profile);
    Kind::ALL.into_iter().filter(|kind| spoken.iter().any(|protocol| Kind::of(*protocol) == *kind)).collect()
}

/// The checks of these names; all if there are no names.
pub fn wanted(only: &[String]) -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().filter(|check| only.is_empty() || only.contains(&check.name))
}

/// Adds what was found in a protocol. A product that was asked in another one before has one cell for both.
fn add(cells: &mut Vec<(&'static Check, Cell)>, check: &'static Check, cell: Cell, protocol: Protocol) {
    match cells.iter_mut().find(|(other, _)| other.name == check.name) {
        None => cells.push((check, cell)),
        Some((_, first)) => *first = first.clone().and_over(cell, protocol.title()),
    }
}

/// The last line of the product's output is the most useful. The path of its folder is removed: the folder is
/// temporary.
fn not_started(why: &TrialError, folder: &Path) -> Cell {
    let last = why.evidence.lines().last().unwrap_or_default().replace(&format!("{}/", folder.display()), "");
    Cell::no("does not start").with(why.message.clone()).with(last.trim())
}

fn run_checks(
    bed: &mut RealTestbed<'_>,
    due: &[&'static Check],
    stop: &Stop,
    notify: &mut dyn FnMut(Progress<'_>),
    cells: &mut Vec<(&'static Check, Cell)>,
) {
    for (nth, check) in due.iter().enumerate() {
        notify(Progress::Asking(check));
        let cell = check.cell(bed);
        // A check during a request to stop may have failed because of it.
        if stop.is_requested() {
            return;
        }
        let last = nth + 1 == due.len();
        let (cell, goes_on) = after(bed, check, cell, last);
        notify(Progress::Answered(check, &cell));
        cells.push((check, cell));
        if let Err(why) = goes_on {
            let not_asked = due.iter().skip(nth + 1);
            cells.extend(not_asked.map(|check| (*check, Cell::unknown(format!("it did not start again: {why}")))));
            return;
        }
    }
}

/// Makes sure that the product serves before the next check. If it does not, the cell says so and the product is
/// restarted.
fn after(bed: &mut RealTestbed<'_>, check: &Check, cell: Cell, last: bool) -> (Cell, Result<(), String>) {
    if check.when.uses_up() {
        return (cell, if last { Ok(()) } else { bed.restart() });
    }
    // A good result leaves no response in transit. The crosstalk check leaves connections to the origin, which other
    // checks count.
    let suspect = !matches!(cell.verdict, Verdict::Yes | Verdict::Reading);
    let looked = bed.wait_until_serving(RECOVERS_WITHIN);
    let cell = match looked.and_then(|()| if suspect { bed.check_crosstalk() } else { Ok(()) }) {
        Ok(()) => return (cell, Ok(())),
        Err(how) => cell.with(how),
    };
    (cell, if last { Ok(()) } else { bed.restart() })
}
