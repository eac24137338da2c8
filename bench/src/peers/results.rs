//! Writes `RESULTS.md` from the record: the targets that are reached, and a table of each cell.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir_model::protocol::Protocol;
use weir_model::text::count;
use weir_stats::{Estimate, median_interval, paired_ratio};

use super::cases::{Cell, Group, Question, Subject};
use super::client::Client;
use super::record::{Record, Run, Sample};
use super::server::Server;
use super::trial::DISTURBED;

/// Level of every interval.
const LEVEL: f64 = 0.95;

/// Resampling starts from here, so that equal samples give equal intervals.
const SEED: u64 = 1;

/// Open load: most µs that its median may be above the closed median with one connection.
const OPEN_ABOVE_ONE_US: f64 = 30.0;

/// Most that weir's client may cost, as a share of what the cheapest other costs.
const RIVAL: f64 = 0.95;

/// A client ends at most so long after its time, s.
const ENDS_WITHIN_S: f64 = 0.5;

const READING: &str = "# What weir costs beside its peers

Written by `make bench`. `README.md` says how it measures, `docs/engine.md` explains the numbers, `RESULTS.csv` has every
sample, and `RESULTS.json` how each tool was started and what it sends.

CPU time is what the kernel charged to the process, user and system, from start to end: its start, connecting and
handshakes are included. A ratio is weir's CPU time a request over the peer's, taken within each round; the value is the median
of rounds, the brackets are its 95 % interval. *Not surely* means that the interval crosses the target. *null* is the floor:
null / it is about the least that any client or origin over the same kernel can cost beside that peer. It speaks plain HTTP/1.1
only. HTTP/2 with one stream a connection sends as many TCP segments, so the same floor holds; with 32 streams a segment
carries up to 32 requests, and there is none.

With TLS all use TLS_AES_256_GCM_SHA384 with X25519 and a certificate with an ECDSA P-256 key, and resume no session.
";

/// The whole of `RESULTS.md`.
pub fn markdown(record: &Record) -> String {
    let mut out = READING.to_owned();
    out.push_str("\n## The cheapest rival against servers of others\n\n");
    rivals(&mut out, record);
    out.push_str("\n## Targets\n\n");
    targets(&mut out, record);
    let mut differs = BTreeMap::new();
    for cell in cells(record) {
        let results = CellResults::new(record, cell);
        let _ = write!(out, "\n## {}\n\n", cell.title());
        match cell.group {
            Group::Open => open_table(&mut out, &results),
            _ => cost_table(&mut out, &results),
        }
        for subject in results.subjects() {
            let difference = match subject {
                Subject::Client(client) => client.differs(),
                Subject::Origin(server) => server.differs(),
                _ => "",
            };
            differs.insert((matches!(subject, Subject::Origin(_)), subject.name()), difference);
        }
    }
    out.push_str("\n## How the others differ from weir\n\n");
    for ((is_origin, name), difference) in differs.iter().filter(|(_, difference)| !difference.is_empty()) {
        let _ = writeln!(out, "- {name}{}: {difference}", if *is_origin { " origin" } else { "" });
    }
    late_ends(&mut out, &record.samples);
    failures(&mut out, &record.samples);
    for run in &record.runs {
        conditions(&mut out, record, run);
    }
    out
}

/// Cells of which there are samples, in the order of groups.
fn cells(record: &Record) -> Vec<Cell> {
    let all: std::collections::BTreeSet<Cell> = record.samples.iter().map(Sample::cell).collect();
    all.into_iter().collect()
}

