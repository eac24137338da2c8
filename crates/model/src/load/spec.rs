//! [`LoadSpec`], the request to the load generator, and its parts.
//! The lab and `weir load` make it, and `weir-load` carries it out.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DriverChoice, Feed, PacedMessages, RequestIds, SlowClientsSpec, StreamKind, StreamSpec};
use crate::coding::Coding;
use crate::keyvalue::{KeyValue, Mix, Operation};
use crate::protocol::{Application, Protocol};
use crate::suite::{Arrivals, Expect, LoadKind, Request};
use crate::text::human_us;
use crate::units::{HumanDuration, serde_as_text};

/// The longest window, seconds: thirty days. A load of this length that is not counted lasts until it is stopped.
pub const LONGEST_S: f64 = 30.0 * 86_400.0;

/// A request to the load generator. Complete but for the login: running the same again repeats the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Where connections go: connection k (0-based, over all threads) goes to target k modulo their number. At least one.
    pub targets: Vec<Target>,
    /// What is sent. A connection sends the requests of its own target, chosen by weight. Every target has at least one.
    pub requests: Vec<RequestSpec>,
    /// Columns that are fields of the requests that are templates.
    pub feed: Option<Feed>,
    /// Protocol, and how many requests a connection may have in flight.
    #[serde(rename = "http")]
    pub protocol: LoadProtocol,
    /// Keys and values, for key-value protocols. Each operation is then one of `requests`, in the order of the mix.
    pub keyvalue: Option<KeyValue>,
    /// Who the client says it is, where the protocol has that. Written to no file.
    #[serde(skip)]
    pub login: Option<Login>,
    /// Each connection begins with a header of the PROXY protocol, below TLS, as behind a load balancer that speaks for its clients.
    pub proxy_protocol: Option<ProxyVersion>,
    /// TLS, if it is to be spoken.
    pub tls: Option<TlsSpec>,
    /// Closed, open or a fixed count. [`LoadKind::Search`] is no load of its own: a search runs closed and open ones.
    pub kind: LoadKind<OfferedRate>,
    /// Pause between a response and the same connection's next request, in closed and counted loads.
    pub think: Option<RandomDuration>,
    /// The load works and rests in turn; `None`: it does not rest.
    pub bursts: Option<Bursts>,
    /// Connections in all, over all threads; all up before the clock starts, unless each carries one request
    /// ([`LoadSpec::is_single_use`]).
    pub connections: u32,
    /// An open load may make more connections, up to so many in all, when something is due and none is free.
    pub max_connections: Option<u32>,
    /// Attempts to connect a second, over all threads, while the first connections are made; `None`: as fast as it goes.
    pub connect_rate: Option<f64>,
    /// A connection is closed by the client after so many responses, and made again when a request is due for it.
    pub requests_per_connection: Option<u64>,
    /// A connection is closed by the client when it is so old, seconds, and what was in flight on it is answered; then it is made
    /// again at once.
    pub recycle_s: Option<f64>,
    /// Each request has an ID of its own. HTTP only.
    pub request_ids: Option<RequestIds>,
    /// Requests accept responses whose bodies are coded so, and responses are checked when they are decoded. HTTP only.
    pub accept_encoding: Option<Coding>,
    /// Responses are streams, and their messages are looked at one by one. The timeout is then that of a silence. HTTP only.
    pub stream: Option<StreamSpec>,
    /// The client cancels one stream in so many, when half of its messages are there: HTTP/2 and HTTP/3 reset it, HTTP/1.1 closes its connection.
    /// It counts as a successful response.
    pub cancel_each: Option<u32>,
    /// Responses have a header ([`CHANGE_HEADER`](crate::change::CHANGE_HEADER)) with a number from 0 to this one. HTTP only.
    pub changes: Option<u32>,
    /// Slow clients while it runs. HTTP/1.1 over TCP only.
    pub slow_clients: Vec<SlowClientsSpec>,
    /// Ask for a new connection for every request (`Connection: close`). HTTP/1.1 only.
    pub connection_close: bool,
    /// Source addresses to connect from, in turn; empty = chosen by weir where one has too few ports, else by the kernel.
    pub sources: Vec<IpAddr>,
    /// Worker threads; 0 = as many as CPUs in `cpus`, else 1; more where one thread cannot hold so many connections. Of a load
    /// that several clients make: those of all, as many as connections at most.
    pub threads: u32,
    /// What this client makes of the load, where several make it. All else here is of the whole load, except `cpus`, `driver` and
    /// paths, which are of this client's host.
    pub part: Option<Part>,
    /// CPUs to pin the worker threads to, in turn; empty = not pinned.
    pub cpus: Vec<u32>,
    /// The worker threads run before all ordinary processes of their CPUs, where the kernel allows it. Only for loads that leave the
    /// CPU some time.
    pub real_time: bool,
    /// Seconds not measured, before the window. An open load whose rate changes is constant at its first rate meanwhile.
    pub warmup_s: f64,
    /// Seconds measured. For [`LoadKind::Count`] the upper bound. For a replay the time of its last request: its window goes on until
    /// the last response, by `timeout_s` at most.
    pub duration_s: f64,
    /// Seconds a response may take.
    pub timeout_s: f64,
    /// Seconds connecting may take; absent: as long as a response.
    pub connect_timeout_s: Option<f64>,
    /// Requests that wait for a connection when the warm-up or the window ends are dropped instead of sent later. For open loads
    /// that are more than can be carried on purpose: the queue of the warm-up would fill the window.
    pub leave_queue: bool,
    /// Seed of arrivals, think times, weights and random fields of templates.
    pub seed: u64,
    /// Driver.
    pub driver: DriverChoice,
}

