//! The measurements on disk: `RESULTS.csv` has every sample, `RESULTS.json` how each was obtained. [`super::compare`]
//! writes them, [`super::results`] reads them.
//!
//! A run replaces whole groups and keeps the others, so each group belongs to one run.

use std::path::Path;

use anyhow::Context;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_model::protocol::Protocol;

use super::Fact;
use super::cases::{Cell, Group, protocol, wire_name};

/// How the samples of a run were obtained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Groups whose samples are of this run.
    pub groups: Vec<Group>,
    /// Rounds.
    pub rounds: u32,
    /// What describes machine, programs and run.
    pub facts: Vec<Fact>,
    /// Why the machine was busy when it began; empty when it was quiet.
    pub busy: Vec<String>,
    /// How each tool was started, and the request that it sends.
    pub requests: Vec<Fact>,
    /// Tools that were not installed, and what else was skipped.
    pub missing: Vec<String>,
}

/// One trial: a line of the CSV file. Values are `None` when it failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Group, protocol, connections, streams, size: see [`Cell`].
    pub group: Group,
    /// What is spoken.
    #[serde(rename = "wire", serialize_with = "write_protocol", deserialize_with = "read_protocol")]
    pub protocol: Protocol,
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each.
    pub streams: u32,
    /// Bytes of a response's body.
    pub size: u64,
    /// Name of what was measured.
    pub subject: String,
    /// From 0.
    pub round: u32,
    /// Position in the round, from 0.
    #[serde(rename = "place")]
    pub position: u32,
    /// What came of it.
    pub requests: Option<u64>,
    /// CPU time of the client, µs.
    pub client_cpu_us: Option<f64>,
    /// CPU time of the server, µs.
    pub server_cpu_us: Option<f64>,
    /// Length of the load, s: as asked for, with the warm-up of `weir load`.
    pub load_s: Option<f64>,
    /// From the client's start to its end, s.
    pub wall_s: Option<f64>,
    /// Share of one CPU that neither of them used.
    pub others_share: Option<f64>,
    /// Share of one CPU that the hypervisor took.
    pub stolen_share: Option<f64>,
    /// Median latency, where latencies are compared.
    pub latency_p50_us: Option<f64>,
    /// Lag, likewise.
    pub lag_p50_us: Option<f64>,
    /// Its 99 %.
    pub lag_p99_us: Option<f64>,
    /// Its 99.9 %.
    pub lag_p999_us: Option<f64>,
    /// Why there are no values; empty when there are.
    pub error: String,
}

fn write_protocol<S: Serializer>(protocol: &Protocol, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(wire_name(*protocol))
}

fn read_protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    protocol(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

impl Sample {
    /// A trial without values yet.
    pub fn new(cell: &Cell, subject: String, round: u32, position: u32) -> Sample {
        let Cell { group, protocol, connections, streams, size } = *cell;
        Sample { group, protocol, connections, streams, size, subject, round, position, ..Sample::default() }
    }

    /// Its cell.
    pub fn cell(&self) -> Cell {
        let Sample { group, protocol, connections, streams, size, .. } = *self;
        Cell { group, protocol, connections, streams, size }
    }

    /// Requests a second.
    pub fn rate(&self) -> Option<f64> {
        Some(self.requests? as f64 / self.load_s?)
    }

    /// CPU time a request of client and server, µs; `None` when there were no requests.
    pub fn costs(&self) -> Option<[f64; 2]> {
        let requests = self.requests.filter(|requests| *requests > 0)? as f64;
        Some([self.client_cpu_us? / requests, self.server_cpu_us? / requests])
    }
}

/// Everything measured.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Runs, oldest first.
    pub runs: Vec<Run>,
    /// Samples, those of a group in the order in which they were run.
    pub samples: Vec<Sample>,
}

impl Record {
    /// What one run measured.
    pub fn of(run: Run, samples: Vec<Sample>) -> Record {
        Record { runs: vec![run], samples }
    }

    /// Replaces the groups that `newer` has.
    pub fn replace(&mut self, newer: Record) {
        let is_new = |group: &Group| newer.runs.iter().any(|run| run.groups.contains(group));
        for run in &mut self.runs {
            run.groups.retain(|group| !is_new(group));
        }
        self.runs.retain(|run| !run.groups.is_empty());
        self.samples.retain(|sample| !is_new(&sample.group));
        self.runs.extend(newer.runs);
        self.samples.extend(newer.samples);
        self.samples.sort_by_key(|sample| sample.group);
    }