/// Compares weir with the client that costs least, in each cell against a server that is not weir's.
fn rivals(out: &mut String, record: &Record) {
    out.push_str("| cell | rival | CPU: weir / it | target | | requests/s: weir / it | median latency: weir / it |\n");
    out.push_str("|---|---|---|---|---|---|---|\n");
    for cell in cells(record) {
        let results = CellResults::new(record, cell);
        if cell.group.server().is_none_or(|server| server == Server::Weir) {
            continue;
        }
        let others = results.subjects().into_iter().filter(|subject| *subject != results.floor());
        let ratios = others.filter_map(|subject| Some((subject, results.ratio(subject)?)));
        let Some((rival, cost)) = ratios.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)) else { continue };
        let over_rival = |value: fn(&Sample) -> Option<f64>| {
            let of = |subject| results.by_round(subject, value);
            text(paired_ratio(&of(results.weir()), &of(rival), LEVEL, SEED), |ratio| interval(&ratio, 2))
        };
        let (rate, median) = (over_rival(Sample::rate), over_rival(|sample| sample.latency_p50_us));
        let (title, name, shown) = (cell.title(), rival.name(), interval(&cost, 2));
        let judged = verdict(&cost, RIVAL);
        let _ = writeln!(out, "| {title} | {name} | {shown} | <= {RIVAL:.2} | {judged} | {rate} | {median} |");
    }
}

/// Everything that has a target, in one table.
fn targets(out: &mut String, record: &Record) {
    out.push_str("| what | beside | weir / it | target | |\n|---|---|---|---|---|\n");
    for cell in cells(record) {
        let results = CellResults::new(record, cell);
        if cell.group == Group::Open {
            for (name, values, most) in open_rows(&results) {
                let Some((estimate, most)) = middle(&values).zip(most) else { continue };
                let (shown, judged) = (interval(&estimate, 1), verdict(&estimate, most));
                let _ = writeln!(out, "| Open load: {name}, µs | | {shown} | <= {most:.0} | {judged} |");
            }
            continue;
        }
        for subject in results.subjects() {
            let Some((most, ratio)) = target(&cell, subject).zip(results.ratio(subject)) else { continue };
            let (shown, judged) = (interval(&ratio, 2), verdict(&ratio, most));
            let _ = writeln!(out, "| {} | {} | {shown} | <= {most:.2} | {judged} |", cell.title(), subject.name());
        }
    }
}

/// The target for weir's cost as a share of a peer's cost in a cell; `None` without a target. With
/// HTTP/2 it is higher against servers of others, whose responses come in smaller pieces: both clients wake for each.
fn target(cell: &Cell, peer: Subject) -> Option<f64> {
    use Protocol::{H2, H2c, Http11, Https11, Juno, Redis};
    let main = cell.is_main();
    match (cell.protocol, cell.group.question(), peer) {
        (Http11, Question::Clients, Subject::Client(Client::Wrk)) => match cell.connections {
            _ if main => Some(0.65),
            _ if cell.is_large() => Some(0.5),
            ..16 => Some(1.0),
            _ => Some(0.8),
        },
        (Http11, Question::Clients, Subject::Client(Client::H1load)) if main => Some(0.85),
        (Http11, Question::Clients, Subject::Client(Client::H1load)) if cell.is_large() => Some(1.0),
        (Http11, Question::Clients, Subject::Client(Client::Null)) if main => Some(1.10),
        (Https11, Question::Clients | Question::Nginx, Subject::Client(Client::Wrk)) => Some(0.70),
        (H2c | H2, Question::Clients, Subject::Client(Client::H2load)) => Some(0.60),
        (H2c | H2, Question::Nginx | Question::Haterm, Subject::Client(Client::H2load)) => Some(0.80),
        (Redis, _, Subject::Client(Client::RedisBenchmark)) => Some(0.60),
        (Redis, _, Subject::Client(Client::Memtier | Client::ValkeyBenchmark)) => Some(0.70),
        (Juno, _, Subject::Client(Client::Junoload)) => Some(0.25),
        (_, Question::Sockets | Question::Calls, Subject::Client(Client::Gcannon | Client::H2load)) => Some(0.90),
        (_, _, Subject::Plain) => Some(1.30),
        (Http11, _, Subject::Origin(Server::Nginx | Server::NginxCopy)) if main => Some(0.45),
        (Http11, _, Subject::Origin(Server::Null)) if main => Some(1.10),
        (Https11, _, Subject::Origin(Server::NginxCopy)) => Some(0.75),
        _ => None,
    }
}

