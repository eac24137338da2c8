//! A suite: workloads, loads, products and questions. The same types are read from `suite.toml`, written into a run's
//! `run.toml`, run by the lab, and read by report and compare. [`crate::file`] checks them ([`Suite::parse`]) and writes
//! them ([`Suite::to_toml`]). A suite is always valid: names are unique, every reference resolves, numbers are in range.
//! Editors show the comments of the fields beside the keys, because the JSON schema is made from these types.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::as_published::AsPublished;
use crate::change::VERIFIED;
use crate::coding::Coding;
use crate::condition::Condition;
use crate::fault::Fault;
use crate::file::{NAME_WANTED, forms};
use crate::gateway::{Feature, Gateway};
use crate::keyvalue::KeyValue;
use crate::load::{REQUEST_ID_HEADER, SearchOptions, StreamKind, TlsVersion};
pub use crate::protocol::Protocol;
use crate::units::{self, ByteCount, HumanDuration, Rate, Share};

/// A suite: the questions, and everything needed to ask them.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// The runs of the document that it repeats, if any.
    pub as_published: Option<AsPublished>,
}

/// One product under one profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Folder name under `products/`.
    pub product: String,
    /// Name of one of its profiles.
    pub profile: String,
}

/// How much of a suite to run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
        self.into()
    }
}

/// What a scale changes in a suite. `None` leaves the suite's own value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleOverride {
    /// How many times each case is repeated.
    #[schemars(range(min = 1))]
    pub blocks: Option<u32>,
    /// Only these products of the suite.
    #[schemars(length(min = 1))]
    pub products: Option<Vec<String>>,
    /// Only these workloads.
    #[schemars(length(min = 1))]
    pub workloads: Option<Vec<String>>,
    /// Only these loads.
    #[schemars(length(min = 1))]
    pub loads: Option<Vec<String>>,
    /// Requests of every load of kind `count`.
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Warm-up of every load.
    #[serde(default, with = "units::human::option")]
    #[schemars(with = "Option<HumanDuration>")]
    pub warmup: Option<Duration>,
    /// Measured window of every load.
    #[serde(default, with = "units::human::option")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub duration: Option<Duration>,
}

/// What one request is, and what a successful response to it is. Never names a product.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Unique within the suite.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = NAME_WANTED))]
    pub name: String,
    /// One line for people. Left out, it is the name.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub title: String,
    /// Protocol between client and product.
    #[serde(default)]
    pub protocol: Protocol,
    /// What is sent. A workload of a key-value protocol has `keyvalue` instead.
    #[serde(flatten)]
    pub request: Request,
    /// What is asked of a key-value server.
    pub keyvalue: Option<KeyValue>,
    /// Whether each request has an ID of its own, in a header that the origin returns: so caches, retries and more are told exactly.
    /// A text is the header's name. Left out, requests of HTTP have IDs, in `x-weir-id`.
    pub request_ids: Option<RequestIdSetting>,
    /// The content coding that requests accept (`Accept-Encoding`). Responses may then be coded so, and are checked when they are decoded.
    /// Left out, none: coded responses are wrong.
    pub accept_encoding: Option<Coding>,
    /// Responses are streams, and each of their messages is measured: `sse`, server-sent events; `openai`, completions of a language model;
    /// `grpc`, calls, for which the protocol is `h2c` or `h2`, and products speak HTTP/2 with the origin; `websocket`, messages that the client
    /// sends and that come back, each a request. The load's `timeout` is then that of
    /// a silence. Delays need an origin that stamps its messages, such as weir's own.
    pub stream: Option<StreamKind>,
    /// The client cancels one stream in so many when half of its messages are there, and the time until the origin sees that is measured.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub cancel_each: Option<u32>,
    /// How many origins stand behind the product. How it spreads connections and requests over them is its configuration's.
    /// Left out, one.
    #[schemars(range(min = 1, max = 64))]
    pub origins: Option<u32>,
    /// What it asks of the product beyond sending requests on. Products whose files cannot do it are left out.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub gateway: Gateway,
    /// Headers that weir's origin sends with its responses; `Server` and `Content-Type` replace its own (`Content-Type = ""` leaves it out), and
    /// `Date = "now"` is the time of each response. A list of values repeats the header.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "forms::headers")]
    #[schemars(with = "BTreeMap<String, forms::Values>")]
    pub origin_headers: Vec<(String, String)>,
    /// What a successful response is. Left out, every response with a status of 200 to 399 is one.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub expect: Expect,
    /// How TLS is spoken, where that differs from the suite's `[tls]`, which then says nothing of this workload.
    pub tls: Option<Tls>,
    /// The loads it runs under. Left out, all of the suite.
    #[schemars(length(min = 1))]
    pub loads: Option<Vec<String>>,
    /// The products of the suite that it runs with: `name`, `name:profile`, or `*:profile`. Left out, all of them.
    #[schemars(length(min = 1))]
    pub products: Option<Vec<EntryPattern>>,
    /// The workload with which this one is compared, product by product: the difference is its price. `name`, or `name:profile` if the
    /// product has another profile there.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*(:[a-z0-9][a-z0-9-]*)?$"))]
    pub baseline: Option<String>,
    /// Products answer it themselves, as a web server its own page: nothing of it reaches the origin, which only says what
    /// the expected response is.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub by_product: bool,
}

