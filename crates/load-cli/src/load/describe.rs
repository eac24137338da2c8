//! Describes a load specification in a line or two. Used by the live view, the summary and `--find-max` of `weir load`.

use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{Endpoint, LoadProtocol, LoadSpec, OfferedRate, ProxyVersion};
use weir_model::metric::Metric;
use weir_model::suite::{Arrivals, LoadKind};
use weir_model::text::{count, counted, full_rate, human_us};
use weir_model::units::HumanDuration;

use super::format::pipelined;

/// The heads of a row of times: percentiles as the table of metrics calls them.
pub fn percentiles() -> [&'static str; 4] {
    [Metric::P50, Metric::P90, Metric::P99, Metric::P999].map(|metric| metric.entry().title)
}

/// How requests arrive, over what, and for how long.
pub fn describe(spec: &LoadSpec) -> String {
    let seconds = |s: f64| human_us(s * 1e6);
    let length = if spec.is_endless() { "until Ctrl-C".to_owned() } else { seconds(spec.duration_s) };
    let warmup = if spec.warmup_s > 0.0 { format!(" + {} warm-up", seconds(spec.warmup_s)) } else { String::new() };
    let (kind, length) = match &spec.kind {
        LoadKind::Closed => ("closed load".to_owned(), format!(", {length}{warmup}")),
        LoadKind::Count { requests } => (counted(*requests, "request"), String::new()),
        LoadKind::Open { rate, arrivals } => (offered(rate, spacing(*arrivals)), format!(", {length}{warmup}")),
        LoadKind::Search { .. } => ("search".to_owned(), String::new()),
    };
    let connections = match spec.max_connections {
        Some(most) => format!("{} to {}", spec.connections, counted(most.into(), "connection")),
        None => counted(spec.connections.into(), "connection"),
    };
    format!("{kind}, {connections}, {}{length}", counted(threads(spec), "thread"))
}

fn offered(rate: &OfferedRate, spacing: &str) -> String {
    match rate {
        OfferedRate::Constant(rate) => format!("open load, {} {spacing}", full_rate(*rate)),
        OfferedRate::Ramp { from, to } => {
            format!("open load, {} to {} {spacing}", full_rate(*from), full_rate(*to))
        }
        OfferedRate::Steps(steps) => format!("open load in {} {spacing}", counted(steps.len() as u64, "step")),
        OfferedRate::Replay(due_s) => format!("replay of {}", counted(due_s.len() as u64, "request")),
        OfferedRate::Recorded(due) => format!("replay of {}", counted(due.len() as u64, "recorded request")),
    }
}

/// Threads that will run: as given, or one for each CPU. (The result has more where the connections need them.)
pub fn threads(spec: &LoadSpec) -> u64 {
    let wanted = if spec.threads == 0 { spec.cpus.len().max(1) as u64 } else { spec.threads.into() };
    wanted.min(spec.connections.into())
}

