//! `weir hosts check`: reaches the hosts of a topology, asks each what it is, and has each pair that traffic uses measured.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use weir_host::{Host, HostFacts, threads};
use weir_lab::network::{self, Pair, Unmeasured};
use weir_model::Placement;
use weir_model::clock::ClockReading;
use weir_model::record::{Environment, Finding, HostClock, HostRecord, Role, Severity};
use weir_model::text::{list, unique};
use weir_model::topology::{HostSpec, PartError, Reach, Topology};
use weir_vitals::doctor::Check;

use super::show;
use crate::args::stop_on_signal;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::progress::{Status, template};
use crate::verbs::doctor;
use crate::verbs::run::remote::call;
use crate::verbs::topology::{self, ConnectResult, Reached, TopologyArgs};

/// What this verb calls itself where a host is kept to it.
const NAME: &str = "hosts-check";

/// What is known of the hosts of a topology, and of what lies between them.
#[derive(Debug, Default, Serialize)]
pub struct Checked {
    /// Kind of the topology.
    pub topology: &'static str,
    /// In the topology's order.
    pub hosts: Vec<CheckedHost>,
    /// Pairs that were measured.
    pub pairs: Vec<Pair>,
    /// Pairs that were not, in words.
    pub not_measured: Vec<String>,
    /// What would spoil a measurement.
    pub findings: Vec<Finding>,
}

/// A host.
#[derive(Debug, Default, Serialize)]
pub struct CheckedHost {
    pub name: String,
    pub roles: Vec<Role>,
    /// Parts of products that it is to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// How it is reached, in words.
    pub by: String,
    /// Why it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it said.
    #[serde(flatten)]
    pub said: Option<HostReport>,
}

/// What a host that was reached says of itself.
#[derive(Debug, Default, Serialize)]
pub struct HostReport {
    /// Equal where hosts share a machine.
    pub machine: String,
    /// The address that traffic uses.
    pub address: Option<IpAddr>,
    /// CPUs that roles may use.
    pub cpus: Vec<u32>,
    /// How well its clock is known, µs, either way.
    pub clock_error_us: f64,
    /// The shortest exchange over the control connection, µs.
    pub control_us: f64,
    /// Versions of the products that it has, where it runs any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub products: Option<BTreeMap<String, String>>,
    /// What its machine's doctor says: of the hosts on a machine, one is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doctor: Vec<Check>,
    /// The machine, as it describes itself.
    pub facts: Environment,
}

/// Runs it.
pub fn main(which: &TopologyArgs, json: bool) -> VerbResult {
    let topology = &which.read()?;
    let weir = which.binary(topology)?;
    // Until hosts are made nothing has to be removed, and nobody waits for one that does not answer.
    let early = topology.made().map(|_| stop_on_signal()).transpose()?;
    let status = Status::new(false, template("{spinner} {wide_msg}"), None);
    status.show("reaching the hosts");
    // There is no product whose CPUs anything has to keep off.
    let placement = Placement::default();
    let (reached, results) = topology::reach_each(topology, weir, NAME, &placement, &BTreeMap::new())?;
    let stop = early.map_or_else(stop_on_signal, Ok)?;
    let mut checked = Checked { topology: topology.kind(), ..Checked::default() };
    let hosts: Vec<Option<Arc<dyn Host>>> = results.iter().map(|result| result.as_ref().ok().cloned()).collect();
    status.show("asking the hosts");
    let clocks = clocks(&hosts);
    checked.hosts = ask_all(reached.specs(), &results, &clocks);
    let catalogue = crate::library::catalogue(&[])?;
    let known = catalogue.products().values();
    checked.findings.extend(topology.check_part_names(known.clone()).err().map(unknown_part));
    let (pairs, not_measured) = pairs(topology, topology.front(known), &results);
    checked.not_measured = not_measured;
    let scratch = tempfile::Builder::new().prefix("weir-hosts-").tempdir().map_err(Failure::missing)?;
    for (number, (from, to)) in pairs.iter().enumerate() {
        let names = (&from.facts().name, &to.facts().name);
        status.show(format!("{} to {}, {} of {}", names.0, names.1, number + 1, pairs.len()));
        let folder = scratch.path().join(format!("pair-{number}"));
        match network::measure(from, to, &folder, &stop) {
            Ok(pair) => checked.pairs.push(pair),
            Err(Unmeasured::Stopped) => return Err(Failure::interrupted("stopped; nothing of weir's is left there")),
            Err(why) => checked.findings.push(unmeasured(from.as_ref(), to.as_ref(), &why)),
        }
    }
    for (checked, host) in checked.hosts.iter_mut().zip(&hosts) {
        if let Some(why) = host.as_ref().and_then(|host| host.lost()) {
            checked.error = Some(format!("the host {} was lost: {why}", checked.name));
        }
    }
    let drifted = drifted(&hosts, &clocks);
    let found = findings(&reached, &hosts, &checked, &drifted);
    checked.findings.extend(found);
    drop(status);
    match json {
        true => out::json(&checked).map(drop)?,
        false => show::show(&checked)?,
    }
    Ok(exit(&checked))
}

