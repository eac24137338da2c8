//! The flags of `weir load`, by group. [`super::spec`] makes a load specification from them.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use weir_model::coding::Coding;
use weir_model::condition::Condition;
use weir_model::keyvalue::{KeyChoice, Mix, ValueSize};
use weir_model::load::{
    DriverChoice, FeedOrder, ProxyVersion, REQUEST_ID_HEADER, RandomDuration, Step, StreamKind, TlsVersion,
};
use weir_model::protocol::Application;
use weir_model::suite::Arrivals;
use weir_model::units::{ByteCount, HumanDuration, Rate};

use super::flag_values::{self as parse, ConnectTo, Speed};
use super::recorded::{Kind, URLS_FORMATS};
use crate::exit::Failure;
use crate::process::parse_cpus;
use crate::telemetry::TelemetryArgs;
use crate::values::{choice, driver_values, parse_count, parse_header, parse_header_name};

/// Flags of `weir load`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/load-short.txt"), after_long_help = include_str!("../../help/load.txt"), override_usage = "weir load [OPTIONS] <URL>...\n       weir load [OPTIONS] --urls <FILE> [URL]")]
pub struct Args {
    /// http[s]://host[:port][/path][?query]; several are requested in turn. Key-value servers:
    /// redis[s]://[[user]:password@]host[:port], juno[s]://host[:port], memcached[s]://host[:port]. Streams: ws[s]://host:port/path and
    /// grpc[s]://host:port/Service/Method, which are http[s] with --stream websocket, and with --http 2 --stream grpc.
    #[arg(value_name = "URL", required_unless_present = "urls", hide_short_help = true)]
    pub url: Vec<String>,
    #[command(flatten)]
    pub(super) load: LoadFlags,
    #[command(flatten)]
    pub(super) request: RequestFlags,
    #[command(flatten)]
    pub(super) keyvalue: KeyValueFlags,
    #[command(flatten)]
    pub(super) responses: ResponseFlags,
    #[command(flatten)]
    pub(super) connections: ConnectionFlags,
    #[command(flatten)]
    pub(super) tls: TlsFlags,
    #[command(flatten)]
    pub(super) output: OutputFlags,
    #[command(flatten)]
    pub(super) telemetry: TelemetryArgs,
}

/// Schemes that say what is carried: the scheme that it is, and what the flags would say.
const CARRIED: [(&str, &str, Application, StreamKind); 4] = [
    ("ws://", "http://", Application::Http1, StreamKind::WebSocket),
    ("wss://", "https://", Application::Http1, StreamKind::WebSocket),
    ("grpc://", "http://", Application::Http2, StreamKind::Grpc),
    ("grpcs://", "https://", Application::Http2, StreamKind::Grpc),
];

impl Args {
    /// Replaces schemes that say what is carried by the flags that say the same.
    ///
    /// # Errors
    /// Other flags, and URLs of different schemes.
    pub fn take_schemes(&mut self) -> Result<(), Failure> {
        let carried = |url: &String| CARRIED.iter().find(|(scheme, ..)| url.starts_with(scheme));
        let Some((scheme, plain, http, stream)) = self.url.first().and_then(carried) else { return Ok(()) };
        let wrong =
            |what: &str, found: String| Err(Failure::wrong(what, found, format!("URLs of {scheme} alone, without it")));
        if let Some(other) = self.url.iter().find(|url| !url.starts_with(scheme)) {
            return wrong("URL", format!("{other} beside {scheme}"));
        }
        if self.connections.http.is_some_and(|given| given != *http) {
            return wrong("--http", format!("another version than that of {scheme}"));
        }
        if self.responses.stream.is_some_and(|given| given.carrier() != *stream) {
            return wrong("--stream", format!("another kind than that of {scheme}"));
        }
        (self.connections.http, self.responses.stream) = (Some(*http), self.responses.stream.or(Some(*stream)));
        self.url.iter_mut().for_each(|url| url.replace_range(..scheme.len(), plain));
        Ok(())
    }
}

