//! Summarises a run in numbers: medians with intervals, ratios within blocks, and shared ranks. `weir run` and `weir report` call
//! [`summary`]. The module does not know how a table looks.

mod changes;
mod faults;
mod overall;
mod prices;
mod rows;
mod section;
mod streams;
mod words;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use weir_model::Condition;
pub use weir_model::metric::Metric;
use weir_model::record::{Severity, Skipped, TrialError, Verdict};
use weir_model::suite::{Entry, LoadKind, Protocol, Series};
use weir_model::text::{list, short};
use weir_stats::Estimate;

use crate::run::{BASELINE, Broken, Run, Trial};

pub use changes::ChangeRow;
pub use overall::{Overall, OverallRow, Provisional, provisional};
pub use prices::{Price, PriceRow};
pub(crate) use rows::window_of;
pub use rows::{Cause, Estimates, Memory, PointRow, SearchSummary, WarmupSummary};
pub use streams::StreamRow;
pub use words::{ClientSummary, Outdated, host_words};

/// Version of [`Summary`].
pub const SUMMARY_SCHEMA: u32 = 1;

/// Confidence asked of every interval.
pub const LEVEL: f64 = 0.95;

/// Seed of every bootstrap: fixed, so that a report made twice says the same twice.
pub const SEED: u64 = 1;

/// A run in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: u32,
    /// Name of the run folder.
    pub run: String,
    /// Name of the suite; empty when `run.toml` could not be read.
    pub suite: String,
    /// The suite's title, else the run's name.
    pub title: String,
    /// The suite's question.
    pub question: String,
    /// The response, one sentence.
    pub answer: String,
    /// The hosts and their roles, in words; empty: one machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hosts: String,
    /// What else belongs beside the answer, one sentence each.
    pub remarks: Vec<String>,
    /// Trials that ended, failed ones included.
    pub trials: usize,
    /// Trials ordered; `None` when `run.toml` could not be read.
    pub trials_planned: Option<usize>,
    /// What the first screen shows: each product over all workloads; `None` when nothing may be ranked.
    pub overall: Option<Overall>,
    /// What products did to the messages of streams; empty where no response is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamRow>,
    /// The price of each workload that has a baseline, by product; empty where none has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<PriceRow>,
    /// What clients saw of routes that changed; empty where none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeRow>,
    /// What of the run is shown, in words; empty: all of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// Workload x load, in the suite's order; only those with a trial.
    pub sections: Vec<Section>,
    /// What was left out before anything was started, and why, one sentence each.
    pub skipped: Vec<String>,
    /// Ranked products whose version is more than a year behind the newest that weir knows, one phrase each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<Outdated>,
    /// What the checks noticed, worst first.
    pub findings: Vec<FindingGroup>,
    /// Trials that failed.
    pub errors: Vec<FailedTrial>,
    /// Files of the run that could not be read.
    pub broken: Vec<Broken>,
}

