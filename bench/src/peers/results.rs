//! `RESULTS.md` and the raw samples beside it.

use std::fmt::Write as _;

use weir_stats::Estimate;

use super::cases::{Cell, Part, Subject, grouped};
use super::ratio::{differences, middle, per_request, ratio};
use super::run::{Got, Plan, Sample};
use super::targets::{self, verdict};
use super::{server, tool};

/// What is told beside the measurements.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// Name and value of what describes machine, programs and run.
    pub facts: Vec<(String, String)>,
    /// Why the machine was busy when it began; empty when it was quiet.
    pub busy: Vec<String>,
    /// How each tool was started, and the request that it sends.
    pub requests: Vec<(String, String)>,
    /// Tools that were not there.
    pub missing: Vec<String>,
}

/// The whole of `RESULTS.md`.
pub fn markdown(setting: &Setting, plan: &Plan, samples: &[Sample]) -> String {
    let mut out = String::from(
        "# What weir costs beside its peers\n\nWritten by `make bench`; `README.md` says how it measures.\n",
    );
    if !setting.busy.is_empty() {
        let why = setting.busy.join("; ");
        let _ = write!(out, "\n**The machine was busy when this was measured: {why}.** Take it as a hint.\n");
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (name, value) in &setting.facts {
        let _ = writeln!(out, "| {name} | {} |", value.replace('|', "\\|"));
    }
    let _ = writeln!(out, "| CPU that neither client nor server used | {} |", neither(samples));
    out.push_str(READING);
    for (number, cell) in plan.cells.iter().enumerate() {
        let of_cell = OfCell { samples, number, rounds: plan.rounds };
        let _ = write!(out, "\n## {}\n\n", cell.title());
        match cell.part {
            Part::Open => open_tables(&mut out, &of_cell),
            _ => cost_table(&mut out, cell, &of_cell),
        }
    }
    ends(&mut out, plan, samples);
    failures(&mut out, plan, samples);
    out.push_str("\n## Not compared\n\n");
    for line in targets::NOT_COMPARED {
        let _ = writeln!(out, "- {line}");
    }
    for line in &setting.missing {
        let _ = writeln!(out, "- {line}");
    }
    out.push_str("\n## What was run, and what it sends\n");
    for (command, request) in &setting.requests {
        let _ = write!(out, "\n`{command}`\n\n```text\n{}\n```\n", request.replace('\r', "").trim_end());
    }
    out
}

const READING: &str = "
CPU is what the kernel says that the process used, user and system, from its start to its end: connecting and its
own start are in it. A ratio is weir's CPU a request over the peer's, taken within each round; the value is the median of
rounds, the brackets its 95 % interval. *Not surely* means that the interval reaches over the target. *null* is the
floor: what it costs beside a peer (null / it) is about the least that any client or origin over the same kernel can.
";

/// Raw samples as CSV, in the order in which they were run.
pub fn csv(plan: &Plan, samples: &[Sample]) -> String {
    let mut out = String::from(
        "round,place,part,connections,size,subject,requests,client_cpu_us,server_cpu_us,load_s,wall_s,others_share,stolen_share,error\n",
    );
    for sample in samples {
        let cell = &plan.cells[sample.cell];
        let (part, name) = (format!("{:?}", cell.part).to_lowercase(), sample.subject.name().replace(',', ""));
        let _ = write!(out, "{},{},{part},{},{},{name},", sample.round, sample.place, cell.connections, cell.size);
        let _ = match &sample.got {
            Ok(got) => writeln!(
                out,
                "{},{:.0},{:.0},{},{:.3},{:.3},{:.3},",
                got.requests, got.client_us, got.server_us, got.seconds, got.wall_s, got.others, got.stolen
            ),
            Err(error) => writeln!(out, ",,,,,,,\"{}\"", error.replace('"', "'").replace('\n', " ")),
        };
    }
    out
}

/// Samples of one cell.
struct OfCell<'a> {
    samples: &'a [Sample],
    number: usize,
    rounds: u32,
}

impl OfCell<'_> {
    /// What took part, in the order of tables.
    fn subjects(&self) -> Vec<Subject> {
        let mut found: Vec<Subject> =
            self.samples.iter().filter(|sample| sample.cell == self.number).map(|sample| sample.subject).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// A value of every round, not a number where the trial failed.
    fn by_round(&self, subject: Subject, value: impl Fn(&Got) -> f64) -> Vec<f64> {
        let mut values = vec![f64::NAN; self.rounds as usize];
        for sample in self.samples.iter().filter(|sample| sample.cell == self.number && sample.subject == subject) {
            if let (Ok(got), Some(place)) = (&sample.got, values.get_mut(sample.round as usize)) {
                *place = value(got);
            }
        }
        values
    }
}

