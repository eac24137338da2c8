//! Reads the JSON of k6, vegeta, oha and `weir load`. Called by `outside`. Fields that are not needed are passed over.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use weir_model::InputError;
use weir_model::load::LoadResult;
use weir_model::metric::{Metric, Window};

use super::{Found, Tool, WANTED, error, percentile};

/// Reads whichever it is.
pub fn read(source: &str, text: &str) -> Result<Found, InputError> {
    let keys: BTreeMap<String, IgnoredAny> = parse(source, text)?;
    let has = |key: &str| keys.contains_key(key);
    match () {
        () if has("metrics") => k6(source, parse(source, text)?),
        () if has("latencies") && has("status_codes") => Ok(vegeta(&parse(source, text)?)),
        () if has("latencyPercentiles") => Ok(oha(&parse(source, text)?)),
        () if has("window") && has("thread_busy") => Ok(weir(&parse(source, text)?)),
        () if has("probes") => Err(InputError::of(source, "this is a search of weir load --find-max", WANTED)),
        () => Err(InputError::of(source, "this JSON is no result of a tool that weir knows", WANTED)),
    }
}

fn parse<'t, T: Deserialize<'t>>(source: &str, text: &'t str) -> Result<T, InputError> {
    serde_json::from_str(text).map_err(|e| error(source, e.line().max(1), "", e.to_string()))
}

fn weir(result: &LoadResult) -> Found {
    let window = &result.window;
    let mut found = Found::of(Tool::Weir, window.sent);
    found.window_s = Some(result.window_s);
    found.connections = Some(u64::from(result.most_open));
    found.offered = result.offered_rate;
    let mut wanted = vec![Metric::Rate, Metric::ErrorShare];
    if result.latency.count > 0 {
        wanted.extend([Metric::Mean, Metric::P50, Metric::P75, Metric::P90, Metric::P95, Metric::P99, Metric::P999]);
        wanted.extend([Metric::P9999, Metric::Max]);
    }
    for metric in wanted {
        let value = match metric.entry().source {
            weir_model::metric::Source::Times(of) => Some(of(&result.latency)),
            _ => metric.value(&Window::of_load(result)),
        };
        found.set(metric, value);
    }
    if result.cut_short {
        found.lacks.push("It was cut short.".into());
    }
    found
}

