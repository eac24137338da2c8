//! HTTP/3 on weir's own origin: every kind of load, with exact times where nothing is lost, and with loss; and servers that do not speak it.

use weir_load::LoadError;
use weir_model::counters::OriginCounters;
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSpec, OfferedRate, Target, TlsSpec, TlsVersion};
use weir_model::suite::{LoadKind, Request};
use weir_net::sim::{Link, World};
use weir_origin::{Options, ResponseOptions, payload_hash};
use weir_wire::tls::{Identity, KeyKind, ServerOptions};

use crate::world::*;

fn options() -> Options {
    let identities = vec![Identity::generated(KeyKind::P256).unwrap()];
    Options { tls: Some(ServerOptions { identities, ..ServerOptions::default() }), http3: true, ..Options::default() }
}

/// Two connections with so many requests in flight each.
fn streams(addr: std::net::SocketAddr, kind: LoadKind<OfferedRate>, streams: u32) -> LoadSpec {
    let (protocol, tls) = (LoadProtocol::Http3 { streams }, Some(TlsSpec::default()));
    LoadSpec { protocol, tls, connections: 2, ..order(addr, kind) }
}

fn with_body(spec: &mut LoadSpec, size: u64) {
    spec.requests[0].request.path = format!("/bytes/{size}");
    spec.requests[0].expect.size = Some(size);
    spec.requests[0].expect.hash = Some(payload_hash(size as usize));
}

fn run(
    world: &World,
    options: Options,
    kind: LoadKind<OfferedRate>,
    change: impl Fn(&mut LoadSpec),
) -> (LoadResult, OriginCounters) {
    let origin = SimOrigin::start(world, options);
    let mut spec = streams(origin.addr, kind, 7);
    change(&mut spec);
    let result = load(world, &spec).unwrap();
    (result, origin.counters())
}

