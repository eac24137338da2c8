//! `suite.toml` as written. `suite` and `suite_load` read these structs, `suite_write` writes them, and `schema`
//! generates the JSON schema from them. Editors show the doc comments of the fields beside the keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::http::{Headers, Method};
use crate::load::TlsVersion;
use crate::suite::{Arrivals, KeyType, Protocol, RateBase};
use crate::units::{ByteCount, HumanDuration, Rate};

/// A suite of weir: the questions, and everything needed to ask them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "weir suite")]
pub(super) struct SuiteFile {
    /// What is asked, and of which products.
    pub suite: Head,
    /// How TLS is spoken, where a workload's protocol has it: by all products alike.
    #[serde(default)]
    pub tls: TlsTable,
    /// What one request is, and what a right answer to it is; one `[[workload]]` each. Never names a product.
    #[schemars(length(min = 1))]
    pub workload: Vec<WorkloadTable>,
    /// How requests arrive; one `[[load]]` each, in the order in which later ones may refer to earlier ones.
    #[schemars(length(min = 1))]
    pub load: Vec<LoadTable>,
    /// What `--scale` changes: `[scale.smoke]`, `[scale.fit]`, `[scale.full]`.
    #[serde(default, skip_serializing_if = "ScaleTables::is_empty")]
    pub scale: ScaleTables,
}

/// How TLS is spoken, where a workload's protocol has it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsTable {
    /// Kind of the certificate's key.
    #[serde(default)]
    pub key: KeyType,
    /// The versions allowed: `["1.2", "1.3"]`, or one of them.
    #[serde(default = "both_versions")]
    #[schemars(length(min = 1))]
    pub versions: Vec<TlsVersion>,
    /// Whether a connection may resume the session of an earlier one.
    #[serde(default)]
    pub resumption: bool,
}

impl Default for TlsTable {
    fn default() -> TlsTable {
        TlsTable { key: KeyType::default(), versions: both_versions(), resumption: false }
    }
}

fn both_versions() -> Vec<TlsVersion> {
    vec![TlsVersion::Tls12, TlsVersion::Tls13]
}

/// What is asked, and of which products.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// Name of the suite. Left out, it is the file's name without its extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = super::NAME_WANTED))]
    pub name: Option<String>,
    /// One line for lists and report titles.
    #[schemars(length(min = 1))]
    pub title: String,
    /// The question that the first screen of the report answers.
    #[schemars(length(min = 1))]
    pub question: String,
    /// How many times each case is repeated.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    pub blocks: u32,
    /// Seed of the random order within blocks. Left out, one is drawn and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// A product that is the origin, instead of weir's own. It has no counters, so that the audit can check less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What runs, in this order: `name`, or `name:profile`.
    #[schemars(length(min = 1))]
    pub products: Vec<EntryName>,
    /// Profile of the products that are named without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = super::NAME_WANTED))]
    pub profile: Option<String>,
}

fn three() -> u32 {
    3
}

/// `name` or `name:profile`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend(
    "pattern" = "^[a-z0-9][a-z0-9-]*(:[a-z0-9][a-z0-9-]*)?$",
    "x-weir-wanted" = "the name of a product, or name:profile, such as \"nginx\" or \"nginx:stock\""
))]
pub(super) struct EntryName(pub String);

/// A seed: a TOML integer where that is wide enough, else a text of digits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Seed {
    /// A number.
    Number(#[schemars(range(min = 0))] i64),
    /// A number beyond TOML's integers, in quotes.
    Text(
        #[schemars(
            regex(pattern = "^[0-9]{1,20}$"),
            extend("x-weir-wanted" = "a whole number of at most 18446744073709551615, in quotes")
        )]
        String,
    ),
}

/// What one request is, and what a right answer to it is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadTable {
    /// Unique within the suite.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = super::NAME_WANTED))]
    pub name: String,
    /// One line for people. Left out, it is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Protocol between client and product.
    #[serde(default)]
    pub protocol: Protocol,
    /// Method of the request.
    #[serde(default)]
    pub method: Method,
    /// Path with query, as the origin understands it: `/bytes/128`, `/delay/10ms`, `/echo`.
    #[schemars(
        regex(pattern = "^/[!-~]*$"),
        extend("x-weir-wanted" = "a path that begins with / and has no blanks and only ASCII, such as \"/bytes/128\"")
    )]
    pub path: String,
    /// Headers in the order sent. `Host` and `Content-Length` are added unless given here. A list of values repeats
    /// the header.
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    pub headers: Headers,
    /// Body of the request as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Size of a generated body: the letters a to z, over and over. Not together with `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-weir-positive" = true))]
    pub body_bytes: Option<ByteCount>,
    /// Body of the request in hexadecimal, for what is not text. Not together with `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^([0-9a-fA-F]{2})+$"),
        extend("x-weir-wanted" = "hexadecimal digits, two a byte, such as \"00ff\"")
    )]
    pub body_hex: Option<String>,
    /// What a right answer is. Left out, every answer with a status of 200 to 399 is right.
    #[serde(default, skip_serializing_if = "ExpectTable::is_empty")]
    pub expect: ExpectTable,
    /// The loads it runs under. Left out, all of the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub loads: Option<Vec<String>>,
    /// The suite's products that it is asked of: `name`, or `name:profile`. Left out, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub products: Option<Vec<EntryName>>,
    /// Products answer it themselves, as a web server its own page: nothing of it reaches the origin, which only says what
    /// the right answer is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_product: bool,
}