/// How requests arrive.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub struct LoadFlags {
    /// Connections.
    ///
    /// All are opened before the warm-up and the measurement begin, unless each carries one request.
    #[arg(long, short = 'c', value_name = "N", default_value_t = 64, value_parser = parse_count(1..=u32::MAX))]
    pub connections: u32,
    /// How long to measure; 0 is no end [default: 10s].
    ///
    /// Such as 30s, 1m30s or 72h; a load without an end lasts until Ctrl-C. With --steps and --replay the default is their length.
    #[arg(long, short = 'd', value_name = "TIME", value_parser = parse::duration)]
    pub duration: Option<HumanDuration>,
    /// Number of requests, instead of a duration.
    ///
    /// Such as 20k or 1M.
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "duration", group = "shape", value_parser = parse_count(1..=u64::MAX))]
    pub requests: Option<u64>,
    /// Open load: requests a second, such as 5000 or 20k.
    #[arg(long, short = 'R', value_name = "RATE", group = "shape", group = "spaced")]
    pub rate: Option<Rate>,
    /// Open load whose rate changes linearly, such as 100..20k.
    #[arg(long, value_name = "FROM..TO", group = "shape", group = "spaced", value_parser = parse::ramp, hide_short_help = true)]
    pub ramp: Option<(f64, f64)>,
    /// Open load in steps of rate and time, such as 1000x10s,2000x10s; a rate of 0 is a pause.
    #[arg(long, value_name = "RATExTIME,…", group = "shape", group = "spaced", value_parser = parse::steps, hide_short_help = true)]
    pub steps: Option<std::vec::Vec<Step>>,
    /// Open load due at the times in a file: those of the requests of a HAR file or an access log, which are sent, or seconds
    /// since the start, one a line, in ascending order.
    #[arg(long, value_name = "FILE", group = "shape", conflicts_with = "duration", hide_short_help = true)]
    pub replay: Option<PathBuf>,
    /// Replay so many times as fast as recorded, such as 2x or 0.5x.
    #[arg(long, value_name = "FACTOR", requires = "replay", value_parser = parse::speed, hide_short_help = true)]
    pub speed: Option<Speed>,
    /// Find the highest open rate at which these hold, such as 'p99<5ms, errors<0.1%'.
    #[arg(long, value_name = "CONDITIONS", group = "shape", group = "spaced", conflicts_with_all = ["csv", "hlog", "hgrm", "format", "metrics", "metrics_file"], value_parser = parse::conditions, hide_short_help = true)]
    pub find_max: Option<std::vec::Vec<Condition>>,
    /// Time that --find-max may take in all.
    #[arg(long, value_name = "TIME", default_value = "3m", requires = "find_max", hide_short_help = true)]
    pub budget: HumanDuration,
    /// Spacing of the requests of an open load.
    #[arg(long, value_parser = choice(&ARRIVALS), default_value = "constant", requires = "spaced", hide_short_help = true)]
    pub arrivals: Arrivals,
    /// Pause between a response and the next request on its connection: 10ms, 5ms..15ms (uniform) or exp:10ms (exponential).
    /// Only for closed and counted loads.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["spaced", "replay"], hide_short_help = true)]
    pub think: Option<RandomDuration>,
    /// Load before the measurement, not measured itself [default: 1s].
    ///
    /// With --requests and --replay there is none.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub warmup: Option<HumanDuration>,
    /// Seed of Poisson arrivals, think times, weights, random fields and rows.
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub seed: u64,
}

/// What is sent.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub struct RequestFlags {
    /// Method [default: GET, or POST with a body].
    #[arg(long, short = 'm', value_name = "METHOD")]
    pub method: Option<String>,
    /// A header. May be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = parse_header)]
    pub header: Vec<(String, String)>,
    /// Body of every request: TEXT, @FILE or @- (stdin).
    #[arg(long, short = 'b', value_name = "TEXT", group = "a_body", value_parser = parse::body)]
    pub body: Option<std::vec::Vec<u8>>,
    /// Generate a body of this size, such as 11268 or 16KiB.
    #[arg(long, value_name = "BYTES", group = "a_body", value_parser = parse::generated, hide_short_help = true)]
    pub body_size: Option<std::vec::Vec<u8>>,
    /// Read URLs from a file, one a line: [METHOD] URL [WEIGHT]; # begins a comment. Or paths, a HAR file or an access log,
    /// for the server of the URL.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub urls: Option<PathBuf>,
    /// Format of the file of --urls or --replay [default: by its content].
    #[arg(long, value_name = "FORMAT", value_parser = choice(&URLS_FORMATS), hide_short_help = true)]
    pub urls_format: Option<Kind>,
    /// Send only the recorded requests to this host, with it as their Host [default: the URL's, or the only host recorded].
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    pub urls_host: Option<String>,
    /// Relative frequency of each URL among those of its server, such as 9,1.
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "url", conflicts_with = "urls", value_parser = parse_count(1..=u32::MAX), hide_short_help = true)]
    pub weight: Vec<u32>,
    /// Fill in fields such as {{seq}} in the path, header values and body, anew for each request.
    #[arg(long, hide_short_help = true)]
    pub template: bool,
    /// Fill in fields from the columns of a CSV file, such as {{user}}: each request takes a row. Implies --template.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub feed: Option<PathBuf>,
    /// Which row a request takes.
    #[arg(long, value_name = "ORDER", value_parser = choice(&FEED_ORDERS), default_value = "sequential", requires = "feed", hide_short_help = true)]
    pub feed_order: FeedOrderOf,
    /// Accept responses in this content coding: gzip. Coded responses are checked when they are decoded.
    #[arg(long, value_name = "CODING", value_parser = choice(&CODINGS), hide_short_help = true)]
    pub accept_encoding: Option<Coding>,
    /// Give each request an ID in a header, which weir's origin returns: tells caches, retries and more apart. A response with the ID of
    /// another request is a wrong one [default header: x-weir-id].
    #[arg(long, value_name = "HEADER", num_args = 0..=1, require_equals = true, default_missing_value = REQUEST_ID_HEADER, value_parser = parse_header_name, hide_short_help = true)]
    pub request_ids: Option<String>,
}

