//! Responses that are wrong.

use weir_model::load::ErrorKind;
use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

/// One of so many is invalid.
const INVALID: u64 = 10_000;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let total = &e.load.total;
    let wrong = total.wrong_responses();
    if wrong == 0 {
        return None;
    }
    let severity = if wrong.saturating_mul(INVALID) > total.sent { Severity::Fatal } else { Severity::Warning };
    let kinds = e.load.list_errors(total.errors.iter().filter(|(kind, n)| ErrorKind::WRONG.contains(kind) && **n > 0));
    finding("wrong-responses", severity, format!("{wrong} of {} responses were wrong: {kinds}", total.sent))
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::load::ErrorKind;
    use weir_model::record::Severity;

    #[test]
    fn one_is_suspect_and_more_than_one_in_ten_thousand_are_invalid() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        for kind in ErrorKind::WRONG {
            for (n, severity) in [(1, Severity::Warning), (2, Severity::Fatal)] {
                trial.load.total.errors = [(kind, n)].into();
                assert_eq!(trial.check(super::check).expect("fires").severity, severity, "{kind:?} {n}");
            }
        }
    }

    #[test]
    fn refusals_and_failures_are_not_meant() {
        let mut trial = good();
        trial.load.total.errors = [(ErrorKind::BadStatus, 47), (ErrorKind::Reset, 9), (ErrorKind::Stale, 1)].into();
        trial.load.total.statuses = [(200, 9_953), (429, 7), (503, 40)].into();
        assert_eq!(trial.check(super::check), None);
        trial.load.total.statuses = [(200, 9_953), (404, 1), (503, 46)].into();
        assert!(trial.check(super::check).expect("fires").message.starts_with("1 of 10000"));
    }
}
