//! Reads the JSON of k6, vegeta, oha and `weir load`. Called by `formats`. Fields that are not needed are passed over, and those that
//! are `null` were not measured.

use serde_json::Value;
use weir_model::InputError;
use weir_model::load::LoadResult;
use weir_model::metric::{Metric, Source, Window};
use weir_model::text::line_at;

use super::formats::Document;
use super::{Found, PERCENTILES, Tool, error};

impl Document<'_> {
    /// The value at a path of keys; `None` also where it is `null`.
    fn get(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.value, |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    fn number(&self, path: &[&str]) -> Result<Option<f64>, InputError> {
        self.number_of(self.get(path), path)
    }

    /// The number that a value is.
    fn number_of(&self, value: Option<&Value>, path: &[&str]) -> Result<Option<f64>, InputError> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong(path, format!("{value} is no number"), "a number"))
    }

    fn required(&self, path: &[&str]) -> Result<f64, InputError> {
        self.number(path)?.ok_or_else(|| self.wrong(path, "there is none".to_owned(), "a number"))
    }

    fn count(&self, path: &[&str]) -> Result<u64, InputError> {
        let number = self.required(path)?;
        let wrong = || self.wrong(path, format!("{number} is no number of requests"), "a whole number of at least 0");
        (number >= 0.0 && number.fract() == 0.0).then_some(number as u64).ok_or_else(wrong)
    }

    /// Counts by name.
    fn counts(&self, key: &str) -> Result<Vec<(&str, u64)>, InputError> {
        let all = self.get(&[key]).and_then(Value::as_object).into_iter().flatten();
        all.map(|(name, _)| Ok((name.as_str(), self.count(&[key, name])?))).collect()
    }

    /// An error at the last key of a path, or at the innermost that is there.
    fn wrong(&self, path: &[&str], found: String, wanted: &str) -> InputError {
        let (mut at, mut behind) = (self.start, self.start);
        for key in path.iter().map(|key| format!("\"{key}\"")) {
            let Some(found) = self.text[behind..].find(&key) else { break };
            at = behind + found;
            behind = at + key.len();
        }
        let column = self.text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
        let found: String = found.chars().take(80).collect();
        let wrong =
            error(self.source, line_at(self.text.as_bytes(), at), &path.join("."), format!("column {column}: {found}"));
        InputError { wanted: wanted.to_owned(), ..wrong }
    }
}

/// An error of the JSON itself.
pub fn syntax_error(source: &str, wrong: &serde_json::Error) -> InputError {
    let found = if wrong.is_eof() { "the file is cut off".to_owned() } else { plain(wrong) };
    error(source, wrong.line().max(1), "", format!("column {}: {found}", wrong.column()))
}

/// The parser's message without the place, which stands before it.
fn plain(wrong: &serde_json::Error) -> String {
    let text = wrong.to_string();
    text.split_once(" at line ").map_or(text.as_str(), |(found, _)| found).to_owned()
}

/// `weir load --json`.
pub fn weir(document: &Document<'_>) -> Result<Found, InputError> {
    let mut documents = serde_json::Deserializer::from_str(&document.text[document.start..]).into_iter::<LoadResult>();
    let result = match documents.next() {
        Some(Ok(result)) => result,
        Some(Err(wrong)) => {
            // The parser's other messages name its own types.
            let found = Some(plain(&wrong)).filter(|found| found.starts_with("missing field"));
            let found = found.unwrap_or_else(|| "a value that this version of weir does not know".to_owned());
            let line = line_at(document.text.as_bytes(), document.start) + wrong.line().max(1) - 1;
            return Err(error(document.source, line, "", format!("column {}: {found}", wrong.column())));
        }
        None => return Err(document.wrong(&[], "there is no result".to_owned(), "one")),
    };
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
            Source::Times(of) => Some(of(&result.latency)),
            _ => metric.value(&Window::of_load(&result)),
        };
        found.set(metric, value);
    }
    if result.cut_short {
        found.lacks.push("It was cut short.".into());
    }
    Ok(found)
}

