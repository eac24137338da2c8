//! Several requests in flight on a connection, and how many a connection carries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_model::load::{LoadProtocol, OfferedRate};
use weir_model::suite::LoadKind;

use super::server::{Do, Server, ok};
use super::*;

fn pipelined(server: &Server, kind: LoadKind<OfferedRate>, pipeline: u32) -> LoadSpec {
    LoadSpec { protocol: LoadProtocol::Http1 { pipeline }, connections: 2, ..order(server, kind) }
}

#[test]
fn pipelined_requests_are_answered_in_order_and_all_counted() {
    at_once(&DRIVERS, |driver| {
        for kind in [LoadKind::Count { requests: 1_001 }, constant(1_000.0), LoadKind::Closed] {
            // Answers differ, so that one taken for another would be wrong.
            let server = Server::start(|asked| Do::Send(ok(if asked.number % 2 == 0 { "even" } else { "odd number" })));
            let mut spec = pipelined(&server, kind.clone(), 7);
            spec.driver = driver;
            let result = load(&spec).unwrap();
            assert_eq!(server.requests(), result.total.sent, "{kind:?}");
            assert_eq!(result.total.right, result.total.sent, "{:?}", result.total);
            assert_eq!(result.total.connections, 2);
            assert_eq!((result.streams, result.protocol.as_str()), (7, "http/1.1"));
            assert_eq!((result.most_open, result.connections_used), (2, 2));
            if let LoadKind::Count { requests } = kind {
                assert_eq!(result.total.sent, requests);
                assert_eq!(result.total.body_bytes, 4 * 501 + 10 * 500);
            }
        }
    });
}

#[test]
fn as_many_requests_are_in_flight_as_were_asked_for() {
    // Nothing is answered: what arrives is what was in flight.
    let server = Server::start(|asked| if asked.number < 20 { Do::Send(vec![]) } else { Do::Nothing });
    let mut spec = pipelined(&server, LoadKind::Closed, 5);
    spec.timeout_s = 0.5;
    spec.duration_s = 0.2;
    let result = load(&spec).unwrap();
    assert_eq!(server.requests(), 10);
    assert_eq!(errors(&result.total), [("timeout", 10)]);
    assert_eq!(result.first_byte.count, 0, "no byte came");
}

#[test]
fn a_connection_lost_fails_all_that_was_in_flight_on_it_and_nothing_else() {
    at_once(&DRIVERS, |driver| {
        // Each connection answers its first two requests, the second in a way that ends it.
        for (end, kind) in [
            (Do::SendAndClose as fn(Vec<u8>) -> Do, "closed_early"),
            (|_| Do::Reset, "reset"),
            (|_| Do::Send(b"nonsense\r\n\r\n".to_vec()), "protocol"),
        ] {
            let server =
                Server::start(
                    move |asked| {
                        if asked.head.starts_with("GET /last") { end(vec![]) } else { Do::Send(ok("ok")) }
                    },
                );
            let mut spec = pipelined(&server, LoadKind::Count { requests: 30 }, 3);
            spec.duration_s = 30.0;
            spec.driver = driver;
            spec.connections = 1;
            spec.requests[0].request.path = "/last".into();
            let result = load(&spec).unwrap();
            assert_eq!(result.total.sent, 30);
            assert_eq!(errors(&result.total), [(kind, 30)], "{:?}", result.total);
            assert_eq!(result.connections_used, 0);
        }
    });
}

#[test]
fn a_last_answer_leaves_those_behind_it_unanswered() {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec();
    let server = Server::start(move |_| Do::SendAndClose(closing.clone()));
    let mut spec = pipelined(&server, LoadKind::Count { requests: 12 }, 4);
    spec.connections = 1;
    let result = load(&spec).unwrap();
    // Of four in flight one is answered; the last connections may have fewer.
    assert_eq!(result.total.sent, 12);
    assert!(result.total.right >= 3, "{:?}", result.total);
    assert_eq!(errors(&result.total), [("closed_early", 12 - result.total.right)]);
    assert_eq!(result.total.closed_by_peer, result.total.right);
}

