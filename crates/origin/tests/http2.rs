//! HTTP/2, over TCP and over TLS: the same pages, delays, faults and counters.

mod common;

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use common::http2::Http2;
use common::pipe::{Pipe, client_config, server_options};
use common::{Client, counters_when, start};
use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin, payload};
use weir_wire::http2::{self, Code, ResetCause};

/// Runs each test on each driver, plain and with TLS.
macro_rules! on_each_transport {
    ($($name:ident),* $(,)?) => {
        mod epoll { $( #[test] fn $name() { super::$name(&super::Way::new(super::DriverChoice::Epoll, false)) } )* }
        mod io_uring { $( #[test] fn $name() { super::$name(&super::Way::new(super::DriverChoice::IoUring, false)) } )* }
        mod tls_on_epoll { $( #[test] fn $name() { super::$name(&super::Way::new(super::DriverChoice::Epoll, true)) } )* }
        mod tls_on_io_uring {
            $( #[test] fn $name() { super::$name(&super::Way::new(super::DriverChoice::IoUring, true)) } )*
        }
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
    origin: Origin,
    tls: bool,
}

impl Way {
    fn new(driver: DriverChoice, tls: bool) -> Way {
        let options = Options { driver, tls: tls.then(server_options), ..Options::default() };
        Way { origin: Origin::start(options).expect("an origin"), tls }
    }

    fn pipe(&self) -> Pipe {
        match self.tls {
            true => Pipe::with_tls(&self.origin, &client_config(Some("h2"))).expect("a handshake"),
            false => Pipe::plain(&self.origin),
        }
    }

    fn client(&self) -> Http2 {
        Http2::new(self.pipe())
    }
}

fn pages(way: &Way) {
    let mut client = way.client();
    let index = client.get("/");
    assert_eq!((index.status, index.body.as_slice()), (200, weir_origin::INDEX_PAGE.as_bytes()));
    assert_eq!(index.headers["server"], "weir-origin");
    assert_eq!(index.headers["content-type"], "text/plain; charset=utf-8");
    for size in [0, 1, 128, 4096, 4097, 11_268, 165_854, 3 << 20] {
        let answer = client.get(&format!("/bytes/{size}"));
        assert_eq!((answer.status, answer.length), (200, Some(size as u64)));
        assert!(answer.body == payload(size), "{size}");
        let chunked = client.get(&format!("/bytes/{size}?chunked=1"));
        assert!(chunked.length.is_none() && chunked.body == payload(size), "{size}");
    }
    let start = Instant::now();
    assert_eq!(client.get("/delay/30ms").body, b"ok");
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!(client.get("/nowhere").status, 404);
    assert_eq!(client.get("/bytes/12x").status, 400);
    client.ask(7, "GET", "/headers", &[("x-odd", "one")], b"");
    let text = String::from_utf8(client.answer(7).body).expect("text");
    assert!(text.contains(":path: /headers\r\n") && text.contains("x-odd: one\r\n"), "{text}");
    client.ask(8, "GET", "/request", &[("x-odd", "one")], b"and a body");
    let text = String::from_utf8(client.answer(8).body).expect("text");
    assert!(text.contains("x-odd: one\r\n") && text.ends_with("and a body"), "{text}");
}

fn echo(way: &Way) {
    let mut client = way.client();
    for size in [1, 5, 20_000, 3 << 20] {
        client.ask(3, "POST", "/echo", &[("content-type", "a/b; c=d")], payload(size));
        let answer = client.answer(3);
        assert!(answer.body == payload(size), "{size}");
        assert_eq!(answer.headers["content-type"], "a/b; c=d");
    }
    client.ask(4, "PUT", "/bytes/7", &[], payload(100_000));
    assert_eq!(client.answer(4).body, payload(7), "a body on any path is read");
    let counters = counters_when(&way.origin, |counters| counters.answered == 5);
    assert_eq!(counters.body_bytes_in, 1 + 5 + 20_000 + (3 << 20) + 100_000);
    assert_eq!(counters.body_bytes_out, 1 + 5 + 20_000 + (3 << 20) + 7);
}

fn heads_and_statuses(way: &Way) {
    let mut client = way.client();
    for target in ["/bytes/128", "/bytes/1MiB", "/", "/status/404", "/status/204", "/echo"] {
        let whole = client.get(target);
        client.ask(1, "HEAD", target, &[], b"");
        let head = client.answer(1);
        assert_eq!((head.status, head.length, head.headers), (whole.status, whole.length, whole.headers), "{target}");
        assert!(head.body.is_empty());
    }
    for status in [204, 304] {
        let answer = client.get(&format!("/bytes/100?status={status}"));
        assert_eq!((answer.status, answer.length, answer.body.len()), (status, None, 0));
    }
    assert_eq!(client.get("/status/205").length, Some(0));
}

fn large_bodies_in_small_windows(way: &Way) {
    let options = http2::Options { stream_window: 5_000, connection_window: 70_000, ..http2::Options::client() };
    let mut client = Http2::with(way.pipe(), &options);
    for tag in 0..20 {
        client.ask(tag, "GET", "/bytes/300000", &[], b"");
    }
    for tag in 0..20 {
        assert!(client.answer(tag).body == payload(300_000));
    }
    let counters = counters_when(&way.origin, |counters| counters.answered == 20);
    assert_eq!(counters.body_bytes_out, 20 * 300_000);
}

fn many_streams_at_once_each_in_its_time(way: &Way) {
    let mut clients: Vec<Http2> = (0..10).map(|_| way.client()).collect();
    let start = Instant::now();
    for client in &mut clients {
        for tag in 0..1000 {
            client.ask(tag, "GET", "/bytes/10?delay=exp:300ms", &[], b"");
        }
    }
    let asked = start.elapsed();
    let read = move |mut client: Http2| {
        let ended = (0..1000).map(|tag| client.answer(tag).ended.expect("an answer"));
        ended.collect::<Vec<Instant>>()
    };
    let readers: Vec<_> = clients.into_iter().map(|client| std::thread::spawn(move || read(client))).collect();
    let times: Vec<Vec<Instant>> = readers.into_iter().map(|reader| reader.join().expect("a reader")).collect();
    let mean = times.iter().flatten().map(|ended| *ended - start).sum::<Duration>() / 10_000;
    let out_of_order: usize = times.iter().map(|times| times.windows(2).filter(|pair| pair[1] < pair[0]).count()).sum();
    let late = asked + Duration::from_millis(200);
    assert!(
        mean >= Duration::from_millis(280) && mean < Duration::from_millis(320) + late,
        "{mean:?}, asked {asked:?}"
    );
    assert!(out_of_order > 3000, "{out_of_order}: one stream must not wait for another");
    let counters = counters_when(&way.origin, |counters| counters.answered == 10_000);
    assert!(counters.max_in_flight_per_connection > 500, "{counters:?}");
}

fn faults(way: &Way) {
    let mut client = way.client();
    for (tag, fault) in [(0, "reset=before"), (1, "reset=middle"), (2, "length=more"), (3, "length=less")] {
        client.ask(tag, "GET", &format!("/bytes/1000?fault={fault}"), &[], b"");
        let answer = client.answer(tag);
        match tag {
            0 => assert_eq!((answer.status, answer.reset), (0, Some(ResetCause::Peer(Code::INTERNAL_ERROR)))),
            1 => {
                assert_eq!((answer.status, answer.reset), (200, Some(ResetCause::Peer(Code::INTERNAL_ERROR))));
                assert_eq!(answer.body, payload(500));
            }
            _ => assert!(matches!(answer.reset, Some(ResetCause::Malformed(_))), "{answer:?}"),
        }
    }
    assert_eq!(client.get("/bytes/10?fault=status=503").status, 503);
    client.ask(9, "GET", "/bytes/1000?fault=stall", &[], b"");
    assert_eq!(client.get("/bytes/10?delay=50ms").body, payload(10), "others go on");
    assert!(!client.answers[&9].is_over() && client.answers[&9].body.is_empty());
    client.ask(10, "GET", "/bytes/1000?fault=close", &[], b"");
    client.read_to_end();
    assert_eq!(client.answers[&10].body, payload(500));
    assert!(client.answers[&10].ended.is_none() && client.went_away.is_some());
    let counters = counters_when(&way.origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered), (8, 4), "{counters:?}");
    let counts = [("reset", 2), ("length", 2), ("status", 1), ("stall", 1), ("close", 1)];
    assert_eq!(counters.faults, counts.map(|(kind, n)| (kind.to_owned(), n)).into());
}

fn a_drip(way: &Way) {
    let mut client = way.client();
    let start = Instant::now();
    client.ask(1, "GET", "/bytes/20000?fault=drip=50kB/s", &[], b"");
    assert_eq!(client.get("/bytes/10").body, payload(10));
    let quick = start.elapsed();
    assert_eq!(client.answer(1).body, payload(20_000));
    let took = start.elapsed();
    assert!((Duration::from_millis(380)..Duration::from_secs(5)).contains(&took) && quick < took, "{took:?}");
    counters_when(&way.origin, |counters| counters.answered == 2 && counters.body_bytes_out == 20_010);
}

fn close_sends_goaway(way: &Way) {
    let mut client = way.client();
    assert_eq!(client.get("/bytes/10?close=1").body, payload(10));
    client.read_to_end();
    assert_eq!(client.went_away, Some(Code::NO_ERROR));
    let counters = counters_when(&way.origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.connections_reset), (1, 1, 0));
}

fn cancelled_streams_are_forgotten(way: &Way) {
    let mut client = way.client();
    for tag in 0..100 {
        client.ask(tag, "GET", "/bytes/100?delay=10s", &[], b"");
        client.cancel(tag);
    }
    assert_eq!(client.get("/bytes/9").body, payload(9));
    let counters = counters_when(&way.origin, |counters| counters.answered == 1);
    assert_eq!((counters.requests, counters.malformed), (101, 0));
    assert_eq!(client.get("/bytes/9").body, payload(9));
    assert!(counters_when(&way.origin, |counters| counters.answered == 2).max_in_flight_per_connection <= 101);
}

fn the_labs_own_requests_are_not_counted(way: &Way) {
    let mut client = way.client();
    assert_eq!(client.get("/_weir/ready").status, 204);
    assert_eq!(way.origin.connections_open(), 1);
    let counters = client.get("/_weir/counters");
    assert_eq!(counters.headers["content-type"], "application/json");
    let counters: weir_model::counters::OriginCounters = serde_json::from_slice(&counters.body).expect("counters");
    assert_eq!(
        (counters.own_requests, counters.requests, counters.connections_used, counters.body_bytes_out),
        (2, 0, 0, 0)
    );
    assert!(counters.versions.is_empty());
    assert_eq!((counters.connections_open, way.origin.connections_open()), (1, 0), "the counters were read over it");
}

fn counters_of_many_requests(way: &Way) {
    for connection in 1..=4 {
        let mut client = way.client();
        for _ in 0..connection * 10 {
            assert_eq!(client.get("/bytes/128").body.len(), 128);
        }
    }
    let counters = counters_when(&way.origin, |counters| counters.connections_open == 0 && counters.answered == 100);
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
        assert_eq!(Client::new(&way.origin).get("/bytes/5").body, payload(5));
    }
}

fn a_stop_finishes_what_is_under_way(way: &Way) {
    let origin = start(DriverChoice::Auto);
    let mut client = Http2::new(Pipe::plain(&origin));
    client.ask(1, "GET", "/bytes/200000?delay=150ms", &[], b"");
    client.ask(2, "GET", "/bytes/5?fault=stall", &[], b"");
    counters_when(&origin, |counters| counters.requests == 2);
    let stopping = std::thread::spawn(move || (Instant::now(), origin.stop(), Instant::now()));
    assert!(client.answer(1).body == payload(200_000));
    client.read_to_end();
    assert!(client.went_away.is_some());
    let (begun, counters, ended) = stopping.join().expect("a stop");
    assert_eq!((counters.requests, counters.answered, counters.connections_open), (2, 1, 0));
    assert!(ended - begun < Duration::from_secs(4));
    drop(way.client());
}

fn a_peer_that_sends_no_more(way: &Way) {
    let mut client = way.client();
    client.ask(1, "GET", "/bytes/1000?delay=100ms", &[], b"");
    client.ask(2, "GET", "/bytes/1000", &[], b"");
    client.pipe.stream.shutdown(Shutdown::Write).expect("a shutdown");
    while client.read() {}
    assert_eq!(client.answers[&1].body, payload(1000));
    assert_eq!(client.answers[&2].body, payload(1000));
    let counters = counters_when(&way.origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.connections_reset), (2, 0));
}

fn too_large_to_echo(way: &Way) {
    let mut client = way.client();
    // All streams of a connection together may hold as much as one body.
    let half: &'static [u8] = payload(40 << 20);
    client.ask(1, "POST", "/echo?delay=300ms", &[], half);
    client.ask(2, "POST", "/echo?delay=300ms", &[], half);
    let (first, second) = (client.answer(1), client.answer(2));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 413]);
    assert_eq!(client.get("/bytes/3").body, payload(3), "and the connection goes on");
}
