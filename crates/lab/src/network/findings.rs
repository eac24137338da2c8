//! What of hosts, their clocks and what lies between them would spoil a measurement. It is pure.

use weir_model::record::{Finding, HostClock, HostRecord, Role, Severity};
use weir_model::text::list;

use super::{MEASURED_S, Pair};

/// Segments sent again, of one request at a time: 0 to 1. Linux waits at least 200 ms (`TCP_RTO_MIN`) for what no later segment
/// makes up for, so one in a thousand is in the 99.9th percentile. Fewer than [`LEAST_AGAIN`] are not judged: a second has few.
const SHARE_AGAIN: f64 = 0.001;
const LEAST_AGAIN: u64 = 3;

/// One way carries so many times what the other does. Between alike machines both ways do the same; what sends costs more than what
/// receives, or less, by less than this.
const ASYMMETRIC: f64 = 2.0;

/// All of them. `hosts` are those that were reached.
pub fn findings(hosts: &[HostRecord], clocks: &[HostClock], pairs: &[Pair]) -> Vec<Finding> {
    let clients = hosts.iter().filter(|host| host.has(Role::Client)).count();
    let of_hosts = machines(hosts).into_iter().filter_map(|machine| one_machine(&machine));
    of_hosts
        .chain(weir_audit::clients_differ(hosts))
        .chain(weir_audit::clocks(clocks, clients, MEASURED_S))
        .chain(pairs.iter().filter_map(lossy))
        .chain(pairs.iter().filter_map(asymmetric))
        .collect()
}

/// The hosts of each machine.
fn machines(hosts: &[HostRecord]) -> Vec<Vec<&HostRecord>> {
    let mut machines: Vec<Vec<&HostRecord>> = Vec::new();
    for host in hosts {
        match machines.iter_mut().find(|machine| machine[0].machine == host.machine) {
            Some(machine) => machine.push(host),
            None => machines.push(vec![host]),
        }
    }
    machines
}

fn one_machine(machine: &[&HostRecord]) -> Option<Finding> {
    let names: Vec<&str> = machine.iter().map(|host| host.name.as_str()).collect();
    let [_, _, ..] = names.as_slice() else { return None };
    let message = format!("{} are one machine: they share its CPUs, and no network is between them", list(&names));
    found("one-machine", message, "roles on machines of their own, where figures are to hold for such")
}

fn lossy(pair: &Pair) -> Option<Finding> {
    let Pair { from, to, small, .. } = pair;
    if small.again < LEAST_AGAIN || small.share() < SHARE_AGAIN {
        return None;
    }
    let message = format!(
        "{from} and {to} sent {} of {} segments again, with one small request at a time",
        small.again, small.sent
    );
    found("retransmits", message, "see in the interfaces' counters (`ip -s link`) what loses them")
}

fn asymmetric(pair: &Pair) -> Option<Finding> {
    let Pair { from, to, sent_bits_per_s: sent, received_bits_per_s: received, .. } = pair;
    let (more, less) = (sent.max(*received), sent.min(*received));
    if more < ASYMMETRIC * less {
        return None;
    }
    let message =
        format!("{from} sends {to} {:.0} Mbit/s and receives {:.0} Mbit/s from it", sent / 1e6, received / 1e6);
    let remedy = "see on both what the slower way passes (`tc qdisc`, `ip -s link`, limits of the cloud)";
    found("asymmetric", message, remedy)
}

fn found(check: &str, message: String, remedy: &str) -> Option<Finding> {
    let (check, remedy) = (check.to_owned(), remedy.to_owned());
    Some(Finding { check, severity: Severity::Warning, message, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Segments;

    fn host(name: &str, machine: &str, role: Role) -> HostRecord {
        HostRecord { name: name.into(), machine: machine.into(), roles: vec![role], ..HostRecord::default() }
    }

    fn pair() -> Pair {
        Pair {
            from: "client-1".into(),
            to: "proxy".into(),
            p50_us: 100.0,
            p99_us: 300.0,
            sent_bits_per_s: 9e8,
            received_bits_per_s: 9.4e8,
            small: Segments { sent: 20_000, again: 2 },
            large: Segments { sent: 20_000, again: 900 },
        }
    }

    fn said(hosts: &[HostRecord], clocks: &[HostClock], pairs: &[Pair]) -> Vec<String> {
        findings(hosts, clocks, pairs)
            .into_iter()
            .map(|finding| format!("{}: {}", finding.check, finding.message))
            .collect()
    }

    fn three() -> [HostRecord; 3] {
        [host("client-1", "m1", Role::Client), host("proxy", "m2", Role::Proxy), host("origin-1", "m3", Role::Origin)]
    }

    #[test]
    fn machines_apart_and_links_alike_are_fine() {
        let clock = |host: &str| HostClock { host: host.into(), error_us: 40_000.0, drift_us: 0.0 };
        assert_eq!(said(&three(), &[clock("client-1"), clock("proxy")], &[pair()]), [""; 0], "one client");
        assert_eq!(said(&[host("local", "m1", Role::Client)], &[], &[]), [""; 0]);
    }

    #[test]
    fn hosts_of_one_machine_are_said() {
        let mut hosts = three();
        hosts[1].machine = "m1".into();
        assert_eq!(
            said(&hosts, &[], &[]),
            ["one-machine: client-1 and proxy are one machine: they share its CPUs, and no network is between them"]
        );
    }

    #[test]
    fn clients_that_differ_and_clocks_that_disagree_are_said() {
        let mut hosts = three().to_vec();
        hosts.push(host("client-2", "m4", Role::Client));
        hosts[3].cpus = vec![0];
        let clock = |host: &str| HostClock { host: host.into(), error_us: 6_000.0, drift_us: 0.0 };
        let said = said(&hosts, &[clock("client-1"), clock("client-2")], &[]);
        assert!(said[0].starts_with("hosts-differ: the 2 clients differ in number of CPUs"), "{said:?}");
        assert!(said[1].starts_with("clocks: the clocks of client-1 and client-2 may disagree by 12.0 ms"), "{said:?}");
    }

    #[test]
    fn losses_count_where_nothing_is_full() {
        let mut lossy = pair();
        lossy.small = Segments { sent: 3_000, again: 3 };
        assert_eq!(
            said(&three(), &[], &[lossy.clone()]),
            ["retransmits: client-1 and proxy sent 3 of 3000 segments again, with one small request at a time"]
        );
        lossy.small.sent = 3_001;
        assert_eq!(said(&three(), &[], &[lossy]), [""; 0]);
    }

    #[test]
    fn a_way_that_carries_half_is_said() {
        let mut uneven = pair();
        uneven.sent_bits_per_s = 4.7e8;
        assert_eq!(
            said(&three(), &[], &[uneven.clone()]),
            ["asymmetric: client-1 sends proxy 470 Mbit/s and receives 940 Mbit/s from it"]
        );
        uneven.sent_bits_per_s = 4.8e8;
        assert_eq!(said(&three(), &[], &[uneven]), [""; 0]);
    }
}