impl Suite {
    /// How TLS is spoken under a workload of it; `None`: it is not.
    pub fn tls_of(&self, workload: &Workload) -> Option<Tls> {
        workload.protocol.is_tls().then(|| workload.tls.unwrap_or(self.tls))
    }
}

impl Workload {
    /// How many origins stand behind the product.
    pub fn origin_count(&self) -> u32 {
        self.origins.unwrap_or(1)
    }

    /// The workload with which this one is compared, and the product's profile there, if that is another one.
    pub fn baseline(&self) -> Option<(&str, Option<&str>)> {
        let text = self.baseline.as_deref()?;
        Some(text.split_once(':').map_or((text, None), |(name, profile)| (name, Some(profile))))
    }

    /// Returns whether each of its messages goes to all connections.
    pub fn is_broadcast(&self) -> bool {
        self.stream == Some(StreamKind::Broadcast)
    }

    /// The features that it needs of a product.
    pub fn needs(&self) -> Vec<Feature> {
        let stream = self.stream.and_then(|kind| match kind {
            StreamKind::Grpc => Some(Feature::Grpc),
            StreamKind::WebSocket | StreamKind::Broadcast => Some(Feature::Websocket),
            StreamKind::Sse | StreamKind::OpenAi => None,
        });
        let group = self.tls.and_then(|tls| tls.group).filter(|group| *group == KeyExchange::X25519Mlkem768);
        let group = group.map(|_| Feature::X25519Mlkem768);
        self.gateway.needs(self.origin_count()).into_iter().chain(stream).chain(group).collect()
    }

    /// The protocol between product and origin: that of the gateway's key, HTTP/2 if messages need it, else [`Protocol::upstream`].
    pub fn upstream(&self) -> Protocol {
        if let Some(upstream) = self.gateway.upstream {
            return upstream;
        }
        match self.stream.and_then(StreamKind::application) {
            Some(needed) => Protocol::all()
                .find(|protocol| !protocol.is_tls() && protocol.application() == needed)
                .unwrap_or_default(),
            None => self.protocol.upstream(),
        }
    }

    /// The request as it is sent to the first route, with this time for the response.
    pub fn sent_request(&self, timeout: Option<Duration>) -> Request {
        let mut request = self.stream.map_or_else(|| self.request.clone(), |kind| kind.dressed(&self.request, timeout));
        request.headers.extend(self.gateway.first_host().map(|host| ("host".to_owned(), host.to_owned())));
        request
    }

    /// The header with the IDs of its requests, in lower case; `None`: they have no IDs.
    pub fn request_id_header(&self) -> Option<String> {
        match &self.request_ids {
            _ if self.protocol.is_keyvalue() || self.stream.is_some_and(StreamKind::is_websocket) => None,
            Some(RequestIdSetting::Given(false)) => None,
            None | Some(RequestIdSetting::Given(true)) => Some(REQUEST_ID_HEADER.to_owned()),
            Some(RequestIdSetting::In(header)) => Some(header.to_ascii_lowercase()),
        }
    }

