//! One trial as one flat row of `measurements.csv`, for spreadsheets. The journal writes it. The whole record is in the trial's
//! `measurement.json`; `docs/records.md` describes both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::load::TlsResult;
use weir_model::record::{Measurement, Role};

/// Columns in file order. A cell is empty where a failed trial or the kernel gave no value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Version of the columns.
    pub schema: u32,
    /// Number of the trial.
    pub trial: u32,
    /// Block.
    pub block: u32,
    /// Product.
    pub product: String,
    /// Profile.
    pub profile: String,
    /// Workload.
    pub workload: String,
    /// Load.
    pub load: String,
    /// What client and product spoke.
    pub protocol: String,
    /// HTTP/2: streams that a connection could have open; else 1.
    pub streams: Option<u32>,
    /// Versions of TLS spoken, separated by spaces; empty without TLS.
    pub tls_version: String,
    /// Cipher suites spoken, separated by spaces.
    pub tls_suite: String,
    /// Verdict.
    pub verdict: String,
    /// Stage and message of the error, in one line.
    pub error: String,
    /// RFC 3339.
    pub started: String,
    /// Version of the product.
    pub product_version: String,
    /// Cores given to the product.
    pub cores: u32,
    /// Length of the measured window.
    pub window_s: Option<f64>,
    /// Open loads: requests a second ordered.
    pub offered_rate: Option<f64>,
    /// Right answers a second.
    pub rate: Option<f64>,
    /// Their bodies, bytes a second.
    pub body_bytes_per_s: Option<f64>,
    /// Requests due in the window.
    pub due: Option<u64>,
    /// Sent.
    pub sent: Option<u64>,
    /// Due and never sent.
    pub unsent: Option<u64>,
    /// Answered rightly.
    pub right: Option<u64>,
    /// Not answered rightly.
    pub errors: Option<u64>,
    /// Due to answered, median.
    pub latency_p50_us: Option<f64>,
    /// 90th percentile.
    pub latency_p90_us: Option<f64>,
    /// 99th percentile.
    pub latency_p99_us: Option<f64>,
    /// 99.9th percentile.
    pub latency_p999_us: Option<f64>,
    /// Largest.
    pub latency_max_us: Option<f64>,
    /// Sent to answered, 99th percentile.
    pub service_p99_us: Option<f64>,
    /// Due to sent, 99th percentile.
    pub lag_p99_us: Option<f64>,
    /// CPU of the client per answer of the window, without what it spent awake and waiting for due times.
    pub client_cpu_us_per_request: Option<f64>,
    /// CPU of the product per answer of the window.
    pub proxy_cpu_us_per_request: Option<f64>,
    /// CPU of the origin per answer of the window.
    pub origin_cpu_us_per_request: Option<f64>,
    /// Cores the product kept busy.
    pub proxy_cores_busy: Option<f64>,
    /// Largest resident set of the product.
    pub proxy_rss_max_bytes: Option<u64>,
    /// Largest proportional set of the product.
    pub proxy_pss_max_bytes: Option<u64>,
    /// Requests that reached the origin.
    pub origin_requests: Option<u64>,
    /// Connections that the origin accepted.
    pub origin_connections: Option<u64>,
    /// Names of the checks that found something, separated by spaces.
    pub findings: String,
}

/// Version of [`Row`]. 2 added `protocol`, `streams`, `tls_version` and `tls_suite`.
const ROW_SCHEMA: u32 = 2;

impl From<&Measurement> for Row {
    fn from(m: &Measurement) -> Row {
        let identity = Row {
            schema: ROW_SCHEMA,
            trial: m.trial,
            block: m.block,
            product: m.case.product.clone(),
            profile: m.case.profile.clone(),
            workload: m.case.workload.clone(),
            load: m.case.load.clone(),
            protocol: m.protocol.as_str().to_owned(),
            verdict: m.verdict.as_str().to_owned(),
            error: m.error.as_ref().map(|e| one_line(&format!("{}: {}", e.stage, e.message))).unwrap_or_default(),
            started: m.started.clone(),
            product_version: m.product_version.clone().unwrap_or_default(),
            cores: m.cores,
            findings: m.findings.iter().map(|f| f.check.as_str()).collect::<Vec<_>>().join(" "),
            ..Row::default()
        };
        with_usage(with_load(identity, m), m)
    }
}

/// A row is one line, so that a torn row is recognised, and `wc -l`, `grep` and `tail` work on rows.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn with_load(row: Row, m: &Measurement) -> Row {
    let Some(load) = &m.load else { return row };
    let names = |pick: fn(&TlsResult) -> &BTreeMap<String, u64>| {
        let names = load.tls.as_ref().map(|tls| pick(tls).keys().map(|name| name.replace(' ', "")).collect::<Vec<_>>());
        names.unwrap_or_default().join(" ")
    };
    Row {
        streams: Some(load.streams),
        tls_version: names(|tls| &tls.versions),
        tls_suite: names(|tls| &tls.suites),
        window_s: Some(load.window_s),
        offered_rate: load.offered_rate,
        rate: Some(load.rate),
        body_bytes_per_s: Some(load.body_bytes_per_s),
        due: Some(load.window.due),
        sent: Some(load.window.sent),
        unsent: Some(load.window.unsent),
        right: Some(load.window.right),
        errors: Some(load.window.error_count()),
        latency_p50_us: Some(load.latency.p50_us),
        latency_p90_us: Some(load.latency.p90_us),
        latency_p99_us: Some(load.latency.p99_us),
        latency_p999_us: Some(load.latency.p999_us),
        latency_max_us: Some(load.latency.max_us),
        service_p99_us: Some(load.service.p99_us),
        lag_p99_us: Some(load.lag.p99_us),
        ..row
    }
}

fn with_usage(row: Row, m: &Measurement) -> Row {
    let answers = m.load.as_ref().map(|l| l.rate * l.window_s).filter(|n| *n > 0.0);
    let usage = |role| m.usage.iter().find(|u| u.role == role);
    let per_request = |role| Some((usage(role)?.cpu_user_us + usage(role)?.cpu_system_us) as f64 / answers?);
    let busy_poll = m.load.as_ref().map_or(0, |l| l.busy_poll_us) as f64;
    let client = || Some((per_request(Role::Client)? - busy_poll / answers?).max(0.0));
    Row {
        client_cpu_us_per_request: client(),
        proxy_cpu_us_per_request: per_request(Role::Proxy),
        origin_cpu_us_per_request: per_request(Role::Origin),
        proxy_cores_busy: usage(Role::Proxy).map(|u| u.cores_busy),
        proxy_rss_max_bytes: usage(Role::Proxy).map(|u| u.rss_max_bytes),
        proxy_pss_max_bytes: usage(Role::Proxy).and_then(|u| u.pss_max_bytes),
        origin_requests: m.origin.as_ref().map(|b| b.requests),
        origin_connections: m.origin.as_ref().map(|b| b.connections_accepted),
        ..row
    }
}
