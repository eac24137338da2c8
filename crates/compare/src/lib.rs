//! Compares two runs: what changed, how much, and how certain that is. It is pure: two loaded runs in, one
//! [`Comparison`] out. `weir compare` calls [`compare`] and prints the result as a table, as markdown or as JSON.
//! [`outside`] reads single results of load generators, of other tools too, and lays two of them side by side.
//! `docs/compare.md` describes the method and its sources. [`history`] follows each case over many runs.
//!
//! This crate does not know how anything was measured, folders beyond what [`ComparedRun::read`] reads, or exit
//! statuses.

mod change;
mod compared_run;
mod condition;
mod differences;
pub mod history;
mod output;
pub mod outside;
mod sentences;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use weir_model::InputError;
use weir_model::metric::{Goal, Metric};
use weir_model::record::CaseId;

pub use change::{Change, Median, Verdict};
pub use compared_run::ComparedRun;
pub use condition::{Alarm, ConditionOutcome, FailIf, NotJudged};
pub use differences::Difference;
pub use output::{markdown, text};

use change::Samples;
use weir_report::Part;
use weir_report::run::{BASELINE, Run};

/// The version of the [`Comparison`] format.
pub const COMPARISON_SCHEMA: u32 = 1;

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The confidence level that all claims together must keep, between 0 and 1, both excluded.
    pub level: f64,
    /// Compare numbers as measured, not divided by the direct path's.
    pub absolute: bool,
    /// Include trials during which other processes used the machine.
    pub busy: bool,
    /// Which cases to compare.
    pub selection: Part,
    /// The conditions for an alarm.
    pub fail_if: Vec<FailIf>,
}

impl Default for Options {
    fn default() -> Options {
        Options { level: 0.95, absolute: false, busy: false, selection: Part::default(), fail_if: Vec::new() }
    }
}

/// Why no comparison was possible.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A filter contains a name that neither run has.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The runs have no case in common.
    #[error(
        "the two runs have no case in common{filtered}\n  {before} has {has_before}\n  {after} has {has_after}\n  \
         expected: two runs of the same suite"
    )]
    Nothing {
        /// The name of the run before.
        before: String,
        /// The name of the run after.
        after: String,
        /// The cases of the run before, as text.
        has_before: String,
        /// The cases of the run after, as text.
        has_after: String,
        /// A hint that filters were used.
        filtered: &'static str,
    },
}

/// The comparison of two runs. `weir compare --json` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: u32,
    /// The earlier run.
    pub before: RunFacts,
    /// The run that is judged.
    pub after: RunFacts,
    /// The confidence level of all claims together.
    pub level: f64,
    /// The claims that `--fail-if` refers to, and the level of each.
    pub asked: Family,
    /// All claims, and the level of each that `--fail-if` does not refer to.
    pub all: Family,
    /// The numbers are as measured because that was asked for.
    pub absolute: bool,
    /// The overall result, one sentence.
    pub answer: String,
    /// What a reader must know first, one sentence each.
    pub remarks: Vec<String>,
    /// What else differs between the runs.
    pub differences: Vec<Difference>,
    /// Cases that both runs have.
    pub cases: Vec<CaseChange>,
    /// Cases that both runs have and that cannot be compared.
    pub refused: Vec<Refused>,
    /// Cases that only the run before has.
    pub only_before: Vec<CaseId>,
    /// Cases that only the run after has.
    pub only_after: Vec<CaseId>,
    /// The outcome of each `--fail-if` condition.
    pub conditions: Vec<ConditionOutcome>,
}

/// Claims that are judged together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Family {
    /// The number of claims.
    pub claims: usize,
    /// The level that each claim needs so that all together keep the level asked for (Bonferroni).
    pub level_of_each: f64,
}

impl Family {
    /// A family of `claims` that together keep `level`.
    pub(crate) fn of(claims: usize, level: f64) -> Family {
        Family { claims, level_of_each: 1.0 - (1.0 - level) / claims.max(1) as f64 }
    }
}