impl LoadSpec {
    /// The simplest load: a closed loop of one request over one kept HTTP/1.1 connection, for one second, without a warm-up.
    pub fn new(target: Target, request: Request, expect: Expect) -> LoadSpec {
        LoadSpec {
            targets: vec![target],
            requests: vec![RequestSpec { target: 0, weight: 1, template: false, request, expect }],
            feed: None,
            protocol: LoadProtocol::Http1 { pipeline: 1 },
            keyvalue: None,
            login: None,
            proxy_protocol: None,
            tls: None,
            kind: LoadKind::Closed,
            think: None,
            bursts: None,
            connections: 1,
            max_connections: None,
            connect_rate: None,
            requests_per_connection: None,
            recycle_s: None,
            request_ids: None,
            accept_encoding: None,
            stream: None,
            cancel_each: None,
            changes: None,
            slow_clients: Vec::new(),
            connection_close: false,
            sources: Vec::new(),
            threads: 1,
            part: None,
            cpus: Vec::new(),
            real_time: false,
            warmup_s: 0.0,
            duration_s: 1.0,
            timeout_s: 10.0,
            connect_timeout_s: None,
            leave_queue: false,
            seed: 1,
            driver: DriverChoice::Auto,
        }
    }

    /// The load lasts until it is stopped.
    pub fn is_endless(&self) -> bool {
        self.duration_s >= LONGEST_S && !matches!(self.kind, LoadKind::Count { .. })
    }

    /// The messages that the client sends of one of its requests, where it sends them one by one.
    pub fn paced_messages(&self, request: &RequestSpec) -> Option<PacedMessages> {
        self.stream.filter(|stream| stream.kind == StreamKind::Grpc)?;
        PacedMessages::of(&request.request.path)?.ok()
    }

    /// Returns whether each message goes to all connections.
    pub fn is_broadcast(&self) -> bool {
        self.stream.is_some_and(|stream| stream.kind == StreamKind::Broadcast)
    }

    /// Each connection carries one request. None is then made before its request is due, so that connecting is part of every
    /// latency.
    pub fn is_single_use(&self) -> bool {
        let asks = |request: &RequestSpec| {
            let options = request.request.header("connection").unwrap_or_default();
            options.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"))
        };
        let http1 = matches!(self.protocol, LoadProtocol::Http1 { .. });
        self.connection_close || self.requests_per_connection == Some(1) || (http1 && self.requests.iter().all(asks))
    }
}

