//! Loads on weir's own origin: the counters of both sides agree, and a store that loses or lies is caught.

use weir_model::coding::Coding;
use weir_model::counters::{ContentCounters, OriginCounters, RequestIdCounters};
use weir_model::keyvalue::{KeyChoice, KeyValue, ValueSize};
use weir_model::load::{
    CodedResponses, ErrorKind, LoadProtocol, LoadResult, LoadSpec, OfferedRate, RequestIdCounts, RequestIds,
    RequestSpec, TlsSpec, TlsVersion,
};
use weir_model::suite::{Arrivals, Expect, LoadKind, Protocol, Request};
use weir_origin::{Options, ResponseOptions, payload_hash};
use weir_wire::tls::{Identity, KeyKind, ServerOptions};
use xxhash_rust::xxh3::xxh3_64;

use crate::world::{SimOrigin, counted, load, order, world};

const HTTP1: LoadProtocol = LoadProtocol::Http1 { pipeline: 1 };

fn http2(streams: u32) -> LoadProtocol {
    LoadProtocol::Http2 { streams }
}

fn http3(streams: u32) -> LoadProtocol {
    LoadProtocol::Http3 { streams }
}

fn kinds() -> [LoadKind<OfferedRate>; 3] {
    [LoadKind::Closed, counted(300), LoadKind::open(2_000.0, Arrivals::Poisson)]
}

/// What both sides say.
type Ran = (LoadResult, OriginCounters);

/// An origin, perhaps with TLS, and a load of 16 connections in 2 threads that ask it for 11,268 bytes, changed.
fn go(tls: bool, options: Options, kind: LoadKind<OfferedRate>, change: impl FnOnce(&mut LoadSpec)) -> Ran {
    let identities = || vec![Identity::generated(KeyKind::P256).unwrap()];
    let server = tls.then(|| ServerOptions { identities: identities(), ..ServerOptions::default() });
    let world = world();
    let http3 = server.is_some() && !options.protocol.is_keyvalue();
    let origin = SimOrigin::start(&world, Options { tls: server, http3, threads: 2, ..options });
    let mut spec =
        LoadSpec { connections: 16, threads: 2, warmup_s: 0.01, duration_s: 0.04, ..order(origin.addr, kind) };
    spec.requests[0].request.path = "/bytes/11268".into();
    spec.requests[0].expect =
        Expect { status: Some(200), size: Some(11_268), hash: Some(payload_hash(11_268)), ..Expect::default() };
    spec.tls = tls.then(TlsSpec::default);
    if matches!(spec.kind, LoadKind::Count { .. }) {
        spec.duration_s = 60.0;
    }
    change(&mut spec);
    let result = load(&world, &spec).unwrap();
    (result, origin.counters())
}

/// What both sides count by request.
fn agree(result: &LoadResult, counters: &OriginCounters, name: &str) {
    let total = &result.total;
    assert_eq!([total.successful, total.sent], [total.due; 2], "{name}: {total:?} {counters:?}");
    assert_eq!([counters.requests, counters.answered], [total.sent; 2], "{name}");
    assert_eq!(counters.connections_accepted, total.connections, "{name}");
    assert_eq!(counters.body_bytes_out, total.body_bytes, "{name}");
    assert_eq!((counters.connections_reset, counters.malformed), (0, 0), "{name}");
    assert_eq!(result.first_byte.count, result.service.count, "{name}");
    assert!(result.first_byte.mean_us <= result.service.mean_us, "{name}");
}

#[test]
fn what_the_client_sent_is_what_the_origin_received() {
    for (kind, close) in kinds().into_iter().flat_map(|kind| [(kind.clone(), false), (kind, true)]) {
        let name = format!("{kind:?} close: {close}");
        let (result, counters) = go(false, Options::default(), kind, |spec| spec.connection_close = close);
        let total = &result.total;
        agree(&result, &counters, &name);
        assert_eq!((counters.bytes_in, counters.bytes_out), (total.bytes_out, total.bytes_in), "{name}");
        assert_eq!(counters.max_in_flight_per_connection, 1, "{name}");
        if close {
            assert_eq!(counters.connection_headers.get("close"), Some(&total.sent), "{name}");
        } else {
            assert_eq!((total.connections, result.connections_used, result.most_open), (16, 16, 16), "{name}");
        }
    }
}

