//! Summarises the trials of one product in one section: estimates over blocks, memory, warm-up, what a search found, and the points of a
//! series. It does not know the other products, so `section` sets ranks and ratios.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use weir_model::load::{SearchLimit, SearchResult};
use weir_model::metric::{Metric, Window};
use weir_model::record::{COMPRESSES, Finding, Measurement, OWN_RESPONSES, Point, Role, Severity, Verdict};
use weir_model::speed::mean_of_role;
use weir_model::suite::{Entry, Load, Series};
use weir_model::text::grouped;
use weir_stats::{Bend, Estimate, knee, median, median_interval};

use super::{LEVEL, Row, SEED, Standing};
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
        self.all.iter().any(|trial| trial.counts()) && !self.responds_itself()
    }

    /// True when the product was seen to answer requests that it did not pass on.
    fn responds_itself(&self) -> bool {
        self.has_finding(OWN_RESPONSES)
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
        let points = points(self, blocks);
        Row {
            standing,
            version: self.all.iter().find_map(|trial| trial.measurement.product_version.clone()),
            responds_itself: self.responds_itself(),
            not_comparable: None,
            memory: memory(self, blocks),
            warmup: warmup(self, blocks),
            search: searched(self, blocks),
            knee: knee_of(&points, &self.load.series),
            points,
            ratio_to_baseline: None,
            findings: self.all.iter().map(|trial| trial.measurement.findings.len()).sum(),
            causes: self.causes(),
        }
    }

    /// Why trials of this entry are marked, left out or missing: each cause once, with its blocks.
    fn causes(&self) -> Vec<Cause> {
        let all = self.all.iter().flat_map(|trial| {
            let block = trial.measurement.block;
            reasons(&trial.measurement).into_iter().map(move |(kind, message)| (kind, (block, message)))
        });
        let cause = |(kind, seen): (String, Vec<(u32, &str)>)| Cause {
            kind,
            blocks: seen.iter().map(|(block, _)| *block).collect(),
            message: seen[0].1.to_owned(),
            differs: seen.iter().any(|(_, other)| *other != seen[0].1),
        };
        grouped(all).into_iter().map(cause).collect()
    }
}

/// Why trials of a product are marked, left out or missing. In `--json` a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The verdict with the check, or the stage: `suspect (drift)`.
    pub kind: String,
    /// The blocks of the trials; none where the cause is of the product.
    pub blocks: Vec<u32>,
    /// The observation in the first of them; may be empty.
    pub message: String,
    /// Other blocks had other numbers.
    pub differs: bool,
}

impl Cause {
    /// `blocks 1, 3`.
    pub fn block_words(&self) -> String {
        let word = if self.blocks.len() == 1 { "block" } else { "blocks" };
        format!("{word} {}", self.blocks.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.blocks.is_empty() {
            write!(f, "{} ", self.block_words())?;
        }
        f.write_str(&self.kind)?;
        match (self.message.as_str(), self.differs) {
            ("", _) => Ok(()),
            (message, true) => write!(f, ": {message} (in block {})", self.blocks[0]),
            (message, false) => write!(f, ": {message}"),
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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

/// The window that represents a trial of `load`. For rounds it is the one with the median rate, and for a series over rates or
/// connections the one that carried most. `None` if the trial has no number.
pub(crate) fn window_of<'a>(measurement: &'a Measurement, load: &Load) -> Option<Window<'a>> {
    let whole = Window::of_trial(measurement)?;
    let mut by_rate: Vec<&Point> = measurement.points.iter().collect();
    by_rate.sort_by(|a, b| a.load.rate.total_cmp(&b.load.rate));
    let point = match load.series {
        Series::Once => None,
        // Of an even number the slower one of the two in the middle: a window that was, not a mean of two.
        Series::Rounds(_) => by_rate.get(by_rate.len().saturating_sub(1) / 2),
        Series::Shares(_) | Series::Connections(_) => by_rate.last(),
    };
    Some(point.map_or(whole, |point| Window::of_point(point)))
}

/// The estimates of a row, by metric. In `--json` each stands under its key, and is `null` where there is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimates(BTreeMap<Metric, Option<Estimate>>);

impl Estimates {
    /// Of those metrics of the table that are `shown`.
    pub(crate) fn of(shown: impl Fn(Metric) -> bool, estimate: impl Fn(Metric) -> Option<Estimate>) -> Estimates {
        let metrics = Metric::ALL.iter().copied().filter(|metric| shown(*metric));
        Estimates(metrics.map(|metric| (metric, estimate(metric))).collect())
    }

    /// That of one metric.
    pub fn get(&self, metric: Metric) -> Option<Estimate> {
        *self.0.get(&metric)?
    }
}

impl Serialize for Estimates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

/// Memory of the proxy's process tree, at its most in the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Memory {
    /// Proportional sets, in which a page that several processes share is counted once; else resident sets, in which each
    /// of them counts it.
    pub proportional: bool,
    /// All of it, bytes.
    pub bytes: Estimate,
    /// All of it by the client's connections, bytes: what the product needs with none is in it.
    pub by_connection: Option<Estimate>,
}

/// How a product was warmed up, over the trials shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WarmupSummary {
    /// Until what it carried each second kept its level, seconds; where it never did, the time that was given.
    pub seconds: Estimate,
    /// Trials in which it never did.
    pub never: usize,
    /// Trials.
    pub of: usize,
}

