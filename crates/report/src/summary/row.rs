//! Summarises one product in one section: the estimates of its trials over blocks. Called by `section`, which sets
//! ranks and ratios because it sees all products.

use std::collections::BTreeMap;

use weir_model::metric::Window;
use weir_model::record::{ANSWERS_ITSELF, COMPRESSES, Finding, Measurement, Role, Severity, Verdict};
use weir_model::speed::mean_of_role;
use weir_model::suite::{Entry, Load};
use weir_model::text::grouped;
use weir_stats::median_interval;

use super::metric::{Estimates, window_of};
use super::{LEVEL, Row, SEED, Standing, cost, curve, search};
use crate::run::{BASELINE, Run, Trial, displayed};

/// The trials of one entry in one section.
pub(crate) struct Cases<'a> {
    pub entry: &'a Entry,
    pub load: &'a Load,
    all: Vec<&'a Trial>,
    /// How fast the product's CPUs were in each block.
    speeds: BTreeMap<u32, f64>,
}

impl<'a> Cases<'a> {
    /// `None` when the entry has no trial among `trials`.
    pub fn of(entry: &'a Entry, load: &'a Load, trials: &[&'a Trial]) -> Option<Cases<'a>> {
        let all: Vec<&Trial> = trials.iter().copied().filter(|trial| trial.is_of(entry)).collect();
        (!all.is_empty()).then(|| Cases { entry, load, all, speeds: speeds(entry, trials) })
    }

    /// True when at least one trial may be ranked, and none answered from a cache: that is other work than a proxy's.
    pub fn ranked(&self) -> bool {
        self.all.iter().any(|trial| trial.counts()) && !self.answers_itself()
    }

    /// True when the product was seen to answer requests that it did not pass on.
    fn answers_itself(&self) -> bool {
        self.has_finding(ANSWERS_ITSELF)
    }

    /// The coder of its response bodies, where requests accept a coding.
    pub fn coder(&self) -> Coder {
        let coded = |trial: &Trial| {
            trial.measurement.load.as_ref().and_then(|load| load.codings.as_ref()).is_some_and(|all| !all.is_empty())
        };
        match () {
            () if self.has_finding(COMPRESSES) => Coder::Product,
            () if self.displayed().any(coded) => Coder::Origin,
            () => Coder::Nobody,
        }
    }

    fn has_finding(&self, check: &str) -> bool {
        self.all.iter().any(|trial| trial.measurement.findings.iter().any(|finding| finding.check == check))
    }

    /// The trials whose numbers are shown.
    pub fn displayed(&self) -> impl Iterator<Item = &'a Trial> {
        displayed(self.all.iter().copied()).into_iter()
    }

    /// One value a block, NaN where a block has none.
    pub fn by_block(&self, blocks: &[u32], value: impl Fn(&Window<'_>) -> Option<f64>) -> Vec<f64> {
        self.of_measurements(blocks, |measurement| {
            let speed = self.speeds.get(&measurement.block).copied();
            value(&Window { speed, ..window_of(measurement, self.load)? })
        })
    }

    /// The same of what is no window's.
    pub fn of_measurements(&self, blocks: &[u32], value: impl Fn(&'a Measurement) -> Option<f64>) -> Vec<f64> {
        let of_block = |block: &u32| {
            let mut trials = self.displayed().filter(|trial| trial.measurement.block == *block);
            trials.find_map(|trial| value(&trial.measurement)).unwrap_or(f64::NAN)
        };
        blocks.iter().map(of_block).collect()
    }

    /// The row, without rank and ratios.
    pub fn row(&self, run: &Run, blocks: &[u32]) -> Row {
        let mut standing = Standing::before_measuring(run, self.entry);
        for load in self.displayed().flat_map(|trial| trial.measurement.windows()) {
            standing.requests += load.window.due;
            for (kind, n) in &load.window.errors {
                *standing.errors.entry(kind.as_str().to_string()).or_default() += n;
            }
            // A saturating load offers more than can be carried. What was not sent is not an error of the product.
            if load.window.unsent > 0 && !self.load.leaves_queue() {
                *standing.errors.entry("unsent".to_string()).or_default() += load.window.unsent;
            }
        }
        self.all.iter().for_each(|trial| standing.verdicts.count(trial.measurement.verdict));
        standing.estimates = Estimates::of(
            |metric| metric.entry().columns.json,
            |metric| median_interval(&self.by_block(blocks, |window| metric.value(window)), LEVEL, SEED),
        );
        Row {
            standing,
            version: self.all.iter().find_map(|trial| trial.measurement.product_version.clone()),
            answers_itself: self.answers_itself(),
            not_comparable: None,
            memory: cost::memory(self, blocks),
            warmup: cost::warmup(self, blocks),
            search: search::searched(self, blocks),
            points: curve::points(self, blocks),
            knee: None,
            ratio_to_baseline: None,
            findings: self.all.iter().map(|trial| trial.measurement.findings.len()).sum(),
            remarks: self.remarks(),
        }
    }

    /// Why trials of this entry are marked, left out or missing: each reason once, with its blocks.
    fn remarks(&self) -> Vec<String> {
        let all = self.all.iter().flat_map(|trial| {
            let block = trial.measurement.block.to_string();
            reasons(&trial.measurement).into_iter().map(move |(kind, message)| (kind, (block.clone(), message)))
        });
        let sentence = |(kind, seen): (String, Vec<(String, &str)>)| {
            let (first, message) = &seen[0];
            // Other blocks had other numbers.
            let differs = seen.iter().any(|(_, other)| other != message);
            let first = if differs { format!(" (in block {first})") } else { String::new() };
            let message = if message.is_empty() { String::new() } else { format!(": {message}{first}") };
            let blocks: Vec<&str> = seen.iter().map(|(block, _)| block.as_str()).collect();
            let word = if blocks.len() == 1 { "block" } else { "blocks" };
            format!("{word} {} {kind}{message}", blocks.join(", "))
        };
        grouped(all).into_iter().map(sentence).collect()
    }
}

/// The one that coded response bodies. Products with different coders do different work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coder {
    Nobody,
    Origin,
    Product,
}

/// Mean speed of the product's CPUs in each block, over the trials of all products: one reading says little.
fn speeds(entry: &Entry, trials: &[&Trial]) -> BTreeMap<u32, f64> {
    let role = if entry.product == BASELINE { Role::Origin } else { Role::Proxy };
    let readings = trials.iter().map(|trial| (trial.measurement.block, trial.measurement.speed.iter().flatten()));
    let blocks = grouped(readings).into_iter();
    blocks.filter_map(|(block, readings)| Some((block, mean_of_role(readings.into_iter().flatten(), role)?))).collect()
}

/// Why a trial is marked, left out or missing: the verdict with the check or the stage, and what was seen; empty when the
/// record does not say.
fn reasons(measurement: &Measurement) -> Vec<(String, &str)> {
    let verdict = measurement.verdict;
    let threshold = match (verdict, &measurement.error) {
        (Verdict::Valid, _) => return Vec::new(),
        (Verdict::Error, Some(error)) => return vec![(format!("failed at {}", error.stage), &error.message)],
        (Verdict::Error, None) => return vec![("failed".to_string(), "")],
        (Verdict::Suspect, _) => Severity::Warning,
        (Verdict::Invalid, _) => Severity::Fatal,
    };
    let grave = measurement.findings.iter().filter(|finding| finding.severity >= threshold);
    let reason = |finding: &'_ Finding| format!("{} ({})", verdict.as_str(), finding.check);
    let reasons: Vec<(String, &str)> = grave.map(|finding| (reason(finding), finding.message.as_str())).collect();
    if reasons.is_empty() { vec![(verdict.as_str().to_string(), "")] } else { reasons }
}
