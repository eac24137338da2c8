//! Loads on real sockets, for what only a kernel and threads show: that both drivers carry every protocol, refuse and bind as they
//! should, and account for CPU time. Nothing here depends on how fast the machine is.

use std::net::TcpListener;
use std::sync::mpsc::channel;

use weir_load::{Gate, LoadError, Outputs, Progress, StopFlag, run, run_gated};
use weir_model::keyvalue::KeyValue;
use weir_model::load::{
    DriverChoice, Endpoint, ErrorKind, LoadProtocol, LoadResult, LoadSpec, MessageCounts, RequestSpec, SlowClientsSpec,
    StreamKind, StreamSpec, TlsSpec,
};
use weir_model::suite::{LoadKind, Protocol};
use weir_origin::{Options, Origin};
use weir_wire::tls::{Identity, KeyKind, ServerOptions};

use crate::world::{balanced, constant, counted, order};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Epoll, DriverChoice::IoUring];

fn origin(driver: DriverChoice, protocol: Protocol, unix: Option<std::path::PathBuf>) -> Origin {
    let identities = || vec![Identity::generated(KeyKind::P256).unwrap()];
    let tls = protocol.is_tls().then(|| ServerOptions { identities: identities(), ..ServerOptions::default() });
    let http3 = protocol.is_quic();
    let protocol = if protocol.is_keyvalue() { protocol } else { Protocol::default() };
    Origin::start(Options { driver, protocol, tls, http3, unix, threads: 2, ..Options::default() }).unwrap()
}

fn load(spec: &LoadSpec) -> Result<LoadResult, LoadError> {
    let result = run(spec, &Outputs::default(), &StopFlag::new(), &mut |_| ())?;
    balanced(&result);
    Ok(result)
}

/// Over TCP, and by a Unix socket where there may be one; some keys are written first.
#[test]
fn every_protocol_goes_by_either_driver() {
    let folder = tempfile::tempdir().unwrap();
    for driver in DRIVERS {
        for protocol in Protocol::all() {
            let path = folder.path().join(format!("{driver:?} {protocol:?}"));
            let origin = origin(driver, protocol, (!protocol.is_keyvalue()).then(|| path.clone()));
            let mut spec = LoadSpec { driver, threads: 2, duration_s: 60.0, ..order(origin.addr(), counted(500)) };
            (spec.timeout_s, spec.protocol) = (30.0, LoadProtocol::of(protocol, 1).in_flight(4));
            spec.tls = protocol.is_tls().then(TlsSpec::default);
            let mut preload = 0;
            if protocol.is_keyvalue() {
                preload = 100;
                let keyvalue = KeyValue { preload, ..KeyValue::default() };
                spec.requests = RequestSpec::operations(&keyvalue.operations);
                spec.keyvalue = Some(keyvalue);
            }
            let mut loads = vec![load(&spec).unwrap()];
            if !protocol.is_keyvalue() && !protocol.is_quic() {
                spec.targets[0].address = Endpoint::Unix(path);
                loads.push(load(&spec).unwrap());
            }
            let counters = origin.stop();
            let name = format!("{driver:?} {protocol:?}");
            for result in &loads {
                assert_eq!(
                    [result.total.successful, result.total.sent],
                    [500 + preload; 2],
                    "{name}: {:?}",
                    result.total
                );
                assert_eq!(
                    result.tls.as_ref().map(|tls| (tls.handshakes, tls.failed)).is_some(),
                    protocol.is_tls(),
                    "{name}"
                );
                assert!(
                    result.driver == if driver == DriverChoice::Epoll { "epoll" } else { "io_uring" },
                    "{}",
                    result.driver
                );
            }
            let sum = |f: fn(&LoadResult) -> u64| loads.iter().map(f).sum::<u64>();
            assert_eq!([counters.requests, counters.answered], [sum(|one| one.total.sent); 2], "{name}");
            assert_eq!(counters.connections_accepted, sum(|one| one.total.connections), "{name}");
        }
    }
}