/// On/off traffic: requests become due for `on_s` seconds, and none for `off_s`, again and again from the load's start on. Answers
/// come whenever they come. An open load has its rate while it is on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bursts {
    /// How long requests become due, seconds.
    pub on_s: f64,
    /// How long none does, seconds.
    pub off_s: f64,
}

impl Bursts {
    /// The share of the time in which requests become due.
    pub fn share(self) -> f64 {
        self.on_s / (self.on_s + self.off_s)
    }
}

/// The worker threads that one of several clients has, of those of the whole load. Connections, schedules, counted requests and
/// the keys to write before the load are divided by thread, so that the parts are together the load of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its first thread, 0-based.
    pub first_thread: u32,
    /// How many it has.
    pub threads: u32,
}

impl Part {
    /// Deals threads to clients, each as many as it wishes, but no more in all than connections: the clients then get theirs in
    /// turn, one at a time. Parts come in the order of the clients; one that gets no thread has nothing to do.
    pub fn deal(wished: &[u32], connections: u32) -> Vec<Part> {
        let mut dealt = vec![0u32; wished.len()];
        let mut left = connections;
        while left > 0 && dealt != wished {
            for (has, wish) in dealt.iter_mut().zip(wished) {
                if *has < *wish && left > 0 {
                    *has += 1;
                    left -= 1;
                }
            }
        }
        let mut first_thread = 0;
        let part = |threads| {
            let part = Part { first_thread, threads };
            first_thread += threads;
            part
        };
        dealt.into_iter().map(part).collect()
    }

    /// What it has of the first so many threads, if anything.
    pub fn below(self, threads: u32) -> Option<Part> {
        let left = threads.checked_sub(self.first_thread).filter(|left| *left > 0)?;
        Some(Part { threads: self.threads.min(left), ..self })
    }
}

/// User and password. Its debug text does not tell the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Empty: the server's default.
    pub user: String,
    /// As the server knows it.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.user)
    }
}

/// A server that requests go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its address. RequestIds are resolved by whoever makes the order.
    pub address: Endpoint,
    /// What goes into `Host` and `:authority`; its host part is the name asked for in TLS unless another is given.
    pub authority: String,
}

impl Target {
    /// A TCP target.
    pub fn tcp(address: SocketAddr, authority: impl Into<String>) -> Target {
        Target { address: Endpoint::Tcp(address), authority: authority.into() }
    }

    /// Whether it is reached by TCP.
    pub fn is_tcp(&self) -> bool {
        matches!(self.address, Endpoint::Tcp(_))
    }
}

/// An address that a connection goes to. As text: `127.0.0.1:80`, `[::1]:80`, `[fe80::1%2]:80`, `unix:/path`, `unix:@name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Address and port.
    Tcp(SocketAddr),
    /// A unix stream socket, by its path; by its name behind `@`, where it is abstract.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("\"unix:\" has no path; expected: unix:/path".to_owned()),
            Some(path) => Ok(Endpoint::Unix(path.into())),
            None => text
                .parse()
                .map(Endpoint::Tcp)
                .map_err(|_| format!("\"{text}\" is no address and port, such as 127.0.0.1:80, nor unix:/path")),
        }
    }
}

serde_as_text!(Endpoint);

/// One kind of request, how often it is chosen, and what a successful response to it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Index into [`LoadSpec::targets`].
    pub target: u32,
    /// Share among the requests of the same target: weight by the sum of weights. At least 1.
    pub weight: u32,
    /// Path, header values and body hold fields such as `{{seq}}` that are filled in for each request.
    pub template: bool,
    /// What is sent.
    pub request: Request,
    /// What must come back.
    pub expect: Expect,
}