fn cost_table(out: &mut String, cell: &Cell, of_cell: &OfCell<'_>) {
    let origins = cell.part == Part::Origins;
    let cost = |got: &Got| per_request(if origins { got.server_us } else { got.client_us }, got.requests);
    let weir = if origins { Subject::Origin(server::Kind::Weir) } else { Subject::Client(tool::Kind::Weir) };
    let weirs = of_cell.by_round(weir, cost);
    let who = if origins { "origin" } else { "client" };
    let floor = if origins { Subject::Origin(server::Kind::Null) } else { Subject::Client(tool::Kind::Null) };
    let floors = of_cell.by_round(floor, cost);
    let _ =
        writeln!(out, "| {who} | requests/s | CPU us/request | weir / it | target | | null / it | differs from weir |");
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for subject in of_cell.subjects() {
        let rate = middle(&of_cell.by_round(subject, |got| got.requests as f64 / got.seconds));
        let costs = of_cell.by_round(subject, cost);
        let compared = (subject != weir).then(|| ratio(&weirs, &costs)).flatten();
        let above = (subject != floor).then(|| ratio(&floors, &costs)).flatten();
        let (target, differs) = match subject {
            Subject::Client(kind) => (targets::client(cell, kind), kind.differs()),
            Subject::Origin(kind) => (targets::origin(cell, kind), kind.differs()),
            Subject::One | Subject::Open => (None, ""),
        };
        let judged = compared.as_ref().zip(target).map_or("", |(ratio, most)| verdict(ratio, most));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {judged} | {} | {differs} |",
            subject.name(),
            rate.map_or_else(|| "failed".to_owned(), |rate| grouped(rate.value as u64)),
            middle(&costs).map_or_else(String::new, |cost| format!("{:.2}", cost.value)),
            compared.map_or_else(String::new, |ratio| interval(&ratio, 2)),
            target.map_or_else(String::new, |most| format!("<= {most:.2}")),
            above.map_or_else(String::new, |ratio| format!("{:.2}", ratio.value)),
        );
    }
}

fn open_tables(out: &mut String, of_cell: &OfCell<'_>) {
    let latency = |got: &Got| got.load.map_or(f64::NAN, |load| load.latency_p50_us);
    let one = of_cell.by_round(Subject::One, latency);
    let open = of_cell.by_round(Subject::Open, latency);
    out.push_str("| us | median of rounds | target | |\n|---|---|---|---|\n");
    row(out, "median latency, closed, one connection", &one, None);
    row(out, "median latency, open", &open, None);
    row(out, "open less closed", &differences(&open, &one), Some(targets::OPEN_ABOVE_ONE_US));
    for (at, (name, most)) in ["lag p50", "lag p99", "lag p99.9"].into_iter().zip(targets::LAG_US).enumerate() {
        row(out, name, &of_cell.by_round(Subject::Open, |got| got.load.map_or(f64::NAN, |load| load.lag_us[at])), most);
    }
}

fn row(out: &mut String, name: &str, values: &[f64], most: Option<f64>) {
    let estimate = middle(values);
    let _ = writeln!(
        out,
        "| {name} | {} | {} | {} |",
        estimate.as_ref().map_or_else(|| "failed".to_owned(), |estimate| interval(estimate, 1)),
        most.map_or_else(String::new, |most| format!("<= {most:.0}")),
        estimate.zip(most).map_or("", |(estimate, most)| verdict(&estimate, most)),
    );
}

/// How late weir's clients end.
fn ends(out: &mut String, plan: &Plan, samples: &[Sample]) {
    let late: Vec<f64> = samples
        .iter()
        .filter(|sample| matches!(sample.subject, Subject::Client(tool::Kind::Weir)))
        .filter(|sample| plan.cells[sample.cell].connections <= 64)
        .filter_map(|sample| sample.got.as_ref().ok())
        .map(|got| got.wall_s - got.seconds)
        .collect();
    let Some(most) = late.iter().copied().reduce(f64::max) else { return };
    let judged = if most <= targets::ENDS_WITHIN_S { "reached" } else { "**not reached**" };
    let _ = write!(
        out,
        "\n## How long after its time weir's client ends\n\nUp to 64 connections, connecting included, the latest of {} runs: {:.0} ms. Target: within {:.0} ms: {judged}.\n",
        late.len(),
        most * 1e3,
        targets::ENDS_WITHIN_S * 1e3,
    );
}

