//! A filter that lets so many requests a second pass.

use weir_model::record::{Finding, Severity};
use weir_model::text::full_rate;

use super::{Evidence, finding};

/// A rate may differ from the limit by this share. Products count in steps of up to 50 ms, and weir's files let a tenth of a second's
/// requests pass at once.
const DIFFERS: f64 = 0.1;

/// The shortest window that is judged, seconds: products count over a second.
const SHORTEST_S: f64 = 2.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let (limit, window) = (f64::from(e.gateway.limit?), &e.load.window);
    if e.load.window_s < SHORTEST_S {
        return None;
    }
    let (refused, all) = (e.refused_by_filter(window), window.statuses.values().sum::<u64>());
    let a_second = |count: u64| count as f64 / e.load.window_s;
    let (passed, asked) = (a_second(all - refused), a_second(all));
    // A limit that is not met lets everything pass.
    let right = asked.min(limit);
    if passed <= right * (1.0 + DIFFERS) && passed >= right * (1.0 - DIFFERS) {
        return None;
    }
    let message = format!(
        "the filter let {} of {} pass, and its limit is {}",
        full_rate(passed),
        full_rate(asked),
        full_rate(limit)
    );
    finding("rate-limit", Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::{filtered, good};
    use weir_model::gateway::Filter;

    #[test]
    fn a_limit_that_lets_more_or_less_pass_is_seen() {
        let message = |limit: u32, passed: u64, refused: u64| {
            let mut trial = good();
            (trial.gateway, trial.load.window_s) = (filtered(Filter::RateLimit, Some(limit)), 2.0);
            trial.load.window.statuses = [(200, passed), (429, refused)].into();
            trial.check(super::check).map(|finding| finding.message)
        };
        assert_eq!(message(1_000, 2_000, 2_000), None);
        assert_eq!((message(1_000, 2_190, 2_000), message(1_000, 1_810, 2_000)), (None, None), "steps");
        let says = "the filter let 1,500/s of 2,000/s pass, and its limit is 1,000/s";
        assert_eq!(message(1_000, 3_000, 1_000).as_deref(), Some(says), "too much");
        assert!(message(1_000, 1_000, 3_000).is_some(), "too little");
        assert_eq!(message(10_000, 4_000, 0), None, "it is not met");
        assert!(message(10_000, 3_000, 1_000).is_some(), "it is not met, and refuses");
        let mut short = good();
        (short.gateway, short.load.window_s) = (filtered(Filter::RateLimit, Some(10)), 1.9);
        assert_eq!(short.check(super::check), None, "a window of fewer than two of the product's");
    }
}
