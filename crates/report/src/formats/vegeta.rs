//! Writes a result as `vegeta report -type=json` does. Called by `weir load --format vegeta`. Times are whole nanoseconds; latency
//! is weir's, from due to answered. The beginning and the end are those of the measured window. weir does not know how many bytes
//! of bodies it sent, nor when the last answer came, so `bytes_out`, `end` and `wait` are left out.

use serde_json::{Map, Value, json};

use super::Account;

/// The JSON text, one line as vegeta's.
pub fn vegeta(account: Account<'_>) -> String {
    let (result, seconds) = (account.result, account.seconds());
    let latency = &result.latency;
    let nanos = |us: f64| (us * 1e3).round() as u64;
    let unanswered = account.unanswered();
    let requests = account.answers() + unanswered;
    let share = |n: f64| if requests == 0 { 0.0 } else { n / requests as f64 };
    let mut codes = Map::new();
    if unanswered > 0 {
        // vegeta's code of a request without an answer.
        codes.insert("0".into(), json!(unanswered));
    }
    codes.extend(result.window.statuses.iter().map(|(status, n)| (status.to_string(), json!(n))));
    let errors: Vec<Value> = result.window.errors.keys().map(|kind| json!(kind.as_str().replace('_', " "))).collect();
    let text = json!({
        "latencies": {
            "total": nanos(latency.mean_us * latency.count as f64),
            "mean": nanos(latency.mean_us),
            "50th": nanos(latency.p50_us),
            "90th": nanos(latency.p90_us),
            "95th": nanos(latency.p95_us),
            "99th": nanos(latency.p99_us),
            "max": nanos(latency.max_us),
            "min": nanos(latency.min_us),
        },
        "bytes_in": { "total": result.window.body_bytes, "mean": share(result.window.body_bytes as f64) },
        "earliest": rfc3339(result.window_start_ms as f64),
        "latest": rfc3339(result.window_start_ms as f64 + result.window_s * 1e3),
        "duration": nanos(result.window_s * 1e6),
        "requests": requests,
        "rate": requests as f64 / seconds,
        "throughput": result.rate,
        "success": share(result.window.right as f64),
        "status_codes": codes,
        "errors": errors,
    });
    format!("{text}\n")
}

/// Milliseconds of Unix time as a time stamp in UTC.
pub(super) fn rfc3339(unix_ms: f64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms as i64).unwrap_or_default().to_string()
}