impl RequestSpec {
    /// The operations of a key-value load. Each stands as a request without a path, whose method is the operation.
    pub fn operations(mix: &Mix) -> Vec<RequestSpec> {
        let request = |(operation, weight): &(Operation, u32)| RequestSpec {
            target: 0,
            weight: *weight,
            template: false,
            request: Request { method: operation.as_str().to_owned(), ..Request::default() },
            expect: Expect::default(),
        };
        mix.0.iter().map(request).collect()
    }

    /// Its name in results: method and path, or the operation.
    pub fn name(&self) -> String {
        match self.request.path.as_str() {
            "" => self.request.method.clone(),
            path => format!("{} {path}", self.request.method),
        }
    }
}

/// The protocol, and how many requests a connection may have in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "version")]
pub enum LoadProtocol {
    /// HTTP/1.1.
    #[serde(rename = "http/1.1")]
    Http1 {
        /// Requests sent ahead of their responses; 1 is no pipelining.
        pipeline: u32,
    },
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    #[serde(rename = "h2")]
    Http2 {
        /// Streams open at a time; fewer where the peer allows fewer.
        streams: u32,
    },
    /// HTTP/3, over QUIC.
    #[serde(rename = "h3")]
    Http3 {
        /// Streams open at a time; fewer where the peer allows fewer.
        streams: u32,
    },
    /// Redis's protocol.
    #[serde(rename = "redis")]
    Redis {
        /// Requests sent ahead of their responses; 1 is no pipelining.
        pipeline: u32,
    },
    /// JunoDB's protocol.
    #[serde(rename = "juno")]
    Juno {
        /// Requests in flight at a time, answered in any order.
        streams: u32,
    },
    /// Memcached's protocol.
    #[serde(rename = "memcached")]
    Memcached {
        /// Requests sent ahead of their responses; 1 is no pipelining.
        pipeline: u32,
    },
}

impl LoadProtocol {
    /// As suites have it: no pipelining, and so many streams where there are any.
    pub fn of(protocol: Protocol, streams: u32) -> LoadProtocol {
        match protocol.application() {
            Application::Http1 => LoadProtocol::Http1 { pipeline: 1 },
            Application::Http2 => LoadProtocol::Http2 { streams },
            Application::Http3 => LoadProtocol::Http3 { streams },
            Application::Redis => LoadProtocol::Redis { pipeline: 1 },
            Application::Juno => LoadProtocol::Juno { streams },
            Application::Memcached => LoadProtocol::Memcached { pipeline: 1 },
        }
    }

    /// The same with so many requests in flight on a connection.
    pub fn in_flight(mut self, requests: u32) -> LoadProtocol {
        match &mut self {
            LoadProtocol::Http1 { pipeline: n }
            | LoadProtocol::Redis { pipeline: n }
            | LoadProtocol::Memcached { pipeline: n } => *n = requests,
            LoadProtocol::Http2 { streams: n }
            | LoadProtocol::Http3 { streams: n }
            | LoadProtocol::Juno { streams: n } => *n = requests,
        }
        self
    }

    /// What is spoken above TCP, TLS or QUIC.
    pub fn application(self) -> Application {
        match self {
            LoadProtocol::Http1 { .. } => Application::Http1,
            LoadProtocol::Http2 { .. } => Application::Http2,
            LoadProtocol::Http3 { .. } => Application::Http3,
            LoadProtocol::Redis { .. } => Application::Redis,
            LoadProtocol::Juno { .. } => Application::Juno,
            LoadProtocol::Memcached { .. } => Application::Memcached,
        }
    }

    /// The name used in records, and the one that ALPN has where it has one.
    pub fn as_str(self) -> &'static str {
        self.application().id()
    }

    /// Requests that a connection may have in flight.
    pub fn streams(self) -> u32 {
        match self {
            LoadProtocol::Http1 { pipeline: n }
            | LoadProtocol::Redis { pipeline: n }
            | LoadProtocol::Memcached { pipeline: n } => n,
            LoadProtocol::Http2 { streams: n }
            | LoadProtocol::Http3 { streams: n }
            | LoadProtocol::Juno { streams: n } => n,
        }
    }
}