/// `None` without a proxy. Resident sets as soon as one block has no other: blocks are compared in one measure.
pub(super) fn memory(cases: &Cases<'_>, blocks: &[u32]) -> Option<Memory> {
    let estimate =
        |value: &dyn Fn(&Window<'_>) -> Option<f64>| median_interval(&cases.by_block(blocks, value), LEVEL, SEED);
    let resident = estimate(&|window| bytes(window, false))?;
    let proportional = estimate(&|window| bytes(window, true)).filter(|estimate| estimate.n == resident.n);
    let planned = (cases.load.connections > 0).then_some(cases.load.connections);
    let by_connection = estimate(&|window| by_connection(window, proportional.is_some(), planned));
    Some(Memory { proportional: proportional.is_some(), bytes: proportional.unwrap_or(resident), by_connection })
}

/// Memory of the proxy in one window, as proportional sets or as resident sets.
fn bytes(window: &Window<'_>, proportional: bool) -> Option<f64> {
    let usage = window.role(Role::Proxy)?;
    Some(if proportional { usage.pss_max_bytes? } else { usage.rss_max_bytes } as f64)
}

/// The same by the connections that were open, or by those `planned` where that was not recorded.
pub(super) fn by_connection(window: &Window<'_>, proportional: bool, planned: Option<u32>) -> Option<f64> {
    let connections = match window.load.most_open {
        0 => planned?,
        open => open,
    };
    Some(bytes(window, proportional)? / f64::from(connections.max(1)))
}

/// `None` if no trial was asked to wait for a steady level.
pub(super) fn warmup(cases: &Cases<'_>, blocks: &[u32]) -> Option<WarmupSummary> {
    let seconds = cases.of_measurements(blocks, |measurement| Some(measurement.warmup?.seconds));
    let watched: Vec<_> = cases.displayed().filter_map(|trial| trial.measurement.warmup).collect();
    Some(WarmupSummary {
        seconds: median_interval(&seconds, LEVEL, SEED)?,
        never: watched.iter().filter(|warmup| !warmup.steady).count(),
        of: watched.len(),
    })
}

/// What the searches of one product found. Rates in requests a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchSummary {
    /// The highest rate that met the objective in all its trials.
    pub met_up_to: Option<Estimate>,
    /// The lowest that failed.
    pub failed_from: Option<Estimate>,
    /// Searches whose rate met the objective in a trial of full length too.
    pub confirmed: usize,
    /// Searches.
    pub of: usize,
    /// How they ended, each sentence with how many did.
    pub ends: BTreeMap<String, usize>,
    /// The role that could not do more: `product`, `client`, `nobody`, each with its number of searches.
    pub limits: BTreeMap<&'static str, usize>,
}

