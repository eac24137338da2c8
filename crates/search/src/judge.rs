//! Decides whether the result of a trial meets the conditions of a search, and how sure that is.

use weir_model::Condition;
use weir_model::load::{ErrorKind, LoadResult};
use weir_model::metric::Metric;

/// A value within this share of its bound may be on its side of it by noise. Percentiles of trials of some seconds vary
/// by about a tenth between trials.
const NEAR: f64 = 0.2;

/// How many of the due requests may be unanswered when the window ends: as a share, and as a number for loads with few
/// requests.
const BEHIND: f64 = 0.02;
const BEHIND_REQUESTS: f64 = 10.0;

/// The share of the window at work from which a thread counts as full: queues grow before it reaches 1.
const BUSY: f64 = 0.9;

/// Lag up to this is never taken for a limit: µs.
const LAG_US: f64 = 1_000.0;

/// The verdict on a trial.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    /// The conditions' values.
    pub values: Vec<Option<f64>>,
    /// The responses kept up with the requests.
    pub kept_up: bool,
    /// The responses kept up, and all conditions hold.
    pub met: bool,
    /// Noise may have decided the verdict.
    pub near: bool,
    /// Share of the window that the busiest thread was at work.
    pub busiest: f64,
    /// The client was at its own limit.
    pub client_limited: bool,
}

/// Judges an open trial. `streams` is how many requests could be in flight; `warmup_s` is its warm-up.
pub(super) fn judge(result: &LoadResult, conditions: &[Condition], streams: u64, warmup_s: f64) -> Judgement {
    let kept_up = behind(result, streams, warmup_s) <= 0.0;
    let all = conditions.iter().map(|condition| (condition.holds(result), is_near(condition, result)));
    let met = kept_up && all.clone().all(|(holds, _)| holds);
    // A clear failure of one condition is not near. A trial that passes is near as soon as one of its values is.
    let near = if met {
        all.clone().any(|(_, near)| near)
    } else {
        let values_near = all.filter(|(holds, _)| !holds).all(|(_, near)| near);
        values_near && (kept_up || behind(result, streams, warmup_s) <= result.window.due as f64 * BEHIND)
    };
    let busiest = result.thread_busy.iter().copied().fold(0.0, f64::max);
    Judgement {
        values: conditions.iter().map(|condition| condition.value_of(result)).collect(),
        kept_up,
        met,
        near,
        busiest,
        client_limited: busiest > BUSY || late_by_itself(result),
    }
}

fn is_near(condition: &Condition, result: &LoadResult) -> bool {
    let value = condition.value_of(result);
    value.is_some_and(|value| condition.bound > 0.0 && (value / condition.bound - 1.0).abs() < NEAR)
}

/// The number of unanswered requests at the window's end beyond what is allowed.
fn behind(result: &LoadResult, streams: u64, warmup_s: f64) -> f64 {
    let window = &result.window;
    // Wrong responses count as answered. A request that timed out does not, however long the drain waited for it.
    let timeouts = window.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0);
    let answered = (window.successful_in_window + window.error_count() - timeouts) as f64;
    // As many requests were in flight at the window's start as at its end, if the warm-up was long enough.
    let service_s = result.service.mean_us / 1e6;
    let filling = if warmup_s >= 2.0 * service_s { 0.0 } else { in_flight(result).min(streams as f64) };
    window.due as f64 * (1.0 - BEHIND) - BEHIND_REQUESTS - filling - answered
}

/// The mean number of requests in flight (Little's law).
fn in_flight(result: &LoadResult) -> f64 {
    if result.window_s > 0.0 { result.window.sent as f64 / result.window_s * result.service.mean_us / 1e6 } else { 0.0 }
}

/// Whether requests were sent late although connections were free: the client itself was too slow.
fn late_by_itself(result: &LoadResult) -> bool {
    let own_us = result.lateness.as_ref().map_or(0.0, |late| late.lag.p99_us);
    own_us > LAG_US.max(result.latency.p99_us / 2.0)
}