/// One workload under one load.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Name.
    pub workload: String,
    /// One line; may be empty.
    pub workload_title: String,
    /// Name.
    pub load: String,
    /// One line; may be empty.
    pub load_title: String,
    /// How requests arrive.
    #[serde(rename = "arrival", serialize_with = "kind_name")]
    pub kind: LoadKind,
    /// What a trial measures, one after another: `once`, `rounds`, `shares`, `connections`.
    #[serde(serialize_with = "series_name")]
    pub series: Series,
    /// True when requests were due at times fixed beforehand.
    pub open: bool,
    /// An open load that is more than can be carried, on purpose.
    pub saturating: bool,
    /// Each entry was offered a share of its own capacity, so latencies belong to different rates.
    pub own_rates: bool,
    /// What client and product speak; `None` when `run.toml` could not be read.
    pub protocol: Option<Protocol>,
    /// HTTP/2: streams that a connection may have open; else 1.
    pub streams: u32,
    /// What TLS came to in the trials that count, each once: `TLS 1.3 with TLS_AES_128_GCM_SHA256`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls: Vec<String>,
    /// Connections of the client.
    pub connections: Option<u32>,
    /// Each request had one of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
    /// Median length of the measured windows, seconds.
    pub window_s: f64,
    /// Open load: least and most requests a second ordered.
    pub offered_rate: Option<(f64, f64)>,
    /// What the ranks go by: `rate` (more is better), `p99`, or of streams `message_delay_p99` (less is better).
    pub ranked_by: Metric,
    /// Blocks with at least one number.
    pub blocks: usize,
    /// Noise of one product between blocks, as a share, after what blocks share was taken out.
    pub noise: Option<f64>,
    /// The smallest ratio (above 1) that this many blocks find in four runs of five; `None` when nothing could.
    pub detectable_ratio: Option<f64>,
    /// Invalid trials: shown, not ranked.
    pub invalid: usize,
    /// Failed trials: no number.
    pub failed: usize,
    /// How each client did, where several made the load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientSummary>,
    /// How the numbers of a table were obtained, in sentences.
    pub how: Vec<String>,
    /// How those of a picture were, in fewer.
    #[serde(skip)]
    pub how_drawn: Vec<String>,
    /// What products spoke with the origin, by its counters; empty when it kept none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub origin_spoke: String,
    /// The direct path: apart, not ranked.
    pub baseline: Vec<Row>,
    /// The products: ranked ones best first, then the others.
    pub rows: Vec<Row>,
    /// Where its trials stand among the run's.
    #[serde(skip)]
    pub(crate) places: Vec<usize>,
    /// The blocks that its trials belong to.
    #[serde(skip)]
    pub block_numbers: Vec<u32>,
}

/// A product under one profile, as it stands among others: in a section, or over all workloads. Times in microseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Standing {
    /// Product and profile.
    #[serde(flatten)]
    pub entry: Entry,
    /// As a reader knows the product.
    pub title: String,
    /// The title, with the profile where the run has more than one of them.
    pub label: String,
    /// Best and worst rank that the intervals allow; `None` when not ranked.
    pub rank: Option<(usize, usize)>,
    /// Its trials by verdict.
    pub verdicts: Verdicts,
    /// The metrics that are shown here.
    #[serde(flatten)]
    pub estimates: Estimates,
    /// Of the ranked metric, within blocks: this one over the best.
    pub ratio_to_best: Option<Estimate>,
    /// Requests due in the windows of the trials that count.
    pub requests: u64,
    /// Requests without a successful response, by kind; `unsent` among them, except of a saturating load.
    pub errors: BTreeMap<String, u64>,
}

/// One product under one profile, in one section. Times in microseconds, memory in bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it has in common with a row over all workloads.
    #[serde(flatten)]
    pub standing: Standing,
    /// Version read from the binary.
    pub version: Option<String>,
    /// It answered requests that it did not pass on, as a cache does, and is not ranked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub responds_itself: bool,
    /// Why its numbers are not ranked with those of the others, which did other work; `None`: they may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<&'static str>,
    /// Memory of the proxy, all and by connection.
    pub memory: Option<Memory>,
    /// How the product was warmed up, where that was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<WarmupSummary>,
    /// What a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSummary>,
    /// The windows of a series, in order; empty for a load that is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointRow>,
    /// The point at which the curve bends, by its place among the points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<usize>,
    /// Of the ranked metric, within blocks: this one over the direct path.
    pub ratio_to_baseline: Option<Estimate>,
    /// Findings of its trials.
    pub findings: usize,
    /// Why it is marked or not ranked, one sentence each.
    #[serde(rename = "remarks")]
    pub causes: Vec<Cause>,
}

/// Trials by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// Nothing that matters was found.
    pub valid: usize,
    /// Ranked, with a remark.
    pub suspect: usize,
    /// Shown, not ranked.
    pub invalid: usize,
    /// Failed.
    pub error: usize,
}

/// The same finding of a check, wherever it turned up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FindingGroup {
    /// Name of the check.
    pub check: String,
    /// How bad.
    pub severity: Severity,
    /// What was seen, with numbers, in the first of the trials.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// Where: trial folders; empty for the machine as a whole.
    pub trials: Vec<String>,
}

/// A trial that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedTrial {
    /// Its folder.
    pub trial: String,
    /// Its block.
    pub block: u32,
    /// Product as a reader knows it.
    pub label: String,
    /// Workload.
    pub workload: String,
    /// Load.
    pub load: String,
    /// Where in the trial's life.
    pub stage: String,
    /// What happened.
    pub message: String,
    /// Where to look.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

