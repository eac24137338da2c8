//! Coordinated omission: an origin that freezes for a second must show in the latencies of an open load.

use std::time::Duration;

use crate::common::{OriginUnderTest, run_within, signal, weir};
use rustix::process::Signal;
use serde_json::Value;

/// 1,000 requests a second for 8 s; the origin is stopped for 1 s in the middle.
///
/// By hand: of 8,000 requests due in the window, the 1,000 due during the freeze wait for its end. The one due t
/// seconds after its begin waits 1 - t: their latencies are spread evenly over 0 to 1,000 ms. The other 7,000
/// (87.5 %) take well below a millisecond. The share of requests slower than x ms is therefore (1,000 - x) / 8,000:
///
/// | percentile | latency |
/// |---|---|
/// | p50 | not touched, below a few ms |
/// | p90: (1,000 - x) / 8,000 = 10 % | x = 200 ms |
/// | p95: 5 % | x = 600 ms |
/// | p99: 1 % | x = 920 ms |
/// | p99.9: 0.1 % | x = 992 ms |
/// | max | 1,000 ms |
///
/// What a client sees that counts from the moment of sending, one request a connection: of 16 connections each has
/// one request caught in the freeze, and nothing is sent until it ends. 16 of 7,000 samples are slow: its p99 shows
/// nothing at all. That is the service time, reported beside.
#[test]
fn a_frozen_origin_shows_in_the_percentiles() {
    for driver in ["epoll", "auto"] {
        let origin = OriginUnderTest::start(&["--driver", driver]);
        let pid = origin.child.id();
        let freezer = std::thread::spawn(move || {
            // Connecting takes a moment, the warm-up 1 s: the freeze lies well inside the window.
            std::thread::sleep(Duration::from_millis(4_000));
            signal(pid, Signal::STOP);
            std::thread::sleep(Duration::from_millis(1_000));
            signal(pid, Signal::CONT);
        });
        let ended = run_within(
            &mut weir(&[
                "load",
                &origin.url("/bytes/128"),
                "--rate",
                "1000",
                "-c",
                "16",
                "-d",
                "8s",
                "--warmup",
                "1s",
                "--json",
                "-q",
                "--driver",
                driver,
            ]),
            Duration::from_secs(60),
        );
        freezer.join().expect("froze and thawed");
        ended.expect(0);
        check(&ended.json());
    }
}

fn check(result: &Value) {
    let window = &result["window"];
    assert_eq!(window["due"], 8_000, "{window}");
    assert_eq!(window["right"], 8_000, "nothing is lost: {window}");
    let latency = &result["latency"];
    assert_eq!(latency["count"], 8_000);
    let ms = |of: &Value, key: &str| of[key].as_f64().expect("a number") / 1e3;
    assert!(ms(latency, "p50_us") < 20.0, "{latency}");
    // The freeze itself may be longer by what two signals and a busy machine add; never shorter.
    let expect = [("p90_us", 200.0), ("p95_us", 600.0), ("p99_us", 920.0), ("p999_us", 992.0), ("max_us", 1_000.0)];
    for (key, by_hand) in expect {
        let seen = ms(latency, key);
        assert!((by_hand - 25.0..by_hand + 120.0).contains(&seen), "{key}: {seen} ms, by hand {by_hand} ms");
    }
    // The contrast: counted from the moment of sending, the freeze all but vanishes.
    assert!(ms(&result["service"], "p99_us") < 100.0, "{}", result["service"]);
    assert!(ms(&result["service"], "max_us") > 900.0, "{}", result["service"]);
    // The lag says where the time went.
    assert!(ms(&result["lag"], "p99_us") > 800.0, "{}", result["lag"]);
}
