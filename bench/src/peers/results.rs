//! `RESULTS.md`, made of the record.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weir_stats::Estimate;

use super::cases::{Cell, GROUPS, Group, Part, Subject, Wire, grouped};
use super::ratio::{differences, middle, per_request, ratio};
use super::record::{Record, Run};
use super::run::{Got, Sample};
use super::targets::{self, verdict};
use super::{server, tool};

/// The whole of `RESULTS.md`.
pub fn markdown(record: &Record) -> String {
    let mut out = String::from(
        "# What weir costs beside its peers\n\nWritten by `make bench`; `README.md` says how it measures, `docs/engine.md` why the numbers are what they are.\n",
    );
    out.push_str(READING);
    out.push_str("\n## What was to be reached\n\n");
    out.push_str(&targets(record));
    for group in GROUPS {
        for cell in cells(record, group) {
            let of_cell = OfCell::new(record, cell);
            let _ = write!(out, "\n## {}\n\n", cell.title());
            match group.part() {
                Part::Open => open_table(&mut out, &of_cell),
                _ => cost_table(&mut out, &cell, &of_cell),
            }
        }
    }
    ends(&mut out, &record.samples);
    failures(&mut out, &record.samples);
    for run in &record.runs {
        about(&mut out, record, run);
    }
    out
}

const READING: &str = "
CPU is what the kernel says that the process used, user and system, from its start to its end: connecting, handshakes and
its own start are in it. A ratio is weir's CPU a request over the peer's, taken within each round; the value is the median of
rounds, the brackets its 95 % interval. *Not surely* means that the interval reaches over the target. *null* is the
floor: what it costs beside a peer (null / it) is about the least that any client or origin over the same kernel can. It
speaks plain HTTP/1.1 only. HTTP/2 with one stream a connection sends as many TCP segments, so the same floor holds; with 32
streams a segment carries up to 32 requests, and the kernel's share of one shrinks until the user's code is what is compared.
TLS has no floor here but the cipher's own cost.

With TLS all speak TLS_AES_256_GCM_SHA384 with X25519 against a certificate with an ECDSA P-256 key, and no session is
resumed: nginx offers nothing else, weir's client and h2load are told so, and the others put that suite first.
";

/// Cells of which there are samples.
fn cells(record: &Record, group: Group) -> BTreeSet<Cell> {
    record.samples.iter().map(|sample| sample.cell).filter(|cell| cell.group == group).collect()
}

/// Everything of which a target is set, in one table.
pub fn targets(record: &Record) -> String {
    let mut out = String::from("| what | beside | weir / it | target | |\n|---|---|---|---|---|\n");
    for cell in GROUPS.into_iter().flat_map(|group| cells(record, group)) {
        let of_cell = OfCell::new(record, cell);
        if cell.group.part() == Part::Open {
            for (name, values, most) in open_rows(&of_cell) {
                let Some((estimate, most)) = middle(&values).zip(most) else { continue };
                let (shown, judged) = (interval(&estimate, 1), verdict(&estimate, most));
                let _ = writeln!(out, "| Open load: {name}, us | | {shown} | <= {most:.0} | {judged} |");
            }
            continue;
        }
        for subject in of_cell.subjects() {
            let Some((most, ratio)) = target(&cell, subject).zip(of_cell.beside(subject)) else { continue };
            let (shown, judged) = (interval(&ratio, 2), verdict(&ratio, most));
            let _ = writeln!(out, "| {} | {} | {shown} | <= {most:.2} | {judged} |", cell.title(), subject.name());
        }
    }
    out
}

fn target(cell: &Cell, subject: Subject) -> Option<f64> {
    match subject {
        Subject::Client(kind) => targets::client(cell, kind),
        Subject::Origin(kind) => targets::origin(cell, kind),
        Subject::One | Subject::Open => None,
    }
}

/// Samples of one cell.
struct OfCell<'a> {
    samples: Vec<&'a Sample>,
    origins: bool,
    rounds: u32,
}

