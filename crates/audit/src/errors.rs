//! Requests without a successful response.

use weir_model::load::ErrorKind;
use weir_model::record::{Finding, Severity};

use super::{Evidence, RateIntent, finding, finding_with, percent};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let window = &e.load.window;
    let failed = window.error_count().saturating_sub(window.wrong_responses() + given_up(e));
    if failed == 0 {
        return None;
    }
    let share = percent(failed as f64, window.due as f64);
    let (allowed, vain) = (e.errors_allowed.percent(), waited_in_vain(e));
    let severity = match share.max(vain / 10.0) {
        s if s >= allowed * 10.0 => Severity::Fatal,
        s if s >= allowed => Severity::Warning,
        _ => Severity::Note,
    };
    let mut kinds = e.load.list_errors(&window.errors);
    if vain >= allowed * 10.0 {
        kinds += &format!("; connections waited in vain for {vain:.0} % of their time");
    }
    let refused = window.refusals();
    if refused * 2 < failed {
        let message = format!("{failed} of {} requests ({share:.2} %) got no successful response: {kinds}", window.due);
        return finding("errors", severity, message);
    }
    let statuses = window.refused_by_status();
    let statuses: Vec<String> = statuses.iter().map(|(status, n)| format!("{n} by {status}")).collect();
    let statuses = if statuses.is_empty() { String::new() } else { format!(" ({})", statuses.join(", ")) };
    let message =
        format!("{failed} of {} requests ({share:.2} %) were refused or failed: {kinds}{statuses}", window.due);
    let remedy = "see in the product's output what it refuses: a limit of rate or connections, an origin that it holds for dead; \
                  offer less, or say in the workload how many may be refused (`expect.errors`)";
    finding_with("refusals", severity, message, remedy)
}

/// Timeouts of requests that the client gave up at the end of the load.
fn given_up(e: &Evidence<'_>) -> u64 {
    if e.rate_intent == RateIntent::Carried || e.load.window.unsent == 0 {
        return 0;
    }
    e.load.window.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0).min(e.in_flight())
}

/// Share of the connections' time in a closed load that went by waiting for responses that did not come before the timeout, per cent.
fn waited_in_vain(e: &Evidence<'_>) -> f64 {
    if e.load.offered_rate.is_some() {
        return 0.0;
    }
    let timeouts = e.load.window.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0).saturating_sub(given_up(e));
    let window = e.load.window_s;
    percent(timeouts as f64 * e.timeout_s.min(window), e.in_flight() as f64 * window).min(100.0)
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

    #[test]
    fn what_a_workload_allows_is_noted() {
        let mut trial = good();
        trial.errors_allowed = "0.5 %".parse().expect("a share");
        trial.load.offered_rate = Some(10_000.0);
        for (n, severity) in [(49, Severity::Note), (50, Severity::Warning), (500, Severity::Fatal)] {
            trial.load.window.errors = [(ErrorKind::Timeout, n)].into();
            assert_eq!(trial.check(super::check).expect("fires").severity, severity, "{n}");
        }
    }

    /// 64 connections, a timeout of 10 s.
    #[test]
    fn connections_that_wait_in_vain_weigh_by_their_time() {
        let mut trial = good();
        for (window_s, timeouts, severity) in [
            (2.0, 64, Severity::Fatal),
            (2.0, 2, Severity::Warning),
            (100.0, 64, Severity::Fatal),
            (1_000.0, 64, Severity::Warning),
        ] {
            (trial.load.window_s, trial.load.window.due) = (window_s, 10_000_000);
            trial.load.window.errors = [(ErrorKind::Timeout, timeouts)].into();
            let found = trial.check(super::check).expect("fires");
            assert_eq!(found.severity, severity, "{window_s} {}", found.message);
            assert!(found.message.contains("waited in vain for"), "{}", found.message);
        }
        trial.load.offered_rate = Some(10_000.0);
        assert_eq!(trial.check(super::check).expect("noted").severity, Severity::Note, "what was not answered was due");
    }

    #[test]
    fn refusals_have_their_name_and_wrong_responses_are_not_counted() {
        let mut trial = good();
        let named = |trial: &crate::fixture::Trial| trial.check(super::check).map(|found| (found.check, found.message));
        trial.load.window.errors = [(ErrorKind::BadStatus, 6), (ErrorKind::Timeout, 4)].into();
        trial.load.window.statuses = [(200, 9_994), (503, 6)].into();
        let (name, message) = named(&trial).expect("fires");
        assert!(name == "refusals" && message.contains("6 by 503"), "{message}");
        trial.load.window.errors = [(ErrorKind::Reset, 2), (ErrorKind::Timeout, 4)].into();
        assert_eq!(named(&trial).expect("fires").0, "errors");
        trial.load.window.errors = [(ErrorKind::WrongBody, 6), (ErrorKind::BadStatus, 3)].into();
        trial.load.window.statuses = [(200, 9_997), (404, 3)].into();
        assert_eq!(named(&trial), None, "another check counts them");
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
