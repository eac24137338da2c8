//! One of the runs that are compared: its trials, its suite, its numbers by block, and the trials during which other processes used the
//! machine. The module also decides whether a case asked the same question in two runs.
//!
//! Dividing by the direct path does not remove the effect of another process, because that depends on what it meets. A proxy with one CPU
//! loses half of it, while the direct path, which has no proxy, loses little. Such load also lasts for hours, so it can affect one whole
//! run and not the other, which no interval over blocks can show.

use std::collections::BTreeMap;
use std::path::Path;

use weir_model::cpu_time::{CROWDED, CpuTime, roles_on};
use weir_model::metric::{Goal, Metric, Window};
use weir_model::record::{CaseId, Measurement, Role};
use weir_model::suite::{LoadKind, Series, Suite};
use weir_model::text::{counted, percent, short, unique};
use weir_report::ReportError;
use weir_report::run::{BASELINE, Run, Trial, load_run};
use weir_report::series::resource_seconds;

/// A trial is skipped from this share of the machine's CPU on.
pub(super) const MOST: f64 = CROWDED;

/// The audit's finding that a CPU of the roles was used by others: such a trial is skipped, too.
const OTHER_PROCESSES: &str = "other-processes";

/// The ends of rows and of windows are read from different clocks.
const SLACK_MS: u64 = 500;

/// A run and its suite.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// The contents of its folder.
    pub run: Run,
    /// The suite; `None` when `run.toml` could not be read.
    pub suite: Option<Suite>,
    /// By trial number, the share of the machine's CPU time (0 to 1) that other processes or other machines of the
    /// hypervisor used during the window. Trials without a record of it are absent.
    pub cpu_of_others: BTreeMap<u32, f64>,
}

/// Numbers by block.
pub(super) type Blocks = BTreeMap<u32, f64>;

impl ComparedRun {
    /// Reads a run folder.
    ///
    /// # Errors
    /// As [`load_run`].
    pub fn read(folder: &Path) -> Result<ComparedRun, ReportError> {
        let (run, suite) = (load_run(folder)?, Suite::read_run(&folder.join("run.toml")).ok());
        Ok(ComparedRun { cpu_of_others: cpu_of_others(&run), run, suite })
    }

    /// The usable trials of a case during which other processes used the machine.
    pub(super) fn busy_trials<'a>(&'a self, case: &'a CaseId) -> impl Iterator<Item = &'a Trial> {
        let share = |trial: &Trial| self.cpu_of_others.get(&trial.measurement.trial).copied();
        let found = |trial: &Trial| trial.measurement.findings.iter().any(|finding| finding.check == OTHER_PROCESSES);
        self.counting(case).filter(move |trial| found(trial) || share(trial).is_some_and(|share| share > MOST))
    }

    /// The cases in the suite's order, those of the direct path first.
    pub fn cases(&self) -> Vec<CaseId> {
        let suite = &self.run.suite;
        let mut cases = unique(self.run.trials.iter().map(|trial| trial.measurement.case.clone()));
        let at = |case: &CaseId| {
            (
                suite.workloads.iter().position(|workload| workload.name == case.workload),
                suite.loads.iter().position(|load| load.name == case.load),
                suite.entries.iter().position(|entry| entry.product == case.product && entry.profile == case.profile),
            )
        };
        cases.sort_by_key(at);
        cases
    }

    /// What the load of a case measures.
    pub(super) fn goal(&self, case: &CaseId) -> Goal {
        let Some(load) = self.suite.as_ref().and_then(|suite| suite.load(&case.load)) else {
            return if self.median_offered(case).is_none() { Goal::Capacity } else { Goal::FixedRate };
        };
        match (&load.kind, &load.series) {
            (LoadKind::Closed | LoadKind::Count { .. }, _) => Goal::Capacity,
            (LoadKind::Search { .. }, _) => Goal::Search,
            (LoadKind::Open { .. }, _) if load.saturating => Goal::Overload,
            // Only the last point is compared.
            (LoadKind::Open { .. }, Series::Shares(shares)) if shares.last().is_some_and(|last| *last >= 1.0) => {
                Goal::Overload
            }
            (LoadKind::Open { .. }, _) => Goal::FixedRate,
        }
    }

