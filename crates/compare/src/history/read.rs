//! Finds runs in folders, and reads of each what a history needs: where it took place, what it asked, and one number of each case and
//! metric. `history` calls it; `machine` and `series` group what it read. It does not know what a change is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weir_model::InputError;
use weir_model::metric::{Goal, Metric};
use weir_model::record::{CaseId, Environment, MEASUREMENT_SCHEMA};
use weir_model::suite::Suite;
use weir_report::ReportError;

use super::{HistoryError, Options, RunFacts, Skipped};
use crate::{ComparedRun, of_load, sentences};

/// Runs are looked for in folders of folders, and so on, this deep.
const DEEPEST: usize = 4;

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
    /// The number over that of the direct path in the same block, and the direct path's number.
    pub by_direct: Option<(f64, f64)>,
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
pub(super) fn runs(folders: &[PathBuf], options: &Options) -> Result<(Vec<OneRun>, Vec<Skipped>), HistoryError> {
    let (mut runs, mut skipped) = (Vec::new(), Vec::new());
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for folder in folders {
        let found = find(folder)?;
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
                Err(why) => skipped.push(Skipped { folder: run, why }),
            }
        }
    }
    runs.sort_by(|a, b| (&a.environment.started, &a.name).cmp(&(&b.environment.started, &b.name)));
    Ok((runs, skipped))
}

/// The runs in a folder, which may be one itself.
fn find(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    if !folder.is_dir() {
        let why = "there is no such folder".to_owned();
        return Err(ReportError::NotARun { path: folder.to_path_buf(), why });
    }
    let mut runs = Vec::new();
    descend(folder, DEEPEST, &mut runs);
    Ok(runs)
}

fn descend(folder: &Path, deeper: usize, runs: &mut Vec<PathBuf>) {
    if folder.join("run.toml").is_file() || folder.join("trials").is_dir() {
        runs.push(folder.to_path_buf());
        return;
    }
    if deeper == 0 {
        return;
    }
    // Links are not followed: they may lead in circles.
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).filter(is_folder);
    let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    below.sort();
    below.iter().for_each(|below| descend(below, deeper - 1, runs));
}

/// Reads a run, or says why it cannot be used.
fn read(folder: &Path, options: &Options) -> Result<OneRun, String> {
    let compared = ComparedRun::read(folder).map_err(|error| match error {
        ReportError::NotARun { why, .. } => format!("it is no run: {why}"),
        ReportError::Empty { .. } => "none of its trials has ended".to_owned(),
        other => other.to_string(),
    })?;
    let why_broken = |file: &str| {
        let broken = compared.run.broken.iter().find(|broken| broken.file.ends_with(file));
        broken.map_or_else(|| "it is not there".to_owned(), |broken| broken.why.clone())
    };
    let newest = compared.run.trials.iter().map(|trial| trial.measurement.schema).max().unwrap_or_default();
    if newest > MEASUREMENT_SCHEMA {
        return Err(format!(
            "a newer weir wrote it: its records have schema {newest}, and this weir knows {MEASUREMENT_SCHEMA}"
        ));
    }
    if compared.run.trials.is_empty() {
        return Err(format!("none of its measurements can be read: {}", why_broken("measurement.json")));
    }
    let Some(environment) = compared.run.environment.clone() else {
        return Err(format!("its machine is not known: environment.json: {}", why_broken("environment.json")));
    };
    let Some(suite) = compared.suite.clone() else {
        return Err(format!("what it asked is not known: run.toml: {}", why_broken("run.toml")));
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
    let numbers = metrics.into_iter().filter_map(|metric| Some((metric, number(run, &case, metric, options.busy)?)));
    let numbers: BTreeMap<Metric, Number> = numbers.collect();
    let why_not = match run.why_no_number(&case) {
        None if !options.busy && run.always_busy(&case) => Some(sentences::always_busy_there()),
        why => why,
    };
    let (label, offered) = (sentences::label(&run.run, &case), run.median_offered(&case));
    OfCase { label, goal, offered, numbers, why_not, case }
}

fn number(run: &ComparedRun, case: &CaseId, metric: Metric, busy: bool) -> Option<Number> {
    let (values, direct) = (run.values(case, metric, busy), run.direct_values(case, metric, busy));
    let median = |values: Vec<f64>| weir_stats::median(&values);
    let pairs = || values.iter().filter_map(|(block, value)| Some((value, direct.get(block)?)));
    let ratio = median(pairs().map(|(value, direct)| value / direct).collect());
    let by_direct = ratio.zip(median(pairs().map(|(_, direct)| *direct).collect()));
    let divides = metric.entry().compared.is_some_and(|compared| compared.direct.is_some());
    let blocks = values.len();
    Some(Number { measured: median(values.into_values().collect())?, blocks, by_direct, divides })
}
