//! Coordinated omission, to the nanosecond: an origin that stands still has latencies that can be computed by hand.

use std::time::Duration;

use weir_model::load::{LoadSpec, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{NodeOptions, World};
use weir_origin::Options;
use weir_world::engine::{SimOrigin, run_load};

#[test]
fn a_frozen_origin_makes_every_request_wait_that_was_due() {
    let world = World::new(1);
    let origin = SimOrigin::start(&world, Options::default(), NodeOptions::default()).unwrap();
    let request = Request::get("/bytes/128");
    let spec = LoadSpec {
        kind: LoadKind::open(1_000.0, Arrivals::Constant),
        connections: 4,
        warmup_s: 0.0,
        duration_s: 4.0,
        ..LoadSpec::new(Target::tcp(origin.addresses[0], "localhost"), request, Expect::default())
    };
    let handle: Vec<usize> = origin.tasks.clone();
    world.at(2_000_000_000, move |world| handle.iter().for_each(|task| world.freeze(*task, 3_000_000_000)));
    let result = run_load(&world, &spec).unwrap();
    println!("{:?} {:?}", result.latency, result.window);
    let _ = Duration::ZERO;
}