impl<'a> OfCell<'a> {
    fn new(record: &'a Record, cell: Cell) -> OfCell<'a> {
        OfCell {
            samples: record.samples.iter().filter(|sample| sample.cell == cell).collect(),
            origins: cell.group.part() == Part::Origins,
            rounds: record.run_of(cell.group).map_or(0, |run| run.rounds),
        }
    }

    /// What took part, in the order of tables.
    fn subjects(&self) -> BTreeSet<Subject> {
        self.samples.iter().map(|sample| sample.subject).collect()
    }

    /// A value of every round, not a number where the trial failed.
    fn by_round(&self, subject: Subject, value: impl Fn(&Got) -> f64) -> Vec<f64> {
        let mut values = vec![f64::NAN; self.rounds as usize];
        for sample in self.samples.iter().filter(|sample| sample.subject == subject) {
            if let (Ok(got), Some(place)) = (&sample.got, values.get_mut(sample.round as usize)) {
                *place = value(got);
            }
        }
        values
    }

    /// CPU a request of what is compared, round by round.
    fn costs(&self, subject: Subject) -> Vec<f64> {
        let cpu = |got: &Got| if self.origins { got.server_us } else { got.client_us };
        self.by_round(subject, |got| per_request(cpu(got), got.requests))
    }

    fn weir(&self) -> Subject {
        if self.origins { Subject::Origin(server::Kind::Weir) } else { Subject::Client(tool::Kind::Weir) }
    }

    fn floor(&self) -> Subject {
        if self.origins { Subject::Origin(server::Kind::Null) } else { Subject::Client(tool::Kind::Null) }
    }

    /// weir's cost over another's; `None` of weir itself.
    fn beside(&self, subject: Subject) -> Option<Estimate> {
        (subject != self.weir()).then(|| ratio(&self.costs(self.weir()), &self.costs(subject))).flatten()
    }
}

fn cost_table(out: &mut String, cell: &Cell, of_cell: &OfCell<'_>) {
    let who = if of_cell.origins { "origin" } else { "client" };
    let floors = of_cell.costs(of_cell.floor());
    let _ =
        writeln!(out, "| {who} | requests/s | CPU us/request | weir / it | target | | null / it | differs from weir |");
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for subject in of_cell.subjects() {
        let rate = middle(&of_cell.by_round(subject, |got| got.requests as f64 / got.seconds));
        let costs = of_cell.costs(subject);
        let compared = of_cell.beside(subject);
        let above = (subject != of_cell.floor()).then(|| ratio(&floors, &costs)).flatten();
        let target = target(cell, subject);
        let judged = compared.as_ref().zip(target).map_or("", |(ratio, most)| verdict(ratio, most));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {judged} | {} | {} |",
            subject.name(),
            rate.map_or_else(|| "failed".to_owned(), |rate| grouped(rate.value as u64)),
            middle(&costs).map_or_else(String::new, |cost| format!("{:.2}", cost.value)),
            compared.map_or_else(String::new, |ratio| interval(&ratio, 2)),
            target.map_or_else(String::new, |most| format!("<= {most:.2}")),
            above.map_or_else(String::new, |ratio| format!("{:.2}", ratio.value)),
            differs(cell, subject),
        );
    }
}

fn differs(cell: &Cell, subject: Subject) -> &'static str {
    match subject {
        // What it sends of its own is in HPACK's table after the first time.
        Subject::Client(tool::Kind::H2load) if cell.wire.is_h2() => "sends a User-Agent; windows of 1 GiB",
        Subject::Client(kind) => kind.differs(),
        Subject::Origin(kind) if cell.wire == Wire::Plain => kind.differs(),
        Subject::Origin(server::Kind::NginxCopy) => "sends Date, Last-Modified, ETag and Accept-Ranges too",
        Subject::Origin(kind) => kind.differs(),
        Subject::One | Subject::Open => "",
    }
}

/// Name, value of every round, and target of what the open load is about, us.
fn open_rows(of_cell: &OfCell<'_>) -> Vec<(&'static str, Vec<f64>, Option<f64>)> {
    let latency = |subject| of_cell.by_round(subject, |got| got.times.map_or(f64::NAN, |times| times.latency_p50_us));
    let lag = |at: usize| {
        let values = of_cell.by_round(Subject::Open, |got| got.times.map_or(f64::NAN, |times| times.lag_us[at]));
        (["lag p50", "lag p99", "lag p99.9"][at], values, targets::LAG_US[at])
    };
    let (one, open) = (latency(Subject::One), latency(Subject::Open));
    let above = differences(&open, &one);
    vec![
        ("median latency, closed, one connection", one, None),
        ("median latency, open", open, None),
        ("median latency of wrk2 at that rate", latency(Subject::Client(tool::Kind::Wrk2)), None),
        ("open less closed", above, Some(targets::OPEN_ABOVE_ONE_US)),
        lag(0),
        lag(1),
        lag(2),
    ]
}

fn open_table(out: &mut String, of_cell: &OfCell<'_>) {
    out.push_str("| us | median of rounds | target | |\n|---|---|---|---|\n");
    for (name, values, most) in open_rows(of_cell) {
        let estimate = middle(&values);
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} |",
            estimate.as_ref().map_or_else(|| "not measured".to_owned(), |estimate| interval(estimate, 1)),
            most.map_or_else(String::new, |most| format!("<= {most:.0}")),
            estimate.zip(most).map_or("", |(estimate, most)| verdict(&estimate, most)),
        );
    }
}