impl Standing {
    /// What the run says of an entry before anything is measured.
    fn before_measuring(run: &Run, entry: &Entry) -> Standing {
        let title = run.title_of(&entry.product).to_string();
        Standing { entry: entry.clone(), title, label: run.label_of(entry), ..Standing::default() }
    }

    /// The estimate of a metric.
    pub fn of(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric)
    }

    /// True when a trial is marked.
    pub fn suspect(&self) -> bool {
        self.verdicts.suspect > 0
    }

    /// True of the direct path, which is shown apart and not ranked.
    pub fn is_baseline(&self) -> bool {
        self.entry.product == BASELINE
    }

    /// Requests without a successful response.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl Deref for Row {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        &self.standing
    }
}

impl DerefMut for Row {
    fn deref_mut(&mut self) -> &mut Standing {
        &mut self.standing
    }
}

impl Verdicts {
    /// Counts one trial.
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Valid => self.valid += 1,
            Verdict::Suspect => self.suspect += 1,
            Verdict::Invalid => self.invalid += 1,
            Verdict::Error => self.error += 1,
        }
    }
}

impl std::ops::AddAssign for Verdicts {
    fn add_assign(&mut self, other: Verdicts) {
        self.valid += other.valid;
        self.suspect += other.suspect;
        self.invalid += other.invalid;
        self.error += other.error;
    }
}

/// `5,000`, or `4,000 to 5,000` where both ends differ.
pub(crate) fn range_words((least, most): (f64, f64)) -> String {
    if most > least * 1.001 { format!("{} to {}", short(least), short(most)) } else { short(least) }
}

/// `workload-load`: see [`Section::slug`].
pub(crate) fn slug(workload: &str, load: &str) -> String {
    // The names are such already, unless a record was tampered with: they become paths, so that is not trusted.
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    format!("{workload}-{load}").chars().map(safe).collect()
}

impl Section {
    /// `workload-load`: stem of the section's file names and its anchor.
    pub fn slug(&self) -> String {
        slug(&self.workload, &self.load)
    }

    /// Baseline first, then the products.
    pub fn all_rows(&self) -> impl Iterator<Item = &Row> {
        self.baseline.iter().chain(&self.rows)
    }

    /// True when a product has rows of several profiles.
    pub(crate) fn tells_profiles_apart(&self) -> bool {
        self.all_rows().any(|row| row.label != row.title)
    }

    /// Its trials, in the order in which they ran.
    pub fn trials<'a>(&self, run: &'a Run) -> impl Iterator<Item = &'a Trial> {
        self.places.iter().filter_map(|place| run.trials.get(*place))
    }

    /// Whether its responses are streams.
    pub(crate) fn of_streams(&self) -> bool {
        self.ranked_by == Metric::MessageDelay
    }

    /// What the section is called in headings.
    pub fn heading(&self) -> String {
        let part = |title: &str, name: &str| if title.is_empty() { name.to_string() } else { title.to_string() };
        format!("{} \u{2013} {}", part(&self.workload_title, &self.workload), part(&self.load_title, &self.load))
    }
}

impl Summary {
    /// That versions are old, as a sentence; `None` when none is.
    pub fn outdated_words(&self) -> Option<String> {
        let phrases: Vec<String> = self.outdated.iter().map(Outdated::to_string).collect();
        (!self.outdated.is_empty())
            .then(|| format!("More than a year behind the newest version that weir knows: {}.", list(&phrases)))
    }

    /// Suspect trials. Those of products that answer from a cache are not ranked, and no suspects.
    pub(crate) fn suspect(&self) -> usize {
        let rows = self.sections.iter().flat_map(Section::all_rows);
        rows.filter(|row| !row.responds_itself).map(|row| row.verdicts.suspect).sum()
    }

    /// Invalid trials.
    pub(crate) fn invalid(&self) -> usize {
        self.sections.iter().map(|section| section.invalid).sum()
    }
}

