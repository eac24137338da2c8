//! A fixed load with its specification, result and distributions. The tests of the texts of `weir load` use it.

use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use weir_load::Distributions;
use weir_model::keyvalue::{KeyValue, Mix, ValueSize};
use weir_model::load::{
    Counts, ErrorKind, LOAD_SCHEMA, LoadProtocol, LoadResult, LoadSecond, LoadSpec, MessageCounts, MessageResult,
    Quantiles, RequestResult, RequestSpec, StreamKind, StreamSpec, Target, TlsResult, TlsSpec,
};
use weir_model::protocol::Protocol;
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};

use super::format::Outcome;

/// Compares with the text kept below `tests/words`, or keeps it.
pub fn kept(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/words").join(format!("{name}.txt"));
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, text).expect("written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(text, kept, "{} differs; WEIR_BLESS=1 writes it anew", path.display());
}

pub const URL: &str = "http://127.0.0.1:8080/bytes/128";

#[derive(Debug, Clone)]
pub struct Sample {
    pub spec: LoadSpec,
    pub result: LoadResult,
    pub distributions: Distributions,
}

impl Sample {
    pub fn outcome(&self) -> Outcome<'_> {
        Outcome { title: URL, spec: &self.spec, result: &self.result, distributions: &self.distributions }
    }
}

/// A closed load over eight connections for two seconds: 20,000 successful responses.
pub fn plain() -> Sample {
    let target = Target::tcp("127.0.0.1:8080".parse().expect("an address"), "127.0.0.1:8080");
    let request = Request { method: "GET".into(), path: "/bytes/128".into(), headers: vec![], body: vec![] };
    let spec = LoadSpec {
        connections: 8,
        duration_s: 2.0,
        warmup_s: 1.0,
        ..LoadSpec::new(target, request, Expect::default())
    };
    let service = histo((0..20_000).map(|i| 60_000 + (i % 1_000) * (i % 1_000)));
    let first = histo((0..20_000).map(|i| 55_000 + (i % 1_000) * (i % 1_000)));
    let lag = histo((0..20_000).map(|_| 0));
    let second = |second: u32, successful: u64| LoadSecond {
        second,
        length_s: 1.0,
        due: successful,
        sent: successful,
        successful,
        bytes_in: successful * 249,
        p50_us: 310.0,
        p99_us: 1_040.0,
        max_us: 1_060.0,
        ..LoadSecond::default()
    };
    let window = Counts {
        due: 20_000,
        sent: 20_000,
        successful: 20_000,
        successful_in_window: 20_000,
        statuses: [(200, 20_000)].into(),
        successful_body_bytes_in_window: 20_000 * 128,
        body_bytes: 20_000 * 128,
        bytes_in: 20_000 * 249,
        plaintext_in: 20_000 * 249,
        bytes_out: 20_000 * 58,
        ..Counts::default()
    };
    let result = LoadResult {
        schema: LOAD_SCHEMA,
        driver: "io_uring".into(),
        threads: 1,
        protocol: "http/1.1".into(),
        streams: 1,
        window_start_ms: 1_700_000_000_000,
        window_s: 2.0,
        total: Counts { connections: 8, ..window.clone() },
        window,
        rate: 10_000.0,
        body_bytes_per_s: 1_280_000.0,
        latency: quantiles(&service),
        service: quantiles(&service),
        lag: quantiles(&lag),
        first_byte: quantiles(&first),
        connect: quantiles(&histo((0..8).map(|i| 40_000 + i * 5_000))),
        most_open: 8,
        connections_used: 8,
        series: vec![second(0, 9_900), second(1, 10_100)],
        thread_busy: vec![0.42],
        cpu_us: (20_000, 60_000),
        ..LoadResult::default()
    };
    Sample { spec, result, distributions: Distributions { latency: service.clone(), service, lag } }
}