/// How late weir's clients end.
fn ends(out: &mut String, samples: &[Sample]) {
    let late: Vec<f64> = samples
        .iter()
        .filter(|sample| matches!(sample.subject, Subject::Client(tool::Kind::Weir)))
        .filter(|sample| sample.cell.connections <= 64)
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

fn failures(out: &mut String, samples: &[Sample]) {
    let failed: Vec<String> = samples
        .iter()
        .filter_map(|sample| {
            let error = sample.got.as_ref().err()?;
            let (round, name) = (sample.round + 1, sample.subject.name());
            Some(format!("- {}, {name}, round {round}: {}\n", sample.cell.title(), error.replace('\n', " ")))
        })
        .collect();
    if !failed.is_empty() {
        let _ = write!(out, "\n## Trials that failed, and are left out\n\n{}", failed.concat());
    }
}

/// Machine, programs and requests of one run.
fn about(out: &mut String, record: &Record, run: &Run) {
    let names: Vec<&str> = run.groups.iter().map(|group| group.name()).collect();
    let _ = write!(out, "\n## How it was measured: {}\n", names.join(", "));
    if !run.busy.is_empty() {
        let why = run.busy.join("; ");
        let _ = write!(out, "\n**The machine was busy when this was measured: {why}.** Take it as a hint.\n");
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (name, value) in &run.facts {
        let _ = writeln!(out, "| {name} | {} |", value.replace('|', "\\|"));
    }
    let samples: Vec<&Sample> =
        record.samples.iter().filter(|sample| run.groups.contains(&sample.cell.group)).collect();
    let _ = writeln!(out, "| CPU that neither client nor server used | {} |", neither(&samples));
    if !run.missing.is_empty() {
        out.push_str("\nLeft out:\n\n");
        for line in &run.missing {
            let _ = writeln!(out, "- {line}");
        }
    }
    out.push_str("\nWhat was run, and what it sends:\n");
    for (command, request) in &run.requests {
        let _ = write!(out, "\n`{command}`\n\n```text\n{}\n```\n", request.replace('\r', "").trim_end());
    }
}

fn neither(samples: &[&Sample]) -> String {
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
    use crate::peers::record::tests::sample;

    const WEIR: Subject = Subject::Client(tool::Kind::Weir);
    const WRK: Subject = Subject::Client(tool::Kind::Wrk);

    fn record(samples: Vec<Sample>) -> Record {
        let mut groups: Vec<Group> = samples.iter().map(|sample| sample.cell.group).collect();
        groups.dedup();
        Record::of(Run { groups, rounds: 2, ..Run::default() }, samples)
    }

    #[test]
    fn tables_have_ratios_targets_and_failures() {
        let group = Group::Clients;
        let costs = [(0, WEIR, 5.0), (0, WRK, 10.0), (1, WEIR, 5.0), (1, WRK, 10.0)];
        let mut record = record(costs.map(|(round, subject, cost)| sample(round, group, subject, cost)).to_vec());
        let whole = markdown(&record);
        assert!(whole.contains("| wrk | 500 | 10.00 | 0.50 [0.50, 0.50] | <= 0.65 | reached |"), "{whole}");
        assert!(whole.contains("128 B | wrk | 0.50 [0.50, 0.50] | <= 0.65 | reached |"), "{whole}");
        assert!(whole.contains("100 ms. Target: within 500 ms: reached"), "{whole}");
        assert!(!whole.contains("failed") && !whole.contains("busy"), "{whole}");
        record.samples[1].got = Err("no \"socket\"\nleft".to_owned());
        record.runs[0].busy = vec!["a reason".to_owned()];
        let whole = markdown(&record);
        assert!(whole.contains("wrk, round 1: no \"socket\" left"), "{whole}");
        assert!(
            whole.contains("0.50 (one round)") && whole.contains("busy when this was measured: a reason"),
            "{whole}"
        );
    }

    #[test]
    fn runs_of_different_groups_are_told_apart() {
        let mut record = record(vec![sample(0, Group::Clients, WEIR, 1.0)]);
        let other = Run { groups: vec![Group::ClientsTls], rounds: 1, ..Run::default() };
        record.replace(Record::of(other, vec![sample(0, Group::ClientsTls, WEIR, 1.0)]));
        let whole = markdown(&record);
        assert!(whole.contains("## How it was measured: clients\n"), "{whole}");
        assert!(whole.contains("## How it was measured: clients-tls\n"), "{whole}");
        assert!(whole.contains("## Clients against weir's origin, HTTP/1.1 over TLS 1.3, 64 connections, 128 B"));
    }

    #[test]
    fn the_open_load_is_judged_by_its_times() {
        let with = |subject, p50: f64, lag: f64| {
            let mut sample = sample(0, Group::Open, subject, 1.0);
            let times = crate::peers::output::Times { latency_p50_us: p50, lag_us: [0.0, lag, lag] };
            sample.got.as_mut().unwrap().times = Some(times);
            sample
        };
        let whole = markdown(&record(vec![with(Subject::One, 50.0, 0.0), with(Subject::Open, 90.0, 60.0)]));
        assert!(whole.contains("| open less closed | 40.0 (one round) | <= 30 | **not reached**"), "{whole}");
        assert!(whole.contains("| lag p99.9 | 60.0 (one round) | <= 200 | reached, not surely |"), "{whole}");
        assert!(whole.contains("| median latency of wrk2 at that rate | not measured |"), "{whole}");
    }
}
