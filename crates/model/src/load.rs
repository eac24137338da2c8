//! The request to the load generator ([`LoadSpec`]) and its result ([`LoadResult`]). The lab and `weir load` make the
//! request, and `weir-load` carries it out. Both types travel as JSON between the lab and the client process, which may
//! run on another host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::change::ChangeSeen;
use crate::coding::Coding;

mod feed;
mod messages;
mod request_ids;
mod schema;
mod search;
mod slow_clients;
mod spec;

pub use feed::{Feed, FeedOrder};
pub use messages::{
    BIDI_PATH, Cancellation, LEAST_MESSAGE, MOST_SENT, MessageCounts, MessageResult, PacedMessages, StreamEnd,
    StreamKind, StreamSpec, StreamVerdict, chat_request,
};
pub use request_ids::{
    CONNECTION_HEADERS, DATE, DATE_NOW, LoadNumbers, MOST_ORIGIN_HEADERS, REQUEST_ID_HEADER, RESPONSE_HEADER,
    RequestIdCounts, RequestIds, TRAILER, origin_header, request_id_header,
};
pub use schema::{load_result_schema, search_result_schema};
pub use search::{
    Probe, ProbeKind, SEARCH_SCHEMA, SHORT_WINDOW_S, SearchEnd, SearchLimit, SearchOptions, SearchResult,
};
pub use slow_clients::{SlowClients, SlowClientsSpec};
pub use spec::{
    Bursts, Endpoint, LONGEST_S, LoadProtocol, LoadSpec, Login, OfferedRate, Part, ProxyVersion, RandomDuration,
    RecordedDue, RequestSpec, Step, Target, TlsSpec, TlsVersion,
};

/// Which I/O driver a client or an origin uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DriverChoice {
    /// io_uring where the kernel has what is needed, else epoll.
    #[default]
    Auto,
    /// io_uring or fail.
    #[strum(serialize = "io_uring", serialize = "uring")]
    IoUring,
    /// epoll.
    Epoll,
}

impl DriverChoice {
    /// The name used in flags and records; [`str::parse`] reads it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a request got no successful response.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ErrorKind {
    /// The connection was refused.
    ConnectRefused,
    /// The connection could not be made for another reason.
    ConnectFailed,
    /// The connection was not made within the timeout.
    ConnectTimeout,
    /// The peer reset the connection while a request was in flight, before its response began.
    Reset,
    /// The peer closed the connection before the response began.
    ClosedEarly,
    /// No complete response within the timeout.
    Timeout,
    /// The response's status is not the expected one.
    BadStatus,
    /// The response's body is not the expected one.
    WrongBody,
    /// A header of the response is not the expected one.
    WrongHeader,
    /// HTTP: the response began, and the peer ended the connection or the stream before it was complete.
    Truncated,
    /// The peer ended the request's HTTP/2 stream before its response began, and kept the connection.
    StreamReset,
    /// The TLS handshake failed, or what came is not TLS.
    Tls,
    /// The response breaks the protocol, or weir's limits.
    Protocol,
    /// A value that was read is older than one whose write was acknowledged.
    Stale,
    /// A key is absent though its write was acknowledged.
    Lost,
    /// A value that was read was never written to its key.
    WrongValue,
    /// A key is there though its removal was acknowledged, or its time is over.
    Resurrected,
    /// The server refused the request because it is busy or because another one holds the key.
    Busy,
    /// The server refused the request for another reason.
    Refused,
    /// The server told the client to ask another server.
    Redirected,
    /// A write was stored by fewer replicas than asked for.
    NotReplicated,
}

