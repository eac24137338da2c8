//! Whether the latencies account for every request in flight.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

/// Times are in steps: a thousandth of a time, or 512 ns.
const DIGITS: f64 = 0.002;
const STEP_US: f64 = 0.512;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let l = e.load;
    let open = l.offered_rate.is_some() || e.search.is_some();
    // Streams last for seconds: within one, more or fewer of them end than there are.
    let pauses = l.bursts.is_some() || l.cut_short || e.requests.is_some() || l.messages.is_some();
    // With a connection for each request there are none in flight between two of them.
    if open || pauses || e.close || l.latency.count == 0 || l.window_s <= 0.0 {
        return None;
    }
    let of_all = l.latency.total_s();
    let of_kinds: f64 = l.by_request.iter().map(|kind| kind.latency.total_s()).sum();
    let steps = DIGITS + STEP_US / l.latency.mean_us.max(STEP_US);
    if !l.by_request.is_empty() && (of_kinds / of_all - 1.0).abs() > steps {
        let message = format!(
            "the latencies of all kinds of requests add up to {of_kinds:.1} s, and those of all requests to {of_all:.1} s"
        );
        return finding("in-flight", Severity::Warning, message);
    }
    let meant = e.in_flight() as f64;
    let accounted = |seconds: f64, in_flight: f64| {
        // Requests in flight at the start belong to the time before, those at the end to the time after: both may be missing.
        let edges = 2.0 * l.latency.max_us / 1e6 / seconds.max(f64::EPSILON);
        ((in_flight - meant).abs() > meant * (edges + steps)).then_some(in_flight)
    };
    let moments = l.series.iter().map(|row| (format!("second {}", row.second), row.length_s, row.in_flight));
    let whole = ("the window".to_owned(), l.window_s, of_all / l.window_s);
    let (moment, in_flight) =
        std::iter::once(whole).chain(moments).find_map(|(name, seconds, n)| Some((name, accounted(seconds, n)?)))?;
    let message = format!(
        "latency times rate is {in_flight:.1} requests in flight in {moment}, and the load has {meant}: the others are in no latency"
    );
    finding("in-flight", Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use weir_model::load::{LoadSecond, Quantiles, RequestResult};

    use crate::fixture::{Trial, good};

    /// 64 connections in flight all the time, with requests of 6.4 ms, for two seconds.
    fn closed() -> Trial {
        let mut trial = good();
        trial.load.window_s = 2.0;
        trial.load.latency = Quantiles { count: 20_000, mean_us: 6_400.0, max_us: 9_000.0, ..Quantiles::default() };
        let row = |second| LoadSecond { second, length_s: 1.0, in_flight: 64.0, ..LoadSecond::default() };
        trial.load.series = vec![row(0), row(1)];
        trial
    }

    fn found(trial: &Trial) -> Option<String> {
        trial.check(super::check).map(|finding| finding.message)
    }

    #[test]
    fn requests_in_flight_that_no_latency_has_are_told() {
        assert_eq!(found(&closed()), None);
        let mut trial = closed();
        trial.load.latency.count = 15_000;
        let message = found(&trial).expect("fires");
        assert!(message.contains("is 48.0 requests in flight in the window, and the load has 64"), "{message}");
        // More than there are is as wrong.
        trial.load.latency.count = 21_000;
        assert!(found(&trial).is_some());
    }

    #[test]
    fn what_is_in_flight_at_the_ends_may_be_missing() {
        let mut trial = closed();
        // 18 ms of 2 s.
        trial.load.latency.count = 19_840;
        assert_eq!(found(&trial), None);
        trial.load.latency.count = 19_680;
        assert!(found(&trial).is_some());
        trial.load.latency.max_us = 50_000.0;
        assert_eq!(found(&trial), None);
    }

    #[test]
    fn each_second_counts() {
        let mut trial = closed();
        trial.load.series[1].in_flight = 60.0;
        let message = found(&trial).expect("fires");
        assert!(message.contains("60.0 requests in flight in second 1"), "{message}");
    }

    #[test]
    fn kinds_add_up() {
        let kind = |count| RequestResult {
            latency: Quantiles { count, mean_us: 6_400.0, ..Quantiles::default() },
            ..RequestResult::default()
        };
        let mut trial = closed();
        trial.load.by_request = vec![kind(10_000), kind(10_000)];
        assert_eq!(found(&trial), None);
        trial.load.by_request = vec![kind(10_000), kind(9_000)];
        assert!(found(&trial).expect("fires").contains("add up to 121.6 s, and those of all requests to 128.0 s"));
    }

    #[test]
    fn loads_that_pause_or_are_due_by_the_clock_have_no_number_in_flight() {
        let cases: [fn(&mut Trial); 4] = [
            |trial| trial.load.offered_rate = Some(10_000.0),
            |trial| trial.load.cut_short = true,
            |trial| trial.requests = Some(20_000),
            |trial| trial.close = true,
        ];
        for change in cases {
            let mut trial = closed();
            trial.load.latency.count = 1_000;
            change(&mut trial);
            assert_eq!(found(&trial), None);
        }
    }
}