/// Five streams of twelve messages each, which take 50 ms.
#[test]
fn streams_go_by_either_driver() {
    for driver in DRIVERS {
        for protocol in Protocol::all().filter(|protocol| !protocol.is_keyvalue()) {
            let origin = origin(driver, protocol, None);
            let mut spec = LoadSpec { driver, threads: 2, duration_s: 60.0, ..order(origin.addr(), counted(5)) };
            (spec.timeout_s, spec.protocol) = (30.0, LoadProtocol::of(protocol, 1).in_flight(1));
            spec.tls = protocol.is_tls().then(TlsSpec::default);
            spec.stream = Some(StreamSpec { kind: StreamKind::Sse, one_clock: true });
            spec.requests[0].request.path = "/stream?messages=12&first=6ms&every=4ms&size=300".into();
            let result = load(&spec).unwrap();
            let total = MessageCounts { received: 60, bytes: 18_000, begun: 5, whole: 5, ..MessageCounts::default() };
            let messages = result.messages.unwrap();
            let seen = MessageCounts { late_heads: 0, first_reads: 0, gathered: 0, ..messages.total };
            assert_eq!((seen, messages.delay.count), (total, 60), "{driver:?} {protocol:?}");
            assert_eq!((result.total.successful, result.total.body_bytes), (5, 60 * 308), "{driver:?} {protocol:?}");
            let counters = origin.stop();
            assert_eq!((counters.answered, counters.body_bytes_out), (5, 60 * 308), "{driver:?} {protocol:?}");
        }
    }
}

/// By an abstract Unix socket, and to an address of a zone.
#[test]
fn other_addresses_are_reached_by_either_driver() {
    let lo = weir_net::interface_index("lo").unwrap();
    for driver in DRIVERS {
        let name = format!("@weir-load-{}-{driver:?}", std::process::id());
        let listen = "[::1]:0".parse().unwrap();
        let options = Options { driver, listen, unix: Some(name.clone().into()), ..Options::default() };
        let origin = Origin::start(options).unwrap();
        let zoned = std::net::SocketAddrV6::new(std::net::Ipv6Addr::LOCALHOST, origin.addr().port(), 0, lo);
        for address in [Endpoint::Unix(name.clone().into()), Endpoint::Tcp(zoned.into())] {
            let mut spec = LoadSpec { driver, duration_s: 60.0, ..order(origin.addr(), counted(20)) };
            spec.targets[0].address = address;
            assert_eq!(load(&spec).unwrap().total.successful, 20, "{driver:?} {:?}", spec.targets);
        }
        assert_eq!(origin.stop().requests, 40);
    }
}

#[test]
fn large_bodies_go_both_ways_by_either_driver() {
    let body: Vec<u8> = (0..700_000).map(|i| (i % 251) as u8).collect();
    for (driver, protocol) in
        DRIVERS.into_iter().flat_map(|driver| [(driver, Protocol::Http11), (driver, Protocol::H2)])
    {
        let origin = origin(driver, protocol, None);
        let mut spec = LoadSpec { driver, duration_s: 60.0, timeout_s: 30.0, ..order(origin.addr(), counted(20)) };
        spec.protocol = LoadProtocol::of(protocol, 1);
        spec.tls = protocol.is_tls().then(TlsSpec::default);
        let request = &mut spec.requests[0];
        (request.request.method, request.request.path) = ("POST".into(), "/echo".into());
        request.request.body = body.clone();
        request.expect.hash = Some(xxhash_rust::xxh3::xxh3_64(&body));
        assert_eq!(load(&spec).unwrap().total.successful, 20, "{driver:?} {protocol:?}");
        assert_eq!(origin.stop().body_bytes_in, 20 * 700_000);
    }
}

#[test]
fn slow_clients_go_by_either_driver() {
    for (driver, protocol) in
        DRIVERS.into_iter().flat_map(|driver| [(driver, Protocol::Http11), (driver, Protocol::Https11)])
    {
        let origin = origin(driver, protocol, None);
        let slow = |writers| SlowClientsSpec { writers, clients: 40, bytes_per_second: 1_000, at_s: 0.1, for_s: 2.5 };
        let slow_clients = vec![slow(false), slow(true)];
        let tls = protocol.is_tls().then(TlsSpec::default);
        let order = order(origin.addr(), constant(100.0));
        let spec = LoadSpec { driver, threads: 2, duration_s: 3.0, slow_clients, tls, ..order };
        let result = load(&spec).unwrap();
        let counters = origin.stop();
        assert_eq!((counters.requests, counters.connections_used), (result.total.sent, result.total.connections));
        for seen in &result.slow_clients {
            assert!((1..=40).contains(&seen.opened) && u64::from(seen.held) <= seen.opened, "{driver:?}: {seen:?}");
            assert_eq!((seen.completed, seen.cut, seen.refused, seen.statuses.len()), (0, 0, 0, 0), "{driver:?}");
        }
        let [readers, writers] = result.slow_clients.as_slice() else { panic!("two kinds") };
        // Three turns at most.
        assert!((1..=120_000).contains(&readers.bytes_in), "{driver:?}: {readers:?}");
        // Handshakes and records come on top.
        let (handshakes, more) = if protocol.is_tls() { (true, 40_000) } else { (false, 0) };
        assert_eq!(writers.bytes_in > 0, handshakes, "{driver:?}: {writers:?}");
        assert!((40_000..130_000 + more).contains(&writers.bytes_out), "{driver:?}: {writers:?}");
        assert_eq!(counters.own_requests, readers.opened + writers.opened, "{driver:?}: apart from the others");
    }
}

