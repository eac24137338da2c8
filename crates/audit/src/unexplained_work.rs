//! A product whose CPU does not explain its work.

use weir_model::owners::Holder;
use weir_model::record::{Finding, Role, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["unexplained-work"],
    sees: "work that the product's own processes did not do. Another process held its connections, or requests took \
         less CPU than their system calls need. The product's CPU and memory are then those of others",
    threshold: "one of the first 64 connections from clients or 64 to origins, before or after the window. Or less than 1 us \
         of CPU a request, with one request in flight per connection and at least 1,000 responses",
    source: "a request alone on its connections takes a server a read and a write, and a proxy two of each. A write to \
         TCP takes more than a microsecond on today's CPUs. Lean proxies took 12 to 19 us a request on the virtual \
         machine on which weir was built",
    remedy: "see what the named process is, and end it before the run; the product must work below the process that weir \
         starts",
    blind: "another process that holds none of these connections (`other-processes` sees it on the roles' CPUs) or is of \
         another PID namespace. Connections that only an io_uring holds, and products that weir did not start. A \
         product that forwards in the kernel (sockmap, XDP) is rightly below 1 us, and cannot be ranked by CPU",
    provoked: true,
    run: Some(check),
};

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
        return CHECK.finding(Severity::Fatal, message);
    }
    let usage = e.role(Role::Proxy)?;
    let (cpu_us, answered) = ((usage.cpu_user_us + usage.cpu_system_us) as f64, e.load.window.right_in_window);
    // One read may bring many requests of a connection with several in flight.
    let alone = e.load.streams <= 1;
    let each = cpu_us / answered.max(1) as f64;
    if !alone || answered < LEAST_REQUESTS || each >= LEAST_US {
        return None;
    }
    let message = format!("the product used {each:.2} us of CPU a request: reading and answering one takes more");
    CHECK.finding(Severity::Fatal, message)
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
        trial.load.window.right_in_window = 999;
        assert_eq!(trial.check(check), None, "too few");
    }
}
