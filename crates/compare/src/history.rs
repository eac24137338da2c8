//! Each case over many runs: its numbers in the order of time or of versions, and from which run on they changed. It is made from
//! run folders alone: folders in, one [`History`] out. `weir history` calls [`history`] and prints it as a table, as JSON, or as a page.
//! `docs/history.md` describes the method, with its false alarms and its power.
//!
//! Runs are grouped by machine, and a case by what it asked: nothing is compared across groups. This module does not know how
//! anything was measured, and judges no pair of runs, which is the rest of this crate's.

mod output;
mod page;
mod read;
mod sentences;
mod series;

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use weir_model::InputError;
use weir_model::metric::Metric;
use weir_model::record::CaseId;
use weir_model::text::{one_of, suggestion, unique};
use weir_report::run::BASELINE;
use weir_report::{Part, ReportError, SkippedRun};
use weir_stats::Estimate;

pub use output::text;
pub use page::write_page;

use crate::{Difference, Family, RunFacts};
use read::Group;

/// The version of the [`History`] format.
pub const HISTORY_SCHEMA: u32 = 1;

/// The order of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// When they began.
    Date,
    /// By the version of the case's product, then by date.
    Version,
    /// By weir's version, then by date.
    Weir,
    /// By the kernel's version, then by date.
    Kernel,
}

/// What ends `weir history` with status 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// A change for the worse in the newest runs.
    Worse,
    /// Any change in the newest runs.
    Any,
    /// Nothing.
    Never,
}

/// What a history is of, and what counts as a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Options {
    /// The order of the runs.
    pub by: Order,
    /// The share of histories without any change that have none in any of their series: between 0 and 1, both excluded.
    pub level: f64,
    /// The least change, as a ratio above 1.
    pub least: f64,
    /// So many runs at the end of a series are its newest.
    pub newest: usize,
    /// Which changes in the newest runs are alarms.
    pub fail_on: FailOn,
    /// The product by whose numbers of the same block others are divided: the direct path, or one that stays the same in all runs.
    pub reference: String,
    /// Take numbers as measured, not divided.
    #[serde(skip)]
    pub absolute: bool,
    /// Include trials during which other processes used the machine.
    #[serde(skip)]
    pub busy: bool,
    /// Take machines that differ in nothing but their names for one.
    #[serde(skip)]
    pub any_host: bool,
    /// Which cases.
    #[serde(skip)]
    pub selection: Part,
    /// Which numbers; empty: those that `weir compare` compares.
    #[serde(skip)]
    pub metrics: Vec<Metric>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            by: Order::Date,
            level: 0.95,
            least: 1.02,
            newest: 10,
            fail_on: FailOn::Worse,
            reference: BASELINE.to_owned(),
            absolute: false,
            busy: false,
            any_host: false,
            selection: Part::default(),
            metrics: Vec::new(),
        }
    }
}

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A folder holds no run, a filter names what no run has, or no run can be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A folder that was named is no run.
    #[error(transparent)]
    Run(#[from] ReportError),
}

/// Cases over runs. `weir history --json` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// [`HISTORY_SCHEMA`].
    pub schema: u32,
    /// Its cases, and the rule for a change.
    #[serde(flatten)]
    pub options: Options,
    /// The claims, one a series of a product, and the level of each.
    pub claims: Family,
    /// The result, one sentence.
    pub answer: String,
    /// What a reader must know first, one sentence each.
    pub remarks: Vec<String>,
    /// The changes because of which `weir history` ends with status 1, one sentence each.
    pub alarms: Vec<String>,
    /// The machines, and the runs of each.
    pub machines: Vec<Machine>,
    /// Runs that are not used.
    pub skipped: Vec<SkippedRun>,
    /// Each number of each case.
    pub series: Vec<Series>,
}

/// A machine, as far as runs on it can be compared.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// As readers know it; unique in a history.
    pub label: String,
    /// What runs must have in common to be in this group: names and values.
    pub facts: Vec<(String, String)>,
    /// Its runs by date.
    pub runs: Vec<RunFacts>,
}

