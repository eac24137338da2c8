//! The keys that a load begins with: they are written first, and a load whose keys could not be written is none.

use weir_load::LoadError;
use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{LoadProtocol, LoadResult, LoadSpec, RequestSpec, Target};
use weir_model::protocol::Protocol;
use weir_model::suite::{Expect, LoadKind, Request};
use weir_net::sim::{NodeOptions, World};
use weir_origin::{Faults, Options, ResponseOptions};
use weir_world::engine::{SimOrigin, run_load};

const KEYS: u64 = 50;

/// A load that begins with some keys, on a store with these faults.
fn load(faults: Option<&str>) -> Result<LoadResult, LoadError> {
    let world = World::new(1);
    let responses = ResponseOptions {
        faults: faults.map_or_else(Faults::default, |text| text.parse().unwrap()),
        ..ResponseOptions::default()
    };
    let options = Options { protocol: Protocol::Redis, responses, ..Options::default() };
    let origin = SimOrigin::start(&world, options, NodeOptions::default()).unwrap();
    let keyvalue =
        KeyValue { keys: KeyChoice::Sequential, preload: KEYS, key_count: Some(KEYS), ..KeyValue::default() };
    let target = Target::tcp(origin.addresses[0], "localhost");
    let spec = LoadSpec {
        protocol: LoadProtocol::of(Protocol::Redis, 1),
        requests: RequestSpec::operations(&keyvalue.operations),
        keyvalue: Some(keyvalue),
        kind: LoadKind::Count { requests: 100 },
        ..LoadSpec::new(target, Request::get("/"), Expect::default())
    };
    run_load(&world, &spec)
}

#[test]
fn keys_are_written_before_the_load_and_counted_apart() {
    let result = load(None).unwrap();
    let preload = result.preload.expect("keys were written");
    assert_eq!((preload.successful, result.window.successful, result.total.successful), (KEYS, 100, KEYS + 100));
}

#[test]
fn a_load_whose_keys_cannot_be_written_is_none() {
    let error = load(Some("busy")).unwrap_err();
    assert!(matches!(error, LoadError::Preload { written: 0, of: KEYS, .. }), "{error:?}");
}
