//! One window of all hosts from the window of each. [`super::running_load`] calls it. It is pure.
//!
//! A role on one host keeps its rows. The rows of a role on several are added, and each host's own follow as those of parts do. A product
//! of several parts has theirs instead, wherever they run. The machine's rows are those of the proxy's machine. Namespaces of one machine
//! have its CPUs and memory in common and networks of their own. So its CPU counts once, network counters are added, and each network
//! has rows: `network/client-1`. Another machine has rows by its name: `host/m2`.

use weir_host::HostFacts;
use weir_model::owners::Owners;
use weir_model::record::{ResourceSecond, RoleUsage};
use weir_vitals::Window;

/// Whose rows are the machine's.
const MACHINE: &str = "host";

/// Joins the windows; the first is that of the proxy's host. All began at one time.
pub fn joined(mut windows: Vec<(&HostFacts, Window)>) -> Option<Window> {
    if windows.len() < 2 {
        return windows.pop().map(|(_, window)| window);
    }
    let length_s = windows.first()?.1.length_s;
    let own_cpu_us = windows.iter().map(|(_, window)| window.own_cpu_us).sum();
    let late_s = windows.iter().map(|(_, window)| window.late_s).fold(0.0, f64::max);
    let mut usage: Vec<RoleUsage> = Vec::new();
    for (facts, window) in &windows {
        for of_host in &window.usage {
            match usage.iter_mut().find(|all| all.role == of_host.role) {
                Some(all) => *all = added(all, of_host, &facts.name),
                None if of_host.parts.is_empty() && on_several(&windows, of_host) => {
                    usage.push(alone(of_host, &facts.name))
                }
                None => usage.push(of_host.clone()),
            }
        }
    }
    let (series, owners) = (series(&windows), owners(&windows));
    Some(Window { usage, series, owners, length_s, own_cpu_us, late_s })
}

/// Who used the roles' CPUs, of each machine, by the first of its hosts.
fn owners(windows: &[(&HostFacts, Window)]) -> Vec<Owners> {
    let mut machines: Vec<(&str, Owners)> = Vec::new();
    for (facts, window) in windows {
        for of_host in window.owners.iter().cloned() {
            match machines.iter_mut().find(|(machine, _)| *machine == facts.machine) {
                Some((_, all)) => all.join(of_host),
                None => machines.push((&facts.machine, Owners { host: facts.name.clone(), ..of_host })),
            }
        }
    }
    machines.into_iter().map(|(_, owners)| owners).collect()
}

fn on_several(windows: &[(&HostFacts, Window)], usage: &RoleUsage) -> bool {
    windows.iter().filter(|(_, window)| window.usage.iter().any(|one| one.role == usage.role)).count() > 1
}

/// A role of several hosts, so far on one.
fn alone(usage: &RoleUsage, host: &str) -> RoleUsage {
    RoleUsage { parts: [(host.to_owned(), usage.clone())].into(), ..usage.clone() }
}

/// What hosts had at most is added, too, although they may have had it at different times.
fn added(all: &RoleUsage, one: &RoleUsage, host: &str) -> RoleUsage {
    let mut parts = all.parts.clone();
    if one.parts.is_empty() {
        parts.insert(host.to_owned(), one.clone());
    } else {
        parts.extend(one.parts.clone());
    }
    RoleUsage {
        role: all.role,
        cpu_user_us: all.cpu_user_us + one.cpu_user_us,
        cpu_system_us: all.cpu_system_us + one.cpu_system_us,
        cores_busy: all.cores_busy + one.cores_busy,
        rss_max_bytes: all.rss_max_bytes + one.rss_max_bytes,
        pss_max_bytes: sum(all.pss_max_bytes, one.pss_max_bytes),
        disk_read_bytes: sum(all.disk_read_bytes, one.disk_read_bytes),
        disk_written_bytes: sum(all.disk_written_bytes, one.disk_written_bytes),
        threads_max: sum(all.threads_max, one.threads_max),
        processes_max: sum(all.processes_max, one.processes_max),
        fds_max: sum(all.fds_max, one.fds_max),
        switches: all.switches.zip(one.switches).map(|(all, one)| (all.0 + one.0, all.1 + one.1)),
        parts,
    }
}