#[test]
fn a_connection_is_left_after_as_many_requests_as_were_ordered() {
    at_once(&DRIVERS, |driver| {
        for pipeline in [1, 4] {
            for kind in [LoadKind::Count { requests: 200 }, constant(200.0), LoadKind::Closed] {
                let on: Arc<Mutex<Vec<u64>>> = Arc::default();
                let seen = on.clone();
                let server = Server::start(move |asked| {
                    let mut seen = seen.lock().unwrap();
                    let at = asked.connection as usize;
                    let len = seen.len().max(at + 1);
                    seen.resize(len, 0);
                    seen[at] += 1;
                    Do::Send(ok("ok"))
                });
                let mut spec = pipelined(&server, kind.clone(), pipeline);
                spec.driver = driver;
                spec.requests_per_connection = Some(10);
                spec.duration_s = 0.5;
                let result = load(&spec).unwrap();
                let on = on.lock().unwrap();
                let name = format!("{driver:?} {kind:?} {pipeline}");
                assert!(on.iter().all(|n| *n <= 10), "{name}: {on:?}");
                assert_eq!(on.iter().sum::<u64>(), result.total.sent, "{name}");
                assert_eq!(result.total.right, result.total.sent, "{name}: {:?}", result.total);
                assert_eq!(result.total.closed_by_peer, 0, "{name}: the client closes");
                let full = on.iter().filter(|n| **n == 10).count() as u64;
                assert!(full + 2 * 2 >= result.total.sent / 10, "{name}: {on:?}");
                assert_eq!(result.connections_used, on.iter().filter(|n| **n > 0).count() as u64, "{name}");
            }
        }
    });
}

#[test]
fn a_connection_is_left_when_it_is_as_old_as_was_ordered() {
    at_once(&DRIVERS, |driver| {
        for (pipeline, kind) in
            [(1, constant(200.0)), (4, constant(200.0)), (1, LoadKind::Closed), (4, LoadKind::Closed)]
        {
            let server = Server::start(|_| Do::Send(ok("ok")));
            let mut spec = pipelined(&server, kind.clone(), pipeline);
            spec.driver = driver;
            spec.recycle_s = Some(0.1);
            spec.duration_s = 1.0;
            let result = load(&spec).unwrap();
            let name = format!("{driver:?} {kind:?} {pipeline}: {:?}", result.total);
            assert_eq!(result.total.right, result.total.sent, "{name}");
            assert_eq!(result.total.closed_by_peer, 0, "the client closes: {name}");
            // Two connections, each at most ten times a second, and fewer on a busy machine.
            assert!((8..=22).contains(&result.total.connections), "{name}");
            balanced(&result);
        }
        // Idle connections are recycled, too, and none is before the load begins.
        let server = Server::start(|_| Do::Send(ok("ok")));
        let mut spec = pipelined(&server, constant(1.0), 1);
        spec.driver = driver;
        (spec.connections, spec.recycle_s, spec.duration_s) = (5, Some(0.2), 0.9);
        let result = load(&spec).unwrap();
        assert!((15..=25).contains(&result.total.connections), "{:?}", result.total);
        assert_eq!(result.most_open, 5);
        let mut spec = pipelined(&server, constant(100.0), 1);
        (spec.driver, spec.connections, spec.connect_rate) = (driver, 10, Some(20.0));
        (spec.recycle_s, spec.duration_s) = (Some(0.3), 0.2);
        let result = load(&spec).unwrap();
        assert_eq!(result.most_open, 10, "{:?}", result.total);
    });
}

#[test]
fn lanes_think_each_for_itself() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = pipelined(&server, LoadKind::Closed, 2);
    spec.think = Some(weir_model::load::RandomDuration::Constant { s: 0.1 });
    spec.duration_s = 1.0;
    let result = load(&spec).unwrap();
    // 4 streams, one request each 100 ms and what an answer takes.
    assert!(result.window.right >= 20 && result.window.right <= 40, "{:?}", result.window);
}

#[test]
fn a_slow_first_answer_holds_up_those_behind_it() {
    let server = Server::start(|asked| {
        let wait = if asked.number == 0 { Duration::from_millis(300) } else { Duration::ZERO };
        Do::SendSlowly(vec![], wait, ok("ok"))
    });
    let mut spec = pipelined(&server, LoadKind::Count { requests: 4 }, 4);
    spec.connections = 1;
    let result = load(&spec).unwrap();
    assert_eq!(result.total.right, 4);
    assert!(result.service.min_us > 250_000.0, "{:?}", result.service);
}