impl ErrorKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: &[ErrorKind] = ErrorKind::VARIANTS;

    /// A wrong body, header or status, half a response, or bytes that break the protocol. A status may also be a refusal.
    pub const WRONG: [ErrorKind; 5] =
        [ErrorKind::WrongBody, ErrorKind::WrongHeader, ErrorKind::Truncated, ErrorKind::BadStatus, ErrorKind::Protocol];

    /// A response came, though a wrong one.
    pub fn is_response(self) -> bool {
        matches!(self, ErrorKind::BadStatus | ErrorKind::WrongBody | ErrorKind::WrongHeader)
            || self.is_wrong_data()
            || matches!(self, ErrorKind::Busy | ErrorKind::Refused | ErrorKind::Redirected | ErrorKind::NotReplicated)
    }

    /// A key-value server answered what it cannot hold: an acknowledged write is gone, or something else is in its place.
    pub fn is_wrong_data(self) -> bool {
        matches!(self, ErrorKind::Stale | ErrorKind::Lost | ErrorKind::WrongValue | ErrorKind::Resurrected)
    }

    /// The server said no, or hung up.
    fn is_refusal(self) -> bool {
        use ErrorKind::{Busy, ClosedEarly, ConnectRefused, Refused, Reset, StreamReset};
        matches!(self, ConnectRefused | Reset | ClosedEarly | StreamReset | Busy | Refused)
    }

    /// No connection was made.
    pub fn is_connect(self) -> bool {
        matches!(
            self,
            ErrorKind::ConnectRefused | ErrorKind::ConnectFailed | ErrorKind::ConnectTimeout | ErrorKind::Tls
        )
    }

    /// The name used in records and tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// How many there are of each: `timeout 12, reset 3`.
    pub fn listed<'a>(errors: impl IntoIterator<Item = (&'a ErrorKind, &'a u64)>) -> String {
        let words: Vec<String> = errors.into_iter().map(|(kind, n)| format!("{} {n}", kind.as_str())).collect();
        words.join(", ")
    }
}

/// The length of a row of [`LoadResult::tenths`], seconds.
pub const TENTH_S: f64 = 0.1;