fn exit(checked: &Checked) -> Exit {
    if checked.hosts.iter().any(|host| host.error.is_some()) {
        return Exit::Missing;
    }
    let bad = checked.findings.iter().any(|finding| finding.severity == Severity::Fatal);
    if bad { Exit::Failed } else { Exit::Ok }
}

/// The clocks of those that were reached, by name.
fn clocks(hosts: &[Option<Arc<dyn Host>>]) -> BTreeMap<String, ClockReading> {
    let read = |host: &Arc<dyn Host>| Some((host.facts().name.clone(), host.read_clock().ok()?));
    hosts.iter().flatten().filter_map(read).collect()
}

/// By how much each clock may be wrong since it was read first.
fn drifted(hosts: &[Option<Arc<dyn Host>>], before: &BTreeMap<String, ClockReading>) -> Vec<HostClock> {
    let since = |(host, now): (String, ClockReading)| Some(HostClock::between(&host, before.get(&host)?, &now));
    clocks(hosts).into_iter().filter_map(since).collect()
}

/// Asks the hosts for their doctors, and then for the rest: a doctor would see others at work.
fn ask_all(specs: &[HostSpec], results: &[ConnectResult], clocks: &BTreeMap<String, ClockReading>) -> Vec<CheckedHost> {
    let doctors = at_once(specs, results, |_, host| {
        let folder = host.facts().work.clone().unwrap_or_else(|| ".".into());
        match speaks_for_its_machine(specs, results, host) {
            true => call::<Vec<Check>>(host, "doctor", json!(folder), &mut |_| {}),
            false => Ok(Vec::new()),
        }
    });
    let products = at_once(specs, results, products);
    let asked = doctors.into_iter().zip(products);
    let checked = |((spec, result), (doctor, products)): ((&HostSpec, &ConnectResult), _)| {
        let (said, error) = match (result, doctor, products) {
            (Ok(host), Some(Ok(doctor)), Some(Ok(products))) => {
                (Some(said(host.facts(), clocks.get(&spec.name), products, doctor)), None)
            }
            (Err(error), ..) => (None, Some(error.to_string())),
            (_, Some(Err(failure)), _) | (.., Some(Err(failure))) => (None, Some(Failure::to_string(&failure))),
            (Ok(_), ..) => (None, None),
        };
        let HostSpec { name, roles, parts, .. } = spec.clone();
        CheckedHost { name, roles, parts, by: by(&spec.reach), error, said }
    };
    specs.iter().zip(results).zip(asked).map(checked).collect()
}

/// Calls `ask` with all hosts that were reached at the same time. Others have no result.
fn at_once<T: Send>(
    specs: &[HostSpec],
    results: &[ConnectResult],
    ask: impl Fn(&HostSpec, &Arc<dyn Host>) -> T + Sync,
) -> Vec<Option<T>> {
    let all: Vec<_> = specs.iter().zip(results).collect();
    threads::at_once(&all, |(spec, result)| result.as_ref().ok().map(|host| ask(spec, host)))
}

fn speaks_for_its_machine(specs: &[HostSpec], results: &[ConnectResult], host: &Arc<dyn Host>) -> bool {
    let machine = &host.facts().machine;
    let on_it = specs
        .iter()
        .zip(results)
        .filter(|(_, result)| result.as_ref().is_ok_and(|other| other.facts().machine == *machine));
    let first = on_it.min_by_key(|(spec, _)| !spec.roles.contains(&Role::Proxy));
    first.is_some_and(|(spec, _)| spec.name == host.facts().name)
}

/// Versions of the products that a host has, where it is not only a client.
fn products(spec: &HostSpec, host: &Arc<dyn Host>) -> Result<Option<BTreeMap<String, String>>, Failure> {
    if spec.roles == [Role::Client] && spec.parts.is_empty() {
        return Ok(None);
    }
    let catalogue = crate::library::catalogue(&[])?;
    let names: Vec<&String> = catalogue.products().keys().collect();
    call(host, "list", json!({ "products": names }), &mut |_| {}).map(Some)
}

fn said(
    facts: &HostFacts,
    clock: Option<&ClockReading>,
    products: Option<BTreeMap<String, String>>,
    doctor: Vec<Check>,
) -> HostReport {
    let clock_error_us = clock.map_or(0, |clock| clock.error_ns) as f64 / 1e3;
    HostReport {
        machine: facts.machine.clone(),
        address: facts.address,
        cpus: facts.cpus.clone(),
        clock_error_us,
        // The error is half of it.
        control_us: clock_error_us * 2.0,
        products,
        doctor,
        facts: facts.environment.clone(),
    }
}

