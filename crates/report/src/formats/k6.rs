//! Writes a result as the JSON of k6 (`--summary-export`), for scripts that read it. Latency is weir's, from due to answered;
//! `http_req_blocked` is the wait before that, from due to sent. Left out is what weir does not measure: virtual users, parts of a request.

use serde_json::{Map, Value, json};
use weir_model::condition::{Comparison, Condition, Timing};
use weir_model::load::Quantiles;
use weir_model::metric::Metric;

use super::Account;

/// k6's name of a group or a check is hashed to its id; these are the ids of the root and of [`CHECK`].
const ROOT_ID: &str = "d41d8cd98f00b204e9800998ecf8427e";
const CHECK_ID: &str = "54920f699441f972808793d2814b4197";

/// The only check: that of every response.
const CHECK: &str = "the response is as expected";

/// The JSON text. `fail_if` become thresholds, as far as k6 has such.
pub fn k6(account: Account<'_>, fail_if: &[Condition]) -> String {
    let (successful, failed) = account.ended();
    let (result, seconds) = (account.result, account.seconds());
    let count = |n: u64| json!({ "count": n, "rate": n as f64 / seconds });
    let share = |yes: u64, no: u64| {
        let value = if yes + no == 0 { 0.0 } else { yes as f64 / (yes + no) as f64 };
        json!({ "value": value, "passes": yes, "fails": no })
    };
    let mut metrics = Map::new();
    metrics.insert("http_reqs".into(), count(successful + failed));
    metrics.insert("http_req_failed".into(), share(failed, successful));
    metrics.insert("checks".into(), share(successful, failed));
    metrics.insert("data_received".into(), count(result.window.plaintext_in));
    metrics.insert("data_sent".into(), count(result.window.bytes_out));
    let times = [("duration", &result.latency), ("blocked", &result.lag), ("waiting", &result.first_byte)];
    for (name, times) in times.into_iter().filter(|(_, times)| times.count > 0) {
        metrics.insert(format!("http_req_{name}"), trend(times));
    }
    for condition in fail_if {
        let Some((metric, text)) = threshold(condition) else { continue };
        let Some(Value::Object(metric)) = metrics.get_mut(metric) else { continue };
        let thresholds = metric.entry("thresholds").or_insert_with(|| json!({}));
        // In this file true says that the threshold was crossed.
        thresholds[text] = json!(condition.holds(result));
    }
    let path = format!("::{CHECK}");
    let check = json!({ "name": CHECK, "path": path, "id": CHECK_ID, "passes": successful, "fails": failed });
    let root = json!({ "name": "", "path": "", "id": ROOT_ID, "groups": {}, "checks": { CHECK: check } });
    // A map of texts and numbers always has a text.
    let text = serde_json::to_string_pretty(&json!({ "root_group": root, "metrics": metrics }));
    text.unwrap_or_default() + "\n"
}

fn trend(q: &Quantiles) -> Value {
    json!({
        "avg": q.mean_us / 1e3,
        "min": q.min_us / 1e3,
        "med": q.p50_us / 1e3,
        "max": q.max_us / 1e3,
        "p(90)": q.p90_us / 1e3,
        "p(95)": q.p95_us / 1e3,
        "p(99)": q.p99_us / 1e3,
        "p(99.9)": q.p999_us / 1e3,
    })
}

/// A condition that fails the load as k6 says it: the metric, and what has to hold. `None` where k6 has no such number.
fn threshold(condition: &Condition) -> Option<(&'static str, String)> {
    let opposite = match condition.is {
        Comparison::Less => ">=",
        Comparison::AtMost => ">",
        Comparison::More => "<=",
        Comparison::AtLeast => "<",
    };
    let of = |metric, number: &str, bound: f64| Some((metric, format!("{number}{opposite}{bound}")));
    match (condition.metric.metric, condition.metric.of) {
        (Metric::Rate, _) => of("http_reqs", "rate", condition.bound),
        (Metric::Errors, _) if condition.metric.share => of("http_req_failed", "rate", condition.bound / 100.0),
        (metric, Timing::Latency) => of("http_req_duration", percentile(metric)?, condition.bound / 1e3),
        _ => None,
    }
}

fn percentile(metric: Metric) -> Option<&'static str> {
    Some(match metric.entry().condition? {
        "p50" => "med",
        "p90" => "p(90)",
        "p95" => "p(95)",
        "p99" => "p(99)",
        "p99.9" => "p(99.9)",
        "max" => "max",
        "mean" => "avg",
        _ => return None,
    })
}