/// Whether an estimate is below a bound.
fn verdict(estimate: &Estimate, most: f64) -> &'static str {
    let certain = estimate.level > 0.0;
    match (estimate.value <= most, estimate.high <= most, estimate.low > most) {
        (true, true, _) if certain => "reached",
        (true, ..) => "reached, not surely",
        (false, _, true) if certain => "**not reached**",
        (false, ..) => "**not reached**, not surely",
    }
}

/// The median of rounds; failed rounds (NaN) are skipped.
fn middle(values: &[f64]) -> Option<Estimate> {
    median_interval(values, LEVEL, SEED)
}

/// Samples of one cell.
struct CellResults<'a> {
    cell: Cell,
    samples: Vec<&'a Sample>,
    rounds: u32,
}

impl<'a> CellResults<'a> {
    fn new(record: &'a Record, cell: Cell) -> CellResults<'a> {
        let samples = record.samples.iter().filter(|sample| sample.cell() == cell).collect();
        CellResults { cell, samples, rounds: record.run_of(cell.group).map_or(0, |run| run.rounds) }
    }

    /// What took part, in the order of tables.
    fn subjects(&self) -> Vec<Subject> {
        let took_part = |subject: &Subject| self.samples.iter().any(|sample| sample.subject == subject.name());
        self.cell.candidates().into_iter().filter(took_part).collect()
    }

    /// A value of every round, NaN where the trial failed.
    fn by_round(&self, subject: Subject, value: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        let mut values = vec![f64::NAN; self.rounds as usize];
        for sample in self.samples.iter().filter(|sample| sample.subject == subject.name()) {
            if let Some(slot) = values.get_mut(sample.round as usize) {
                *slot = value(sample).unwrap_or(f64::NAN);
            }
        }
        values
    }

    /// CPU time a request of what is compared, round by round.
    fn costs(&self, subject: Subject) -> Vec<f64> {
        let which = usize::from(self.compares_origins());
        self.by_round(subject, |sample| Some(sample.costs()?[which]))
    }

    fn compares_origins(&self) -> bool {
        matches!(self.cell.group.question(), Question::Origins | Question::StreamsOrigin)
    }

    fn weir(&self) -> Subject {
        if matches!(self.cell.group.question(), Question::StreamsClient | Question::StreamsOrigin) {
            return Subject::Streams;
        }
        if self.compares_origins() { Subject::Origin(Server::Weir) } else { Subject::Client(Client::Weir) }
    }

    fn floor(&self) -> Subject {
        if self.compares_origins() { Subject::Origin(Server::Null) } else { Subject::Client(Client::Null) }
    }

    /// What `a` costs over what `b` costs.
    fn cost_ratio(&self, a: Subject, b: Subject) -> Option<Estimate> {
        (a != b).then(|| paired_ratio(&self.costs(a), &self.costs(b), LEVEL, SEED)).flatten()
    }

    /// weir's cost over another's; `None` of weir itself.
    fn ratio(&self, subject: Subject) -> Option<Estimate> {
        self.cost_ratio(self.weir(), subject)
    }
}

fn cost_table(out: &mut String, results: &CellResults<'_>) {
    let who = if results.compares_origins() { "origin" } else { "client" };
    let _ = writeln!(out, "| {who} | requests/s | CPU µs/request | weir / it | target | | null / it |");
    out.push_str("|---|---|---|---|---|---|---|\n");
    for subject in results.subjects() {
        let rate = middle(&results.by_round(subject, Sample::rate));
        let ratio = results.ratio(subject);
        let target = target(&results.cell, subject);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            subject.name(),
            rate.map_or_else(|| "failed".to_owned(), |rate| count(rate.value as u64)),
            text(middle(&results.costs(subject)), |cost| format!("{:.2}", cost.value)),
            text(ratio, |ratio| interval(&ratio, 2)),
            text(target, |most| format!("<= {most:.2}")),
            ratio.zip(target).map_or("", |(ratio, most)| verdict(&ratio, most)),
            text(results.cost_ratio(results.floor(), subject), |ratio| format!("{:.2}", ratio.value)),
        );
    }
}

