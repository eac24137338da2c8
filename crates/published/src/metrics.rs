//! Finds the metric of a published figure in the table of metrics ([`weir_model::metric`]), and the size of its unit.
//! `ratios`, `run_cases`, `tables`, `document_tables` and the charts use it.

use weir_model::metric::{Metric, Quantity, Window};
use weir_report::formats::thread_rates;

/// The metrics by which products are compared, in the order in which they are shown.
pub(crate) const METRICS: [Metric; 3] = [Metric::Rate, Metric::P99, Metric::Mean];

/// The name of a metric in the files.
pub(crate) fn name(metric: Metric) -> String {
    let entry = metric.entry();
    let latency = || format!("latency-{}", entry.condition.unwrap_or_default());
    entry.published.first().map_or_else(latency, |name| (*name).to_string())
}

/// The metric of that name in the files; `None` for one that weir does not measure, and for percentiles that a record
/// does not hold (see [`percentile`]).
fn metric(name: &str) -> Option<Metric> {
    let mut all = Metric::ALL.iter().copied();
    match name.strip_prefix("latency-") {
        Some(part) => all.find(|metric| metric.is_time() && metric.entry().condition == Some(part)),
        None => all.find(|metric| metric.entry().published.contains(&name)),
    }
}

/// A metric in a heading.
pub(crate) fn heading(metric: Metric) -> &'static str {
    if metric.is_time() { metric.entry().name } else { metric.entry().title }
}

/// A metric of that name as the label of an axis.
pub(crate) fn axis_label(name: &str) -> &str {
    metric(name).map_or(name, |metric| metric.entry().name)
}

/// The size of a published unit in microseconds, bytes, bytes a second, as a share, or as a count; `None` for units of which
/// weir measures nothing.
pub(crate) fn unit_size(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" => 1e6,
        "ms" => 1e3,
        "%" => 0.01,
        "KiB" | "KiB/s" => 1_024.0,
        "MiB" | "MiB/s" => 1_048_576.0,
        "B" | "B/s" | "requests/s" | "requests" | "responses" | "errors" | "connections" => 1.0,
        "load" | "tasks" | "priority" | "nice" => 1.0,
        _ => return None,
    })
}

/// The measured value of a metric, in microseconds, bytes, bytes a second, or as a count; `None` when there is none.
pub(super) fn value(name: &str, window: &Window<'_>) -> Option<f64> {
    if let Some(status) = name.strip_prefix("status-") {
        return Some(window.load.window.statuses.get(&status.parse().ok()?).copied().unwrap_or(0) as f64);
    }
    if let Some(part) = name.strip_prefix("thread-rate-") {
        let rates = thread_rates(window.load)?;
        return match part {
            "mean" => Some(rates.mean),
            "stdev" => Some(rates.stdev),
            "max" => Some(rates.max),
            "within-stdev" => Some(rates.within_stdev),
            _ => None,
        };
    }
    let metric = metric(name)?;
    if metric.is_time() && window.load.latency.count == 0 {
        return None;
    }
    let unit = if metric.entry().quantity == Quantity::Duration { 1e6 } else { 1.0 };
    Some(metric.value(window)? * unit)
}

/// The quantile of a percentile metric. A histogram has it even where a record does not.
pub(super) fn percentile(metric: &str) -> Option<f64> {
    let percent: f64 = metric.strip_prefix("latency-p")?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::load::{Counts, ErrorKind, LoadResult, Quantiles};

    fn load() -> LoadResult {
        LoadResult {
            window_s: 2.0,
            rate: 45.0,
            window: Counts {
                due: 100,
                plaintext_in: 5_000,
                bytes_in: 6_000,
                body_bytes: 2_000,
                statuses: [(200, 90), (502, 10)].into(),
                errors: [
                    (ErrorKind::BadStatus, 10),
                    (ErrorKind::Timeout, 2),
                    (ErrorKind::ConnectRefused, 3),
                    (ErrorKind::ClosedEarly, 1),
                ]
                .into(),
                ..Counts::default()
            },
            latency: Quantiles { count: 100, p99_us: 9.0, mean_us: 3.0, ..Quantiles::default() },
            service: Quantiles { count: 100, mean_us: 3.0, ..Quantiles::default() },
            first_byte: Quantiles { count: 100, mean_us: 2.0, min_us: 1.0, max_us: 6.0, ..Quantiles::default() },
            threads: 2,
            tenths: vec![4, 6],
            connect: Quantiles { count: 10, mean_us: 50.0, ..Quantiles::default() },
            ..LoadResult::default()
        }
    }

    #[test]
    fn metrics_are_read_off_a_load() {
        let of = |metric: &str| value(metric, &Window::of_load(&load()));
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
            ("wait-min", 1.0),
            ("wait-max", 6.0),
            ("bytes-in", 5_000.0),
            ("errors-connect", 3.0),
            ("errors-read", 1.0),
            ("thread-rate-mean", 25.0),
            ("thread-rate-max", 30.0),
            ("thread-rate-within-stdev", 1.0),
        ] {
            assert_eq!(of(metric), Some(expected), "{metric}");
        }
        assert_eq!([of("load-1m"), of("dns-mean"), of("latency-p10"), of("status-x")], [None; 4]);
        assert_eq!(value("latency-mean", &Window::of_load(&LoadResult::default())), None, "no request, no latency");
        assert_eq!(percentile("latency-p10"), Some(0.1));
        assert_eq!([percentile("latency-mean"), percentile("latency-p400"), percentile("rate")], [None; 3]);
        assert_eq!(Metric::ErrorShare.value(&Window::of_load(&load())), Some(0.16));
    }

    #[test]
    fn every_compared_metric_is_measured() {
        assert!(METRICS.iter().all(|metric| value(&name(*metric), &Window::of_load(&load())).is_some()));
        assert_eq!((unit_size("ms"), unit_size("MiB/s"), unit_size("clients")), (Some(1e3), Some(1_048_576.0), None));
    }
}
