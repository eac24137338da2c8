//! Key-value loads on weir's own origin: the counters of both sides agree, and a store that loses or lies is caught.

use weir_load::{Outputs, StopFlag, run};
use weir_model::counters::OriginCounters;
use weir_model::keyvalue::{KeyChoice, KeyValue, ValueSize};
use weir_model::load::{
    DriverChoice, ErrorKind, LoadProtocol, LoadResult, LoadSpec, OfferedRate, RequestSpec, Target, TlsSpec,
};
use weir_model::suite::{Arrivals, Expect, LoadKind, Protocol, Request};
use weir_origin::{Options, Origin, ResponseOptions};
use weir_wire::tls::{Identity, KeyKind, ServerOptions};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Epoll, DriverChoice::IoUring];

fn origin(driver: DriverChoice, protocol: Protocol, faults: &str) -> Origin {
    let tls = protocol.is_tls().then(|| ServerOptions {
        identities: vec![Identity::generated(KeyKind::P256).expect("a certificate")],
        ..ServerOptions::default()
    });
    let responses = ResponseOptions { faults: faults.parse().expect("faults"), ..ResponseOptions::default() };
    let options = Options { driver, protocol, tls, responses, threads: 2, ..Options::default() };
    Origin::start(options).expect("an origin")
}

fn order(origin: &Origin, protocol: Protocol, keyvalue: KeyValue) -> LoadSpec {
    let in_flight = 4;
    LoadSpec {
        requests: RequestSpec::operations(&keyvalue.operations),
        protocol: LoadProtocol::of(protocol, 1).in_flight(in_flight),
        keyvalue: Some(keyvalue),
        tls: protocol.is_tls().then(TlsSpec::default),
        kind: LoadKind::Count { requests: 6_000 },
        connections: 8,
        threads: 2,
        duration_s: 60.0,
        timeout_s: 10.0,
        ..LoadSpec::new(Target::tcp(origin.addr(), "localhost"), Request::default(), Expect::default())
    }
}

fn mixed() -> KeyValue {
    KeyValue {
        operations: "C:3,S:2,G:4,U:2,D:2".parse().expect("a mix"),
        value: ValueSize::Uniform(20, 3000),
        ttl: Some(std::time::Duration::from_secs(600)),
        ..KeyValue::default()
    }
}

fn go(spec: &LoadSpec, origin: Origin) -> (LoadResult, OriginCounters) {
    let result = run(spec, &Outputs::default(), &StopFlag::new(), &mut |_| {}).expect("a load");
    (result, origin.stop())
}

#[test]
fn both_sides_count_the_same_and_nothing_is_wrong() {
    for driver in DRIVERS {
        for protocol in Protocol::measured().filter(|protocol| protocol.is_keyvalue()) {
            let known = KeyValue { keys: KeyChoice::Zipf(0.99), key_count: Some(900), preload: 500, ..mixed() };
            for (keyvalue, kind) in
                [(mixed(), LoadKind::Count { requests: 6_000 }), (known, LoadKind::open(1_000.0, Arrivals::Poisson))]
            {
                let origin = origin(driver, protocol, "none");
                let duration_s = if matches!(kind, LoadKind::Count { .. }) { 60.0 } else { 1.5 };
                let kind: LoadKind<OfferedRate> = kind;
                let spec = LoadSpec { driver, kind, duration_s, ..order(&origin, protocol, keyvalue) };
                let (result, counters) = go(&spec, origin);
                let (name, total) = (format!("{driver:?} {protocol:?}"), &result.total);
                assert_eq!(total.right, total.sent, "{name}: {:?}", total.errors);
                assert_eq!((counters.requests, counters.answered), (total.sent, total.sent), "{name}");
                assert_eq!(counters.connections_accepted, total.connections, "{name}");
                assert_eq!(counters.body_bytes_out, total.body_bytes, "{name}");
                assert_eq!(counters.malformed, 0, "{name}");
                let operations: u64 = counters.operations.values().sum();
                assert_eq!(operations, counters.requests + counters.own_requests, "{name}: {counters:?}");
            }
        }
    }
}

#[test]
fn a_store_that_loses_or_lies_is_caught() {
    for protocol in Protocol::measured().filter(|protocol| protocol.is_keyvalue() && !protocol.is_tls()) {
        for (faults, kinds) in [
            ("lose=1%", &[ErrorKind::Lost, ErrorKind::Stale, ErrorKind::Resurrected][..]),
            ("stale=1%", &[ErrorKind::Lost, ErrorKind::Stale, ErrorKind::Resurrected]),
            ("busy=1%", &[ErrorKind::Busy]),
        ] {
            let origin = origin(DriverChoice::Auto, protocol, faults);
            let (result, counters) = go(&order(&origin, protocol, mixed()), origin);
            let errors = &result.total.errors;
            let name = format!("{protocol:?} {faults}: {errors:?}, {:?}", counters.faults);
            assert!(kinds.iter().any(|kind| errors.get(kind).is_some_and(|count| *count > 0)), "{name}");
            assert!(errors.keys().all(|kind| kinds.contains(kind) || *kind == ErrorKind::WrongValue), "{name}");
            if faults.starts_with("busy") {
                assert_eq!(errors[&ErrorKind::Busy], counters.faults["busy"], "{name}");
            }
        }
    }
}
