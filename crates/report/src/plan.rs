//! What was asked and in which order: from `run.toml` where it can be read, completed from the measurements.
//! Knows nothing of results.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use weir_model::product::ORIGIN_PROFILE;
use weir_model::record::{CaseId, Point};
use weir_model::suite::{Entry, Load, LoadKind, Protocol, RateBase, RateSpec, Series, Suite};

use crate::run::{BASELINE, Broken, Trial};

/// The questions of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Name of the suite; empty when `run.toml` could not be read.
    pub suite: String,
    /// One line.
    pub title: String,
    /// What the first screen answers.
    pub question: String,
    /// Blocks ordered; `None` when `run.toml` could not be read.
    pub blocks: Option<u32>,
    /// Products with their profiles: baseline first, then as written.
    pub entries: Vec<Entry>,
    /// Workloads as written.
    pub workloads: Vec<PlannedWorkload>,
    /// Loads as written.
    pub loads: Vec<PlannedLoad>,
    /// Every case that the suite has; `None` when `run.toml` could not be read.
    pub cases: Option<Vec<CaseId>>,
    /// What of the run is shown, in words; empty: all of it.
    pub shown: String,
}

/// A workload: its name, and what it is in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedWorkload {
    /// As in file names.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What client and product speak; `None` when `run.toml` could not be read.
    pub protocol: Option<Protocol>,
}

/// How requests arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Each connection sends when its last answer came.
    #[default]
    Closed,
    /// The same, until so many requests were sent.
    Count(u64),
    /// At times fixed beforehand.
    Open,
    /// An open rate is looked for at which these conditions hold, in words.
    Search(String),
}

/// A load: its name, and how requests arrive.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedLoad {
    /// As in file names.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// `None` when `run.toml` could not be read.
    pub connections: Option<u32>,
    /// Streams of each, where HTTP/2 is spoken.
    pub streams: u32,
    /// Each entry is offered a rate of its own, so that their latencies do not compare directly.
    pub own_rates: bool,
    /// How requests arrive. Where `run.toml` could not be read: as the records have it.
    pub arrival: Arrival,
    /// What a trial measures, one after another.
    pub series: Series,
    /// An open load that is meant to be more than can be carried.
    pub saturating: bool,
}

impl Plan {
    /// The plan of a run folder.
    pub(crate) fn of(run: &Path, trials: &[Trial], broken: &mut Vec<Broken>) -> Plan {
        let mut plan = match read_suite(&run.join("run.toml")) {
            Ok(suite) => Plan::from_suite(&suite),
            Err(why) => {
                broken.push(Broken { file: "run.toml".to_string(), why });
                Plan::default()
            }
        };
        plan.complete(trials);
        plan
    }

    fn from_suite(suite: &Suite) -> Plan {
        let workloads = suite.workloads.iter().map(|workload| PlannedWorkload {
            name: workload.name.clone(),
            title: workload.title.clone(),
            protocol: Some(workload.protocol),
        });
        Plan {
            suite: suite.name.clone(),
            title: suite.title.clone(),
            question: suite.question.clone(),
            blocks: Some(suite.blocks),
            entries: suite.entries.clone(),
            workloads: workloads.collect(),
            loads: suite.loads.iter().map(PlannedLoad::of).collect(),
            cases: Some(cases(suite)),
            shown: String::new(),
        }
    }

    /// Adds what was measured and is not in the file, and puts the baseline first.
    fn complete(&mut self, trials: &[Trial]) {
        // By case and not by trial: within a block the order is random, and a report must not depend on it.
        let mut cases: Vec<_> = trials.iter().map(|trial| &trial.measurement.case).collect();
        cases.sort();
        for case in cases {
            let entry = Entry { product: case.product.clone(), profile: case.profile.clone() };
            if !self.entries.contains(&entry) {
                self.entries.push(entry);
            }
            if !self.workloads.iter().any(|w| w.name == case.workload) {
                let (name, title) = (case.workload.clone(), String::new());
                self.workloads.push(PlannedWorkload { name, title, protocol: None });
            }
            if !self.loads.iter().any(|l| l.name == case.load) {
                let of_load = trials.iter().filter(|trial| trial.measurement.case.load == case.load);
                self.loads.push(PlannedLoad::seen(&case.load, of_load));
            }
        }
        self.entries.sort_by_key(|entry| entry.product != BASELINE);
    }
}