/// How a host is reached, in words.
fn by(reach: &Reach) -> String {
    match reach {
        Reach::Local => "this machine".to_owned(),
        Reach::Namespace(name) => format!("namespace {name}"),
        Reach::Ssh { destination, .. } => format!("ssh {destination}"),
        Reach::Pod { name, .. } => format!("pod {name}"),
        Reach::Command(command) => command.join(" "),
        Reach::Made => "made by weir".to_owned(),
    }
}

type Ends = (Arc<dyn Host>, Arc<dyn Host>);

/// The pairs that traffic uses, and which were left out. Each client speaks with the proxy, and the proxy with each host that has a part of
/// it and with each origin. Without a proxy it is the first client and the first origin. `front` is the index of the proxy's host.
fn pairs(topology: &Topology, front: usize, results: &[ConnectResult]) -> (Vec<Ends>, Vec<String>) {
    let hosts = topology.hosts();
    let with = |has: &dyn Fn(&HostSpec) -> bool| -> Vec<usize> {
        hosts.iter().enumerate().filter(|(_, host)| has(host)).map(|(place, _)| place).collect()
    };
    let of = |role: Role| with(&|host| host.roles.contains(&role));
    let (clients, origins) = (of(Role::Client), of(Role::Origin));
    let parts = with(&|host| !host.parts.is_empty() && host.name != hosts[front].name);
    let mut wanted: Vec<(usize, usize)> = clients.iter().map(|client| (*client, front)).collect();
    wanted.extend(parts.into_iter().chain(origins.iter().copied()).map(|other| (front, other)));
    wanted.extend(clients.first().copied().zip(origins.first().copied()));
    let (mut pairs, mut not_measured) = (Vec::new(), Vec::new());
    for (from, to) in unique(wanted) {
        match (&results[from], &results[to]) {
            (Ok(one), Ok(other)) => pairs.push((Arc::clone(one), Arc::clone(other))),
            _ => not_measured.push(format!("{} to {}: not both are reached", hosts[from].name, hosts[to].name)),
        }
    }
    let direct = (clients.len() * origins.len()).saturating_sub(1);
    if direct > 0 {
        not_measured.push(format!("{direct} more of clients to origins, which only `direct` uses"));
    }
    (pairs, not_measured)
}

/// A part that no product has. The user's libraries are not read here.
fn unknown_part(error: PartError) -> Finding {
    Finding {
        check: "unknown-part".to_owned(),
        severity: Severity::Warning,
        message: error.found,
        remedy: format!("{}; a product of a --library is not known here", error.wanted),
    }
}

/// Why a pair was not measured.
fn unmeasured(from: &dyn Host, to: &dyn Host, why: &Unmeasured) -> Finding {
    let (from, to) = (from.facts(), to.facts());
    let (check, message, remedy) = match why {
        Unmeasured::Unanswered(why) => (
            "no-traffic",
            format!("{} gets no responses from {} at {}: {why}", from.name, to.name, to.traffic()),
            "let all TCP ports through between these addresses (firewall, security group, network policy)",
        ),
        why => ("not-measured", format!("{} to {}: {why}", from.name, to.name), "see the message"),
    };
    Finding { check: check.to_owned(), severity: Severity::Fatal, message, remedy: remedy.to_owned() }
}

/// What the doctors say, and what hosts, clocks and pairs show.
fn findings(
    reached: &Reached,
    hosts: &[Option<Arc<dyn Host>>],
    checked: &Checked,
    clocks: &[HostClock],
) -> Vec<Finding> {
    let shared = hosts.iter().flatten().filter_map(|host| reached.shared_cpus(host.as_ref()));
    let shared = shared.map(|error| Finding {
        check: "shared-cpus".to_owned(),
        severity: Severity::Fatal,
        message: error.to_string(),
        remedy: String::new(),
    });
    let records: Vec<HostRecord> = checked.hosts.iter().filter_map(record).collect();
    let mut all: Vec<Finding> = shared.chain(network::findings(&records, clocks, &checked.pairs)).collect();
    for host in &checked.hosts {
        let Some(said) = &host.said else { continue };
        let names = on_machine(checked, &said.machine);
        let of_machine = |finding: Finding| Finding { message: format!("{names}: {}", finding.message), ..finding };
        all.extend(doctor::findings(&said.doctor).into_iter().map(of_machine));
    }
    all
}

/// The hosts of a machine, in words.
pub fn on_machine(checked: &Checked, machine: &str) -> String {
    let on_it = checked.hosts.iter().filter(|host| host.said.as_ref().is_some_and(|said| said.machine == machine));
    list(&on_it.map(|host| host.name.as_str()).collect::<Vec<_>>())
}