    /// Whether the workload runs under this load with this product and profile.
    pub fn runs(&self, load: &str, product: &str, profile: &str) -> bool {
        self.loads.as_ref().is_none_or(|loads| loads.iter().any(|name| name == load)) && self.asks(product, profile)
    }

    /// Whether it is asked of this product and profile.
    pub fn asks(&self, product: &str, profile: &str) -> bool {
        self.products.as_ref().is_none_or(|some| some.iter().any(|one| one.fits(product, profile)))
    }
}

/// Whether requests have IDs, and in which header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestIdSetting {
    /// Whether they do.
    Given(bool),
    /// They do, in this header.
    In(String),
}

/// A product under one profile or under any: `name`, or `name:profile`. As a restriction of a suite's products, `*` is any of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(
    with = "String",
    extend(
        "pattern" = "^([a-z0-9][a-z0-9-]*|\\*)(:[a-z0-9][a-z0-9-]*)?$",
        "x-weir-wanted" = "the name of a product, or name:profile, such as \"nginx\" or \"nginx:stock\""
    )
)]
pub struct EntryPattern {
    /// Name of the product.
    pub product: String,
    /// Name of the profile; `None`: any.
    pub profile: Option<String>,
}

impl From<String> for EntryPattern {
    fn from(text: String) -> EntryPattern {
        EntryPattern::of(&text)
    }
}

impl From<EntryPattern> for String {
    fn from(pattern: EntryPattern) -> String {
        pattern.to_string()
    }
}

impl From<&Entry> for EntryPattern {
    fn from(entry: &Entry) -> EntryPattern {
        EntryPattern { product: entry.product.clone(), profile: Some(entry.profile.clone()) }
    }
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
        (self.product == product || self.product == "*") && self.profile.as_ref().is_none_or(|own| own == profile)
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

/// How TLS is spoken between clients and products, where a workload's protocol has it: by all of a suite alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tls {
    /// Kind of the certificate's key.
    pub key: KeyType,
    /// The versions allowed, oldest and newest: `["1.2", "1.3"]`, or one of them.
    #[serde(with = "forms::versions")]
    #[schemars(with = "Vec<TlsVersion>", length(min = 1), extend("uniqueItems" = true))]
    pub versions: (TlsVersion, TlsVersion),
    /// Whether a connection may resume the session of an earlier one.
    pub resumption: bool,
    /// Whether products accept only clients with a certificate that the run has signed.
    pub client_certificates: bool,
    /// The one key exchange that clients offer. Left out, they offer all that weir has, and products are to choose X25519.
    pub group: Option<KeyExchange>,
}

impl Default for Tls {
    /// P-256, TLS 1.2 and 1.3, no resumption, no certificates of clients.
    fn default() -> Tls {
        Tls {
            key: KeyType::P256,
            versions: (TlsVersion::Tls12, TlsVersion::Tls13),
            resumption: false,
            client_certificates: false,
            group: None,
        }
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

    /// The IANA name of the key exchange that products are to choose. By default it is the fastest, which every product has.
    pub fn group(&self) -> &'static str {
        match self.group.unwrap_or_default() {
            KeyExchange::X25519 => "X25519",
            KeyExchange::X25519Mlkem768 => "X25519MLKEM768",
        }
    }

    /// Those of TLS 1.3, whose names are the same everywhere.
    pub fn suites13(&self) -> &'static [&'static str] {
        &["TLS_AES_128_GCM_SHA256"]
    }
}

/// A key exchange of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyExchange {
    /// The elliptic curve of RFC 7748.
    #[default]
    X25519,
    /// X25519 and ML-KEM-768 together, which a quantum computer cannot break later. TLS 1.3 alone has it.
    X25519Mlkem768,
}

/// Kind of a certificate's key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
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
        self.into()
    }
}

