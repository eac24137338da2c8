//! A pool of origins behind real products: how connections and requests are spread over it is counted and audited.

use std::time::Duration;

use crate::common::{run_suite, scratch};

const SUITE: &str = r#"
[suite]
title = "Before a pool"
question = "How do they spread?"
products = ["direct", "nginx:stock", "nginx:tuned", "nginx:as-published-loggly", "haproxy:stock", "haproxy:tuned"]
profile = "tuned"
blocks = 1

[[workload]]
name = "tiny"
path = "/bytes/128"
origins = 3

[[load]]
name = "capacity"
kind = "closed"
connections = 8
warmup = "200ms"
duration = "500ms"
"#;

#[test]
fn products_spread_over_all_origins_and_one_that_does_not_is_found() {
    let measured = run_suite(scratch().path(), SUITE, 0, Duration::from_secs(120));
    assert_eq!(measured.len(), 6);
    for (folder, m) in &measured {
        let at = format!("{}: {}", folder.display(), m["case"]);
        assert!(m["error"].is_null(), "{at}: {}", m["error"]);
        let findings = m["findings"].as_array().expect("findings");
        let spread: Vec<_> = findings.iter().filter(|finding| finding["check"] == "spread").collect();
        if m["case"]["product"] == "direct" {
            assert!(m["origin"]["addresses"].is_null() && spread.is_empty(), "{at}: the client has one origin");
            continue;
        }
        let addresses = m["origin"]["addresses"].as_array().expect("three addresses");
        let requests: Vec<u64> = addresses.iter().map(|one| one["requests"].as_u64().expect("a number")).collect();
        assert_eq!(
            (requests.len(), requests.iter().sum()),
            (3, m["origin"]["requests"].as_u64().expect("all")),
            "{at}"
        );
        if m["case"]["profile"] == "as-published-loggly" {
            // Its template has one origin, as the document that it repeats.
            assert_eq!(requests.iter().filter(|requests| **requests == 0).count(), 2, "{at}: {requests:?}");
            let message = spread[0]["message"].as_str().expect("a message");
            assert!(message.starts_with("2 of 3 origins got no request ("), "{at}: {message}");
        } else {
            let even = requests.iter().sum::<u64>() / 3;
            assert!(requests.iter().all(|one| one.abs_diff(even) * 5 <= even), "{at}: {requests:?}");
            assert!(spread.is_empty(), "{at}: {spread:?}");
        }
    }
}
