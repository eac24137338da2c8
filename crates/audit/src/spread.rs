//! Requests over the origins of a pool.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind, finding, percent};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["spread"],
    sees: "a product that does not spread its requests over all origins of a pool. It has less to do, and its latencies \
         are those of the origin that it favours",
    threshold: "an origin without a request is suspect, because the others do its work. A share 20 % more or less than an \
         even one is noted",
    source: "hashes of keys spread unevenly, round robin does not",
    remedy: "name all `origins` in the product's templates, or leave it out where there is a pool",
    blind: "loads of fewer than 100 requests an origin",
    provoked: true,
    run: Some(check),
};

/// Requests an origin, at least.
const REQUESTS: u64 = 100;
/// Percent by which a share may differ from an even one.
const DIFFERS: f64 = 20.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let origins = &e.origin?.addresses;
    let count = origins.len() as u64;
    let all: u64 = origins.iter().map(|origin| origin.requests).sum();
    if !e.proxied || count < 2 || all < REQUESTS * count {
        return None;
    }
    let spread: Vec<String> = origins.iter().map(|origin| origin.requests.to_string()).collect();
    let spread = spread.join(", ");
    let without = origins.iter().filter(|origin| origin.requests == 0).count();
    if without > 0 {
        let message = format!("{without} of {count} origins got no request ({spread})");
        return CHECK.finding(Severity::Warning, message);
    }
    let even = all as f64 / count as f64;
    let differs = |requests: u64| (percent(requests as f64, even) - 100.0).abs();
    let most = origins.iter().map(|origin| differs(origin.requests)).fold(0.0, f64::max);
    if most <= DIFFERS {
        return None;
    }
    let message = format!(
        "the product spread its requests unevenly over {count} origins: {spread}; {most:.0} % off an even share"
    );
    finding("spread", Severity::Note, message, "compare it with products that spread alike: see its templates")
}

#[cfg(test)]
mod tests {
    use weir_model::counters::AddressCounters;
    use weir_model::record::Severity;

    use crate::fixture::good;

    #[test]
    fn an_idle_origin_is_suspect_and_an_uneven_spread_is_noted() {
        let severity = |requests: &[u64], proxied| {
            let mut trial = good();
            let counted = |requests: &u64| AddressCounters { requests: *requests, ..AddressCounters::default() };
            (trial.origin.addresses, trial.proxied) = (requests.iter().map(counted).collect(), proxied);
            trial.check(super::check).map(|finding| finding.severity)
        };
        assert_eq!(severity(&[], true), None);
        assert_eq!(severity(&[5_000, 4_500, 5_500], true), None);
        assert_eq!(severity(&[5_000, 3_500, 6_500], true), Some(Severity::Note));
        assert_eq!(severity(&[5_000, 0, 5_000], true), Some(Severity::Warning));
        assert_eq!(severity(&[5_000, 0, 5_000], false), None, "direct has one origin");
        assert_eq!(severity(&[50, 0, 50], true), None, "too few");
    }
}
