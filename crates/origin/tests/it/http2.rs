//! HTTP/2, over TCP and over TLS: the same pages, delays, faults and counters.

use std::collections::BTreeMap;

use weir_origin::{Options, payload};
use weir_wire::http2::{self, Code, ResetCause};

use crate::common::server_options;
use crate::h2::Http2;
use crate::sim::{Client, LATENCY, MS, NodeOptions, ROUND_TRIP, S, Scene, client_config, small};

/// Runs each test plain and with TLS.
macro_rules! on_each_transport {
    ($($name:ident),* $(,)?) => {
        mod plain { $( #[test] fn $name() { super::$name(&super::Way::new(false)) } )* }
        mod tls { $( #[test] fn $name() { super::$name(&super::Way::new(true)) } )* }
    };
}

on_each_transport!(
    pages,
    echo,
    heads_and_statuses,
    large_bodies_in_small_windows,
    many_streams_at_once_each_in_its_time,
    faults,
    a_drip,
    close_sends_goaway,
    cancelled_streams_are_forgotten,
    the_labs_own_requests_are_not_counted,
    counters_of_many_requests,
    a_stop_finishes_what_is_under_way,
    a_peer_that_sends_no_more,
    too_large_to_echo,
);

struct Way {
    scene: Scene,
    tls: bool,
}

impl Way {
    fn new(tls: bool) -> Way {
        Way { scene: Scene::of(Options { tls: tls.then(server_options), ..Options::default() }), tls }
    }

    fn connection(&self) -> Client {
        match self.tls {
            true => self.scene.tls_client(&client_config(Some("h2"))).expect("a handshake"),
            false => self.scene.client(),
        }
    }

    fn client(&self) -> Http2 {
        Http2::new(self.connection())
    }

    fn now(&self) -> u64 {
        self.scene.world.now()
    }
}

fn pages(way: &Way) {
    let mut client = way.client();
    let index = client.get("/");
    assert_eq!((index.status, index.body.as_slice()), (200, weir_origin::INDEX_PAGE.as_bytes()));
    assert_eq!(index.headers["server"], "weir-origin");
    assert_eq!(index.headers["content-type"], "text/plain; charset=utf-8");
    for size in [0, 1, 128, 4096, 4097, 11_268, 165_854, 3 << 20] {
        let response = client.get(&format!("/bytes/{size}"));
        assert_eq!((response.status, response.length), (200, Some(size as u64)));
        assert!(response.body == payload(size), "{size}");
        let chunked = client.get(&format!("/bytes/{size}?chunked=1"));
        assert!(chunked.length.is_none() && chunked.body == payload(size), "{size}");
    }
    let begun = way.now();
    let late = client.get("/delay/30ms");
    assert_eq!((&late.body[..], late.ended), (&b"ok"[..], Some(begun + 30 * MS + ROUND_TRIP)));
    assert_eq!(client.get("/nowhere").status, 404);
    assert_eq!(client.get("/bytes/12x").status, 400);
    client.ask(7, "GET", "/headers", &[("x-odd", "one")], b"");
    let text = String::from_utf8(client.response(7).body).expect("text");
    assert!(text.contains(":path: /headers\r\n") && text.contains("x-odd: one\r\n"), "{text}");
    client.ask(8, "GET", "/request", &[("x-odd", "one")], b"and a body");
    let text = String::from_utf8(client.response(8).body).expect("text");
    assert!(text.contains("x-odd: one\r\n") && text.ends_with("and a body"), "{text}");
}

fn echo(way: &Way) {
    let mut client = way.client();
    for size in [1, 5, 20_000, 3 << 20] {
        client.ask(3, "POST", "/echo", &[("content-type", "a/b; c=d")], payload(size));
        let response = client.response(3);
        assert!(response.body == payload(size), "{size}");
        assert_eq!(response.headers["content-type"], "a/b; c=d");
    }
    client.ask(4, "PUT", "/bytes/7", &[], payload(100_000));
    assert_eq!(client.response(4).body, payload(7), "a body on any path is read");
    let counters = way.scene.counters();
    assert_eq!(counters.body_bytes_in, 1 + 5 + 20_000 + (3 << 20) + 100_000);
    assert_eq!(counters.body_bytes_out, 1 + 5 + 20_000 + (3 << 20) + 7);
}

fn heads_and_statuses(way: &Way) {
    let mut client = way.client();
    for target in ["/bytes/128", "/bytes/1MiB", "/", "/status/404", "/status/204", "/echo"] {
        let whole = client.get(target);
        client.ask(1, "HEAD", target, &[], b"");
        let head = client.response(1);
        assert_eq!((head.status, head.length, head.headers), (whole.status, whole.length, whole.headers), "{target}");
        assert!(head.body.is_empty());
    }
    for status in [204, 304] {
        let response = client.get(&format!("/bytes/100?status={status}"));
        assert_eq!((response.status, response.length, response.body.len()), (status, None, 0));
    }
    assert_eq!(client.get("/status/205").length, Some(0));
}

fn large_bodies_in_small_windows(way: &Way) {
    let options = http2::Options { stream_window: 5_000, connection_window: 70_000, ..http2::Options::client() };
    let mut client = Http2::with(way.connection(), &options);
    for tag in 0..20 {
        client.ask(tag, "GET", "/bytes/300000", &[], b"");
    }
    for tag in 0..20 {
        assert!(client.response(tag).body == payload(300_000));
    }
    let counters = way.scene.counters();
    assert_eq!(counters.body_bytes_out, 20 * 300_000);
}

fn many_streams_at_once_each_in_its_time(way: &Way) {
    let mut clients: Vec<Http2> = (0..10).map(|_| way.client()).collect();
    let begun = way.now();
    for client in &mut clients {
        (0..1000).for_each(|tag| client.ask(tag, "GET", "/bytes/10?delay=exp:300ms", &[], b""));
    }
    let ended = |client: &mut Http2| (0..1000).map(|tag| client.response(tag).ended.expect("a response")).collect();
    let times: Vec<Vec<u64>> = clients.iter_mut().map(ended).collect();
    let mean = times.iter().flatten().map(|ended| ended - begun - ROUND_TRIP).sum::<u64>() / 10_000;
    // The standard error of the mean is 1 %.
    assert!((285 * MS..315 * MS).contains(&mean), "{mean} ns");
    let out_of_order: usize = times.iter().map(|times| times.windows(2).filter(|pair| pair[1] < pair[0]).count()).sum();
    assert!(out_of_order > 4500, "{out_of_order}: one stream must not wait for another");
    let counters = way.scene.counters();
    assert_eq!((counters.answered, counters.max_in_flight_per_connection), (10_000, 1000));
}

fn faults(way: &Way) {
    let mut client = way.client();
    for (tag, fault) in [(0, "reset=before"), (1, "reset=middle"), (2, "length=more"), (3, "length=less")] {
        client.ask(tag, "GET", &format!("/bytes/1000?fault={fault}"), &[], b"");
        let response = client.response(tag);
        match tag {
            0 => assert_eq!((response.status, response.reset), (0, Some(ResetCause::Peer(Code::INTERNAL_ERROR)))),
            1 => {
                assert_eq!((response.status, response.reset), (200, Some(ResetCause::Peer(Code::INTERNAL_ERROR))));
                assert_eq!(response.body, payload(500));
            }
            _ => assert!(matches!(response.reset, Some(ResetCause::Malformed(_))), "{response:?}"),
        }
    }
    assert_eq!(client.get("/bytes/10?fault=status=503").status, 503);
    client.ask(9, "GET", "/bytes/1000?fault=stall", &[], b"");
    assert_eq!(client.get("/bytes/10?delay=50ms").body, payload(10), "others go on");
    assert!(!client.responses[&9].is_over() && client.responses[&9].body.is_empty());
    client.ask(10, "GET", "/bytes/1000?fault=close", &[], b"");
    client.read_to_end();
    assert_eq!(client.responses[&10].body, payload(500));
    assert!(client.responses[&10].ended.is_none() && client.went_away.is_some());
    let counters = way.scene.counters();
    assert_eq!((counters.requests, counters.answered), (8, 4), "{counters:?}");
    let counts = [("reset", 2), ("length", 2), ("status", 1), ("stall", 1), ("close", 1)];
    assert_eq!(counters.faults, counts.map(|(kind, n)| (kind.to_owned(), n)).into());
}

fn a_drip(way: &Way) {
    let mut client = way.client();
    let begun = way.now();
    client.ask(1, "GET", "/bytes/20000?fault=drip=50kB/s", &[], b"");
    let quick = client.get("/bytes/10");
    assert_eq!((quick.body.as_slice(), quick.ended), (payload(10), Some(begun + ROUND_TRIP)), "others go on");
    let dripped = client.response(1);
    assert_eq!(dripped.body, payload(20_000));
    // The first of it comes at once, and the frames cost something, too.
    let took = dripped.ended.expect("it ended") - begun;
    assert!((380 * MS..410 * MS).contains(&took), "{took} ns");
    let counters = way.scene.counters();
    assert_eq!((counters.answered, counters.body_bytes_out), (2, 20_010));
}

fn close_sends_goaway(way: &Way) {
    let mut client = way.client();
    assert_eq!(client.get("/bytes/10?close=1").body, payload(10));
    client.read_to_end();
    assert_eq!(client.went_away, Some(Code::NO_ERROR));
    let counters = way.scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_reset), (1, 1, 0));
}

fn cancelled_streams_are_forgotten(way: &Way) {
    let mut client = way.client();
    for tag in 0..100 {
        client.ask(tag, "GET", "/bytes/100?delay=10s", &[], b"");
        client.cancel(tag);
    }
    assert_eq!(client.get("/bytes/9").body, payload(9));
    let counters = way.scene.counters();
    assert_eq!((counters.requests, counters.malformed), (101, 0));
    assert_eq!(client.get("/bytes/9").body, payload(9));
    assert!(way.scene.counters().max_in_flight_per_connection <= 101);
}

fn the_labs_own_requests_are_not_counted(way: &Way) {
    let mut client = way.client();
    assert_eq!(client.get("/_weir/ready").status, 204);
    assert_eq!(way.scene.handle.connections_open(), 1);
    let counters = client.get("/_weir/counters");
    assert_eq!(counters.headers["content-type"], "application/json");
    let counters: weir_model::counters::OriginCounters = serde_json::from_slice(&counters.body).expect("counters");
    assert_eq!(
        (counters.own_requests, counters.requests, counters.connections_used, counters.body_bytes_out),
        (2, 0, 0, 0)
    );
    assert!(counters.versions.is_empty());
    assert_eq!(
        (counters.connections_open, way.scene.handle.connections_open()),
        (1, 0),
        "the counters were read over it"
    );
}

fn counters_of_many_requests(way: &Way) {
    for connection in 1..=4 {
        let mut client = way.client();
        for _ in 0..connection * 10 {
            assert_eq!(client.get("/bytes/128").body.len(), 128);
        }
    }
    let counters = way.scene.counters();
    assert_eq!((counters.requests, counters.connections_used), (100, 4));
    assert_eq!((counters.versions["HTTP/2"], counters.connections_by_protocol["h2"]), (100, 4));
    assert_eq!(counters.body_bytes_out, 12_800);
    let reached = [(1, 4), (2, 4), (4, 4), (8, 4), (16, 3), (32, 1)];
    assert_eq!(counters.connections_reaching, BTreeMap::from(reached));
    assert_eq!((counters.max_requests_per_connection, counters.max_in_flight_per_connection), (40, 1));
    assert_eq!(counters.tls.handshakes, if way.tls { 4 } else { 0 });
    assert_eq!(counters.tls.versions.get("TLS 1.3").copied().unwrap_or(0), counters.tls.handshakes);
    if !way.tls {
        // The same origin speaks HTTP/1.1 on the same port.
        assert_eq!(way.scene.client().get("/bytes/5").body, payload(5));
    }
}

fn a_stop_finishes_what_is_under_way(way: &Way) {
    let mut client = way.client();
    let begun = way.now();
    client.ask(1, "GET", "/bytes/200000?delay=150ms", &[], b"");
    client.ask(2, "GET", "/bytes/5?fault=stall", &[], b"");
    way.scene.run(10 * MS);
    way.scene.stop();
    assert_eq!(way.now() - begun, 150 * MS + LATENCY, "nobody waits for what stalls");
    assert!(client.response(1).body == payload(200_000));
    client.read_to_end();
    assert!(client.went_away.is_some());
    let counters = way.scene.handle.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_open), (2, 1, 0));
}

