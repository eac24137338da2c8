//! Lists what else differs between two runs: machine, weir, products, suite. Each may be the cause of a change, so `output` shows them
//! before any number.

use std::collections::BTreeSet;

use serde::Serialize;
use weir_model::Topology;
use weir_model::record::{CaseId, Environment, ProductFacts, Role};
use weir_model::suite::{Load, Suite};
use weir_model::text::unique;
use weir_model::units::HumanDuration;

use crate::ComparedRun;
use weir_report::files;
use weir_report::run::Trial;
use weir_report::summary::host_words;
use weir_report::tables::{host_facts, machine_facts, run_facts, short_hash};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs: `kernel`, `alder's version`.
    pub what: String,
    /// Its value in the run before.
    pub before: String,
    /// Its value in the run after.
    pub after: String,
}

/// The number of characters shown of a line of configuration.
const LINE_SHOWN: usize = 60;

/// All differences; products only as far as `cases` names them.
pub(super) fn differences(before: &ComparedRun, after: &ComparedRun, cases: &[CaseId]) -> Vec<Difference> {
    let mut all = Differences::default();
    match (&before.run.environment, &after.run.environment) {
        (Some(a), Some(b)) => {
            all.push("topology", &topology(before, a), &topology(after, b));
            machine(&mut all, a, b);
            products(&mut all, a, b, cases);
            findings(&mut all, a, b);
        }
        (a, b) => all.push("machine", &known(a, "environment.json"), &known(b, "environment.json")),
    }
    configurations(&mut all, before, after, cases);
    all.push("I/O of client", &drivers(before), &drivers(after));
    match (&before.suite, &after.suite) {
        (Some(a), Some(b)) => suites(&mut all, a, b, cases),
        // Two unknown values may still differ.
        (a, b) => all.0.push(Difference {
            what: "suite".to_owned(),
            before: known(a, "run.toml"),
            after: known(b, "run.toml"),
        }),
    }
    all.0
}

fn known<T>(record: &Option<T>, file: &str) -> String {
    if record.is_some() { "known".to_owned() } else { format!("unknown: {file} cannot be read") }
}

#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    /// Adds an entry if the values differ.
    fn push(&mut self, what: impl Into<String>, before: &str, after: &str) {
        if before != after {
            let shown = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
            self.0.push(Difference { what: what.into(), before: shown(before), after: shown(after) });
        }
    }
}

fn machine(all: &mut Differences, a: &Environment, b: &Environment) {
    if a.hosts.is_empty() && b.hosts.is_empty() {
        facts(all, &machine_facts(a), &machine_facts(b));
    } else {
        hosts(all, a, b);
        facts(all, &run_facts(a), &run_facts(b));
    }
    // Of one version there may be several programs.
    if a.weir_version == b.weir_version {
        all.push("weir", &hash_words(&a.weir_sha256), &hash_words(&b.weir_sha256));
    }
}

type Facts = Vec<(String, String)>;

fn facts(all: &mut Differences, old: &Facts, new: &Facts) {
    for name in unique(old.iter().chain(new).map(|(name, _)| name)) {
        all.push(name.as_str(), &of(old, name), &of(new, name));
    }
}

fn of(facts: &Facts, name: &str) -> String {
    facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// The hosts of each role. What differs alike for all roles is listed once.
fn hosts(all: &mut Differences, a: &Environment, b: &Environment) {
    let by_role = [Role::Proxy, Role::Client, Role::Origin].map(|role| (role, of_role(a, role), of_role(b, role)));
    let names = unique(by_role.iter().flat_map(|(_, old, new)| old.iter().chain(new)).map(|(name, _)| name));
    for name in names {
        let differ = by_role.each_ref().map(|(role, old, new)| (role, of(old, name), of(new, name)));
        let [(_, old, new), ..] = &differ;
        if differ.iter().all(|(_, before, after)| before == old && after == new) {
            all.push(name.as_str(), old, new);
            continue;
        }
        for (role, old, new) in &differ {
            all.push(format!("{name} of {}", role.as_str()), old, new);
        }
    }
}

/// What a role's machines are: of several hosts each value once.
fn of_role(environment: &Environment, role: Role) -> Facts {
    let of_machine = |machine: &Environment| {
        let mut facts = host_facts(machine);
        facts.extend(machine.sysctls.clone());
        facts
    };
    if environment.hosts.is_empty() {
        return of_machine(environment);
    }
    let hosts: Facts =
        environment.hosts.iter().filter(|host| host.has(role)).flat_map(|host| of_machine(&host.facts)).collect();
    let values = |name: &String| {
        let values = unique(hosts.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()));
        values.join(" and ")
    };
    unique(hosts.iter().map(|(name, _)| name)).into_iter().map(|name| (name.clone(), values(name))).collect()
}

