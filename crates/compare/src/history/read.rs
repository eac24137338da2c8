//! Reads the part of each run that a history needs: where it took place, what it asked, and one number of each case and metric. Runs are
//! grouped by machine, because only runs of one machine are compared. Users change kernel, system, settings and versions on purpose, and
//! want to see them in a history, so these are no part of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weir_model::metric::{Goal, Metric};
use weir_model::record::{CaseId, Environment, Role};
use weir_model::suite::Suite;
use weir_model::text::{Unit, list, unique};
use weir_report::tables::{host_facts, run_facts};
use weir_report::{ReportError, SkippedRun, find_runs};

use super::{HistoryError, Machine, Options};
use crate::compared_run::divisor;
use crate::{ComparedRun, RunFacts, of_load, sentences};

/// What a history needs of a run.
#[derive(Debug, Clone)]
pub(super) struct OneRun {
    pub facts: RunFacts,
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
    /// The version of a product; empty where there is none.
    pub fn version(&self, product: &str) -> &str {
        let facts = self.environment.products.iter().find(|facts| facts.name == product);
        facts.map(|facts| facts.version.as_str()).unwrap_or_default()
    }
}

/// All runs of the folders that can be used, by date, and those that cannot.
pub(super) fn runs(folders: &[PathBuf], options: &Options) -> Result<(Vec<OneRun>, Vec<SkippedRun>), HistoryError> {
    let (mut runs, mut skipped) = (Vec::new(), Vec::new());
    for folder in find_runs(folders)? {
        match read(&folder, options) {
            Ok(one) => runs.push(one),
            Err(why) => skipped.push(SkippedRun { folder, why }),
        }
    }
    runs.sort_by(|a, b| (&a.facts.started, &a.facts.run).cmp(&(&b.facts.started, &b.facts.run)));
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
    Ok(OneRun { facts: RunFacts::of(&compared.run), suite, environment, cases })
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

/// Names and values.
type Facts = Vec<(String, String)>;

/// The facts of [`host_facts`] that make a machine another one.
const OF_HOST: [&str; 5] = ["Host", "Architecture", "CPU", "CPUs online", "Virtualization"];

/// The runs of one machine.
pub(super) struct Group {
    pub label: String,
    pub facts: Facts,
    /// By date.
    pub runs: Vec<OneRun>,
}

impl Group {
    pub fn machine(&self) -> Machine {
        let runs = self.runs.iter().map(|run| run.facts.clone()).collect();
        Machine { label: self.label.clone(), facts: self.facts.clone(), runs }
    }
}

/// Runs by machine, in the order of the first runs. `any_host`: machines that differ in nothing but their names are one.
pub(super) fn groups(runs: Vec<OneRun>, any_host: bool) -> Vec<Group> {
    let with_facts = runs.into_iter().map(|run| (facts(&run.environment, any_host), run));
    let grouped = weir_model::text::grouped(with_facts);
    let mut groups: Vec<Group> =
        grouped.into_iter().map(|(facts, runs)| Group { label: name(&runs[0], any_host), facts, runs }).collect();
    let names: Vec<String> = groups.iter().map(|group| group.label.clone()).collect();
    for at in 0..groups.len() {
        let same = (0..names.len()).filter(|other| names[*other] == names[at]).collect::<Vec<_>>();
        if same.len() > 1 {
            let own = distinct(&groups, &same, at);
            groups[at].label = format!("{} ({own})", names[at]);
        }
    }
    // Two of them may differ in what is not shown.
    for at in 0..groups.len() {
        let earlier = groups[..at].iter().filter(|group| group.label == groups[at].label).count();
        if earlier > 0 {
            groups[at].label = format!("{}, {}", groups[at].label, earlier + 1);
        }
    }
    groups
}

fn name(run: &OneRun, any_host: bool) -> String {
    let environment = &run.environment;
    if any_host || environment.host.is_empty() { environment.cpu_model.clone() } else { environment.host.clone() }
}

/// The facts in which one of several groups differs from the others.
fn distinct(groups: &[Group], same: &[usize], own: usize) -> String {
    let names = unique(same.iter().flat_map(|at| groups[*at].facts.iter().map(|(name, _)| name.as_str())));
    let differs =
        |name: &&str| same.iter().any(|at| value(&groups[*at].facts, name) != value(&groups[own].facts, name));
    let words = names.into_iter().filter(differs);
    let words = words.map(|name| format!("{name} {}", value(&groups[own].facts, name).unwrap_or("not there")));
    list(&words.collect::<Vec<_>>())
}

fn value<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The facts that two runs of one machine have in common.
fn facts(environment: &Environment, any_host: bool) -> Facts {
    let of_run =
        run_facts(environment).into_iter().filter(|(name, _)| name.starts_with("CPUs of ") || name == "Origin");
    if environment.hosts.is_empty() {
        return of_machine(environment, any_host).into_iter().chain(of_run).collect();
    }
    let mut facts: Facts = of_run.collect();
    for host in &environment.hosts {
        let roles: Vec<&str> = host.roles.iter().map(|role: &Role| role.as_str()).collect();
        facts.push((format!("Roles of {}", host.name), list(&roles)));
        facts.push((format!("CPUs of {}", host.name), weir_model::units::CpuList::text(&host.cpus)));
        let own = of_machine(&host.facts, any_host).into_iter();
        facts.extend(own.map(|(name, value)| (format!("{name} of {}", host.name), value)));
    }
    facts
}

fn of_machine(environment: &Environment, any_host: bool) -> Facts {
    let mut facts = host_facts(environment);
    facts.retain(|(name, _)| OF_HOST.contains(&name.as_str()) && !(any_host && name == "Host"));
    // Kernels keep some of it for themselves, and another one more.
    let quarters = (environment.memory_bytes as f64 / Unit::GIBIBYTES.size * 4.0).round() / 4.0;
    facts.push(("Memory".to_owned(), format!("{quarters} GiB")));
    facts
}