fn series(windows: &[(&HostFacts, Window)]) -> Vec<ResourceSecond> {
    // The machine's row is the last of each second.
    let seconds: Vec<(&HostFacts, Vec<&[ResourceSecond]>)> = windows
        .iter()
        .map(|(facts, window)| (*facts, window.series.split_inclusive(|row| row.who == MACHINE).collect()))
        .collect();
    let most = seconds.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
    (0..most)
        .flat_map(|second| {
            let now: Vec<(&HostFacts, &[ResourceSecond])> =
                seconds.iter().filter_map(|(facts, rows)| Some((*facts, *rows.get(second)?))).collect();
            let mut rows = roles(&now);
            rows.extend(machines(&now));
            rows
        })
        .collect()
}

/// The roles' rows of one second.
fn roles(now: &[(&HostFacts, &[ResourceSecond])]) -> Vec<ResourceSecond> {
    let mut rows: Vec<ResourceSecond> = Vec::new();
    let of = |who: &str| {
        let of_host = |(facts, rows): &(&HostFacts, &[ResourceSecond])| {
            let row = rows.iter().find(|row| row.who == who)?;
            Some(ResourceSecond { who: format!("{who}/{}", facts.name), ..row.clone() })
        };
        now.iter().filter_map(of_host).collect::<Vec<_>>()
    };
    for row in now.iter().flat_map(|(_, rows)| rows.iter()).filter(|row| row.who != MACHINE) {
        if rows.iter().any(|one| one.who == row.who) {
            continue;
        }
        let several = of(&row.who);
        if several.len() < 2 {
            rows.push(row.clone());
            continue;
        }
        let all = several.iter().skip(1).fold(several[0].clone(), |all, one| plus(&all, one));
        rows.push(ResourceSecond { who: row.who.clone(), ..all });
        let of_part =
            |other: &ResourceSecond| other.who.strip_prefix(&row.who).is_some_and(|rest| rest.starts_with('/'));
        if !now.iter().flat_map(|(_, rows)| rows.iter()).any(of_part) {
            rows.extend(several);
        }
    }
    rows
}

/// The machines' rows of one second, the first host's machine first, and those of the networks of a machine with several.
fn machines(now: &[(&HostFacts, &[ResourceSecond])]) -> Vec<ResourceSecond> {
    let mut rows: Vec<(&str, ResourceSecond)> = Vec::new();
    let mut networks = Vec::new();
    for (facts, seen) in now {
        let Some(row) = seen.iter().find(|row| row.who == MACHINE) else { continue };
        if now.iter().filter(|(other, _)| other.machine == facts.machine).count() > 1 {
            networks.push(network(row, &facts.name));
        }
        match rows.iter_mut().find(|(machine, _)| *machine == facts.machine) {
            Some((_, all)) => *all = with_network(all, row),
            None => {
                let who = if rows.is_empty() { MACHINE.to_owned() } else { format!("{MACHINE}/{}", facts.name) };
                rows.push((&facts.machine, ResourceSecond { who, ..row.clone() }));
            }
        }
    }
    rows.into_iter().map(|(_, row)| row).chain(networks).collect()
}

/// What of a machine's row is of the network of one of its hosts.
fn network(row: &ResourceSecond, host: &str) -> ResourceSecond {
    ResourceSecond {
        who: ResourceSecond::who_of_network(host),
        time_ms: row.time_ms,
        length_s: row.length_s,
        tcp_established: row.tcp_established,
        tcp_time_wait: row.tcp_time_wait,
        tcp_retransmits: row.tcp_retransmits,
        listen_overflows: row.listen_overflows,
        net_in_bytes: row.net_in_bytes,
        net_out_bytes: row.net_out_bytes,
        tcp_segments_sent: row.tcp_segments_sent,
        net_drops: row.net_drops,
        ..ResourceSecond::default()
    }
}

/// A machine's row with the counters of another of its networks.
fn with_network(all: &ResourceSecond, one: &ResourceSecond) -> ResourceSecond {
    ResourceSecond {
        tcp_established: sum(all.tcp_established, one.tcp_established),
        tcp_time_wait: sum(all.tcp_time_wait, one.tcp_time_wait),
        tcp_retransmits: sum(all.tcp_retransmits, one.tcp_retransmits),
        listen_overflows: sum(all.listen_overflows, one.listen_overflows),
        net_in_bytes: sum(all.net_in_bytes, one.net_in_bytes),
        net_out_bytes: sum(all.net_out_bytes, one.net_out_bytes),
        tcp_segments_sent: sum(all.tcp_segments_sent, one.tcp_segments_sent),
        net_drops: sum(all.net_drops, one.net_drops),
        ..all.clone()
    }
}

