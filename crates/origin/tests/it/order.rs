//! Pipelining, delays, and both at once; and when exactly a response counts.

use proptest::prelude::*;
use weir_model::counters::OriginCounters;
use weir_net::sim::Split;
use weir_origin::{Options, payload};

use crate::sim::{Client, End, LATENCY, MS, Machine, NodeOptions, ROUND_TRIP, S, Scene, get, post, small};

/// Of the timers, nanoseconds.
const TICK: u64 = 1 << 15;

#[test]
fn pipelined_responses_keep_their_order_however_they_are_delayed() {
    let scene = Scene::new();
    let mut client = scene.client();
    let sizes = [1, 5000, 0, 128, 20_000, 4096, 4097, 77];
    client.send(sizes.map(|size| get(&format!("/bytes/{size}"))).concat());
    for size in sizes {
        assert_eq!(client.reply().body, payload(size));
    }
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.max_in_flight_per_connection), (8, 8));
    let begun = scene.world.now();
    client.send([get("/bytes/1?delay=80ms"), get("/bytes/2"), get("/bytes/3?delay=20ms"), get("/status/404")].concat());
    for status in [200, 200, 200, 404] {
        let reply = client.reply();
        assert_eq!((reply.status, reply.at - begun), (status, 80 * MS + ROUND_TRIP));
    }
}

#[test]
fn delays_run_from_the_request_and_side_by_side() {
    let scene = Scene::new();
    let mut clients: Vec<_> = (0..50).map(|_| scene.client()).collect();
    let begun = scene.world.now();
    clients.iter().for_each(|client| client.send(get("/delay/500ms").repeat(40)));
    for client in &mut clients {
        for _ in 0..40 {
            assert_eq!(client.reply().text(), "ok");
        }
    }
    // Many timers of one tick expire when it is over; a few exactly when they are due.
    let late = scene.world.now() - begun - (500 * MS + ROUND_TRIP);
    assert!(late < TICK, "{late}");
    for us in [1, 50, 999, 1000, 1001, 5000, 10_000, 33_333] {
        let begun = scene.world.now();
        assert_eq!(clients[0].get(&format!("/delay/{us}us")).at - begun, us * 1000 + ROUND_TRIP);
    }
}

#[test]
fn ten_thousand_in_flight_have_the_requested_mean_delay() {
    let scene = Scene::new();
    let mut clients: Vec<_> = (0..10_000).map(|_| scene.client()).collect();
    let begun = scene.world.now();
    clients.iter().for_each(|client| client.send(get("/bytes/128?delay=exp:200ms")));
    let waits: Vec<u64> = clients.iter_mut().map(|client| client.reply().at - begun - ROUND_TRIP).collect();
    let mean = waits.iter().sum::<u64>() / 10_000;
    // The standard error of the mean is 1 %.
    assert!((190 * MS..210 * MS).contains(&mean), "{mean} ns");
    let below = waits.iter().filter(|wait| **wait < 138_629_436).count();
    assert!((4700..5300).contains(&below), "{below} of the waits are below the median requested");
}

#[test]
fn a_peer_that_sends_no_more_gets_its_responses() {
    let scene = Scene::new();
    let mut client = scene.client();
    let begun = scene.world.now();
    client.send([get("/bytes/1?delay=50ms"), get("/bytes/300000"), "GET /bytes/3 HT".to_owned()].concat());
    client.shut_down();
    assert_eq!((client.reply().body.as_slice(), client.reply().body == payload(300_000)), (payload(1), true));
    // It closes when the kernel has taken all: more than fits in its buffer at once.
    assert_eq!(client.expect_closed() - begun, 50 * MS + 2 * ROUND_TRIP);
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered), (2, 2));
    assert_eq!((counters.connections_open, counters.connections_reset), (0, 0));
}

#[test]
fn a_peer_that_does_not_read_holds_up_its_responses_and_gets_all_of_them() {
    let scene = Scene::with(Options::default(), small());
    let machine = scene.machine(small());
    let mut client = scene.client_of(&machine, 0);
    client.send(get("/bytes/10000").repeat(1000));
    machine.freeze();
    let counters = scene.counters();
    // The requests are read. Both kernels are full, and of the responses no more are written than 256 KiB.
    assert_eq!((counters.requests, counters.bytes_out), (1000, 20_000));
    machine.thaw();
    let one = client.reply();
    let length = one.head.len() + one.body.len();
    for _ in 1..1000 {
        assert!(client.reply().body == payload(10_000));
    }
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.bytes_out), (1000, 1000 * length as u64));
    assert_eq!(
        (counters.body_bytes_out, counters.max_in_flight_per_connection),
        (10_000_000, 999),
        "the first was taken at once"
    );
}

