//! Groups runs by machine: only runs of one group are compared. `history` calls it. It knows environments, and no numbers.
//!
//! What users change on purpose and then want to see in a history is no part of a machine: kernel, system, settings, and versions.

use weir_model::record::{Environment, Role};
use weir_model::text::{Unit, list, unique};
use weir_report::tables::{host_facts, run_facts};

use super::{Machine, OneRun, RunFacts};

/// Names and values.
type Facts = Vec<(String, String)>;

/// Of what [`host_facts`] tells, what makes a machine another one.
const OF_HOST: [&str; 5] = ["Host", "Architecture", "CPU", "CPUs online", "Virtualization"];

/// The runs of one machine.
pub(super) struct Group {
    pub label: String,
    pub facts: Facts,
    /// By date.
    pub runs: Vec<OneRun>,
}

impl Group {
    pub fn machine(&self, facts: impl Fn(&OneRun) -> RunFacts) -> Machine {
        Machine { label: self.label.clone(), facts: self.facts.clone(), runs: self.runs.iter().map(facts).collect() }
    }
}

/// Runs by machine, in the order of the first runs. `any_host`: machines that differ in nothing but their names are one.
pub(super) fn groups(runs: Vec<OneRun>, any_host: bool) -> Vec<Group> {
    let with_facts = runs.into_iter().map(|run| (facts(&run.environment, any_host), run));
    let grouped = weir_model::text::grouped(with_facts);
    let mut groups: Vec<Group> =
        grouped.into_iter().map(|(facts, runs)| Group { label: name(&runs[0], any_host), facts, runs }).collect();
    let names: Vec<String> = groups.iter().map(|group| group.label.clone()).collect();
    for at in 0..groups.len() {
        let same = (0..names.len()).filter(|other| names[*other] == names[at]).collect::<Vec<_>>();
        if same.len() > 1 {
            let own = distinct(&groups, &same, at);
            groups[at].label = format!("{} ({own})", names[at]);
        }
    }
    // Two of them may differ in what is not shown.
    for at in 0..groups.len() {
        let earlier = groups[..at].iter().filter(|group| group.label == groups[at].label).count();
        if earlier > 0 {
            groups[at].label = format!("{}, {}", groups[at].label, earlier + 1);
        }
    }
    groups
}

fn name(run: &OneRun, any_host: bool) -> String {
    let environment = &run.environment;
    if any_host || environment.host.is_empty() { environment.cpu_model.clone() } else { environment.host.clone() }
}

/// The facts in which one of several groups differs from the others.
fn distinct(groups: &[Group], same: &[usize], own: usize) -> String {
    let names = unique(same.iter().flat_map(|at| groups[*at].facts.iter().map(|(name, _)| name.as_str())));
    let differs =
        |name: &&str| same.iter().any(|at| value(&groups[*at].facts, name) != value(&groups[own].facts, name));
    let words = names.into_iter().filter(differs);
    let words = words.map(|name| format!("{name} {}", value(&groups[own].facts, name).unwrap_or("not there")));
    list(&words.collect::<Vec<_>>())
}

fn value<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// What two runs must have in common to be of one machine.
fn facts(environment: &Environment, any_host: bool) -> Facts {
    let of_run =
        run_facts(environment).into_iter().filter(|(name, _)| name.starts_with("CPUs of ") || name == "Origin");
    if environment.hosts.is_empty() {
        return of_machine(environment, any_host).into_iter().chain(of_run).collect();
    }
    let mut facts: Facts = of_run.collect();
    for host in &environment.hosts {
        let roles: Vec<&str> = host.roles.iter().map(|role: &Role| role.as_str()).collect();
        facts.push((format!("Roles of {}", host.name), list(&roles)));
        facts.push((format!("CPUs of {}", host.name), weir_model::units::CpuList::text(&host.cpus)));
        let own = of_machine(&host.facts, any_host).into_iter();
        facts.extend(own.map(|(name, value)| (format!("{name} of {}", host.name), value)));
    }
    facts
}

fn of_machine(environment: &Environment, any_host: bool) -> Facts {
    let mut facts = host_facts(environment);
    facts.retain(|(name, _)| OF_HOST.contains(&name.as_str()) && !(any_host && name == "Host"));
    // Kernels keep some of it for themselves, and another one more.
    let quarters = (environment.memory_bytes as f64 / Unit::GIBIBYTES.size * 4.0).round() / 4.0;
    facts.push(("Memory".to_owned(), format!("{quarters} GiB")));
    facts
}
