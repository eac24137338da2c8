//! Open loads of a rate that no client can offer: they end with their window and its drain, and every request of it is counted.

use weir_model::load::{Bursts, LoadResult, LoadSpec, OfferedRate, Step};
use weir_model::suite::{Arrivals, LoadKind};

use crate::script::Do;
use crate::servers::{http, ok};
use crate::world::*;

/// Four connections carry 4,000 requests a second. The first one's are due at the start, those of the others 1 ns later and more, so that
/// their last responses come when the load is over.
fn run(rate: OfferedRate, change: impl FnOnce(&mut LoadSpec)) -> LoadResult {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let mut spec = order(server.addr, LoadKind::Open { rate, arrivals: Arrivals::Constant });
    (spec.warmup_s, spec.timeout_s) = (0.1, 0.5);
    change(&mut spec);
    let result = load(&world, &spec).unwrap();
    // The load begins after 50 ms; the last second is the world's own, in which connections are closed.
    let end = 0.05 + spec.warmup_s + spec.duration_s + spec.timeout_s + 1.0;
    assert!((end - world.now() as f64 / 1e9).abs() < 0.1, "{end} {}", world.now());
    assert_eq!(result.window_s, spec.duration_s);
    result
}

#[test]
fn a_rate_that_nobody_can_offer_ends_with_its_window() {
    let result = run(OfferedRate::Constant(1e9), |_| ());
    let window = &result.window;
    assert_eq!((window.due, result.total.due), (1_000_000_000, 1_100_000_000));
    // The queue of the warm-up is far from being sent when the drain ends.
    assert_eq!((window.successful, window.unsent), (0, 1_000_000_000));
    assert_eq!((result.total.successful, errors(&result.total)), (4 * 1_600 - 3, vec![("timeout", 4)]));
    // From the window's first request, which waited for 1.5 s, to its last.
    times(&result.latency, SECOND / 2 + 1, SECOND, SECOND / 2 + SECOND);
}

#[test]
fn other_shapes_end_as_well() {
    let result = run(OfferedRate::Ramp { from: 0.0, to: 1e9 }, |spec| spec.warmup_s = 0.0);
    assert_eq!((result.window.due, result.window.successful), (500_000_000, 4 * 1_500 - 3));
    let steps = vec![Step { rate: 1e9, for_s: 0.25 }, Step { rate: 0.0, for_s: 0.5 }, Step { rate: 1e8, for_s: 0.25 }];
    assert_eq!(run(OfferedRate::Steps(steps), |spec| spec.warmup_s = 0.0).window.due, 275_000_000);
    let in_bursts = run(OfferedRate::Constant(1e9), |spec| {
        (spec.warmup_s, spec.bursts) = (0.0, Some(Bursts { on_s: 0.1, off_s: 0.1 }));
    });
    assert_eq!(in_bursts.window.due, 500_000_000);
}

#[test]
fn a_queue_is_counted_as_one_by_one() {
    // At 100 a second each request has a sample of its own; a target that is silent leaves all but the first four unsent.
    let world = world();
    let server = http(&world, |_| vec![Do::Silence]);
    let spec = LoadSpec { timeout_s: 3.0, duration_s: 2.0, ..order(server.addr, constant(100.0)) };
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.window.due, result.window.unsent, result.latency.count), (200, 192, 200));
}
