//! What was asked and in which order: from `run.toml` where it can be read, completed from the measurements.
//! Knows nothing of results.

use std::collections::BTreeMap;
use std::path::Path;

use weir_model::product::ORIGIN_PROFILE;
use weir_model::suite::{Entry, LoadKind, Protocol, RateBase, RateSpec, Suite};

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

/// A load: its name, and how requests arrive.
#[derive(Debug, Clone, PartialEq)]
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
        let loads = suite.loads.iter().map(|load| PlannedLoad {
            name: load.name.clone(),
            title: load.title.clone(),
            connections: Some(load.connections),
            streams: load.streams,
            own_rates: matches!(&load.kind, LoadKind::Open { rate: RateSpec::Share { of: RateBase::Own, .. }, .. }),
        });
        Plan {
            suite: suite.name.clone(),
            title: suite.title.clone(),
            question: suite.question.clone(),
            blocks: Some(suite.blocks),
            entries: suite.entries.clone(),
            workloads: workloads.collect(),
            loads: loads.collect(),
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
                let (name, title) = (case.load.clone(), String::new());
                self.loads.push(PlannedLoad { name, title, connections: None, streams: 1, own_rates: false });
            }
        }
        self.entries.sort_by_key(|entry| entry.product != BASELINE);
    }
}

/// A run's own file names products that may no longer be in any catalogue; so the file is its own catalogue.
pub(crate) fn read_suite(file: &Path) -> Result<Suite, String> {
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