    /// The median rate offered in the usable trials, in requests a second; `None` without an offered rate.
    pub(super) fn median_offered(&self, case: &CaseId) -> Option<f64> {
        let rates: Vec<f64> =
            self.counting(case).filter_map(|trial| trial.measurement.load.as_ref()?.offered_rate).collect();
        weir_stats::median(&rates)
    }

    /// True when other processes used the machine during every trial of a case.
    pub(super) fn always_busy(&self, case: &CaseId) -> bool {
        self.busy_trials(case).count() == self.counting(case).count()
    }

    /// A case's numbers by block, from its usable trials. `busy` includes those during which other processes used the
    /// machine.
    pub(super) fn values(&self, case: &CaseId, metric: Metric, busy: bool) -> Blocks {
        // Other processes take CPU from a product, but no memory.
        self.by_block(case, metric, busy || metric == Metric::Rss)
    }

    /// The direct path's numbers by block under the same workload and load; empty if there are none.
    pub(super) fn direct_values(&self, case: &CaseId, metric: Metric, busy: bool) -> Blocks {
        self.values_beside(case, BASELINE, metric, busy)
    }

    /// The numbers of another product, the reference, by block under the same workload and load: those that a metric is divided
    /// by. Empty if there are none.
    pub(super) fn values_beside(&self, case: &CaseId, reference: &str, metric: Metric, busy: bool) -> Blocks {
        let beside = self.beside(case, reference).zip(divisor(metric, reference));
        beside.map(|(beside, metric)| self.by_block(&beside, metric, busy)).unwrap_or_default()
    }

    /// The reason why a case has no number: the outcome of its last trial. `None` when it has a number.
    pub(super) fn why_no_number(&self, case: &CaseId) -> Option<String> {
        if self.counting(case).next().is_some() {
            return None;
        }
        let trials: Vec<&Trial> = self.trials(case).collect();
        let outcome = match &trials.last()?.measurement {
            Measurement { error: Some(error), .. } => format!("failed at {}: {}", error.stage, error.message),
            measurement if trials.len() == 1 => format!("was {}", measurement.verdict.as_str()),
            measurement => format!("were {}", measurement.verdict.as_str()),
        };
        let all = if trials.len() == 1 {
            "its trial".to_owned()
        } else {
            format!("all {}", counted(trials.len() as u64, "trial"))
        };
        Some(format!("{all} {outcome}"))
    }

    /// All trials of a case.
    pub(super) fn trials<'a>(&'a self, case: &'a CaseId) -> impl Iterator<Item = &'a Trial> {
        self.run.trials.iter().filter(move |trial| trial.measurement.case == *case)
    }

    /// The trials of a case whose numbers may be used.
    fn counting<'a>(&'a self, case: &'a CaseId) -> impl Iterator<Item = &'a Trial> {
        self.trials(case).filter(|trial| trial.counts())
    }

    fn by_block(&self, case: &CaseId, metric: Metric, busy: bool) -> Blocks {
        let number = |trial: &Trial| {
            let value = metric.value(&Window::of_trial(&trial.measurement)?);
            Some((trial.measurement.block, value.filter(|value| value.is_finite() && *value > 0.0)?))
        };
        let mut blocks: Blocks = self.counting(case).filter_map(number).collect();
        for trial in self.busy_trials(case).filter(|_| !busy) {
            blocks.remove(&trial.measurement.block);
        }
        blocks
    }

    /// A product's case of the same section, and of the same profile if there are several.
    fn beside(&self, case: &CaseId, product: &str) -> Option<CaseId> {
        let beside = |profile: Option<&str>| {
            let cases = self.run.trials.iter().map(|trial| &trial.measurement.case);
            let mut all = cases
                .filter(|other| other.product == product && other.workload == case.workload && other.load == case.load);
            all.find(|other| profile.is_none_or(|profile| other.profile == profile)).cloned()
        };
        if case.product == product { None } else { beside(Some(&case.profile)).or_else(|| beside(None)) }
    }
}

/// The number of a reference by which a metric is divided. The direct path, which has no product, has others or none.
pub(super) fn divisor(metric: Metric, reference: &str) -> Option<Metric> {
    if reference != BASELINE { Some(metric) } else { metric.entry().compared?.direct }
}