/// What the client says it did. The default is a load in which nothing happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadResult {
    /// Version of this shape.
    pub schema: u32,
    /// The driver that was used: `io_uring` or `epoll`.
    pub driver: String,
    /// Worker threads that ran.
    pub threads: u32,
    /// The protocol spoken: `http/1.1`, `h2`, `redis`, `juno` or `memcached`.
    pub protocol: String,
    /// Requests that each connection could have in flight: pipelined ones of HTTP/1.1, streams of HTTP/2.
    pub streams: u32,
    /// What TLS came to, if it was spoken.
    pub tls: Option<TlsResult>,
    /// What became of each kind of request, in the order's order; empty when there is one kind. Of more than 16 the last is all
    /// further ones together.
    pub by_request: Vec<RequestResult>,
    /// As `latency`, by status of the response: `none` is of requests without a response, `others` of rare statuses. Empty when there is one
    /// status, and for protocols without.
    pub by_status: BTreeMap<String, Quantiles>,
    /// Most connections that were open at a time, of all threads together. Of several clients: the sum of what each had at most,
    /// which is more than were open at a time where they had it at different times.
    pub most_open: u32,
    /// Connections that brought at least one response, over the client's whole life.
    pub connections_used: u64,
    /// Unix time of the window's start, milliseconds.
    pub window_start_ms: u64,
    /// Length of the measured window in seconds (as it was, not as ordered).
    pub window_s: f64,
    /// When the load was on and off. Its rates are those of the time in which it was on; absent: always.
    pub bursts: Option<Bursts>,
    /// The open load's ordered rate, requests a second.
    pub offered_rate: Option<f64>,
    /// The window's counts. What is counted by request (`due`, `sent`, `unsent`, `successful`, `errors`, `statuses`,
    /// `body_bytes`) is of requests due in the window, whenever they ended; the rest is what happened inside it.
    pub window: Counts,
    /// Counts over the client's whole life, warm-up included: what the audit balances against the origin.
    pub total: Counts,
    /// Body bytes of all requests of `total`, where that follows from their number: each kind that is counted has bodies of one length.
    pub request_body_bytes: Option<u64>,
    /// Of `total`, what wrote keys before the load began.
    pub preload: Option<Counts>,
    /// Successful responses/s: those that came inside the window, by its length. The goodput.
    pub rate: f64,
    /// Bytes of successful responses' bodies a second, same rule.
    pub body_bytes_per_s: f64,
    /// Due to answered, of requests due in the window, wrong and failed ones included; requests never answered
    /// are samples of the time they had waited when the client gave up.
    pub latency: Quantiles,
    /// Sent to answered.
    pub service: Quantiles,
    /// Due to sent.
    pub lag: Quantiles,
    /// All worker threads ran before the ordinary processes of their CPUs ([`LoadSpec::real_time`]).
    pub real_time: bool,
    /// The client's own share of `lag`. `None` for loads that are not open.
    pub lateness: Option<Lateness>,
    /// Samples of the headers of successful responses, where the protocol has headers.
    pub headers: Option<HeaderSamples>,
    /// What the responses were named, where requests had names.
    pub request_ids: Option<RequestIdCounts>,
    /// How many successful responses came coded, and in which coding, where requests accepted any; the other successful ones came as they are.
    /// Over the client's whole life.
    pub codings: Option<BTreeMap<Coding, CodedResponses>>,
    /// The numbers of changes that responses had, where they should have any, ascending. Over the client's whole life.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSeen>,
    /// The account of the load's slow clients, in the order's order. None of them is in any other number here, but for the CPU time of the
    /// client's process. The first of several clients makes them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_clients: Vec<SlowClients>,
    /// What became of the messages of streams, where responses are streams.
    pub messages: Option<MessageResult>,
    /// What QUIC counted, where it carries the load. Over the client's whole life.
    pub quic: Option<QuicResult>,
    /// How evenly connections were served in the window.
    pub by_connection: Option<ConnectionSpread>,
    /// How long the client's threads stood still in the window, of all threads together.
    pub stalls: Stalls,
    /// Time to connect, all connections of the client's life.
    pub connect: Quantiles,
    /// Time from connected to the end of the TLS handshake, all connections of the client's life.
    pub handshake: Quantiles,
    /// Sent to the response's first byte (of an informational response too), of requests due in the window of which a byte came.
    pub first_byte: Quantiles,
    /// One row a second of the window.
    pub series: Vec<LoadSecond>,
    /// Successful responses in each whole tenth of a second of the window.
    pub tenths: Vec<u64>,
    /// Why requests failed, in words, where there are words for it; most frequent first. Each client thread keeps the first 16 that
    /// differ, and so does the result: of further ones `errors` has only the kind.
    pub reasons: Vec<ErrorReason>,
    /// The errors of each row of `series` that had any, by its second.
    pub errors_by_second: BTreeMap<u32, BTreeMap<ErrorKind, u64>>,
    /// Share of the window that each worker thread spent at work on the CPU (1.0 = saturated).
    pub thread_busy: Vec<f64>,
    /// The window's CPU time of all worker threads, microseconds: user, system.
    pub cpu_us: (u64, u64),
    /// Of `cpu_us`, spent awake and waiting for due times, so as not to be late (open loads only): microseconds.
    /// `thread_busy` does not count it.
    pub busy_poll_us: u64,
    /// How long each worker thread of a closed load slept on after a response, so as to read several at once: the longest of the window,
    /// microseconds. The latency includes it.
    pub coalescing_us: Vec<f64>,
    /// True when the user or the lab cut the load short.
    pub cut_short: bool,
    /// What tells the clients apart, where several made the load; empty for one.
    pub hosts: Vec<ClientOfHost>,
}

impl LoadResult {
    /// How many of these errors there are of each kind, and why most of them happened, where that is known: `timeout 12, protocol 3
    /// (more than 128 headers)`.
    pub fn list_errors<'a>(&self, errors: impl IntoIterator<Item = (&'a ErrorKind, &'a u64)>) -> String {
        let reason = |kind| self.reasons.iter().find(|reason| reason.kind == kind);
        let word = |(kind, n): (&ErrorKind, &u64)| match reason(*kind) {
            Some(ErrorReason { reason, .. }) => format!("{} {n} ({reason})", kind.as_str()),
            None => format!("{} {n}", kind.as_str()),
        };
        errors.into_iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// Why requests failed: how they broke the protocol, or what the server said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReason {
    /// The kind under which they are counted.
    pub kind: ErrorKind,
    /// In words, at most 160 bytes.
    pub reason: String,
    /// Requests of the window that failed so.
    pub window: u64,
    /// Requests of the client's whole life that failed so.
    pub total: u64,
}