/// A connection whose client does not read, an origin whose kernel takes `taken` bytes, and what the client has asked for.
fn unread(taken: usize, requests: impl AsRef<[u8]>) -> (Scene, Machine, Client) {
    let half = |bytes| NodeOptions { send_buffer: taken / 2, receive_buffer: bytes, ..small() };
    let scene = Scene::with(Options::default(), half(100_000));
    let machine = scene.machine(NodeOptions { send_buffer: 100_000, ..half(taken - taken / 2) });
    let client = scene.client_of(&machine, 0);
    client.send(requests);
    machine.freeze();
    scene.run(S);
    (scene, machine, client)
}

#[test]
fn a_response_counts_when_its_last_byte_is_taken() {
    let head = Scene::new().client().get("/bytes/1000").head.len();
    let (scene, machine, mut client) = unread(head + 999, get("/bytes/1000"));
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered), (1, 0));
    // The event that would say so has not come: what is counted is what was taken at once.
    assert_eq!(counters.bytes_out, 0);
    machine.thaw();
    assert_eq!(client.reply().body, payload(1000));
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.body_bytes_out, counters.bytes_out), (1, 1000, head as u64 + 1000));
}

#[test]
fn what_the_kernel_did_not_take_before_a_reset_is_not_counted() {
    let head = Scene::new().client().get("/bytes/1000").head.len();
    for (unsent, answered) in [(0, 1), (400, 0)] {
        let (scene, machine, _client) = unread(head + 1000 - unsent, get("/bytes/1000"));
        machine.kill();
        let counters = scene.counters();
        assert_eq!((counters.requests, counters.answered, counters.connections_reset), (1, answered, 1));
        assert_eq!((counters.body_bytes_out, counters.connections_open), (1000 - unsent as u64, 0));
    }
}

/// Lets the origin stand still from its next request on until the client has reacted to the response: it sees the client's bytes before
/// the event that all was sent, which is then older than what it writes.
fn with_a_late_event(scene: &Scene, requests: u64, react: impl FnOnce()) {
    let came = scene.world.run_until(scene.world.now() + S, || scene.handle.counters().requests == requests);
    assert!(came);
    scene.world.freeze(scene.tasks[0], u64::MAX);
    react();
    scene.run(10 * LATENCY);
    scene.world.freeze(scene.tasks[0], 0);
}

#[test]
fn requests_one_after_another_are_one_in_flight_even_if_the_event_is_late() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.send(get("/bytes/10"));
    for n in 1..=5 {
        with_a_late_event(&scene, n, || {
            assert_eq!(client.reply().body, payload(10));
            client.send(get("/bytes/10"));
        });
    }
    assert_eq!(client.reply().body, payload(10));
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.max_in_flight_per_connection), (6, 1));
}

#[test]
fn a_late_event_is_not_the_last() {
    let (scene, machine, mut client) = unread(300, get("/bytes/10000"));
    assert_eq!(scene.handle.counters().answered, 0);
    scene.world.freeze(scene.tasks[0], u64::MAX);
    machine.thaw();
    assert_eq!(client.reply().body, payload(10_000));
    client.send(get("/bytes/9000"));
    scene.run(S);
    scene.world.freeze(scene.tasks[0], 0);
    assert_eq!(client.reply().body, payload(9000));
    assert_eq!(scene.counters().answered, 2);
}

