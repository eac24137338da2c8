//! The cases of a published suite in a run: their trials, and each metric as one value per block. `ratios`, `facts`,
//! `context`, `tool_output`, the document's tables and the charts read them. It knows no published number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use hdrhistogram::Histogram;
use weir_model::metric::{Metric, Window};
use weir_model::record::Measurement;
use weir_model::suite::Entry;
use weir_model::text::unique;
use weir_stats::{Estimate, median_interval};

use super::variant::Variant;
use super::{machine, metrics};
use weir_report::hlog;
use weir_report::run::{BASELINE, Run, Trial, displayed};
use weir_report::series::window_folders;
use weir_report::summary::{LEVEL, SEED, Section, Summary};

/// The prefix of profiles that repeat a document's own configuration.
const AS_PUBLISHED: &str = "as-published";

/// The cases of a published suite that were run.
pub(crate) struct RunCases<'a> {
    pub run: &'a Run,
    /// The profiles that were run, those that repeat the document's configuration first. Products are compared under
    /// one profile at a time.
    pub profiles: Vec<String>,
    cases: Vec<RunCase<'a>>,
    /// Histograms of latency by file, each read once.
    histograms: RefCell<BTreeMap<PathBuf, Option<Rc<Times>>>>,
}

/// A histogram of latency.
pub(crate) struct Times {
    histogram: Histogram<u64>,
    us_per_value: f64,
}

/// A case that was run.
pub(crate) struct RunCase<'a> {
    /// The workload's name.
    pub name: &'a str,
    /// The load under which it repeats the document.
    pub section: &'a Section,
    trials: Vec<&'a Trial>,
}

impl<'a> RunCases<'a> {
    /// The cases that were run. Each is read under the best of `loads` that has trials, else under the first load that
    /// has some.
    pub fn of(run: &'a Run, summary: &'a Summary, loads: &[&str]) -> RunCases<'a> {
        let cases = run.trials.iter().map(|trial| &trial.measurement.case).filter(|case| case.product != BASELINE);
        let mut profiles = unique(cases.map(|case| case.profile.clone()));
        let place = |profile: &String| run.suite.entries.iter().position(|entry| entry.profile == *profile);
        profiles.sort_by_key(|profile| (!profile.starts_with(AS_PUBLISHED), place(profile)));
        let mut cases = Vec::new();
        for workload in &run.suite.workloads {
            let sections = summary.sections.iter().filter(|section| section.workload == workload.name);
            let preference = |section: &&Section| {
                let place = loads.iter().position(|load| *load == section.load);
                // A load under which only the direct path was measured compares nothing.
                (section.rows.is_empty(), place.unwrap_or(usize::MAX))
            };
            if let Some(section) = sections.min_by_key(preference) {
                cases.push(RunCase { name: &section.workload, section, trials: section.trials(run).collect() });
            }
        }
        RunCases { run, profiles, cases, histograms: RefCell::default() }
    }

    /// The cases that were run under one load.
    pub fn under(run: &'a Run, summary: &'a Summary, load: &str) -> RunCases<'a> {
        let mut all = RunCases::of(run, summary, &[load]);
        all.cases.retain(|case| case.section.load == load);
        all
    }

    pub fn cases(&self) -> &[RunCase<'a>] {
        &self.cases
    }

    pub fn case(&self, name: &str) -> Option<&RunCase<'a>> {
        self.cases.iter().find(|case| case.name == name)
    }

    /// The entry of `product` under `profile`, or under another profile if the product ran under that one only.
    pub fn entry(&self, product: &str, profile: &str) -> Option<&'a Entry> {
        let own: Vec<&Entry> = self.run.suite.entries.iter().filter(|entry| entry.product == product).collect();
        match own.as_slice() {
            [only] => Some(only),
            several => several.iter().copied().find(|entry| entry.profile == profile),
        }
    }

    /// All entries of a product, those that repeat the document first.
    pub fn entries(&self, product: &str) -> Vec<&'a Entry> {
        let mut own: Vec<&Entry> = self.run.suite.entries.iter().filter(|entry| entry.product == product).collect();
        own.sort_by_key(|entry| self.profiles.iter().position(|profile| *profile == entry.profile));
        own
    }

    /// A metric in each block of the case, NaN where there is no number; empty when nothing was measured.
    pub fn by_block(&self, case: &RunCase<'_>, variant: Variant, entry: &Entry, metric: &str) -> Vec<f64> {
        self.each_block(case, entry, &|trial| self.value(trial, variant, metric))
    }

    /// What `value` has of a trial, in each block of the case, as [`RunCases::by_block`].
    pub fn each_block(&self, case: &RunCase<'_>, entry: &Entry, value: &dyn Fn(&Trial) -> Option<f64>) -> Vec<f64> {
        let trials = case.usable_trials(entry);
        let of_block = |block: &u32| {
            let mut own = trials.iter().filter(|trial| trial.measurement.block == *block);
            own.find_map(|trial| value(trial)).unwrap_or(f64::NAN)
        };
        case.section.block_numbers.iter().map(of_block).collect()
    }

    /// The median over blocks, in the base unit.
    pub fn estimate(&self, case: &RunCase<'_>, variant: Variant, entry: &Entry, metric: &str) -> Option<Estimate> {
        median_interval(&self.by_block(case, variant, entry, metric), LEVEL, SEED)
    }

    /// A metric of a trial, in the base unit: from its record; from its histogram, because records hold only the commonest
    /// percentiles; or from what was sampled of the machine.
    pub fn value(&self, trial: &Trial, variant: Variant, metric: &str) -> Option<f64> {
        let window = variant.window(&trial.measurement)?;
        if let Some(known) = metrics::value(metric, &window) {
            return Some(known);
        }
        if metric == "latency-within-stdev" {
            let (mean, stdev) = (Metric::Mean.value(&window)?, Metric::Stdev.value(&window)?);
            let times = self.histogram(trial, variant)?;
            return Some(times.count_between(mean - stdev, mean + stdev) as f64 / times.histogram.len() as f64);
        }
        let Some(share) = metrics::percentile(metric) else { return machine::value(self.run, trial, metric) };
        let times = self.histogram(trial, variant)?;
        Some(times.histogram.value_at_quantile(share) as f64 * times.us_per_value)
    }

    /// The histogram of latency of a trial's window; `None` where it cannot be read, or is empty.
    pub fn histogram(&self, trial: &Trial, variant: Variant) -> Option<Rc<Times>> {
        let folders = window_folders(self.run, trial);
        let folder = match variant {
            Variant::Round(round) => folders.into_iter().nth((round as usize).checked_sub(1)?)?,
            Variant::Whole | Variant::Cores(_) | Variant::Machine => folders.into_iter().next_back()?,
            _ => return None,
        };
        let mut known = self.histograms.borrow_mut();
        let read = |file: &PathBuf| {
            let hlog::Merged { histogram, us_per_value, .. } = hlog::read(file, "latency").ok()?;
            (!histogram.is_empty()).then(|| Rc::new(Times { histogram, us_per_value }))
        };
        let file = folder.join("latency.hlog");
        known.entry(file.clone()).or_insert_with(|| read(&file)).clone()
    }
}

