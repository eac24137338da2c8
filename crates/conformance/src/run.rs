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
use super::checks::h3;
use super::real::RealTestbed;
use super::table::{CHECKS, Check};
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
    /// The cells by the check's name, in the order of the table. Checks that were not selected have none.
    pub cells: Vec<(String, Cell)>,
    /// Why the product could not be started; there are no cells then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
    /// The run was stopped before all checks were made.
    #[serde(default)]
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
    let mut error = None;
    for &protocol in Protocol::ALL {
        let mut due: Vec<&'static Check> = CHECKS.iter().filter(|check| wanted(check, protocol, spec.only)).collect();
        due.sort_by_key(|check| check.when);
        if due.is_empty() || stop.is_requested() {
            continue;
        }
        let spoken = spec.product.spoken_under(spec.profile).contains(&protocol);
        if !spoken || !protocol.is_measured() {
            let cell = if spoken { h3::described() } else { Cell::absent("") };
            cells.extend(due.iter().map(|check| (*check, cell.clone())));
            continue;
        }
        notify(Progress::Starting(protocol));
        match RealTestbed::start(spec, protocol, stop) {
            Ok(mut bed) => run_checks(&mut bed, &due, stop, notify, &mut cells),
            Err(_) if stop.is_requested() => {}
            Err(why) if protocol == Protocol::default() => {
                error = Some(why);
                break;
            }
            Err(why) => cells.extend(due.iter().map(|check| (*check, not_started(&why, spec.folder)))),
        }
    }
    let place = |check: &Check| CHECKS.iter().position(|one| one.name == check.name);
    cells.sort_by_key(|(check, _)| place(check));
    ProductReport {
        product: spec.product.name.clone(),
        profile: spec.profile.to_owned(),
        cells: cells.into_iter().map(|(check, cell)| (check.name.to_owned(), cell)).collect(),
        error,
        cut_short: stop.is_requested(),
        took_s: begun.elapsed().as_secs_f64(),
    }
}

fn wanted(check: &Check, protocol: Protocol, only: &[String]) -> bool {
    check.protocol == protocol && (only.is_empty() || only.iter().any(|name| name == check.name))
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