fn record(host: &CheckedHost) -> Option<HostRecord> {
    let said = host.said.as_ref()?;
    Some(HostRecord {
        name: host.name.clone(),
        roles: host.roles.clone(),
        parts: host.parts.clone(),
        machine: said.machine.clone(),
        address: said.address,
        cpus: said.cpus.clone(),
        facts: said.facts.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_fake_host::FakeHost;
    use weir_host::HostError;
    use weir_model::topology::Netns;

    fn result(name: &str, machine: &str) -> ConnectResult {
        let facts = HostFacts { name: name.into(), machine: machine.into(), ..HostFacts::default() };
        Ok(Arc::new(FakeHost::new(|_| Default::default(), |_| Default::default()).with_facts(facts, 0)))
    }

    fn named(pairs: &[Ends]) -> Vec<(String, String)> {
        pairs.iter().map(|(from, to)| (from.facts().name.clone(), to.facts().name.clone())).collect()
    }

    #[test]
    fn pairs_are_those_of_the_traffic() {
        let results = ["client-1", "client-2", "proxy", "origin-1", "origin-2"].map(|name| result(name, name));
        let (found, not_measured) = pairs(&Topology::netns(2, 2, Netns::default()), 2, &results);
        let wanted = [
            ("client-1", "proxy"),
            ("client-2", "proxy"),
            ("proxy", "origin-1"),
            ("proxy", "origin-2"),
            ("client-1", "origin-1"),
        ];
        assert_eq!(named(&found), wanted.map(|(from, to)| (from.to_owned(), to.to_owned())));
        assert_eq!(not_measured, ["3 more of clients to origins, which only `direct` uses"]);
        let (found, not_measured) = pairs(&Topology::local(), 0, &[result("local", "m")]);
        assert_eq!((named(&found).len(), not_measured), (1, Vec::<String>::new()));
    }

    #[test]
    fn a_proxy_of_parts_speaks_with_each_host_that_has_one() {
        let host = |name: &str, roles: &str, k: u8| {
            format!("[[host]]\nname = \"{name}\"\nroles = [{roles}]\nssh = \"{name}\"\naddress = \"10.0.0.{k}\"\n")
        };
        let text = host("c", "\"client\"", 1)
            + &host("s1", "\"proxy:store-1\"", 2)
            + &host("f", "\"proxy:front\", \"proxy:store-3\"", 3)
            + &host("s2", "\"proxy:store-2\"", 4);
        let topology = Topology::parse("hosts.toml", &text).expect("valid");
        let results = ["c", "s1", "f", "s2"].map(|name| result(name, name));
        let (found, not_measured) = pairs(&topology, topology.front(std::iter::empty()), &results);
        let wanted = [("c", "f"), ("f", "s1"), ("f", "s2")].map(|(from, to)| (from.to_owned(), to.to_owned()));
        assert_eq!((named(&found), not_measured), (wanted.to_vec(), Vec::<String>::new()));
    }

    #[test]
    fn pairs_of_a_host_that_is_not_reached_are_not_measured() {
        let lost = Err(HostError::Failed("no".into()));
        let (found, not_measured) = pairs(
            &Topology::netns(1, 1, Netns::default()),
            1,
            &[result("client-1", "a"), lost, result("origin-1", "b")],
        );
        assert_eq!(named(&found), [("client-1".to_owned(), "origin-1".to_owned())]);
        assert_eq!(
            not_measured,
            ["client-1 to proxy: not both are reached", "proxy to origin-1: not both are reached"]
        );
    }

    #[test]
    fn one_host_of_a_machine_asks_its_doctor() {
        let topology = Topology::netns(2, 1, Netns::default());
        let results = [result("client-1", "a"), result("client-2", "b"), result("proxy", "a"), result("origin-1", "b")];
        let speaks = results.iter().map(|one| {
            let host = one.as_ref().expect("reached");
            speaks_for_its_machine(topology.hosts(), &results, host)
        });
        assert_eq!(speaks.collect::<Vec<_>>(), [false, true, true, false]);
    }

    #[test]
    fn the_status_follows_the_worst() {
        let mut checked = Checked { hosts: vec![CheckedHost::default()], ..Checked::default() };
        let finding = |severity| Finding { check: "x".into(), severity, message: "y".into(), remedy: String::new() };
        checked.findings = vec![finding(Severity::Warning)];
        assert_eq!(exit(&checked), Exit::Ok);
        checked.findings.push(finding(Severity::Fatal));
        assert_eq!(exit(&checked), Exit::Failed);
        checked.hosts[0].error = Some("no".into());
        assert_eq!(exit(&checked), Exit::Missing);
    }
}