/// k6 has three forms. `--summary-export` has the numbers of a metric below its name. The object that `handleSummary` gets has them
/// below `values`. `--new-machine-readable-summary` has a list of metrics, and the duration apart.
pub fn k6(document: &Document<'_>) -> Result<Found, InputError> {
    let metrics = document.get(&["results", "metrics"]).or_else(|| document.get(&["metrics"]));
    let number = |metric: &str, name: &str| {
        let has_name = |value: &&Value| value.get("name").and_then(Value::as_str) == Some(metric);
        let listed = metrics.and_then(Value::as_array).and_then(|list| list.iter().find(has_name));
        let found = listed.or_else(|| metrics?.get(metric));
        let value = found.and_then(|value| value.get("values").unwrap_or(value).get(name));
        document.number_of(value, &["metrics", metric, name])
    };
    let Some(count) = number("http_reqs", "count")? else {
        let wanted = "a script that sends HTTP requests";
        return Err(document.wrong(&["metrics", "http_reqs"], "there is no http_reqs".to_owned(), wanted));
    };
    let mut found = Found::of(Tool::K6, count.max(0.0) as u64);
    let run_ms = document.number(&["state", "testRunDurationMs"])?;
    let duration = document.number(&["config", "duration"])?.or(run_ms.map(|ms| ms / 1e3)).filter(|s| *s > 0.0);
    let rate = number("http_reqs", "rate")?.or(duration.map(|seconds| count / seconds));
    found.window_s = rate.filter(|rate| *rate > 0.0).map(|rate| count / rate).or(duration);
    let failed = number("http_req_failed", "value")?;
    let failed = if failed.is_some() { failed } else { number("http_req_failed", "rate")? };
    found.set(Metric::ErrorShare, failed);
    found.set(Metric::Rate, rate.map(|rate| rate * (1.0 - failed.unwrap_or(0.0))));
    if failed.is_none() {
        found.lacks.push("It has no http_req_failed: its rate is that of all requests, wrong ones too.".into());
    }
    let us = |name: &str| Ok::<_, InputError>(number("http_req_duration", name)?.map(|ms| ms * 1e3));
    found.set(Metric::Mean, us("avg")?);
    found.set(Metric::P50, us("med")?);
    found.set(Metric::Max, us("max")?);
    for (percent, metric) in PERCENTILES.into_iter().filter(|(percent, _)| *percent != "50") {
        found.set(metric, us(&format!("p({percent})"))?);
    }
    if let Some(dropped) = number("dropped_iterations", "count")?.filter(|dropped| *dropped > 0.0) {
        let said = format!("It dropped {dropped} iterations that were due, of which no latency tells.");
        found.lacks.push(said);
    }
    Ok(found)
}

/// vegeta: nanoseconds. It has `throughput` since 12.2.
pub fn vegeta(document: &Document<'_>) -> Result<Found, InputError> {
    let mut found = Found::of(Tool::Vegeta, document.count(&["requests"])?);
    found.window_s = document.number(&["duration"])?.map(|nanos| nanos / 1e9);
    let (rate, success) = (document.required(&["rate"])?, document.required(&["success"])?);
    if found.requests > 0 {
        found.set(Metric::Rate, Some(document.number(&["throughput"])?.unwrap_or(rate * success)));
        found.set(Metric::ErrorShare, Some((1.0 - success).max(0.0)));
        for (name, metric) in [
            ("mean", Metric::Mean),
            ("50th", Metric::P50),
            ("90th", Metric::P90),
            ("95th", Metric::P95),
            ("99th", Metric::P99),
            ("max", Metric::Max),
        ] {
            found.set(metric, document.number(&["latencies", name])?.map(|nanos| nanos / 1e3));
        }
    }
    found.lacks.push("Its percentiles are estimates of a digest, not of all times.".into());
    Ok(found)
}

/// oha's name of what was in flight when the time was over: no error of the target.
const OHA_DEADLINE: &str = "aborted due to deadline";

/// oha: seconds.
pub fn oha(document: &Document<'_>) -> Result<Found, InputError> {
    let is_right = |status: &str| status.parse().is_ok_and(|status: u16| (200..400).contains(&status));
    let (mut right, mut ended) = (0u64, 0u64);
    for (status, count) in document.counts("statusCodeDistribution")? {
        ended = ended.saturating_add(count);
        right = right.saturating_add(if is_right(status) { count } else { 0 });
    }
    for (_, count) in document.counts("errorDistribution")?.iter().filter(|(name, _)| *name != OHA_DEADLINE) {
        ended = ended.saturating_add(*count);
    }
    let seconds = document.required(&["summary", "total"])?;
    let mut found = Found::of(Tool::Oha, ended);
    found.window_s = Some(seconds);
    found.set_right(right, ended, seconds);
    let us = |path: &[&str]| Ok::<_, InputError>(document.number(path)?.map(|seconds| seconds * 1e6));
    found.set(Metric::Mean, us(&["summary", "average"])?);
    found.set(Metric::Max, us(&["summary", "slowest"])?);
    for (percent, metric) in PERCENTILES {
        found.set(metric, us(&["latencyPercentiles", &format!("p{percent}")])?);
    }
    Ok(found)
}
