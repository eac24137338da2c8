//! A question in plain words: `small responses (128 bytes), HTTP/1.1 over TLS, the origin takes 10ms; as much as 64 connections carry`. Pages
//! of a site name questions so, because runs of different suites have different titles for the same one.

use weir_model::keyvalue::KeyValue;
use weir_model::suite::{Load, LoadKind, RateBase, RateSpec, Series, Workload};
use weir_model::text::{count, counted, human_rate, percent};
use weir_model::units::ByteCount;

/// Bytes of a body that fits into one packet of Ethernet beside the response's headers.
const SMALL: u64 = 1_200;

/// Bytes from which on a body is many packets: the window of a new connection does not hold it.
const LARGE: u64 = 64 << 10;

/// Workload and load.
pub(super) fn of(workload: &Workload, load: &Load) -> String {
    format!("{}; {}", of_workload(workload), of_load(load, workload))
}

/// What is asked for.
pub(super) fn of_workload(workload: &Workload) -> String {
    let mut parts = vec![match &workload.keyvalue {
        Some(keyvalue) => of_keyvalue(keyvalue),
        None => of_responses(workload),
    }];
    parts.push(workload.protocol.title().to_owned());
    if let Some(delay) = delay(&workload.request.path) {
        parts.push(format!("the origin takes {delay}"));
    }
    if let Some(stream) = workload.stream {
        parts.push(format!("streams of {}", stream.title()));
    }
    if let Some(coding) = workload.accept_encoding {
        parts.push(format!("{} accepted", coding.as_str()));
    }
    if workload.origin_count() > 1 {
        parts.push(counted(u64::from(workload.origin_count()), "origin"));
    }
    let gateway = &workload.gateway;
    parts.extend(gateway.routes.map(|routes| counted(u64::from(routes), "route")));
    parts.extend(gateway.filter.map(|filter| format!("the filter {}", filter.as_str())));
    parts.extend(gateway.upstream.map(|upstream| format!("{} to the origin", upstream.title())));
    if workload.by_product {
        parts.push("answered by the product itself".to_owned());
    }
    parts.join(", ")
}

fn of_responses(workload: &Workload) -> String {
    let answers = match workload.expect.size {
        Some(size) if size < SMALL => format!("small responses ({})", counted(size, "byte")),
        Some(size) if size < LARGE => format!("responses of {}", bytes(size)),
        Some(size) => format!("large responses ({})", bytes(size)),
        None => "responses of any size".to_owned(),
    };
    let request = &workload.request;
    match (request.method.as_str(), request.body.len()) {
        ("GET", 0) => answers,
        (method, 0) => format!("{answers} to {method}"),
        (method, sent) => format!("{answers} to {method} of {}", bytes(sent as u64)),
    }
}

fn bytes(size: u64) -> String {
    if size.is_multiple_of(1 << 10) { ByteCount(size).to_string() } else { counted(size, "byte") }
}

fn of_keyvalue(asked: &KeyValue) -> String {
    let mut words = format!("{} of values of {} bytes, {} keys", asked.operations, asked.value, asked.keys);
    if asked.known() > 0 {
        words.push_str(&format!(" of {}", count(asked.known())));
    }
    if asked.replicas > 0 {
        words.push_str(&format!(", writes wait for {}", counted(u64::from(asked.replicas), "replica")));
    }
    words
}

/// How long the origin waits before it answers, as the path asks for it.
fn delay(path: &str) -> Option<&str> {
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let asked = query.split('&').find_map(|part| part.strip_prefix("delay="));
    asked.or_else(|| place.strip_prefix("/delay/")).filter(|delay| !delay.is_empty())
}

/// How requests arrive.
pub(super) fn of_load(load: &Load, workload: &Workload) -> String {
    let connections = counted(u64::from(load.connections), "connection");
    let mut parts = vec![match &load.kind {
        LoadKind::Closed if load.series != Series::Once => format!("as much as can be carried over {connections}"),
        LoadKind::Closed => format!("as much as {connections} can carry"),
        LoadKind::Count { requests } => format!("{} over {connections}", counted(*requests, "request")),
        LoadKind::Open { rate, .. } => format!("{}, {connections}", of_rate(rate)),
        LoadKind::Search { objective } => {
            let conditions: Vec<String> = objective.iter().map(ToString::to_string).collect();
            format!("the most that keeps {}", conditions.join(", "))
        }
    }];
    match &load.series {
        Series::Once => {}
        Series::Rounds(rounds) => parts.push(format!("{rounds} times in a row")),
        Series::Shares(shares) => parts.push(format!("at {} multiples of that rate", shares.len())),
        Series::Connections(counts) => parts.push(format!("at {} numbers of connections", counts.len())),
    }
    if load.streams_of(workload.protocol) > 1 {
        parts.push(format!("{} each", counted(u64::from(load.streams), "stream")));
    }
    if load.close {
        parts.push("a connection for each request".to_owned());
    }
    if load.saturating {
        parts.push("which is more than can be carried".to_owned());
    }
    if !load.faults.is_empty() {
        parts.push("with faults".to_owned());
    }
    if load.change_every.is_some() {
        parts.push("with changes of the route".to_owned());
    }
    parts.join(", ")
}