/// A version of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// How TLS is spoken. Certificates are checked only against a file of authorities that the user names: the origin
/// of a benchmark rarely has a publicly trusted certificate, and the peers do not check it either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpec {
    /// Name asked for (SNI), instead of the host of the target's authority.
    pub server_name: Option<String>,
    /// PEM file of authorities that the peer's certificate must come from.
    pub authorities: Option<PathBuf>,
    /// Oldest and newest version.
    pub versions: (TlsVersion, TlsVersion),
    /// Cipher suites by their IANA names, best first; empty = all that weir has.
    pub suites: Vec<String>,
    /// Key exchange groups, best first (`X25519`, `secp256r1`, ...); empty = all that weir has.
    pub groups: Vec<String>,
    /// PEM files of the client's certificate chain and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether a connection may resume the session of an earlier one.
    pub resumption: bool,
}

impl Default for TlsSpec {
    /// TLS 1.2 and 1.3, all suites and groups, nothing checked, no resumption.
    fn default() -> TlsSpec {
        TlsSpec {
            server_name: None,
            authorities: None,
            versions: (TlsVersion::Tls12, TlsVersion::Tls13),
            suites: Vec::new(),
            groups: Vec::new(),
            identity: None,
            resumption: false,
        }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.2
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// The name used in files: `1.2`.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsVersion::Tls12 => "1.2",
            TlsVersion::Tls13 => "1.3",
        }
    }
}

/// The rate of an open load over its window, requests a second over all threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OfferedRate {
    /// Always the same.
    Constant(f64),
    /// A straight line over the window.
    Ramp {
        /// At the window's start.
        from: f64,
        /// At its end.
        to: f64,
    },
    /// One rate after another, at least one. The last goes on to the window's end.
    Steps(Vec<Step>),
    /// Requests are due at these times, whatever the spacing: seconds since the window's start, ascending. No warm-up.
    Replay(Vec<f64>),
    /// Recorded traffic: as [`OfferedRate::Replay`], and each time has a request of its own. One target.
    Recorded(Vec<RecordedDue>),
}

/// When a recorded request is due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecordedDue {
    /// Seconds since the window's start.
    pub at_s: f64,
    /// Index into [`LoadSpec::requests`].
    pub request: u32,
}

impl LoadKind<OfferedRate> {
    /// An open load of one rate, requests a second.
    pub fn open(rate: f64, arrivals: Arrivals) -> LoadKind<OfferedRate> {
        LoadKind::Open { rate: OfferedRate::Constant(rate), arrivals }
    }

    /// Returns whether the number of its requests is fixed. The window of such a load ends with its last response.
    pub fn is_finite(&self) -> bool {
        matches!(
            self,
            LoadKind::Count { .. } | LoadKind::Open { rate: OfferedRate::Replay(_) | OfferedRate::Recorded(_), .. }
        )
    }

    /// Whether a warm-up can come before the window.
    pub fn has_warmup(&self) -> bool {
        !self.is_finite()
    }
}

/// A rate, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Requests a second, over all threads. 0 is a pause.
    pub rate: f64,
    /// Seconds.
    pub for_s: f64,
}

/// A length of time, fixed, or drawn each time. As text: `10ms`, `5ms..15ms` (uniform), `exp:10ms` (exponential).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RandomDuration {
    /// Always the same.
    Constant {
        /// Seconds.
        s: f64,
    },
    /// Anything between two times, alike.
    Uniform {
        /// Seconds, the least.
        from_s: f64,
        /// Seconds, the most.
        to_s: f64,
    },
    /// Exponential: many short ones, few long ones, without memory.
    Exponential {
        /// Seconds, the mean.
        mean_s: f64,
    },
}

impl RandomDuration {
    /// The time for a number drawn from [0, 1): seconds. (The inverse of the distribution function.)
    pub fn at(self, uniform: f64) -> f64 {
        match self {
            RandomDuration::Constant { s } => s,
            RandomDuration::Uniform { from_s, to_s } => from_s + (to_s - from_s) * uniform,
            // 1 - [0, 1) is (0, 1], whose logarithm is finite.
            RandomDuration::Exponential { mean_s } => -(1.0 - uniform).ln() * mean_s,
        }
    }

