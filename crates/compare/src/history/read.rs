//! Finds runs in folders, and reads of each what a history needs: where it took place, what it asked, and one number of each case and
//! metric. `history` calls it; `machine` and `series` group what it read. It does not know what a change is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weir_model::InputError;
use weir_model::metric::{Goal, Metric};
use weir_model::record::{CaseId, Environment};
use weir_model::suite::Suite;
use weir_report::{ReportError, SkippedRun, runs_in};

use super::{HistoryError, Options, RunFacts};
use crate::compared_run::divisor;
use crate::{ComparedRun, of_load, sentences};

/// What a history needs of a run.
#[derive(Debug, Clone)]
pub(super) struct OneRun {
    pub folder: PathBuf,
    pub name: String,
    pub suite: Suite,
    pub environment: Environment,
    pub cases: Vec<OfCase>,
}

/// A case of a run.
#[derive(Debug, Clone)]
pub(super) struct OfCase {
    pub case: CaseId,
    pub label: String,
    pub goal: Goal,
    /// The median rate that was due, requests a second.
    pub offered: Option<f64>,
    pub numbers: BTreeMap<Metric, Number>,
    /// Why it has no number.
    pub why_not: Option<String>,
}

/// A number of a case in a run: medians over its blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number {
    pub measured: f64,
    pub blocks: usize,
    /// The number over that of the reference in the same block, and the reference's number.
    pub by_reference: Option<(f64, f64)>,
    /// Whether the metric is to be divided at all.
    pub divides: bool,
}

impl OneRun {
    pub fn facts(&self) -> RunFacts {
        let environment = &self.environment;
        let products = environment.products.iter().map(|facts| (facts.name.clone(), facts.version.clone()));
        RunFacts {
            run: self.name.clone(),
            folder: self.folder.clone(),
            suite: self.suite.name.clone(),
            started: environment.started.clone(),
            weir: environment.weir_version.clone(),
            kernel: environment.kernel.clone(),
            products: products.collect(),
        }
    }

    /// The version of a product; empty where there is none.
    pub fn version(&self, product: &str) -> &str {
        let facts = self.environment.products.iter().find(|facts| facts.name == product);
        facts.map(|facts| facts.version.as_str()).unwrap_or_default()
    }
}

/// All runs of the folders that can be used, by date, and those that cannot.
pub(super) fn runs(folders: &[PathBuf], options: &Options) -> Result<(Vec<OneRun>, Vec<SkippedRun>), HistoryError> {
    let (mut runs, mut skipped) = (Vec::new(), Vec::new());
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for folder in folders {
        let found = runs_in(folder)?;
        if found.is_empty() {
            let wanted = "a run's folder, or one with runs in it, such as runs/";
            let source = folder.to_string_lossy();
            return Err(InputError::of(source, "there is no run in this folder", wanted).into());
        }
        for run in found {
            if !seen.insert(run.canonicalize().unwrap_or_else(|_| run.clone())) {
                continue;
            }
            match read(&run, options) {
                Ok(one) => runs.push(one),
                Err(why) => skipped.push(SkippedRun { folder: run, why }),
            }
        }
    }
    runs.sort_by(|a, b| (&a.environment.started, &a.name).cmp(&(&b.environment.started, &b.name)));
    Ok((runs, skipped))
}

/// Reads a run, or says why it cannot be used.
fn read(folder: &Path, options: &Options) -> Result<OneRun, String> {
    let compared = ComparedRun::read(folder).map_err(|error| match error {
        ReportError::NotARun { why, .. } => format!("it is no run: {why}"),
        ReportError::Empty { .. } => "none of its trials has ended".to_owned(),
        other => other.to_string(),
    })?;
    if let Some(broken) = compared.run.broken.first() {
        return Err(format!("{}: {}", broken.file, broken.why));
    }
    let (Some(environment), Some(suite)) = (compared.run.environment.clone(), compared.suite.clone()) else {
        return Err("its machine or what it asked is not known".to_owned());
    };
    let cases = compared.cases().into_iter().map(|case| of_case(&compared, case, options)).collect();
    let name = compared.run.name.clone();
    Ok(OneRun { folder: folder.to_path_buf(), name, suite, environment, cases })
}

fn of_case(run: &ComparedRun, case: CaseId, options: &Options) -> OfCase {
    let goal = run.goal(&case);
    let metrics: BTreeSet<Metric> = match options.metrics.as_slice() {
        [] => {
            let usual = Metric::compared().filter(|(_, compared)| compared.always.contains(&goal));
            usual.map(|(metric, _)| metric).collect()
        }
        asked => asked.iter().filter_map(|metric| of_load(*metric, goal)).collect(),
    };
    let numbers = metrics.into_iter().filter_map(|metric| Some((metric, number(run, &case, metric, options)?)));
    let numbers: BTreeMap<Metric, Number> = numbers.collect();
    let why_not = match run.why_no_number(&case) {
        None if !options.busy && run.always_busy(&case) => Some(sentences::always_busy_there()),
        why => why,
    };
    let (label, offered) = (sentences::label(&run.run, &case), run.median_offered(&case));
    OfCase { label, goal, offered, numbers, why_not, case }
}

fn number(run: &ComparedRun, case: &CaseId, metric: Metric, options: &Options) -> Option<Number> {
    let values = run.values(case, metric, options.busy);
    let reference = run.values_beside(case, &options.reference, metric, options.busy);
    let median = |values: Vec<f64>| weir_stats::median(&values);
    let pairs = || values.iter().filter_map(|(block, value)| Some((value, reference.get(block)?)));
    let ratio = median(pairs().map(|(value, reference)| value / reference).collect());
    let by_reference = ratio.zip(median(pairs().map(|(_, reference)| *reference).collect()));
    let divides = divisor(metric, &options.reference).is_some();
    let blocks = values.len();
    Some(Number { measured: median(values.into_values().collect())?, blocks, by_reference, divides })
}