/// One number of a case on a machine, run by run.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// The machine's label.
    pub machine: String,
    /// The suite.
    pub suite: String,
    /// Product, profile, workload, load.
    #[serde(flatten)]
    pub case: CaseId,
    /// Product and profile as shown to readers.
    pub label: String,
    /// Why this is not the series of earlier runs with the same case, such as another path; `None` for the first.
    pub apart: Option<String>,
    /// Which number.
    #[serde(serialize_with = "compared_name")]
    pub metric: Metric,
    /// Of the direct path or the reference where other products are there: it shows the machine, and no claim is made.
    pub of_machine: bool,
    /// Values were divided by the reference's of the same blocks, and multiplied by its median over all runs.
    pub divided: bool,
    /// The runs, in order.
    pub points: Vec<Point>,
    /// Runs that have the case and no such number.
    pub without: Vec<Without>,
    /// How much runs differ without a change: the standard deviation between changes, as a share; `None` below two.
    pub noise: Option<f64>,
    /// The changes, in the order of the runs.
    pub changes: Vec<Change>,
}

/// A run in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The run.
    pub run: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// What runs are ordered by before their date; empty for the date.
    pub key: String,
    /// The value that is judged: requests a second, microseconds, bytes, or a share.
    pub value: f64,
    /// The median over blocks, as measured.
    pub measured: f64,
    /// Blocks with a value.
    pub blocks: usize,
    #[serde(skip)]
    folder: PathBuf,
}

/// A run that has no number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Without {
    /// The run.
    pub run: String,
    /// The reason.
    pub why: String,
}

/// What is said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The product's number changed.
    Changed,
    /// A time that changed when divided by the reference's, and not as measured: the reference alone may have changed.
    Unclear,
    /// The machine changed: the number of the direct path or of the reference.
    Machine,
}

/// From one run on, another level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Place of the first run of the new level in the series.
    pub at: usize,
    /// That run.
    pub run: String,
    /// The median from the change before it on.
    pub before: f64,
    /// The median up to the next change.
    pub after: f64,
    /// After over before, with an interval at the level of each claim.
    pub ratio: Estimate,
    /// How often a series without this change would look as changed.
    pub p: f64,
    /// For the worse.
    pub worse: bool,
    /// What is said of it.
    pub verdict: Verdict,
    /// It is the last change of its series, and among the newest runs.
    pub newest: bool,
    /// What else changed within two runs of it.
    pub differences: Vec<Difference>,
}

fn compared_name<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.compared_name())
}

/// The history of the runs in `folders`: run folders, or folders with runs in them at any depth down to the fourth.
///
/// # Errors
/// A folder without a run, a filter with a name that no run has, or no run that can be used.
pub fn history(folders: &[PathBuf], options: &Options) -> Result<History, HistoryError> {
    let (runs, skipped) = read::runs(folders, options)?;
    let cases: Vec<CaseId> = runs.iter().flat_map(|run| run.cases.iter().map(|of| of.case.clone())).collect();
    options.selection.check(&cases, "no run has a")?;
    check_reference(&options.reference, &cases)?;
    if runs.is_empty() {
        return Err(InputError::of("weir history", sentences::none_left(&skipped), "runs that can be read").into());
    }
    let groups = read::groups(runs, options.any_host);
    let mut all = series::all(&groups, options);
    let claims = series::judge(&mut all, options);
    let mut history = History {
        schema: HISTORY_SCHEMA,
        options: options.clone(),
        claims,
        answer: String::new(),
        remarks: Vec::new(),
        alarms: Vec::new(),
        machines: groups.iter().map(Group::machine).collect(),
        skipped,
        series: all,
    };
    history.alarms = sentences::alarms(&history);
    history.answer = sentences::answer(&history);
    history.remarks = sentences::remarks(&history);
    Ok(history)
}

/// Fails where no run has the reference.
fn check_reference(reference: &str, cases: &[CaseId]) -> Result<(), InputError> {
    let products = unique(cases.iter().map(|case| case.product.as_str()));
    // Runs without a direct path have numbers as measured.
    if reference == BASELINE || cases.is_empty() || products.contains(&reference) {
        return Ok(());
    }
    let found = format!("no run has a product {reference:?}{}", suggestion(reference, products.iter().copied()));
    Err(InputError::of("--reference", found, one_of(products)))
}

impl History {
    /// The claimed changes with their series, the newest runs' first, then the largest.
    pub fn changes(&self) -> Vec<(&Series, &Change)> {
        let mut all: Vec<(&Series, &Change)> =
            self.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change))).collect();
        let size = |change: &Change| change.ratio.value.ln().abs();
        all.sort_by(|(_, a), (_, b)| {
            let first = |change: &Change| (change.verdict != Verdict::Changed, !change.newest, !change.worse);
            first(a).cmp(&first(b)).then(size(b).total_cmp(&size(a)))
        });
        all
    }
}