impl ErrorReason {
    /// Most of them in a result.
    pub const MOST: usize = 16;

    /// Adds those of another thread or client, and keeps the most frequent.
    pub fn add(sum: &mut Vec<ErrorReason>, more: &[ErrorReason]) {
        for reason in more {
            match sum.iter_mut().find(|one| (one.kind, &one.reason) == (reason.kind, &reason.reason)) {
                Some(one) => (one.window, one.total) = (one.window + reason.window, one.total + reason.total),
                None => sum.push(reason.clone()),
            }
        }
        sum.sort_by_key(|reason| std::cmp::Reverse((reason.window, reason.total)));
        sum.truncate(ErrorReason::MOST);
    }
}

/// Successful responses whose bodies came in one content coding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodedResponses {
    /// How many.
    pub responses: u64,
    /// Bytes of their bodies as they came.
    pub bytes: u64,
    /// The same decoded.
    pub decoded_bytes: u64,
}

impl CodedResponses {
    /// Adds those of another thread or client.
    pub fn add(&mut self, other: &CodedResponses) {
        self.responses += other.responses;
        self.bytes += other.bytes;
        self.decoded_bytes += other.decoded_bytes;
    }
}

/// Samples of the headers of successful responses in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeaderSamples {
    /// How many responses were looked at.
    pub sampled: u64,
    /// How they differed from the window's first.
    pub changes: Vec<HeaderChange>,
    /// `Location` of the first response, if it has one.
    pub location: Option<String>,
}

impl HeaderSamples {
    /// Adds those of another thread or client.
    pub fn add(&mut self, other: &HeaderSamples) {
        self.sampled += other.sampled;
        if self.location.is_none() {
            self.location.clone_from(&other.location);
        }
        for change in &other.changes {
            let same =
                |one: &&mut HeaderChange| (&one.name, &one.was, &one.is) == (&change.name, &change.was, &change.is);
            match self.changes.iter_mut().find(same) {
                Some(one) => (one.samples, one.at_s) = (one.samples + change.samples, one.at_s.min(change.at_s)),
                None => self.changes.push(change.clone()),
            }
        }
    }
}

/// A header that came, went or changed during a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeaderChange {
    /// Its name in lower case.
    pub name: String,
    /// Its value in the window's first response; `None`: it was not there.
    pub was: Option<String>,
    /// Its value later; `None`: it was not there.
    pub is: Option<String>,
    /// When it was first seen so, seconds from the window's start.
    pub at_s: f64,
    /// Samples in which it was seen so.
    pub samples: u64,
}

/// How late the client itself was in an open load. A request that is due while every connection is taken waits for the product,
/// and not for the client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Due to sent, where a connection was free; 0 for requests that waited for one.
    pub lag: Quantiles,
    /// The latency without that: sent to answered, and due to answered of requests that waited for a connection.
    pub latency: Quantiles,
    /// The upper end of the 95 % interval of that latency's p99, µs: so high may it be for the number of requests alone.
    pub p99_to_us: f64,
}

/// Times at which a thread was neither at work nor asleep by its own will for 20 ms and more: stopped, or without a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// Their length together, µs.
    pub total_us: u64,
    /// The longest, µs.
    pub longest_us: u64,
}

impl Stalls {
    /// One more.
    pub fn record(&mut self, us: u64) {
        self.add(&Stalls { count: 1, total_us: us, longest_us: us });
    }

    /// Adds those of another thread or time.
    pub fn add(&mut self, other: &Stalls) {
        self.count += other.count;
        self.total_us += other.total_us;
        self.longest_us = self.longest_us.max(other.longest_us);
    }
}

