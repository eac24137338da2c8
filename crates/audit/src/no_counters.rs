//! An origin that has no counters: a product is the origin, as in benchmarks that others published.
//!
//! Says what then goes unchecked: whether requests were answered from a cache, retried or multiplied, whether bodies were
//! changed, and whether connections to the origin were kept. No threshold.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if e.origin.is_some() {
        return None;
    }
    finding(
        "no-counters",
        Severity::Note,
        "the origin has no counters: caches, retries and lost keep-alive between proxy and origin would not be seen"
            .to_owned(),
        "run it with weir's own origin too, without `--origin`",
    )
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn an_origin_without_counters_is_said() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.has_counters = false;
        assert!(trial.check(super::check).is_some());
        trial.origin.requests = 12;
        assert_eq!(trial.all().len(), 1, "nothing is made of counters that are not there");
    }
}
