//! One trial as one flat row of `measurements.csv`, for spreadsheets. The lab's journal writes it, and the report checks it. The whole
//! record is in the trial's `measurement.json`; `docs/records.md` describes both. It does not know how CSV is written.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::load::{LoadResult, TlsResult};
use crate::record::{Measurement, Role, RoleUsage};
use crate::text::csv_cell;

/// Version of [`COLUMNS`].
const ROW_SCHEMA: u32 = 1;

/// The file of the rows, in a run's folder.
pub const FILE: &str = "measurements.csv";

/// The value of a measurement in a column; null where a failed trial or the kernel gave none.
type Cell = fn(&Measurement) -> Value;

/// Columns in file order.
pub const COLUMNS: [(&str, Cell); 41] = [
    ("schema", |_| ROW_SCHEMA.into()),
    (TRIAL, |m| m.trial.into()),
    ("block", |m| m.block.into()),
    ("product", |m| m.case.product.as_str().into()),
    ("profile", |m| m.case.profile.as_str().into()),
    ("workload", |m| m.case.workload.as_str().into()),
    ("load", |m| m.case.load.as_str().into()),
    ("protocol", |m| m.protocol.as_str().into()),
    ("streams", |m| load(m, |load| load.streams)),
    ("tls_version", |m| tls(m, |tls| &tls.versions)),
    ("tls_suite", |m| tls(m, |tls| &tls.suites)),
    ("verdict", |m| m.verdict.as_str().into()),
    ("error", |m| m.error.as_ref().map(|e| format!("{}: {}", e.stage, e.message)).into()),
    ("started", |m| m.started.as_str().into()),
    ("product_version", |m| m.product_version.as_deref().into()),
    ("cores", |m| m.cores.into()),
    ("window_s", |m| load(m, |load| load.window_s)),
    ("offered_rate", |m| load(m, |load| load.offered_rate)),
    ("rate", |m| load(m, |load| load.rate)),
    ("body_bytes_per_s", |m| load(m, |load| load.body_bytes_per_s)),
    ("due", |m| load(m, |load| load.window.due)),
    ("sent", |m| load(m, |load| load.window.sent)),
    ("unsent", |m| load(m, |load| load.window.unsent)),
    ("successful", |m| load(m, |load| load.window.successful)),
    ("errors", |m| load(m, |load| load.window.error_count())),
    ("latency_p50_us", |m| load(m, |load| load.latency.p50_us)),
    ("latency_p90_us", |m| load(m, |load| load.latency.p90_us)),
    ("latency_p99_us", |m| load(m, |load| load.latency.p99_us)),
    ("latency_p999_us", |m| load(m, |load| load.latency.p999_us)),
    ("latency_max_us", |m| load(m, |load| load.latency.max_us)),
    ("service_p99_us", |m| load(m, |load| load.service.p99_us)),
    ("lag_p99_us", |m| load(m, |load| load.lag.p99_us)),
    ("client_cpu_us_per_request", client_cpu_us),
    ("proxy_cpu_us_per_request", |m| cpu_us(m, Role::Proxy).into()),
    ("origin_cpu_us_per_request", |m| cpu_us(m, Role::Origin).into()),
    ("proxy_cores_busy", |m| proxy(m).map(|usage| usage.cores_busy).into()),
    ("proxy_rss_max_bytes", |m| proxy(m).map(|usage| usage.rss_max_bytes).into()),
    ("proxy_pss_max_bytes", |m| proxy(m).and_then(|usage| usage.pss_max_bytes).into()),
    ("origin_requests", |m| m.origin.as_ref().map(|counters| counters.requests).into()),
    ("origin_connections", |m| m.origin.as_ref().map(|counters| counters.connections_accepted).into()),
    ("findings", |m| m.findings.iter().map(|f| f.check.as_str()).collect::<Vec<_>>().join(" ").into()),
];

/// The column that says which trial a row is of.
pub const TRIAL: &str = "trial";

/// The cells of a measurement, each in one line: a torn row is then recognised, and `wc -l`, `grep` and `tail` work on rows.
pub fn row(m: &Measurement) -> impl Iterator<Item = String> {
    COLUMNS.iter().map(|(_, cell)| match cell(m) {
        Value::Null => String::new(),
        Value::String(text) => csv_cell(&text.split_whitespace().collect::<Vec<_>>().join(" ")),
        number => number.to_string(),
    })
}

fn load<T: Into<Value>>(m: &Measurement, value: fn(&LoadResult) -> T) -> Value {
    m.load.as_ref().map(value).into()
}

/// Names of what was spoken, separated by spaces.
fn tls(m: &Measurement, names: fn(&TlsResult) -> &BTreeMap<String, u64>) -> Value {
    let tls = m.load.as_ref().and_then(|load| load.tls.as_ref());
    tls.map(|tls| names(tls).keys().map(|name| name.replace(' ', "")).collect::<Vec<_>>().join(" ")).into()
}

fn usage(m: &Measurement, role: Role) -> Option<&RoleUsage> {
    m.usage.iter().find(|usage| usage.role == role)
}

fn proxy(m: &Measurement) -> Option<&RoleUsage> {
    usage(m, Role::Proxy)
}

/// Responses of the window.
fn responses(m: &Measurement) -> Option<f64> {
    m.load.as_ref().map(|load| load.rate * load.window_s).filter(|responses| *responses > 0.0)
}

/// CPU time of a role per response of the window.
fn cpu_us(m: &Measurement, role: Role) -> Option<f64> {
    let usage = usage(m, role)?;
    Some((usage.cpu_user_us + usage.cpu_system_us) as f64 / responses(m)?)
}

/// The client's, without what it spent awake and waiting for due times.
fn client_cpu_us(m: &Measurement) -> Value {
    let busy_poll_us = m.load.as_ref().map_or(0, |load| load.busy_poll_us) as f64;
    cpu_us(m, Role::Client).zip(responses(m)).map(|(us, responses)| (us - busy_poll_us / responses).max(0.0)).into()
}