fn of_rate(rate: &RateSpec) -> String {
    match rate {
        RateSpec::Fixed(rate) => format!("at {}", human_rate(*rate)),
        RateSpec::Share { share, of, .. } => {
            let carries = match of {
                RateBase::Slowest => "the slowest product carries",
                RateBase::Own => "each product carries itself",
                RateBase::Direct => "client and origin carry without a product",
            };
            format!("at {} of what {carries}", percent(*share))
        }
        RateSpec::Table(_) => "at rates of a list".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::suite::{Arrivals, Expect, Protocol, Request};

    use super::*;

    fn workload(path: &str, size: Option<u64>, protocol: Protocol) -> Workload {
        let expect = Expect { size, ..Expect::default() };
        Workload { protocol, request: Request::get(path), expect, ..Workload::default() }
    }

    #[test]
    fn a_workload_is_said_as_a_reader_would() {
        let words = |path: &str, size: Option<u64>, protocol| of_workload(&workload(path, size, protocol));
        assert_eq!(words("/bytes/128", Some(128), Protocol::Http11), "small responses (128 bytes), plain HTTP/1.1");
        assert_eq!(
            words("/request?bytes=64&delay=1ms", Some(64), Protocol::Https11),
            "small responses (64 bytes), HTTP/1.1 over TLS, the origin takes 1ms"
        );
        assert_eq!(
            words("/delay/10ms", None, Protocol::H2c),
            "responses of any size, HTTP/2 over plain TCP, the origin takes 10ms"
        );
        assert_eq!(words("/", Some(11_268), Protocol::Http11), "responses of 11,268 bytes, plain HTTP/1.1");
        assert_eq!(words("/?x=delay=", Some(1 << 20), Protocol::Http11), "large responses (1MiB), plain HTTP/1.1");
        let posted = Workload {
            request: Request { method: "POST".to_owned(), body: vec![0; 30], ..Request::get("/echo") },
            ..workload("/echo", Some(30), Protocol::Http11)
        };
        assert_eq!(of_workload(&posted), "small responses (30 bytes) to POST of 30 bytes, plain HTTP/1.1");
        let keyvalue = Workload { keyvalue: Some(KeyValue::default()), ..workload("", None, Protocol::Redis) };
        assert!(of_workload(&keyvalue).contains(" of values of 100 bytes, fresh keys, "), "{}", of_workload(&keyvalue));
    }

    #[test]
    fn a_load_is_said_as_a_reader_would() {
        let any = workload("/", None, Protocol::Http11);
        let words = |kind: LoadKind, change: &dyn Fn(&mut Load)| {
            let mut load = Load { kind, connections: 64, streams: 32, ..Load::default() };
            change(&mut load);
            of_load(&load, &any)
        };
        let open = |rate| LoadKind::Open { rate, arrivals: Arrivals::Constant };
        let half = RateSpec::Share { share: 0.5, of: RateBase::Slowest, load: "capacity".to_owned() };
        assert_eq!(words(LoadKind::Closed, &|_| {}), "as much as 64 connections can carry");
        assert_eq!(words(open(half), &|_| {}), "at 50 % of what the slowest product carries, 64 connections");
        assert_eq!(
            words(open(RateSpec::Fixed(5_000.0)), &|load| load.close = true),
            "at 5k/s, 64 connections, a connection for each request"
        );
        let search = LoadKind::Search { objective: vec!["p99<5ms".parse().unwrap(), "errors<0.1%".parse().unwrap()] };
        assert_eq!(words(search, &|_| {}), "the most that keeps p99<5ms, errors<0.1%");
        assert_eq!(
            words(LoadKind::Closed, &|load| load.series = Series::Rounds(5)),
            "as much as can be carried over 64 connections, 5 times in a row"
        );
        let streams = Workload { protocol: Protocol::H2c, ..any.clone() };
        let load = Load { connections: 8, streams: 32, ..Load::default() };
        assert_eq!(of_load(&load, &streams), "as much as 8 connections can carry, 32 streams each");
    }
}
