//! Loads on weir's own origin: the counters of both sides must agree.

use std::path::PathBuf;

use weir_load::{Outputs, StopFlag, run};
use weir_model::coding::Coding;
use weir_model::counters::{NameCounters, OriginCounters};
use weir_model::load::{
    CodedAnswers, DriverChoice, Endpoint, LoadProtocol, LoadResult, LoadSpec, NameCounts, Names, OfferedRate, Target,
    TlsSpec, TlsVersion,
};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_origin::{Options, Origin, payload_hash};
use weir_wire::tls::{Identity, KeyKind, ServerOptions};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Epoll, DriverChoice::IoUring];

fn kinds() -> [LoadKind<OfferedRate>; 3] {
    let poisson = LoadKind::open(2_000.0, Arrivals::Poisson);
    [LoadKind::Closed, LoadKind::Count { requests: 5_000 }, poisson]
}

/// 16 connections in 2 threads that ask for 11,268 bytes.
fn order(origin: &Origin, kind: LoadKind<OfferedRate>) -> LoadSpec {
    let target = Target::tcp(origin.addr(), "localhost");
    let request = Request { method: "GET".into(), path: "/bytes/11268".into(), headers: vec![], body: vec![] };
    let hash = Some(payload_hash(11_268));
    let expect = Expect { status: Some(200), size: Some(11_268), hash, ..Expect::default() };
    // A counted load ends by itself; a busy machine must not cut it short.
    let duration_s = if matches!(kind, LoadKind::Count { .. }) { 60.0 } else { 1.0 };
    LoadSpec {
        kind,
        connections: 16,
        threads: 2,
        warmup_s: 0.3,
        duration_s,
        timeout_s: 10.0,
        ..LoadSpec::new(target, request, expect)
    }
}

fn origin(driver: DriverChoice, tls: bool) -> Origin {
    let tls = tls.then(|| ServerOptions {
        identities: vec![Identity::generated(KeyKind::P256).unwrap()],
        ..ServerOptions::default()
    });
    Origin::start(Options { driver, tls, ..Options::default() }).unwrap()
}

fn go(spec: &LoadSpec, origin: Origin) -> (LoadResult, OriginCounters) {
    let result = run(spec, &Outputs::default(), &StopFlag::new(), &mut |_| {}).unwrap();
    (result, origin.stop())
}

/// What both sides count by request.
fn agree(result: &LoadResult, counters: &OriginCounters, name: &str) {
    let total = &result.total;
    assert_eq!(total.right, total.due, "{name}: {total:?} {counters:?}");
    assert_eq!(counters.requests, total.sent, "{name}");
    assert_eq!(counters.answered, total.right, "{name}");
    assert_eq!(counters.connections_accepted, total.connections, "{name}");
    assert_eq!(counters.body_bytes_out, total.body_bytes, "{name}");
    assert_eq!(counters.connections_reset, 0, "{name}");
    assert_eq!(result.first_byte.count, result.service.count, "{name}");
    assert!(result.first_byte.mean_us <= result.service.mean_us + 0.01, "{name}");
}

#[test]
fn what_the_client_sent_is_what_the_origin_received() {
    for driver in DRIVERS {
        for kind in kinds() {
            for close in [false, true] {
                let origin = origin(driver, false);
                let spec = LoadSpec { driver, connection_close: close, ..order(&origin, kind.clone()) };
                let (result, counters) = go(&spec, origin);
                let name = format!("{driver:?} {kind:?} close: {close}");
                let total = &result.total;
                agree(&result, &counters, &name);
                assert_eq!(counters.bytes_in, total.bytes_out, "{name}");
                assert_eq!(counters.bytes_out, total.bytes_in, "{name}");
                assert_eq!(counters.max_in_flight_per_connection, 1, "{name}");
                if close {
                    assert_eq!(counters.connection_headers.get("close"), Some(&total.sent), "{name}");
                } else {
                    assert_eq!(total.connections, 16, "{name}");
                    assert_eq!((result.connections_used, result.most_open), (16, 16), "{name}");
                }
            }
        }
    }
}

#[test]
fn coded_answers_are_checked_when_they_are_decoded() {
    for protocol in [LoadProtocol::Http1 { pipeline: 1 }, LoadProtocol::Http2 { streams: 8 }] {
        for (accept_encoding, path, coded) in [
            (Some(Coding::Gzip), "/bytes/11268?encoding=gzip", true),
            (Some(Coding::Gzip), "/bytes/11268", false),
            (None, "/bytes/11268?encoding=gzip", false),
        ] {
            let origin = origin(DriverChoice::Auto, false);
            let mut spec =
                LoadSpec { protocol, accept_encoding, ..order(&origin, LoadKind::Count { requests: 2_000 }) };
            spec.requests[0].request.path = path.into();
            let (result, counters) = go(&spec, origin);
            let name = format!("{protocol:?} {accept_encoding:?} {path}");
            agree(&result, &counters, &name);
            let codings = result.codings.unwrap_or_default();
            if coded {
                let CodedAnswers { answers, bytes, decoded_bytes } = codings[&Coding::Gzip];
                assert_eq!((answers, decoded_bytes), (2_000, 2_000 * 11_268), "{name}");
                assert!(bytes == counters.body_bytes_out && bytes < decoded_bytes, "{name}: {bytes}");
            } else {
                assert!(codings.is_empty(), "{name}: {codings:?}");
            }
        }
    }
}

