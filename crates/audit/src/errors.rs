//! Detects requests without a right response. Listed in `CHECKS`.
//!
//! Thresholds: k6 and fortio users commonly fail a test at 1 % of errors. A comparison of products must be stricter, because an
//! error is often cheaper than a response. Any error is noted, from 0.1 % the result is suspect, and from 1 % it is invalid.
//!
//! A load that is too high on purpose ends with requests in flight, at most one for each connection or stream. The client gives
//! them up one timeout after the window. These timeouts are no errors of the product.

use weir_model::load::ErrorKind;
use weir_model::record::{Finding, Severity};

use super::{Evidence, RateIntent, finding, percent};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let window = &e.load.window;
    let failed = window.error_count().saturating_sub(given_up(e));
    if failed == 0 {
        return None;
    }
    let share = percent(failed as f64, window.due as f64);
    let severity = match share {
        s if s >= 1.0 => Severity::Fatal,
        s if s >= 0.1 => Severity::Warning,
        _ => Severity::Note,
    };
    let kinds = ErrorKind::listed(&window.errors);
    let message = format!("{failed} of {} requests ({share:.2} %) got no right answer: {kinds}", window.due);
    finding("errors", severity, message, "see the product's output in the trial's folder; offer less")
}

/// Timeouts of requests that the client gave up at the end of the load.
fn given_up(e: &Evidence<'_>) -> u64 {
    if e.rate_intent == RateIntent::Carried || e.load.window.unsent == 0 {
        return 0;
    }
    e.load.window.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0).min(e.in_flight())
}

#[cfg(test)]
mod tests {
    use crate::RateIntent;
    use crate::fixture::good;
    use weir_model::load::ErrorKind;
    use weir_model::record::Severity;

    #[test]
    fn severity_follows_the_share() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        for (n, severity) in [(1, Severity::Note), (10, Severity::Warning), (100, Severity::Fatal)] {
            trial.load.window.errors = [(ErrorKind::Reset, n)].into();
            let found = trial.check(super::check).expect("fires");
            assert_eq!(found.severity, severity);
            assert!(found.message.contains(&format!("reset {n}")), "{}", found.message);
        }
    }

    /// 64 connections, one request each.
    #[test]
    fn what_the_client_gave_up_beyond_what_is_carried_is_no_error() {
        let mut trial = good();
        (trial.rate_intent, trial.load.window.unsent) = (RateIntent::TooMuch, 5_000);
        trial.load.window.errors = [(ErrorKind::Timeout, 64)].into();
        assert_eq!(trial.check(super::check), None);
        trial.load.window.errors = [(ErrorKind::Timeout, 65)].into();
        assert!(trial.check(super::check).expect("one more").message.starts_with("1 of 10000"));
        trial.load.window.errors = [(ErrorKind::Timeout, 64), (ErrorKind::Reset, 10)].into();
        assert!(trial.check(super::check).is_some(), "other errors are errors");
        trial.load.window.errors = [(ErrorKind::Timeout, 64)].into();
        trial.load.window.unsent = 0;
        assert!(trial.check(super::check).is_some(), "everything was sent: nothing was given up");
        (trial.rate_intent, trial.load.window.unsent) = (RateIntent::Carried, 5_000);
        assert!(trial.check(super::check).is_some(), "it was to be carried");
    }
}