/// The order of the rows of a feed, by --seed.
type FeedOrderOf = fn(u64) -> FeedOrder;

const FEED_ORDERS: [(&str, &str, FeedOrderOf); 2] = [
    ("sequential", "One row after the other, over and over", |_| FeedOrder::Sequential),
    ("random", "Any row, by --seed", FeedOrder::Random),
];

const CODINGS: [(&str, &str, Coding); 1] = [("gzip", "RFC 1952", Coding::Gzip)];

const STREAMS: [(&str, &str, StreamKind); 5] = [
    ("sse", "Server-sent events (text/event-stream)", StreamKind::Sse),
    ("openai", "Completions of a language model, in OpenAI's format", StreamKind::OpenAi),
    ("websocket", "Messages of WebSocket, each of which comes back", StreamKind::WebSocket),
    ("broadcast", "Messages of WebSocket that the server sends to all connections", StreamKind::Broadcast),
    ("grpc", "Calls of gRPC over HTTP/2, whose body is the message", StreamKind::Grpc),
];

/// What is asked of a key-value server: only with the URL of one.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Key-value")]
pub struct KeyValueFlags {
    /// Operations on keys, in turn, such as set:1,get:3.
    ///
    /// Each connection does them over and over. C create, G get, U update, S set, D destroy, or their whole names, and how often
    /// each comes in a row [default: set:1,get:1].
    #[arg(long, value_name = "NAME:N,…")]
    pub ops: Option<Mix>,
    /// Length of the values written: 2000, 2KB, one of several (2000,4500) or any of a range (100..4000) [default: 100].
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub value: Option<ValueSize>,
    /// Time that a written value lives [default: for ever, or as long as the server likes].
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub ttl: Option<HumanDuration>,
    /// Keys: fresh, or of a known set sequential, uniform or zipf:S [default: fresh].
    #[arg(long, value_name = "CHOICE", hide_short_help = true)]
    pub keys: Option<KeyChoice>,
    /// Keys of the known set, such as 1M [default: as many as --preload].
    #[arg(long, value_name = "N", value_parser = parse_count(1..=u64::MAX), hide_short_help = true)]
    pub key_count: Option<u64>,
    /// Write this many keys before the load, such as 1M.
    #[arg(long, value_name = "N", value_parser = parse_count(1..=u64::MAX), hide_short_help = true)]
    pub preload: Option<u64>,
    /// All connections use all keys. Values that are read are then only checked for being whole.
    #[arg(long, hide_short_help = true)]
    pub share: bool,
    /// Replicas that must have a write before it counts as answered (WAIT).
    #[arg(long, value_name = "N", value_parser = parse_count(1..=100u32), hide_short_help = true)]
    pub replicas: Option<u32>,
    /// Requests in flight on a connection [default: 1].
    #[arg(long, value_name = "N", value_parser = parse_count(1..=10_000u32), hide_short_help = true)]
    pub in_flight: Option<u32>,
}

