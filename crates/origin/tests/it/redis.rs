//! Redis's protocol: commands, versions, pipelining, expiry, faults and counters.

use weir_model::protocol::Protocol;
use weir_origin::Options;
use weir_wire::redis::encode;

use crate::sim::{Client, End, LATENCY, MS, ROUND_TRIP, S, Scene, responses};

fn options(delay: Option<&str>, faults: &str) -> Options {
    Options { protocol: Protocol::Redis, responses: responses(delay, faults), ..Options::default() }
}

fn start(delay: Option<&str>, faults: &str) -> (Scene, Client) {
    let scene = Scene::of(options(delay, faults));
    let client = scene.client();
    (scene, client)
}

/// A request of these words.
fn words(request: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::request(&mut bytes, &request.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    bytes
}

/// Sends this, and waits for exactly that. Returns when it came.
fn ask(client: &mut Client, request: &str, wanted: &str) -> u64 {
    client.send(words(request));
    client.expect(wanted)
}

#[test]
fn commands_do_what_they_say() {
    let (scene, mut client) = start(None, "none");
    for (request, wanted) in [
        ("GET a", "$-1\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("get a", "$1\r\n1\r\n"),
        ("SET a 2 NX", "$-1\r\n"),
        ("SET b 2 XX", "$-1\r\n"),
        ("SET a 22 xx", "+OK\r\n"),
        ("MGET a b", "*2\r\n$2\r\n22\r\n$-1\r\n"),
        ("TTL a", ":-1\r\n"),
        ("TTL b", ":-2\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("TTL a", ":100\r\n"),
        ("EXPIRE b 100", ":0\r\n"),
        ("SET e x EX 100 NX", "+OK\r\n"),
        ("TTL e", ":100\r\n"),
        ("EXISTS a b e", ":2\r\n"),
        ("EXPIRE e 0", ":1\r\n"),
        ("GET e", "$-1\r\n"),
        ("DEL a b", ":1\r\n"),
        ("INCR n", ":1\r\n"),
        ("INCR n", ":2\r\n"),
        ("GET n", "$1\r\n2\r\n"),
        ("SET t text", "+OK\r\n"),
        ("INCR t", "-ERR value is not an integer or out of range\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("PING", "+PONG\r\n"),
        ("PING there", "$5\r\nthere\r\n"),
        ("WAIT 2 100", ":2\r\n"),
        ("AUTH anything", "+OK\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("SELECT 1", "-ERR DB index is out of range\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("FROB x", "-ERR unknown command 'FROB'\r\n"),
        ("GET", "-ERR wrong arguments for 'GET'\r\n"),
        ("SET a 1 MAYBE", "-ERR wrong arguments for 'SET'\r\n"),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        (
            "HELLO 2",
            "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        ),
        (
            "HELLO 3",
            "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        ),
        ("GET nothing", "_\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SET p 1 PX 40", "+OK\r\n"),
        ("QUIT", "+OK\r\n"),
    ] {
        ask(&mut client, request, wanted);
    }
    client.expect_closed();
    let mut other = scene.client();
    // The last key was set three requests ago: 2 ms are left of its 40.
    scene.run(30 * MS);
    ask(&mut other, "GET p", "$1\r\n1\r\n");
    scene.run(2 * MS);
    ask(&mut other, "GET p", "$-1\r\n");
    other.send("PING\r\n\r\nSET inline 1\r\nGET inline\r\n");
    other.expect("+PONG\r\n+OK\r\n$1\r\n1\r\n");
}

#[test]
fn requests_may_be_pipelined_and_cut_anywhere() {
    let (scene, mut client) = start(None, "none");
    let (mut bytes, mut wanted) = (Vec::new(), String::new());
    for n in 0..50 {
        let (key, value) = (format!("k{}", n % 7), format!("{n:0>40}"));
        encode::request(&mut bytes, &[b"SET", key.as_bytes(), value.as_bytes()]);
        encode::request(&mut bytes, &[b"GET", key.as_bytes()]);
        wanted += &format!("+OK\r\n$40\r\n{value}\r\n");
    }
    for length in [bytes.len(), 977, 13] {
        client.send_pieces(bytes.chunks(length), 10_000);
        client.expect(&wanted);
    }
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.hits, counters.keys), (300, 300, 150, 7));
    assert_eq!(counters.max_in_flight_per_connection, 100);
}

#[test]
fn large_values_come_back_whole() {
    let (scene, mut client) = start(None, "none");
    let value = "0123456789abcdef".repeat(1 << 14);
    ask(&mut client, &format!("SET big {value}"), "+OK\r\n");
    client.send(words("GET big").repeat(8));
    client.expect(format!("${}\r\n{value}\r\n", value.len()).repeat(8));
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.body_bytes_in, counters.body_bytes_out), (9, 1 << 18, 8 << 18));
}

#[test]
fn workers_share_one_store() {
    let scene = Scene::of(Options { threads: 3, ..options(None, "none") });
    let mut clients: Vec<Client> = (0..12).map(|_| scene.client()).collect();
    for n in 1..=100 {
        ask(&mut clients[n * 5 % 12], "INCR n", &format!(":{n}\r\n"));
    }
}

#[test]
fn what_is_malformed_is_told_and_ends_the_connection() {
    let (scene, mut client) = start(None, "none");
    client.send("*1\r\n$4\r\nPING\r\n*1\r\n:5\r\n");
    client.expect("+PONG\r\n-ERR Protocol error: ");
    assert_eq!(client.rest().2, End::Closed);
    let counters = scene.counters();
    assert_eq!((counters.malformed, counters.connections_open), (1, 0));
}

#[test]
fn delayed_responses_come_late_and_in_order() {
    let (scene, mut client) = start(Some("1ms..30ms"), "none");
    let begun = scene.world.now();
    for n in 0..20 {
        client.send([words(&format!("SET k{n} {n}")), words(&format!("GET k{n}")), words("PING")].concat());
    }
    let times: Vec<u64> = (0..20)
        .map(|n| client.expect(format!("+OK\r\n${}\r\n{n}\r\n+PONG\r\n", n.to_string().len())) - begun)
        .collect();
    assert!(times.is_sorted() && times[0] > MS + ROUND_TRIP && times[19] > 20 * MS && times[19] < 31 * MS + ROUND_TRIP);
    assert_eq!(scene.counters().answered, 40);
    client.send(words("GET k1"));
    client.shut_down();
    let (bytes, _, end) = client.rest();
    assert_eq!((&bytes[..], end), (&b"$1\r\n1\r\n"[..], End::Closed), "answered before it closes");
}

#[test]
fn faults_do_what_they_say() {
    let (scene, mut client) = start(None, "busy");
    ask(&mut client, "SET a 1", "-BUSY the origin was told to be busy\r\n");
    ask(&mut client, "PING", "+PONG\r\n");
    assert_eq!(scene.counters().keys, 0);
    for (fault, bytes, wanted) in [("reset", "", End::Reset), ("close", "+O", End::Closed), ("stall", "", End::Closed)]
    {
        let (scene, mut client) = start(None, fault);
        let begun = scene.world.now();
        client.send([words("SET a 1"), words("PING")].concat());
        client.at(begun + S).shut_down();
        let (came, at, end) = client.rest();
        assert_eq!((String::from_utf8_lossy(&came).as_ref(), end), (bytes, wanted), "{fault}");
        assert_eq!(at - begun, ROUND_TRIP + if fault == "stall" { S } else { 0 });
        let counters = scene.counters();
        assert_eq!((counters.keys, counters.faults[fault]), (1, 1), "done, and not said");
        assert_eq!((counters.requests, counters.answered, counters.connections_open), (1, 0, 0));
    }
}

#[test]
fn a_store_that_loses_and_lies_does_so_as_often_as_told() {
    let (scene, mut client) = start(None, "lose=20%,stale=30%");
    let count = |kind: &str| scene.handle.counters().faults.get(kind).copied().unwrap_or_default();
    let (mut before, mut now) = ("$-1\r\n".to_owned(), "$-1\r\n".to_owned());
    for n in 0..400 {
        let lost = count("lose");
        ask(&mut client, &format!("SET k {n:0>5}"), "+OK\r\n");
        if count("lose") == lost {
            before = std::mem::replace(&mut now, format!("$5\r\n{n:0>5}\r\n"));
        }
        let stale = count("stale");
        client.send(words("GET k"));
        scene.run(ROUND_TRIP);
        client.expect(if count("stale") > stale { &before } else { &now });
    }
    let (lost, stale) = (count("lose"), count("stale"));
    assert!(lost.abs_diff(80) < 25 && stale.abs_diff(120) < 30, "{lost} lost, {stale} stale");
}

#[test]
fn counters_balance() {
    let scene = Scene::of(options(None, "none"));
    let mut clients: Vec<Client> = (0..3).map(|_| scene.client()).collect();
    ask(&mut clients[0], "PING", "+PONG\r\n");
    for (n, client) in clients.iter_mut().enumerate().skip(1) {
        ask(client, &format!("SET k{n} value"), "+OK\r\n");
        ask(client, &format!("GET k{n}"), "$5\r\nvalue\r\n");
        ask(client, "GET none", "$-1\r\n");
    }
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.own_requests, counters.keys), (6, 6, 1, 2));
    assert_eq!((counters.hits, counters.misses), (2, 2));
    assert_eq!((counters.connections_accepted, counters.connections_used), (3, 2));
    assert_eq!((counters.connections_by_protocol["redis"], counters.connections_reaching[&2]), (2, 2));
    let operations: Vec<_> = counters.operations.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(operations, [("get", 4), ("ping", 1), ("set", 2)]);
    clients[2].send(words("GET none"));
    scene.run(LATENCY);
    clients[2].abort();
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.connections_open, counters.connections_reset), (7, 2, 1));
}

#[test]
fn addresses_are_counted_apart() {
    let any = Options::default().listen;
    let scene = Scene::of(Options { threads: 2, also: vec![any, any], ..options(None, "none") });
    for n in 0..3 {
        for value in 0..=n {
            ask(&mut scene.client_of(&scene.clients, n), "INCR all", &format!(":{}\r\n", value + 1));
        }
    }
    let counters = scene.counters();
    let seen = counters.addresses.iter().map(|a| (a.connections_accepted, a.connections_used, a.requests, a.answered));
    assert_eq!(seen.collect::<Vec<_>>(), [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]);
    assert_eq!(counters.addresses[2].address, scene.addresses[2].to_string());
    assert_eq!((counters.connections_accepted, counters.keys), (6, 3), "a store for each address");
}
