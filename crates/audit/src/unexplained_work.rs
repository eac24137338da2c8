//! A product whose CPU does not explain its work.

use weir_model::owners::Holder;
use weir_model::record::{Finding, Role, Severity};

use super::{Evidence, finding};

/// CPU time of a request, us.
const LEAST_US: f64 = 1.0;
/// So many requests, so that ticks of ended processes do not matter.
const LEAST_REQUESTS: u64 = 1_000;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    // Where others have started it, its processes are not those that weir knows.
    if !e.proxied || e.placement.proxy.is_empty() {
        return None;
    }
    let holders: Vec<&Holder> = e.owners.iter().flat_map(|machine| &machine.holders).collect();
    if let Some(most) = holders.iter().max_by_key(|holder| holder.connections) {
        let used = most.used.map(|used| format!(" and used {used:.2} CPUs")).unwrap_or_default();
        let message = format!(
            "{} (pid {}), which is no process of the product's, held {} of {} of its connections{used}",
            most.name, most.pid, most.connections, most.of
        );
        return finding("unexplained-work", Severity::Fatal, message);
    }
    let usage = e.role(Role::Proxy)?;
    let (cpu_us, answered) = ((usage.cpu_user_us + usage.cpu_system_us) as f64, e.load.window.successful_in_window);
    // One read may bring many requests of a connection with several in flight.
    let alone = e.load.streams <= 1;
    let each = cpu_us / answered.max(1) as f64;
    if !alone || answered < LEAST_REQUESTS || each >= LEAST_US {
        return None;
    }
    let message = format!("the product used {each:.2} us of CPU a request: reading and answering one takes more");
    finding("unexplained-work", Severity::Fatal, message)
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::owners::Owners;

    use super::*;
    use crate::fixture::good;

    /// A process of nobody's that has the connections.
    pub fn held() -> Vec<Owners> {
        let holder = Holder { name: "helper".into(), pid: 123, connections: 16, of: 16, used: Some(0.25) };
        vec![Owners { holders: vec![holder], ..Owners::default() }]
    }

    #[test]
    fn fires_when_another_process_holds_the_connections() {
        let mut trial = good();
        assert_eq!(trial.check(check), None);
        trial.owners = held();
        let message = trial.check(check).expect("fires").message;
        assert!(message.contains("helper (pid 123)") && message.contains("16 of 16"), "{message}");
        trial.placement.proxy.clear();
        assert_eq!(trial.check(check), None, "others have started it");
    }

    #[test]
    fn fires_when_the_cpu_is_too_little_for_the_requests() {
        let mut trial = good();
        trial.usage[1].cpu_system_us = 9_000;
        assert!(trial.check(check).expect("0.9 us each").message.contains("0.90 us"));
        trial.load.streams = 32;
        assert_eq!(trial.check(check), None, "a read may bring several");
        trial.load.streams = 1;
        trial.usage[1].cpu_system_us = 11_000;
        assert_eq!(trial.check(check), None);
        trial.usage[1].cpu_system_us = 0;
        trial.load.window.successful_in_window = 999;
        assert_eq!(trial.check(check), None, "too few");
    }
}
