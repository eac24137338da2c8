//! Summarises one product in one section: the estimates of its trials over blocks. Called by `section`, which sets
//! ranks and ratios because it sees all products.

use weir_model::metric::Window;
use weir_model::record::{ANSWERS_ITSELF, Measurement, Severity, Verdict};
use weir_model::suite::{Entry, Load};
use weir_stats::median_interval;

use super::metric::{Estimates, window_of};
use super::{LEVEL, Row, SEED, Standing, cost, curve, search};
use crate::run::{Run, Trial};

/// The trials of one entry in one section.
pub(crate) struct Cases<'a> {
    pub entry: &'a Entry,
    pub load: &'a Load,
    all: Vec<&'a Trial>,
}

impl<'a> Cases<'a> {
    /// `None` when the entry has no trial among `trials`.
    pub fn of(entry: &'a Entry, load: &'a Load, trials: &[&'a Trial]) -> Option<Cases<'a>> {
        let all: Vec<&Trial> = trials.iter().copied().filter(|trial| trial.is_of(entry)).collect();
        (!all.is_empty()).then_some(Cases { entry, load, all })
    }

    /// True when at least one trial may be ranked, and none answered from a cache: that is other work than a proxy's.
    pub fn ranked(&self) -> bool {
        self.all.iter().any(|trial| trial.counts()) && !self.answers_itself()
    }

    /// True when the product was seen to answer requests that it did not pass on.
    fn answers_itself(&self) -> bool {
        let itself = |trial: &&Trial| trial.measurement.findings.iter().any(|f| f.check == ANSWERS_ITSELF);
        self.all.iter().any(itself)
    }

    /// The trials whose numbers are shown: those that count, else the invalid ones.
    pub fn displayed(&self) -> impl Iterator<Item = &'a Trial> {
        let some_count = self.all.iter().any(|trial| trial.counts());
        self.all.iter().copied().filter(
            move |trial| {
                if some_count { trial.counts() } else { trial.measurement.load.is_some() }
            },
        )
    }

    /// One value a block, NaN where a block has none.
    pub fn by_block(&self, blocks: &[u32], value: impl Fn(&Window<'_>) -> Option<f64>) -> Vec<f64> {
        self.of_measurements(blocks, |measurement| value(&window_of(measurement, self.load)?))
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
        let mut reasons: Vec<(Reason, Vec<String>)> = Vec::new();
        for trial in &self.all {
            for reason in reasons_of(&trial.measurement) {
                let block = trial.measurement.block.to_string();
                match reasons.iter_mut().find(|(known, _)| known.kind == reason.kind) {
                    Some((known, blocks)) => {
                        known.differs |= known.message != reason.message;
                        blocks.push(block);
                    }
                    None => reasons.push((reason, vec![block])),
                }
            }
        }
        let sentence = |(reason, blocks): (Reason, Vec<String>)| {
            let word = if blocks.len() == 1 { "block" } else { "blocks" };
            let first = if reason.differs { format!(" (in block {})", blocks[0]) } else { String::new() };
            let message =
                if reason.message.is_empty() { String::new() } else { format!(": {}{first}", reason.message) };
            format!("{word} {} {}{message}", blocks.join(", "), reason.kind)
        };
        reasons.into_iter().map(sentence).collect()
    }
}

/// Why a trial is marked, left out or missing.
struct Reason {
    /// The verdict, with the check or the stage: what makes two reasons one.
    kind: String,
    /// What was seen; empty when the record does not say.
    message: String,
    /// Other blocks had other numbers.
    differs: bool,
}

fn reasons_of(measurement: &Measurement) -> Vec<Reason> {
    let reason = |kind: String, message: &str| Reason { kind, message: message.to_string(), differs: false };
    let verdict = measurement.verdict;
    let threshold = match verdict {
        Verdict::Valid => return Vec::new(),
        Verdict::Error => {
            let error = measurement.error.as_ref();
            let known = error.map(|error| reason(format!("failed at {}", error.stage), &error.message));
            return vec![known.unwrap_or_else(|| reason("failed".to_string(), ""))];
        }
        Verdict::Suspect => Severity::Warning,
        Verdict::Invalid => Severity::Fatal,
    };
    let grave = measurement.findings.iter().filter(|finding| finding.severity >= threshold);
    let reasons: Vec<Reason> =
        grave.map(|finding| reason(format!("{} ({})", verdict.as_str(), finding.check), &finding.message)).collect();
    if reasons.is_empty() { vec![reason(verdict.as_str().to_string(), "")] } else { reasons }
}
