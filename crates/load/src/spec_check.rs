//! Rejects a load specification that makes no sense, with a text that says what would be right. `capacity` checks the
//! host.

use std::net::IpAddr;

use weir_model::keyvalue::Operation;
use weir_model::load::{
    Bursts, Endpoint, LONGEST_S, LoadProtocol, LoadSpec, OfferedRate, PacedMessages, RandomDuration, RequestSpec,
    StreamKind, Target,
};
use weir_model::protocol::Protocol;
use weir_model::suite::LoadKind;

use crate::error::SpecError;
use crate::keyvalue::COUNT_BITS;
use crate::schedule;

/// The least time after which connections are recycled, s; deadlines are kept to 10 ms.
const LEAST_AGE_S: f64 = 0.01;

/// More requests in flight on one connection are taken for a typing error.
const MAX_STREAMS: u32 = 65_535;

/// More streams in total would need gigabytes of memory.
const MAX_STREAMS_IN_ALL: u64 = 1 << 24;

/// More keys have no numbers of their own.
const MOST_KEYS: u64 = 1 << COUNT_BITS;

/// More keys that the connections keep track of would need gigabytes of memory.
const MOST_OWNED: u64 = 100_000_000;

/// Checks a specification.
///
/// # Errors
/// The first mistake, as text for people.
pub(crate) fn check(spec: &LoadSpec) -> Result<(), SpecError> {
    connections(spec)?;
    times(spec)?;
    schedule::check(&spec.kind)?;
    requests(spec)?;
    streams(spec)?;
    lives(spec)?;
    names(spec)?;
    coding(spec)?;
    streams_of_messages(spec)?;
    keys_and_values(spec)?;
    thinking(spec)?;
    bursts(spec)?;
    sources(spec)
}

/// Returns an error unless the condition holds.
fn must(so: bool, wrong: impl FnOnce() -> String) -> Result<(), SpecError> {
    if so { Ok(()) } else { Err(wrong().into()) }
}

fn connections(spec: &LoadSpec) -> Result<(), SpecError> {
    must(spec.connections > 0, || "0 connections; at least 1 is needed".into())?;
    if let Some(most) = spec.max_connections {
        must(spec.kind.is_open(), || {
            "a largest number of connections is for open loads: in others every connection has a request at all times, and \
             more would be another load"
                .into()
        })?;
        must(most >= spec.connections, || {
            format!("at most {most} connections, and {} to begin with; expected: at least as many", spec.connections)
        })?;
    }
    part(spec)?;
    let plain = matches!(spec.protocol, LoadProtocol::Http1 { .. }) && spec.stream.is_none();
    must(spec.slow_clients.is_empty() || plain && spec.targets.iter().all(Target::is_tcp), || {
        "slow clients beside another load than one of HTTP/1.1 over TCP, which they speak; expected: one of both".into()
    })?;
    if let Some(rate) = spec.connect_rate {
        must(rate > 0.0 && rate.is_finite(), || format!("{rate} attempts to connect a second; expected: more than 0"))?;
    }
    Ok(())
}

/// A part is one of threads that all clients count alike.
fn part(spec: &LoadSpec) -> Result<(), SpecError> {
    let Some(part) = spec.part else { return Ok(()) };
    must((1..=spec.connections).contains(&spec.threads), || {
        format!(
            "{} threads of all clients, and {} connections; expected: at least 1 thread and at most one for each connection",
            spec.threads, spec.connections
        )
    })?;
    let end = part.first_thread.checked_add(part.threads);
    must(part.threads > 0 && end.is_some_and(|end| end <= spec.threads), || {
        format!(
            "a part of {} threads from thread {} on, of {}; expected: at least 1, of those that there are",
            part.threads, part.first_thread, spec.threads
        )
    })
}