/// One request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Method of the request.
    #[serde(default = "get")]
    #[schemars(extend("enum" = METHODS))]
    pub method: String,
    /// Path with query, as the origin understands it: `/bytes/128`, `/delay/10ms`, `/echo`. Needed by HTTP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        regex(pattern = "^/[!-~]*$"),
        extend("x-weir-wanted" = "a path that begins with / and has no blanks and only ASCII, such as \"/bytes/128\"")
    )]
    pub path: String,
    /// Headers in the order sent. `Host` and `Content-Length` are added unless given here. A list of values repeats
    /// the header.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "forms::headers")]
    #[schemars(with = "BTreeMap<String, forms::Values>")]
    pub headers: Vec<(String, String)>,
    /// Its bytes; empty for none.
    #[serde(flatten, with = "forms::body")]
    #[schemars(with = "forms::Body")]
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

/// Methods that a client may send. CONNECT is missing: it makes a tunnel and has no response to measure.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

fn get() -> String {
    "GET".to_owned()
}

/// What a successful response is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expect {
    /// Exact status. Left out, 200 to 399 are right.
    #[schemars(
        range(min = 200, max = 599),
        extend("x-weir-wanted" = "the status of a final response, a whole number from 200 to 599")
    )]
    pub status: Option<u16>,
    /// Exact size of the body.
    #[serde(default, with = "forms::size")]
    #[schemars(with = "Option<ByteCount>")]
    pub size: Option<u64>,
    /// XXH3-64 of the whole body (see `docs/records.md`), 16 hexadecimal digits.
    #[serde(default, with = "forms::hash")]
    #[schemars(
        with = "Option<String>",
        regex(pattern = "^[0-9a-fA-F]{16}$"),
        extend("x-weir-wanted" = "the XXH3-64 of the body, 16 hexadecimal digits in quotes")
    )]
    pub hash: Option<u64>,
    /// The body may be any: it differs by product, as one that repeats the request does. All bytes still have to be the origin's.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub any_body: bool,
    /// Share of the requests that may be refused or fail; below it a trial is valid, from ten times as many on it is invalid.
    /// Left out, 0.1 %. A wrong response is never allowed.
    pub errors: Option<Share>,
    /// Headers that must be there; a value of `None` accepts any. Names in lower case. Suites have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub headers: Vec<(String, Option<String>)>,
}

/// How requests arrive, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Unique within the suite.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = NAME_WANTED))]
    pub name: String,
    /// One line for people. Left out, it is the name.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub title: String,
    /// When requests are sent.
    #[serde(flatten)]
    pub kind: LoadKind,
    /// The points of a trial, measured one after another, without a restart of the product unless `restart` says so.
    #[serde(flatten, skip_serializing_if = "crate::is_default", deserialize_with = "Series::or_once")]
    #[schemars(with = "SeriesKeys")]
    pub series: Series,
    /// Each point of the series has a start of its own: product and origin are started anew, and stores are empty.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub restart: bool,
    /// The length of the values that each point of a key-value series writes, instead of the workload's `value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<u64>,
    /// Connections, all up before the clock starts. Of a series over connections: the most.
    #[schemars(range(min = 1))]
    pub connections: u32,
    /// How many of the topology's clients make the load, the first of them. Left out, or where there are fewer, all do.
    #[schemars(range(min = 1))]
    pub clients: Option<u32>,
    /// How long after one of several clients the next begins: within the warm-up, and evenly where that is too short for it. Left out,
    /// all begin at once.
    #[serde(default, with = "units::human::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub stagger: Option<Duration>,
    /// Streams that each connection may have open, where a workload's protocol has streams.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub streams: u32,
    /// Each request has a connection of its own, which is closed behind the response (`Connection: close` in HTTP/1.1). The time to connect is
    /// a part of the latency, except of each connection that was up before the clock started, and of open loads of HTTP/2, which connect
    /// ahead.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub close: bool,
    /// Warm the product up until what it carries each second keeps its level, for so long at most; then comes `warmup`.
    #[serde(default, with = "units::human::option")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub steady: Option<Duration>,
    /// Open loads only: the load is more than products can carry on purpose. Late requests are then no finding, and requests
    /// that wait for a connection when the warm-up or the window ends are dropped, except in a series.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub saturating: bool,
    /// Start each product once for all workloads, which then follow one another in the suite's order, and keep it and the origin
    /// running between them: what one leaves behind, such as idle connections, is there for the next.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub keep: bool,
    /// `false`: no case has a control, which is a short load of the same requests in disguise, right after the window of its first
    /// trial. Left out, each case of HTTP has one.
    pub control: Option<bool>,
    /// Run it only where products have so many CPUs.
    #[serde(rename = "cores")]
    #[schemars(range(min = 1))]
    pub least_cores: Option<u32>,
    /// Time before the measured window, not measured.
    #[serde(with = "units::human")]
    #[schemars(with = "HumanDuration")]
    pub warmup: Duration,
    /// Length of the measured window.
    #[serde(with = "units::human")]
    #[schemars(with = "HumanDuration", extend("x-weir-positive" = true))]
    pub duration: Duration,
    /// How long a response may take.
    #[serde(with = "units::human", default = "ten_seconds")]
    #[schemars(with = "HumanDuration", extend("x-weir-positive" = true))]
    pub timeout: Duration,
    /// How long connecting, with its handshake, may take. Left out, as long as a response.
    #[serde(default, with = "units::human::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub connect_timeout: Option<Duration>,
    /// The product's route is changed so often meanwhile, by its own means: another origin of the pool, and a response header with the
    /// number of the change. The first change comes after one and a half of it, the last as long before the end.
    #[serde(default, with = "units::human::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HumanDuration>", extend("x-weir-positive" = true))]
    pub change_every: Option<Duration>,
    /// Faults that are provoked in the product meanwhile.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

