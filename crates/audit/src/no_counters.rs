//! An origin that counts nothing.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind, finding};

pub const CHECK: Check = Check {
    kind: Kind::Conservation,
    names: &["no-counters"],
    sees: "that no origin of weir counted the requests: it is a product, as in published benchmarks, or the product \
         holds the data itself. The client checks a store's responses, because it knows what it wrote",
    threshold: "none: it is noted",
    source: "",
    remedy: "run it with weir's own origin too, without `--origin`",
    blind: "everything that counters would show: caches, retries, altered requests, connections to the origin that were \
         not kept",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if e.origin.is_some() {
        return None;
    }
    if e.store && e.proxied {
        let message = "the product holds the data itself: no origin counted the requests, and the client's own check of every \
                       value stands alone";
        return finding("no-counters", Severity::Note, message.to_owned(), "nothing to do: it is so for every store");
    }
    CHECK.finding(
        Severity::Note,
        "the origin has no counters: caches, retries, altered requests and lost keep-alive between proxy and origin would not be seen"
            .to_owned(),
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
        trial.store = true;
        assert!(trial.check(super::check).expect("says so").message.contains("holds the data itself"));
        trial.origin.requests = 12;
        assert_eq!(trial.all().len(), 1, "nothing is made of counters that are not there");
    }
}