fn times(spec: &LoadSpec) -> Result<(), SpecError> {
    for (name, value, least) in [
        ("warm-up", spec.warmup_s, 0.0),
        ("duration", spec.duration_s, 0.001),
        ("timeout", spec.timeout_s, 0.001),
        ("time to connect", spec.connect_timeout_s.unwrap_or(spec.timeout_s), 0.001),
    ] {
        must((least..=LONGEST_S).contains(&value), || {
            format!("{name} of {value} s; expected: between {least} and {LONGEST_S} s")
        })?;
    }
    Ok(())
}

fn requests(spec: &LoadSpec) -> Result<(), SpecError> {
    must(!spec.targets.is_empty(), || "no target; at least 1 is needed".into())?;
    must(!spec.requests.is_empty(), || "no request; at least 1 is needed".into())?;
    for (number, request) in (1..).zip(&spec.requests) {
        must((request.target as usize) < spec.targets.len(), || {
            format!("request {number} goes to target {}, of {} (from 0)", request.target, spec.targets.len())
        })?;
        must(request.weight > 0, || format!("request {number} has weight 0; at least 1 is needed, or leave it out"))?;
    }
    if let LoadKind::Open { rate: OfferedRate::Recorded(recorded), .. } = &spec.kind {
        must(spec.targets.len() == 1, || format!("recorded requests for {} targets; expected: 1", spec.targets.len()))?;
        let unknown = recorded.iter().find(|due| due.request as usize >= spec.requests.len());
        must(unknown.is_none(), || "a recorded request that is none of the load's; expected: an index of one".into())?;
    }
    for (index, target) in spec.targets.iter().enumerate() {
        let asked = spec.requests.iter().any(|request| request.target as usize == index);
        must(asked, || format!("target {} has no request; give it one or leave it out", target.address))?;
    }
    Ok(())
}

fn streams(spec: &LoadSpec) -> Result<(), SpecError> {
    let (what, streams) = match spec.protocol {
        LoadProtocol::Http1 { pipeline } | LoadProtocol::Redis { pipeline } | LoadProtocol::Memcached { pipeline } => {
            ("pipelined requests", pipeline)
        }
        LoadProtocol::Http2 { streams } | LoadProtocol::Http3 { streams } => ("streams", streams),
        LoadProtocol::Juno { streams } => ("requests in flight", streams),
    };
    must((1..=MAX_STREAMS).contains(&streams), || {
        format!("{streams} {what} a connection; expected: 1 to {MAX_STREAMS}")
    })?;
    let most = spec.max_connections.unwrap_or(spec.connections);
    must(u64::from(streams) * u64::from(most) <= MAX_STREAMS_IN_ALL, || {
        format!("{most} connections with {streams} {what} each; expected: at most {MAX_STREAMS_IN_ALL} in all")
    })
}

/// How many requests a connection carries before it is closed.
fn lives(spec: &LoadSpec) -> Result<(), SpecError> {
    must(spec.requests_per_connection != Some(0), || "0 requests a connection; at least 1 is needed".into())?;
    if let Some(age) = spec.recycle_s {
        must((LEAST_AGE_S..=LONGEST_S).contains(&age), || {
            format!("connections of at most {age} s; expected: between {LEAST_AGE_S} and {LONGEST_S} s")
        })?;
    }
    if !spec.connection_close {
        return Ok(());
    }
    match spec.protocol {
        LoadProtocol::Http1 { pipeline: 1 } => {}
        LoadProtocol::Http1 { .. } => {
            return Err("a connection that closes after its first response cannot have more requests pipelined".into());
        }
        _ => {
            return Err("`Connection: close` is of HTTP/1.1; elsewhere, 1 request a connection does the same".into());
        }
    }
    must(matches!(spec.requests_per_connection, None | Some(1)), || {
        "a new connection for every request leaves no more than 1 request a connection; ask for one or the other".into()
    })
}