#[test]
fn streams_carry_every_kind_of_load_in_one_round_trip() {
    for (kind, sent) in [(counted(501), 501), (constant(500.0), 500), (LoadKind::Closed, 2 * 7 * 1_000)] {
        let world = world();
        let (result, counters) = run(&world, options(), kind, |spec| with_body(spec, 100));
        assert_eq!([counters.requests, counters.answered, result.total.sent, result.total.successful], [sent; 4]);
        assert_eq!((result.streams, result.protocol.as_str()), (7, "h3"));
        assert_eq!((counters.connections_accepted, result.connections_used), (2, 2));
        assert_eq!((counters.versions.get("HTTP/3"), counters.malformed), (Some(&sent), 0));
        assert_eq!([counters.body_bytes_out, result.total.body_bytes], [sent * 100; 2]);
        times(&result.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
        // One round trip brings the keys of both sides.
        times(&result.handshake, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
        let (tls, quic) = (result.tls.unwrap(), result.quic.unwrap());
        assert_eq!((tls.handshakes, tls.failed, tls.versions.get("TLS 1.3")), (2, 0, Some(&2)));
        assert_eq!((quic.connections, quic.packets_lost, quic.refused, quic.waited), (2, 0, 0, 0));
        assert!(quic.send_calls <= quic.datagrams_out && quic.receive_calls <= quic.datagrams_in, "{quic:?}");
        assert!((ROUND_TRIP as f64 / 1e3..ROUND_TRIP as f64 / 1e3 * 1.1).contains(&quic.rtt_us), "{quic:?}");
        // What goes over the streams, and not the frames of QUIC's driver.
        assert_eq!(result.total.bytes_in, result.total.plaintext_in);
        assert!(result.total.bytes_in < counters.bytes_out + 200 && result.total.bytes_in > sent * 100);
    }
}

#[test]
fn what_is_lost_is_sent_again_and_the_same_seed_loses_the_same() {
    for (loss, size) in [(10_000, 100), (30_000, 100), (30_000, 20_000)] {
        let once = || {
            let world = world();
            world.set_default_link(Link { latency: ROUND_TRIP / 2, loss, ..Link::default() });
            run(&world, options(), constant(500.0), |spec| with_body(spec, size))
        };
        let (result, counters) = once();
        assert_eq!([result.total.successful, counters.answered], [500; 2], "{loss} {size}: {result:?}");
        let quic = result.quic.clone().unwrap();
        let share = quic.packets_lost as f64 / quic.packets_out as f64 * 1e6;
        // Its own packets; four standard deviations, and what is only late.
        assert!(share > 0.0 && share < 2.0 * f64::from(loss) + 10_000.0, "{quic:?}");
        if size == 100 {
            assert_eq!(result.latency.p50_us, us(ROUND_TRIP), "most are not touched");
        }
        assert!(result.latency.max_us > us(2 * ROUND_TRIP), "some are");
        assert_eq!(once(), (result, counters), "{loss} {size}");
    }
}

#[test]
fn bodies_larger_than_windows_go_both_ways() {
    let world = world();
    let (result, counters) = run(&world, options(), counted(20), |spec| {
        let body: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
        spec.requests[0].expect.size = Some(body.len() as u64);
        spec.requests[0].request = Request { method: "POST".into(), body, ..Request::get("/echo") };
        (spec.timeout_s, spec.duration_s) = (30.0, 60.0);
    });
    let total = &result.total;
    assert_eq!((total.successful, total.body_bytes), (20, 60_000_000), "{total:?} {:?}", result.reasons);
    assert_eq!([counters.body_bytes_in, counters.body_bytes_out], [60_000_000; 2]);
}

#[test]
fn connections_are_made_anew_where_that_is_ordered() {
    for (requests, resumption) in [(5, false), (5, true), (1, false)] {
        let world = world();
        let (result, counters) = run(&world, options(), counted(100), |spec| {
            spec.requests_per_connection = Some(requests);
            spec.tls = Some(TlsSpec { resumption, ..TlsSpec::default() });
        });
        let connections = 100 / requests;
        assert_eq!((result.total.successful, counters.answered), (100, 100), "{requests}: {result:?}");
        assert_eq!((counters.connections_accepted, counters.connections_reset), (result.total.connections, 0));
        assert!((connections..connections + 3).contains(&result.total.connections), "{}", result.total.connections);
        let tls = result.tls.unwrap();
        // The first two connections have no ticket yet.
        let resumed = if resumption { tls.handshakes - 2 } else { 0 };
        assert_eq!((tls.handshakes, tls.resumed), (result.total.connections, resumed));
    }
}

#[test]
fn what_quic_does_not_have_is_refused_before_the_load() {
    let origin = SimOrigin::start(&world(), options());
    for change in [
        (|spec: &mut LoadSpec| spec.tls = None) as fn(&mut LoadSpec),
        |spec| spec.proxy_protocol = Some(weir_model::load::ProxyVersion::V1),
        |spec| spec.tls = Some(TlsSpec { versions: (TlsVersion::Tls12, TlsVersion::Tls12), ..TlsSpec::default() }),
        |spec| spec.targets.push(Target { authority: "other.test".into(), ..spec.targets[0].clone() }),
    ] {
        let mut spec = streams(origin.addr, LoadKind::Closed, 1);
        change(&mut spec);
        let error = load(&world(), &spec).unwrap_err();
        assert!(matches!(error, LoadError::InvalidSpec(_)), "{error}");
    }
}

#[test]
fn faults_of_streams_leave_the_connection() {
    use ErrorKind::{BadStatus, StreamReset, Timeout};
    for (fault, kind) in [("reset:10%", StreamReset), ("status=503:10%", BadStatus), ("stall:10%", Timeout)] {
        let world = world();
        let responses = ResponseOptions { faults: fault.parse().unwrap(), ..ResponseOptions::default() };
        let (result, counters) = run(&world, Options { responses, ..options() }, counted(300), |spec| {
            with_body(spec, 3_000);
            (spec.timeout_s, spec.duration_s) = (0.5, 60.0);
        });
        let faults: u64 = counters.faults.values().sum();
        assert!(faults > 0 && faults < 100, "{fault}: {:?}", counters.faults);
        assert_eq!(result.total.errors.get(&kind).copied().unwrap_or(0), faults, "{fault}: {:?}", result.total.errors);
        assert_eq!((result.total.successful, result.total.connections), (300 - faults, 2), "{fault}");
    }
}

#[test]
fn a_server_without_quic_is_an_error_that_says_udp() {
    let error = |down: bool, http3: bool, authorities: Option<std::path::PathBuf>| {
        let world = world();
        let origin = SimOrigin::start(&world, Options { http3, ..options() });
        if down {
            world.set_default_link(Link { down: true, ..Link::default() });
        }
        let mut spec = streams(origin.addr, LoadKind::Closed, 1);
        spec.tls = Some(TlsSpec { authorities, ..TlsSpec::default() });
        match load(&world, &spec).unwrap_err() {
            LoadError::NoConnection { kind, detail, .. } => (kind, detail),
            other => panic!("{other}"),
        }
    };
    let (kind, text) = error(false, false, None);
    assert_eq!((kind, text.contains("UDP")), (ErrorKind::ConnectRefused, true), "{text}");
    let (kind, text) = error(true, true, None);
    assert_eq!((kind, text.contains("UDP")), (ErrorKind::ConnectTimeout, true), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other.pem");
    std::fs::write(&other, Identity::generated(KeyKind::Rsa).unwrap().chain).unwrap();
    let (kind, text) = error(false, true, Some(other));
    assert_eq!((kind, text.contains("certificate")), (ErrorKind::Tls, true), "{text}");
}
