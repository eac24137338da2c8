//! A server that freezes: what an open load must see of it, computed by hand.
//!
//! 6 s at 1000 requests a second, evenly spaced. From second 2.0 to second 3.0 of the load the server answers nothing, and
//! at 3.0 everything at once. Requests due in the frozen second wait for its end: the one due at 2.0 + x takes 1 - x
//! seconds. So of 6000 requests, 1000 have latencies spread evenly over (0, 1] s, and 5000 are quick.
//!
//! A latency above t (seconds, below 1) is had by 1000 (1 - t) requests, that is a share (1 - t) / 6. The percentile p is
//! therefore at t = 1 - 6 (1 - p) where that is above 0:
//!
//! | p | latency |
//! |---|---|
//! | 50 %, 75 % | quick (5000 of 6000 are, 83.3 %) |
//! | 90 % | 1 - 6 * 0.1 = 0.4 s |
//! | 95 % | 1 - 6 * 0.05 = 0.7 s |
//! | 99 % | 1 - 6 * 0.01 = 0.94 s |
//! | 99.9 % | 1 - 6 * 0.001 = 0.994 s |
//! | largest | 1 s |
//!
//! With 10 connections, only the first 10 requests of the frozen second are sent into the freeze; the other 990 wait for
//! a connection. Service time - what a client sees that starts its clock when it sends - has then 10 slow samples
//! of 6000 (0.17 %): its 95th and 99th percentiles show nothing. That is coordinated omission, and why latency here begins
//! when a request is due.

use std::time::{Duration, Instant};

use super::server::{Do, Server, ok};
use super::*;

#[test]
fn a_frozen_second_shows_in_the_latency_and_would_hide_in_the_service_time() {
    at_once(&DRIVERS, |driver| {
        // The first request, due at 0, tells the server when the load began.
        let begun = std::sync::OnceLock::new();
        let server = Server::start(move |_| {
            let begun: Instant = *begun.get_or_init(Instant::now);
            let (freeze, thaw) = (Duration::from_secs(2), Duration::from_secs(3));
            let now = begun.elapsed();
            if now >= freeze && now < thaw {
                std::thread::sleep(thaw - now);
            }
            Do::Send(ok("ok"))
        });
        let mut spec = order(&server, constant(1_000.0));
        spec.driver = driver;
        spec.connections = 10;
        spec.duration_s = 6.0;
        spec.timeout_s = 5.0;
        let result = load(&spec).unwrap();

        assert_eq!(result.window.due, 6_000);
        assert_eq!(result.window.right, 6_000);
        assert_eq!(server.requests(), 6_000);
        let near = |name: &str, got_us: f64, ms: f64| {
            // A busy machine only adds.
            let off = got_us / 1e3 - ms;
            assert!((-60.0..=200.0).contains(&off), "{name}: {} ms, by hand {ms} ms", got_us / 1e3);
        };
        let latency = &result.latency;
        near("p50", latency.p50_us, 0.0);
        near("p75", latency.p75_us, 0.0);
        near("p90", latency.p90_us, 400.0);
        near("p95", latency.p95_us, 700.0);
        near("p99", latency.p99_us, 940.0);
        near("p99.9", latency.p999_us, 994.0);
        near("max", latency.max_us, 1_000.0);
        // 1000 requests with a mean of 0.5 s, and 5000 with next to nothing: 500 / 6 = 83 ms.
        near("mean", latency.mean_us, 83.3);

        // The contrast: measured from sending, the same second is nearly invisible.
        let service = &result.service;
        near("service p95", service.p95_us, 0.0);
        near("service p99", service.p99_us, 0.0);
        near("service max", service.max_us, 1_000.0);
        // What service time leaves out is lag.
        near("lag p95", result.lag.p95_us, 700.0);

        // The third second has no answers to speak of, the fourth has its own and those.
        let right: Vec<u64> = result.series.iter().map(|row| row.right).collect();
        assert_eq!(right.len(), 6);
        assert!(right[2] < 400 && right[3] > 1_600, "{right:?}");
    });
}