/// The rows of a role on two hosts.
fn plus(all: &ResourceSecond, one: &ResourceSecond) -> ResourceSecond {
    let cores = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    ResourceSecond {
        cpu_user: cores(all.cpu_user, one.cpu_user),
        cpu_system: cores(all.cpu_system, one.cpu_system),
        rss_bytes: sum(all.rss_bytes, one.rss_bytes),
        pss_bytes: sum(all.pss_bytes, one.pss_bytes),
        threads: sum(all.threads, one.threads),
        processes: sum(all.processes, one.processes),
        fds: sum(all.fds, one.fds),
        switches_voluntary: sum(all.switches_voluntary, one.switches_voluntary),
        switches_involuntary: sum(all.switches_involuntary, one.switches_involuntary),
        connections_open: sum(all.connections_open, one.connections_open),
        // Both may be on one machine.
        cpu_others: all.cpu_others.zip(one.cpu_others).map(|(all, one)| all.max(one)),
        run_delay: cores(all.run_delay, one.run_delay),
        ..all.clone()
    }
}

/// Unknown if either is.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::owners::CpuUse;
    use weir_model::record::Role;

    fn facts(name: &str, machine: &str) -> HostFacts {
        HostFacts { name: name.into(), machine: machine.into(), ..HostFacts::default() }
    }

    fn row(who: &str, cpu: f64, net: u64) -> ResourceSecond {
        ResourceSecond {
            who: who.into(),
            cpu_user: Some(cpu),
            cpu_system: Some(0.0),
            net_in_bytes: Some(net),
            ..ResourceSecond::default()
        }
    }

    fn window(role: Role, rows: &[ResourceSecond]) -> Window {
        let usage = RoleUsage {
            role,
            cpu_user_us: 5,
            cpu_system_us: 1,
            cores_busy: 0.5,
            rss_max_bytes: 10,
            threads_max: Some(2),
            processes_max: Some(1),
            fds_max: Some(3),
            switches: Some((1, 2)),
            ..RoleUsage::default()
        };
        let cpu = CpuUse { cpu: role as u32, others: Some(0.1), ..CpuUse::default() };
        let owners = vec![Owners { cpus: vec![cpu], ..Owners::default() }];
        Window { usage: vec![usage], series: rows.to_vec(), owners, length_s: 2.0, own_cpu_us: 7, late_s: 0.0 }
    }

    fn seen(window: &Window) -> Vec<(&str, Option<f64>, Option<u64>)> {
        window.series.iter().map(|row| (row.who.as_str(), row.cpu_user, row.net_in_bytes)).collect()
    }

    /// Each number is another one, `n` times as large.
    fn numbered(n: u64) -> (RoleUsage, ResourceSecond) {
        let (whole, part) = (|i: u64| Some(i * n), |i: u64| Some(0.5 * (i * n) as f64));
        let usage = RoleUsage {
            cpu_user_us: n,
            cpu_system_us: 2 * n,
            cores_busy: 0.5 * n as f64,
            rss_max_bytes: 3 * n,
            pss_max_bytes: whole(4),
            disk_read_bytes: whole(5),
            disk_written_bytes: whole(6),
            threads_max: whole(7),
            processes_max: whole(8),
            fds_max: whole(9),
            switches: Some((10 * n, 11 * n)),
            ..RoleUsage::default()
        };
        let second = ResourceSecond {
            cpu_user: part(1),
            cpu_system: part(2),
            run_delay: part(3),
            cpu_others: part(4),
            rss_bytes: whole(5),
            pss_bytes: whole(6),
            threads: whole(7),
            processes: whole(8),
            fds: whole(9),
            switches_voluntary: whole(10),
            switches_involuntary: whole(11),
            connections_open: whole(12),
            tcp_established: whole(13),
            tcp_time_wait: whole(14),
            tcp_retransmits: whole(15),
            listen_overflows: whole(16),
            net_in_bytes: whole(17),
            net_out_bytes: whole(18),
            tcp_segments_sent: whole(19),
            net_drops: whole(20),
            ..ResourceSecond::default()
        };
        (usage, second)
    }

    #[test]
    fn each_number_of_two_hosts_is_added() {
        let ((one, first), (two, second), (both, sum)) = (numbered(1), numbered(10), numbered(11));
        assert_eq!(RoleUsage { parts: both.parts.clone(), ..added(&one, &two, "other") }, both);
        let networks = with_network(&first, &second);
        let of_role = plus(&first, &second);
        // A role has no network of its own, and a machine's CPU and memory count once.
        let unknown = ResourceSecond::default();
        let expected = ResourceSecond { cpu_others: second.cpu_others, ..with_network(&sum, &unknown) };
        assert_eq!(with_network(&of_role, &unknown), expected);
        assert_eq!(network(&networks, "h"), network(&sum, "h"));
        assert_eq!((networks.cpu_user, of_role.net_in_bytes), (first.cpu_user, first.net_in_bytes));
    }

    #[test]
    fn namespaces_of_one_machine_share_its_cpu_and_not_their_networks() {
        let (proxy, client) = (facts("p", "one"), facts("c", "one"));
        let both = joined(vec![
            (&proxy, window(Role::Proxy, &[row("proxy", 0.5, 0), row("host", 1.5, 10)])),
            (&client, window(Role::Client, &[row("client", 0.9, 0), row("host", 1.6, 7)])),
        ])
        .expect("a window");
        assert_eq!(
            seen(&both),
            [
                ("proxy", Some(0.5), Some(0)),
                ("client", Some(0.9), Some(0)),
                ("host", Some(1.5), Some(17)),
                ("network/p", None, Some(10)),
                ("network/c", None, Some(7))
            ]
        );
        assert_eq!((both.length_s, both.own_cpu_us, both.usage.len()), (2.0, 14, 2));
        let [machine] = &both.owners[..] else { panic!("{:?}", both.owners) };
        assert_eq!((machine.host.as_str(), machine.cpus.len()), ("p", 2));
    }

    #[test]
    fn several_clients_are_one_role_and_other_machines_have_their_names() {
        let [proxy, one, two] = [facts("p", "m1"), facts("c1", "m2"), facts("c2", "m3")];
        let all = joined(vec![
            (&proxy, window(Role::Proxy, &[row("proxy", 0.5, 0), row("host", 1.5, 10)])),
            (&one, window(Role::Client, &[row("client", 0.9, 0), row("host", 1.0, 7)])),
            (&two, window(Role::Client, &[row("client", 0.8, 0), row("host", 1.1, 8)])),
        ])
        .expect("a window");
        let names: Vec<&str> = all.series.iter().map(|row| row.who.as_str()).collect();
        assert_eq!(names, ["proxy", "client", "client/c1", "client/c2", "host", "host/c1", "host/c2"]);
        assert!((all.series[1].cpu_user.expect("known") - 1.7).abs() < 1e-9);
        let clients = all.usage.iter().find(|usage| usage.role == Role::Client).expect("there");
        assert_eq!((clients.cpu_user_us, clients.threads_max, clients.pss_max_bytes), (10, Some(4), None));
        assert_eq!(clients.parts.keys().collect::<Vec<_>>(), ["c1", "c2"]);
        assert_eq!(all.owners.iter().map(|it| it.host.as_str()).collect::<Vec<_>>(), ["p", "c1", "c2"]);
    }

    #[test]
    fn parts_of_a_product_on_several_hosts_are_its_own_and_no_host_stands_for_them() {
        let [front, store] = [facts("front", "m1"), facts("store", "m2")];
        let with_part = |part: &str, cpu| {
            let rows = [row("proxy", cpu, 0), row(&format!("proxy/{part}"), cpu, 0), row("host", 1.0, 0)];
            let mut all = window(Role::Proxy, &rows);
            let own = all.usage[0].clone();
            all.usage[0].parts.insert(part.to_owned(), own);
            all
        };
        let all =
            joined(vec![(&front, with_part("proxy", 0.5)), (&store, with_part("store-1", 0.25))]).expect("a window");
        let seen: Vec<_> = all.series.iter().map(|row| (row.who.as_str(), row.cpu_user.expect("known"))).collect();
        let expected =
            [("proxy", 0.75), ("proxy/proxy", 0.5), ("proxy/store-1", 0.25), ("host", 1.0), ("host/store", 1.0)];
        assert_eq!(seen, expected);
        let [usage] = &all.usage[..] else { panic!("{:?}", all.usage) };
        assert_eq!(usage.parts.keys().collect::<Vec<_>>(), ["proxy", "store-1"]);
        assert_eq!((usage.cpu_user_us, usage.parts["store-1"].cpu_user_us), (10, 5));
    }

    #[test]
    fn one_host_is_taken_as_it_is_and_none_is_none() {
        let here = facts("local", "one");
        let alone = window(Role::Client, &[row("client", 0.9, 1), row("host", 1.0, 7)]);
        assert_eq!(joined(vec![(&here, alone.clone())]), Some(alone));
        assert_eq!(joined(Vec::new()), None);
    }
}