fn failures(out: &mut String, plan: &Plan, samples: &[Sample]) {
    let failed: Vec<String> = samples
        .iter()
        .filter_map(|sample| {
            let error = sample.got.as_ref().err()?;
            let (round, name) = (sample.round + 1, sample.subject.name());
            Some(format!(
                "- {}, {name}, round {round}: {}\n",
                plan.cells[sample.cell].title(),
                error.replace('\n', " ")
            ))
        })
        .collect();
    if !failed.is_empty() {
        let _ = write!(out, "\n## Trials that failed, and are left out\n\n{}", failed.concat());
    }
}

fn neither(samples: &[Sample]) -> String {
    let shares = |value: fn(&Got) -> f64| -> Vec<f64> {
        samples.iter().filter_map(|sample| sample.got.as_ref().ok()).map(value).collect()
    };
    let (others, stolen) = (shares(|got| got.others), shares(|got| got.stolen));
    let most = others.iter().copied().fold(0.0, f64::max);
    let disturbed = others.iter().filter(|share| **share > super::run::DISTURBED).count();
    format!(
        "{:.1} % of one CPU (median of trials), at most {:.1} %; {disturbed} of {} trials disturbed and kept; stolen by the host {:.1} %",
        100.0 * middle(&others).map_or(f64::NAN, |share| share.value),
        100.0 * most,
        others.len(),
        100.0 * middle(&stolen).map_or(f64::NAN, |share| share.value),
    )
}

fn interval(estimate: &Estimate, digits: usize) -> String {
    let Estimate { value, low, high, n, level } = *estimate;
    if level == 0.0 {
        return format!("{value:.digits$} (one round)");
    }
    let promise = if level < 0.945 { format!(", {:.0} % of {n} rounds", 100.0 * level) } else { String::new() };
    format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]{promise}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::server::Programs;

    fn sample(round: u32, subject: Subject, cost: f64) -> Sample {
        let got = Got {
            requests: 1_000,
            client_us: cost * 1_000.0,
            server_us: 0.0,
            wall_s: 2.1,
            seconds: 2.0,
            others: 0.01,
            stolen: 0.0,
            load: None,
        };
        Sample { round, place: 0, cell: 0, subject, got: Ok(got) }
    }

    fn plan() -> Plan {
        Plan {
            rounds: 2,
            seconds: 2,
            seed: 1,
            cpus: [0, 1],
            cells: vec![Cell { part: Part::Clients, connections: 64, size: 128 }],
            tools: Vec::new(),
            servers: Programs { weir: "w".into(), null: "n".into(), nginx: None },
            all: false,
            patience: 0,
            keep_disturbed: false,
        }
    }

    #[test]
    fn tables_have_ratios_targets_and_failures() {
        let (weir, wrk) = (Subject::Client(tool::Kind::Weir), Subject::Client(tool::Kind::Wrk));
        let mut samples = vec![sample(0, weir, 5.0), sample(0, wrk, 10.0), sample(1, weir, 5.0), sample(1, wrk, 10.0)];
        let whole = markdown(&Setting::default(), &plan(), &samples);
        assert!(whole.contains("| wrk | 500 | 10.00 | 0.50 [0.50, 0.50] | <= 0.65 | reached |"), "{whole}");
        assert!(whole.contains("100 ms. Target: within 500 ms: reached"), "{whole}");
        assert!(!whole.contains("failed") && !whole.contains("busy"), "{whole}");
        samples[1].got = Err("no \"socket\"\nleft".to_owned());
        let setting = Setting { busy: vec!["a reason".to_owned()], ..Setting::default() };
        let whole = markdown(&setting, &plan(), &samples);
        assert!(whole.contains("wrk, round 1: no \"socket\" left"), "{whole}");
        assert!(
            whole.contains("0.50 (one round)") && whole.contains("busy when this was measured: a reason"),
            "{whole}"
        );
        let raw = csv(&plan(), &samples);
        assert_eq!(raw.lines().count(), 5);
        assert!(raw.contains("0,0,clients,64,128,wrk,,,,,,,,\"no 'socket' left\""), "{raw}");
    }

    #[test]
    fn every_line_of_the_raw_samples_has_every_column() {
        let weir = Subject::Client(tool::Kind::Weir);
        let failed = Sample { got: Err("x".to_owned()), ..sample(1, weir, 1.0) };
        let raw = csv(&plan(), &[sample(0, weir, 1.0), failed]);
        let columns: Vec<usize> = raw.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [14, 14, 14]);
    }
}