/// What a right answer is.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectTable {
    /// Exact status. Left out, 200 to 399 are right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        range(min = 200, max = 599),
        extend("x-weir-wanted" = "the status of a final answer, a whole number from 200 to 599")
    )]
    pub status: Option<u16>,
    /// Exact size of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteCount>,
    /// XXH3-64 of the whole body, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^[0-9a-fA-F]{16}$"),
        extend("x-weir-wanted" = "the XXH3-64 of the body, 16 hexadecimal digits in quotes")
    )]
    pub hash: Option<String>,
}

impl ExpectTable {
    fn is_empty(&self) -> bool {
        self.status.is_none() && self.size.is_none() && self.hash.is_none()
    }
}

/// How requests arrive, and for how long.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadTable {
    /// Unique within the suite.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = super::NAME_WANTED))]
    pub name: String,
    /// One line for people. Left out, it is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Closed: each connection sends when its last answer came. Open: requests are due at times fixed beforehand. Count:
    /// closed, until so many requests were sent. Search: the highest open rate that meets an objective.
    pub kind: KindName,
    /// Loads of kind `count` only: requests in all. The load's `duration` is the time they may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Loads of kind `search` only: what has to hold, such as `p99<5ms, errors<0.1%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub objective: Option<String>,
    /// Open loads only: requests a second, or a share of what an earlier closed load found, or a list of rates by
    /// workload and product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateValue>,
    /// Measure the load so many times, one after another, without a restart of the product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub rounds: Option<u32>,
    /// Open loads only: measure at these multiples of the rate, one after another, without a restart of the product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2))]
    pub shares: Option<Vec<f64>>,
    /// Measure over so many connections, one after another, without a restart of the product. The most are `connections`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2))]
    pub connection_counts: Option<Vec<u32>>,
    /// Open loads only: how due times are spaced. Left out, `constant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Connections, all up before the clock starts.
    #[schemars(range(min = 1))]
    pub connections: u32,
    /// Streams that each connection may have open, where a workload's protocol is HTTP/2.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub streams: u32,
    /// Warm the product up until what it carries each second keeps its level, for so long at most; then comes `warmup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-weir-positive" = true))]
    pub steady: Option<HumanDuration>,
    /// Open loads only: the load is more than products can carry on purpose. Late requests are then no finding, and requests
    /// that wait for a connection when the warm-up or the window ends are dropped, except in a series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturating: bool,
    /// Run it only where products have so many CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cores: Option<u32>,
    /// Time before the measured window, not measured.
    pub warmup: HumanDuration,
    /// Length of the measured window.
    #[schemars(extend("x-weir-positive" = true))]
    pub duration: HumanDuration,
    /// How long an answer may take.
    #[serde(default = "ten_seconds")]
    #[schemars(extend("x-weir-positive" = true))]
    pub timeout: HumanDuration,
}

fn one() -> u32 {
    1
}

fn ten_seconds() -> HumanDuration {
    HumanDuration(std::time::Duration::from_secs(10))
}

/// Closed or open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KindName {
    /// Each connection sends when its last answer came.
    Closed,
    /// Requests are due at times fixed beforehand, whatever the answers do.
    Open,
    /// Closed, until so many requests were sent.
    Count,
    /// The highest open rate that meets an objective.
    Search,
}

impl KindName {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            KindName::Closed => "closed",
            KindName::Open => "open",
            KindName::Count => "count",
            KindName::Search => "search",
        }
    }
}

/// An open load's rate.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RateValue {
    /// Requests a second.
    Fixed(Rate),
    /// A share of a capacity that an earlier load of the suite found.
    Share(ShareTable),
    /// Rates by workload and product. What is not named is not run.
    Table(#[schemars(length(min = 1))] Vec<TableRateTable>),
}

/// The rate of one workload, of one product or of all that have none of their own.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TableRateTable {
    /// Name of a workload of the suite.
    pub workload: String,
    /// Name of a product. Left out, every product that has no rate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Requests a second.
    pub rate: Rate,
}

/// A share of a capacity that an earlier load of the suite found, per workload.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShareTable {
    /// 0.5 is half.
    #[schemars(
        range(max = 1.5),
        extend("exclusiveMinimum" = 0, "x-weir-wanted" = "a share of more than 0 and at most 1.5, such as 0.5")
    )]
    pub share: f64,
    /// `slowest`: one rate, offered alike to all. `own`: each product's own capacity. `direct`: what client and origin
    /// carry without a product, offered alike to all.
    pub of: RateBase,
    /// Name of an earlier closed load.
    pub load: String,
}

/// What `--scale` changes.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScaleTables {
    /// Seconds: shows that everything works, says nothing about performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoke: Option<ScaleTable>,
    /// Fitted to this machine. The default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<ScaleTable>,
    /// As written (for the published suites: as published).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<ScaleTable>,
}

impl ScaleTables {
    fn is_empty(&self) -> bool {
        self.smoke.is_none() && self.fit.is_none() && self.full.is_none()
    }
}

/// What one scale changes; what is left out stays as the suite has it.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScaleTable {
    /// How many times each case is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub blocks: Option<u32>,
    /// Only these products of the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub products: Option<Vec<String>>,
    /// Only these workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub workloads: Option<Vec<String>>,
    /// Only these loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub loads: Option<Vec<String>>,
    /// Requests of every load of kind `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Warm-up of every load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<HumanDuration>,
    /// Measured window of every load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-weir-positive" = true))]
    pub duration: Option<HumanDuration>,
}
