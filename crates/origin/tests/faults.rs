//! Faults on purpose: each has its effect, is counted, and does not affect other connections.

mod common;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use common::{Client, counters_when, get, start, start_in};
use weir_model::load::DriverChoice;
use weir_origin::{ResponseOptions, payload};

on_each_driver!(
    a_reset_before_the_answer,
    a_reset_in_the_middle,
    closed_early,
    a_stall_lasts_until_the_peer_gives_up,
    a_stop_does_not_wait_for_stalled_responses,
    wrong_lengths,
    statuses,
    a_drip_keeps_its_rate_and_its_turn,
    the_labs_own_requests_get_no_faults,
    faults_by_flag_have_their_probability,
    none_by_query_overrides_the_flag,
    requests_behind_a_fault_get_no_answer,
);

fn faulty(faults: &str) -> ResponseOptions {
    ResponseOptions { faults: faults.parse().expect("faults"), ..ResponseOptions::default() }
}

fn counted(kind: &str, n: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(kind.to_owned(), n)])
}

fn a_reset_before_the_answer(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send(get("/bytes/1000?fault=reset=before"));
    assert_eq!(client.rest(), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.bytes_out), (1, 0, 0));
    // The peer did nothing wrong.
    assert_eq!((counters.connections_reset, counters.faults), (0, counted("reset", 1)));
}

fn a_reset_in_the_middle(driver: DriverChoice) {
    let origin = start(driver);
    for target in ["/bytes/1MiB", "/bytes/1MiB?chunked=1", "/status/204"] {
        let mut client = Client::new(&origin);
        let query = if target.contains('?') { '&' } else { '?' };
        client.send(get(&format!("{target}{query}fault=reset=middle")));
        let (bytes, end) = client.rest();
        assert_eq!(end, Some(ErrorKind::ConnectionReset), "{target}");
        assert!(bytes.len() < 700_000, "{target}: {}", bytes.len());
    }
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.faults), (0, counted("reset", 3)));
}

fn closed_early(driver: DriverChoice) {
    let origin = start(driver);
    for size in [1, 1000, 11_268, 3 << 20] {
        let mut client = Client::new(&origin);
        client.send(get(&format!("/bytes/{size}?fault=close")));
        let (bytes, end) = client.rest();
        assert_eq!(end, None, "{size}");
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("Content-Length: {size}")), "{head}");
        assert_eq!(body.as_bytes(), payload(size / 2));
    }
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.faults), (4, 0, counted("close", 4)));
    assert_eq!(counters.body_bytes_out, 500 + 5634 + (3 << 19));
}

fn a_stall_lasts_until_the_peer_gives_up(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send(get("/bytes/5?fault=stall").repeat(3));
    counters_when(&origin, |counters| counters.bytes_out > 0);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(origin.counters().connections_open, 1);
    client.half_close();
    let (bytes, end) = client.rest();
    assert_eq!(end, None);
    assert!(bytes.ends_with(b"Content-Length: 5\r\n\r\n"), "{}", String::from_utf8_lossy(&bytes));
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.faults), (0, counted("stall", 1)));
}

fn a_stop_does_not_wait_for_stalled_responses(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send(get("/bytes/5?fault=stall"));
    counters_when(&origin, |counters| counters.bytes_out > 0);
    let start = Instant::now();
    assert_eq!(origin.stop().connections_open, 0);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(client.rest().1, None);
}

fn wrong_lengths(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send(get("/bytes/1000?fault=length=less"));
    let less = client.reply();
    assert_eq!((less.header("content-length"), less.body.as_slice()), (Some("500"), payload(500)));
    client.half_close();
    assert_eq!(client.rest(), (payload(1000)[500..].to_vec(), None));
    let mut client = Client::new(&origin);
    client.send(get("/bytes/10?fault=length=more&chunked=1"));
    client.half_close();
    let (bytes, _) = client.rest();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("Content-Length: 16\r\n") && bytes.ends_with(payload(10)), "{text}");
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.faults), (2, counted("length", 2)));
}

fn statuses(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let reply = client.get("/bytes/1000?fault=status=503");
    assert_eq!((reply.status, reply.text().as_str()), (503, "503 Service Unavailable\n"));
    assert_eq!(client.get("/bytes/3").body, payload(3), "the connection goes on");
    let counters = counters_when(&origin, |counters| counters.answered == 2);
    assert_eq!(counters.faults, counted("status", 1));
}

fn a_drip_keeps_its_rate_and_its_turn(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let start = Instant::now();
    client.send(
        [get("/bytes/20000?fault=drip=50kB/s"), get("/bytes/7"), get("/bytes/100?close=1&fault=drip=1kB/s")].concat(),
    );
    assert_eq!(client.reply().body, payload(20_000));
    // 20 kB and a head at 50 kB/s, the first of it at once.
    let took = start.elapsed();
    assert!((Duration::from_millis(380)..Duration::from_secs(5)).contains(&took), "{took:?}");
    assert_eq!(client.reply().body, payload(7));
    assert_eq!(client.reply().body, payload(100));
    client.expect_closed();
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.faults), (3, 3, counted("drip", 2)));
}

fn the_labs_own_requests_get_no_faults(driver: DriverChoice) {
    let delay = Some("30s".parse().expect("a delay"));
    let origin = start_in(driver, ResponseOptions { delay, ..faulty("reset") });
    let mut client = Client::new(&origin);
    for _ in 0..20 {
        assert_eq!(client.get("/_weir/ready").status, 204);
    }
    assert_eq!(client.get("/_weir/counters?fault=reset").status, 200);
    assert!(origin.counters().faults.is_empty());
}

fn faults_by_flag_have_their_probability(driver: DriverChoice) {
    let origin = start_in(driver, faulty("status=500:20%,status=503:10%,close=0"));
    let mut client = Client::new(&origin);
    let n = 2000u32;
    let mut seen = BTreeMap::new();
    for _ in 0..n {
        *seen.entry(client.get("/bytes/10").status).or_insert(0u32) += 1;
    }
    for (status, share) in [(200, 0.7), (500, 0.2), (503, 0.1)] {
        let found = f64::from(seen[&status]) / f64::from(n);
        assert!((found - share).abs() < 0.05, "{status}: {found}");
    }
    let counters = counters_when(&origin, |counters| counters.answered == u64::from(n));
    assert_eq!(counters.faults, counted("status", u64::from(seen[&500] + seen[&503])));
    // The same seed, the same faults.
    let again = start_in(driver, faulty("status=500:20%,status=503:10%,close=0"));
    let mut client = Client::new(&again);
    for _ in 0..n {
        client.get("/bytes/10");
    }
    assert_eq!(counters_when(&again, |counters| counters.answered == u64::from(n)).faults, counters.faults);
}

fn none_by_query_overrides_the_flag(driver: DriverChoice) {
    let origin = start_in(driver, ResponseOptions { delay: Some("60s".parse().expect("a delay")), ..faulty("reset") });
    let mut client = Client::new(&origin);
    assert_eq!(client.get("/bytes/10?fault=none&delay=1ms").body, payload(10));
    assert_eq!(client.get("/delay/0s?fault=none").text(), "ok");
}

fn requests_behind_a_fault_get_no_answer(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send([get("/bytes/1"), get("/bytes/10?fault=close&delay=50ms"), get("/bytes/3").repeat(3)].concat());
    assert_eq!(client.reply().body, payload(1));
    let (bytes, end) = client.rest();
    assert!(end.is_none() && bytes.ends_with(payload(5)));
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered), (5, 1));
}