/// `None` where nothing was searched.
pub(super) fn searched(cases: &Cases<'_>, blocks: &[u32]) -> Option<SearchSummary> {
    let estimate = |value: fn(&SearchResult) -> Option<f64>| {
        let values = cases.of_measurements(blocks, |measurement| value(measurement.search.as_ref()?));
        median_interval(&values, LEVEL, SEED)
    };
    let all: Vec<&SearchResult> = cases.displayed().filter_map(|trial| trial.measurement.search.as_ref()).collect();
    if all.is_empty() {
        return None;
    }
    let mut searched = SearchSummary {
        met_up_to: estimate(|search| search.met_up_to),
        failed_from: estimate(|search| search.failed_from),
        confirmed: all.iter().filter(|search| search.confirmed).count(),
        of: all.len(),
        ends: BTreeMap::new(),
        limits: BTreeMap::new(),
    };
    for search in all {
        *searched.ends.entry(search.sentence()).or_default() += 1;
        let limit = match search.limit {
            Some(SearchLimit::Target) => "product",
            Some(SearchLimit::Client) => "client",
            None => "nobody",
        };
        *searched.limits.entry(limit).or_default() += 1;
    }
    Some(searched)
}

/// The sensitivity of the knee detection: the value that the authors of the method advise.
const SENSITIVITY: f64 = 1.0;

/// One point of a product's curve. Times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointRow {
    /// 1-based place in the series.
    pub point: u32,
    /// Requests a second that were due, the median over blocks; `None` for a closed load.
    pub offered: Option<f64>,
    /// Connections.
    pub connections: u32,
    /// The metrics that are shown of points.
    #[serde(flatten)]
    pub estimates: Estimates,
    /// Requests due, all blocks together.
    pub requests: u64,
    /// Requests without a successful response.
    pub errors: u64,
    /// Blocks in which a check found this point invalid.
    pub invalid: usize,
}

impl PointRow {
    /// The estimate of a metric.
    pub fn of(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric)
    }
}

/// The points of the trials shown, in order.
pub(super) fn points(cases: &Cases<'_>, blocks: &[u32]) -> Vec<PointRow> {
    let longest = cases.displayed().map(|trial| trial.measurement.points.len()).max().unwrap_or(0);
    (0..longest).filter_map(|place| point(cases, blocks, place)).collect()
}

fn point(cases: &Cases<'_>, blocks: &[u32], place: usize) -> Option<PointRow> {
    let own: Vec<&Point> = cases.displayed().filter_map(|trial| trial.measurement.points.get(place)).collect();
    let first = own.first()?;
    let estimate = |metric: Metric| -> Option<Estimate> {
        let of = |measurement: &Measurement| metric.value(&Window::of_point(measurement.points.get(place)?));
        median_interval(&cases.of_measurements(blocks, of), LEVEL, SEED)
    };
    let offered: Vec<f64> = own.iter().filter_map(|point| point.offered_rate).collect();
    let fatal = |point: &&&Point| point.findings.iter().any(|finding| finding.severity == Severity::Fatal);
    Some(PointRow {
        point: first.point,
        offered: median(&offered),
        connections: first.connections,
        estimates: Estimates::of(|metric| metric.entry().columns.points, estimate),
        requests: own.iter().map(|point| point.load.window.due).sum(),
        errors: own.iter().map(|point| point.load.window.error_count() + point.load.window.unsent).sum(),
        invalid: own.iter().filter(fatal).count(),
    })
}

/// The knee of a curve. For offered rates it is the rate from which p99 climbs by orders of magnitude. It is found on the logarithm of
/// p99, because a latency of seconds past saturation makes everything before it look flat. For connections it is the number from which
/// the rate climbs no more. Rounds have no knee.
fn knee_of(points: &[PointRow], series: &Series) -> Option<usize> {
    let of = |value: fn(&PointRow) -> Option<f64>| -> Vec<f64> {
        points.iter().map(|point| value(point).unwrap_or(f64::NAN)).collect()
    };
    match series {
        Series::Shares(_) => {
            let latency = of(|point| point.of(Metric::P99).map(|p99| p99.value.ln()));
            knee(&of(|point| point.offered), &latency, Bend::Up, SENSITIVITY)
        }
        Series::Connections(_) => {
            let rates = of(|point| point.of(Metric::Rate).map(|rate| rate.value));
            knee(&of(|point| Some(f64::from(point.connections))), &rates, Bend::Down, SENSITIVITY)
        }
        Series::Once | Series::Rounds(_) => None,
    }
}
