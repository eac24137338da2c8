//! A load that is cut short keeps what it measured.

use std::time::{Duration, Instant};

use weir_model::load::Shape;

use super::server::{Do, Server, ok};
use super::*;
use crate::Progress;

fn stop_after(flag: &StopFlag, pauses: &[u64]) {
    let (flag, pauses) = (flag.clone(), pauses.to_vec());
    std::thread::spawn(move || {
        for pause in pauses {
            std::thread::sleep(Duration::from_millis(pause));
            flag.set();
        }
    });
}

#[test]
fn one_stop_ends_the_window_and_waits_for_what_is_in_flight() {
    for shape in [Shape::Closed, constant(300.0), Shape::Count { requests: 1_000_000 }] {
        let server = Server::start(|_| Do::SendSlowly(vec![], Duration::from_millis(3), ok("ok")));
        let mut spec = order(&server, shape);
        spec.duration_s = 60.0;
        spec.threads = 2;
        let stop = StopFlag::new();
        stop_after(&stop, &[1_300]);
        let started = Instant::now();
        let mut ended = 0;
        let mut see = |p| ended += u32::from(p == Progress::WindowEnd);
        let result = run(&spec, &Outputs::default(), &stop, &mut see).unwrap();
        balanced(&result);
        assert!(result.cut_short);
        assert_eq!(ended, 1);
        assert!(result.window_s > 0.9 && result.window_s < 2.5, "{}", result.window_s);
        assert!(result.window.right > 0);
        assert!(result.total.errors.is_empty(), "{:?}", result.total.errors);
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_second_stop_ends_the_wait_too() {
    let server = Server::start(|_| Do::Nothing);
    let mut spec = order(&server, Shape::Closed);
    spec.duration_s = 60.0;
    spec.timeout_s = 60.0;
    let stop = StopFlag::new();
    stop_after(&stop, &[500, 400]);
    let started = Instant::now();
    let mut draining = false;
    let mut see = |p| draining |= matches!(p, Progress::Draining { in_flight: 4 });
    let result = run(&spec, &Outputs::default(), &stop, &mut see).unwrap();
    balanced(&result);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(result.cut_short && draining);
    assert_eq!(errors(&result.total), [("timeout", 4)]);
}

#[test]
fn a_stop_in_warm_up_leaves_an_empty_window() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, constant(100.0));
    spec.warmup_s = 60.0;
    let stop = StopFlag::new();
    stop_after(&stop, &[500]);
    let result = run(&spec, &Outputs::default(), &stop, &mut |_| {}).unwrap();
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
    let error = run(&order(&server, Shape::Closed), &Outputs::default(), &stop, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Stopped), "{error}");
}