/// The same with failures of every sort.
pub fn failing() -> Sample {
    let mut sample = plain();
    let window = &mut sample.result.window;
    window.successful = 19_000;
    window.successful_in_window = 19_000;
    window.errors = [
        (ErrorKind::BadStatus, 700),
        (ErrorKind::WrongBody, 50),
        (ErrorKind::Reset, 100),
        (ErrorKind::Timeout, 30),
        (ErrorKind::ConnectRefused, 20),
    ]
    .into();
    window.unsent = 100;
    window.statuses = [(200, 19_150), (503, 600), (404, 100)].into();
    window.body_bytes = 19_850 * 128;
    sample.result.total.connections = 128;
    sample.result.total.closed_by_peer = 100;
    sample.result.connections_used = 120;
    sample.result.total.connect_failures = 20;
    sample.result.rate = 9_500.0;
    for row in &mut sample.result.series {
        row.errors = 450;
        row.successful -= 450;
    }
    sample
}

/// An open load by HTTP/2 and TLS, with everything that a summary can hold.
pub fn everything() -> Sample {
    let mut sample = failing();
    sample.spec.kind = LoadKind::open(10_000.0, Arrivals::Poisson);
    sample.spec.protocol = LoadProtocol::Http2 { streams: 32 };
    sample.spec.tls = Some(TlsSpec::default());
    let result = &mut sample.result;
    result.offered_rate = Some(10_000.0);
    result.protocol = "h2".into();
    result.streams = 32;
    result.tls = Some(TlsResult {
        handshakes: 128,
        resumed: 100,
        failed: 2,
        versions: [("TLS 1.3".to_owned(), 128)].into(),
        suites: [("TLS_AES_128_GCM_SHA256".to_owned(), 128)].into(),
        groups: [("X25519".to_owned(), 128)].into(),
        keys: [("P-256".to_owned(), 128)].into(),
    });
    result.handshake = quantiles(&histo((0..128).map(|i| 400_000 + i * 5_000)));
    result.by_request = [("GET /bytes/128", 18_000, 17_200, 800), ("POST /echo", 1_900, 1_800, 100)]
        .map(|(name, sent, successful, errors)| RequestResult {
            name: name.into(),
            sent,
            successful,
            errors,
            ..Default::default()
        })
        .to_vec();
    sample
}

/// A mix of three kinds of request, of which one is slow, and one is sometimes refused or not answered.
pub fn kinds() -> Sample {
    let mut sample = plain();
    let kinds = [
        ("GET /bytes/128", 14_000, 0),
        ("GET /a/path/that/is/longer/than/the/column?of=names", 4_000, 0),
        ("POST /echo", 2_000, 130),
    ];
    sample.spec.requests = kinds.iter().map(|_| sample.spec.requests[0].clone()).collect();
    let of = |from: u64, n: u64| quantiles(&histo((0..n).map(|i| from + (i % 1_000) * (i % 1_000))));
    let result = &mut sample.result;
    result.by_request = (1..)
        .zip(kinds)
        .map(|(nth, (name, sent, errors))| RequestResult {
            name: name.into(),
            sent,
            successful: sent - errors,
            errors,
            latency: of(nth * nth * 60_000, sent),
            ..RequestResult::default()
        })
        .collect();
    let statuses = [("200", 60_000, 19_870), ("503", 20_000, 120), ("none", 9_000_000, 10)];
    result.by_status = statuses.map(|(status, from, n)| (status.to_owned(), of(from, n))).into();
    result.window.statuses = [(200, 19_870), (503, 120)].into();
    result.window.errors = [(ErrorKind::BadStatus, 120), (ErrorKind::Timeout, 10)].into();
    result.window.successful -= 130;
    sample
}

/// Streams through a proxy that gathers messages, and did worse to some.
pub fn streams() -> Sample {
    let mut sample = plain();
    sample.spec.stream = Some(StreamSpec { kind: StreamKind::Sse, one_clock: true });
    let window =
        MessageCounts { received: 6_400, bytes: 1_280_000, gathered: 5_700, begun: 100, ..MessageCounts::default() };
    let total = MessageCounts { whole: 90, cut_short: 5, failed: 1, aborted: 4, lost: 7, altered: 1, ..window };
    let of = |from: u64, n: u64| quantiles(&histo((0..n).map(|i| from + (i % 1_000) * (i % 1_000) * 200)));
    sample.result.messages = Some(MessageResult {
        delay: of(200_000, 6_400),
        gap: of(20_000, 6_300),
        sender_lag: of(1_000, 6_400),
        head: of(400_000, 100),
        first_message: of(200_400_000, 100),
        per_message: of(19_900_000, 90),
        window,
        total,
        ..MessageResult::default()
    });
    sample
}