#[test]
fn too_many_waiting_responses_are_refused_in_their_turn() {
    let scene = Scene::new();
    let mut client = scene.client();
    let begun = scene.world.now();
    client.send(get("/bytes/1?delay=60s") + &get("/bytes/2").repeat(4200));
    let counters = scene.counters();
    assert_eq!((counters.malformed, counters.requests, counters.bytes_out), (1, 4097, 0));
    assert_eq!(client.reply().at - begun, 60 * S + ROUND_TRIP);
    for _ in 1..4097 {
        assert_eq!(client.reply().body, payload(2));
    }
    let refused = client.reply();
    // Together they are more than fits in a buffer.
    assert_eq!((refused.status, refused.at - begun), (400, 60 * S + 2 * ROUND_TRIP));
    // The same for what they hold: the first is being written, and the third is one too many.
    let machine = scene.machine(NodeOptions { send_buffer: 1 << 20, ..small() });
    let mut client = scene.client_of(&machine, 0);
    let body = vec![b'x'; 40 << 20];
    (0..3).for_each(|_| client.send(post("/echo", &body)));
    machine.freeze();
    scene.run(10 * S);
    let counters = scene.counters();
    assert_eq!((counters.malformed, counters.requests - 4097), (2, 3));
    machine.thaw();
    assert!((0..3).all(|_| client.reply().body == body));
    assert_eq!(client.reply().status, 400);
}

#[test]
fn a_slot_used_again_starts_anew() {
    let scene = Scene::new();
    let former = scene.client();
    former.send(get("/delay/50ms") + "GET /bytes/1 HT");
    scene.run(ROUND_TRIP);
    former.abort();
    scene.run(ROUND_TRIP);
    let mut client = scene.client();
    assert_eq!(client.get("/bytes/1").body, payload(1));
    // The timer of the former connection has no effect.
    scene.run(100 * MS);
    assert!(client.received().is_empty());
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_accepted), (2, 1, 2));
    assert_eq!((counters.connections_used, counters.connections_open), (2, 1));
    assert_eq!(counters.bytes_in, (get("/delay/50ms").len() + "GET /bytes/1 HT".len() + get("/bytes/1").len()) as u64);
}

/// Requests of all kinds on one connection, the last of them invalid.
fn mixed_requests() -> Vec<u8> {
    let (get, text) = (|target| get(target).into_bytes(), |text: &str| text.as_bytes().to_vec());
    let parts = [
        get("/bytes/100"),
        post("/echo", "hello world"),
        get("/_weir/ready"),
        text("HEAD /bytes/5000?chunked=1 HTTP/1.1\r\nHost: o\r\nConnection: keep-alive\r\n\r\n"),
        text("PUT /echo?chunked=1 HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        text("0a\r\n0123456789\r\n0\r\n\r\n"),
        text("POST /bytes/7 HTTP/1.1\r\nHost: o\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody"),
        get("/nowhere"),
        get("/bytes/20000"),
        text("GET /bytes/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        text("POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    ];
    parts.concat()
}

#[test]
fn responses_and_counters_do_not_depend_on_how_bytes_are_split() {
    let exchange = |seed: Option<u64>| {
        let node = if seed.is_some_and(|seed| seed % 2 == 0) { small() } else { NodeOptions::default() };
        let split = if seed.is_some() { Split::Random } else { Split::Whole };
        let scene = Scene::seeded(seed.unwrap_or_default(), split, Options::default(), node);
        let mut client = scene.client();
        client.send(mixed_requests());
        let (bytes, _, end) = client.rest();
        assert_eq!(end, End::Closed);
        // Only this counter depends on when the bytes arrive.
        (bytes, OriginCounters { max_in_flight_per_connection: 0, ..scene.counters() })
    };
    let (bytes, counters) = exchange(None);
    assert_eq!((counters.requests, counters.answered, counters.malformed, counters.own_requests), (9, 8, 1, 1));
    assert_eq!(counters.body_bytes_in, 11 + 13 + 4);
    assert_eq!(counters.bytes_in, (mixed_requests().len() - get("/_weir/ready").len()) as u64);
    assert_eq!((counters.versions["HTTP/1.0"], counters.versions["HTTP/1.1"]), (1, 8));
    assert!(bytes.windows(20_000).any(|bytes| bytes == payload(20_000)));
    for seed in 0..64 {
        assert_eq!(exchange(Some(seed)), (bytes.clone(), counters.clone()), "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..5)) {
        let scene = Scene::new();
        let mut client = scene.client();
        client.send_pieces(pieces.iter().map(Vec::as_slice), MS);
        let end = scene.world.now() + 10 * MS;
        client.at(end).shut_down();
        scene.run(S);
        prop_assert!(scene.handle.counters().malformed <= 1);
        prop_assert!(!scene.world.is_over(scene.tasks[0]));
    }
}