#[test]
fn coded_responses_are_checked_when_they_are_decoded() {
    for protocol in [HTTP1, http2(8)] {
        for (accept_encoding, path, coded) in [
            (Some(Coding::Gzip), "/bytes/11268?encoding=gzip", true),
            (Some(Coding::Gzip), "/bytes/11268", false),
            (None, "/bytes/11268?encoding=gzip", false),
        ] {
            let name = format!("{protocol:?} {accept_encoding:?} {path}");
            let (result, counters) = go(false, Options::default(), counted(500), |spec| {
                (spec.protocol, spec.accept_encoding) = (protocol, accept_encoding);
                spec.requests[0].request.path = path.into();
            });
            agree(&result, &counters, &name);
            let codings = result.codings.unwrap_or_default();
            if coded {
                let CodedResponses { responses, bytes, decoded_bytes } = codings[&Coding::Gzip];
                assert_eq!((responses, decoded_bytes), (500, 500 * 11_268), "{name}");
                assert!(bytes == counters.body_bytes_out && bytes < decoded_bytes, "{name}: {bytes}");
            } else {
                assert!(codings.is_empty(), "{name}: {codings:?}");
            }
        }
    }
}

#[test]
fn under_tls_too() {
    for (kind, version) in
        kinds().into_iter().flat_map(|kind| [(kind.clone(), TlsVersion::Tls12), (kind, TlsVersion::Tls13)])
    {
        let name = format!("{kind:?} {version:?}");
        let tls = Some(TlsSpec { versions: (version, version), ..TlsSpec::default() });
        let (result, counters) = go(true, Options::default(), kind, |spec| spec.tls = tls);
        agree(&result, &counters, &name);
        let (tls, total) = (result.tls.as_ref().unwrap(), &result.total);
        assert_eq!((tls.handshakes, tls.failed, tls.resumed, result.handshake.count), (16, 0, 0, 16), "{name}");
        let version = if version == TlsVersion::Tls12 { "TLS 1.2" } else { "TLS 1.3" };
        assert_eq!(tls.versions.get(version), Some(&16), "{name}: {tls:?}");
        // Of a record 16 bytes at least, and the origin counts what was in the records.
        assert!(total.bytes_out > counters.bytes_in + 16 * total.sent, "{name}");
        assert!(counters.bytes_out == total.plaintext_in && total.plaintext_in < total.bytes_in, "{name}");
    }
}

#[test]
fn by_http_2_with_and_without_tls() {
    for (tls, streams) in [(false, 1), (false, 32), (true, 1), (true, 32)] {
        for kind in kinds() {
            let name = format!("{kind:?} tls: {tls} streams: {streams}");
            let (result, counters) = go(tls, Options::default(), kind.clone(), |spec| {
                (spec.protocol, spec.connections) = (http2(streams), 2);
            });
            agree(&result, &counters, &name);
            assert_eq!((result.protocol.as_str(), result.streams), ("h2", streams), "{name}");
            assert_eq!((result.total.connections, result.handshake.count), (2, if tls { 2 } else { 0 }), "{name}");
            if kind == LoadKind::Closed {
                assert_eq!(counters.max_in_flight_per_connection, u64::from(streams), "{name}");
            }
            assert!(tls || counters.bytes_in == result.total.bytes_out, "{name}");
        }
    }
}