/// See [`ComparedRun::cpu_of_others`]. Trials of a duet are absent, because the host's rows have the other product's time in them; the
/// audit, which knows both, judges those alone. Only some trials of a run show whether the kernel charges interrupts to
/// processes; the result then holds for all trials.
fn cpu_of_others(run: &Run) -> BTreeMap<u32, f64> {
    let used: BTreeMap<u32, CpuTime> =
        run.trials.iter().filter_map(|trial| Some((trial.measurement.trial, cpu_time(run, trial)?))).collect();
    let charged = used.values().any(CpuTime::charges_interrupts);
    used.into_iter().map(|(trial, used)| (trial, used.taken(charged))).collect()
}

fn cpu_time(run: &Run, trial: &Trial) -> Option<CpuTime> {
    let load = trial.measurement.load.as_ref().filter(|load| load.bursts.is_none())?;
    let begin = load.window_start_ms;
    let end = begin + (load.window_s * 1e3) as u64 + SLACK_MS;
    let rows = resource_seconds(run, trial).ok()?;
    let rows = rows.iter().filter(|row| row.time_ms > begin && row.time_ms <= end);
    let hosts = run.environment.as_ref().map_or(&[][..], |environment| &environment.hosts);
    match hosts.iter().find(|host| host.has(Role::Proxy)) {
        None => CpuTime::of(rows),
        Some(proxy) => CpuTime::of_machine(rows, "host", &roles_on(hosts, &proxy.machine)),
    }
}

/// Offered rates that differ by more than this share are different questions. At half of a product's capacity, its mean
/// wait changes about as much as the rate (the wait in a queue is proportional to `1 / (1 - load)`).
const RATE_MAY_DIFFER: f64 = 0.05;

/// From this difference on, a remark mentions the offered rates.
const RATE_IS_SAID: f64 = 0.01;

/// The reason why a case cannot be compared, or else the remarks to show with it.
pub(super) fn check(before: &ComparedRun, after: &ComparedRun, case: &CaseId) -> Result<Vec<String>, String> {
    if let (Some(old), Some(new)) = (&before.suite, &after.suite) {
        definitions(old, new, case)?;
    }
    match after.goal(case) {
        Goal::FixedRate => rates(before.median_offered(case), after.median_offered(case)),
        _ => Ok(Vec::new()),
    }
}

/// The same of the rates that were offered.
pub(super) fn rates(before: Option<f64>, after: Option<f64>) -> Result<Vec<String>, String> {
    let Some((old, new)) = before.zip(after) else { return Ok(Vec::new()) };
    let differs = (new / old - 1.0).abs().max((old / new - 1.0).abs());
    let offered = format!("{} requests/s were offered before and {} after", short(old), short(new));
    if differs > RATE_MAY_DIFFER {
        return Err(format!("{offered}: at other rates, other latencies; a load with a fixed rate compares"));
    }
    Ok(if differs > RATE_IS_SAID { vec![format!("{offered}, {} apart", percent(differs))] } else { Vec::new() })
}

/// The reason why a case's workload or load asks something else in the second suite.
pub(super) fn definitions(old: &Suite, new: &Suite, case: &CaseId) -> Result<(), String> {
    if let (Some(a), Some(b)) = (old.workload(&case.workload), new.workload(&case.workload)) {
        let mut parts = a.differs_in(b);
        if old.tls_of(a).zip(new.tls_of(b)).is_some_and(|(a, b)| a != b) {
            parts.push("TLS settings");
        }
        refuse("workload", &case.workload, &parts)?;
    }
    if let (Some(a), Some(b)) = (old.load(&case.load), new.load(&case.load)) {
        refuse("load", &case.load, &a.differs_in(b))?;
    }
    Ok(())
}

fn refuse(what: &str, name: &str, parts: &[&str]) -> Result<(), String> {
    match parts {
        [] => Ok(()),
        [part] => Err(format!("the {what} {name} is another one in each run: its {part} differs")),
        parts => Err(format!("the {what} {name} is another one in each run: its {} differ", parts.join(" and its "))),
    }
}
