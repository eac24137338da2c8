//! Turns the `[[load]]` tables of a suite into valid loads. It checks which keys each kind of load may have, and which
//! other loads it may refer to. Called by `suite`.

use super::errors::Errors;
use super::locate::{child, item};
use super::suite_wire::{KindName, LoadTable, RateValue, ShareTable, TableRateTable};
use crate::condition::Condition;
use crate::suite::{Arrivals, Load, LoadKind, RateSpec, Series, TableRate, Workload};
use crate::text::{one_of, suggestion};

/// Points of a series at most: each is a window of its own.
const MOST_POINTS: usize = 64;

/// Largest multiple of a rate in a series.
const LARGEST_SHARE: f64 = 100.0;

/// All loads, in order. Errors go to `errors`, and a harmless value replaces what is wrong.
pub(super) fn loads(tables: Vec<LoadTable>, workloads: &[Workload], errors: &mut Errors<'_>) -> Vec<Load> {
    let kinds: Vec<(String, KindName)> = tables.iter().map(|table| (table.name.clone(), table.kind)).collect();
    let mut loads = Vec::with_capacity(tables.len());
    for (index, table) in tables.into_iter().enumerate() {
        let mut reader = Reader { errors, path: item("load", index), kinds: &kinds, index, workloads };
        reader.foreign_keys(&table);
        let (kind, series) = (reader.kind(&table), reader.series(&table));
        loads.push(Load {
            title: table.title.unwrap_or_else(|| table.name.clone()),
            kind,
            series,
            name: table.name,
            connections: table.connections,
            streams: table.streams,
            steady: table.steady.map(|most| most.0),
            saturating: table.saturating,
            least_cores: table.cores,
            warmup: table.warmup.0,
            duration: table.duration.0,
            timeout: table.timeout.0,
        });
    }
    loads
}

/// Reads one load.
struct Reader<'a, 'e, 'f> {
    errors: &'e mut Errors<'f>,
    path: String,
    kinds: &'a [(String, KindName)],
    index: usize,
    workloads: &'a [Workload],
}