/// The number of requests that a trial needs for meaningful values: five beyond each percentile, and four errors when
/// their share is at its bound.
pub(super) fn samples(conditions: &[Condition]) -> f64 {
    let of = |condition: &Condition| match condition.metric.metric {
        Metric::P9999 => 50_000.0,
        Metric::P999 => 5_000.0,
        Metric::P99 | Metric::Max => 500.0,
        _ if condition.metric.share && condition.bound > 0.0 => (400.0 / condition.bound).min(50_000.0),
        _ => 200.0,
    };
    conditions.iter().map(of).fold(200.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::load::{Counts, Lateness, Quantiles};

    /// A trial of 5 s at 10,000/s that went well.
    fn good() -> LoadResult {
        let times = |us: f64| Quantiles { count: 50_000, mean_us: us / 3.0, p99_us: us, ..Quantiles::default() };
        LoadResult {
            window_s: 5.0,
            window: Counts {
                due: 50_000,
                sent: 50_000,
                successful: 50_000,
                successful_in_window: 49_990,
                ..Counts::default()
            },
            rate: 9_998.0,
            latency: times(3_000.0),
            service: times(2_900.0),
            lag: times(50.0),
            thread_busy: vec![0.3, 0.5],
            ..LoadResult::default()
        }
    }

    fn judged(result: &LoadResult, conditions: &str) -> Judgement {
        judge(result, &Condition::list(conditions).unwrap(), 64, 1.0)
    }

    #[test]
    fn what_holds_is_met() {
        let judgement = judged(&good(), "p99<5ms, errors<0.1%");
        let expected = Judgement {
            values: vec![Some(3_000.0), Some(0.0)],
            kept_up: true,
            met: true,
            near: false,
            busiest: 0.5,
            client_limited: false,
        };
        assert_eq!(judgement, expected);
    }

    #[test]
    fn what_is_near_its_bound_is_said_to_be() {
        for (conditions, met, near) in [
            ("p99<3.1ms", true, true),
            ("p99<2.9ms", false, true),
            ("p99<1ms", false, false),
            ("p99<9ms", true, false),
            // One of two conditions is met only just.
            ("p99<3.1ms, lag.p99<1ms", true, true),
            // One fails only just, the other by far.
            ("p99<2.9ms, lag.p99<1us", false, false),
            ("errors<=0", true, false),
            ("connect.p99<1s", false, false),
        ] {
            let judgement = judged(&good(), conditions);
            assert_eq!((judgement.met, judgement.near), (met, near), "{conditions}");
        }
    }

    #[test]
    fn a_rate_that_is_not_carried_is_not_met() {
        let mut result = good();
        result.window.successful_in_window = 48_000;
        let judgement = judged(&result, "errors<0.1%");
        assert!(!judgement.kept_up && !judgement.met && judgement.near);
        result.window.successful_in_window = 40_000;
        let judgement = judged(&result, "errors<0.1%");
        assert!(!judgement.kept_up && !judgement.met && !judgement.near);
        // Wrong responses count as answered.
        result.window.errors.insert(ErrorKind::BadStatus, 10_000);
        assert!(judged(&result, "p99<5ms").met);
        // Requests that timed out do not.
        result.window.errors = [(ErrorKind::Timeout, 10_000)].into();
        assert!(!judged(&result, "p99<5ms").met);
    }

    #[test]
    fn without_a_warm_up_the_first_responses_may_take_their_time() {
        let mut result = good();
        result.service.mean_us = 400_000.0;
        result.window.successful_in_window = 46_000;
        let conditions = Condition::list("p99<5ms").unwrap();
        assert!(!judge(&result, &conditions, 10_000, 1.0).kept_up);
        assert!(judge(&result, &conditions, 10_000, 0.0).kept_up);
        // No more requests can be in flight than there are connections.
        assert!(!judge(&result, &conditions, 64, 0.0).kept_up);
    }

    #[test]
    fn the_clients_own_limit_is_seen() {
        let mut result = good();
        result.thread_busy[1] = 0.95;
        assert!(judged(&result, "p99<5ms").client_limited);
        // Late because all connections were in use: the target is the cause.
        let mut result = good();
        result.lag.p99_us = 2_000.0;
        result.lateness = Some(Lateness::default());
        assert!(!judged(&result, "p99<5ms").client_limited);
        // Late, although some were free.
        let late = Lateness { lag: result.lag.clone(), ..Lateness::default() };
        result.lateness = Some(late);
        assert!(judged(&result, "p99<5ms").client_limited);
    }

    #[test]
    fn finer_conditions_need_more_requests() {
        for (conditions, needed) in [
            ("mean<1s", 200.0),
            ("p99<1s", 500.0),
            ("p99<1s, p99.9<2s", 5_000.0),
            ("errors<0.1%", 4_000.0),
            ("errors<=0%", 200.0),
        ] {
            assert_eq!(samples(&Condition::list(conditions).unwrap()), needed, "{conditions}");
        }
    }
}