fn text<T>(value: Option<T>, shown: impl Fn(T) -> String) -> String {
    value.map_or_else(String::new, shown)
}

/// Name, value of every round, and target of what the open load is about, µs.
fn open_rows(results: &CellResults<'_>) -> Vec<(&'static str, Vec<f64>, Option<f64>)> {
    let latency = |subject| results.by_round(subject, |sample| sample.latency_p50_us);
    let lag = |value: fn(&Sample) -> Option<f64>| results.by_round(Subject::OpenRate, value);
    let (one, open) = (latency(Subject::OneConnection), latency(Subject::OpenRate));
    let above = open.iter().zip(&one).map(|(open, one)| open - one).collect();
    vec![
        ("median latency, closed, one connection", one, None),
        ("median latency, open", open, None),
        ("median latency of wrk2 at that rate", latency(Subject::Client(Client::Wrk2)), None),
        ("open less closed", above, Some(OPEN_ABOVE_ONE_US)),
        ("lag p50", lag(|sample| sample.lag_p50_us), None),
        ("lag p99", lag(|sample| sample.lag_p99_us), Some(50.0)),
        ("lag p99.9", lag(|sample| sample.lag_p999_us), Some(200.0)),
    ]
}

fn open_table(out: &mut String, results: &CellResults<'_>) {
    out.push_str("| µs | median of rounds | target | |\n|---|---|---|---|\n");
    for (name, values, most) in open_rows(results) {
        let estimate = middle(&values);
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} |",
            estimate.map_or_else(|| "not measured".to_owned(), |estimate| interval(&estimate, 1)),
            text(most, |most| format!("<= {most:.0}")),
            estimate.zip(most).map_or("", |(estimate, most)| verdict(&estimate, most)),
        );
    }
}

/// How late weir's clients end.
fn late_ends(out: &mut String, samples: &[Sample]) {
    let is_weirs = |sample: &&Sample| sample.subject == "weir" && sample.connections <= 64;
    let late: Vec<f64> =
        samples.iter().filter(is_weirs).filter_map(|sample| Some(sample.wall_s? - sample.load_s?)).collect();
    let Some(most) = late.iter().copied().reduce(f64::max) else { return };
    let judged = if most <= ENDS_WITHIN_S { "reached" } else { "**not reached**" };
    let _ = write!(
        out,
        "\n## How long after its time weir's client ends\n\nUp to 64 connections, connecting included, the latest of {} runs: {:.0} ms. Target: within {:.0} ms: {judged}.\n",
        late.len(),
        most * 1e3,
        ENDS_WITHIN_S * 1e3,
    );
}

fn failures(out: &mut String, samples: &[Sample]) {
    let mut failed = samples.iter().filter(|sample| !sample.error.is_empty()).peekable();
    if failed.peek().is_some() {
        out.push_str("\n## Failed trials, which are not counted\n\n");
    }
    for sample in failed {
        let (title, round) = (sample.cell().title(), sample.round + 1);
        let _ = writeln!(out, "- {title}, {}, round {round}: {}", sample.subject, sample.error);
    }
}