/// Names are of HTTP, and in a header of their own.
fn names(spec: &LoadSpec) -> Result<(), SpecError> {
    let Some(names) = &spec.request_ids else { return Ok(()) };
    must(!spec.protocol.application().is_keyvalue(), || {
        format!("request IDs are for HTTP; {} has no headers", spec.protocol.application().id())
    })?;
    let taken = spec.requests.iter().any(|request| request.request.header(&names.header).is_some());
    must(!taken, || format!("a request has a header {} already; expected: another one for its name", names.header))
}

/// Streams are read as they come, in HTTP, and a response without a body is none.
fn streams_of_messages(spec: &LoadSpec) -> Result<(), SpecError> {
    must(spec.cancel_each != Some(0), || "one stream in 0 to cancel; expected: 1 or more".into())?;
    must(spec.cancel_each.is_none() || spec.stream.is_some_and(|stream| stream.kind.in_responses()), || {
        "streams to cancel, and responses are none; expected: a kind of stream, such as sse".into()
    })?;
    let Some(stream) = spec.stream else { return Ok(()) };
    let kind = stream.kind.as_str();
    must(!spec.protocol.application().is_keyvalue(), || {
        format!("streams of {kind} are for HTTP; {} has none", spec.protocol.application().id())
    })?;
    if let Some(needed) = stream.kind.application() {
        must(spec.protocol.application() == needed, || {
            format!("streams of {kind} over {}; expected: {}", spec.protocol.application().id(), needed.id())
        })?;
    }
    let changes = |request: &&RequestSpec| request.template && request.request.body.windows(2).any(|two| two == b"{{");
    must(stream.kind != StreamKind::Grpc || !spec.requests.iter().any(|request| changes(&request)), || {
        "a message of grpc with fields, whose length stands before it; expected: a body without {{".into()
    })?;
    for request in spec.requests.iter().filter(|_| stream.kind == StreamKind::Grpc) {
        PacedMessages::of(&request.request.path).transpose()?;
    }
    must(!spec.is_broadcast() || (spec.threads <= 1 && spec.part.is_none()), || {
        "a broadcast from several threads or clients; expected: one, which sees each message on every connection".into()
    })?;
    must(!spec.is_broadcast() || !spec.is_single_use(), || {
        "a broadcast with a connection for each message; expected: connections that stay".into()
    })?;
    must(stream.kind.in_responses() || spec.request_ids.is_none(), || {
        format!("messages of {kind} with request IDs, for which they have no header; expected: none")
    })?;
    must(spec.accept_encoding.is_none(), || {
        format!(
            "streams of {kind} in a content coding; expected: one of the two, because messages are read as they come"
        )
    })?;
    let head = spec.requests.iter().any(|request| request.request.method == "HEAD");
    must(!head, || {
        format!("a request HEAD for a stream of {kind}, whose response has no messages; expected: GET or POST")
    })
}

/// Codings are of HTTP, and asked for once.
fn coding(spec: &LoadSpec) -> Result<(), SpecError> {
    let Some(coding) = spec.accept_encoding else { return Ok(()) };
    must(!spec.protocol.application().is_keyvalue(), || {
        format!("answers in {} are for HTTP; {} has no headers", coding.as_str(), spec.protocol.application().id())
    })?;
    let given = spec.requests.iter().any(|request| request.request.header("accept-encoding").is_some());
    must(!given, || {
        format!("a request has a header Accept-Encoding already; expected: that, or responses in {}", coding.as_str())
    })
}