/// How evenly the connections of a load were served in its window. Each connection counts once, by the mean latency of its
/// responses. In a closed load one without any counts with the window's length; in other loads those with fewer than
/// [`ConnectionSpread::LEAST`] responses do not count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionSpread {
    /// Connections that count.
    pub connections: u64,
    /// Their responses.
    pub responses: u64,
    /// Responses of the one with fewest, and of the one with most.
    pub fewest: u64,
    /// See `fewest`.
    pub most: u64,
    /// A tenth of the connections had this mean latency or less, µs.
    pub p10_us: f64,
    /// Median of their mean latencies, µs.
    pub p50_us: f64,
    /// A tenth had this one or more, µs.
    pub p90_us: f64,
    /// The largest, µs.
    pub max_us: f64,
    /// Connections whose mean latency was more than twice the median.
    pub slow: u64,
}

impl ConnectionSpread {
    /// Responses of a connection that counts in an open load.
    pub const LEAST: u64 = 20;

    /// True when some connections were served much worse than others. The slowest tenth took twice as long as the fastest tenth, or one
    /// took four times as long as the median. There have to be 8 connections with 20 responses each in the mean.
    pub fn is_uneven(&self) -> bool {
        let known = self.connections >= 8 && self.responses >= ConnectionSpread::LEAST * self.connections;
        known && (self.p90_us >= 2.0 * self.p10_us || self.max_us >= 4.0 * self.p50_us)
    }

    /// Adds the connections of another thread or client. Their latencies are not added: those come from a histogram of all.
    pub fn add(&mut self, other: &ConnectionSpread) {
        self.fewest = match (self.connections, other.connections) {
            (0, _) => other.fewest,
            (_, 0) => self.fewest,
            _ => self.fewest.min(other.fewest),
        };
        self.most = self.most.max(other.most);
        self.connections += other.connections;
        self.responses += other.responses;
    }

    /// One more connection.
    pub fn record(&mut self, responses: u64) {
        let one =
            ConnectionSpread { connections: 1, responses, fewest: responses, most: responses, ..Default::default() };
        self.add(&one);
    }
}

/// One of several clients that made a load together. What it did wrong as a client stays its own: one that was late or busy must
/// not vanish among others that were not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientOfHost {
    /// Its host's name.
    pub host: String,
    /// Due to sent, of its requests.
    pub lag: Quantiles,
    /// As [`LoadResult::stalls`], of its threads.
    pub stalls: Stalls,
    /// As [`LoadResult::thread_busy`], of its threads.
    pub thread_busy: Vec<f64>,
    /// Requests due in the window that it sent.
    pub sent: u64,
    /// Successful responses to them.
    pub successful: u64,
    /// Connections that it established in its whole life.
    pub connections: u64,
}

/// Version of [`LoadResult`].
pub const LOAD_SCHEMA: u32 = 1;

/// What TLS came to. What a connection negotiated is counted by its names; more than one means that the peer was not
/// consistent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsResult {
    /// Handshakes completed.
    pub handshakes: u64,
    /// Of them, resumed from a ticket of an earlier connection.
    pub resumed: u64,
    /// Handshakes that failed.
    pub failed: u64,
    /// Connections by version (`TLS 1.3`).
    pub versions: BTreeMap<String, u64>,
    /// Connections by cipher suite (`TLS_AES_128_GCM_SHA256`).
    pub suites: BTreeMap<String, u64>,
    /// Connections by key exchange group (`X25519`).
    pub groups: BTreeMap<String, u64>,
    /// Connections by the kind of the key in the peer's certificate (`P-256`, `RSA`, `other`).
    pub keys: BTreeMap<String, u64>,
}

