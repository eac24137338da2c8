//! Why requests failed, in words: what the protocol found wrong, or what the server said.

use weir_load::LoadError;
use weir_model::keyvalue::KeyValue;
use weir_model::load::{ErrorReason, LoadProtocol, LoadResult, LoadSpec};

use crate::keyvalue::{mix, order as keyvalue_order};
use crate::script::Do;
use crate::servers::{Asked, Reply, http, http2, ok};
use crate::store::{self, Speaks, start};
use crate::world::*;

fn listed(result: &LoadResult) -> Vec<(&'static str, &str, u64)> {
    fn one(ErrorReason { kind, reason, window, total }: &ErrorReason) -> (&'static str, &str, u64) {
        assert_eq!(window, total, "there is no warm-up");
        (kind.as_str(), reason, *total)
    }
    result.reasons.iter().map(one).collect()
}

/// A response with so many headers.
fn with_headers(headers: usize) -> Vec<Do> {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{}\r\nok", "X-H: 1\r\n".repeat(headers - 1));
    vec![Do::Send(text.into_bytes())]
}

#[test]
fn both_versions_of_http_have_the_same_limits_and_say_them() {
    for (headers, expected) in [(128, vec![]), (200, vec![("protocol", "more than 128 headers", 4)])] {
        let world = world();
        let server = http(&world, move |_| with_headers(headers));
        let result = load(&world, &order(server.addr, counted(4))).unwrap();
        assert_eq!(listed(&result), expected, "HTTP/1.1");
        // This server's own headers are two.
        let server = http2(&world, 100, move |_| Reply::Headers(headers - 2));
        let spec = LoadSpec { protocol: LoadProtocol::Http2 { streams: 1 }, ..order(server.addr, counted(4)) };
        let result = load(&world, &spec).unwrap();
        assert_eq!(listed(&result), expected, "HTTP/2");
    }
    let world = world();
    let server = http(&world, |_| vec![Do::Send(format!("HTTP/1.1 200 {}", "x".repeat(70_000)).into_bytes())]);
    let result = load(&world, &order(server.addr, counted(4))).unwrap();
    assert_eq!(listed(&result), [("protocol", "a head of more than 65536 bytes", 4)]);
}

#[test]
fn each_violation_has_its_own_words_and_an_honest_server_none() {
    let world = world();
    let server = http(&world, |asked: &Asked| match asked.number % 5 {
        0 => vec![Do::Send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec())],
        1 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".to_vec())],
        2 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()), Do::End],
        _ => ok("ok"),
    });
    let spec = LoadSpec { connections: 1, duration_s: 20.0, ..order(server.addr, counted(20)) };
    let result = load(&world, &spec).unwrap();
    let mut found = listed(&result);
    found.sort_unstable();
    let expected = [
        ("protocol", "Content-Length is not a number", 4),
        ("protocol", "the start line is not one of HTTP/1.x", 4),
        ("truncated", "the connection was closed in the middle of a body", 4),
    ];
    assert_eq!(found, expected);
    let errors = result.list_errors(&result.window.errors);
    assert!(
        errors.contains("protocol 8 (")
            && errors.contains("truncated 4 (the connection was closed in the middle of a body)")
    );
    let server = http(&world, |_| ok("ok"));
    assert_eq!(listed(&load(&world, &order(server.addr, counted(20))).unwrap()), []);
}

#[test]
fn a_stream_that_is_reset_says_why() {
    let world = world();
    let server = http2(&world, 100, |asked| if asked.number == 0 { Reply::Reset } else { Reply::Hello });
    let protocol = LoadProtocol::Http2 { streams: 2 };
    let result = load(&world, &LoadSpec { protocol, ..order(server.addr, counted(20)) }).unwrap();
    assert_eq!(listed(&result), [("stream_reset", "reset by the peer: INTERNAL_ERROR", 1)]);
    // A peer that stops speaking HTTP/2 fails all that is in flight.
    let server = http2(&world, 100, |_| Reply::Nonsense);
    let result = load(&world, &LoadSpec { protocol, ..order(server.addr, counted(4)) }).unwrap();
    let [("protocol", words, 4)] = listed(&result)[..] else { panic!("{:?}", result.reasons) };
    assert!(words.starts_with("not HTTP/2: "), "{words}");
}

#[test]
fn a_key_value_server_is_quoted() {
    let full: [(Speaks, &'static [u8], (&str, &str)); 4] = [
        (
            Speaks::Redis { replicas: 0 },
            b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
            ("refused", "OOM command not allowed when used memory > 'maxmemory'."),
        ),
        (
            Speaks::Redis { replicas: 0 },
            b"-LOADING Redis is loading the dataset in memory\r\n",
            ("busy", "LOADING Redis is loading the dataset in memory"),
        ),
        (
            Speaks::Memcached,
            b"SERVER_ERROR out of memory storing object\r\n",
            ("refused", "SERVER_ERROR out of memory storing object"),
        ),
        (Speaks::Memcached, b"ERROR\r\n", ("refused", "ERROR")),
    ];
    for (speaks, said, (kind, words)) in full {
        let world = world();
        let (server, _) = start(&world, speaks, move |asked| match asked.number % 10 {
            3 => store::Do::Say(said),
            _ => store::Do::Right,
        });
        let spec = LoadSpec { kind: counted(400), ..keyvalue_order(&server, speaks, mix("set:1")) };
        let result = load(&world, &spec).unwrap();
        assert_eq!(listed(&result), [(kind, words, 40)], "{:?}", result.total);
    }
    let world = world();
    let (server, _) = start(&world, Speaks::Juno, |asked| match asked.number % 10 {
        3 => store::Do::Busy,
        _ => store::Do::Right,
    });
    let result = load(&world, &keyvalue_order(&server, Speaks::Juno, mix("set:1"))).unwrap();
    let [("busy", _, n)] = listed(&result)[..] else { panic!("{:?}", result.reasons) };
    assert_eq!(n, result.total.error_count());
}

#[test]
fn keys_that_could_not_be_written_say_why() {
    let (world, speaks) = (world(), Speaks::Redis { replicas: 0 });
    let (server, _) = start(&world, speaks, |_| store::Do::Say(b"-OOM command not allowed\r\n"));
    let spec = keyvalue_order(&server, speaks, KeyValue { preload: 40, ..mix("get:1") });
    let LoadError::Preload { errors, .. } = load(&world, &spec).unwrap_err() else { panic!("all were written") };
    assert_eq!(errors, "refused 40 (OOM command not allowed)");
}
