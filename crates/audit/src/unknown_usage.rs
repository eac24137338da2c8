//! A product whose use of CPU is not known.

use weir_model::record::{Finding, Role, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["unknown-usage"],
    sees: "that the product's CPU and memory were not measured: others started it, and its processes are unknown or \
         could not be read",
    threshold: "none: it is noted",
    source: "",
    remedy: "name its pods in [served] (namespace, selector) and run it with --topology kubernetes",
    blind: "",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if !e.proxied || e.role(Role::Proxy).is_some() {
        return None;
    }
    let message = "CPU and memory of the product are unknown: weir did not start it and does not read its processes";
    CHECK.finding(Severity::Note, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::good;

    #[test]
    fn a_product_without_usage_is_noted_and_the_baseline_is_not() {
        let mut trial = good();
        assert_eq!(trial.check(check), None);
        trial.usage.retain(|usage| usage.role != Role::Proxy);
        assert!(trial.check(check).expect("says so").message.contains("CPU and memory of the product are unknown"));
        trial.proxied = false;
        assert_eq!(trial.check(check), None);
    }
}