/// A short description of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunFacts {
    /// The name of its folder.
    pub run: String,
    /// The folder as given.
    pub folder: PathBuf,
    /// The name of its suite; empty when unknown.
    pub suite: String,
    /// Its start, RFC 3339; empty when unknown, as the versions below.
    pub started: String,
    /// The number of trials that ended.
    pub trials: usize,
    /// weir's version.
    pub weir: String,
    /// `uname -sr`.
    pub kernel: String,
    /// The versions of its products: names and versions.
    pub products: Vec<(String, String)>,
}

impl RunFacts {
    /// The facts of a run.
    pub(crate) fn of(run: &Run) -> RunFacts {
        let environment = run.environment.clone().unwrap_or_default();
        RunFacts {
            run: run.name.clone(),
            folder: run.folder.clone(),
            suite: run.suite.name.clone(),
            started: environment.started,
            trials: run.trials.len(),
            weir: environment.weir_version,
            kernel: environment.kernel,
            products: environment.products.into_iter().map(|facts| (facts.name, facts.version)).collect(),
        }
    }
}

/// One case that both runs have.
#[derive(Debug, Clone, Serialize)]
pub struct CaseChange {
    /// Product, profile, workload, load.
    #[serde(flatten)]
    pub case: CaseId,
    /// Product and profile as shown to readers.
    pub label: String,
    /// This is the direct path, by which the others were divided. No claim is made about it.
    pub machine: bool,
    /// What a reader must know besides the numbers, one sentence each.
    pub remarks: Vec<String>,
    /// The trials before and after that are skipped (except for memory) because other processes used the machine.
    #[serde(rename = "crowded")]
    pub busy_trials: (usize, usize),
    /// The changes of its numbers.
    pub changes: Vec<Change>,
}

/// A case that cannot be compared.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// Product, profile, workload, load.
    #[serde(flatten)]
    pub case: CaseId,
    /// This is the direct path, about which no claim is made.
    pub machine: bool,
    /// The reason.
    pub why: String,
}

/// Compares two runs.
///
/// # Errors
/// A filter contains a name that no case has, or the runs have no case in common.
pub fn compare(before: &ComparedRun, after: &ComparedRun, options: &Options) -> Result<Comparison, CompareError> {
    let cases = Cases::of(before, after, &options.selection)?;
    let (mut refused, mut read) = (Vec::new(), Vec::new());
    for case in &cases.both {
        let machine = cases.machine(case);
        match read_case(case, (before, after), options, machine) {
            Ok(of_case) => read.push(of_case),
            Err(why) => refused.push(Refused { case: case.clone(), machine, why }),
        }
    }
    let claims = |asked: bool| {
        let of_products = read.iter().filter(|(case, _)| !case.machine).flat_map(|(_, samples)| samples);
        of_products.filter(|samples| samples.claimable() && (samples.asked || !asked)).count()
    };
    let (asked, all) = (Family::of(claims(true), options.level), Family::of(claims(false), options.level));
    // How certain a change must be depends on the number of claims.
    let evaluated = |(case, samples): (CaseChange, Vec<Samples>)| {
        let sure = |samples: &Samples| if samples.asked { asked.level_of_each } else { all.level_of_each };
        let change = |samples: &Samples| samples.evaluate(options.level, sure(samples), case.machine);
        CaseChange { changes: samples.iter().filter_map(change).collect(), ..case }
    };
    let changed = read.into_iter().map(evaluated).collect();
    let mut comparison = Comparison {
        schema: COMPARISON_SCHEMA,
        before: RunFacts::of(&before.run),
        after: RunFacts::of(&after.run),
        level: options.level,
        asked,
        all,
        absolute: options.absolute,
        answer: String::new(),
        remarks: Vec::new(),
        differences: differences::differences(before, after, &cases.both),
        cases: changed,
        refused,
        only_before: cases.only_before,
        only_after: cases.only_after,
        conditions: Vec::new(),
    };
    comparison.conditions =
        options.fail_if.iter().map(|condition| condition::evaluate(*condition, &comparison)).collect();
    comparison.answer = sentences::answer(&comparison);
    comparison.remarks = sentences::remarks(&comparison);
    Ok(comparison)
}

