//! A load that is cut short keeps what it measured, and one that waits for its start can be stopped.

use weir_load::{LoadError, Outputs, Progress, StopFlag};
use weir_model::load::LoadSpec;
use weir_model::suite::LoadKind;

use crate::script::Do;
use crate::servers::{http, late, ok};
use crate::world::*;

#[test]
fn one_stop_ends_the_window_and_waits_for_what_is_in_flight() {
    for (kind, successful) in [(LoadKind::Closed, 4 * 275), (constant(300.0), 330), (counted(1_000_000), 4 * 275)] {
        let world = world();
        let server = http(&world, |_| late(3 * MS));
        let spec = LoadSpec { duration_s: 60.0, threads: 2, timeout_s: 30.0, ..order(server.addr, kind) };
        let (stop, mut ended) = (StopFlag::new(), 0);
        let mut see = |p: Progress| match p {
            Progress::Second(row) if row.second == 0 => stop.set(),
            Progress::WindowEnd => ended += 1,
            _ => {}
        };
        let result = load_with(&world, &spec, &Outputs::default(), &stop, &mut see).unwrap();
        // The first second is told after 50 ms at most, the stop is seen 50 ms later, and the end is as far ahead.
        assert_eq!((result.cut_short, ended, result.window_s), (true, 1, 1.1));
        assert_eq!((result.window.successful, errors(&result.total)), (successful, vec![]));
    }
}

#[test]
fn a_second_stop_ends_the_wait_too() {
    let world = world();
    let server = http(&world, |_| vec![Do::Silence]);
    let spec = LoadSpec { duration_s: 60.0, timeout_s: 60.0, ..order(server.addr, LoadKind::Closed) };
    let (stop, mut draining) = (StopFlag::new(), false);
    let mut see = |p: Progress| match p {
        Progress::Second(row) if row.second == 0 => stop.set(),
        Progress::Draining { in_flight: 4 } => {
            draining = true;
            stop.set();
        }
        _ => {}
    };
    let result = load_with(&world, &spec, &Outputs::default(), &stop, &mut see).unwrap();
    assert_eq!((result.cut_short, draining, errors(&result.total)), (true, true, vec![("timeout", 4)]));
    assert!(world.now() < 4 * SECOND);
}

#[test]
fn a_stop_in_warm_up_leaves_an_empty_window() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let spec = LoadSpec { warmup_s: 60.0, ..order(server.addr, constant(100.0)) };
    let stop = StopFlag::new();
    let mut see = |p: Progress| {
        if let Progress::Warmup { .. } = p {
            stop.set();
        }
    };
    let result = load_with(&world, &spec, &Outputs::default(), &stop, &mut see).unwrap();
    assert_eq!((result.cut_short, result.window.due, result.window_s, result.rate), (true, 0, 0.0, 0.0));
    assert_eq!((result.total.successful, result.series.len()), (110, 0));
}

#[test]
fn a_stop_before_the_start_is_an_error() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let stop = StopFlag::new();
    stop.set();
    let spec = order(server.addr, LoadKind::Closed);
    let error = load_with(&world, &spec, &Outputs::default(), &stop, &mut |_| ()).unwrap_err();
    assert!(matches!(error, LoadError::Stopped) && server.requests() == 0, "{error}");
}

/// Four connections, 4 ms a response: half of the 2,000 a second that are due, so that after two seconds of warm-up the queue is longer
/// than what is carried in the window.
#[test]
fn a_queue_is_left_at_the_windows_end_if_the_order_says_so() {
    // What is in flight at the ends of warm-up and window is answered.
    for (leave_queue, window, total) in [(true, [1_000, 1_000], [3_000, 3_000]), (false, [2_000, 0], [6_000, 0])] {
        let world = world();
        let server = http(&world, |_| late(3 * MS));
        let mut spec = LoadSpec { warmup_s: 2.0, timeout_s: 30.0, ..order(server.addr, constant(2_000.0)) };
        spec.leave_queue = leave_queue;
        let result = load(&world, &spec).unwrap();
        assert_eq!([result.window.sent, result.window.unsent], window);
        assert_eq!([result.total.sent, result.total.unsent], total);
        assert_eq!((result.window.due, result.window.successful_in_window), (2_000, 1_000));
        assert_eq!([result.total.successful, server.requests()], [total[0]; 2]);
        assert_eq!(result.latency.count, 2_000, "what was never sent has waited all the same");
    }
}
