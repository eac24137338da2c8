//! All checks of one product in one profile, in an order that suits the product and not the table.

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

/// What all products of a run share. Sessions of TLS may be resumed, so that it shows which
/// product can.
///
/// # Errors
/// When no certificate can be made.
pub fn launcher(host: Arc<dyn Host>, installed: BTreeMap<String, Installed>) -> Result<Launcher, TlsError> {
    Ok(Launcher { tls: RunTls::new(Tls { resumption: true, ..Tls::default() })?, host, installed })
}

/// One product in one profile.
#[derive(Debug)]
pub struct TestSpec<'a> {
    /// What starting products needs.
    pub launcher: &'a Launcher,
    /// Which product.
    pub product: &'a Product,
    /// Which profile.
    pub profile: &'a str,
    /// Names of the checks to make; empty for all.
    pub only: &'a [String],
    /// An empty folder, absolute, for configurations and outputs.
    pub folder: &'a Path,
}

/// What happens meanwhile.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The product is started, to speak this.
    Starting(Protocol),
    /// A question is put.
    Asking(&'static Check),
    /// It is answered.
    Answered(&'static Check, &'a Cell),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProductReport {
    /// Product name.
    pub product: String,
    /// Profile name.
    pub profile: String,
    /// Cells by the check's name, in the order of the table. Checks that were not asked for have none.
    pub cells: Vec<(String, Cell)>,
    /// Why it could not be started; then there are no cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
    /// Somebody asked to stop before all was asked.
    #[serde(default)]
    pub cut_short: bool,
    /// Seconds.
    pub took_s: f64,
}

impl ProductReport {
    /// A cell.
    pub fn cell(&self, check: &str) -> Option<&Cell> {
        self.cells.iter().find(|(name, _)| name == check).map(|(_, cell)| cell)
    }
}

/// How long a product may take to serve again after a question.
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);

/// Puts the questions.
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

/// The last line of what it printed says most; where its folder was says nothing to anybody later.
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
        let cell = (check.run)(bed).unwrap_or_else(|cell| cell);
        // What was asked while somebody wished to stop was perhaps not answered for that reason.
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

/// Sees to it that the next check has a product that serves, and says in the cell when this one's did not any more.
fn after(bed: &mut RealTestbed<'_>, check: &Check, cell: Cell, last: bool) -> (Cell, Result<(), String>) {
    if check.when.uses_up() {
        return (cell, if last { Ok(()) } else { bed.restart() });
    }
    // What was answered well leaves nothing on its way. To look leaves connections to the origin, which other checks count.
    let suspect = !matches!(cell.verdict, Verdict::Yes | Verdict::Reading);
    let looked = bed.wait_until_serving(RECOVERS_WITHIN);
    let cell = match looked.and_then(|()| if suspect { bed.check_crosstalk() } else { Ok(()) }) {
        Ok(()) => return (cell, Ok(())),
        Err(how) => cell.with(how),
    };
    (cell, if last { Ok(()) } else { bed.restart() })
}