/// Keys and values are asked for in their protocols, and they fit the connections.
fn keys_and_values(spec: &LoadSpec) -> Result<(), SpecError> {
    let application = spec.protocol.application();
    let Some(keyvalue) = &spec.keyvalue else {
        return must(!application.is_keyvalue(), || {
            format!("{} asks for keys and values, and the load has none", application.id())
        });
    };
    let mut protocols = Protocol::all().filter(|protocol| protocol.application() == application);
    let protocol = protocols.find(|protocol| protocol.is_tls() == spec.tls.is_some() && protocol.is_keyvalue());
    let protocol = protocol.ok_or_else(|| format!("keys and values are not asked for in {}", application.id()))?;
    keyvalue
        .check(protocol)
        .map_err(|(key, found, wanted)| format!("{key} of keys and values: {found}; expected: {wanted}"))?;
    for (number, request) in (1..).zip(&spec.requests) {
        request.request.method.parse::<Operation>().map_err(|error| format!("request {number}: {error}"))?;
    }
    let (keys, connections) =
        (keyvalue.known().max(keyvalue.preload), spec.max_connections.unwrap_or(spec.connections));
    must(keys <= MOST_KEYS, || format!("{keys} keys; expected: at most {MOST_KEYS}"))?;
    must(keyvalue.share || keys <= MOST_OWNED, || {
        format!("{keys} keys to keep track of; expected: at most {MOST_OWNED}, or keys that all connections share")
    })?;
    let at_once = u64::from(connections) * u64::from(spec.protocol.streams());
    must(keyvalue.known() == 0 || keyvalue.share || keyvalue.known() >= at_once, || {
        format!(
            "{} keys for {connections} connections with {} requests in flight each; expected: at least {at_once} keys, \
             because each belongs to one connection and is in one request at a time, or keys that all share",
            keyvalue.known(),
            spec.protocol.streams(),
        )
    })
}

fn thinking(spec: &LoadSpec) -> Result<(), SpecError> {
    let Some(think) = spec.think else {
        return Ok(());
    };
    must(!spec.kind.is_open(), || {
        "think times are for closed and counted loads: in open ones requests are due whatever was answered".into()
    })?;
    let fits = |s: f64| (0.0..=LONGEST_S).contains(&s);
    let right = match think {
        RandomDuration::Constant { s } => fits(s),
        RandomDuration::Uniform { from_s, to_s } => fits(from_s) && fits(to_s) && from_s <= to_s,
        RandomDuration::Exponential { mean_s } => fits(mean_s),
    };
    must(right, || format!("think times of {think}; expected: 0 to {LONGEST_S} s"))
}

fn bursts(spec: &LoadSpec) -> Result<(), SpecError> {
    let Some(Bursts { on_s, off_s }) = spec.bursts else { return Ok(()) };
    must(matches!(spec.kind, LoadKind::Closed | LoadKind::Open { rate: OfferedRate::Constant(_), .. }), || {
        "bursts are for closed loads and for those of one rate".into()
    })?;
    must([on_s, off_s].iter().all(|s| (0.001..=LONGEST_S).contains(s)), || {
        format!("bursts of {on_s} s and rests of {off_s} s; expected: 0.001 to {LONGEST_S} s")
    })
}

