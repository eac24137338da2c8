//! Other processes on the roles' CPUs.

use weir_model::owners::{CpuUse, OtherProcess, Owners, RoleCpus};
use weir_model::record::{Finding, ResourceSecond, Severity};
use weir_model::text::list;

use super::{Evidence, finding};

/// CPUs used of one.
const MEAN: f64 = 0.05;
/// CPUs used of a role's in a second.
const SECOND: f64 = 0.1;
/// So many times the mean a second is told by itself.
const PEAK: f64 = 2.0;
/// CPUs used unseen of one.
const UNSEEN: f64 = 0.1;
/// A row shorter than this is not judged by itself.
const LEAST_ROW_S: f64 = 0.5;
/// By ticks of 10 ms a CPU, shorter windows say nothing.
const LEAST_S: f64 = 0.9;
/// So many CPUs are told of.
const CPUS: usize = 3;
/// What used less is not named.
const NAMED: f64 = 0.005;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let seen: Vec<String> = over_the_window(e).into_iter().chain(in_a_second(e)).collect();
    let message = if seen.is_empty() { unseen(e)? } else { format!("other processes used {}", seen.join("; ")) };
    finding("other-processes", Severity::Warning, message)
}

/// What was used of the busiest CPU over the window.
fn most(e: &Evidence<'_>) -> f64 {
    e.owners.iter().flat_map(|machine| &machine.cpus).filter_map(|cpu| cpu.others).fold(0.0, f64::max)
}

fn over_the_window(e: &Evidence<'_>) -> Option<String> {
    let all = e.owners.iter().flat_map(|machine| machine.cpus.iter().map(move |cpu| (machine, cpu)));
    let mut used: Vec<_> =
        all.filter_map(|(machine, cpu)| Some((machine, cpu.cpu, cpu.others.filter(|it| *it >= MEAN)?))).collect();
    used.sort_by(|a, b| b.2.total_cmp(&a.2));
    let texts: Vec<String> = used.iter().take(CPUS).map(|(machine, cpu, used)| of_cpu(machine, *cpu, *used)).collect();
    let more = if used.len() > CPUS { format!("; and {} more CPUs", used.len() - CPUS) } else { String::new() };
    (!texts.is_empty()).then(|| format!("{}{more}", texts.join("; ")))
}

/// `30 % of CPU 1, the proxy's: burner (pid 123) 30 %`.
fn of_cpu(machine: &Owners, cpu: u32, used: f64) -> String {
    let whose: Vec<&RoleCpus> = machine.roles.iter().filter(|role| role.cpus.contains(&cpu)).collect();
    let (host, whose, who) = (at(machine), named(&whose), told(machine, |it| it.on(&[cpu])));
    format!("{:.0} % of CPU {cpu}{host}, the {whose}'s{who}", used * 100.0)
}

fn in_a_second(e: &Evidence<'_>) -> Option<String> {
    let rows = e.series.iter().filter(|row| row.length_s >= LEAST_ROW_S && !row.is_of_part());
    let used = rows.filter_map(|row| Some((row, row.cpu_others.filter(|used| *used >= SECOND)?)));
    // A second like the others is told with the window.
    let (row, used) =
        used.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, used)| *used >= PEAK * most(e) || most(e) < MEAN)?;
    let machine = e.owners.iter().find(|machine| machine.roles.iter().any(|role| role.role.as_str() == row.who));
    Some(format!(
        "{:.0} % of a CPU of the {}'s in second {} of the window{}",
        used * 100.0,
        row.who,
        second(e.series, row),
        machine.map(|machine| told(machine, |it| it.peak)).unwrap_or_default()
    ))
}

/// Which second a row is of, from 1 on.
fn second(rows: &[ResourceSecond], row: &ResourceSecond) -> usize {
    rows.iter().filter(|other| other.who == row.who && other.time_ms <= row.time_ms).count()
}

/// What the ticks of the roles' CPUs say beyond what the roles used there.
fn unseen(e: &Evidence<'_>) -> Option<String> {
    if e.load.window_s < LEAST_S {
        return None;
    }
    let groups = e.owners.iter().flat_map(|machine| groups(machine).into_iter().map(move |cpus| (machine, cpus)));
    let over = groups.filter_map(|(machine, cpus)| {
        let beyond = beyond(machine, &cpus)?;
        let least = UNSEEN * (cpus.len() as f64).sqrt();
        (beyond >= least).then_some((machine, cpus, beyond))
    });
    let (machine, cpus, beyond) = over.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let whose: Vec<&RoleCpus> = machine.roles.iter().filter(|role| overlap(&role.cpus, &cpus)).collect();
    Some(format!(
        "processes that weir does not see used at least {beyond:.2} of the {} of the {}{} during the window",
        if cpus.len() == 1 { "CPU".to_owned() } else { format!("{} CPUs", cpus.len()) },
        named(&whose),
        at(machine),
    ))
}