/// What a successful response is.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Responses")]
pub struct ResponseFlags {
    /// The only expected status [default: 200 to 399].
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999), hide_short_help = true)]
    pub expect_status: Option<u16>,
    /// The expected size of the body, in bytes.
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub expect_size: Option<ByteCount>,
    /// A header that a successful response has, with this value, or with any value if only a name is given. May be repeated.
    #[arg(long, value_name = "NAME[: VALUE]", value_parser = parse::expected_header, hide_short_help = true)]
    pub expect_header: Vec<(String, Option<String>)>,
    /// XXH3-64 hash of the expected body, 16 hexadecimal digits.
    #[arg(long, value_name = "HEX", value_parser = parse::hash, conflicts_with = "expect_hash_of", hide_short_help = true)]
    pub expect_hash: Option<u64>,
    /// A file with the expected body.
    #[arg(long, value_name = "FILE", value_parser = parse::hash_of, hide_short_help = true)]
    pub expect_hash_of: Option<u64>,
    /// Timeout of a response, and of a connection.
    #[arg(long, value_name = "TIME", default_value = "10s", hide_short_help = true)]
    pub timeout: HumanDuration,
    /// Responses are streams, whose messages are measured one by one.
    ///
    /// Each connection (or HTTP/2 stream) holds a stream, and asks for a new one when it ends. --timeout is that of a silence. Delays need a
    /// sender on this machine that stamps its messages, such as /stream of `weir origin`.
    #[arg(long, value_name = "KIND", value_parser = choice(&STREAMS), hide_short_help = true)]
    pub stream: Option<StreamKind>,
    /// Cancel one stream in so many when half of its messages are there; it counts as a successful response.
    #[arg(long, value_name = "N", value_parser = parse_count(1..=1_000_000u32), hide_short_help = true)]
    pub cancel_each: Option<u32>,
    /// Exit with 1 when this holds, such as 'p99>10ms'.
    ///
    /// May be repeated; any condition that holds fails the load. Other conditions: 'errors>0.1%', 'rate<20k', 'service.p99.9>5ms' (see
    /// weir help load find-max).
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    pub fail_if: Vec<Condition>,
}

/// Connections, protocol, threads.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionFlags {
    /// HTTP version: 1.1, 2 or 3 [default: 1.1].
    ///
    /// HTTP/2 is negotiated by ALPN with https, and used by prior knowledge with http. HTTP/3 needs https, and speaks QUIC at the same port of
    /// UDP.
    #[arg(long, value_name = "VERSION", value_parser = parse::http)]
    pub http: Option<Application>,
    /// Concurrent requests on a connection of HTTP/2 or HTTP/3.
    #[arg(long, value_name = "N", value_parser = parse_count(1..=10_000u32), hide_short_help = true)]
    pub streams: Option<u32>,
    /// HTTP/1.1 requests that are pipelined on a connection; results say so.
    #[arg(long, value_name = "N", value_parser = parse_count(1..=1_000u32), hide_short_help = true)]
    pub pipeline: Option<u32>,
    /// Open a new connection for every request, when it is due.
    #[arg(long, hide_short_help = true)]
    pub close: bool,
    /// Close a connection after this many responses, and open a new one when a request is due for it.
    #[arg(long, value_name = "N", conflicts_with = "close", value_parser = parse_count(1..=u64::MAX), hide_short_help = true)]
    pub requests_per_connection: Option<u64>,
    /// Close each connection after this time and its last response, and open a new one at once.
    #[arg(long, value_name = "TIME", conflicts_with = "close", hide_short_help = true)]
    pub recycle: Option<HumanDuration>,
    /// Let an open load open up to this many connections when a request is due and none is free.
    #[arg(long, value_name = "N", value_parser = parse_count(1..=u32::MAX), hide_short_help = true)]
    pub max_connections: Option<u32>,
    /// Open the first connections at this rate [default: as fast as possible].
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    pub connect_rate: Option<Rate>,
    /// Connect to a Unix socket, or with @NAME to an abstract one; the URL gives only the path and host.
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub unix: Option<PathBuf>,
    /// Connect to this server; Host, the name sent in TLS (SNI) and that in the certificate are the URL's.
    ///
    /// HOST1:PORT1:HOST2:PORT2, as curl has it, is for URLs of the first host and port alone, which may be empty. May be repeated.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "unix", value_parser = parse::connect_to, hide_short_help = true)]
    pub connect_to: Vec<ConnectTo>,
    /// Begin each connection with a header of the PROXY protocol: v1 or v2. It names a client of its own for each connection.
    #[arg(long, value_name = "VERSION", value_parser = choice(&PROXY_VERSIONS), hide_short_help = true)]
    pub proxy_protocol: Option<ProxyVersion>,
    /// Addresses to connect from, in turn.
    #[arg(long, value_name = "IP,…", value_delimiter = ',', conflicts_with = "unix", hide_short_help = true)]
    pub source: Vec<IpAddr>,
    /// Worker threads [default: one for each of --cpus, else one; more if the connections need it].
    #[arg(long, short = 't', value_name = "N", value_parser = parse_count(1..=1_024u32), hide_short_help = true)]
    pub threads: Option<u32>,
    /// CPUs to pin the workers to, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = parse_cpus, hide_short_help = true)]
    pub cpus: Option<std::vec::Vec<u32>>,
    /// I/O driver.
    #[arg(long, default_value = "auto", value_parser = driver_values(), hide_short_help = true)]
    pub driver: DriverChoice,
}