/// Summarises a run. Pure: the same run gives the same summary.
pub fn summary(run: &Run) -> Summary {
    let mut sections = Vec::new();
    for workload in &run.suite.workloads {
        for load in &run.suite.loads {
            sections.extend(section::section(run, workload, load));
        }
    }
    let suite = &run.suite;
    let title = if suite.title.is_empty() { run.name.clone() } else { suite.title.clone() };
    let mut summary = Summary {
        schema: SUMMARY_SCHEMA,
        run: run.name.clone(),
        suite: suite.name.clone(),
        title,
        question: suite.question.clone(),
        answer: String::new(),
        hosts: words::run_hosts(run),
        remarks: Vec::new(),
        trials: run.trials.len(),
        trials_planned: (suite.blocks > 0).then(|| suite.trials(skipped(run))),
        overall: overall::overall(run, &sections),
        streams: streams::rows(run),
        prices: prices::rows(run, &sections),
        changes: changes::rows(run),
        shown: run.part.clone(),
        sections,
        findings: findings(run),
        skipped: Skipped::sentences(skipped(run)),
        outdated: Vec::new(),
        errors: errors(run),
        broken: run.broken.clone(),
    };
    summary.outdated = words::outdated(run, &summary);
    let special = streams::answer(&summary.streams).or_else(|| prices::answer(&summary.prices));
    let special = special.or_else(|| changes::answer(&summary.changes, &summary.errors));
    let special = special.or_else(|| faults::answer(run));
    summary.answer = special.unwrap_or_else(|| words::answer(&summary));
    summary.remarks = words::remarks(&summary);
    summary.remarks.extend(words::clock_words(run));
    summary
}

fn kind_name<S: serde::Serializer>(kind: &LoadKind, serializer: S) -> Result<S::Ok, S::Error> {
    match kind {
        LoadKind::Closed => serializer.serialize_str("closed"),
        LoadKind::Open { .. } => serializer.serialize_str("open"),
        LoadKind::Count { requests } => serializer.collect_map([("count", requests)]),
        LoadKind::Search { objective } => serializer.collect_map([("search", objective_words(objective))]),
    }
}

/// `p99<5ms, errors<0.1%`.
pub(crate) fn objective_words(objective: &[Condition]) -> String {
    objective.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn series_name<S: serde::Serializer>(series: &Series, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match series {
        Series::Once => "once",
        Series::Rounds(_) => "rounds",
        Series::Shares(_) => "shares",
        Series::Connections(_) => "connections",
    })
}

/// The products and workloads that the run left out.
fn skipped(run: &Run) -> &[Skipped] {
    run.environment.as_ref().map(|environment| environment.skipped.as_slice()).unwrap_or_default()
}

/// Equal findings of many trials become one row: a reader wants to know what is wrong, and then where.
fn findings(run: &Run) -> Vec<FindingGroup> {
    let mut all: Vec<FindingGroup> = Vec::new();
    let machine = run.environment.iter().flat_map(|e| &e.doctor).map(|finding| (None, finding));
    let of_trials =
        run.trials.iter().flat_map(|t| t.measurement.findings.iter().map(move |finding| (Some(&t.folder), finding)));
    for (folder, finding) in machine.chain(of_trials) {
        let same = |found: &&mut FindingGroup| {
            found.check == finding.check
                && found.severity == finding.severity
                && found.remedy == finding.remedy
                && found.trials.is_empty() == folder.is_none()
        };
        match all.iter_mut().find(same) {
            Some(found) if folder.is_some() => found.trials.extend(folder.cloned()),
            _ => all.push(FindingGroup {
                check: finding.check.clone(),
                severity: finding.severity,
                message: finding.message.clone(),
                remedy: finding.remedy.clone(),
                trials: folder.into_iter().cloned().collect(),
            }),
        }
    }
    all.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.check.cmp(&b.check)));
    all
}

fn errors(run: &Run) -> Vec<FailedTrial> {
    let failed = run.trials.iter().filter(|trial| trial.measurement.verdict == Verdict::Error);
    let row = |trial: &Trial| {
        let case = &trial.measurement.case;
        let TrialError { stage, message, evidence, remedy } = trial.measurement.error.clone().unwrap_or_default();
        FailedTrial {
            trial: trial.folder.clone(),
            block: trial.measurement.block,
            label: run.label_of(&trial.entry()),
            workload: case.workload.clone(),
            load: case.load.clone(),
            stage,
            message,
            evidence,
            remedy,
        }
    };
    failed.map(row).collect()
}
