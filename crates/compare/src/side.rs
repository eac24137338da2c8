//! One of the two runs that are compared: its trials, its suite, and its numbers by block. Knows one run.

use std::collections::BTreeMap;
use std::path::Path;

use weir_model::record::{CaseId, Measurement, TrialError};
use weir_model::suite::{LoadKind, Series, Suite};

use super::metric::Aim;
use super::{Metric, crowd};
use weir_report::ReportError;
use weir_report::run::{BASELINE, Run, Trial, load_run};

/// A run with the suite that it carried out.
#[derive(Debug, Clone)]
pub struct Side {
    /// What its folder tells.
    pub run: Run,
    /// What was asked; `None` when `run.toml` could not be read.
    pub suite: Option<Suite>,
    /// Of each trial, by number, the share of the machine's CPU time that something else took; only where it is known.
    pub taken: BTreeMap<u32, f64>,
}

/// Numbers by block.
pub(super) type Blocks = BTreeMap<u32, f64>;

impl Side {
    /// Reads a run folder.
    ///
    /// # Errors
    /// As [`load_run`].
    pub fn read(folder: &Path) -> Result<Side, ReportError> {
        let (run, suite) = (load_run(folder)?, Suite::read_run(&folder.join("run.toml")).ok());
        Ok(Side { taken: crowd::taken(&run), run, suite })
    }

    /// The same, without the numbers of trials during which something else used the machine.
    fn alone(&self, case: &CaseId, blocks: Blocks) -> Blocks {
        let crowded: Vec<u32> = self.crowded(case).map(|trial| trial.measurement.block).collect();
        blocks.into_iter().filter(|(block, _)| !crowded.contains(block)).collect()
    }

    /// Trials of a case that count, and during which something else used the machine.
    pub(super) fn crowded<'a>(&'a self, case: &'a CaseId) -> impl Iterator<Item = &'a Trial> {
        let much = |trial: &Trial| self.taken.get(&trial.measurement.trial).is_some_and(|taken| *taken > crowd::MOST);
        self.counting(case).filter(move |trial| much(trial))
    }

    /// Its cases in the suite's order, the direct path's first.
    pub fn cases(&self) -> Vec<CaseId> {
        let plan = &self.run.suite;
        let mut cases: Vec<CaseId> = Vec::new();
        for trial in &self.run.trials {
            if !cases.contains(&trial.measurement.case) {
                cases.push(trial.measurement.case.clone());
            }
        }
        let at = |case: &CaseId| {
            (
                plan.workloads.iter().position(|workload| workload.name == case.workload),
                plan.loads.iter().position(|load| load.name == case.load),
                plan.entries.iter().position(|entry| entry.product == case.product && entry.profile == case.profile),
            )
        };
        cases.sort_by_key(at);
        cases
    }

    /// What a case's load is after.
    pub(super) fn aim(&self, case: &CaseId) -> Aim {
        let Some(load) = self.suite.as_ref().and_then(|suite| suite.load(&case.load)) else {
            return if self.median_offered(case).is_none() { Aim::Most } else { Aim::Given };
        };
        match (&load.kind, &load.series) {
            (LoadKind::Closed | LoadKind::Count { .. }, _) => Aim::Most,
            (LoadKind::Search { .. }, _) => Aim::Objective,
            (LoadKind::Open { .. }, _) if load.saturating => Aim::Flood,
            // The last point is the one that is compared.
            (LoadKind::Open { .. }, Series::Shares(shares)) if shares.last().is_some_and(|last| *last >= 1.0) => {
                Aim::Flood
            }
            (LoadKind::Open { .. }, _) => Aim::Given,
        }
    }

    /// Requests a second that were offered, the median of the trials that count; `None` where none were.
    pub(super) fn median_offered(&self, case: &CaseId) -> Option<f64> {
        let rates: Vec<f64> =
            self.counting(case).filter_map(|trial| trial.measurement.load.as_ref()?.offered_rate).collect();
        weir_stats::median(&rates)
    }

    /// True when no trial of a case had the machine to itself.
    pub(super) fn always_crowded(&self, case: &CaseId) -> bool {
        self.crowded(case).count() == self.counting(case).count()
    }

    /// A case's numbers by block, of the trials that count; of crowded ones too, where `busy` says so.
    pub(super) fn values(&self, case: &CaseId, metric: Metric, busy: bool) -> Blocks {
        let all = self.by_block(case, |measurement| metric.value(measurement));
        // What a process keeps in memory, nobody takes from it.
        if busy || metric == Metric::Memory { all } else { self.alone(case, all) }
    }

    /// The machine's mood by block: that of the direct path under the same workload and load. Empty where there is none.
    pub(super) fn moods(&self, case: &CaseId, metric: Metric, busy: bool) -> Blocks {
        let Some(direct) = self.direct_beside(case) else { return Blocks::new() };
        let all = self.by_block(&direct, |measurement| metric.mood(measurement));
        if busy { all } else { self.alone(&direct, all) }
    }

    /// Why a case has no number: what its last trial says. `None` when it has one.
    pub(super) fn silent(&self, case: &CaseId) -> Option<String> {
        if self.counting(case).next().is_some() {
            return None;
        }
        let of_case: Vec<&Trial> = self.trials(case).collect();
        let words = |error: &TrialError| format!("failed at {}: {}", error.stage, error.message);
        let why = of_case.last().map(|trial| match &trial.measurement.error {
            Some(error) => words(error),
            None => trial.measurement.verdict.as_str().to_owned(),
        });
        let all = if of_case.len() == 1 { "its trial".to_owned() } else { format!("all {} trials", of_case.len()) };
        why.map(|why| format!("{all} {}", if why.starts_with("failed") { why } else { format!("were {why}") }))
    }

    pub(super) fn trials<'a>(&'a self, case: &'a CaseId) -> impl Iterator<Item = &'a Trial> {
        self.run.trials.iter().filter(move |trial| trial.measurement.case == *case)
    }

    /// Trials of a case whose numbers may be used.
    fn counting<'a>(&'a self, case: &'a CaseId) -> impl Iterator<Item = &'a Trial> {
        self.trials(case).filter(|trial| trial.counts())
    }

    fn by_block(&self, case: &CaseId, value: impl Fn(&Measurement) -> Option<f64>) -> Blocks {
        let number = |trial: &Trial| {
            let value = value(&trial.measurement).filter(|value| value.is_finite() && *value > 0.0)?;
            Some((trial.measurement.block, value))
        };
        self.counting(case).filter_map(number).collect()
    }

    /// The direct path's case of the same section; of the same profile where there are several.
    fn direct_beside(&self, case: &CaseId) -> Option<CaseId> {
        let beside = |profile: Option<&str>| {
            let cases = self.run.trials.iter().map(|trial| &trial.measurement.case);
            let mut direct = cases.filter(|direct| {
                direct.product == BASELINE && direct.workload == case.workload && direct.load == case.load
            });
            direct.find(|direct| profile.is_none_or(|profile| direct.profile == profile)).cloned()
        };
        if case.product == BASELINE { None } else { beside(Some(&case.profile)).or_else(|| beside(None)) }
    }
}