/// CPUs that roles share, in sets that have no CPU in common. None where a role may be anywhere.
fn groups(machine: &Owners) -> Vec<Vec<u32>> {
    if machine.roles.iter().any(|role| role.cpus.is_empty()) {
        return Vec::new();
    }
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for role in &machine.roles {
        let (same, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| overlap(group, &role.cpus));
        let mut joined = same.concat();
        joined.extend(&role.cpus);
        joined.sort_unstable();
        joined.dedup();
        groups = others;
        groups.push(joined);
    }
    groups
}

fn overlap(a: &[u32], b: &[u32]) -> bool {
    a.iter().any(|cpu| b.contains(cpu))
}

/// What processes used of these CPUs beyond what the roles used there and what is named, by the kernel's ticks.
fn beyond(machine: &Owners, cpus: &[u32]) -> Option<f64> {
    let used: Option<f64> = cpus.iter().map(|cpu| of(machine, *cpu)?.processes).sum();
    let seen: f64 = cpus.iter().filter_map(|cpu| of(machine, *cpu)?.others).sum();
    let roles = machine.all_roles().map(|role| {
        let outside = role.strays.iter().flat_map(|strays| &strays.outside);
        let here = if overlap(&role.cpus, cpus) { role.used } else { 0.0 };
        outside.fold(here, |here, (cpu, used)| match (overlap(&role.cpus, cpus), cpus.contains(cpu)) {
            (true, false) => here - used,
            (false, true) => here + used,
            _ => here,
        })
    });
    Some(used? - roles.sum::<f64>() - seen)
}

fn of(machine: &Owners, cpu: u32) -> Option<&CpuUse> {
    machine.cpus.iter().find(|it| it.cpu == cpu)
}

/// `client and origin`.
fn named(roles: &[&RoleCpus]) -> String {
    let mut names: Vec<&str> = roles.iter().map(|role| role.role.as_str()).collect();
    names.dedup();
    list(&names)
}

/// ` of client-1`, where there are several hosts.
fn at(machine: &Owners) -> String {
    if machine.host.is_empty() { String::new() } else { format!(" of {}", machine.host) }
}

