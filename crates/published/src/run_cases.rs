//! The cases of a published suite in a run: their trials, each metric as one value per block, and the order of a document. The module
//! knows no published number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use hdrhistogram::Histogram;
use weir_model::metric::{Metric, Window};
use weir_model::record::Measurement;
use weir_model::suite::Entry;
use weir_model::text::unique;
use weir_report::run::{BASELINE, Run, Trial, displayed};
use weir_report::series::{self, window_folders};
use weir_report::summary::{LEVEL, SEED, Section, Summary};
use weir_stats::{Estimate, median_interval};

use crate::figures::{Source, Variant};
use crate::layout::{Order, head};
use crate::numbers;

/// The prefix of profiles that repeat a document's own configuration.
const AS_PUBLISHED: &str = "as-published";

/// Values of histograms are nanoseconds.
const NANOS_IN_US: f64 = 1e3;

/// The cases of a published suite that were run.
pub(crate) struct RunCases<'a> {
    pub run: &'a Run,
    /// The profiles that were run, those that repeat the document's configuration first. Products are compared under
    /// one profile at a time.
    pub profiles: Vec<String>,
    cases: Vec<RunCase<'a>>,
    /// Histograms of latency by file, each read once.
    histograms: RefCell<BTreeMap<PathBuf, Option<Rc<Histogram<u64>>>>>,
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
        if let Some(known) = numbers::value_in_window(metric, &window) {
            return Some(known);
        }
        if metric == "latency-within-stdev" {
            let (mean, stdev) = (Metric::Mean.value(&window)?, Metric::Stdev.value(&window)?);
            let times = self.histogram(trial, variant)?;
            return Some(count_between(&times, mean - stdev, mean + stdev) as f64 / times.len() as f64);
        }
        match numbers::percentile(metric) {
            Some(share) => Some(self.histogram(trial, variant)?.value_at_quantile(share) as f64 / NANOS_IN_US),
            None => numbers::value_of_machine(self.run, trial, metric),
        }
    }

    /// The histogram of latency of a trial's window; `None` where it cannot be read, or is empty.
    pub fn histogram(&self, trial: &Trial, variant: Variant) -> Option<Rc<Histogram<u64>>> {
        let folders = window_folders(self.run, trial);
        let folder = match variant {
            Variant::Round(round) => folders.into_iter().nth((round as usize).checked_sub(1)?)?,
            Variant::Whole | Variant::Cores(_) | Variant::Machine => folders.into_iter().next_back()?,
            _ => return None,
        };
        let file = folder.join("latency.hlog");
        if let Some(known) = self.histograms.borrow().get(&file) {
            return known.clone();
        }
        let read = series::histogram(&file, "latency").ok().filter(|read| !read.histogram.is_empty());
        let histogram = read.map(|read| Rc::new(read.histogram));
        self.histograms.borrow_mut().insert(file, histogram.clone());
        histogram
    }
}

/// Requests that took between so many microseconds, both included.
pub(crate) fn count_between(histogram: &Histogram<u64>, low_us: f64, high_us: f64) -> u64 {
    let nanos = |us: f64| (us.max(0.0) * NANOS_IN_US).round() as u64;
    histogram.count_between(nanos(low_us), nanos(high_us))
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

/// A run, and what was published of its suite.
pub(crate) struct Context<'a> {
    pub cases: &'a RunCases<'a>,
    pub source: &'a Source,
    /// The parts of the suite that were scaled, one sentence for every table and chart.
    pub scaled: &'a str,
}

impl<'a> Context<'a> {
    /// The cases that `wanted` accepts, with the entries that were run of them, in a document's order: case by case
    /// with the entries of each product, or product by product within the cases of one head. Only what is in the
    /// document is returned: its tables and pictures are repeated, not extended.
    pub fn document_order(&self, order: Order, wanted: impl Fn(&str) -> bool) -> Vec<(&'a RunCase<'a>, &'a Entry)> {
        let (run, source) = (self.cases, self.source);
        let names = source.cases();
        let cases: Vec<&RunCase<'_>> =
            names.iter().filter(|case| wanted(case)).filter_map(|case| run.case(case)).collect();
        let has_figure =
            |case: &str, product: &str| source.figures.iter().any(|f| f.case == case && f.product == product);
        let mut all: Vec<(&RunCase<'_>, &Entry)> = Vec::new();
        for case in &cases {
            let products = source.products.iter().filter(|product| has_figure(case.name, &product.product));
            let entries = products.flat_map(|product| run.entries(&product.product));
            all.extend(entries.filter(|entry| !case.usable_trials(entry).is_empty()).map(|entry| (*case, entry)));
        }
        if order == Order::HeadProductTail {
            // Sorted by profile before case, so that each profile stays one line of a chart and one block of rows.
            all.sort_by_key(|(case, entry)| {
                let of_head = cases.iter().position(|other| head(other.name) == head(case.name));
                let product = source.products.iter().position(|product| product.product == entry.product);
                (of_head, product, run.profiles.iter().position(|profile| *profile == entry.profile))
            });
        }
        all
    }
}
