//! What was measured, on disk: `RESULTS.csv` has every sample and `RESULTS.json` how each was come by.
//!
//! A run replaces whole groups and leaves the others as they are, so each group tells of one run.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::cases::{Cell, GROUPS, Group, Subject, Wire};
use super::output::Times;
use super::run::{Got, Sample};

/// How samples were come by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Groups whose samples are of this run.
    pub groups: Vec<Group>,
    /// Rounds.
    pub rounds: u32,
    /// Name and value of what describes machine, programs and run.
    pub facts: Vec<(String, String)>,
    /// Why the machine was busy when it began; empty when it was quiet.
    pub busy: Vec<String>,
    /// How each tool was started, and the request that it sends.
    pub requests: Vec<(String, String)>,
    /// Tools that were not there, and what else was left out.
    pub missing: Vec<String>,
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
    /// What a run alone measured.
    pub fn of(run: Run, samples: Vec<Sample>) -> Record {
        Record { runs: vec![run], samples }
    }

    /// Puts `newer` in the place of what there is of its groups.
    pub fn replace(&mut self, newer: Record) {
        let is_new = |group: &Group| newer.runs.iter().any(|run| run.groups.contains(group));
        for run in &mut self.runs {
            run.groups.retain(|group| !is_new(group));
        }
        self.runs.retain(|run| !run.groups.is_empty());
        self.samples.retain(|sample| !is_new(&sample.cell.group));
        self.runs.extend(newer.runs);
        self.samples.extend(newer.samples);
        let place = |sample: &Sample| GROUPS.iter().position(|group| *group == sample.cell.group);
        self.samples.sort_by_key(place);
    }

    /// The run that a group's samples are of.
    pub fn run_of(&self, group: Group) -> Option<&Run> {
        self.runs.iter().find(|run| run.groups.contains(&group))
    }

    /// Reads what [`Record::write`] wrote; nothing where there are no such files.
    ///
    /// # Errors
    /// When they cannot be read, or are of another shape.
    pub fn read(csv: &Path) -> anyhow::Result<Record> {
        let json = csv.with_extension("json");
        if !csv.exists() || !json.exists() {
            return Ok(Record::default());
        }
        let text = std::fs::read_to_string(&json).with_context(|| json.display().to_string())?;
        let runs = serde_json::from_str(&text).with_context(|| json.display().to_string())?;
        let mut reader = csv::Reader::from_path(csv).with_context(|| csv.display().to_string())?;
        let rows = reader.deserialize().collect::<Result<Vec<Row>, _>>().with_context(|| csv.display().to_string())?;
        let samples = rows.into_iter().map(Row::sample).collect::<anyhow::Result<_>>()?;
        Ok(Record { runs, samples })
    }

    /// Writes both files.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, csv: &Path) -> anyhow::Result<()> {
        let json = csv.with_extension("json");
        std::fs::write(&json, serde_json::to_string_pretty(&self.runs)? + "\n")
            .with_context(|| json.display().to_string())?;
        let mut writer = csv::Writer::from_path(csv).with_context(|| csv.display().to_string())?;
        for sample in &self.samples {
            writer.serialize(Row::of(sample))?;
        }
        writer.flush()?;
        Ok(())
    }
}

/// A sample as a line of the CSV file.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    group: Group,
    wire: Wire,
    connections: u32,
    streams: u32,
    size: u64,
    subject: String,
    round: u32,
    place: u32,
    requests: Option<u64>,
    client_cpu_us: Option<f64>,
    server_cpu_us: Option<f64>,
    load_s: Option<f64>,
    wall_s: Option<f64>,
    others_share: Option<f64>,
    stolen_share: Option<f64>,
    latency_p50_us: Option<f64>,
    lag_p50_us: Option<f64>,
    lag_p99_us: Option<f64>,
    lag_p999_us: Option<f64>,
    error: String,
}

impl Row {
    fn of(sample: &Sample) -> Row {
        let Cell { group, wire, connections, streams, size } = sample.cell;
        let got = sample.got.as_ref().ok();
        let times = got.and_then(|got| got.times);
        let rounded =
            |value: f64, digits: f64| Some((value * digits).round() / digits).filter(|value| value.is_finite());
        let lag = |at: usize| times.and_then(|times| rounded(times.lag_us[at], 1e3));
        Row {
            group,
            wire,
            connections,
            streams,
            size,
            subject: sample.subject.name().to_owned(),
            round: sample.round,
            place: sample.place,
            requests: got.map(|got| got.requests),
            client_cpu_us: got.and_then(|got| rounded(got.client_us, 1.0)),
            server_cpu_us: got.and_then(|got| rounded(got.server_us, 1.0)),
            load_s: got.map(|got| got.seconds),
            wall_s: got.and_then(|got| rounded(got.wall_s, 1e3)),
            others_share: got.and_then(|got| rounded(got.others, 1e3)),
            stolen_share: got.and_then(|got| rounded(got.stolen, 1e3)),
            latency_p50_us: times.and_then(|times| rounded(times.latency_p50_us, 1e3)),
            lag_p50_us: lag(0),
            lag_p99_us: lag(1),
            lag_p999_us: lag(2),
            error: sample.got.as_ref().err().map(|error| error.replace('\n', " ")).unwrap_or_default(),
        }
    }