/// The cases of both runs.
struct Cases {
    both: Vec<CaseId>,
    only_before: Vec<CaseId>,
    only_after: Vec<CaseId>,
}

impl Cases {
    fn of(before: &ComparedRun, after: &ComparedRun, selection: &Part) -> Result<Cases, CompareError> {
        let (old, new) = (before.cases(), after.cases());
        let every: Vec<CaseId> = old.iter().chain(&new).cloned().collect();
        selection.check(&every, "neither run has a")?;
        let wanted = |case: &CaseId| selection.keeps(case) && selection.names(&case.product, &case.profile);
        let kept = |cases: &[CaseId], there: &dyn Fn(&CaseId) -> bool| -> Vec<CaseId> {
            cases.iter().filter(|case| wanted(case) && there(case)).cloned().collect()
        };
        let cases = Cases {
            both: kept(&new, &|case| old.contains(case)),
            only_before: kept(&old, &|case| !new.contains(case)),
            only_after: kept(&new, &|case| !old.contains(case)),
        };
        if cases.both.is_empty() {
            let filtered = if *selection == Part::default() { "" } else { " of those that the filters leave" };
            let (has_before, has_after) = (sentences::cases(&old), sentences::cases(&new));
            let (before, after) = (before.run.name.clone(), after.run.name.clone());
            return Err(CompareError::Nothing { before, after, has_before, has_after, filtered });
        }
        Ok(cases)
    }

    /// True for the direct path, which shows how the machine changed, unless only the direct path is compared.
    fn machine(&self, case: &CaseId) -> bool {
        case.product == BASELINE && self.both.iter().any(|other| other.product != BASELINE)
    }
}

/// A case without its changes, and the numbers from which they are evaluated; else the reason why it has none.
fn read_case(
    case: &CaseId,
    runs: (&ComparedRun, &ComparedRun),
    options: &Options,
    machine: bool,
) -> Result<(CaseChange, Vec<Samples>), String> {
    let remarks = compared_run::check(runs.0, runs.1, case)?;
    for (run, when) in [(runs.0, "before"), (runs.1, "after")] {
        if let Some(why) = run.why_no_number(case) {
            return Err(format!("the run {when} has no number of it: {why}"));
        }
        if !options.busy && run.always_busy(case) {
            return Err(sentences::always_busy(when));
        }
    }
    let goal = runs.1.goal(case);
    let asked: BTreeSet<Metric> = options.fail_if.iter().filter_map(|one| of_load(one.metric, goal)).collect();
    let usual = Metric::compared().filter(|(_, compared)| compared.always.contains(&goal));
    let metrics: BTreeSet<Metric> = usual.map(|(metric, _)| metric).chain(asked.iter().copied()).collect();
    let samples = metrics.into_iter().filter_map(|metric| {
        let mut samples = Samples::of(case, metric, runs, options)?;
        samples.asked = asked.contains(&metric) && !machine;
        Some(samples)
    });
    let busy_trials = |run: &ComparedRun| if options.busy { 0 } else { run.busy_trials(case).count() };
    let change = CaseChange {
        case: case.clone(),
        label: sentences::label(&runs.1.run, case),
        machine,
        remarks,
        busy_trials: (busy_trials(runs.0), busy_trials(runs.1)),
        changes: Vec::new(),
    };
    Ok((change, samples.collect()))
}

/// What a metric means under this kind of load; `None` where no comparison makes sense.
pub(crate) fn of_load(metric: Metric, goal: Goal) -> Option<Metric> {
    let compared = metric.entry().compared?;
    let fits = compared.always.contains(&goal) || compared.if_asked.contains(&goal);
    if fits { Some(metric) } else { compared.instead }
}