#[test]
fn nobody_listening_is_refused() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for driver in DRIVERS {
        let error = load(&LoadSpec { driver, timeout_s: 30.0, ..order(addr, LoadKind::Closed) }).unwrap_err();
        assert!(matches!(error, LoadError::NoConnection { kind: ErrorKind::ConnectRefused, .. }), "{error}");
    }
}

#[test]
fn given_source_addresses_are_bound() {
    for driver in DRIVERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let spec = LoadSpec {
            driver,
            connections: 2,
            sources: ["127.0.0.7", "127.0.0.9"].map(|ip| ip.parse().unwrap()).to_vec(),
            timeout_s: 0.5,
            duration_s: 0.1,
            ..order(listener.local_addr().unwrap(), LoadKind::Closed)
        };
        // Nothing is answered.
        load(&spec).unwrap();
        let mut from = [(); 2].map(|()| listener.accept().unwrap().1.ip());
        from.sort_unstable();
        assert_eq!(from, spec.sources[..]);
    }
}

/// So few are due that a busy machine keeps up with them, each with up to 50 us awake before it.
#[test]
fn what_is_spent_awake_and_waiting_is_told_apart_from_work() {
    for driver in DRIVERS {
        let origin = origin(driver, Protocol::Http11, None);
        let mut spec = LoadSpec { driver, ..order(origin.addr(), constant(200.0)) };
        let open = load(&spec).unwrap();
        let cpu_us = open.cpu_us.0 + open.cpu_us.1;
        assert!(open.busy_poll_us > 0 && open.busy_poll_us <= cpu_us, "{} of {cpu_us} us", open.busy_poll_us);
        let work = (cpu_us - open.busy_poll_us) as f64 / 1e6 / open.window_s;
        assert!((open.thread_busy[0] - work).abs() < 0.01, "{:?}, {work}", open.thread_busy);
        spec.kind = LoadKind::Closed;
        let closed = load(&spec).unwrap();
        assert_eq!(closed.busy_poll_us, 0, "nothing falls due in a closed load");
        assert!(closed.thread_busy[0] > 0.0 && closed.cpu_us.0 + closed.cpu_us.1 > 0, "{closed:?}");
    }
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_before_anything_is_sent() {
    let origin = origin(DriverChoice::Auto, Protocol::Http11, None);
    let error = load(&LoadSpec { cpus: vec![100_000], ..order(origin.addr(), LoadKind::Closed) }).unwrap_err();
    assert!(matches!(error, LoadError::Cpu { cpu: 100_000, .. }), "{error}");
    assert_eq!(origin.stop().connections_accepted, 0);
}

/// The thread that calls waits for its gate, whose end stops the load.
#[test]
fn a_gate_starts_a_load_and_stops_it() {
    let origin = origin(DriverChoice::Auto, Protocol::Http11, None);
    let spec = LoadSpec { duration_s: 60.0, ..order(origin.addr(), counted(100)) };
    for starts in [true, false] {
        let (starter, gate): (_, Gate) = channel();
        let mut starter = Some(starter);
        let mut see = |news: Progress| {
            if news == Progress::Ready
                && let Some(starter) = starter.take()
                && starts
            {
                let mono_ns = weir_net::monotonic_ns() + 2_000_000_000;
                starter.send(weir_model::At { mono_ns, unix_ns: 1_700_000_000_123_000_000 }).unwrap();
            }
        };
        match run_gated(&spec, &Outputs::default(), Some(&gate), &StopFlag::new(), &mut see) {
            Ok(result) => {
                assert_eq!((starts, result.window.successful, result.window_start_ms), (true, 100, 1_700_000_000_123))
            }
            Err(error) => assert!(!starts && matches!(error, LoadError::Stopped), "{error}"),
        }
    }
}
