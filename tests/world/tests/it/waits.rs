//! Who is to blame for a request that left late: its connections, or the client.

use weir_model::load::{LoadSpec, OfferedRate, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{NodeOptions, World};
use weir_origin::Options;
use weir_world::engine::{SimOrigin, run_load};

/// Found by a random run: requests that became due while no connection was free, and left with the response that freed one, counted as
/// if the client had slept.
#[test]
fn a_request_that_waits_for_a_connection_is_no_lateness_of_the_client() {
    let world = World::new(1);
    let origin = SimOrigin::start(&world, Options::default(), NodeOptions::default()).unwrap();
    let spec = LoadSpec {
        kind: LoadKind::<OfferedRate>::open(1_000.0, Arrivals::Constant),
        connections: 1,
        warmup_s: 0.0,
        duration_s: 1.0,
        ..LoadSpec::new(
            Target::tcp(origin.addresses[0], "localhost"),
            Request::get("/bytes/128?delay=1500us"),
            Expect::default(),
        )
    };
    let result = run_load(&world, &spec).unwrap();
    assert!(result.lag.p99_us > 1_000.0, "each waits for the one before: {:?}", result.lag);
    let own = result.lateness.expect("an open load");
    assert_eq!(own.lag.max_us, 0.0, "{own:?}");
}
