//! Headroom: did the client send in time? Detects lag (due to sent) that is a visible part of the reported latency.
//! Listed in `CHECKS`.
//!
//! Threshold: a tenth of the latency, both at the 99th percentile, and at least 20 µs. That is the median by which a thread with
//! the finest timer slack overslept on the 2-core virtual machine on which weir was built (20,000 sleeps of 0.2 ms: median 21 to
//! 24 µs, 99th percentile 50 to 54 µs). A client that sleeps until a request is due cannot send it sooner.
//!
//! Under a load that the product cannot carry, every request waits for a free connection, and the product causes the lag. Where
//! such a load is intended, lag counts only while connections were free: when, in the mean, less than half of the possible
//! requests were in flight.

use weir_model::record::{Finding, Severity};
use weir_model::text::human_us;

use super::{Evidence, RateIntent, finding};

const SHARE: f64 = 0.1;
const LEAST_US: f64 = 20.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    e.load.offered_rate?;
    let (lag, latency) = (e.load.lag.p99_us, e.load.latency.p99_us);
    // A client that waits for a free connection lags because of the product.
    let queued = e.load.window.unsent > 0 || e.load.service.p99_us * 2.0 < latency && lag * 2.0 > latency;
    if lag <= LEAST_US || lag <= latency * SHARE {
        return None;
    }
    if e.rate_intent != RateIntent::Carried && e.mean_in_flight() >= e.in_flight() as f64 / 2.0 {
        return None;
    }
    let message =
        format!("requests left {} late at p99, where the latency reported is {}", human_us(lag), human_us(latency));
    let remedy = if queued {
        "more connections: requests waited for a free one (the wait is part of the latency, as it must be)"
    } else {
        "give the client a CPU of its own, or offer less"
    };
    finding("client-lag", Severity::Warning, message, remedy)
}

#[cfg(test)]
mod tests {
    use crate::RateIntent;
    use crate::fixture::good;

    /// 64 connections; 10,000 requests in a second, each of which took 6 ms: 60 were in flight in the mean.
    #[test]
    fn beyond_what_is_carried_only_a_client_that_had_free_connections_was_late() {
        for intent in [RateIntent::Carried, RateIntent::Either, RateIntent::TooMuch] {
            let mut trial = good();
            trial.rate_intent = intent;
            trial.load.offered_rate = Some(20_000.0);
            (trial.load.lag.p99_us, trial.load.latency.p99_us) = (400_000.0, 406_000.0);
            trial.load.service.mean_us = 6_000.0;
            assert_eq!(trial.check(super::check).is_some(), intent == RateIntent::Carried, "{intent:?}");
            trial.load.service.mean_us = 600.0;
            assert!(trial.check(super::check).is_some(), "{intent:?}: the client did not get round to it");
        }
    }

    #[test]
    fn fires_when_lag_is_a_visible_part() {
        let mut trial = good();
        trial.load.offered_rate = Some(10_000.0);
        assert_eq!(trial.check(super::check), None);
        trial.load.lag.p99_us = 200.0;
        assert!(trial.check(super::check).is_some());
        trial.load.latency.p99_us = 15.0;
        trial.load.lag.p99_us = 10.0;
        assert_eq!(trial.check(super::check), None, "a wake-up is not a fault");
    }
}