    /// The run that a group's samples are of.
    pub fn run_of(&self, group: Group) -> Option<&Run> {
        self.runs.iter().find(|run| run.groups.contains(&group))
    }

    /// Reads what [`Record::write`] wrote; nothing where there are no such files.
    ///
    /// # Errors
    /// When they cannot be read, or have another shape.
    pub fn read(csv: &Path) -> anyhow::Result<Record> {
        let json = csv.with_extension("json");
        if !csv.exists() || !json.exists() {
            return Ok(Record::default());
        }
        let text = std::fs::read_to_string(&json).with_context(|| json.display().to_string())?;
        let runs = serde_json::from_str(&text).with_context(|| json.display().to_string())?;
        let mut reader = csv::Reader::from_path(csv).with_context(|| csv.display().to_string())?;
        let samples = reader.deserialize().collect::<Result<_, _>>().with_context(|| csv.display().to_string())?;
        Ok(Record { runs, samples })
    }

    /// Writes both files.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, csv: &Path) -> anyhow::Result<()> {
        super::write(&csv.with_extension("json"), &(serde_json::to_string_pretty(&self.runs)? + "\n"))?;
        let mut writer = csv::Writer::from_path(csv).with_context(|| csv.display().to_string())?;
        for sample in &self.samples {
            writer.serialize(sample)?;
        }
        Ok(writer.flush()?)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::peers) fn sample(round: u32, group: Group, subject: &str, cost: f64) -> Sample {
        let cell = *group.cells().iter().find(|cell| cell.is_main()).unwrap();
        Sample {
            requests: Some(1_000),
            client_cpu_us: Some(cost * 1_000.0),
            server_cpu_us: Some(0.0),
            load_s: Some(2.0),
            wall_s: Some(2.1),
            others_share: Some(0.01),
            stolen_share: Some(0.0),
            ..Sample::new(&cell, subject.to_owned(), round, 0)
        }
    }

    fn run(groups: &[Group], rounds: u32) -> Run {
        Run { groups: groups.to_vec(), rounds, ..Run::default() }
    }

    #[test]
    fn a_run_replaces_its_groups_and_no_others() {
        let first = [sample(0, Group::Nginx, "weir", 1.0), sample(0, Group::Clients, "weir", 2.0)];
        let mut record = Record::of(run(&[Group::Nginx, Group::Clients], 1), first.to_vec());
        let second = vec![sample(0, Group::Clients, "weir", 3.0), sample(1, Group::Clients, "weir", 4.0)];
        record.replace(Record::of(run(&[Group::Clients], 2), second));
        assert_eq!(record.runs.len(), 2);
        assert_eq!(record.run_of(Group::Clients).unwrap().rounds, 2);
        assert_eq!(record.run_of(Group::Nginx).unwrap().rounds, 1);
        let costs: Vec<f64> = record.samples.iter().map(|sample| sample.costs().unwrap()[0]).collect();
        assert_eq!(costs, [1.0, 3.0, 4.0]);
        record.replace(Record::of(run(&[Group::Nginx], 3), Vec::new()));
        assert_eq!(record.runs.len(), 2);
        assert_eq!(record.samples.len(), 2);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("RESULTS.csv");
        assert!(Record::read(&csv).unwrap().samples.is_empty());
        let open =
            Sample { latency_p50_us: Some(30.5), lag_p99_us: Some(3.125), ..sample(0, Group::Open, "open", 3.25) };
        let failed = Sample {
            error: "no \"socket\", left".to_owned(),
            ..Sample::new(&open.cell(), "closed one connection".to_owned(), 1, 0)
        };
        let facts = vec![("date".to_owned(), "today".to_owned())];
        let written = Record::of(Run { facts, ..run(&[Group::Open], 2) }, vec![open, failed]);
        written.write(&csv).unwrap();
        let read = Record::read(&csv).unwrap();
        assert_eq!((read.runs, read.samples), (written.runs, written.samples));
    }

    #[test]
    fn what_was_written_before_is_still_read() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.csv");
        assert!(!Record::read(&kept).unwrap().samples.is_empty());
    }

    #[test]
    fn no_requests_have_no_cost() {
        assert!(Sample { requests: Some(0), ..sample(0, Group::Open, "open", 1.0) }.costs().is_none());
    }
}
