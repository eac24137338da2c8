//! A suite as valid types: workloads, loads, products and questions. [`crate::file`] makes a suite from text
//! ([`Suite::parse`]) and writes it back ([`Suite::to_toml`]). The lab runs it, and report and compare read it. A suite
//! is always valid: names are unique, every reference resolves, numbers are in range.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::load::TlsVersion;
pub use crate::protocol::Protocol;

/// A suite: the questions, and everything needed to ask them.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// File name without extension, also the run folder's suffix.
    pub name: String,
    /// One line for lists and report titles.
    pub title: String,
    /// The question that the first screen of the report answers.
    pub question: String,
    /// How many times each case is repeated (at least 1).
    pub blocks: u32,
    /// Seed of the order within blocks; `None` draws one and records it.
    pub seed: Option<u64>,
    /// The product that is the origin, instead of weir's own. It has no counters.
    pub origin: Option<String>,
    /// What runs, in the order written: product names with the profile each runs with.
    pub entries: Vec<Entry>,
    /// How TLS is spoken, where a workload's protocol has it.
    pub tls: Tls,
    /// What is asked for.
    pub workloads: Vec<Workload>,
    /// How requests arrive, in the order in which later ones may refer to earlier ones.
    pub loads: Vec<Load>,
    /// Overrides by scale (`smoke`, `fit`, `full`).
    pub scales: BTreeMap<Scale, ScaleOverride>,
}

/// One product under one profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Folder name under `products/`.
    pub product: String,
    /// Name of one of its profiles.
    pub profile: String,
}

/// How much of a suite to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: shows that everything works, says nothing about performance.
    Smoke,
    /// Fitted to this machine. The default.
    Fit,
    /// As written (for the published suites: as published).
    Full,
}

impl Scale {
    /// The name used in files and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Scale::Smoke => "smoke",
            Scale::Fit => "fit",
            Scale::Full => "full",
        }
    }
}

/// What a scale changes in a suite. `None` leaves the suite's own value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScaleOverride {
    /// Blocks.
    pub blocks: Option<u32>,
    /// Only these products (of the suite's).
    pub products: Option<Vec<String>>,
    /// Only these workloads.
    pub workloads: Option<Vec<String>>,
    /// Only these loads.
    pub loads: Option<Vec<String>>,
    /// Requests of every load of a fixed number of them.
    pub requests: Option<u64>,
    /// Warm-up of every load.
    pub warmup: Option<Duration>,
    /// Measured window of every load.
    pub duration: Option<Duration>,
}

/// What one request is, and what a right answer to it is. Never names a product.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Unique within the suite; `[a-z0-9-]+`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Protocol downstream (client to proxy).
    pub protocol: Protocol,
    /// What is sent.
    pub request: Request,
    /// What must come back.
    pub expect: Expect,
    /// Names of the loads it runs under; `None`: all of the suite.
    pub loads: Option<Vec<String>>,
    /// The entries that it is asked of; `None`: all of the suite.
    pub products: Option<Vec<EntryPattern>>,
    /// Products answer it themselves: nothing of it reaches the origin, which only says what is right.
    pub by_product: bool,
}

impl Workload {
    /// Whether the workload runs under this load with this product and profile.
    pub fn runs(&self, load: &str, product: &str, profile: &str) -> bool {
        self.loads.as_ref().is_none_or(|loads| loads.iter().any(|name| name == load)) && self.asks(product, profile)
    }

    /// Whether it is asked of this product and profile.
    pub fn asks(&self, product: &str, profile: &str) -> bool {
        self.products.as_ref().is_none_or(|some| some.iter().any(|one| one.fits(product, profile)))
    }
}

/// A product under one profile or under any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPattern {
    /// Name of the product.
    pub product: String,
    /// Name of the profile; `None`: any.
    pub profile: Option<String>,
}

impl EntryPattern {
    /// Reads `name` or `name:profile`.
    pub fn of(text: &str) -> EntryPattern {
        match text.split_once(':') {
            Some((product, profile)) => EntryPattern { product: product.to_owned(), profile: Some(profile.to_owned()) },
            None => EntryPattern { product: text.to_owned(), profile: None },
        }
    }

    /// Whether it means this product and profile.
    pub fn fits(&self, product: &str, profile: &str) -> bool {
        self.product == product && self.profile.as_ref().is_none_or(|own| own == profile)
    }
}

impl std::fmt::Display for EntryPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.profile {
            Some(profile) => write!(f, "{}:{profile}", self.product),
            None => f.write_str(&self.product),
        }
    }
}