impl Reader<'_, '_, '_> {
    fn error(&mut self, key: &str, found: impl Into<String>, wanted: impl Into<String>) {
        self.errors.add(&child(&self.path, key), found.into(), wanted.into());
    }

    /// Keys that belong to other kinds.
    fn foreign_keys(&mut self, table: &LoadTable) {
        let keys: [(&str, bool, &[KindName]); 6] = [
            ("rate", table.rate.is_some(), &[KindName::Open]),
            ("arrivals", table.arrivals.is_some(), &[KindName::Open]),
            ("shares", table.shares.is_some(), &[KindName::Open]),
            ("saturating", table.saturating, &[KindName::Open]),
            ("requests", table.requests.is_some(), &[KindName::Count]),
            ("objective", table.objective.is_some(), &[KindName::Search]),
        ];
        for (key, given, of) in keys {
            if given && !of.contains(&table.kind) {
                let found = match table.kind {
                    KindName::Closed => {
                        format!("a closed load has no {key}: each connection sends when its last answer came")
                    }
                    other => format!("a load of kind {:?} has no {key}", other.as_str()),
                };
                let wanted =
                    of.iter().map(|kind| format!("kind = {:?}", kind.as_str())).collect::<Vec<_>>().join(" or ");
                self.error(key, found, format!("{wanted}, or no {key}"));
            }
        }
    }

    fn kind(&mut self, table: &LoadTable) -> LoadKind {
        match table.kind {
            KindName::Closed => LoadKind::Closed,
            KindName::Count => {
                if table.requests.is_none() {
                    let found = "missing: a load of kind \"count\" needs their number";
                    self.error("requests", found, "requests = 100000");
                }
                LoadKind::Count { requests: table.requests.unwrap_or(1) }
            }
            KindName::Search => LoadKind::Search { objective: self.objective(table.objective.as_deref()) },
            KindName::Open => LoadKind::Open {
                rate: self.rate(table.rate.as_ref()),
                arrivals: table.arrivals.unwrap_or(Arrivals::Constant),
            },
        }
    }

    fn objective(&mut self, text: Option<&str>) -> Vec<Condition> {
        let Some(text) = text else {
            let found = "missing: a search needs something that has to hold";
            self.error("objective", found, "objective = \"p99<5ms, errors<0.1%\"");
            return Vec::new();
        };
        Condition::list(text).unwrap_or_else(|error| {
            self.error("objective", error.found, error.wanted);
            Vec::new()
        })
    }

    fn rate(&mut self, rate: Option<&RateValue>) -> RateSpec {
        match rate {
            Some(RateValue::Fixed(rate)) => RateSpec::Fixed(rate.per_second()),
            Some(RateValue::Share(share)) => self.share(share),
            Some(RateValue::Table(rows)) => self.table(rows),
            None => {
                let wanted =
                    "rate = 5000, or rate = { share = 0.5, of = \"slowest\", load = \"<an earlier closed load>\" }";
                self.error("rate", "missing: an open load needs a rate", wanted);
                RateSpec::Fixed(1.0)
            }
        }
    }

    /// A share refers to a closed load that has been run by then.
    fn share(&mut self, share: &ShareTable) -> RateSpec {
        let base = &share.load;
        let (kinds, index) = (self.kinds, self.index);
        let earlier =
            || kinds[..index].iter().filter(|(_, kind)| *kind == KindName::Closed).map(|(name, _)| name.as_str());
        let wanted = match earlier().next() {
            None => "the name of a closed load that stands before this one".to_owned(),
            Some(_) => format!("a closed load that stands before this one: {}", one_of(earlier())),
        };
        let found = match kinds.iter().position(|(name, _)| name == base) {
            None => {
                let near = suggestion(base, kinds.iter().map(|(name, _)| name.as_str()));
                Some(format!("there is no load {base:?}{near}"))
            }
            Some(at) if at == index => Some("a load cannot be a share of itself".to_owned()),
            Some(at) if at > index => Some(format!("the load {base:?} comes later")),
            Some(at) if kinds[at].1 == KindName::Open => {
                Some(format!("the load {base:?} is open, and finds no capacity"))
            }
            Some(at) if kinds[at].1 != KindName::Closed => {
                Some(format!("the load {base:?} is of kind {:?}, and not closed", kinds[at].1.as_str()))
            }
            Some(_) => None,
        };
        if let Some(found) = found {
            let path = child(&child(&self.path, "rate"), "load");
            self.errors.add(&path, found, wanted);
        }
        RateSpec::Share { share: share.share, of: share.of, load: base.clone() }
    }

    fn table(&mut self, rows: &[TableRateTable]) -> RateSpec {
        let known: Vec<&str> = self.workloads.iter().map(|workload| workload.name.as_str()).collect();
        for (index, row) in rows.iter().enumerate() {
            let path = child(&item(&child(&self.path, "rate"), index), "workload");
            if !known.contains(&row.workload.as_str()) {
                let near = suggestion(&row.workload, known.iter().copied());
                let found = format!("the suite has no workload {:?}{near}", row.workload);
                self.errors.add(&path, found, one_of(known.iter().copied()));
            }
            if rows[..index].iter().any(|other| other.workload == row.workload && other.product == row.product) {
                self.errors.add(&path, "a second rate for the same workload and product", "each once");
            }
        }
        let row = |row: &TableRateTable| TableRate {
            workload: row.workload.clone(),
            product: row.product.clone(),
            rate: row.rate.per_second(),
        };
        RateSpec::Table(rows.iter().map(row).collect())
    }

    fn series(&mut self, table: &LoadTable) -> Series {
        let given: Vec<&str> = [
            ("rounds", table.rounds.is_some()),
            ("shares", table.shares.is_some()),
            ("connection_counts", table.connection_counts.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
        .collect();
        if let [first, second, ..] = given.as_slice() {
            let found = format!("the load is a series over two things: {first} and {second}");
            self.error(second, found, "only one of rounds, shares, connection_counts");
        }
        if let (Some(first), KindName::Search) = (given.first(), table.kind) {
            self.error(first, "a search is no series: it finds one rate", format!("no {first}"));
        }
        let series = if let Some(rounds) = table.rounds {
            Series::Rounds(rounds)
        } else if let Some(shares) = &table.shares {
            self.shares(shares);
            Series::Shares(shares.clone())
        } else if let Some(counts) = &table.connection_counts {
            self.counts(counts, table.connections);
            Series::Connections(counts.clone())
        } else {
            Series::Once
        };
        if series.points() as usize > MOST_POINTS {
            let found = format!("a series of {} points", series.points());
            self.error(given.first().unwrap_or(&"rounds"), found, format!("at most {MOST_POINTS}"));
        }
        series
    }

    fn shares(&mut self, shares: &[f64]) {
        let wrong = |share: &&f64| !(**share > 0.0 && **share <= LARGEST_SHARE);
        if let Some(share) = shares.iter().find(wrong) {
            let wanted =
                format!("multiples of the rate, of more than 0 and at most {LARGEST_SHARE}, such as [0.2, 0.5, 1.0]");
            self.error("shares", format!("found the number {share:?}"), wanted);
        }
        if shares.windows(2).any(|pair| pair[0] >= pair[1]) {
            self.error("shares", "the multiples do not ascend", "each larger than the one before");
        }
    }

    fn counts(&mut self, counts: &[u32], connections: u32) {
        if counts.contains(&0) {
            self.error("connection_counts", "found the number 0", "at least one connection");
        }
        if counts.windows(2).any(|pair| pair[0] >= pair[1]) {
            self.error("connection_counts", "the numbers do not ascend", "each larger than the one before");
        }
        if let Some(most) = counts.last().filter(|most| **most != connections) {
            let found = format!("the load has {connections} connections, and the last of the series {most}");
            self.error("connections", found, format!("connections = {most}: the most of the series"));
        }
    }
}