/// An open load of a key-value server that lost, mixed up and refused some of what it was asked for.
pub fn keyvalue() -> Sample {
    let mut sample = plain();
    sample.spec.kind = LoadKind::open(10_000.0, Arrivals::Constant);
    sample.spec.protocol = LoadProtocol::of(Protocol::of_scheme("junos").expect("a scheme"), 1);
    sample.spec.tls = Some(TlsSpec::default());
    sample.spec.recycle_s = Some(9.0);
    let operations: Mix = "C:10,G:30,D:5".parse().expect("a mix");
    sample.spec.requests = RequestSpec::operations(&operations);
    let (value, ttl) = (ValueSize::Fixed(2_000), Some(Duration::from_secs(1_800)));
    sample.spec.keyvalue = Some(KeyValue { operations, value, ttl, preload: 1_000, ..KeyValue::default() });
    let result = &mut sample.result;
    let parts = [
        ("create", 4_444, vec![(ErrorKind::Busy, 50)]),
        ("get", 13_334, vec![(ErrorKind::Stale, 3), (ErrorKind::Lost, 5), (ErrorKind::Timeout, 2)]),
        ("destroy", 2_222, vec![(ErrorKind::Resurrected, 1), (ErrorKind::ConnectRefused, 9)]),
    ];
    for (nth, (name, sent, errors)) in (1..).zip(parts) {
        let lost: u64 = errors.iter().map(|(_, n)| n).sum();
        let latency = histo((0..sent).map(|i| nth * 60_000 + (i % 1_000) * (i % 1_000)));
        result.window.errors.extend(errors.iter().copied());
        result.by_request.push(RequestResult {
            name: name.into(),
            sent,
            successful: sent - lost,
            errors: lost,
            errors_by_kind: errors.into_iter().collect(),
            latency: quantiles(&latency),
        });
    }
    let failed = result.window.error_count();
    (result.window.successful, result.window.successful_in_window) = (20_000 - failed, 20_000 - failed);
    result.window.statuses = [(0, 19_946), (14, 50), (3, 4)].into();
    (result.protocol, result.offered_rate, result.rate) = ("juno".into(), Some(10_000.0), 9_965.0);
    result.total = Counts { connections: 17, connect_failures: 12, ..result.window.clone() };
    result.preload = Some(Counts { due: 1_000, sent: 1_000, successful: 1_000, ..Counts::default() });
    result.tls = Some(TlsResult {
        handshakes: 17,
        versions: [("TLS 1.3".to_owned(), 17)].into(),
        suites: [("TLS_AES_128_GCM_SHA256".to_owned(), 17)].into(),
        groups: [("X25519".to_owned(), 17)].into(),
        ..TlsResult::default()
    });
    result.handshake = quantiles(&histo((0..17).map(|i| 400_000 + i * 5_000)));
    sample
}

fn histo(values: impl Iterator<Item = u64>) -> Histogram<u64> {
    let mut histo = Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).expect("constants in range");
    values.for_each(|value| histo.saturating_record(value));
    histo
}

fn quantiles(histo: &Histogram<u64>) -> Quantiles {
    let us = |nanos: u64| if nanos < 512 { 0.0 } else { nanos as f64 / 1e3 };
    let at = |q: f64| us(histo.value_at_quantile(q));
    Quantiles {
        count: histo.len(),
        min_us: us(histo.min()),
        mean_us: histo.mean() / 1e3,
        stdev_us: histo.stdev() / 1e3,
        p50_us: at(0.5),
        p75_us: at(0.75),
        p90_us: at(0.9),
        p95_us: at(0.95),
        p99_us: at(0.99),
        p999_us: at(0.999),
        p9999_us: at(0.9999),
        max_us: us(histo.max()),
    }
}