/// `netns, 3 hosts on one machine: ...`.
fn topology(run: &ComparedRun, environment: &Environment) -> String {
    if environment.hosts.is_empty() {
        return "one machine, over loopback".to_owned();
    }
    let text = weir_model::regular::read_text(&run.run.folder.join("topology.toml")).ok();
    let known = text.and_then(|text| Topology::parse("topology.toml", &text).ok());
    format!("{}, {}", known.map_or("hosts", |topology| topology.kind()), host_words(&environment.hosts))
}

fn hash_words(hash: &str) -> String {
    format!("SHA-256 {}...", short_hash(hash))
}

fn products(all: &mut Differences, a: &Environment, b: &Environment, cases: &[CaseId]) {
    let names: BTreeSet<&str> = cases.iter().map(|case| case.product.as_str()).chain(a.origin.as_deref()).collect();
    for name in names {
        let facts =
            |environment: &'_ Environment| environment.products.iter().find(|facts| facts.name == name).cloned();
        let (Some(old), Some(new)) = (facts(a), facts(b)) else { continue };
        if old.version != new.version {
            all.push(format!("{name}'s version"), &old.version, &new.version);
        } else if old.sha256 != new.sha256 {
            let binary =
                |facts: &ProductFacts| format!("{} of {}, {}", hash_words(&facts.sha256), facts.from, facts.version);
            all.push(format!("{name}'s binary"), &binary(&old), &binary(&new));
        }
    }
}

/// Findings of the doctor that only one run has.
fn findings(all: &mut Differences, a: &Environment, b: &Environment) {
    let names = |of: &Environment| of.doctor.iter().map(|finding| finding.check.clone()).collect::<BTreeSet<_>>();
    let (old, new) = (names(a), names(b));
    let only = |these: &BTreeSet<String>, others: &BTreeSet<String>| {
        these.difference(others).map(|name| name.trim_start_matches("doctor-")).collect::<Vec<_>>().join(", ")
    };
    all.push("the doctor's findings", &only(&old, &new), &only(&new, &old));
}

/// Differences of configurations, without ports and folders. Only lines that every trial of a case has are compared,
/// because a product may write values of its own, such as a random number. Each entry is listed once.
fn configurations(all: &mut Differences, before: &ComparedRun, after: &ComparedRun, cases: &[CaseId]) {
    let mut listed: Vec<(&str, &str)> = Vec::new();
    for case in cases {
        let entry = (case.product.as_str(), case.profile.as_str());
        let (old, new) = (lines(before, case), lines(after, case));
        // There are no configurations if the folder was cleaned up or the trials failed early.
        if listed.contains(&entry) || old.is_empty() || new.is_empty() || old == new {
            continue;
        }
        listed.push(entry);
        let what = format!("configuration of {} {}", case.product, case.profile);
        all.0.push(Difference { what, before: only(&old, &new), after: only(&new, &old) });
    }
}

fn lines(run: &ComparedRun, case: &CaseId) -> BTreeSet<String> {
    let of_trial = |trial: &Trial| -> BTreeSet<String> {
        let files = files::of_trial(&run.run, trial);
        files.iter().flat_map(|(_, text)| text.lines().map(|line| line.trim().to_owned())).collect()
    };
    run.trials(case).map(of_trial).reduce(|a, b| a.intersection(&b).cloned().collect()).unwrap_or_default()
}

/// The lines that only one side has, shortened.
fn only(these: &BTreeSet<String>, others: &BTreeSet<String>) -> String {
    let own: Vec<&String> = these.difference(others).filter(|line| !line.is_empty()).collect();
    let shown = |line: &str| match line.char_indices().nth(LINE_SHOWN) {
        Some((end, _)) => format!("\"{}...\"", &line[..end]),
        None => format!("\"{line}\""),
    };
    match own.as_slice() {
        [] => "no line of its own".to_owned(),
        [line] => shown(line),
        [line, _] => format!("{} and 1 more line", shown(line)),
        [line, rest @ ..] => format!("{} and {} more lines", shown(line), rest.len()),
    }
}

fn drivers(run: &ComparedRun) -> String {
    let loads = run.run.trials.iter().filter_map(|trial| trial.measurement.load.as_ref());
    loads.map(|load| load.driver.as_str()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" and ")
}

fn suites(all: &mut Differences, a: &Suite, b: &Suite, cases: &[CaseId]) {
    all.push("suite", &a.name, &b.name);
    let used: BTreeSet<&str> = cases.iter().map(|case| case.load.as_str()).collect();
    for name in used {
        let (Some(old), Some(new)) = (a.load(name), b.load(name)) else { continue };
        let time = |time: std::time::Duration| HumanDuration(time).to_string();
        let mut of = |what: &str, time_of: fn(&Load) -> std::time::Duration| {
            all.push(format!("{what} of {name}"), &time(time_of(old)), &time(time_of(new)));
        };
        of("warm-up", |load| load.warmup);
        of("window", |load| load.duration);
        of("timeout", |load| load.timeout);
        of("longest warm-up until steady", |load| load.steady.unwrap_or_default());
    }
}
