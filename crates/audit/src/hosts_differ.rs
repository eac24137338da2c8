//! Clients that are not alike.

use weir_model::record::{Finding, HostRecord, Role, Severity};
use weir_model::text::list;

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["hosts-differ"],
    sees: "clients that differ in model of CPU, number of CPUs or kernel. A slower or later one has its own part in \
         every latency; `client-lag` and `client-room` judge how well each did",
    threshold: "any difference: it is noted",
    source: "",
    remedy: "take clients of one kind; `hosts` of the load says how each did",
    blind: "",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    differ(e.hosts)
}

/// The same of hosts on which nothing was measured yet.
pub fn differ(hosts: &[HostRecord]) -> Option<Finding> {
    let clients: Vec<&HostRecord> = hosts.iter().filter(|host| host.has(Role::Client)).collect();
    let (first, others) = clients.split_first()?;
    type Fact = fn(&HostRecord) -> String;
    let facts: [(&str, Fact); 3] = [
        ("model of CPU", |host| host.facts.cpu_model.clone()),
        ("number of CPUs", |host| host.cpus.len().to_string()),
        ("kernel", |host| host.facts.kernel.clone()),
    ];
    let differs = |(_, of): &&(&str, Fact)| others.iter().any(|other| of(other) != of(first));
    let names: Vec<&str> = facts.iter().filter(differs).map(|(name, _)| *name).collect();
    if names.is_empty() {
        return None;
    }
    let message = format!("the {} clients differ in {}", clients.len(), list(&names));
    CHECK.finding(Severity::Note, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::three_hosts;

    #[test]
    fn clients_that_differ_are_noted() {
        let mut trial = three_hosts();
        let mut second = trial.hosts[1].clone();
        second.name = "client-2".into();
        trial.hosts.push(second);
        assert_eq!(trial.check(super::check), None);
        trial.hosts[3].facts.cpu_model = "another".into();
        trial.hosts[3].cpus = vec![0];
        let message = trial.check(super::check).expect("fires").message;
        assert_eq!(message, "the 2 clients differ in model of CPU and number of CPUs");
        trial.hosts.truncate(3);
        trial.hosts[0].facts.cpu_model = "a third".into();
        assert_eq!(trial.check(super::check), None, "proxy and origin may be other machines");
    }
}