impl PlannedLoad {
    fn of(load: &Load) -> PlannedLoad {
        let rate = match &load.kind {
            LoadKind::Open { rate, .. } => Some(rate),
            _ => None,
        };
        PlannedLoad {
            name: load.name.clone(),
            title: load.title.clone(),
            connections: Some(load.connections),
            streams: load.streams,
            own_rates: match rate {
                Some(RateSpec::Share { of: RateBase::Own, .. }) => true,
                Some(RateSpec::Table(rows)) => rows.iter().any(|row| row.product.is_some()),
                _ => false,
            },
            arrival: match &load.kind {
                LoadKind::Closed => Arrival::Closed,
                LoadKind::Count { requests } => Arrival::Count(*requests),
                LoadKind::Open { .. } => Arrival::Open,
                LoadKind::Search { objective } => {
                    let words: Vec<String> = objective.iter().map(ToString::to_string).collect();
                    Arrival::Search(words.join(", "))
                }
            },
            series: load.series.clone(),
            saturating: load.saturating,
        }
    }

    /// What the records of a load say of it, where `run.toml` says nothing.
    fn seen<'a>(name: &str, trials: impl Iterator<Item = &'a Trial>) -> PlannedLoad {
        let mut load = PlannedLoad { name: name.to_string(), streams: 1, ..PlannedLoad::default() };
        for measurement in trials.map(|trial| &trial.measurement) {
            if let Some(search) = &measurement.search {
                let words: Vec<String> = search.conditions.iter().map(ToString::to_string).collect();
                load.arrival = Arrival::Search(words.join(", "));
            } else if measurement.load.as_ref().is_some_and(|load| load.offered_rate.is_some()) {
                load.arrival = Arrival::Open;
            }
            if measurement.points.len() > 1 && load.series == Series::Once {
                load.series = series_of(&measurement.points);
            }
        }
        load
    }
}

/// What changed from point to point.
fn series_of(points: &[Point]) -> Series {
    let connections: Vec<u32> = points.iter().map(|point| point.connections).collect();
    let rates: Vec<f64> = points.iter().filter_map(|point| point.offered_rate).collect();
    if connections.windows(2).any(|pair| pair[0] != pair[1]) {
        return Series::Connections(connections);
    }
    match rates.first() {
        Some(first) if rates.iter().any(|rate| rate != first) => {
            Series::Shares(rates.iter().map(|rate| rate / first).collect())
        }
        _ => Series::Rounds(u32::try_from(points.len()).unwrap_or(u32::MAX)),
    }
}

/// Every case of the suite.
fn cases(suite: &Suite) -> Vec<CaseId> {
    let mut cases = Vec::new();
    for workload in &suite.workloads {
        for load in &suite.loads {
            for Entry { product, profile } in &suite.entries {
                if workload.runs(&load.name, product, profile) && load.has_rate(&workload.name, product) {
                    cases.push(CaseId {
                        product: product.clone(),
                        profile: profile.clone(),
                        workload: workload.name.clone(),
                        load: load.name.clone(),
                    });
                }
            }
        }
    }
    cases
}

/// A run's own file names products that may no longer be in any catalogue; so the file is its own catalogue.
pub fn read_suite(file: &Path) -> Result<Suite, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let named = |error: &dyn std::fmt::Display| error.to_string();
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| named(&error.message()))?;
    let products = table.get("suite").and_then(|suite| suite.get("products")).and_then(|products| products.as_array());
    let mut catalogue: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in products.into_iter().flatten().filter_map(|entry| entry.as_str()) {
        let (product, profile) = entry.split_once(':').unwrap_or((entry, "stock"));
        catalogue.entry(product.to_string()).or_default().push(profile.to_string());
    }
    let origin = table.get("suite").and_then(|suite| suite.get("origin")).and_then(|origin| origin.as_str());
    if let Some(origin) = origin {
        catalogue.entry(origin.to_string()).or_default().push(ORIGIN_PROFILE.to_string());
    }
    Suite::parse("run.toml", &text, &catalogue).map_err(|errors| {
        let first = errors.first().map(|error| named(error));
        first.unwrap_or_else(|| "is not a suite".to_string())
    })
}
