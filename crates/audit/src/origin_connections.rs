//! Conservation of connections without a product.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Conservation,
    names: &["conservation-connections"],
    sees: "another client of the origin during a trial of `direct`, where all connections with requests are the \
         client's own",
    threshold: "any connection more; both sides count over the client's whole life",
    source: "",
    remedy: "see that nobody else uses the origin",
    blind: "trials of products, which may use any number of connections to the origin",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let (opened, used) = (e.load.total.connections, e.origin?.connections_used);
    if e.proxied || used <= opened {
        return None;
    }
    let message = format!("{used} connections carried requests to the origin, and the client opened {opened}");
    CHECK.finding(Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn a_stranger_is_seen_and_a_product_may_use_as_many_as_it_likes() {
        let mut trial = good();
        trial.proxied = false;
        trial.origin.connections_used = 64;
        assert_eq!(trial.check(super::check), None);
        trial.origin.connections_used = 65;
        assert!(trial.check(super::check).is_some());
        trial.proxied = true;
        assert_eq!(trial.check(super::check), None);
    }
}
