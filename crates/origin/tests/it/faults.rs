//! Faults on purpose: each has its effect, is counted, and does not affect other connections.

use std::collections::BTreeMap;

use weir_origin::{Options, payload};

use crate::sim::{End, MS, ROUND_TRIP, S, Scene, get, responses};

fn counted(kind: &str, n: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(kind.to_owned(), n)])
}

/// All that comes of one request, and the end.
fn all_of(scene: &Scene, target: &str) -> (String, Vec<u8>, End) {
    let mut client = scene.client();
    client.send(get(target));
    let (bytes, _, end) = client.rest();
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |at| at + 4);
    (String::from_utf8_lossy(&bytes[..head]).into_owned(), bytes[head..].to_vec(), end)
}

#[test]
fn resets_before_and_in_a_response() {
    let scene = Scene::new();
    assert_eq!(all_of(&scene, "/bytes/1000?fault=reset=before"), (String::new(), Vec::new(), End::Reset));
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.bytes_out), (1, 0, 0));
    // The peer did nothing wrong.
    assert_eq!((counters.connections_reset, counters.faults), (0, counted("reset", 1)));
    // In the middle of the body, or of the head where there is none.
    for (target, length) in [("/bytes/100KiB?", 51_200), ("/bytes/100KiB?chunked=1&", 51_230), ("/status/204?", 24)] {
        let (_, body, end) = all_of(&scene, &format!("{target}fault=reset=middle"));
        assert_eq!((body.len(), end), (length, End::Reset), "{target}");
    }
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.faults, counters.connections_open), (0, counted("reset", 4), 0));
}

#[test]
fn closed_early() {
    let scene = Scene::new();
    for size in [1, 1000, 11_268, 3 << 20] {
        let (head, body, end) = all_of(&scene, &format!("/bytes/{size}?fault=close"));
        assert!(head.contains(&format!("Content-Length: {size}")), "{head}");
        assert!(end == End::Closed && body == payload(size / 2), "{size}");
    }
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.faults), (4, 0, counted("close", 4)));
    assert_eq!((counters.body_bytes_out, counters.connections_open), (500 + 5634 + (3 << 19), 0));
}

#[test]
fn a_stall_lasts_until_the_peer_gives_up() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.send(get("/bytes/5?fault=stall").repeat(3));
    scene.run(60 * S);
    assert!(String::from_utf8_lossy(&client.received()).ends_with("Content-Length: 5\r\n\r\n"));
    assert_eq!(scene.handle.counters().connections_open, 1);
    let begun = scene.world.now();
    client.shut_down();
    assert_eq!(client.expect_closed() - begun, ROUND_TRIP);
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.faults, counters.connections_open), (0, counted("stall", 1), 0));
}

#[test]
fn statuses_and_wrong_lengths() {
    let scene = Scene::new();
    let mut client = scene.client();
    let reply = client.get("/bytes/1000?fault=status=503");
    assert_eq!((reply.status, reply.text().as_str()), (503, "503 Service Unavailable\n"));
    assert_eq!(client.get("/bytes/3").body, payload(3), "the connection goes on");
    client.send(get("/bytes/1000?fault=length=less"));
    let less = client.reply();
    assert_eq!((less.header("content-length"), less.body.as_slice()), (Some("500"), payload(500)));
    client.shut_down();
    let (rest, _, end) = client.rest();
    assert_eq!((rest.as_slice(), end), (&payload(1000)[500..], End::Closed));
    let mut client = scene.client();
    client.send(get("/bytes/10?fault=length=more&chunked=1"));
    client.shut_down();
    let (bytes, ..) = client.rest();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("Content-Length: 16\r\n") && bytes.ends_with(payload(10)), "{text}");
    let counters = scene.counters();
    let counts = [("length", 2), ("status", 1)].map(|(kind, n)| (kind.to_owned(), n));
    assert_eq!((counters.answered, counters.faults), (4, counts.into()));
}

#[test]
fn a_drip_keeps_its_rate_and_its_turn() {
    let scene = Scene::new();
    let mut client = scene.client();
    let begun = scene.world.now();
    client.send(
        [get("/bytes/20000?fault=drip=50kB/s"), get("/bytes/7"), get("/bytes/100?close=1&fault=drip=1kB/s")].concat(),
    );
    let dripped = client.reply();
    let length = (dripped.head.len() + 20_000) as u64;
    assert_eq!(dripped.body, payload(20_000));
    // The first of it comes at once.
    let at_rate = length * 20_000 + ROUND_TRIP;
    let took = dripped.at - begun;
    assert!(took <= at_rate && took >= at_rate - 20 * MS, "{took} for {at_rate}");
    let next = client.reply();
    assert_eq!((next.body.as_slice(), next.at), (payload(7), dripped.at));
    let last = client.reply();
    let at_rate = (last.head.len() + 100) as u64 * MS;
    let took = last.at - dripped.at;
    assert!(last.body == payload(100) && took <= at_rate && took >= at_rate - 20 * MS, "{took} for {at_rate}");
    client.expect_closed();
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.faults), (3, 3, counted("drip", 2)));
}

#[test]
fn neither_the_labs_own_requests_nor_those_that_want_none_get_faults() {
    let scene = Scene::of(Options { responses: responses(Some("30s"), "reset"), ..Options::default() });
    let mut client = scene.client();
    let begun = scene.world.now();
    for n in 1..=20 {
        let reply = client.get("/_weir/ready");
        assert_eq!((reply.status, reply.at - begun), (204, n * ROUND_TRIP));
    }
    assert_eq!(client.get("/_weir/counters?fault=reset").status, 200);
    let begun = scene.world.now();
    let reply = client.get("/bytes/10?fault=none&delay=1ms");
    assert_eq!((reply.body.as_slice(), reply.at - begun), (payload(10), MS + ROUND_TRIP));
    assert_eq!(client.get("/delay/0s?fault=none").text(), "ok");
    assert!(scene.counters().faults.is_empty());
}

#[test]
fn faults_by_flag_have_their_probability_and_follow_from_the_seed() {
    let statuses = || {
        let scene = Scene::of(Options {
            responses: responses(None, "status=500:20%,status=503:10%,close=0"),
            ..Options::default()
        });
        let mut client = scene.client();
        let all: Vec<u16> = (0..2000).map(|_| client.get("/bytes/10").status).collect();
        (all, scene.counters())
    };
    let (all, counters) = statuses();
    let count = |status| all.iter().filter(|one| **one == status).count() as u64;
    for (status, about) in [(200, 1400), (500, 400), (503, 200)] {
        assert!(count(status).abs_diff(about) < 60, "{status}: {}", count(status));
    }
    assert_eq!((counters.answered, counters.faults), (2000, counted("status", count(500) + count(503))));
    assert_eq!(statuses().0, all);
}

#[test]
fn requests_behind_a_fault_get_no_response() {
    let scene = Scene::new();
    let mut client = scene.client();
    let begun = scene.world.now();
    client.send([get("/bytes/1"), get("/bytes/10?fault=close&delay=50ms"), get("/bytes/3").repeat(3)].concat());
    assert_eq!(client.reply().body, payload(1));
    let (bytes, at, end) = client.rest();
    assert!(end == End::Closed && bytes.ends_with(payload(5)) && at - begun == 50 * MS + ROUND_TRIP);
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.connections_open), (5, 1, 0));
}
