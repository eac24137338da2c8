//! The fixture's suite.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_model::suite::{
    Arrivals, Entry, Expect, Load, LoadKind, Protocol, RateSpec, Request, Series, Suite, Tls, Workload,
};

use super::{BLOCKS, PRODUCTS, WINDOW_S};

/// Two workloads, a closed and an open load.
pub fn suite() -> Suite {
    let entry = |(product, ..): &(&str, &str, super::Nature)| Entry {
        product: (*product).to_string(),
        profile: if *product == "direct" { "stock" } else { "tuned" }.to_string(),
    };
    Suite {
        name: "trees".to_string(),
        title: "Five proxies in front of one origin".to_string(),
        question: "Which of these proxies carries most, and at what latency?".to_string(),
        blocks: BLOCKS,
        seed: Some(7),
        entries: PRODUCTS.iter().map(entry).collect(),
        workloads: vec![workload("plain", "Small answers", 64), workload("json", "JSON of 10 KiB", 10_240)],
        loads: vec![
            load("max", "As fast as they can", LoadKind::Closed, 100),
            load(
                "steady",
                "4,000 requests a second",
                LoadKind::Open { rate: RateSpec::Fixed(4_000.0), arrivals: Arrivals::Poisson },
                64,
            ),
        ],
        ..Suite::default()
    }
}

fn workload(name: &str, title: &str, size: u64) -> Workload {
    Workload {
        name: name.to_string(),
        title: title.to_string(),
        protocol: Protocol::Http11,
        request: Request {
            method: "GET".to_string(),
            path: format!("/bytes/{size}"),
            headers: Vec::new(),
            body: Vec::new(),
        },
        expect: Expect { status: Some(200), size: Some(size), hash: None, ..Expect::default() },
        ..Workload::default()
    }
}

fn load(name: &str, title: &str, kind: LoadKind, connections: u32) -> Load {
    Load {
        name: name.to_string(),
        title: title.to_string(),
        kind,
        connections,
        streams: 1,
        warmup: Duration::from_secs(2),
        duration: Duration::from_secs(u64::from(WINDOW_S)),
        timeout: Duration::from_secs(5),
        ..Load::default()
    }
}
