//! How connections and origins end: properly, early, and by force; and that counters balance then.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::counters::COUNTERS_SCHEMA;
use weir_origin::{Options, payload};

use crate::sim::{LATENCY, MS, ROUND_TRIP, S, Scene, get, post, small};

/// How long a connection whose peer broke the protocol stays open, so that the peer gets to read why.
const LINGER: u64 = 100 * MS;

/// How long a stop waits for responses under way.
const GRACE: u64 = 5 * S;

#[test]
fn what_is_malformed_is_refused_in_its_turn_and_counted() {
    let scene = Scene::new();
    let cases: [(&[u8], u64); 5] = [
        (b"nonsense\r\n\r\n", 0),
        (b"GET / HTTP/1.1\r\nHost: o\r\nbad header\r\n\r\n", 0),
        (b"GET / HTTP/1.1\r\n\r\n", 0),
        (b"POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 0),
        (b"POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 1),
    ];
    let mut requests = 0;
    for (number, (bytes, heads)) in (1..).zip(cases) {
        let mut client = scene.client();
        // Valid requests before it are still answered, and first; what follows is not looked at.
        let begun = scene.world.now();
        client.send([get("/delay/50ms").as_bytes(), bytes, get("/bytes/1").as_bytes()].concat());
        client.at(begun + 60 * MS).send(vec![b'x'; 100_000]);
        assert_eq!(client.reply().text(), "ok");
        let reply = client.reply();
        assert_eq!((reply.status, reply.header("connection")), (400, Some("close")), "{}", reply.text());
        assert_eq!(reply.at - begun, 50 * MS + ROUND_TRIP);
        assert_eq!(client.expect_closed() - begun, 50 * MS + ROUND_TRIP + LINGER);
        requests += 1 + heads;
        let counters = scene.counters();
        assert_eq!((counters.malformed, counters.requests, counters.answered), (number, requests, number));
        assert_eq!((counters.connections_open, counters.connections_reset), (0, 0));
    }
    // A peer that has seen it and ends is not waited for.
    let mut client = scene.client();
    client.send("nonsense\r\n\r\n");
    let refused = client.reply().at;
    client.shut_down();
    assert_eq!(client.expect_closed() - refused, ROUND_TRIP);
}

#[test]
fn counters_balance_over_many_connections() {
    let scene = Scene::new();
    let (mut sent, mut received, mut body_in, mut body_out) = (0, 0, 0, 0);
    for connection in 0..10 {
        let mut client = scene.client();
        for request in 0..20 {
            let size = connection * 1000 + request;
            let bytes = post(&format!("/bytes/{size}"), "body");
            client.send(&bytes);
            let reply = client.reply();
            sent += bytes.len() as u64;
            received += (reply.head.len() + reply.body.len()) as u64;
            body_in += 4;
            body_out += size;
            // The lab's own requests on the same connection change nothing.
            assert_eq!(client.get("/_weir/ready").status, 204);
        }
        for last in [
            "GET /bytes/0 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET /bytes/0 HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n",
        ] {
            client.send(last);
            sent += last.len() as u64;
            received += client.reply().head.len() as u64;
        }
        client.expect_closed();
    }
    // One connection of the lab's own.
    assert_eq!(scene.client().get("/_weir/counters").status, 200);
    let counters = scene.counters();
    assert_eq!(counters.schema, COUNTERS_SCHEMA);
    assert_eq!((counters.requests, counters.answered, counters.own_requests, counters.malformed), (220, 220, 201, 0));
    assert_eq!((counters.connections_accepted, counters.connections_used, counters.connections_reset), (11, 10, 0));
    assert_eq!((counters.bytes_in, counters.bytes_out, counters.connections_open), (sent, received, 0));
    assert_eq!((counters.body_bytes_in, counters.body_bytes_out), (body_in, body_out));
    assert_eq!(counters.versions, BTreeMap::from([("HTTP/1.0".into(), 10), ("HTTP/1.1".into(), 210)]));
    let headers = [("(none)", 200), ("close", 10), ("keep-alive", 10)];
    assert_eq!(counters.connection_headers, headers.into_iter().map(|(name, n)| (name.to_owned(), n)).collect());
    assert_eq!((counters.max_in_flight_per_connection, counters.max_connections_open), (1, 1));
}

#[test]
fn several_workers_share_the_address() {
    let scene = Scene::of(Options { threads: 3, ..Options::default() });
    let mut clients: Vec<_> = (0..60).map(|_| scene.client()).collect();
    for client in &mut clients {
        (0..5).for_each(|_| assert_eq!(client.get("/bytes/128").body, payload(128)));
    }
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_used), (300, 300, 60));
    assert_eq!((counters.connections_open, counters.max_connections_open), (60, 60));
    assert_eq!(counters.connections_reaching, BTreeMap::from([(1, 60), (2, 60), (4, 60)]));
    assert_eq!(counters.max_requests_per_connection, 5);
    assert_eq!(counters.connections_reaching[&4], counters.connections_used);
    assert_eq!(counters.max_in_flight_per_connection, 1);
    drop(clients);
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn resets_in_and_after_a_response() {
    let scene = Scene::with(Options::default(), small());
    let machine = scene.machine(small());
    let client = scene.client_of(&machine, 0);
    client.send(get("/bytes/8MiB"));
    machine.freeze();
    scene.run(100 * MS);
    // Bytes of the response are unread, so the end is a reset.
    machine.kill();
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_reset), (1, 0, 1));
    assert_eq!((counters.bytes_out, counters.connections_open), (20_000, 0));
    // While a response is delayed.
    let mut client = scene.client();
    client.send([get("/bytes/1000"), get("/delay/200ms")].concat());
    assert_eq!(client.reply().body, payload(1000));
    client.abort();
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.connections_reset, counters.connections_open), (1, 2, 0));
    // After the response: all of it had been taken, and the reset changes nothing about that.
    for round in 1..=20 {
        let mut client = scene.client();
        assert_eq!(client.get("/bytes/11268").body, payload(11_268));
        client.abort();
        let counters = scene.counters();
        assert_eq!((counters.answered, counters.connections_reset), (1 + round, 2 + round));
        assert_eq!(counters.connections_open, 0);
    }
}