/// Machine and programs of one run, and what else used the machine.
fn conditions(out: &mut String, record: &Record, run: &Run) {
    let names: Vec<String> = run.groups.iter().map(|group| super::cases::name(*group)).collect();
    let _ = write!(out, "\n## Conditions of {}\n", names.join(", "));
    let samples = || record.samples.iter().filter(|sample| run.groups.contains(&sample.group));
    let others: Vec<f64> = samples().filter_map(|sample| sample.others_share).collect();
    let stolen: Vec<f64> = samples().filter_map(|sample| sample.stolen_share).collect();
    let disturbed = others.iter().filter(|share| **share > DISTURBED).count();
    let percent = |shares: &[f64]| 100.0 * weir_stats::median(shares).unwrap_or(f64::NAN);
    let unaccounted = format!(
        "{:.1} % of one CPU (median of trials), at most {:.1} %; {disturbed} of {} trials disturbed and kept; stolen by the hypervisor {:.1} %",
        percent(&others),
        100.0 * others.iter().copied().fold(0.0, f64::max),
        others.len(),
        percent(&stolen),
    );
    let used = ("CPU that neither client nor server used".to_owned(), unaccounted);
    let facts: Vec<_> = run.facts.iter().cloned().chain([used]).collect();
    super::described(out, &facts, &run.busy);
    if !run.missing.is_empty() {
        let _ = write!(out, "\nNot measured:\n\n- {}\n", run.missing.join("\n- "));
    }
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

    fn estimate(low: f64, value: f64, high: f64) -> Estimate {
        Estimate { value, low, high, n: 10, level: 0.95 }
    }

    #[test]
    fn a_verdict_is_sure_when_the_interval_is_on_one_side() {
        assert_eq!(verdict(&estimate(0.5, 0.6, 0.65), 0.65), "reached");
        assert_eq!(verdict(&estimate(0.5, 0.6, 0.7), 0.65), "reached, not surely");
        assert_eq!(verdict(&estimate(0.6, 0.7, 0.8), 0.65), "**not reached**, not surely");
        assert_eq!(verdict(&estimate(0.66, 0.7, 0.8), 0.65), "**not reached**");
        let alone = Estimate { level: 0.0, n: 1, ..estimate(0.6, 0.6, 0.6) };
        assert_eq!(verdict(&alone, 0.65), "reached, not surely");
    }

    #[test]
    fn targets_belong_to_their_cells() {
        let (client, origin) = (Subject::Client, Subject::Origin);
        let plain = |connections, size| {
            let (group, protocol) = (Group::Clients, Protocol::Http11);
            Cell { group, protocol, connections, streams: 1, size }
        };
        assert_eq!(target(&plain(64, 128), client(Client::Wrk)), Some(0.65));
        assert_eq!(target(&plain(64, 128), client(Client::H1load)), Some(0.85));
        assert_eq!(target(&plain(64, 11_268), client(Client::Wrk)), Some(0.8));
        assert_eq!(target(&plain(64, 165_854), client(Client::Wrk)), Some(0.5));
        assert_eq!(target(&plain(64, 165_854), client(Client::H1load)), Some(1.0));
        assert_eq!(target(&plain(1, 128), client(Client::Wrk)), Some(1.0));
        assert_eq!(target(&plain(10_000, 128), client(Client::Wrk)), Some(0.8));
        assert_eq!(target(&plain(10_000, 128), client(Client::Null)), None);
        assert_eq!(target(&Cell { group: Group::Nginx, ..plain(64, 128) }, client(Client::Wrk)), None);
        let origins = Cell { group: Group::Origins, ..plain(64, 128) };
        assert_eq!(target(&origins, origin(Server::Null)), Some(1.10));
        assert_eq!(target(&Cell { size: 11_268, ..origins }, origin(Server::Nginx)), None);
        for (group, most) in [(Group::NginxH2, 0.80), (Group::ClientsH2, 0.60)] {
            for cell in group.cells() {
                assert_eq!(target(&cell, client(Client::H2load)), Some(most));
                assert_eq!(target(&cell, client(Client::Oha)), None);
            }
        }
        assert_eq!(target(&Group::Redis.cells()[1], client(Client::RedisBenchmark)), Some(0.60));
        assert_eq!(target(&Group::Redis.cells()[0], client(Client::Memtier)), Some(0.70));
        assert_eq!(target(&Group::Juno.cells()[0], client(Client::Junoload)), Some(0.25));
        assert_eq!(target(&Group::ClientsTls.cells()[0], client(Client::Wrk)), Some(0.70));
        assert_eq!(target(&Group::OriginsTls.cells()[0], origin(Server::NginxCopy)), Some(0.75));
    }

    fn record(samples: Vec<Sample>) -> Record {
        let mut groups: Vec<Group> = samples.iter().map(|sample| sample.group).collect();
        groups.dedup();
        Record::of(Run { groups, rounds: 2, ..Run::default() }, samples)
    }

    #[test]
    fn tables_have_ratios_targets_and_failures() {
        let costs = [(0, "weir", 5.0), (0, "wrk", 10.0), (1, "weir", 5.0), (1, "wrk", 10.0)];
        let samples = costs.map(|(round, subject, cost)| sample(round, Group::Clients, subject, cost));
        let mut record = record(samples.to_vec());
        let whole = markdown(&record);
        assert!(whole.contains("| wrk | 500 | 10.00 | 0.50 [0.50, 0.50] | <= 0.65 | reached |"), "{whole}");
        assert!(whole.contains("128 B | wrk | 0.50 [0.50, 0.50] | <= 0.65 | reached |"), "{whole}");
        assert!(whole.contains("100 ms. Target: within 500 ms: reached"), "{whole}");
        assert!(!whole.contains("ailed") && !whole.contains("busy"), "{whole}");
        let error = "no \"socket\" left".to_owned();
        let (cell, failed) = (record.samples[1].cell(), &mut record.samples[1]);
        *failed = Sample { error, ..Sample::new(&cell, "wrk".to_owned(), 0, 0) };
        record.runs[0].busy = vec!["a reason".to_owned()];
        let whole = markdown(&record);
        assert!(whole.contains("wrk, round 1: no \"socket\" left"), "{whole}");
        assert!(
            whole.contains("0.50 (one round)") && whole.contains("busy when this was measured: a reason"),
            "{whole}"
        );
    }

    #[test]
    fn the_cheapest_rival_leads() {
        let costs = [("weir", 5.0), ("wrk", 10.0), ("shb", 4.0), ("null", 3.0)];
        let samples = costs.map(|(subject, cost)| sample(0, Group::Nginx, subject, cost));
        let whole = markdown(&record(samples.to_vec()));
        let row = "64 connections, 128 B | shb | 1.25 (one round) | <= 0.95 | **not reached**, not surely | 1.00 (one round) |  |";
        assert!(whole.contains(row), "{whole}");
        let own = markdown(&record(costs.map(|(subject, cost)| sample(0, Group::Clients, subject, cost)).to_vec()));
        assert!(!own.contains("| shb | 1.25 (one round) | <= 0.95"), "{own}");
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine is twice as slow in the second round; the ratio does not see it.
        let costs = [(0, "weir", 5.0), (0, "wrk", 10.0), (1, "weir", 10.0), (1, "wrk", 20.0)];
        let record = record(costs.map(|(round, subject, cost)| sample(round, Group::Clients, subject, cost)).to_vec());
        let found = CellResults::new(&record, record.samples[0].cell()).ratio(Subject::Client(Client::Wrk)).unwrap();
        assert!((found.value - 0.5).abs() < 1e-9 && (found.high - found.low).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn runs_of_different_groups_have_their_own_conditions() {
        let mut record = record(vec![sample(0, Group::Clients, "weir", 1.0)]);
        let other = Run { groups: vec![Group::ClientsTls], rounds: 1, ..Run::default() };
        record.replace(Record::of(other, vec![sample(0, Group::ClientsTls, "weir", 1.0)]));
        let whole = markdown(&record);
        assert!(whole.contains("## Conditions of clients\n"), "{whole}");
        assert!(whole.contains("## Conditions of clients-tls\n"), "{whole}");
        assert!(whole.contains("## Clients against weir's origin, HTTP/1.1 over TLS, 64 connections, 128 B"));
    }

    #[test]
    fn the_open_load_is_judged_by_its_times() {
        let with = |subject, p50: f64, lag: f64| Sample {
            latency_p50_us: Some(p50),
            lag_p99_us: Some(lag),
            lag_p999_us: Some(lag),
            ..sample(0, Group::Open, subject, 1.0)
        };
        let whole = markdown(&record(vec![with("closed one connection", 50.0, 0.0), with("open", 90.0, 60.0)]));
        assert!(whole.contains("| open less closed | 40.0 (one round) | <= 30 | **not reached**"), "{whole}");
        assert!(whole.contains("| lag p99.9 | 60.0 (one round) | <= 200 | reached, not surely |"), "{whole}");
        assert!(whole.contains("| median latency of wrk2 at that rate | not measured |"), "{whole}");
    }
}
