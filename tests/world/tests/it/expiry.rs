//! Times to live under a load: what a store forgets too early, or keeps too long, is counted to the key.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSpec, RequestSpec, Target};
use weir_model::protocol::Protocol;
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{NodeOptions, World};
use weir_origin::{Options, ResponseOptions};
use weir_world::engine::{SimOrigin, run_load};

/// Keys of the load.
const KEYS: u64 = 50;

/// A load of 100 requests a second on a store with these faults, for so many seconds. It writes each key once, and then reads each every
/// half of a second.
fn load(protocol: Protocol, faults: &str, ttl: Duration, seconds: u32) -> LoadResult {
    let world = World::new(1);
    let responses = ResponseOptions { faults: faults.parse().unwrap(), ..ResponseOptions::default() };
    let options = Options { protocol, responses, ..Options::default() };
    let origin = SimOrigin::start(&world, options, NodeOptions::default()).unwrap();
    let reads = 100 * u64::from(seconds) - KEYS;
    let keyvalue = KeyValue {
        operations: format!("S:{KEYS},G:{reads}").parse().unwrap(),
        keys: KeyChoice::Sequential,
        key_count: Some(KEYS),
        ttl: Some(ttl),
        ..KeyValue::default()
    };
    let spec = LoadSpec {
        protocol: LoadProtocol::of(protocol, 1),
        requests: RequestSpec::operations(&keyvalue.operations),
        keyvalue: Some(keyvalue),
        kind: LoadKind::open(100.0, Arrivals::Constant),
        connections: 1,
        warmup_s: 0.0,
        duration_s: f64::from(seconds),
        ..LoadSpec::new(Target::tcp(origin.addresses[0], "localhost"), Request::get("/"), Expect::default())
    };
    run_load(&world, &spec).unwrap()
}

#[test]
fn a_key_that_is_gone_or_there_at_the_wrong_time_counts_once() {
    let (ten, one) = (Duration::from_secs(10), Duration::from_secs(1));
    for (faults, ttl, seconds, wrong) in [
        ("none", ten, 4, None),
        ("none", one, 4, None),
        ("expire=0s", ten, 4, Some(ErrorKind::Lost)),
        ("expire=300ms", ten, 4, Some(ErrorKind::Lost)),
        ("expire=3s", ten, 4, Some(ErrorKind::Lost)),
        // Seconds may be wrong by one.
        ("expire=300ms", one, 4, None),
        ("expire=1900ms", one, 4, None),
        ("expire=60s", one, 2, None),
        ("expire=60s", one, 4, Some(ErrorKind::Resurrected)),
    ] {
        let total = load(Protocol::Redis, faults, ttl, seconds).total;
        let expected: BTreeMap<ErrorKind, u64> = wrong.map(|kind| (kind, KEYS)).into_iter().collect();
        assert_eq!((total.sent, total.errors), (100 * u64::from(seconds), expected), "{faults} of {ttl:?}");
    }
}

#[test]
fn the_protocols_unit_of_time_is_no_error() {
    let two = Duration::from_secs(2);
    for protocol in [Protocol::Memcached, Protocol::Juno] {
        let errors = |faults, seconds| load(protocol, faults, two, seconds).total.errors;
        for faults in ["none", "expire=1100ms"] {
            assert_eq!(errors(faults, 6), BTreeMap::new(), "{protocol:?} {faults}");
        }
        assert_eq!(errors("expire=300ms", 3), [(ErrorKind::Lost, KEYS)].into(), "{protocol:?}");
    }
    // A read over JunoDB's protocol asks for a longer life.
    let late = load(Protocol::Memcached, "expire=60s", two, 6).total.errors;
    assert_eq!(late, [(ErrorKind::Resurrected, KEYS)].into());
}
