//! Keys that did not live as long as they were to.

use std::time::Duration;

use weir_model::case_tests::{CaseTests, KeyExpiry};
use weir_model::keyvalue::Resolution;
use weir_model::protocol::Application;
use weir_model::record::{Finding, Severity};
use weir_model::units::HumanDuration;

use super::{Check, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Answers,
    names: &["expiry"],
    sees: "keys that did not live as long as their time to live. The lab writes a key with a short life before the \
         first window and reads it until it expires. It writes another key with the workload's own life and reads it \
         again after the window. The result holds for the trial as a whole",
    threshold: "one key that expired too early or too late by more than its protocol counts. The tolerance is 1 ms for \
         Redis's milliseconds and 1 s for seconds. A memcached may be 1 s early or 2 s late, because its clock moves \
         once a second. Early counts from sending the write to the response of a read that found nothing. Late counts \
         from the write's response to sending a read that found the key",
    source: "a server acts between a request and its response, so no delay can look like a wrong life",
    remedy: "do not use it where a time to live matters; look for a setting that rounds or ignores it",
    blind: "lives that end after the trial",
    provoked: true,
    run: None,
};

/// The finding for the tests of a case that speaks this protocol.
pub fn check(tests: &CaseTests, application: Application) -> Option<Finding> {
    let one = |key: &KeyExpiry| {
        let Resolution { early, late } = Resolution::of(application, Duration::from_secs_f64(key.ttl_s));
        match key.at_most_s {
            Some(most) if key.is_early(application) => Some(format!(
                "a key with {:.1} s to live was gone after {most:.2} s at most ({} too early is allowed)",
                key.ttl_s,
                HumanDuration(early)
            )),
            _ if key.is_late(application) => Some(format!(
                "a key with {:.1} s to live was there after {:.2} s ({} too late is allowed)",
                key.ttl_s,
                key.at_least_s,
                HumanDuration(late)
            )),
            _ => None,
        }
    };
    let wrong: Vec<String> = tests.expiry.iter().filter_map(one).collect();
    (!wrong.is_empty()).then(|| wrong.join(", and ")).and_then(|message| CHECK.finding(Severity::Fatal, message))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tests of one key.
    pub fn of_key(ttl_s: f64, at_least_s: f64, at_most_s: Option<f64>) -> CaseTests {
        CaseTests { trial: 1, expiry: vec![KeyExpiry { ttl_s, at_least_s, at_most_s }], control: None }
    }

    #[test]
    fn fires_where_a_key_ended_too_early_or_too_late_and_not_within_what_is_measured() {
        let said = |tests: &CaseTests| check(tests, Application::Redis).map(|found| (found.severity, found.message));
        let fatal = |text: &str| Some((Severity::Fatal, text.to_owned()));
        assert_eq!(said(&CaseTests::default()), None);
        assert_eq!(said(&of_key(0.5, 0.49, Some(0.51))), None);
        assert_eq!(said(&of_key(10.0, 3.4, None)), None, "its time is not over");
        assert_eq!(
            said(&of_key(10.0, 0.28, Some(0.3))),
            fatal("a key with 10.0 s to live was gone after 0.30 s at most (1s too early is allowed)")
        );
        assert_eq!(
            said(&of_key(0.5, 0.6, None)),
            fatal("a key with 0.5 s to live was there after 0.60 s (1ms too late is allowed)")
        );
    }
}
