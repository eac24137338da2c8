//! A product on CPUs that are not its own.

use weir_model::owners::{Owners, RoleCpus, Strays};
use weir_model::record::{Finding, Role, Severity};
use weir_model::text::list;
use weir_model::units::CpuList;

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &["affinity"],
    sees: "a product that used more CPU than it was given, or whose threads may run on CPUs that are not its own. \
         Pinning forbids that, but a product may set its threads' affinity itself",
    threshold: "5 % more than given in all, or 5 % of a CPU on those of client and origin, is invalid. Threads that used 1 % \
         of a CPU and might run elsewhere are suspect",
    source: "5 % is the error of the accounting, which knows a thread's CPU at the end of each second. Threads that \
         hardly run do no harm",
    remedy: "turn off the product's own CPU pinning",
    blind: "threads that lived for less than a second between two samples; products that weir did not start. Kernel \
         workers of an io_uring may run on every CPU, whatever the affinity: they count",
    provoked: true,
    run: Some(check),
};

/// More than given, as a share of it.
const BEYOND: f64 = 0.05;
/// CPUs used on those of other roles.
const OUTSIDE: f64 = 0.05;
/// CPUs used by threads that might run elsewhere.
const MOVABLE: f64 = 0.01;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let given = f64::from(e.product_cpus);
    let used = e.role(Role::Proxy)?.cores_busy;
    // A product that others have started has the CPUs that they gave it.
    if !e.proxied || given == 0.0 {
        return None;
    }
    if used > given * (1.0 + BEYOND) {
        return CHECK.finding(Severity::Fatal, format!("the product used {used:.2} CPUs and was given {given:.0}"));
    }
    e.owners.iter().find_map(|machine| {
        let product = machine.roles.iter().find(|role| role.role == Role::Proxy && !role.cpus.is_empty())?;
        strayed(machine, product, product.strays.as_ref()?)
    })
}

fn strayed(machine: &Owners, product: &RoleCpus, strays: &Strays) -> Option<Finding> {
    let of_others = |cpu: &u32| machine.roles.iter().any(|role| role.role != Role::Proxy && role.cpus.contains(cpu));
    let outside: f64 = strays.outside.iter().filter(|(cpu, _)| of_others(cpu)).map(|(_, used)| used).sum();
    let threads = match strays.threads {
        1 => format!("a thread of the product ({})", strays.name),
        count => format!("{count} threads of the product ({})", strays.name),
    };
    let given = format!("it was given {}", cpus(&product.cpus));
    if outside >= OUTSIDE {
        let names: Vec<&str> = machine
            .roles
            .iter()
            .filter(|role| role.role != Role::Proxy && role.cpus.iter().any(|cpu| strays.outside.contains_key(cpu)))
            .map(|role| role.role.as_str())
            .collect();
        let where_ = cpus(&strays.outside.keys().copied().collect::<Vec<_>>());
        let message = format!("{threads} used {outside:.2} CPUs of the {}, on {where_}; {given}", list(&names));
        return CHECK.finding(Severity::Fatal, message);
    }
    if strays.used < MOVABLE {
        return None;
    }
    let message =
        format!("{threads} may run on {}, too, and used {:.2} CPUs; {given}", cpus(&strays.may_use), strays.used);
    CHECK.finding(Severity::Warning, message)
}

/// `CPU 1`, `CPUs 0-3`.
fn cpus(cpus: &[u32]) -> String {
    format!("{} {}", if cpus.len() == 1 { "CPU" } else { "CPUs" }, CpuList::text(cpus))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fixture::{Trial, good};

    /// A product on CPU 1 with threads that might run on CPU 0, the client's and the origin's.
    pub fn strays(used: f64, on_0: f64) -> Vec<Owners> {
        let role =
            |role, cpu: u32| RoleCpus { role, cpus: vec![cpu], used: 0.3, run_delay: Some(0.0), ..RoleCpus::default() };
        let strays =
            Strays { threads: 16, name: "faulty".into(), may_use: vec![0], used, outside: BTreeMap::from([(0, on_0)]) };
        let proxy = RoleCpus { strays: Some(strays), ..role(Role::Proxy, 1) };
        vec![Owners { roles: vec![role(Role::Client, 0), proxy, role(Role::Origin, 0)], ..Owners::default() }]
    }

    fn with(owners: Vec<Owners>) -> Trial {
        Trial { owners, ..good() }
    }

    #[test]
    fn fires_when_more_cpus_were_used_than_given() {
        let mut trial = good();
        assert_eq!(trial.check(check), None);
        trial.usage[1].cores_busy = 1.2;
        assert!(trial.check(check).is_some());
        trial.placement.proxy.clear();
        assert_eq!(trial.check(check), None, "nobody knows what it was given");
    }

    #[test]
    fn fires_when_it_ran_on_others_cpus() {
        let found = with(strays(0.3, 0.2)).check(check).expect("fires");
        assert_eq!(found.severity, Severity::Fatal);
        assert!(found.message.contains("0.20 CPUs of the client and origin, on CPU 0"), "{}", found.message);
        let mut elsewhere = strays(0.3, 0.2);
        elsewhere[0].roles[1].role = Role::Client;
        assert_eq!(with(elsewhere).check(check), None, "the client's own");
    }

    #[test]
    fn is_suspect_when_it_might_have_run_there() {
        assert_eq!(with(strays(0.3, 0.01)).check(check).expect("fires").severity, Severity::Warning);
        assert_eq!(with(strays(0.009, 0.009)).check(check), None, "a thread that hardly ran");
    }
}