/// Everything else that is unusual: protocol, TLS, several targets; `None` for plain HTTP/1.1. `streams` are those of HTTP/2 that there
/// were: perhaps fewer than asked for.
pub fn protocol(spec: &LoadSpec, streams: u32) -> Option<String> {
    let unix = matches!(spec.targets.first().map(|target| &target.address), Some(Endpoint::Unix(_)));
    let several = |n: usize, what: &str| (n > 1).then(|| counted(n as u64, what));
    let words: Vec<String> = [
        match spec.protocol {
            LoadProtocol::Http2 { streams: wanted } | LoadProtocol::Http3 { streams: wanted } => {
                let of = if streams < wanted { format!("{} of ", count(streams.into())) } else { String::new() };
                let version = if matches!(spec.protocol, LoadProtocol::Http2 { .. }) { 2 } else { 3 };
                Some(format!("HTTP/{version}, {of}{} per connection", counted(wanted.into(), "stream")))
            }
            LoadProtocol::Http1 { .. } => pipelined(spec),
            other => Some(format!("{}, {} in flight per connection", other.as_str(), other.streams())),
        },
        spec.tls.as_ref().map(|tls| if tls.resumption { "TLS with resumption" } else { "TLS" }.to_owned()),
        spec.proxy_protocol.map(|version| match version {
            ProxyVersion::V1 => "PROXY protocol v1".to_owned(),
            ProxyVersion::V2 => "PROXY protocol v2".to_owned(),
        }),
        unix.then(|| "unix socket".to_owned()),
        several(spec.targets.len(), "server"),
        several(spec.requests.len(), "kind")
            .filter(|_| spec.keyvalue.is_none())
            .map(|kinds| format!("{kinds} of requests")),
        spec.stream.map(|stream| format!("streams of {}", stream.kind.title())),
        spec.accept_encoding.map(|coding| format!("accepts {}", coding.as_str())),
        spec.is_single_use().then(|| "a connection for every request".to_owned()),
        spec.requests_per_connection.filter(|n| *n > 1).map(|n| format!("{} per connection", counted(n, "request"))),
        spec.recycle_s.map(|age| format!("connections of {}", human_us(age * 1e6))),
        spec.think.map(|think| format!("think time {think}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// What is asked of a key-value server, in one line; `None` of another.
pub fn keyvalue(spec: &LoadSpec) -> Option<String> {
    let KeyValue { operations, value, ttl, keys, preload, share, replicas, .. } = spec.keyvalue.as_ref()?;
    let known = spec.keyvalue.as_ref().map_or(0, KeyValue::known);
    let unit = if value.to_string().ends_with(|c: char| c.is_ascii_digit()) { " B" } else { "" };
    let words: Vec<String> = [
        Some(format!("{operations} of {value}{unit}")),
        Some(match keys {
            KeyChoice::Fresh => "fresh keys".to_owned(),
            keys => format!("{keys} of {} keys", count(known)),
        }),
        ttl.map(|ttl| format!("TTL {}", HumanDuration(ttl))),
        (*preload > 0).then(|| format!("{} preloaded", count(*preload))),
        share.then(|| "shared".to_owned()),
        (*replicas > 0).then(|| format!("on {}", counted((*replicas).into(), "replica"))),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(words.join(", "))
}

fn spacing(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "Poisson",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::sample;

    #[test]
    fn what_is_out_of_the_ordinary_is_named() {
        let mut spec = sample::plain().spec;
        assert_eq!(
            (describe(&spec), protocol(&spec, 1)),
            ("closed load, 8 connections, 1 thread, 2 s + 1 s warm-up".into(), None)
        );
        spec.protocol = LoadProtocol::Http1 { pipeline: 16 };
        assert_eq!(protocol(&spec, 16).as_deref(), Some("HTTP/1.1 pipelined, 16 deep"));
        assert_eq!(keyvalue(&spec), None);
        let spec = sample::keyvalue().spec;
        assert_eq!(protocol(&spec, 1).as_deref(), Some("juno, 1 in flight per connection, TLS, connections of 9 s"));
        let words = "create:10,get:30,destroy:5 of 2000 B, fresh keys, TTL 30m, 1,000 preloaded";
        assert_eq!(keyvalue(&spec).as_deref(), Some(words));
        let spec = sample::everything().spec;
        assert_eq!(protocol(&spec, 32).as_deref(), Some("HTTP/2, 32 streams per connection, TLS"));
        assert_eq!(protocol(&spec, 8).as_deref(), Some("HTTP/2, 8 of 32 streams per connection, TLS"));
        let mut spec = sample::plain().spec;
        for close in [true, false] {
            (spec.connection_close, spec.requests_per_connection) = (close, (!close).then_some(1));
            assert_eq!(protocol(&spec, 1).as_deref(), Some("a connection for every request"));
        }
        (spec.requests_per_connection, spec.duration_s) = (Some(2), weir_model::load::LONGEST_S);
        assert_eq!(protocol(&spec, 1).as_deref(), Some("2 requests per connection"));
        assert_eq!(describe(&spec), "closed load, 8 connections, 1 thread, until Ctrl-C + 1 s warm-up");
    }
}