fn one() -> u32 {
    1
}

pub(crate) fn ten_seconds() -> Duration {
    Duration::from_secs(10)
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

    /// When the route is changed, from the start of the window.
    pub fn changes(&self) -> Vec<Duration> {
        let Some(every) = self.change_every else { return Vec::new() };
        let fit = self.duration.as_nanos() / every.as_nanos().max(1);
        let times = 1..u32::try_from(fit).unwrap_or(u32::MAX).saturating_sub(1);
        times.map(|nth| every * nth + every / 2).collect()
    }

    /// The number of the last change.
    pub fn last_change(&self) -> Option<u32> {
        self.change_every.map(|_| VERIFIED + self.changes().len() as u32)
    }

    /// Connections that the product may have from clients at a time: the load's own, and slow clients.
    pub fn all_connections(&self) -> u32 {
        self.faults.iter().filter_map(|fault| fault.clients).fold(self.connections, u32::saturating_add)
    }

    /// How many times a trial starts the product.
    pub fn starts(&self) -> u32 {
        if self.restart { self.series.points() } else { 1 }
    }

    /// The estimated time of the load in one trial, without start-up of the product and settling. For a fixed number of
    /// requests it is their time at [`ASSUMED_RATE`], and at most their limit.
    pub fn estimated(&self) -> Duration {
        let once = match self.kind {
            LoadKind::Count { requests } => {
                self.duration.min(Duration::from_secs_f64(requests as f64 / ASSUMED_RATE as f64))
            }
            LoadKind::Closed | LoadKind::Open { .. } => self.warmup.saturating_add(self.duration),
            LoadKind::Search { .. } => {
                let options = SearchOptions::for_windows(self.warmup, self.duration);
                // The median search needs two thirds of its time.
                Duration::try_from_secs_f64(options.budget_s / 1.5).unwrap_or(Duration::MAX)
            }
        };
        once.saturating_mul(self.series.points()).saturating_add(self.steady.unwrap_or_default())
    }
}

/// Requests per second assumed when the time of a fixed number of requests is estimated: what a product that is not fast
/// carries on one CPU that is some years old.
pub const ASSUMED_RATE: u64 = 5000;

/// The points of one trial, measured one after another, without a restart of the product unless the load says `restart`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum Series {
    /// The load, once.
    #[default]
    #[serde(skip)]
    Once,
    /// The same load, so many times.
    #[serde(rename = "rounds")]
    Rounds(u32),
    /// The same open load at these multiples of its rate.
    #[serde(rename = "shares")]
    Shares(Vec<f64>),
    /// The same load over so many connections.
    #[serde(rename = "connection_counts")]
    Connections(Vec<u32>),
}