#[test]
fn a_stop_finishes_what_is_under_way() {
    let scene = Scene::of(Options { threads: 2, ..Options::default() });
    let mut idle = scene.client();
    assert_eq!(idle.get("/bytes/1").status, 200);
    let mut busy = scene.client();
    let begun = scene.world.now();
    busy.send([get("/bytes/1?delay=200ms"), get("/bytes/200000")].concat());
    scene.run(10 * MS);
    assert_eq!(scene.stop(), 190 * MS + LATENCY);
    let counters = scene.handle.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_open), (3, 3, 0));
    assert_eq!(idle.expect_closed() - begun, 10 * MS + LATENCY);
    let (first, second) = (busy.reply(), busy.reply());
    assert_eq!((first.body.len(), second.body.len(), second.header("connection")), (1, 200_000, Some("close")));
    busy.expect_closed();
    assert!(!scene.world.is_listening(&scene.addresses[0].into()));
}

#[test]
fn a_stop_waits_for_a_while_and_not_for_what_stalls() {
    // Longer than the grace: cut off, and not counted as answered.
    for (target, took) in [("/delay/60s", GRACE), ("/bytes/5?fault=stall", 0)] {
        let scene = Scene::new();
        let mut client = scene.client();
        client.get("/bytes/1");
        client.send(get(target));
        scene.run(10 * MS);
        assert_eq!(scene.stop(), took, "{target}");
        let counters = scene.handle.counters();
        assert_eq!((counters.requests, counters.answered, counters.connections_open), (2, 1, 0));
    }
}

#[test]
fn idle_connections_are_closed_where_that_is_asked() {
    let idle = Some(Duration::from_millis(400));
    let scene = Scene::with(Options { idle, ..Options::default() }, small());
    let machine = scene.machine(small());
    let (mut used, mut silent, mut begun) = (scene.client(), scene.client(), scene.client());
    let deaf = scene.client_of(&machine, 0);
    begun.send("GET /bytes/1 HTTP/1.1\r\nHo");
    // It asks for more than the kernel keeps, and reads nothing.
    deaf.send(get("/bytes/64MiB"));
    machine.freeze();
    // Connections are looked at every 200 ms, and end at the third time.
    for n in 1..=10 {
        scene.world.run_to(n * 100 * MS);
        assert_eq!(used.get("/bytes/1").status, 200);
    }
    assert_eq!((silent.expect_closed(), begun.expect_closed()), (600 * MS + LATENCY, 600 * MS + LATENCY));
    let counters = scene.counters();
    // The deaf one was told to end at that time, and reset at the next.
    assert_eq!((counters.connections_open, counters.connections_accepted), (1, 4));
    assert_eq!(used.expect_closed(), 1_600 * MS + LATENCY);
}

#[test]
fn an_origin_that_stands_still_answers_afterwards_and_counts_the_stall() {
    let scene = Scene::new();
    let mut client = scene.client();
    let begun = scene.world.now();
    scene.tasks.iter().for_each(|task| scene.world.freeze(*task, begun + 300 * MS));
    assert_eq!(client.get("/bytes/5").at - begun, 300 * MS + LATENCY);
    let stalls = scene.counters().stalls;
    assert_eq!(stalls.count, 1, "{stalls:?}");
}
