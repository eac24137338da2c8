//! HTTP/2: streams, resets, goodbyes, and peers that do not speak it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_model::load::{ErrorKind, LoadProtocol, OfferedRate};
use weir_model::suite::{Expect, LoadKind};

use super::http2_server::{Do, Http2Server};
use super::server::{self, Server};
use super::*;

fn streams(server: &Http2Server, kind: LoadKind<OfferedRate>, streams: u32) -> LoadSpec {
    let request = Request { method: "GET".into(), path: "/".into(), headers: vec![], body: vec![] };
    let target = Target::tcp(server.addr, server.addr.to_string());
    let expect = Expect { size: Some(5), headers: vec![("x-test".into(), Some("yes".into()))], ..Expect::default() };
    LoadSpec {
        kind,
        protocol: LoadProtocol::Http2 { streams },
        connections: 2,
        timeout_s: 2.0,
        duration_s: 1.0,
        ..LoadSpec::new(target, request, expect)
    }
}

#[test]
fn streams_carry_every_kind_of_load() {
    at_once(&DRIVERS, |driver| {
        for kind in [LoadKind::Count { requests: 501 }, constant(500.0), LoadKind::Closed] {
            let server = Http2Server::start(100, |_, _| Do::Response(b"hello"));
            let mut spec = streams(&server, kind.clone(), 7);
            spec.driver = driver;
            let result = load(&spec).unwrap();
            assert_eq!(server.requests(), result.total.sent, "{kind:?}");
            assert_eq!(result.total.right, result.total.sent, "{:?}", result.total);
            assert_eq!((result.streams, result.protocol.as_str()), (7, "h2"));
            let headers = result.headers.as_ref().unwrap();
            assert!(headers.sampled > 0 && headers.changes.is_empty(), "{headers:?}");
            assert_eq!((server.connections(), result.connections_used), (2, 2));
        }
    });
}

#[test]
fn a_peer_that_allows_fewer_streams_gets_fewer() {
    for (kind, sent) in [(LoadKind::Closed, 6), (LoadKind::Count { requests: 50 }, 6), (constant(50.0), 6)] {
        // Nothing is answered: what arrives before the first timeout is what was in flight.
        let server = Http2Server::start(3, |_, _| Do::Nothing);
        let mut spec = streams(&server, kind.clone(), 8);
        spec.timeout_s = 5.0;
        spec.duration_s = 0.5;
        let stop = StopFlag::new();
        let mut see = |p| {
            if let crate::Progress::Draining { .. } = p {
                stop.set();
                stop.set();
            }
        };
        let result = run(&spec, &Outputs::default(), &stop, &mut see).unwrap();
        balanced(&result);
        assert_eq!(result.streams, 3);
        assert_eq!((server.requests(), result.total.sent), (sent, sent), "{kind:?}");
        assert_eq!(errors(&result.total), [("timeout", sent)]);
    }
    // And all is done with fewer.
    let server = Http2Server::start(3, |_, _| Do::Response(b"hello"));
    let result = load(&streams(&server, LoadKind::Count { requests: 100 }, 8)).unwrap();
    assert_eq!((result.total.right, result.streams), (100, 3));
}

#[test]
fn a_stream_that_is_reset_is_an_error_and_its_connection_goes_on() {
    for driver in DRIVERS {
        let server =
            Http2Server::start(100, |_, number| if number % 3 == 0 { Do::Reset } else { Do::Response(b"hello") });
        let mut spec = streams(&server, LoadKind::Count { requests: 300 }, 4);
        spec.driver = driver;
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 200);
        assert_eq!(errors(&result.total), [("stream_reset", 100)]);
        assert_eq!((server.connections(), result.total.closed_by_peer), (2, 0));
    }
}

