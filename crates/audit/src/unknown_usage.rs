//! A product whose use of CPU is not known.

use weir_model::record::{Finding, Role, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if !e.proxied || e.role(Role::Proxy).is_some() {
        return None;
    }
    let message = "CPU and memory of the product are unknown: weir did not start it and does not read its processes";
    finding("unknown-usage", Severity::Note, message)
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
