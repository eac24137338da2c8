//! Interrupts on the product's CPUs.

use weir_model::record::{Finding, Role, Severity};
use weir_model::units::CpuList;

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["nic-queue"],
    sees: "a network interface of the proxy's host that interrupts the product's CPUs, although the host has others. No \
         account shows that time as the product's own. A product that has all CPUs of its host pays for interrupts \
         anyway, which is not noted",
    threshold: "any queue: it is noted",
    source: "",
    remedy: "move them to other CPUs (/proc/irq/<n>/smp_affinity_list), or give the product all CPUs of its host",
    blind: "runs on one host",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let host = e.hosts.iter().find(|host| host.has(Role::Proxy)).filter(|_| e.hosts.len() > 1)?;
    let link = host.link()?;
    let others = host.cpus.iter().any(|cpu| !e.placement.proxy.contains(cpu));
    let shared: Vec<u32> = link.queue_cpus.iter().filter(|cpu| e.placement.proxy.contains(cpu)).copied().collect();
    if shared.is_empty() || !others || !e.proxied {
        return None;
    }
    let message =
        format!("queues of {} on {} interrupt CPUs of the product ({})", link.name, host.name, CpuList::text(&shared));
    CHECK.finding(Severity::Note, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::three_hosts;

    #[test]
    fn fires_where_a_queue_is_on_the_products_cpus_and_need_not_be() {
        let mut trial = three_hosts();
        assert_eq!(trial.check(super::check), None, "its queues are elsewhere");
        trial.hosts[0].facts.links[0].queue_cpus = vec![0, 1];
        assert!(
            trial
                .check(super::check)
                .expect("fires")
                .message
                .contains("eth0 on proxy interrupt CPUs of the product (1)")
        );
        trial.hosts[0].cpus = vec![1];
        assert_eq!(trial.check(super::check), None, "there is no other CPU");
    }
}