fn sources(spec: &LoadSpec) -> Result<(), SpecError> {
    for source in &spec.sources {
        for target in &spec.targets {
            match &target.address {
                Endpoint::Unix(_) => {
                    return Err(format!("{} is a unix socket, which has no source addresses", target.address).into());
                }
                Endpoint::Tcp(address) if family(address.ip()) != family(*source) => {
                    return Err(format!(
                        "{address} cannot be reached from {source}; expected: an {} source address",
                        family(address.ip())
                    )
                    .into());
                }
                Endpoint::Tcp(_) => {}
            }
        }
    }
    Ok(())
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{keyvalue_spec, spec};
    use weir_model::coding::Coding;
    use weir_model::keyvalue::{KeyChoice, KeyValue, ValueSize};
    use weir_model::load::{Part, RequestIds, RequestSpec, StreamKind, StreamSpec, Target};
    use weir_model::suite::{Arrivals, LoadKind};

    const SSE: StreamSpec = StreamSpec { kind: StreamKind::Sse, one_clock: true };

    #[test]
    fn wrong_orders_say_what_would_be_right() {
        type Change = fn(&mut LoadSpec);
        let cases: &[(Change, &str)] = &[
            (|s| s.connections = 0, "at least 1"),
            (|s| s.max_connections = Some(2), "for open loads"),
            (
                |s| {
                    s.kind = LoadKind::open(1.0, Arrivals::Constant);
                    s.connections = 5;
                    s.max_connections = Some(4);
                },
                "at most 4 connections, and 5",
            ),
            (|s| (s.part, s.threads) = (Some(Part { first_thread: 0, threads: 1 }), 0), "0 threads of all clients"),
            (
                |s| (s.part, s.threads) = (Some(Part { first_thread: 0, threads: 1 }), 2),
                "2 threads of all clients, and 1",
            ),
            (|s| (s.part, s.threads) = (Some(Part { first_thread: 0, threads: 0 }), 1), "a part of 0 threads"),
            (|s| (s.part, s.threads) = (Some(Part { first_thread: 1, threads: 1 }), 1), "from thread 1 on, of 1"),
            (|s| s.connect_rate = Some(0.0), "attempts to connect"),
            (|s| s.duration_s = 0.0, "duration of 0 s"),
            (|s| s.timeout_s = f64::NAN, "timeout of NaN s"),
            (|s| s.warmup_s = -1.0, "warm-up of -1 s"),
            (|s| s.kind = LoadKind::Count { requests: 0 }, "0 requests"),
            (|s| s.kind = LoadKind::open(0.0, Arrivals::Constant), "rate of 0"),
            (|s| s.targets.clear(), "no target"),
            (|s| s.requests.clear(), "no request"),
            (|s| s.requests[0].target = 1, "goes to target 1, of 1"),
            (|s| s.requests[0].weight = 0, "weight 0"),
            (|s| s.targets.push(Target::tcp("127.0.0.1:2".parse().unwrap(), "b")), "127.0.0.1:2 has no request"),
            (|s| s.protocol = LoadProtocol::Http1 { pipeline: 0 }, "0 pipelined requests"),
            (|s| s.protocol = LoadProtocol::Http2 { streams: 70_000 }, "70000 streams"),
            (
                |s| {
                    s.protocol = LoadProtocol::Http2 { streams: 65_535 };
                    s.connections = 20_000;
                },
                "in all",
            ),
            (
                |s| {
                    s.protocol = LoadProtocol::Http2 { streams: 1 };
                    s.connection_close = true;
                },
                "of HTTP/1.1",
            ),
            (
                |s| {
                    s.protocol = LoadProtocol::Http1 { pipeline: 2 };
                    s.connection_close = true;
                },
                "pipelined",
            ),
            (
                |s| {
                    s.requests_per_connection = Some(2);
                    s.connection_close = true;
                },
                "one or the other",
            ),
            (|s| s.requests_per_connection = Some(0), "0 requests a connection"),
            (
                |s| {
                    s.request_ids = Some(RequestIds::new("x-id".into(), 1, true));
                    s.requests[0].request.headers = vec![("X-Id".into(), "1".into())];
                },
                "a header x-id already",
            ),
            (
                |s| {
                    s.request_ids = Some(RequestIds::new("x-id".into(), 1, true));
                    s.protocol = LoadProtocol::Redis { pipeline: 1 };
                },
                "redis has no headers",
            ),
            (
                |s| {
                    s.accept_encoding = Some(Coding::Gzip);
                    s.requests[0].request.headers = vec![("accept-encoding".into(), "br".into())];
                },
                "a header Accept-Encoding already",
            ),
            (
                |s| {
                    s.accept_encoding = Some(Coding::Gzip);
                    s.protocol = LoadProtocol::Redis { pipeline: 1 };
                },
                "redis has no headers",
            ),
            (|s| (s.stream, s.accept_encoding) = (Some(SSE), Some(Coding::Gzip)), "sse in a content coding"),
            (|s| (s.stream, s.requests[0].request.method) = (Some(SSE), "HEAD".into()), "expected: GET or POST"),
            (|s| (s.stream, s.protocol) = (Some(SSE), LoadProtocol::Redis { pipeline: 1 }), "redis has none"),
            (|s| s.recycle_s = Some(0.0), "connections of at most 0 s"),
            (|s| s.recycle_s = Some(f64::NAN), "connections of at most NaN s"),
            (
                |s| {
                    s.kind = LoadKind::open(1.0, Arrivals::Constant);
                    s.think = Some(RandomDuration::Constant { s: 1.0 });
                },
                "think times are for",
            ),
            (|s| s.think = Some(RandomDuration::Constant { s: f64::NAN }), "think times of"),
            (|s| s.bursts = Some(Bursts { on_s: 0.0, off_s: 1.0 }), "bursts of 0 s"),
            (
                |s| {
                    s.kind = LoadKind::Count { requests: 1 };
                    s.bursts = Some(Bursts { on_s: 1.0, off_s: 1.0 });
                },
                "bursts are for",
            ),
            (|s| s.think = Some(RandomDuration::Uniform { from_s: 2.0, to_s: 1.0 }), "think times of"),
            (|s| s.sources = vec!["::1".parse().unwrap()], "an IPv4 source"),
            (
                |s| {
                    s.targets[0].address = Endpoint::Unix("/x".into());
                    s.sources = vec!["127.0.0.1".parse().unwrap()];
                },
                "no source addresses",
            ),
        ];
        let keyvalue = |change: fn(&mut LoadSpec, &mut KeyValue)| {
            let mut spec = keyvalue_spec(LoadProtocol::Redis { pipeline: 2 }, KeyValue::default());
            let mut keyvalue = KeyValue::default();
            change(&mut spec, &mut keyvalue);
            spec.requests = RequestSpec::operations(&keyvalue.operations);
            spec.keyvalue = Some(keyvalue);
            check(&spec)
        };
        assert_eq!(keyvalue(|_, _| {}), Ok(()));
        type ChangeKeys = fn(&mut LoadSpec, &mut KeyValue);
        let cases_of_keys: &[(ChangeKeys, &str)] = &[
            (|s, _| s.protocol = LoadProtocol::Http1 { pipeline: 1 }, "not asked for in http/1.1"),
            (|_, k| k.value = ValueSize::Fixed(10), "value of keys and values: values of 10"),
            (|_, k| k.operations = "get:1".parse().unwrap(), "reads an empty store"),
            (
                |_, k| {
                    k.keys = KeyChoice::Uniform;
                    k.key_count = Some(1);
                },
                "1 keys for 1 connections with 2 requests in flight each",
            ),
            (|_, k| k.preload = 200_000_000, "200000000 keys to keep track of"),
            (
                |_, k| {
                    (k.keys, k.share, k.key_count) = (KeyChoice::Uniform, true, Some(1 << 40));
                },
                "at most 68719476736",
            ),
            (|_, k| k.share = true, "share of keys and values"),
            (
                |s, k| {
                    s.protocol = LoadProtocol::Juno { streams: 1 };
                    k.replicas = 1;
                },
                "1 replicas to wait for; expected: 0",
            ),
            (
                |s, k| {
                    s.protocol = LoadProtocol::Juno { streams: 1 };
                    k.value = ValueSize::Fixed(300_000);
                },
                "20 to 204800 bytes",
            ),
        ];
        for (change, text) in cases_of_keys {
            let error = keyvalue(*change).unwrap_err();
            assert!(error.to_string().contains(text), "{text}: {error}");
        }
        let mut none = spec();
        none.protocol = LoadProtocol::Juno { streams: 1 };
        assert!(check(&none).unwrap_err().to_string().contains("juno asks for keys and values"));
        assert_eq!(check(&spec()), Ok(()));
        for (change, text) in cases {
            let mut spec = spec();
            change(&mut spec);
            let error = check(&spec).unwrap_err();
            assert!(error.to_string().contains(text), "{text}: {error}");
        }
    }
}