    fn sample(self) -> anyhow::Result<Sample> {
        let cell = Cell {
            group: self.group,
            wire: self.wire,
            connections: self.connections,
            streams: self.streams,
            size: self.size,
        };
        let subject = Subject::from_name(self.group.part(), &self.subject)
            .with_context(|| format!("{} takes no part in {}", self.subject, self.group.name()))?;
        let times = self.latency_p50_us.map(|latency_p50_us| Times {
            latency_p50_us,
            lag_us: [self.lag_p50_us, self.lag_p99_us, self.lag_p999_us].map(|lag| lag.unwrap_or(f64::NAN)),
        });
        let got = self.requests.map(|requests| Got {
            requests,
            client_us: self.client_cpu_us.unwrap_or(f64::NAN),
            server_us: self.server_cpu_us.unwrap_or(f64::NAN),
            seconds: self.load_s.unwrap_or(f64::NAN),
            wall_s: self.wall_s.unwrap_or(f64::NAN),
            others: self.others_share.unwrap_or(f64::NAN),
            stolen: self.stolen_share.unwrap_or(f64::NAN),
            times,
        });
        Ok(Sample { round: self.round, place: self.place, cell, subject, got: got.ok_or(self.error) })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::peers::tool;

    pub(in crate::peers) fn sample(round: u32, group: Group, subject: Subject, cost: f64) -> Sample {
        let got = Got {
            requests: 1_000,
            client_us: cost * 1_000.0,
            server_us: 0.0,
            wall_s: 2.1,
            seconds: 2.0,
            others: 0.01,
            stolen: 0.0,
            times: None,
        };
        let cell = *group.cells().iter().find(|cell| (cell.connections, cell.size) == (64, 128)).unwrap();
        Sample { round, place: 0, cell, subject, got: Ok(got) }
    }

    const WEIR: Subject = Subject::Client(tool::Kind::Weir);

    fn run(groups: &[Group], rounds: u32) -> Run {
        Run { groups: groups.to_vec(), rounds, ..Run::default() }
    }

    #[test]
    fn a_run_replaces_its_groups_and_no_others() {
        let first = [sample(0, Group::Nginx, WEIR, 1.0), sample(0, Group::Clients, WEIR, 2.0)];
        let mut record = Record::of(run(&[Group::Nginx, Group::Clients], 1), first.to_vec());
        let second = vec![sample(0, Group::Clients, WEIR, 3.0), sample(1, Group::Clients, WEIR, 4.0)];
        record.replace(Record::of(run(&[Group::Clients], 2), second));
        assert_eq!(record.runs.len(), 2);
        assert_eq!(record.run_of(Group::Clients).unwrap().rounds, 2);
        assert_eq!(record.run_of(Group::Nginx).unwrap().rounds, 1);
        let costs: Vec<f64> = record.samples.iter().map(|sample| sample.got.as_ref().unwrap().client_us).collect();
        assert_eq!(costs, [3_000.0, 4_000.0, 1_000.0]);
        record.replace(Record::of(run(&[Group::Nginx], 3), Vec::new()));
        assert_eq!(record.runs.len(), 2);
        assert_eq!(record.samples.len(), 2);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("RESULTS.csv");
        assert!(Record::read(&csv).unwrap().samples.is_empty());
        let mut open = sample(0, Group::Open, Subject::Open, 3.25);
        open.got.as_mut().unwrap().times = Some(Times { latency_p50_us: 30.5, lag_us: [0.0, 3.125, f64::NAN] });
        let failed =
            Sample { got: Err("no \"socket\",\nleft".to_owned()), ..sample(1, Group::Open, Subject::One, 1.0) };
        let facts = vec![("date".to_owned(), "today".to_owned())];
        let written = Record::of(Run { facts, ..run(&[Group::Open], 2) }, vec![open, failed]);
        written.write(&csv).unwrap();
        let read = Record::read(&csv).unwrap();
        assert_eq!(read.runs, written.runs);
        assert_eq!(read.samples[1].got.as_ref().unwrap_err(), "no \"socket\", left");
        let times = read.samples[0].got.as_ref().unwrap().times.unwrap();
        assert_eq!((times.latency_p50_us, times.lag_us[1]), (30.5, 3.125));
        assert!(times.lag_us[2].is_nan());
        assert_eq!(read.samples[0].cell, written.samples[0].cell);
    }
}