#[test]
fn under_tls_too() {
    for driver in DRIVERS {
        for kind in kinds() {
            for versions in [TlsVersion::Tls12, TlsVersion::Tls13] {
                let origin = origin(driver, true);
                let tls = Some(TlsSpec { versions: (versions, versions), ..TlsSpec::default() });
                let spec = LoadSpec { driver, tls, ..order(&origin, kind.clone()) };
                let (result, counters) = go(&spec, origin);
                let name = format!("{driver:?} {kind:?} {versions:?}");
                agree(&result, &counters, &name);
                let tls = result.tls.as_ref().unwrap();
                assert_eq!((tls.handshakes, tls.failed, tls.resumed), (16, 0, 0), "{name}");
                let version = if versions == TlsVersion::Tls12 { "TLS 1.2" } else { "TLS 1.3" };
                assert_eq!(tls.versions.get(version), Some(&16), "{name}: {tls:?}");
                assert_eq!(result.handshake.count, 16, "{name}");
                // Of the request 47 bytes, and at least 16 of its record.
                assert!(result.total.bytes_out > result.total.sent * (47 + 16), "{name}");
                // The origin counts what was in the records.
                assert!(counters.bytes_in < result.total.bytes_out, "{name}");
                assert_eq!(counters.bytes_out, result.total.plaintext_in, "{name}");
                assert!(result.total.plaintext_in < result.total.bytes_in, "{name}");
            }
        }
    }
}