#[test]
fn a_timeout_gives_up_the_stream_and_keeps_the_connection() {
    at_once(&DRIVERS, |driver| {
        let server =
            Http2Server::start(100, |_, number| if number == 5 { Do::Nothing } else { Do::Response(b"hello") });
        let mut spec = streams(&server, LoadKind::Count { requests: 100 }, 4);
        spec.driver = driver;
        spec.timeout_s = 1.0;
        spec.duration_s = 30.0;
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 99);
        assert_eq!(errors(&result.total), [("timeout", 1)]);
        assert_eq!(server.connections(), 2);
        // The server sees that before it sees the end of the connection.
        assert_eq!(server.cancelled.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn after_goaway_what_was_taken_is_answered_and_the_rest_is_made_elsewhere() {
    at_once(&DRIVERS, |driver| {
        for kind in [LoadKind::Count { requests: 200 }, constant(200.0), LoadKind::Closed] {
            // Each connection says goodbye with its tenth answer.
            let server =
                Http2Server::start(100, |nth, _| if nth == 9 { Do::GoAway(b"hello") } else { Do::Response(b"hello") });
            let mut spec = streams(&server, kind.clone(), 4);
            spec.driver = driver;
            spec.duration_s = 0.7;
            let result = load(&spec).unwrap();
            let name = format!("{kind:?} {:?}", result.total);
            assert_eq!(server.requests(), result.total.right, "{name}");
            // Requests that the goodbye crossed were made elsewhere.
            assert_eq!((result.total.right, result.total.sent), (result.total.due, result.total.due), "{name}");
            assert!(result.total.closed_by_peer >= 8, "{name}");
            assert_eq!(result.total.connections, server.connections(), "{name}");
        }
    });
}

#[test]
fn what_a_peer_turns_away_is_made_elsewhere() {
    let server = Http2Server::start(100, |nth, _| if nth == 4 { Do::TurnAway } else { Do::Response(b"hello") });
    let mut spec = streams(&server, LoadKind::Count { requests: 40 }, 1);
    spec.connections = 1;
    spec.duration_s = 20.0;
    let result = load(&spec).unwrap();
    // Of each five on a connection the last.
    assert_eq!((result.total.sent, result.total.due, result.total.right), (40, 40, 40));
    assert_eq!(result.total.connections, 10);
    assert_eq!(errors(&result.total), []);
}

#[test]
fn a_peer_that_turns_everything_away_is_not_asked_for_ever() {
    let server = Http2Server::start(100, |_, _| Do::TurnAway);
    let mut spec = streams(&server, LoadKind::Count { requests: 5 }, 1);
    spec.connections = 1;
    spec.duration_s = 20.0;
    let result = load(&spec).unwrap();
    assert_eq!(errors(&result.total), [("closed_early", 5)]);
}

#[test]
fn an_answer_in_pieces_has_a_first_byte() {
    let server = Http2Server::start(100, |_, _| Do::Slowly(b"hello", Duration::from_millis(50)));
    let mut spec = streams(&server, LoadKind::Count { requests: 10 }, 1);
    spec.duration_s = 20.0;
    let result = load(&spec).unwrap();
    assert_eq!((result.total.right, result.first_byte.count), (10, 10));
    let slower = result.service.mean_us - result.first_byte.mean_us;
    assert!(slower > 40_000.0, "{slower}: {:?} {:?}", result.service, result.first_byte);
}

#[test]
fn nonsense_and_early_ends_have_their_kinds() {
    for (what, kind) in [(Do::Nonsense, "protocol"), (Do::Close, "closed_early")] {
        let server = Http2Server::start(100, move |nth, _| if nth == 4 { what } else { Do::Response(b"hello") });
        let mut spec = streams(&server, LoadKind::Count { requests: 50 }, 1);
        spec.connections = 1;
        spec.duration_s = 30.0;
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 40, "{:?}", result.total);
        assert_eq!(errors(&result.total), [(kind, 10)]);
    }
}

#[test]
fn a_peer_that_does_not_speak_it_is_told_apart_at_once() {
    // It answers the preface as HTTP/1.1 answers nonsense, or not at all.
    let server = Server::start(|_| server::Do::SendAndClose(server::answer(400, "what?")));
    let mut spec = order(&server, LoadKind::Closed);
    spec.protocol = LoadProtocol::Http2 { streams: 1 };
    spec.timeout_s = 20.0;
    let started = Instant::now();
    let error = load(&spec).unwrap_err();
    assert!(matches!(error, LoadError::NoConnection { kind: ErrorKind::Protocol, .. }), "{error}");
    assert!(error.to_string().contains("not HTTP/2"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15));

    let silent = Server::start(|_| server::Do::Nothing);
    let mut spec = order(&silent, LoadKind::Closed);
    spec.protocol = LoadProtocol::Http2 { streams: 1 };
    spec.timeout_s = 0.5;
    let error = load(&spec).unwrap_err();
    assert!(matches!(error, LoadError::NoConnection { kind: ErrorKind::ConnectTimeout, .. }), "{error}");
    assert!(error.to_string().contains("SETTINGS"), "{error}");
}