/// [`Series`] in a file: at most one of these keys.
#[derive(JsonSchema)]
#[schemars(extend("x-weir-one-of" = ["rounds", "shares", "connection_counts"]))]
#[expect(dead_code, reason = "only its schema is used")]
struct SeriesKeys {
    /// Measure the load so many times, one after another, without a restart of the product.
    #[schemars(range(min = 2))]
    rounds: Option<u32>,
    /// Open loads only: measure at these multiples of the rate, one after another, without a restart of the product.
    #[schemars(length(min = 2))]
    shares: Option<Vec<f64>>,
    /// Measure over so many connections, one after another, without a restart of the product. The most are `connections`.
    #[schemars(length(min = 2))]
    connection_counts: Option<Vec<u32>>,
}

impl Series {
    fn or_once<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Series, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }

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

/// How requests arrive. `R` is the rate of an open load. In a suite it is a [`RateSpec`], which may refer to another load; the
/// load generator gets an [`OfferedRate`](crate::load::OfferedRate), in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum LoadKind<R = RateSpec> {
    /// Each connection sends when its last response came.
    #[default]
    Closed,
    /// Requests are due at times fixed beforehand, whatever the responses do.
    Open {
        /// Requests a second, or a share of what an earlier closed load found, or a list of rates by workload and product.
        #[schemars(extend("x-weir-wanted" = RATE_WANTED))]
        rate: R,
        /// How due times are spaced. Left out, `constant`.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Closed, until so many requests were sent in all. No warm-up.
    Count {
        /// Requests in all. The load's `duration` is the time they may take.
        #[schemars(range(min = 1))]
        requests: u64,
    },
    /// The highest open rate that meets an objective, found by trials, the last of which is as long as `duration`.
    Search {
        /// What has to hold, such as `p99<5ms, errors<0.1%`.
        #[serde(with = "forms::conditions")]
        #[schemars(
            with = "String",
            extend("x-weir-unit" = "conditions", "x-weir-wanted" = "conditions such as \"p99<5ms, errors<0.1%\"")
        )]
        objective: Vec<Condition>,
    },
}

impl<R> LoadKind<R> {
    /// Whether requests are due whatever the responses do.
    pub fn is_open(&self) -> bool {
        matches!(self, LoadKind::Open { .. } | LoadKind::Search { .. })
    }
}

/// What an open load's rate may be.
const RATE_WANTED: &str =
    "rate = 5000, or rate = { share = 0.5, of = \"slowest\", load = \"<an earlier closed load>\" }";

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RateSpec {
    /// Requests a second.
    Fixed(
        #[serde(with = "forms::rate")]
        #[schemars(with = "Rate")]
        f64,
    ),
    /// A share of a capacity that an earlier load of the suite found, per workload.
    Share {
        /// 0.5 is half.
        #[schemars(
            range(max = 1.5),
            extend("exclusiveMinimum" = 0, "x-weir-wanted" = "a share of more than 0 and at most 1.5, such as 0.5")
        )]
        share: f64,
        /// `slowest`: one rate, offered alike to all. `own`: each product's own capacity. `direct`: what client and origin
        /// carry without a product, offered alike to all.
        of: RateBase,
        /// Name of an earlier closed load.
        load: String,
    },
    /// Rates by workload and product. What is not named is not run.
    Table(#[schemars(length(min = 1))] Vec<TableRate>),
}

/// The rate of one workload, of one product or of all that have none of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableRate {
    /// Name of a workload of the suite.
    pub workload: String,
    /// Name of a product. Left out, every product that has no rate of its own.
    pub product: Option<String>,
    /// Requests a second.
    #[serde(with = "forms::rate")]
    #[schemars(with = "Rate")]
    pub rate: f64,
}

/// The rate that a table has for a workload and a product, requests a second.
pub fn table_rate(table: &[TableRate], workload: &str, product: &str) -> Option<f64> {
    let own = table.iter().find(|row| row.workload == workload && row.product.as_deref() == Some(product));
    let any = || table.iter().find(|row| row.workload == workload && row.product.is_none());
    own.or_else(any).map(|row| row.rate)
}

/// Whose capacity an offered rate is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Equal gaps.
    #[default]
    Constant,
    /// Exponential gaps: independent users.
    Poisson,
}