/// What QUIC and its sockets of datagrams counted, of all connections and threads of a client, handshakes and warm-up with the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicResult {
    /// Connections made.
    pub connections: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Trains in which they came: the kernel hands over several datagrams as one (GRO).
    pub trains_in: u64,
    /// System calls that received some.
    pub receive_calls: u64,
    /// Datagrams for which the kernel had no room.
    pub refused: u64,
    /// Packets sent, several of which may share a datagram.
    pub packets_out: u64,
    /// Packets sent that the peer did not acknowledge in time.
    pub packets_lost: u64,
    /// How often congestion control went back.
    pub congestion_events: u64,
    /// The last estimates of the round-trip time: their mean over all connections, µs.
    pub rtt_us: f64,
    /// The largest datagrams that the path takes, bytes.
    pub mtu: u16,
    /// Requests that waited in the client because their peer allowed no more at a time. The waiting is the client's lag, not the peer's
    /// latency, and is part of both.
    pub waited: u64,
    /// How long they waited in the mean, µs.
    pub waited_us: f64,
    /// How long one waited at most, µs.
    pub longest_wait_us: f64,
}

impl QuicResult {
    /// Adds the counters of another client or thread.
    pub fn add(&mut self, other: &QuicResult) {
        let mean = |a: f64, of: u64, b: f64, more: u64| {
            if of + more > 0 { (a * of as f64 + b * more as f64) / (of + more) as f64 } else { 0.0 }
        };
        self.rtt_us = mean(self.rtt_us, self.connections, other.rtt_us, other.connections);
        self.waited_us = mean(self.waited_us, self.waited, other.waited_us, other.waited);
        self.connections += other.connections;
        self.datagrams_out += other.datagrams_out;
        self.send_calls += other.send_calls;
        self.datagrams_in += other.datagrams_in;
        self.trains_in += other.trains_in;
        self.receive_calls += other.receive_calls;
        self.refused += other.refused;
        self.packets_out += other.packets_out;
        self.packets_lost += other.packets_lost;
        self.congestion_events += other.congestion_events;
        self.mtu = self.mtu.max(other.mtu);
        self.waited += other.waited;
        self.longest_wait_us = self.longest_wait_us.max(other.longest_wait_us);
    }
}

/// What became of one kind of request: of those due in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestResult {
    /// Method and path, as ordered, or the operation.
    pub name: String,
    /// Requests sent.
    pub sent: u64,
    /// Successful responses.
    pub successful: u64,
    /// Requests that were sent and got no successful response.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// Due to answered, as [`LoadResult::latency`].
    pub latency: Quantiles,
}

/// What happened to requests. Every due request ends as exactly one of three: `due = right + errors + unsent`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Requests that were due.
    pub due: u64,
    /// Requests handed to the kernel.
    pub sent: u64,
    /// Due and never sent: no connection was free before the client gave up.
    pub unsent: u64,
    /// Successful responses, whenever they came.
    pub successful: u64,
    /// Successful responses that came inside the window.
    pub successful_in_window: u64,
    /// Requests without a successful response, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Body bytes of successful responses that came inside the window.
    pub successful_body_bytes_in_window: u64,
    /// Body bytes of all responses.
    pub body_bytes: u64,
    /// Successful responses that were complete before all of their request was sent.
    pub early: u64,
    /// All bytes received, heads included; under TLS as they came: records and handshakes.
    pub bytes_in: u64,
    /// All bytes received, heads included, after decryption; without TLS the same as `bytes_in`.
    pub plaintext_in: u64,
    /// All bytes handed to the kernel.
    pub bytes_out: u64,
    /// Connections opened (established).
    pub connections: u64,
    /// Connections the peer closed between responses, which is its right.
    pub closed_by_peer: u64,
    /// Attempts to connect that failed, whether or not a request was waiting for the connection. A request that
    /// was waiting is also among `errors`.
    pub connect_failures: u64,
}

impl Counts {
    /// Requests without a successful response, all kinds; unsent ones are not among them.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Responses that refused the request, by status (429 and 5xx), unless such a status is the right one.
    pub fn refused_by_status(&self) -> BTreeMap<u16, u64> {
        let mut bad = self.errors.get(&ErrorKind::BadStatus).copied().unwrap_or(0);
        let refused = self.statuses.iter().filter(|(status, _)| **status == 429 || **status >= 500);
        let of_bad = refused.map(|(status, n)| {
            let refused = bad.min(*n);
            bad -= refused;
            (*status, refused)
        });
        of_bad.filter(|(_, n)| *n > 0).collect()
    }