/// How TLS is spoken between clients and products, by all of a suite alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tls {
    /// Kind of the certificate's key.
    pub key: KeyType,
    /// Oldest and newest version.
    pub versions: (TlsVersion, TlsVersion),
    /// Whether sessions may be resumed.
    pub resumption: bool,
}

impl Default for Tls {
    /// P-256, TLS 1.2 and 1.3, no resumption.
    fn default() -> Tls {
        Tls { key: KeyType::P256, versions: (TlsVersion::Tls12, TlsVersion::Tls13), resumption: false }
    }
}

impl Tls {
    /// The cipher suites of TLS 1.2 that products are to allow, by OpenSSL's names. One, so that all do the same work:
    /// AES-128-GCM, which every product and every CPU of the last ten years has.
    pub fn suites12(&self) -> &'static [&'static str] {
        match self.key {
            KeyType::P256 => &["ECDHE-ECDSA-AES128-GCM-SHA256"],
            KeyType::Rsa2048 => &["ECDHE-RSA-AES128-GCM-SHA256"],
        }
    }

    /// The IANA names of the same suites.
    pub fn suites12_iana(&self) -> &'static [&'static str] {
        match self.key {
            KeyType::P256 => &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"],
            KeyType::Rsa2048 => &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        }
    }

    /// Those of TLS 1.3, whose names are the same everywhere.
    pub fn suites13(&self) -> &'static [&'static str] {
        &["TLS_AES_128_GCM_SHA256"]
    }
}

/// Kind of a certificate's key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum KeyType {
    /// ECDSA over secp256r1.
    #[default]
    #[serde(rename = "p256")]
    P256,
    /// RSA of 2048 bits.
    #[serde(rename = "rsa2048")]
    Rsa2048,
}

impl KeyType {
    /// The name used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyType::P256 => "p256",
            KeyType::Rsa2048 => "rsa2048",
        }
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// HTTP method, upper case.
    pub method: String,
    /// Path with query, beginning with `/`.
    pub path: String,
    /// Headers in the order sent; `Host`, `Content-Length` are added by the client unless given here.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
}

impl Request {
    /// A GET without headers of its own.
    pub fn get(path: &str) -> Request {
        Request { method: "GET".to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Its headers without those of these names.
    pub fn headers_but(&self, names: &[&str]) -> Vec<(&str, &str)> {
        let is_one = |name: &str| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).filter(|(name, _)| !is_one(name)).collect()
    }
}

/// What a right answer is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// Exact status; `None` accepts 200 to 399.
    pub status: Option<u16>,
    /// Exact body size in bytes.
    pub size: Option<u64>,
    /// XXH3-64 of the whole body (see `docs/records.md`).
    pub hash: Option<u64>,
    /// Headers that must be there; a value of `None` accepts any. Names in lower case.
    #[serde(default)]
    pub headers: Vec<(String, Option<String>)>,
}

/// How requests arrive, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Unique within the suite; `[a-z0-9-]+`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Closed or open.
    pub kind: LoadKind,
    /// What is measured one after another without a restart of the product.
    pub series: Series,
    /// Connections, all up before the clock starts (at least 1). Of a series over connections: the most.
    pub connections: u32,
    /// Streams that each connection may have open, where a workload's protocol is HTTP/2 (at least 1).
    pub streams: u32,
    /// The product is warmed up until what it carries each second keeps its level, for so long at most; then comes
    /// `warmup`. `None`: only `warmup`.
    pub steady: Option<Duration>,
    /// An open load that is more than products can carry, on purpose: late requests are no finding, and requests that wait for a
    /// connection when the warm-up or the window ends are dropped, except in a series.
    pub saturating: bool,
    /// It is run only where products have so many CPUs; `None`: everywhere.
    pub least_cores: Option<u32>,
    /// Not measured.
    pub warmup: Duration,
    /// Measured window.
    pub duration: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Load {
    /// Whether requests that wait for a connection when the warm-up or the window ends are dropped: see [`Series::leaves_queue`].
    pub fn leaves_queue(&self) -> bool {
        self.series.leaves_queue(self.saturating)
    }

    /// Requests that a connection may have in flight when it speaks `protocol`.
    pub fn streams_of(&self, protocol: Protocol) -> u32 {
        if protocol.is_multiplexed() { self.streams } else { 1 }
    }

    /// Whether a rate is known, or will be, for this workload and product; true of loads that have no rate.
    pub fn has_rate(&self, workload: &str, product: &str) -> bool {
        match &self.kind {
            LoadKind::Open { rate: RateSpec::Table(table), .. } => table_rate(table, workload, product).is_some(),
            _ => true,
        }
    }

    /// The estimated time of the load in one trial, without start-up of the product and settling. For a fixed number of
    /// requests it is their time at [`RECKONED_RATE`], and at most their limit.
    pub fn reckoned(&self) -> Duration {
        let once = match self.kind {
            LoadKind::Count { requests } => {
                self.duration.min(Duration::from_secs_f64(requests as f64 / RECKONED_RATE as f64))
            }
            LoadKind::Closed | LoadKind::Open { .. } => self.warmup.saturating_add(self.duration),
            // About ten trials as long as the confirming one, until the interval is narrow enough.
            LoadKind::Search { .. } => self.warmup.saturating_add(self.duration).saturating_mul(SEARCH_TRIALS),
        };
        once.saturating_mul(self.series.points()).saturating_add(self.steady.unwrap_or_default())
    }
}

