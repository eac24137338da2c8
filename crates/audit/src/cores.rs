//! A product that used more than its CPUs.

use weir_model::record::{Finding, Role, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["cores"],
    sees: "a product that used more CPU than it was given. Pinning normally forbids that, but a product that pins its \
         own threads can use others'",
    threshold: "5 % more than given",
    source: "the error of the accounting",
    remedy: "turn off the product's own CPU pinning",
    blind: "a product that is below its total, and uses others' CPUs",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let given = e.placement.proxy.len() as f64;
    let used = e.role(Role::Proxy)?.cores_busy;
    // A product that others have started has the CPUs that they gave it.
    if !e.proxied || given == 0.0 || used <= given * 1.05 {
        return None;
    }
    let message = format!("the product used {used:.2} cores and was given {given:.0}");
    CHECK.finding(Severity::Fatal, message)
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
        trial.placement.proxy.clear();
        assert_eq!(trial.check(super::check), None, "nobody knows what it was given");
    }
}
