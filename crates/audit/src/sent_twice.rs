//! Requests that must not be repeated, and reached an origin more than once.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let ids = &e.origin?.request_ids;
    if e.idempotent || e.replicates || ids.again() == 0 {
        return None;
    }
    let message = format!(
        "{} of {} requests of a method that is not idempotent reached an origin more than once",
        ids.repeated, e.load.total.sent
    );
    finding("sent-twice", Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use weir_model::counters::RequestIdCounters;
    use weir_model::record::Severity;

    use crate::fixture::good;

    #[test]
    fn a_post_that_came_twice_is_suspect_and_a_get_is_not() {
        let severity = |idempotent: bool, again: u64| {
            let mut trial = good();
            trial.origin.request_ids = RequestIdCounters {
                identified: 10_000 + again,
                distinct: 10_000,
                repeated: again,
                ..RequestIdCounters::default()
            };
            trial.not_idempotent = !idempotent;
            trial.check(super::check).map(|finding| finding.severity)
        };
        assert_eq!(severity(false, 0), None);
        assert_eq!(severity(false, 1), Some(Severity::Warning));
        assert_eq!(severity(true, 1), None);
    }
}