fn payload(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

#[test]
fn bodies_go_out_by_http_2_and_connections_are_left_in_time() {
    for (tls, size) in [(false, 10), (false, 300_000), (true, 10), (true, 300_000)] {
        let name = format!("tls: {tls} {size}");
        let (result, counters) = go(tls, Options::default(), counted(100), |spec| {
            (spec.protocol, spec.connections, spec.requests_per_connection) = (http2(4), 2, Some(10));
            let body = payload(size);
            let expect = Expect { size: Some(size as u64), hash: Some(xxh3_64(&body)), ..Expect::default() };
            spec.requests[0].request = Request { method: "POST".into(), body, ..Request::get("/echo") };
            spec.requests[0].expect = expect;
        });
        agree(&result, &counters, &name);
        assert_eq!(counters.body_bytes_in, 100 * size as u64, "{name}");
        let connections = [result.total.connections, result.connections_used];
        assert_eq!((connections, result.total.closed_by_peer), ([10, 10], 0), "{name}");
    }
}

#[test]
fn requests_with_fields_are_sent_by_either_protocol() {
    for protocol in [HTTP1, http2(3)] {
        let (result, counters) = go(false, Options::default(), counted(300), |spec| {
            spec.protocol = protocol;
            let mut posts = spec.requests.remove(0);
            posts.template = true;
            let headers = vec![("x-id".into(), "{{uuid}}".into()), ("x-still".into(), "here".into())];
            let body = b"{{hex:16}}-{{seq:1:6}}".to_vec();
            posts.request = Request { method: "POST".into(), headers, body, ..Request::get("/echo") };
            posts.expect = Expect { status: Some(200), size: Some(23), ..Expect::default() };
            let request = Request { headers: posts.request.headers.clone(), ..Request::get("/bytes/1{{random:0..9}}") };
            let expect = Expect { status: Some(200), ..Expect::default() };
            let gets = RequestSpec { weight: 2, request, expect, ..posts.clone() };
            spec.requests = vec![posts, gets];
        });
        agree(&result, &counters, &format!("{protocol:?}"));
        let [posts, gets] = &result.by_request[..] else { panic!("{:?}", result.by_request) };
        assert_eq!(counters.body_bytes_in, posts.sent * 23);
        assert_eq!((posts.sent + gets.sent, posts.successful, gets.successful), (300, posts.sent, gets.sent));
        // Two of three, give or take four standard deviations.
        assert!((gets.sent as f64 - 200.0).abs() < 33.0, "{}", gets.sent);
    }
}

#[test]
fn every_response_has_the_name_of_its_request() {
    let pipelined = LoadProtocol::Http1 { pipeline: 4 };
    let protocols = [(HTTP1, false), (pipelined, false), (http2(8), false), (http2(8), true), (http3(8), true)];
    for (protocol, tls) in protocols {
        for (kind, template, body) in [
            (LoadKind::Closed, false, 0),
            (LoadKind::open(1_000.0, Arrivals::Poisson), false, 0),
            (counted(500), false, 10),
            (counted(200), false, 10_000),
            (counted(200), true, 10),
        ] {
            let name = format!("{protocol:?} tls: {tls} {kind:?} template: {template} {body}");
            let options = Options { request_id_header: "x-id".into(), ..Options::default() };
            let (result, counters) = go(tls, options, kind, |spec| {
                (spec.protocol, spec.request_ids) = (protocol, Some(RequestIds::new("x-id".into(), 1, true)));
                (spec.connections, spec.warmup_s) = (2, 0.01);
                if body > 0 {
                    let path = if template { "/echo?x={{random:1..9999}}" } else { "/echo" };
                    let body = if template { b"{{seq:1000}}".to_vec() } else { payload(body) };
                    let headers = vec![("x-other".into(), "{{uuid}}".into()), ("Cookie".into(), "a=1; b=2".into())];
                    let request = &mut spec.requests[0];
                    request.template = template;
                    request.request = Request { method: "POST".into(), headers, body, ..Request::get(path) };
                    request.expect = Expect { status: Some(200), ..Expect::default() };
                }
            });
            agree(&result, &counters, &name);
            let sent = result.total.sent;
            assert_eq!(result.request_ids, Some(RequestIdCounts { own: sent, ..RequestIdCounts::default() }), "{name}");
            let expected = RequestIdCounters { identified: sent, distinct: sent, ..RequestIdCounters::default() };
            assert_eq!(counters.request_ids, expected, "{name}");
            assert_eq!((counters.contents, result.total.early), (ContentCounters::default(), 0), "{name}");
            // The length of a number is not known beforehand.
            assert_eq!(result.request_body_bytes, (!template).then_some(counters.body_bytes_in), "{name}");
        }
    }
}

#[test]
fn sessions_are_resumed_where_that_is_ordered() {
    let (result, counters) = go(true, Options::default(), counted(100), |spec| {
        spec.tls = Some(TlsSpec { resumption: true, ..TlsSpec::default() });
        (spec.connections, spec.threads, spec.requests_per_connection) = (2, 1, Some(5));
    });
    agree(&result, &counters, "resumption");
    let tls = result.tls.unwrap();
    // Twenty times five requests. The first two connections have no ticket yet.
    assert_eq!((tls.handshakes, tls.failed, tls.resumed), (20, 0, 18));
}

fn mixed() -> KeyValue {
    KeyValue {
        operations: "C:3,S:2,G:4,U:2,D:2".parse().unwrap(),
        value: ValueSize::Uniform(20, 3_000),
        ttl: Some(std::time::Duration::from_secs(600)),
        ..KeyValue::default()
    }
}

/// The same with keys and values, 8 connections with 4 requests in flight, and faults of the origin's.
fn store(protocol: Protocol, faults: &str, keyvalue: KeyValue, kind: LoadKind<OfferedRate>) -> Ran {
    let responses = ResponseOptions { faults: faults.parse().unwrap(), ..ResponseOptions::default() };
    go(protocol.is_tls(), Options { protocol, responses, ..Options::default() }, kind, |spec| {
        spec.requests = RequestSpec::operations(&keyvalue.operations);
        spec.protocol = LoadProtocol::of(protocol, 1).in_flight(4);
        (spec.keyvalue, spec.connections) = (Some(keyvalue), 8);
    })
}

#[test]
fn both_sides_of_a_store_count_the_same_and_nothing_is_wrong() {
    for protocol in Protocol::all().filter(|protocol| protocol.is_keyvalue()) {
        let known = KeyValue { keys: KeyChoice::Zipf(0.99), key_count: Some(900), preload: 500, ..mixed() };
        for (keyvalue, kind) in [(mixed(), counted(2_000)), (known, LoadKind::open(1_000.0, Arrivals::Poisson))] {
            let (result, counters) = store(protocol, "none", keyvalue, kind);
            agree(&result, &counters, &format!("{protocol:?}"));
            let operations: u64 = counters.operations.values().sum();
            assert_eq!(operations, counters.requests + counters.own_requests, "{protocol:?}: {counters:?}");
        }
    }
}

#[test]
fn a_store_that_loses_or_lies_is_caught() {
    use ErrorKind::{Busy, Lost, Resurrected, Stale, WrongValue};
    for protocol in Protocol::all().filter(|protocol| protocol.is_keyvalue() && !protocol.is_tls()) {
        for (faults, kinds) in [
            ("lose=1%", &[Lost, Stale, Resurrected][..]),
            ("stale=1%", &[Lost, Stale, Resurrected]),
            ("busy=1%", &[Busy]),
        ] {
            let (result, counters) = store(protocol, faults, mixed(), counted(3_000));
            let errors = &result.total.errors;
            let name = format!("{protocol:?} {faults}: {errors:?}, {:?}", counters.faults);
            assert!(kinds.iter().any(|kind| errors.contains_key(kind)), "{name}");
            assert!(errors.keys().all(|kind| kinds.contains(kind) || *kind == WrongValue), "{name}");
            assert!(!faults.starts_with("busy") || errors[&Busy] == counters.faults["busy"], "{name}");
        }
    }
}
