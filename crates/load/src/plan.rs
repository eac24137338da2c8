//! An order made ready for the workers: the request's bytes, what a right answer is, and how the load is shared
//! out among threads.

use std::net::{IpAddr, SocketAddr};

use weir_model::load::{Ask, Endpoint, LoadSpec, Shape, Spread, Target};
use weir_net::Address;
use weir_wire::h1::encode;

use crate::check::Check;
use crate::clock::from_secs;
use crate::error::LoadError;
use crate::place;

/// Bodies from this size are sent from where they lie; smaller ones are cheaper to copy behind the head.
const BODY_IN_PLACE: usize = 4096;

/// Connections that one thread makes at a time, and all together: few enough for any listen queue that is not tiny.
const CONNECTING_AT_ONCE: u32 = 512;
const CONNECTING_IN_ALL: u32 = 2048;

/// A day: longer than any load, and short enough that sums of times cannot overflow.
const LONGEST_S: f64 = 86_400.0;

/// What all workers share and none changes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub target: SocketAddr,
    pub address: Address,
    /// The request, or its head when `body` has the rest.
    pub bytes: Vec<u8>,
    pub body: Option<&'static [u8]>,
    /// It is a HEAD request.
    pub head: bool,
    pub check: Check,
    pub shape: Shape,
    pub connections: u32,
    pub threads: u32,
    /// Nanoseconds.
    pub warmup: u64,
    pub duration: u64,
    pub timeout: u64,
    pub seed: u64,
    /// A new connection for every request.
    pub close: bool,
    /// Requests that a connection may have in flight.
    pub lanes: u32,
    /// Requests that a connection may carry in its life.
    pub room: u64,
    pub think: Option<Spread>,
    /// Whether there are think times.
    pub thinks: bool,
    /// Connections that one thread makes at a time.
    pub connecting_at_once: u32,
    /// Nanoseconds between one thread's attempts to connect, while the first connections are made.
    pub connect_gap: Option<f64>,
    /// Source addresses, used in turn.
    pub sources: Vec<Option<IpAddr>>,
    /// CPUs, used in turn; empty for any.
    pub cpus: Vec<u32>,
}

/// One thread's share of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub thread: u32,
    /// The thread's first connection among all.
    pub first: u32,
    pub connections: u32,
    /// Requests of a counted load.
    pub requests: u64,
}

impl Plan {
    /// Checks the order and the host.
    ///
    /// # Errors
    /// What of the order cannot be, and what the host lacks for it.
    pub(crate) fn new(spec: &LoadSpec, ports: (u16, u16)) -> Result<Plan, LoadError> {
        check_numbers(spec)?;
        let wished = match spec.threads {
            0 => spec.cpus.len().max(1) as u32,
            n => n,
        };
        let threads = wished.min(spec.connections);
        let (target, ask) = only(spec)?;
        place::descriptors(spec.connections, threads, spec.connection_close)?;
        let sources = place::sources(target, spec.connections, spec.connection_close, ports)?;
        let (bytes, body) = request(spec, ask)?;
        let head = ask.request.method == "HEAD";
        let counted = matches!(spec.shape, Shape::Count { .. });
        Ok(Plan {
            target,
            address: target.into(),
            bytes,
            body,
            head,
            check: Check::new(&ask.expect, head),
            shape: spec.shape.clone(),
            connections: spec.connections,
            threads,
            warmup: if counted { 0 } else { from_secs(spec.warmup_s) },
            duration: from_secs(spec.duration_s),
            timeout: from_secs(spec.timeout_s),
            seed: spec.seed,
            close: spec.connection_close,
            lanes: spec.http.lanes(),
            room: if spec.connection_close { 1 } else { spec.requests_per_connection.unwrap_or(u64::MAX) },
            think: spec.think,
            thinks: spec.think.is_some(),
            connecting_at_once: (CONNECTING_IN_ALL / threads).clamp(64, CONNECTING_AT_ONCE),
            connect_gap: spec.connect_rate.map(|rate| 1e9 * f64::from(threads) / rate),
            sources,
            cpus: spec.cpus.clone(),
        })
    }

    /// What each thread does. Connections and requests are split evenly; the first threads take the remainder.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let requests = match self.shape {
            Shape::Count { requests } => requests,
            _ => 0,
        };
        let threads = u64::from(self.threads);
        let part = |all: u64, i: u64| all / threads + u64::from(i < all % threads);
        let mut first = 0;
        (0..self.threads)
            .map(|thread| {
                let connections = part(u64::from(self.connections), u64::from(thread)) as u32;
                let share = Share { thread, first, connections, requests: part(requests, u64::from(thread)) };
                first += connections;
                share
            })
            .collect()
    }

    /// Where a connection goes, by its number among all.
    pub(crate) fn address(&self, _connection: u32) -> &Address {
        &self.address
    }

    /// Source address of a connection, by its number among all, and how many its thread made before. Connections that
    /// are kept keep their address too, so that none gets more than it has ports for; others take one after another.
    pub(crate) fn source(&self, connection: u32, made: u64) -> Option<IpAddr> {
        let connection = if self.close { made as u32 } else { connection };
        self.sources[connection as usize % self.sources.len()]
    }
}

fn check_numbers(spec: &LoadSpec) -> Result<(), LoadError> {
    let wrong = |what: String| Err(LoadError::Order(what));
    if spec.connections == 0 {
        return wrong("0 connections; at least 1 is needed".into());
    }
    for (name, value, least) in
        [("warm-up", spec.warmup_s, 0.0), ("duration", spec.duration_s, 0.001), ("timeout", spec.timeout_s, 0.001)]
    {
        if !(least..=LONGEST_S).contains(&value) {
            return wrong(format!("{name} of {value} s; between {least} and {LONGEST_S} s would be right"));
        }
    }
    match spec.shape {
        Shape::Open { rate, .. } if !(rate > 0.0 && rate <= 1e9) => {
            wrong(format!("rate of {rate} requests/s; above 0 and at most 1e9 would be right"))
        }
        Shape::Count { requests: 0 } => wrong("0 requests; at least 1 is needed".into()),
        _ => Ok(()),
    }
}

