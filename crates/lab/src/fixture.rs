//! Small suites and measurements for the tests of this crate. Each test changes what it needs.

use std::time::Duration;

use weir_model::load::{Counts, LoadResult};
use weir_model::product::Product;
use weir_model::record::{CaseId, MEASUREMENT_SCHEMA, Measurement, TrialError, Verdict};
use weir_model::suite::{Arrivals, Entry, Load, LoadKind, RateBase, RateSpec, Request, Suite, Workload};

/// A case under the profile `tuned`.
pub fn case(product: &str, workload: &str, load: &str) -> CaseId {
    CaseId { product: product.into(), profile: "tuned".into(), workload: workload.into(), load: load.into() }
}

/// The direct path, as the repository has it.
pub fn direct() -> Product {
    let text = include_str!("../../../products/direct/product.toml");
    Product::parse("direct", "product.toml", text, Default::default(), Default::default()).expect("valid")
}

/// Products `p0`.., workloads `w0`.., the closed load `capacity` and the open load `half`, 1 s each.
pub fn suite(products: usize, workloads: usize, blocks: u32) -> Suite {
    let entry = |n| Entry { product: format!("p{n}"), profile: "tuned".into() };
    let capacity = Load { kind: LoadKind::Closed, ..load_share("capacity", RateBase::Slowest, 0.5, "") };
    Suite {
        name: "suite".into(),
        title: "A suite".into(),
        question: "Which?".into(),
        blocks,
        seed: Some(1),
        entries: (0..products).map(entry).collect(),
        workloads: (0..workloads).map(|n| workload(&format!("w{n}"))).collect(),
        loads: vec![capacity, load_share("half", RateBase::Slowest, 0.5, "capacity")],
        ..Suite::default()
    }
}

fn workload(name: &str) -> Workload {
    Workload {
        name: name.into(),
        title: name.into(),
        request: Request { method: "GET".into(), path: "/bytes/128".into(), headers: Vec::new(), body: Vec::new() },
        ..Workload::default()
    }
}

/// An open load whose rate is a share.
pub fn load_share(name: &str, of: RateBase, share: f64, load: &str) -> Load {
    let rate = RateSpec::Share { share, of, load: load.into() };
    Load {
        name: name.into(),
        title: name.into(),
        kind: LoadKind::Open { rate, arrivals: Arrivals::Constant },
        connections: 64,
        streams: 1,
        warmup: Duration::from_millis(200),
        duration: Duration::from_millis(800),
        timeout: Duration::from_secs(2),
        ..Load::default()
    }
}

/// A client's result of one second at `rate`, without errors.
pub fn load_result(rate: f64) -> LoadResult {
    let n = rate as u64;
    let counts =
        Counts { due: n, sent: n, successful: n, successful_in_window: n, connections: 64, ..Counts::default() };
    LoadResult {
        schema: 1,
        driver: "epoll".into(),
        threads: 1,
        window_s: 1.0,
        window: counts.clone(),
        total: counts,
        rate,
        cpu_us: (0, 0),
        ..LoadResult::default()
    }
}

/// A valid measurement of the load `capacity` in block 1.
pub fn measured(trial: u32, product: &str, workload: &str, rate: f64) -> Measurement {
    Measurement {
        schema: MEASUREMENT_SCHEMA,
        trial,
        block: 1,
        case: case(product, workload, "capacity"),
        started: "2026-01-02T10:15:00Z".into(),
        took_s: 2.0,
        product_version: Some("1.2.3".into()),
        cores: 1,
        load: Some(load_result(rate)),
        ..Measurement::default()
    }
}

/// An error row.
pub fn failed(trial: u32, product: &str, workload: &str, stage: &str, message: &str) -> Measurement {
    let error = TrialError::new(stage, message, "seen", "mend");
    Measurement { verdict: Verdict::Error, error: Some(error), load: None, ..measured(trial, product, workload, 0.0) }
}
