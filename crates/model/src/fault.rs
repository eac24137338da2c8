//! Faults that a load provokes in the product, or by further clients, while it is measured: what, in which part, when, and for how long. Suites
//! say them (`[[load.fault]]`); the lab carries them out. It does not know how.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::load::{ErrorKind, LoadResult, LoadSecond, SlowClients, SlowClientsSpec};
use crate::product::Program;
use crate::record::ResourceSecond;
use crate::text::counted;
use crate::units::{self, ByteCount, HumanDuration};

/// A fault that a load provokes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// What happens.
    pub what: FaultKind,
    /// To which part of the product: `front`, the one that clients talk to; `first`, the one that starts first; `all` (of
    /// `disk-full`, all with a scratch folder); or a part's own name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub part: String,
    /// To which origin of the pool behind the product, from 1, instead of a part.
    #[schemars(range(min = 1, max = 64))]
    pub member: Option<u32>,
    /// Slow clients only, which have neither part nor member: how many there are.
    #[schemars(range(min = 1, max = MOST_SLOW_CLIENTS))]
    pub clients: Option<u32>,
    /// Slow clients only: how much each receives or sends in a second; left out, 1KiB.
    #[schemars(extend("x-weir-positive" = true))]
    pub bytes_per_second: Option<ByteCount>,
    /// When it begins, from the start of the measured window.
    #[serde(with = "units::human")]
    #[schemars(with = "HumanDuration")]
    pub at: Duration,
    /// How long it lasts: then the part is started again, goes on, or has room on its disk again.
    #[serde(rename = "for", with = "units::human")]
    #[schemars(with = "HumanDuration", extend("x-weir-positive" = true))]
    pub lasts: Duration,
    /// Of a member: it comes and goes, for half of so long each.
    #[serde(default, with = "units::human::option")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub every: Option<Duration>,
    /// `slow` only: how much later responses come.
    #[serde(default, with = "units::human::option")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub delay: Option<Duration>,
    /// `disk-full` only: the size of the disk that the part's scratch folder gets, of memory, when it starts.
    #[schemars(extend("x-weir-positive" = true))]
    pub disk: Option<ByteCount>,
}

/// What happens to a part of a product, or to a member of the pool behind it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FaultKind {
    /// All its processes are killed (SIGKILL), and it is started again at the end. A member resets its connections and refuses others.
    #[default]
    Kill,
    /// All its processes are stopped (SIGSTOP), and go on at the end (SIGCONT). A member's responses come at the end.
    Freeze,
    /// A member's responses come later, by `delay`.
    Slow,
    /// A member resets the connection of each request.
    Reset,
    /// A member responds 503 to each request.
    Unavailable,
    /// Its disk is full.
    DiskFull,
    /// Further clients each ask for [`SLOW_BYTES`] and receive them slowly.
    SlowReaders,
    /// Further clients each send a body of [`SLOW_BYTES`] slowly.
    SlowWriters,
}

/// Slow clients that a fault may have: one address has ports for so many.
pub const MOST_SLOW_CLIENTS: u32 = 20_000;

/// The body that a slow client receives or sends, bytes. It is less than products refuse. And it is more than the product's socket takes of
/// a response (some 85 KiB at segments of 1,460 bytes) and its buffers. The socket took all of 64 KiB, or most, as it happened.
pub const SLOW_BYTES: u64 = 256 << 10;

/// How long slow clients are there at least.
const SLOW_LEAST: Duration = Duration::from_secs(2);

/// Bytes that a slow client receives or sends in a second, where a suite does not say it.
pub const SLOW_PACE: u64 = 1 << 10;

impl FaultKind {
    /// True for slow clients, who are neither part nor member.
    pub fn is_of_clients(self) -> bool {
        matches!(self, FaultKind::SlowReaders | FaultKind::SlowWriters)
    }

    /// The name used in files and tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Fault {
    /// Its target in words: the part as ordered, "origin 2", or how many slow clients there are.
    pub fn target(&self) -> String {
        match (self.clients, self.member) {
            (Some(clients), _) => counted(clients.into(), "client"),
            (None, Some(member)) => format!("origin {member}"),
            (None, None) => self.part.clone(),
        }
    }

