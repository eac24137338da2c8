//! Pipelining, delays, and both at once.

mod common;

use std::time::{Duration, Instant};

use common::{Client, counters_when, get, start};
use weir_model::load::DriverChoice;
use weir_origin::payload;

on_each_driver!(
    pipelined_answers_keep_their_order,
    a_delayed_answer_holds_up_those_behind_it,
    delays_run_from_the_request_and_side_by_side,
    a_delay_is_never_cut_short,
    a_peer_that_sends_no_more_gets_its_answers,
    a_thousand_pipelined_requests_unread,
);

fn pipelined_answers_keep_their_order(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let sizes = [1, 5000, 0, 128, 20_000, 4096, 4097, 77];
    client.send(sizes.map(|size| get(&format!("/bytes/{size}"))).concat());
    for size in sizes {
        assert_eq!(client.reply().body, payload(size));
    }
    let counters = counters_when(&origin, |counters| counters.answered == 8);
    assert_eq!(counters.max_in_flight_per_connection, 8);
}

fn a_delayed_answer_holds_up_those_behind_it(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let start = Instant::now();
    client.send([get("/bytes/1?delay=80ms"), get("/bytes/2"), get("/bytes/3?delay=20ms"), get("/status/404")].concat());
    for size in 1..=3 {
        assert_eq!(client.reply().body, payload(size));
        assert!(start.elapsed() >= Duration::from_millis(80));
    }
    assert_eq!(client.reply().status, 404);
}

fn delays_run_from_the_request_and_side_by_side(driver: DriverChoice) {
    let origin = start(driver);
    let start = Instant::now();
    let mut clients: Vec<Client> = (0..50).map(|_| Client::new(&origin)).collect();
    for client in &mut clients {
        client.send(get("/delay/500ms").repeat(40));
    }
    for client in &mut clients {
        for _ in 0..40 {
            assert_eq!(client.reply().text(), "ok");
        }
    }
    // One after the other it would be 1000 s; one after the other on each connection, 20 s.
    assert!(start.elapsed() >= Duration::from_millis(500));
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

fn a_delay_is_never_cut_short(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    for us in [1, 50, 999, 1000, 1001, 5000, 10_000, 33_333] {
        let wanted = Duration::from_micros(us);
        let best = (0..5).map(|_| {
            let start = Instant::now();
            assert_eq!(client.get(&format!("/delay/{us}us")).text(), "ok");
            let took = start.elapsed();
            assert!(took >= wanted, "{took:?} for {wanted:?}");
            took
        });
        let best = best.min().unwrap_or_default();
        assert!(best < wanted + Duration::from_millis(200), "{best:?} for {wanted:?}, the best of five");
    }
}

fn a_peer_that_sends_no_more_gets_its_answers(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send([get("/bytes/1?delay=50ms"), get("/bytes/300000"), "GET /bytes/3 HT".to_owned()].concat());
    client.half_close();
    assert_eq!(client.reply().body, payload(1));
    assert_eq!(client.reply().body, payload(300_000));
    client.expect_closed();
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.connections_reset), (2, 2, 0));
}

fn a_thousand_pipelined_requests_unread(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    // 100 MB of responses: more than any socket buffer, so they wait in the origin's queue.
    client.send(get("/bytes/100000").repeat(1000));
    counters_when(&origin, |counters| counters.requests == 1000);
    for _ in 0..1000 {
        assert!(client.reply().body == payload(100_000));
    }
    let counters = counters_when(&origin, |counters| counters.answered == 1000);
    assert_eq!(counters.body_bytes_out, 100_000_000);
}
