//! HTTP/2: streams, resets, goodbyes, and peers that do not speak it.

use std::cell::RefCell;
use std::rc::Rc;

use weir_load::{LoadError, Outputs, Progress, StopFlag};
use weir_model::load::{ErrorKind, LoadProtocol, LoadSpec, OfferedRate};
use weir_model::suite::LoadKind;

use crate::script::{Do, Server};
use crate::servers::{Asked, Reply, http, http2, response};
use crate::world::*;

fn streams(server: &Server, kind: LoadKind<OfferedRate>, streams: u32) -> LoadSpec {
    let protocol = LoadProtocol::Http2 { streams };
    let mut spec = LoadSpec { protocol, connections: 2, ..order(server.addr, kind) };
    spec.requests[0].expect.size = Some(5);
    spec.requests[0].expect.headers = vec![("x-test".into(), Some("yes".into()))];
    spec
}

/// Which request of a connection another reply comes to; all others are answered.
fn at(nth: u64, reply: Reply) -> impl FnMut(&Asked) -> Reply {
    move |asked| if asked.nth == nth { reply } else { Reply::Hello }
}

#[test]
fn streams_carry_every_kind_of_load() {
    for (kind, sent) in [(counted(501), 501), (constant(500.0), 500), (LoadKind::Closed, 2 * 7 * 1_000)] {
        let world = world();
        let server = http2(&world, 100, |_| Reply::Hello);
        let result = load(&world, &streams(&server, kind, 7)).unwrap();
        assert_eq!([server.requests(), result.total.sent, result.total.successful], [sent; 3]);
        assert_eq!((result.streams, result.protocol.as_str()), (7, "h2"));
        let headers = result.headers.as_ref().unwrap();
        assert!(headers.sampled > 0 && headers.changes.is_empty(), "{headers:?}");
        assert_eq!((server.connections(), result.connections_used), (2, 2));
        times(&result.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    }
}

#[test]
fn a_template_of_the_host_is_the_authority() {
    let heads = |host: Option<&str>, template: bool| {
        let world = world();
        let heads = Rc::<RefCell<Vec<String>>>::default();
        let log = heads.clone();
        let server = http2(&world, 100, move |asked| {
            log.borrow_mut().push(asked.head.clone());
            Reply::Hello
        });
        let mut spec = LoadSpec { connections: 1, ..streams(&server, counted(4), 1) };
        let request = &mut spec.requests[0];
        (request.template, request.request.path) = (template, if template { "/{{seq}}" } else { "/" }.into());
        request.request.headers = host.map(|host| ("Host".to_owned(), host.to_owned())).into_iter().collect();
        assert_eq!(load(&world, &spec).unwrap().total.successful, 4);
        heads.take()
    };
    let numbered = |host: fn(u32) -> String| (0..4).map(|n| format!("GET /{n} {}", host(n))).collect::<Vec<_>>();
    assert_eq!(heads(Some("shop-{{seq:1}}.test:8080"), true), numbered(|n| format!("shop-{}.test:8080", n + 1)));
    // Without fields, and without a Host, it is always the same.
    assert_eq!(heads(Some("shop.test"), true), numbered(|_| "shop.test".to_owned()));
    assert_eq!(heads(None, true), numbered(|_| "localhost".to_owned()));
    assert_eq!(heads(Some("shop.test"), false), ["GET / shop.test"; 4]);
}

#[test]
fn a_peer_that_allows_fewer_streams_gets_fewer() {
    for kind in [LoadKind::Closed, counted(50), constant(50.0)] {
        let world = world();
        let server = http2(&world, 3, |_| Reply::Nothing);
        let spec = LoadSpec { timeout_s: 5.0, duration_s: 0.5, ..streams(&server, kind.clone(), 8) };
        let stop = StopFlag::new();
        let mut see = |news: Progress| {
            if let Progress::Draining { .. } = news {
                stop.set();
                stop.set();
            }
        };
        let result = load_with(&world, &spec, &Outputs::default(), &stop, &mut see).unwrap();
        assert_eq!(
            (result.streams, server.requests(), errors(&result.total)),
            (3, 6, vec![("timeout", 6)]),
            "{kind:?}"
        );
    }
    // And all is done with fewer.
    let world = world();
    let server = http2(&world, 3, |_| Reply::Hello);
    let result = load(&world, &streams(&server, counted(100), 8)).unwrap();
    assert_eq!((result.total.successful, result.streams), (100, 3));
}

#[test]
fn a_stream_that_is_reset_is_an_error_and_its_connection_goes_on() {
    let world = world();
    let server = http2(&world, 100, |asked| if asked.number % 3 == 0 { Reply::Reset } else { Reply::Hello });
    let result = load(&world, &streams(&server, counted(300), 4)).unwrap();
    assert_eq!((result.total.successful, errors(&result.total)), (200, vec![("stream_reset", 100)]));
    assert_eq!((server.connections(), result.total.closed_by_peer), (2, 0));
}

#[test]
fn a_timeout_gives_up_the_stream_and_keeps_the_connection() {
    let world = world();
    let server = http2(&world, 100, |asked| if asked.number == 5 { Reply::Nothing } else { Reply::Hello });
    let result = load(&world, &LoadSpec { duration_s: 30.0, ..streams(&server, counted(100), 4) }).unwrap();
    assert_eq!((result.total.successful, errors(&result.total)), (99, vec![("timeout", 1)]));
    assert_eq!((server.connections(), server.seen().cancelled), (2, 1));
}

#[test]
fn after_goaway_what_was_taken_is_answered_and_the_rest_is_made_elsewhere() {
    for kind in [counted(200), constant(200.0), LoadKind::Closed] {
        let world = world();
        // Each connection says goodbye with its tenth response.
        let server = http2(&world, 100, at(9, Reply::GoAway));
        let result = load(&world, &LoadSpec { duration_s: 0.7, ..streams(&server, kind.clone(), 4) }).unwrap();
        let name = format!("{kind:?} {:?}", result.total);
        // Requests that the goodbye crossed were made elsewhere.
        assert_eq!([server.requests(), result.total.successful, result.total.sent], [result.total.due; 3], "{name}");
        assert_eq!(result.total.connections, server.connections(), "{name}");
        let (left, full) = (result.total.closed_by_peer, result.total.due / 10);
        assert!((full - 2..=full).contains(&left), "{name}");
    }
}

#[test]
fn what_a_peer_turns_away_is_made_elsewhere_but_not_for_ever() {
    // Of each five on a connection the last; or each, which is an error where the connection brought nothing at all.
    for (nth, requests, successful, connections) in [(4, 40, 40, 10), (0, 5, 0, 5)] {
        let world = world();
        let server = http2(&world, 100, at(nth, Reply::TurnAway));
        let spec = LoadSpec { connections: 1, duration_s: 20.0, ..streams(&server, counted(requests), 1) };
        let result = load(&world, &spec).unwrap();
        assert_eq!(
            [result.total.due, result.total.successful, result.total.connections],
            [requests, successful, connections]
        );
        let lost = requests - successful;
        assert_eq!(errors(&result.total), if lost > 0 { vec![("closed_early", lost)] } else { vec![] });
    }
}

#[test]
fn a_response_in_pieces_has_a_first_byte() {
    let world = world();
    let server = http2(&world, 100, |_| Reply::Slowly(50 * MS));
    let result = load(&world, &LoadSpec { duration_s: 20.0, ..streams(&server, counted(10), 1) }).unwrap();
    assert_eq!((result.total.successful, result.first_byte.count), (10, 10));
    times(&result.first_byte, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    times(&result.service, 51 * MS, 51 * MS, 51 * MS);
}

#[test]
fn nonsense_and_early_ends_have_their_kinds() {
    for (reply, kind) in [(Reply::Nonsense, "protocol"), (Reply::End, "closed_early")] {
        let world = world();
        let server = http2(&world, 100, at(4, reply));
        let spec = LoadSpec { connections: 1, duration_s: 30.0, ..streams(&server, counted(50), 1) };
        let result = load(&world, &spec).unwrap();
        assert_eq!((result.total.successful, errors(&result.total)), (40, vec![(kind, 10)]));
    }
}

/// It answers the preface as HTTP/1.1 responses nonsense, or not at all.
#[test]
fn a_peer_that_does_not_speak_it_is_told_apart() {
    type Behaviour = fn(&Asked) -> Vec<Do>;
    let refuses: Behaviour = |_| vec![Do::Send(response(400, "what?")), Do::End];
    let silent: Behaviour = |_| vec![Do::Silence];
    for (behaviour, expected, text, seconds) in
        [(refuses, ErrorKind::Protocol, "not HTTP/2", 2.05), (silent, ErrorKind::ConnectTimeout, "SETTINGS", 0.55)]
    {
        let world = world();
        let server = http(&world, behaviour);
        let timeout_s = if text == "SETTINGS" { 0.5 } else { 20.0 };
        let error = load(&world, &LoadSpec { timeout_s, ..streams(&server, LoadKind::Closed, 1) }).unwrap_err();
        let LoadError::NoConnection { kind, detail, seconds: took, .. } = &error else { panic!("{error}") };
        assert_eq!((*kind, *took, detail.contains(text)), (expected, seconds, true), "{error}");
    }
}
