//! A small suite and a catalogue for the unit tests of this crate.

use std::collections::BTreeMap;

use crate::suite::Suite;

const SUITE: &str = r#"
[suite]
title = "t"
question = "q"
products = ["direct", "nginx", "haproxy:stock"]
profile = "tuned"

[[workload]]
name = "tiny"
path = "/bytes/128"

[[workload]]
name = "medium"
path = "/bytes/11268"

[[load]]
name = "capacity"
kind = "closed"
connections = 4
warmup = "200ms"
duration = "2s"

[[load]]
name = "latency"
kind = "open"
rate = { share = 0.5, of = "slowest", load = "capacity" }
connections = 4
warmup = "1s"
duration = "2s"

[scale.smoke]
blocks = 1
products = ["direct", "nginx"]
workloads = ["tiny"]
warmup = "200ms"
duration = "500ms"

[scale.full]
blocks = 3
"#;

/// Four products, each with the profiles `stock` and `tuned`.
pub(crate) fn catalogue() -> BTreeMap<String, Vec<String>> {
    let both = || vec!["stock".to_owned(), "tuned".to_owned()];
    ["direct", "haproxy", "nginx", "varnish"].map(|name| (name.to_owned(), both())).into()
}

/// Three of them, two workloads, a load and another at a share of it, and two scales.
pub(crate) fn suite() -> Suite {
    Suite::parse("suites/quick.toml", SUITE, &catalogue()).expect("a valid suite")
}