const PROXY_VERSIONS: [(&str, &str, ProxyVersion); 2] =
    [("v1", "A line of text", ProxyVersion::V1), ("v2", "Binary", ProxyVersion::V2)];

/// TLS: all of it only with https, rediss, junos and memcacheds.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsFlags {
    /// The only version, or the oldest and the newest: 1.2, 1.3 or 1.2..1.3.
    #[arg(long, value_name = "VERSION", value_parser = parse::versions, hide_short_help = true)]
    pub tls_version: Option<(TlsVersion, TlsVersion)>,
    /// Cipher suites by their IANA names, best first [default: all that weir has].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', hide_short_help = true)]
    pub tls_suite: Vec<String>,
    /// Key exchange groups, best first, such as X25519 or secp256r1 [default: all that weir has].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', hide_short_help = true)]
    pub tls_group: Vec<String>,
    /// Server name to send (SNI), instead of the URL's host.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub tls_name: Option<String>,
    /// PEM file of certificate authorities to check against [default: certificates are not checked].
    #[arg(long, value_name = "FILE", value_parser = parse::certificate, hide_short_help = true)]
    pub cacert: Option<PathBuf>,
    /// PEM file of the client's certificate chain.
    #[arg(long, value_name = "FILE", requires = "key", value_parser = parse::certificate, hide_short_help = true)]
    pub cert: Option<PathBuf>,
    /// PEM file of the key for --cert.
    #[arg(long, value_name = "FILE", requires = "cert", value_parser = parse::private_key, hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// Resume TLS sessions of earlier connections.
    #[arg(long, hide_short_help = true)]
    pub resume: bool,
}

/// What is shown and written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// Show latency by kind of request and by status, however many lines it takes.
    #[arg(long, conflicts_with_all = ["json", "format", "find_max"], hide_short_help = true)]
    pub full: bool,
    /// Print the result in the format of another tool.
    #[arg(long, value_enum, value_name = "TOOL", conflicts_with = "json", hide_short_help = true)]
    pub format: Option<FormatArg>,
    /// Write a CSV file with one row a second.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub csv: Option<PathBuf>,
    /// Write the latencies as an HdrHistogram log, second by second, in nanoseconds.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub hlog: Option<PathBuf>,
    /// Write the latencies as HdrHistogram percentiles, in milliseconds, for its plotter.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub hgrm: Option<PathBuf>,
    /// When to use colours. NO_COLOR in the environment means never.
    #[arg(long, value_name = "WHEN", value_parser = choice(&COLORS), default_value = "auto", hide_short_help = true)]
    pub color: Colors,
    /// Show no progress.
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

/// Spacings of an open load's requests.
const ARRIVALS: [(&str, &str, Arrivals); 2] = [
    ("constant", "Equal gaps", Arrivals::Constant),
    ("poisson", "Exponential gaps, as from independent users", Arrivals::Poisson),
];

/// Whether there are colours; `None` where the terminal decides.
type Colors = Option<bool>;

const COLORS: [(&str, &str, Colors); 3] = [
    ("auto", "When the terminal supports them", None),
    ("always", "Always", Some(true)),
    ("never", "Never", Some(false)),
];

/// Tools whose output format is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// wrk --latency
    Wrk,
    /// wrk2 --latency
    Wrk2,
    /// hey
    Hey,
    /// k6 run --summary-export (JSON)
    K6,
    /// HdrHistogram's percentiles, in milliseconds
    Hgrm,
    /// github-action-benchmark's customBiggerIsBetter (JSON): the rate
    GithubBigger,
    /// github-action-benchmark's customSmallerIsBetter (JSON): latencies and errors
    GithubSmaller,
    /// JUnit XML: each --fail-if a test case
    Junit,
    /// junoload
    Junoload,
}

impl FormatArg {
    /// Whether the tool loads key-value servers or HTTP servers; `None`: the format fits both.
    pub fn is_keyvalue(self) -> Option<bool> {
        match self {
            FormatArg::Junoload => Some(true),
            FormatArg::Wrk | FormatArg::Wrk2 | FormatArg::Hey | FormatArg::K6 => Some(false),
            FormatArg::Hgrm | FormatArg::GithubBigger | FormatArg::GithubSmaller | FormatArg::Junit => None,
        }
    }
}