#[test]
fn by_http_2_with_and_without_tls() {
    for driver in DRIVERS {
        for tls in [false, true] {
            for streams in [1, 32] {
                for kind in kinds() {
                    let origin = origin(driver, tls);
                    let spec = LoadSpec {
                        driver,
                        tls: tls.then(TlsSpec::default),
                        protocol: LoadProtocol::Http2 { streams },
                        connections: 4,
                        ..order(&origin, kind.clone())
                    };
                    let (result, counters) = go(&spec, origin);
                    let name = format!("{driver:?} {kind:?} tls: {tls} streams: {streams}");
                    agree(&result, &counters, &name);
                    assert_eq!((result.protocol.as_str(), result.streams), ("h2", streams), "{name}");
                    assert_eq!(result.total.connections, 4, "{name}");
                    assert_eq!(result.handshake.count, if tls { 4 } else { 0 }, "{name}");
                    if kind == LoadKind::Closed {
                        assert_eq!(counters.max_in_flight_per_connection, u64::from(streams), "{name}");
                    }
                    if !tls {
                        assert_eq!(counters.bytes_in, result.total.bytes_out, "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn bodies_go_out_by_http_2_and_connections_are_left_in_time() {
    for tls in [false, true] {
        for size in [10, 300_000] {
            let origin = origin(DriverChoice::Auto, tls);
            let mut spec = LoadSpec {
                tls: tls.then(TlsSpec::default),
                protocol: LoadProtocol::Http2 { streams: 4 },
                connections: 2,
                requests_per_connection: Some(10),
                ..order(&origin, LoadKind::Count { requests: 100 })
            };
            spec.requests[0].request.method = "POST".into();
            spec.requests[0].request.path = "/echo".into();
            spec.requests[0].request.body = payload(size);
            spec.requests[0].expect.size = Some(size as u64);
            spec.requests[0].expect.hash = Some(xxhash_rust::xxh3::xxh3_64(&payload(size)));
            let (result, counters) = go(&spec, origin);
            let name = format!("tls: {tls} {size}");
            agree(&result, &counters, &name);
            assert_eq!(counters.body_bytes_in, 100 * size as u64, "{name}");
            assert_eq!(result.total.connections, 10, "{name}");
            assert_eq!((result.connections_used, result.total.closed_by_peer), (10, 0), "{name}");
        }
    }
}

#[test]
fn requests_with_fields_are_sent_by_either_protocol() {
    for protocol in [LoadProtocol::Http1 { pipeline: 1 }, LoadProtocol::Http2 { streams: 3 }] {
        let origin = origin(DriverChoice::Auto, false);
        let mut spec = LoadSpec { protocol, ..order(&origin, LoadKind::Count { requests: 300 }) };
        let request = &mut spec.requests[0];
        request.template = true;
        request.request.method = "POST".into();
        request.request.path = "/echo".into();
        request.request.headers = vec![("x-id".into(), "{{uuid}}".into()), ("x-still".into(), "here".into())];
        request.request.body = b"{{hex:16}}-{{seq:1:6}}".to_vec();
        request.expect = Expect { status: Some(200), size: Some(23), ..Expect::default() };
        let mut sizes = spec.requests[0].clone();
        sizes.weight = 2;
        sizes.request = Request { path: "/bytes/1{{random:0..9}}".into(), method: "GET".into(), ..sizes.request };
        sizes.request.body = vec![];
        sizes.expect.size = None;
        spec.requests.push(sizes);
        let (result, counters) = go(&spec, origin);
        agree(&result, &counters, &format!("{protocol:?}"));
        let [posts, gets] = &result.by_request[..] else { panic!("{:?}", result.by_request) };
        assert_eq!(counters.body_bytes_in, posts.sent * 23);
        assert_eq!((posts.sent + gets.sent, posts.right, gets.right), (300, posts.sent, gets.sent));
        // Two of three, give or take four standard deviations.
        assert!((gets.sent as f64 - 200.0).abs() < 33.0, "{}", gets.sent);
    }
}

#[test]
fn every_answer_has_the_name_of_its_request() {
    let (pipelined, streams) = (LoadProtocol::Http1 { pipeline: 4 }, LoadProtocol::Http2 { streams: 8 });
    let protocols =
        [(LoadProtocol::Http1 { pipeline: 1 }, false), (pipelined, false), (streams, false), (streams, true)];
    for (protocol, tls) in protocols {
        for (kind, template, body) in [
            (LoadKind::Closed, false, 0),
            (LoadKind::open(2_000.0, Arrivals::Poisson), false, 0),
            (LoadKind::Count { requests: 5_000 }, false, 10),
            (LoadKind::Count { requests: 500 }, false, 10_000),
            (LoadKind::Count { requests: 500 }, true, 10),
        ] {
            let name = format!("{protocol:?} tls: {tls} {kind:?} template: {template} {body}");
            let tls_options = tls.then(|| ServerOptions {
                identities: vec![Identity::generated(KeyKind::P256).unwrap()],
                ..ServerOptions::default()
            });
            let origin =
                Origin::start(Options { threads: 2, tls: tls_options, names: "x-id".into(), ..Options::default() })
                    .unwrap();
            let mut spec = LoadSpec {
                protocol,
                tls: tls.then(TlsSpec::default),
                names: Some(Names::new("x-id".into(), 1, true)),
                ..order(&origin, kind)
            };
            if body > 0 {
                let request = &mut spec.requests[0];
                request.template = template;
                request.request.method = "POST".into();
                request.request.path = if template { "/echo?x={{random:1..9999}}" } else { "/echo" }.into();
                request.request.headers = vec![("x-other".into(), "{{uuid}}".into())];
                request.request.body = if template { b"{{seq:1000}}".to_vec() } else { payload(body) };
                request.expect = Expect { status: Some(200), ..Expect::default() };
            }
            let (result, counters) = go(&spec, origin);
            agree(&result, &counters, &name);
            let sent = result.total.sent;
            assert_eq!(result.names, Some(NameCounts { own: sent, ..NameCounts::default() }), "{name}");
            assert_eq!(
                counters.names,
                NameCounters { named: sent, distinct: sent, ..NameCounters::default() },
                "{name}"
            );
        }
    }
}

fn payload(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

#[test]
fn sessions_are_resumed_where_that_is_ordered() {
    let origin = origin(DriverChoice::Auto, true);
    let tls = Some(TlsSpec { resumption: true, ..TlsSpec::default() });
    let spec = LoadSpec {
        tls,
        connections: 2,
        threads: 1,
        requests_per_connection: Some(5),
        ..order(&origin, LoadKind::Count { requests: 100 })
    };
    let (result, counters) = go(&spec, origin);
    agree(&result, &counters, "resumption");
    let tls = result.tls.unwrap();
    // Twenty times five requests; or one more, when neither connection's share is a multiple of five.
    assert!((20..=21).contains(&tls.handshakes) && tls.failed == 0, "{tls:?}");
    // The first two have no ticket yet.
    assert_eq!(tls.resumed, tls.handshakes - 2, "{tls:?}");
}

#[test]
fn pipelined_and_by_unix_socket() {
    let dir = tempfile::tempdir().unwrap();
    for driver in DRIVERS {
        for tls in [false, true] {
            let path: PathBuf = dir.path().join(format!("{driver:?}-{tls}"));
            let identities = vec![Identity::generated(KeyKind::P256).unwrap()];
            let server = tls.then(|| ServerOptions { identities, ..ServerOptions::default() });
            let options = Options { driver, unix: Some(path.clone()), tls: server, ..Options::default() };
            let origin = Origin::start(options).unwrap();
            let mut spec = LoadSpec { driver, ..order(&origin, LoadKind::Count { requests: 5_000 }) };
            spec.protocol = LoadProtocol::Http1 { pipeline: 8 };
            spec.tls = tls.then(TlsSpec::default);
            spec.targets[0].address = Endpoint::Unix(path);
            let (result, counters) = go(&spec, origin);
            let name = format!("{driver:?} tls: {tls}");
            agree(&result, &counters, &name);
            assert_eq!(result.streams, 8, "{name}");
        }
    }
}