/// Requests per second assumed when the time of a fixed number of requests is estimated: what a product that is not fast
/// carries on one CPU that is some years old.
pub const RECKONED_RATE: u64 = 5000;

/// The approximate number of trials of a search, from which its time is estimated.
const SEARCH_TRIALS: u32 = 10;

/// What one trial measures, one after another, without a restart of the product.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Series {
    /// The load, once.
    #[default]
    Once,
    /// The same load, so many times.
    Rounds(u32),
    /// The same open load at these multiples of its rate.
    Shares(Vec<f64>),
    /// The same load over so many connections.
    Connections(Vec<u32>),
}

impl Series {
    /// Whether requests that wait for a connection when the warm-up or the window ends are dropped. True of a `saturating` load
    /// outside a series, whose queue would take longer than the window. The points of a curve measure latency, and send all
    /// that was due.
    pub fn leaves_queue(&self, saturating: bool) -> bool {
        saturating && *self == Series::Once
    }

    /// How many windows a trial measures.
    pub fn points(&self) -> u32 {
        let points = match self {
            Series::Once => 1,
            Series::Rounds(rounds) => return *rounds,
            Series::Shares(shares) => shares.len(),
            Series::Connections(counts) => counts.len(),
        };
        u32::try_from(points).unwrap_or(u32::MAX)
    }
}

/// Closed or open.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadKind {
    /// Each connection sends when its last answer came.
    Closed,
    /// Closed, until so many requests were sent in all; the load's `duration` is the time they may take. No warm-up.
    Count {
        /// Requests in all, at least 1.
        requests: u64,
    },
    /// The highest open rate at which all of these hold, found by trials, the last of which is as long as `duration`.
    Search {
        /// At least one.
        objective: Vec<Condition>,
    },
    /// Requests are due at times fixed beforehand.
    Open {
        /// Requests a second, or where that comes from.
        rate: RateSpec,
        /// How due times are spaced.
        arrivals: Arrivals,
    },
}

impl LoadKind {
    /// Whether each entry is offered its own rate, so that their latencies cannot be compared directly.
    pub fn own_rates(&self) -> bool {
        match self {
            LoadKind::Open { rate: RateSpec::Share { of, .. }, .. } => *of == RateBase::Own,
            LoadKind::Open { rate: RateSpec::Table(rows), .. } => rows.iter().any(|row| row.product.is_some()),
            _ => false,
        }
    }
}

/// An open load's rate.
#[derive(Debug, Clone, PartialEq)]
pub enum RateSpec {
    /// Requests a second.
    Fixed(f64),
    /// Requests a second by workload and product. What it does not name is not run.
    Table(Vec<TableRate>),
    /// A share of a capacity found by an earlier load of the suite, per workload.
    Share {
        /// 0.5 is half.
        share: f64,
        /// Whose capacity.
        of: RateBase,
        /// Name of the earlier (closed) load.
        load: String,
    },
}

/// A rate for one workload, and for one product or all.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRate {
    /// Name of the workload.
    pub workload: String,
    /// Name of the product; `None`: every product that has no rate of its own.
    pub product: Option<String>,
    /// Requests a second.
    pub rate: f64,
}

/// The rate that a table has for a workload and a product, requests a second.
pub fn table_rate(table: &[TableRate], workload: &str, product: &str) -> Option<f64> {
    let own = table.iter().find(|row| row.workload == workload && row.product.as_deref() == Some(product));
    let any = || table.iter().find(|row| row.workload == workload && row.product.is_none());
    own.or_else(any).map(|row| row.rate)
}

/// Whose capacity an offered rate is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateBase {
    /// The slowest entry of the run that carried the workload rightly: one rate, offered alike to all.
    Slowest,
    /// Each entry's own.
    Own,
    /// The direct path's: what client and origin carry without a product. Offered alike to all.
    Direct,
}

/// How due times are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Equal gaps.
    Constant,
    /// Exponential gaps: independent users.
    Poisson,
}