fn a_peer_that_sends_no_more(way: &Way) {
    let mut client = way.client();
    client.ask(1, "GET", "/bytes/1000?delay=100ms", &[], b"");
    client.ask(2, "GET", "/bytes/1000", &[], b"");
    client.connection.shut_down();
    client.read_to_end();
    assert_eq!((&client.responses[&1].body[..], &client.responses[&2].body[..]), (payload(1000), payload(1000)));
    let counters = way.scene.counters();
    assert_eq!((counters.answered, counters.connections_open, counters.connections_reset), (2, 0, 0));
}

fn too_large_to_echo(way: &Way) {
    let mut client = way.client();
    // All streams of a connection together may hold as much as one body.
    let half: &'static [u8] = payload(40 << 20);
    client.ask(1, "POST", "/echo?delay=300ms", &[], half);
    client.ask(2, "POST", "/echo?delay=300ms", &[], half);
    let (first, second) = (client.response(1), client.response(2));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 413]);
    assert_eq!(client.get("/bytes/3").body, payload(3), "and the connection goes on");
}

/// The kernel has taken everything, but before the origin hears of it, more has come and is answered.
#[test]
fn a_late_event_is_not_the_last_and_requests_that_wait_for_room_go_on() {
    // One response goes over the limit, another waits.
    let scene = Scene::with(Options::default(), NodeOptions { receive_buffer: 100_000, ..small() });
    let machine = scene.machine(small());
    let wide =
        http2::Options { stream_window: (1 << 31) - 1, connection_window: (1 << 31) - 1, ..http2::Options::client() };
    let mut client = Http2::with(scene.client_of(&machine, 0), &wide);
    (0..3).for_each(|tag| client.ask(tag, "GET", "/bytes/300000", &[], b""));
    machine.freeze();
    scene.run(S);
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered), (3, 0));
    machine.thaw();
    assert!((0..2).all(|tag| client.response(tag).body == payload(300_000)));
    scene.world.freeze(scene.tasks[0], u64::MAX);
    scene.run(S);
    (3..5).for_each(|tag| client.ask(tag, "GET", "/bytes/10", &[], b""));
    scene.run(S);
    scene.world.freeze(scene.tasks[0], 0);
    assert!(client.response(2).body == payload(300_000));
    assert!((3..5).all(|tag| client.response(tag).body == payload(10)));
    assert_eq!(scene.counters().answered, 5);
}