/// `: burner (pid 123) 30 %, cc1 (pid 9) 2 %`.
fn told(machine: &Owners, used: impl Fn(&OtherProcess) -> f64) -> String {
    let mut all: Vec<_> = machine.others.iter().filter(|it| !it.kernel).map(|it| (used(it), it)).collect();
    all.retain(|(used, _)| *used >= NAMED);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let text = |(used, it): &(f64, &OtherProcess)| {
        let children = if it.ended_children.is_some() { " with its ended children" } else { "" };
        format!("{} (pid {}){children} {:.0} %", it.name, it.pid, used * 100.0)
    };
    let texts: Vec<String> = all.iter().take(3).map(text).collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use weir_model::record::Role;

    use super::*;
    use crate::fixture::{Trial, good};

    /// The proxy on CPU 1, client and origin on CPU 0. A burner used so much of CPU 1, and the kernel's ticks show so much of it.
    pub fn beside(others: f64, ticks: f64) -> Vec<Owners> {
        let role = |role, cpus: &[u32], used| RoleCpus {
            role,
            cpus: cpus.to_vec(),
            used,
            run_delay: Some(0.1),
            ..RoleCpus::default()
        };
        let cpu = |cpu, processes, others| CpuUse {
            cpu,
            processes: Some(processes),
            others: Some(others),
            ..CpuUse::default()
        };
        let burner = OtherProcess {
            name: "burner".into(),
            pid: 123,
            kernel: false,
            used: BTreeMap::from([(1, others)]),
            peak: others.max(0.4),
            ended_children: None,
        };
        vec![Owners {
            cpus: vec![cpu(0, 0.7, 0.0), cpu(1, ticks, others)],
            roles: vec![role(Role::Client, &[0], 0.4), role(Role::Proxy, &[1], 0.6), role(Role::Origin, &[0], 0.3)],
            others: vec![burner],
            ..Owners::default()
        }]
    }

    /// A second of the proxy in which others used so much.
    pub fn second(others: f64) -> Vec<ResourceSecond> {
        let row = ResourceSecond {
            length_s: 1.0,
            who: "proxy".into(),
            cpu_others: Some(others),
            ..ResourceSecond::default()
        };
        vec![row]
    }

    fn with(owners: Vec<Owners>) -> Trial {
        Trial { owners, ..good() }
    }

    #[test]
    fn fires_from_a_twentieth_of_one_cpu_on_and_names_who_it_was() {
        assert_eq!(with(beside(0.04, 0.64)).check(check), None);
        let message = with(beside(0.3, 0.9)).check(check).expect("fires").message;
        assert_eq!(message, "other processes used 30 % of CPU 1, the proxy's: burner (pid 123) 30 %");
    }

    #[test]
    fn one_core_of_many_is_enough() {
        let mut owners = beside(0.3, 0.9);
        let idle = (2..64).map(|cpu| CpuUse { cpu, processes: Some(0.0), others: Some(0.0), ..CpuUse::default() });
        owners[0].cpus.extend(idle);
        owners[0].roles[1].cpus.extend(2..64);
        assert!(with(owners).check(check).is_some());
    }

    #[test]
    fn a_single_second_is_found() {
        let mut trial = with(beside(0.03, 0.63));
        let row = |time_ms, who: &str, others| ResourceSecond {
            time_ms,
            length_s: 1.0,
            who: who.into(),
            cpu_others: Some(others),
            ..ResourceSecond::default()
        };
        trial.series = vec![row(1, "proxy", 0.05), row(1, "client", 0.09), row(2, "proxy", 0.09), row(3, "proxy", 0.0)];
        assert_eq!(trial.check(check), None);
        trial.series[2].cpu_others = Some(0.4);
        let message = trial.check(check).expect("fires").message;
        assert!(
            message.contains("40 % of a CPU of the proxy's in second 2") && message.contains("burner"),
            "{message}"
        );
        trial.series[2].length_s = 0.3;
        assert_eq!(trial.check(check), None, "a short row");
    }

    #[test]
    fn a_second_is_told_beside_its_window_from_twice_the_mean_on() {
        let second_of = |others| {
            let series = second(others);
            Trial { series, ..with(beside(0.3, 0.9)) }.check(check).expect("fires").message.contains("in second")
        };
        assert_eq!([0.59, 0.61].map(second_of), [false, true]);
    }

    #[test]
    fn what_is_not_seen_shows_in_the_ticks() {
        assert_eq!(with(beside(0.0, 0.69)).check(check), None);
        let message = with(beside(0.0, 0.8)).check(check).expect("fires").message;
        assert_eq!(
            message,
            "processes that weir does not see used at least 0.20 of the CPU of the proxy during the window"
        );
        let mut short = with(beside(0.0, 0.8));
        short.load.window_s = 0.5;
        assert_eq!(short.check(check), None);
        let mut unknown = beside(0.0, 0.8);
        unknown[0].roles[2].cpus.clear();
        assert_eq!(with(unknown).check(check), None, "a role may be anywhere");
        let mut unread = beside(0.0, 0.8);
        unread[0].cpus[1].processes = None;
        assert_eq!(with(unread).check(check), None);
        assert_eq!(good().check(check), None, "nothing was recorded");
    }

    /// The roles used more than the CPU's processes: they were charged for interrupts.
    #[test]
    fn interrupts_charged_to_the_roles_are_nobody_elses() {
        assert_eq!(with(beside(0.0, 0.3)).check(check), None);
    }

    /// A product that ran on the client's CPU is no stranger there.
    #[test]
    fn what_a_role_used_elsewhere_is_its_own() {
        let mut owners = beside(0.0, 0.2);
        owners[0].cpus[0].processes = Some(1.0);
        assert!(with(owners.clone()).check(check).is_some());
        owners[0].roles[1].strays = crate::affinity::tests::strays(0.4, 0.3)[0].roles[1].strays.clone();
        assert_eq!(with(owners).check(check), None);
    }

    #[test]
    fn roles_that_share_a_cpu_are_judged_together() {
        let owners = &beside(0.0, 0.6)[0];
        assert_eq!(groups(owners), [vec![1], vec![0]]);
        let mut shared = owners.clone();
        shared.roles[2].cpus = vec![0, 1];
        assert_eq!(groups(&shared), [vec![0, 1]]);
    }
}