    /// Requests that the server refused: by a response, by a reset, or by ending the connection early.
    pub fn refusals(&self) -> u64 {
        let hung_up = self.errors.iter().filter(|(kind, _)| kind.is_refusal()).map(|(_, n)| n);
        hung_up.sum::<u64>() + self.refused_by_status().values().sum::<u64>()
    }

    /// Requests that got a wrong response ([`ErrorKind::WRONG`]). Data of key-value servers that cannot be right is not among them, nor is
    /// what was refused.
    pub fn wrong_responses(&self) -> u64 {
        let of = |kind| self.errors.get(kind).copied().unwrap_or(0);
        let refused: u64 = self.refused_by_status().values().sum();
        ErrorKind::WRONG.iter().map(of).sum::<u64>() - refused
    }

    /// Adds another thread's or window's counts.
    pub fn add(&mut self, other: &Counts) {
        self.due += other.due;
        self.sent += other.sent;
        self.unsent += other.unsent;
        self.successful += other.successful;
        self.successful_in_window += other.successful_in_window;
        for (kind, n) in &other.errors {
            *self.errors.entry(*kind).or_default() += n;
        }
        for (status, n) in &other.statuses {
            *self.statuses.entry(*status).or_default() += n;
        }
        self.successful_body_bytes_in_window += other.successful_body_bytes_in_window;
        self.body_bytes += other.body_bytes;
        self.early += other.early;
        self.bytes_in += other.bytes_in;
        self.plaintext_in += other.plaintext_in;
        self.bytes_out += other.bytes_out;
        self.connections += other.connections;
        self.closed_by_peer += other.closed_by_peer;
        self.connect_failures += other.connect_failures;
    }
}

/// A distribution in microseconds. Percentiles come from an HDR histogram (1 µs to 1 h, 3 significant digits).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Samples.
    pub count: u64,
    /// Smallest, µs.
    pub min_us: f64,
    /// Arithmetic mean, µs.
    pub mean_us: f64,
    /// Standard deviation, µs.
    pub stdev_us: f64,
    /// Median, µs.
    pub p50_us: f64,
    /// 75th percentile, µs.
    pub p75_us: f64,
    /// 90th percentile, µs.
    pub p90_us: f64,
    /// 95th percentile, µs.
    pub p95_us: f64,
    /// 99th percentile, µs.
    pub p99_us: f64,
    /// 99.9th percentile, µs.
    pub p999_us: f64,
    /// 99.99th percentile, µs.
    pub p9999_us: f64,
    /// Largest, µs.
    pub max_us: f64,
}

impl Quantiles {
    /// The sum of all times, seconds. Over the length in which they ended it is how many were under way (Little's law).
    pub fn total_s(&self) -> f64 {
        self.count as f64 * self.mean_us / 1e6
    }
}

/// One second of a load. Requests are counted in the second in which they were due (`due`), sent (`sent`) or
/// answered (all others).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSecond {
    /// Seconds since the window's start, 0-based.
    pub second: u32,
    /// Length of this row in seconds; only the last may be shorter than 1.
    pub length_s: f64,
    /// Requests due.
    pub due: u64,
    /// Requests sent.
    pub sent: u64,
    /// Successful responses.
    pub successful: u64,
    /// Responses or requests that failed.
    pub errors: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Latency of what was due in the window and ended in this second (in a row of the warm-up: of all that ended
    /// in it): median, µs.
    pub p50_us: f64,
    /// 99th percentile, µs.
    pub p99_us: f64,
    /// Largest, µs.
    pub max_us: f64,
    /// Requests in flight in the mean: the sum of these latencies over the length of the row (Little's law).
    pub in_flight: f64,
    /// Largest lag, µs.
    pub lag_max_us: f64,
    /// Connections open at the end of the row, over all threads: those whose making is complete (a TLS handshake may still
    /// go on) and which have not been closed or lost. `None`: not recorded, or not every thread came to the row's end.
    pub connections_open: Option<u32>,
    /// How long the client's threads stood still, of all threads together, µs ([`Stalls`]).
    pub stalled_us: u64,
}