impl Times {
    /// Requests that took between so many microseconds, both included.
    pub fn count_between(&self, low_us: f64, high_us: f64) -> u64 {
        let value = |us: f64| (us.max(0.0) / self.us_per_value).round() as u64;
        self.histogram.count_between(value(low_us), value(high_us))
    }
}

impl<'a> RunCase<'a> {
    /// The trials of an entry that are shown: the usable ones, or else the invalid ones.
    pub fn usable_trials(&self, entry: &Entry) -> Vec<&'a Trial> {
        displayed(self.trials.iter().copied().filter(|trial| trial.is_of(entry)))
    }

    /// All measurements of an entry, including failed ones.
    pub fn all(&self, entry: &Entry) -> impl Iterator<Item = &'a Measurement> {
        self.trials.iter().copied().filter(|trial| trial.is_of(entry)).map(|trial| &trial.measurement)
    }

    /// The window of a variant in each of the shown trials.
    pub fn windows(&self, variant: Variant, entry: &Entry) -> Vec<Window<'a>> {
        self.usable_trials(entry).into_iter().filter_map(|trial| variant.window(&trial.measurement)).collect()
    }

    /// True when an entry was measured and may not be ranked.
    pub fn invalid(&self, entry: &Entry) -> bool {
        let trials = self.usable_trials(entry);
        !trials.is_empty() && !trials.iter().any(|trial| trial.counts())
    }

    /// The number of rounds, or of points of another series, in the longest trial.
    pub fn rounds(&self) -> u32 {
        let longest = self.trials.iter().map(|trial| trial.measurement.points.len()).max().unwrap_or(0);
        u32::try_from(longest).unwrap_or(u32::MAX)
    }

    /// The number of cores that products had.
    pub fn cores(&self) -> Option<u32> {
        self.trials.iter().map(|trial| trial.measurement.cores).max()
    }
}
