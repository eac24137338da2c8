//! The metrics of published figures, their units, and how each is read from the record of a load. `ratios`,
//! `run_cases`, `facts`, `tables`, `document_tables` and the charts use it.

use weir_model::load::{ErrorKind, LoadResult};

/// A metric by which published and measured figures are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Metric {
    /// The name in the files.
    pub name: &'static str,
    /// The name in a heading.
    pub heading: &'static str,
    /// True when a larger value is better.
    pub higher_is_better: bool,
}

/// All metrics that are compared, in the order in which they are shown.
pub(crate) const METRICS: [Metric; 3] = [
    Metric { name: "rate", heading: "Requests a second", higher_is_better: true },
    Metric { name: "latency-p99", heading: "99th percentile of latency", higher_is_better: false },
    Metric { name: "latency-mean", heading: "Mean latency", higher_is_better: false },
];

/// The size of a published unit in microseconds, bytes, bytes a second, or as a count; `None` for units of which weir
/// measures nothing.
pub(crate) fn unit_size(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" => 1e6,
        "ms" => 1e3,
        "KiB" | "KiB/s" => 1_024.0,
        "MiB" | "MiB/s" => 1_048_576.0,
        "B" | "B/s" | "requests/s" | "requests" | "responses" | "errors" => 1.0,
        _ => return None,
    })
}

/// The measured value of a metric, in microseconds, bytes, bytes a second, or as a count. `None` for a metric that weir
/// does not measure, and for percentiles that a record does not hold (see [`percentile`]).
pub(super) fn value(metric: &str, load: &LoadResult) -> Option<f64> {
    let window = &load.window;
    let seconds = load.window_s.max(1e-6);
    if let Some(part) = metric.strip_prefix("latency-") {
        return latency(part, load);
    }
    if let Some(status) = metric.strip_prefix("status-") {
        return Some(window.statuses.get(&status.parse().ok()?).copied().unwrap_or(0) as f64);
    }
    let answers: u64 = window.statuses.values().sum();
    Some(match metric {
        "rate" => load.rate,
        "transfer" => window.bytes_in as f64 / seconds,
        "total-time" => load.window_s * 1e6,
        "requests" => answers as f64,
        "body-bytes" => window.body_bytes as f64,
        "body-size" => window.body_bytes as f64 / answers.max(1) as f64,
        "timeouts" | "errors-timeout" => window.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0) as f64,
        "server-errors" | "non-2xx-3xx" => bad_statuses(load) as f64,
        "wait-mean" => wait_mean(load),
        "read-mean" => (load.service.mean_us - wait_mean(load)).max(0.0),
        // The mean over all requests: a request on an open connection needed no time to connect.
        "dial-mean" => {
            let requests = load.service.count.max(1);
            load.connect.mean_us * load.connect.count.min(requests) as f64 / requests as f64
        }
        _ => return None,
    })
}

fn latency(part: &str, load: &LoadResult) -> Option<f64> {
    let latency = &load.latency;
    if latency.count == 0 {
        return None;
    }
    Some(match part {
        "mean" => latency.mean_us,
        "min" => latency.min_us,
        "max" => latency.max_us,
        "stdev" => latency.stdev_us,
        "p50" => latency.p50_us,
        "p75" => latency.p75_us,
        "p90" => latency.p90_us,
        "p95" => latency.p95_us,
        "p99" => latency.p99_us,
        _ => return None,
    })
}

/// The quantile of a percentile metric. A histogram has it even where a record does not.
pub(super) fn percentile(metric: &str) -> Option<f64> {
    let percent: f64 = metric.strip_prefix("latency-p")?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// The number of answers whose status is an error.
fn bad_statuses(load: &LoadResult) -> u64 {
    load.window.statuses.iter().filter(|(status, _)| **status >= 400).map(|(_, n)| n).sum()
}

fn wait_mean(load: &LoadResult) -> f64 {
    if load.first_byte.count > 0 { load.first_byte.mean_us } else { load.service.mean_us }
}

/// The share of requests without a right answer, and the share that had a wrong answer, both of those due in the
/// window.
pub(super) fn error_shares(load: &LoadResult) -> (f64, f64) {
    let due = load.window.due.max(1) as f64;
    let wrong: u64 = load.window.errors.iter().filter(|(kind, _)| kind.is_response()).map(|(_, n)| n).sum();
    // Requests that were due and never sent are a queue, not errors: an open load beyond capacity has many of them.
    (load.window.error_count() as f64 / due, wrong as f64 / due)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::load::{Counts, Quantiles};

    fn load() -> LoadResult {
        LoadResult {
            window_s: 2.0,
            rate: 45.0,
            window: Counts {
                due: 100,
                bytes_in: 5_000,
                body_bytes: 2_000,
                statuses: [(200, 90), (502, 10)].into(),
                errors: [(ErrorKind::BadStatus, 10), (ErrorKind::Timeout, 2)].into(),
                ..Counts::default()
            },
            latency: Quantiles { count: 100, p99_us: 9.0, mean_us: 3.0, ..Quantiles::default() },
            service: Quantiles { count: 100, mean_us: 3.0, ..Quantiles::default() },
            first_byte: Quantiles { count: 100, mean_us: 2.0, ..Quantiles::default() },
            connect: Quantiles { count: 10, mean_us: 50.0, ..Quantiles::default() },
            ..LoadResult::default()
        }
    }

    #[test]
    fn metrics_are_read_off_a_load() {
        let of = |metric: &str| value(metric, &load());
        for (metric, expected) in [
            ("rate", 45.0),
            ("transfer", 2_500.0),
            ("total-time", 2e6),
            ("body-size", 20.0),
            ("status-502", 10.0),
            ("status-404", 0.0),
            ("non-2xx-3xx", 10.0),
            ("timeouts", 2.0),
            ("latency-p99", 9.0),
            ("wait-mean", 2.0),
            ("read-mean", 1.0),
            ("dial-mean", 5.0),
        ] {
            assert_eq!(of(metric), Some(expected), "{metric}");
        }
        assert_eq!([of("load-1m"), of("dns-mean"), of("latency-p10"), of("status-x")], [None; 4]);
        assert_eq!(value("latency-mean", &LoadResult::default()), None, "no request, no latency");
        assert_eq!(percentile("latency-p10"), Some(0.1));
        assert_eq!([percentile("latency-mean"), percentile("latency-p400"), percentile("rate")], [None; 3]);
        assert_eq!(error_shares(&load()), (0.12, 0.1));
    }

    #[test]
    fn every_compared_metric_is_measured() {
        assert!(METRICS.iter().all(|metric| value(metric.name, &load()).is_some()));
        assert_eq!((unit_size("ms"), unit_size("MiB/s"), unit_size("load")), (Some(1e3), Some(1_048_576.0), None));
    }
}
