//! Notes an origin without counters: the origin is a product, as in benchmarks that others published. Listed in
//! `CHECKS`.
//!
//! The note says what is not checked then: caches, retries, changed bodies, and connections to the origin that were not kept. There
//! is no threshold.

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