    /// The mean: seconds.
    pub fn mean_s(self) -> f64 {
        match self {
            RandomDuration::Constant { s } => s,
            RandomDuration::Uniform { from_s, to_s } => (from_s + to_s) / 2.0,
            RandomDuration::Exponential { mean_s } => mean_s,
        }
    }
}

impl fmt::Display for RandomDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |s: f64| human_us(s * 1e6);
        match *self {
            RandomDuration::Constant { s } => write!(f, "{}", time(s)),
            RandomDuration::Uniform { from_s, to_s } => write!(f, "{} to {}, uniform", time(from_s), time(to_s)),
            RandomDuration::Exponential { mean_s } => write!(f, "{} in the mean, exponential", time(mean_s)),
        }
    }
}

impl FromStr for RandomDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<RandomDuration, String> {
        let seconds = |part: &str| {
            part.trim().parse::<HumanDuration>().map(|time| time.0.as_secs_f64()).map_err(|_| {
                format!("\"{text}\" is no time; expected: 10ms, 5ms..15ms (uniform) or exp:10ms (exponential)")
            })
        };
        if let Some(mean) = text.strip_prefix("exp:") {
            return Ok(RandomDuration::Exponential { mean_s: seconds(mean)? });
        }
        let Some((from, to)) = text.split_once("..") else {
            return Ok(RandomDuration::Constant { s: seconds(text)? });
        };
        let (from_s, to_s) = (seconds(from)?, seconds(to)?);
        if from_s > to_s {
            return Err(format!("\"{text}\" ends before it begins"));
        }
        Ok(RandomDuration::Uniform { from_s, to_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_dealt_one_after_the_other_and_never_more_than_connections() {
        let dealt = |wished: &[u32], connections| {
            let parts = Part::deal(wished, connections);
            parts.iter().map(|part| (part.first_thread, part.threads)).collect::<Vec<_>>()
        };
        assert_eq!(dealt(&[2, 4, 1], 100), [(0, 2), (2, 4), (6, 1)]);
        assert_eq!(dealt(&[2, 4, 1], 5), [(0, 2), (2, 2), (4, 1)]);
        assert_eq!(dealt(&[2, 4, 1], 2), [(0, 1), (1, 1), (2, 0)]);
        let part = Part { first_thread: 3, threads: 4 };
        assert_eq!(part.below(9), Some(part));
        assert_eq!(part.below(5), Some(Part { first_thread: 3, threads: 2 }));
        assert_eq!(part.below(3), None);
    }

    #[test]
    fn endpoints_are_written_as_they_are_read() {
        for text in ["127.0.0.1:80", "[::1]:8443", "[fe80::1%2]:80", "unix:/tmp/a b.sock", "unix:@name"] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), text);
            let json = serde_json::to_string(&endpoint).unwrap();
            assert_eq!(serde_json::from_str::<Endpoint>(&json).unwrap(), endpoint);
        }
        for wrong in ["localhost", "unix:", "127.0.0.1"] {
            assert!(wrong.parse::<Endpoint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn spreads_have_the_mean_they_say() {
        for (text, mean) in [("10ms", 0.01), ("5ms..15ms", 0.01), ("exp:10ms", 0.01)] {
            let spread: RandomDuration = text.parse().unwrap();
            assert!((spread.mean_s() - mean).abs() < 1e-12);
            let n = 100_000;
            let sum: f64 = (0..n).map(|i| spread.at((f64::from(i) + 0.5) / f64::from(n))).sum();
            assert!((sum / f64::from(n) - mean).abs() < mean * 0.001, "{text}");
        }
        for wrong in ["", "10", "15ms..5ms", "exp:", "5ms.."] {
            assert!(wrong.parse::<RandomDuration>().is_err(), "{wrong}");
        }
    }
}
