//! Sameness: did the product keep to the cores it was given? Pinning makes more impossible where it holds; a product
//! that pins its own threads elsewhere breaks out. Threshold: 5 % more than given (the accounting's own error).

use weir_model::record::{Finding, Role, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let given = e.placement.proxy.len() as f64;
    let used = e.role(Role::Proxy)?.cores_busy;
    if !e.proxied || used <= given * 1.05 {
        return None;
    }
    let message = format!("the product used {used:.2} cores and was given {given:.0}");
    finding("cores", Severity::Fatal, message, "turn off the product's own CPU pinning")
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_more_cores_were_used_than_given() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.usage[1].cores_busy = 1.2;
        assert!(trial.check(super::check).is_some());
    }
}