    /// When it is there: from and to, nanoseconds from the start of the measured window.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64)> {
        let ns = |time: Duration| time.as_nanos() as u64;
        let (at, end) = (ns(self.at), ns(self.end()));
        let every = self.every.map_or(u64::MAX, ns).max(1);
        let length = if self.every.is_some() { every / 2 } else { end - at };
        let next = move |from: &u64| from.checked_add(every).filter(|from| *from < end);
        std::iter::successors(Some(at), next).map(move |from| (from, from.saturating_add(length).min(end)))
    }

    /// The parts that it means, by their index; none where the product has no such part.
    pub fn parts(&self, program: &Program) -> Vec<usize> {
        if self.member.is_some() {
            return Vec::new();
        }
        let count = program.parts.len();
        let has_disk = |part: &usize| !program.parts[*part].process.scratch.is_empty();
        match self.part.as_str() {
            "all" if self.what == FaultKind::DiskFull => (0..count).filter(has_disk).collect(),
            "all" => (0..count).collect(),
            "front" => vec![count - 1],
            "first" => vec![0],
            name => program.parts.iter().position(|part| part.name == name).into_iter().collect(),
        }
    }

    /// The slow clients that it is.
    pub fn slow_clients(&self) -> Option<SlowClientsSpec> {
        Some(SlowClientsSpec {
            writers: self.what == FaultKind::SlowWriters,
            clients: self.clients.filter(|_| self.what.is_of_clients())?,
            bytes_per_second: self.bytes_per_second.map_or(SLOW_PACE, |bytes| bytes.0),
            at_s: self.at.as_secs_f64(),
            for_s: self.lasts.as_secs_f64(),
        })
    }

    /// When it is over, from the start of the measured window.
    pub fn end(&self) -> Duration {
        self.at.saturating_add(self.lasts)
    }

    /// What makes no sense in a window of this length: the key, what was found, and what would be right.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, window: Duration) -> Result<(), (&'static str, String, String)> {
        let human = |time: Duration| HumanDuration(time).to_string();
        let wrong = |key, found: &str, wanted: &str| Err((key, found.to_owned(), wanted.to_owned()));
        if self.what.is_of_clients() {
            match (self.clients, self.member.is_some() || !self.part.is_empty()) {
                (_, true) => return wrong("what", "is one of further clients", "neither part nor member"),
                (None, false) => return wrong("clients", "is missing", "how many slow clients, such as 2000"),
                (Some(_), false) if self.lasts < SLOW_LEAST => {
                    return wrong(
                        "for",
                        "is too short for slow clients",
                        "2s or more: they come and go within a second",
                    );
                }
                (Some(_), false) => {}
            }
        } else if self.clients.is_some() || self.bytes_per_second.is_some() {
            let key = if self.clients.is_some() { "clients" } else { "bytes_per_second" };
            let found = format!("does not go with what = {:?}", self.what.as_str());
            return Err((key, found, "what = \"slow-readers\" or \"slow-writers\"".to_owned()));
        }
        match (self.member, self.part.is_empty()) {
            (None, true) if !self.what.is_of_clients() => {
                return wrong("part", "is missing", "a part of the product, or member: an origin of the pool");
            }
            (Some(_), false) => return wrong("member", "stands beside a part", "one of the two"),
            _ => {}
        }
        match self.what {
            FaultKind::Slow | FaultKind::Reset | FaultKind::Unavailable if self.member.is_none() => {
                return wrong("what", "is no fault of a part", "\"kill\", \"freeze\", \"disk-full\", or a member");
            }
            FaultKind::DiskFull if self.member.is_some() => {
                return wrong("what", "is no fault of a member", "another fault, or a part");
            }
            FaultKind::Slow if self.delay.is_none() => {
                return wrong("delay", "is missing", "how much later responses come, such as \"200ms\"");
            }
            _ if self.delay.is_some() && self.what != FaultKind::Slow => {
                return wrong("delay", "does not go with this fault", "what = \"slow\", or no delay");
            }
            _ if self.every.is_some() && self.member.is_none() => {
                return wrong("every", "does not go with a part", "a member, or no every");
            }
            _ => {}
        }
        match self.what {
            FaultKind::DiskFull if self.disk.is_none() => {
                let wanted = "the size of the part's disk, such as \"256MiB\"";
                Err(("disk", "is missing".to_owned(), wanted.to_owned()))
            }
            _ if self.disk.is_some() && self.what != FaultKind::DiskFull => {
                let found = format!("does not go with what = {:?}", self.what.as_str());
                Err(("disk", found, "what = \"disk-full\", or no disk".to_owned()))
            }
            _ if self.end() > window => {
                let found =
                    format!("{} after {} is beyond the window of {}", human(self.lasts), human(self.at), human(window));
                Err(("for", found, "an end inside the window, so that recovery is seen".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// What came of a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// What happened.
    pub what: FaultKind,
    /// To which part, as ordered.
    pub part: String,
    /// When it began, seconds from the window's start, as it was.
    pub began_s: f64,
    /// When it ended, the same.
    pub ended_s: f64,
    /// For slow clients: resident memory of the product in the last second before it, and the most during it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<(u64, u64)>,
}

/// The share of the rate before a fault that counts as recovered.
const RECOVERED: f64 = 0.9;

/// What a load shows of a fault. Times are of whole rows, one a second.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultOutcome {
    /// Requests without a successful response, from the fault's beginning until the load had recovered.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Successful responses/s before the fault (median), and in the worst second from its beginning on.
    pub rate: (f64, f64),
    /// From the fault's end until two seconds in a row had no errors and at least 90 % of the rate before: seconds. `None`: not
    /// within the window.
    pub recovered_s: Option<f64>,
}

impl FaultRecord {
    /// Takes the memory from the rows of a window, which began at this Unix time in milliseconds.
    #[must_use]
    pub fn used(self, series: &[ResourceSecond], window_ms: u64) -> FaultRecord {
        if !self.what.is_of_clients() {
            return self;
        }
        // When a row ends.
        let end_s = |row: &ResourceSecond| row.time_ms.saturating_sub(window_ms) as f64 / 1e3;
        let rows =
            || series.iter().filter(|row| row.who == "proxy").filter_map(|row| Some((end_s(row), row.rss_bytes?)));
        let before = rows().take_while(|(end, _)| *end <= self.began_s).last().or_else(|| rows().next());
        let during =
            rows().filter(|(end, _)| (self.began_s..=self.ended_s).contains(end)).map(|(_, bytes)| bytes).max();
        FaultRecord { memory_bytes: before.map(|(_, bytes)| bytes).zip(during), ..self }
    }

    /// For slow clients: by how much the product's memory grew for each that it held, bytes. `None`: it held none, or its memory is not known.
    pub fn memory_each(&self, slow: &SlowClients) -> Option<f64> {
        let (before, most) = self.memory_bytes.filter(|_| slow.held > 0)?;
        Some(most.saturating_sub(before) as f64 / f64::from(slow.held))
    }

    /// What a load shows of it; `None` where no whole second came before it.
    pub fn outcome(&self, load: &LoadResult) -> Option<FaultOutcome> {
        let whole = |row: &&LoadSecond| row.length_s > 0.99;
        let mut before: Vec<u64> = load
            .series
            .iter()
            .filter(whole)
            .map_while(|row| (f64::from(row.second) + row.length_s <= self.began_s).then_some(row.successful))
            .collect();
        before.sort_unstable();
        let usual = *before.get(before.len() / 2)? as f64;
        let hit: Vec<&LoadSecond> = load
            .series
            .iter()
            .filter(whole)
            .filter(|row| f64::from(row.second) + row.length_s > self.began_s)
            .collect();
        let well = |row: &LoadSecond| row.errors == 0 && row.successful as f64 >= RECOVERED * usual;
        let after = hit.iter().position(|row| f64::from(row.second) >= self.ended_s.floor()).unwrap_or(hit.len());
        let recovered = (after..hit.len()).find(|&at| hit[at..].iter().take(2).all(|row| well(row)));
        let disturbed = &hit[..recovered.unwrap_or(hit.len())];
        let mut errors = BTreeMap::new();
        for row in disturbed {
            for (kind, n) in load.errors_by_second.get(&row.second).into_iter().flatten() {
                *errors.entry(*kind).or_default() += n;
            }
        }
        Some(FaultOutcome {
            errors,
            rate: (usual, disturbed.iter().map(|row| row.successful).min().map_or(usual, |least| least as f64)),
            recovered_s: recovered.map(|at| (f64::from(hit[at].second) - self.ended_s).max(0.0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_two_good_seconds_in_a_row() {
        let row = |(second, (successful, errors)): (u32, (u64, u64))| LoadSecond {
            second,
            length_s: 1.0,
            successful,
            errors,
            ..LoadSecond::default()
        };
        let load = |rows: &[(u64, u64)]| LoadResult {
            series: (0..).zip(rows.iter().copied()).map(row).collect(),
            errors_by_second: (0..)
                .zip(rows)
                .filter(|(_, (_, errors))| *errors > 0)
                .map(|(second, (_, errors))| (second, BTreeMap::from([(ErrorKind::Timeout, *errors)])))
                .collect(),
            ..LoadResult::default()
        };
        let record =
            FaultRecord { what: FaultKind::Freeze, part: "all".into(), began_s: 2.0, ended_s: 4.1, memory_bytes: None };
        let seen = |rows: &[(u64, u64)]| {
            let outcome = record.outcome(&load(rows)).unwrap();
            (outcome.recovered_s.map(|s| (s * 10.0).round()), outcome.errors.values().sum::<u64>(), outcome.rate.1)
        };
        let (good, bad) = ((100, 0), (10, 5));
        assert_eq!(seen(&[good, good, bad, bad, good, good, good]), (Some(0.0), 10, 10.0));
        // One good second between bad ones is none.
        assert_eq!(seen(&[good, good, bad, bad, good, bad, good, good]), (Some(19.0), 15, 10.0));
        assert_eq!(seen(&[good, good, bad, bad, bad, bad]), (None, 20, 10.0));
        // A fault that nobody noticed.
        assert_eq!(seen(&[good; 7]), (Some(0.0), 0, 100.0));
        assert_eq!(FaultRecord { began_s: 0.5, ..record.clone() }.outcome(&load(&[good; 3])), None);
    }

    #[test]
    fn contradictions_are_found() {
        let second = Duration::from_secs(1);
        let kill = Fault { part: "all".into(), at: second, lasts: second, ..Fault::default() };
        let window = Duration::from_secs(3);
        assert_eq!(kill.check(window), Ok(()));
        let key = |fault: Fault| fault.check(window).unwrap_err().0;
        assert_eq!(key(Fault { lasts: window, ..kill.clone() }), "for");
        assert_eq!(key(Fault { disk: Some(ByteCount(1)), ..kill.clone() }), "disk");
        assert_eq!(key(Fault { what: FaultKind::DiskFull, ..kill.clone() }), "disk");
        assert_eq!(key(Fault { what: FaultKind::Reset, ..kill.clone() }), "what");
        assert_eq!(key(Fault { every: Some(second), ..kill.clone() }), "every");
        assert_eq!(key(Fault { member: Some(1), ..kill.clone() }), "member");
        assert_eq!(key(Fault { part: String::new(), ..kill.clone() }), "part");
        let member = Fault { part: String::new(), member: Some(1), every: Some(second), ..kill };
        assert_eq!(member.check(window), Ok(()));
        assert_eq!(key(Fault { what: FaultKind::DiskFull, ..member.clone() }), "what");
        assert_eq!(key(Fault { what: FaultKind::Slow, ..member.clone() }), "delay");
        assert_eq!(key(Fault { delay: Some(second), ..member.clone() }), "delay");
        assert_eq!(key(Fault { clients: Some(9), ..member.clone() }), "clients");
        assert_eq!(key(Fault { bytes_per_second: Some(ByteCount(1)), ..member.clone() }), "bytes_per_second");
        let readers = Fault {
            what: FaultKind::SlowReaders,
            clients: Some(9),
            member: None,
            every: None,
            lasts: second * 2,
            ..member
        };
        assert_eq!((readers.check(window), readers.target()), (Ok(()), "9 clients".to_owned()));
        assert_eq!(key(Fault { clients: None, ..readers.clone() }), "clients");
        assert_eq!(key(Fault { member: Some(1), ..readers.clone() }), "what");
        assert_eq!(key(Fault { part: "all".into(), ..readers.clone() }), "what");
        assert_eq!(key(Fault { delay: Some(second), ..readers.clone() }), "delay");
        assert_eq!(key(Fault { every: Some(second), ..readers.clone() }), "every");
        assert_eq!(key(Fault { disk: Some(ByteCount(1)), ..readers.clone() }), "disk");
        assert_eq!(key(Fault { lasts: second, ..readers.clone() }), "for");
        assert_eq!(key(Fault { lasts: window, ..readers }), "for");
    }

    #[test]
    fn the_memory_of_slow_clients_is_that_beyond_the_last_second_before_them() {
        let row = |(second, rss): (u64, u64)| ResourceSecond {
            time_ms: 5_000 + 1_000 * second,
            who: "proxy".to_owned(),
            rss_bytes: Some(rss),
            ..ResourceSecond::default()
        };
        let rows = [(1, 90), (2, 100), (3, 150), (4, 300), (5, 200), (6, 900)].map(row);
        let record = |what| FaultRecord { what, part: String::new(), began_s: 2.5, ended_s: 5.5, memory_bytes: None };
        let used = |what, rows: &[ResourceSecond]| record(what).used(rows, 5_000).memory_bytes;
        assert_eq!(used(FaultKind::SlowReaders, &rows), Some((100, 300)));
        assert_eq!(used(FaultKind::SlowWriters, &rows[..2]), None);
        assert_eq!(used(FaultKind::Kill, &rows), None);
    }
}