/// The one target and the one request.
fn only(spec: &LoadSpec) -> Result<(SocketAddr, &Ask), LoadError> {
    match (&spec.targets[..], &spec.requests[..]) {
        ([Target { address: Endpoint::Tcp(address), .. }], [ask]) => Ok((*address, ask)),
        _ => Err(LoadError::Order("one TCP target and one request are what is understood as yet".into())),
    }
}

/// The request's bytes, whole or as head and body.
fn request(spec: &LoadSpec, ask: &Ask) -> Result<(Vec<u8>, Option<&'static [u8]>), LoadError> {
    let given = |name: &str| ask.request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut headers: Vec<(&str, &str)> = Vec::new();
    if !given("host") {
        headers.push(("Host", &spec.targets[0].authority));
    }
    let length = ask.request.body.len().to_string();
    headers.extend(
        ask.request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            // The encoder writes it; a wrong one is left in for the encoder to refuse.
            .filter(|(name, value)| !(name.eq_ignore_ascii_case("content-length") && *value == length)),
    );
    if spec.connection_close && !given("connection") {
        headers.push(("Connection", "close"));
    }
    let body = &ask.request.body;
    let mut bytes = Vec::new();
    encode::request(&mut bytes, &ask.request.method, &ask.request.path, &headers, body)
        .map_err(|error| LoadError::Order(format!("the request cannot be sent: {error}")))?;
    if body.len() < BODY_IN_PLACE {
        return Ok((bytes, None));
    }
    bytes.truncate(bytes.len() - body.len());
    // The drivers take bodies that live for ever, since the kernel may read them after the worker has moved on.
    // One body a load is given away.
    Ok((bytes, Some(Vec::leak(body.clone()))))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use weir_model::suite::{Arrivals, Expect, Request};

    pub(crate) fn spec() -> LoadSpec {
        let target = Target::tcp("127.0.0.1:1".parse().unwrap(), "origin.test");
        let request = Request { method: "GET".into(), path: "/x?y=1".into(), headers: vec![], body: vec![] };
        LoadSpec::new(target, request, Expect::default())
    }

    const PORTS: (u16, u16) = (32768, 60999);

    fn plan(spec: &LoadSpec) -> Plan {
        Plan::new(spec, PORTS).unwrap()
    }

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        let mut spec = spec();
        spec.connections = 10;
        spec.threads = 4;
        spec.shape = Shape::Count { requests: 1_003 };
        let shares = plan(&spec).shares();
        let column = |f: fn(&Share) -> u64| shares.iter().map(f).collect::<Vec<_>>();
        assert_eq!(column(|s| s.connections.into()), [3, 3, 2, 2]);
        assert_eq!(column(|s| s.first.into()), [0, 3, 6, 8]);
        assert_eq!(column(|s| s.requests), [251, 251, 251, 250]);
    }

    #[test]
    fn no_more_threads_than_connections_and_one_for_each_cpu_unless_told() {
        let mut spec = spec();
        spec.connections = 3;
        spec.threads = 8;
        assert_eq!(plan(&spec).threads, 3);
        spec.threads = 0;
        assert_eq!(plan(&spec).threads, 1);
        spec.cpus = vec![0, 1];
        assert_eq!(plan(&spec).threads, 2);
    }

    #[test]
    fn the_request_gets_what_it_lacks_and_nothing_twice() {
        let mut spec = spec();
        let text = |spec: &LoadSpec| String::from_utf8(plan(spec).bytes).unwrap();
        assert_eq!(text(&spec), "GET /x?y=1 HTTP/1.1\r\nHost: origin.test\r\n\r\n");
        spec.requests[0].request.headers = vec![("HOST".into(), "other".into())];
        spec.connection_close = true;
        let with = text(&spec);
        assert!(with.contains("HOST: other\r\nConnection: close\r\n"), "{with}");
        assert!(!with.contains("origin.test"), "{with}");
    }

    #[test]
    fn large_bodies_are_not_copied() {
        let mut spec = spec();
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = b"small".to_vec();
        assert!(plan(&spec).bytes.ends_with(b"\r\n\r\nsmall"));
        assert!(plan(&spec).body.is_none());
        spec.requests[0].request.body = vec![7; 100_000];
        let plan = plan(&spec);
        assert!(plan.bytes.ends_with(b"\r\n\r\n"));
        assert_eq!(plan.body.map(<[u8]>::len), Some(100_000));
    }

    #[test]
    fn wrong_orders_say_what_would_be_right() {
        let open = |rate| Shape::Open { rate, arrivals: Arrivals::Constant };
        type Change = fn(&mut LoadSpec);
        let cases: &[(Change, &str)] = &[
            (|s| s.connections = 0, "at least 1"),
            (|s| s.duration_s = 0.0, "duration of 0 s"),
            (|s| s.timeout_s = f64::NAN, "timeout of NaN s"),
            (|s| s.warmup_s = -1.0, "warm-up of -1 s"),
            (|s| s.shape = Shape::Count { requests: 0 }, "0 requests"),
            (|s| s.requests[0].request.method = "G T".into(), "cannot be sent"),
        ];
        for (change, text) in cases {
            let mut spec = spec();
            change(&mut spec);
            let error = Plan::new(&spec, PORTS).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut spec = spec();
            spec.shape = open(rate);
            assert!(Plan::new(&spec, PORTS).is_err());
        }
    }
}
