//! A load that is cut short keeps what it measured. The load itself says when, so that no machine is too slow.

use std::time::{Duration, Instant};

use weir_model::suite::LoadKind;

use super::server::{Do, Server, ok};
use super::*;
use crate::Progress;

/// Far less than the loads here would last.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn one_stop_ends_the_window_and_waits_for_what_is_in_flight() {
    at_once(&[LoadKind::Closed, constant(300.0), LoadKind::Count { requests: 1_000_000 }], |kind| {
        let server = Server::start(|_| Do::SendSlowly(vec![], Duration::from_millis(3), ok("ok")));
        let mut spec = order(&server, kind);
        spec.duration_s = 60.0;
        spec.threads = 2;
        spec.timeout_s = 30.0;
        let stop = StopFlag::new();
        let mut ended = 0;
        let mut see = |p| match p {
            Progress::Second(row) if row.second == 0 => stop.set(),
            Progress::WindowEnd => ended += 1,
            _ => {}
        };
        let result = run(&spec, &Outputs::default(), &stop, &mut see).unwrap();
        balanced(&result);
        assert!(result.cut_short);
        assert_eq!(ended, 1);
        assert!(result.window_s > 0.9 && result.window_s < SOON.as_secs_f64(), "{}", result.window_s);
        assert!(result.window.right > 0);
        assert!(result.total.errors.is_empty(), "{:?}", result.total.errors);
    });
}

#[test]
fn a_second_stop_ends_the_wait_too() {
    let server = Server::start(|_| Do::Nothing);
    let mut spec = order(&server, LoadKind::Closed);
    spec.duration_s = 60.0;
    spec.timeout_s = 60.0;
    let stop = StopFlag::new();
    let started = Instant::now();
    let mut draining = false;
    let mut see = |p| match p {
        Progress::Second(row) if row.second == 0 => stop.set(),
        Progress::Draining { in_flight: 4 } => {
            draining = true;
            stop.set();
        }
        _ => {}
    };
    let result = run(&spec, &Outputs::default(), &stop, &mut see).unwrap();
    balanced(&result);
    assert!(started.elapsed() < SOON);
    assert!(result.cut_short && draining);
    assert_eq!(errors(&result.total), [("timeout", 4)]);
}

#[test]
fn a_stop_in_warm_up_leaves_an_empty_window() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, constant(100.0));
    spec.warmup_s = 60.0;
    let stop = StopFlag::new();
    let mut see = |p| {
        if let Progress::Warmup { .. } = p {
            stop.set();
        }
    };
    let result = run(&spec, &Outputs::default(), &stop, &mut see).unwrap();
    balanced(&result);
    assert!(result.cut_short);
    assert_eq!((result.window.due, result.window_s, result.rate), (0, 0.0, 0.0));
    assert!(result.total.right > 0);
    assert!(result.series.is_empty());
}

#[test]
fn a_stop_before_the_start_is_an_error() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let stop = StopFlag::new();
    stop.set();
    let error = run(&order(&server, LoadKind::Closed), &Outputs::default(), &stop, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Stopped), "{error}");
}

/// Four connections, 3 ms an answer: 1,300 a second at most of the 2,000 that are due, so that after two seconds of warm-up the
/// queue is longer than what is carried in the window.
#[test]
fn a_queue_is_left_at_the_windows_end_if_the_order_says_so() {
    at_once(&[true, false], |leave_queue| {
        let server = Server::start(|_| Do::SendSlowly(vec![], Duration::from_millis(3), ok("ok")));
        let mut spec = order(&server, constant(2_000.0));
        spec.warmup_s = 2.0;
        spec.timeout_s = 30.0;
        spec.leave_queue = leave_queue;
        let result = load(&spec).unwrap();
        balanced(&result);
        assert_eq!(result.window.due, 2_000);
        assert!(result.total.errors.is_empty(), "what was sent is waited for: {:?}", result.total.errors);
        assert_eq!(server.requests(), result.total.sent);
        assert_eq!(result.latency.count, 2_000, "what was never sent has waited all the same");
        assert_eq!(result.window.unsent > 0, leave_queue, "{}", result.window.unsent);
        if leave_queue {
            assert!(result.window.sent > 0, "the queue of the warm-up would have taken the whole window");
            assert!(result.total.unsent > result.window.unsent, "it was left at the warm-up's end");
            assert!(result.window.right - result.window.right_in_window <= 4, "one on each connection");
        }
    });
}