/// k6's file: of `--summary-export`, or what `handleSummary` gets, where the numbers are below `values`.
#[derive(Deserialize)]
struct K6 {
    metrics: BTreeMap<String, K6Metric>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum K6Metric {
    Nested { values: BTreeMap<String, f64> },
    Flat(BTreeMap<String, serde_json::Value>),
}

impl K6Metric {
    fn number(&self, name: &str) -> Option<f64> {
        match self {
            K6Metric::Nested { values } => values.get(name).copied(),
            K6Metric::Flat(values) => values.get(name)?.as_f64(),
        }
    }
}

fn k6(source: &str, file: K6) -> Result<Found, InputError> {
    let number = |metric: &str, name: &str| file.metrics.get(metric)?.number(name);
    let (Some(count), Some(rate)) = (number("http_reqs", "count"), number("http_reqs", "rate")) else {
        return Err(InputError::of(source, "it has no http_reqs: the script sent no HTTP request", WANTED));
    };
    let mut found = Found::of(Tool::K6, count.max(0.0) as u64);
    found.window_s = (rate > 0.0).then(|| count / rate);
    match number("http_req_failed", "value").or_else(|| number("http_req_failed", "rate")) {
        Some(failed) => {
            found.set(Metric::Rate, Some(rate * (1.0 - failed)));
            found.set(Metric::ErrorShare, Some(failed));
        }
        None => {
            found.set(Metric::Rate, Some(rate));
            found.lacks.push("It has no http_req_failed: its rate is that of all requests, wrong ones too.".into());
        }
    }
    let names = [("avg", Metric::Mean), ("med", Metric::P50), ("max", Metric::Max)];
    let percentiles = ["50", "75", "90", "95", "99", "99.9", "99.99"].map(|percent| {
        let metric = percent.parse().ok().and_then(percentile);
        (format!("p({percent})"), metric)
    });
    let all = names.map(|(name, metric)| (name.to_owned(), Some(metric))).into_iter().chain(percentiles);
    for (name, metric) in all {
        let us = number("http_req_duration", &name).map(|ms| ms * 1e3);
        found.numbers.extend(metric.zip(us));
    }
    if let Some(dropped) = number("dropped_iterations", "count").filter(|dropped| *dropped > 0.0) {
        let said = format!("It dropped {dropped} iterations that were due, of which no latency tells.");
        found.lacks.push(said);
    }
    Ok(found)
}

#[derive(Deserialize)]
struct Vegeta {
    latencies: VegetaLatencies,
    #[serde(default)]
    duration: f64,
    requests: u64,
    rate: f64,
    /// Since vegeta 12.2.
    throughput: Option<f64>,
    success: f64,
}

/// Nanoseconds.
#[derive(Deserialize)]
struct VegetaLatencies {
    mean: f64,
    #[serde(rename = "50th")]
    p50: f64,
    #[serde(rename = "90th")]
    p90: Option<f64>,
    #[serde(rename = "95th")]
    p95: f64,
    #[serde(rename = "99th")]
    p99: f64,
    max: f64,
}

fn vegeta(file: &Vegeta) -> Found {
    let mut found = Found::of(Tool::Vegeta, file.requests);
    found.window_s = Some(file.duration / 1e9);
    if file.requests > 0 {
        found.set(Metric::Rate, Some(file.throughput.unwrap_or(file.rate * file.success)));
        found.set(Metric::ErrorShare, Some((1.0 - file.success).max(0.0)));
        let times = &file.latencies;
        let of = [
            (Metric::Mean, Some(times.mean)),
            (Metric::P50, Some(times.p50)),
            (Metric::P90, times.p90),
            (Metric::P95, Some(times.p95)),
            (Metric::P99, Some(times.p99)),
            (Metric::Max, Some(times.max)),
        ];
        of.into_iter().for_each(|(metric, nanos)| found.set(metric, nanos.map(|nanos| nanos / 1e3)));
    }
    found.lacks.push("Its percentiles are estimates of a digest, not of all times.".into());
    found
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Oha {
    summary: OhaSummary,
    latency_percentiles: BTreeMap<String, Option<f64>>,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

/// Seconds; `null` where there was no answer.
#[derive(Deserialize)]
struct OhaSummary {
    total: f64,
    slowest: Option<f64>,
    average: Option<f64>,
}

/// oha's name of what was in flight when the time was over: no error of the target.
const OHA_DEADLINE: &str = "aborted due to deadline";

fn oha(file: &Oha) -> Found {
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0u64, u64::saturating_add);
    let is_right = |status: &str| status.parse().is_ok_and(|status: u16| (200..400).contains(&status));
    let right = sum(&mut file.status_code_distribution.iter().filter(|(status, _)| is_right(status)).map(|(_, n)| *n));
    let answered = sum(&mut file.status_code_distribution.values().copied());
    let failed = file.error_distribution.iter().filter(|(name, _)| *name != OHA_DEADLINE);
    let ended = answered.saturating_add(sum(&mut failed.map(|(_, n)| *n)));
    let mut found = Found::of(Tool::Oha, ended);
    found.window_s = Some(file.summary.total);
    found.set_right(right, ended, file.summary.total);
    let us = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e6);
    found.set(Metric::Mean, us(file.summary.average));
    found.set(Metric::Max, us(file.summary.slowest));
    for (name, seconds) in &file.latency_percentiles {
        let metric = name.strip_prefix('p').and_then(|percent| percent.parse().ok()).and_then(percentile);
        found.numbers.extend(metric.zip(us(*seconds)));
    }
    found
}
