//! Builds the tables of trials, findings, failures and the environment from the summary. Called by `page`, `markdown`
//! and `terminal`.

use weir_model::metric::{Metric, Window};
use weir_model::record::{Environment, HostClock, ProductFacts, Severity};
use weir_model::release::Age;
use weir_model::text::{Unit, count, short};

use super::hosts::hosts;
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::run::{Broken, Run, Trial};
use crate::summary::{FailedTrial, FindingGroup, Section};

/// Every trial of a section, ranked or not.
pub fn trials(run: &Run, section: &Section) -> Table {
    let of = |trial: &Trial, metric: Metric| metric.value(&Window::of_trial(&trial.measurement)?).map(Cell::short);
    let unsent_is_error = !section.series.leaves_queue(section.saturating);
    let mut table = TableOf::<Trial>::new();
    table.add(Column::number("Trial", ""), |trial| Cell::count(trial.measurement.trial));
    table.add(Column::number("Block", ""), |trial| Cell::count(trial.measurement.block));
    table.add(Column::text("Product"), |trial| run.label_of(&trial.entry()));
    table.add(Column::text("Verdict"), |trial| trial.measurement.verdict.as_str());
    table.add(Column::number("Rate", Unit::PER_SECOND.name), |trial| {
        trial.measurement.load.as_ref().map(|load| Cell::short(load.rate))
    });
    table.add(Column::number("p50", Unit::MICROS.name), move |trial| of(trial, Metric::P50));
    table.add(Column::number("p99", Unit::MICROS.name), move |trial| of(trial, Metric::P99));
    table
        .add(Column::number("Due", "requests"), |trial| Some(Cell::count(trial.measurement.load.as_ref()?.window.due)));
    table.add(Column::number("Errors", "requests"), move |trial| {
        let window = &trial.measurement.load.as_ref()?.window;
        Some(Cell::count(window.error_count() + if unsent_is_error { window.unsent } else { 0 }))
    });
    let spread = |trial: &Trial| {
        let spread = trial.measurement.load.as_ref()?.by_connection.as_ref()?;
        (spread.p10_us > 0.0).then(|| spread.p90_us / spread.p10_us)
    };
    if section.trials(run).any(|trial| spread(trial).is_some()) {
        let help = "Mean latency of the slowest tenth of the connections, as a multiple of that of the fastest tenth.";
        table.add(Column::number("Spread", "times").help(help), move |trial| spread(trial).map(Cell::short));
    }
    let disagree = |trial: &Trial| Some(HostClock::furthest(&trial.measurement.clocks)?.0 / 1e3);
    if section.trials(run).any(|trial| disagree(trial).is_some()) {
        let column =
            Column::number("Clocks", Unit::MILLIS.name).help("By how much the clocks of two hosts may disagree.");
        table.add(column, move |trial| disagree(trial).map(Cell::short));
    }
    table.add(Column::text("Folder"), |trial| trial.folder.clone());
    table.table(format!("trials-{}", section.slug()), "Every trial, ranked or not", section.trials(run), |trial| {
        trial.measurement.verdict.into()
    })
}

/// What the checks noticed.
pub fn findings(found: &[FindingGroup]) -> Table {
    let mut table = TableOf::<FindingGroup>::new();
    table.add(Column::text("Severity"), |found| Cell::number(found.severity.as_str(), found.severity as u8 as f64));
    table.add(Column::text("Check"), |found| found.check.clone());
    table.add(Column::text("What was seen"), |found| found.message.clone());
    table.add(Column::text("What to do"), |found| found.remedy.clone());
    table.add(Column::text("Where"), |found| match found.trials.as_slice() {
        [] => "the machine".to_string(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    });
    let kind = |found: &FindingGroup| match found.severity {
        Severity::Note => RowKind::Plain,
        Severity::Warning => RowKind::Marked,
        Severity::Fatal => RowKind::Unranked,
    };
    table.table("findings-table", "Findings", found, kind).with_notes([
        "A note lets the number stand, a warning makes a trial suspect, a fatal finding makes it invalid. Equal findings of \
         several trials stand in one row, with the first one's numbers.",
    ])
}

/// Trials that failed.
pub fn errors(failed: &[FailedTrial]) -> Table {
    let mut table = TableOf::<FailedTrial>::new();
    table.add(Column::text("Product"), |failed| failed.label.clone());
    table.add(Column::text("Workload, load"), |failed| format!("{}, {}", failed.workload, failed.load));
    table.add(Column::text("Block"), |failed| Cell::count(failed.block));
    table.add(Column::text("Stage"), |failed| failed.stage.clone());
    table.add(Column::text("What happened"), |failed| failed.message.clone());
    table.add(Column::text("What to do"), |failed| failed.remedy.clone());
    table.add(Column::text("Trial"), |failed| failed.trial.clone());
    table.table("errors-table", "Trials that failed", failed, |_| RowKind::Unranked)
}

/// Files of the run that could not be read.
pub fn broken_files(broken: &[Broken]) -> Table {
    let mut table = TableOf::<Broken>::new();
    table.add(Column::text("File"), |broken| broken.file.clone());
    table.add(Column::text("What is wrong"), |broken| broken.why.clone());
    table
        .table("broken-files", "Files of the run that could not be read", broken, |_| RowKind::Unranked)
        .with_notes(["What they hold is missing from this report; the rest stands."])
}

/// The products as they were run, and the machine; of several hosts these, and what holds for the whole run.
pub fn environment(environment: &Environment) -> Vec<Table> {
    let mut machine = TableOf::<(String, String)>::new();
    machine.add(Column::text("Fact"), |(name, _)| name.clone());
    machine.add(Column::text("Value"), |(_, value)| value.clone());
    let mut facts = vec![("Started".to_string(), environment.started.clone())];
    if environment.hosts.is_empty() {
        facts.extend(machine_facts(environment));
    } else {
        facts.extend(run_facts(environment));
    }
    facts.push(("weir SHA-256".to_string(), environment.weir_sha256.clone()));
    facts.push(("Seed of the order".to_string(), environment.seed.to_string()));
    let mut products = TableOf::<ProductFacts>::new();
    products.add(Column::text("Product"), |facts| facts.title.clone());
    products.add(Column::text("Version"), |facts| facts.version.clone());
    if environment.products.iter().any(|facts| facts.age.is_some()) {
        products.add(Column::text("Age"), |facts| facts.age.as_ref().map(Age::words).unwrap_or_default());
    }
    products.add(Column::text("From"), |facts| facts.from.clone());
    products.add(Column::text("Binary"), |facts| facts.binary.clone());
    products.add(Column::text("SHA-256"), |facts| facts.sha256.clone());
    let rows = &environment.products;
    let mut tables = vec![products.table("products", "Products as they were run", rows, |_| RowKind::Plain)];
    let (id, title) = if environment.hosts.is_empty() {
        ("machine", "Machine")
    } else {
        tables.push(hosts(&environment.hosts));
        ("settings", "The run's settings")
    };
    tables.push(machine.table(id, title, &facts, |_| RowKind::Plain));
    tables
}

/// What a machine and its settings are: names and values. `weir-compare` compares those of two runs.
pub fn machine_facts(environment: &Environment) -> Vec<(String, String)> {
    let mut facts = host_facts(environment);
    facts.extend(run_facts(environment));
    facts.extend(environment.sysctls.clone());
    facts
}

/// What a machine is.
pub fn host_facts(environment: &Environment) -> Vec<(String, String)> {
    let (soft, hard) = environment.descriptors;
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not known".to_string());
    [
        ("Host", environment.host.clone()),
        ("Kernel", environment.kernel.clone()),
        ("Architecture", environment.arch.clone()),
        ("System", environment.os.clone()),
        ("CPU", environment.cpu_model.clone()),
        ("CPUs online", environment.cpus.to_string()),
        ("Memory", format!("{} GiB", short(environment.memory_bytes as f64 / Unit::GIBIBYTES.size))),
        ("Virtualization", known(&environment.virtualization)),
        ("CPU governor", known(&environment.governor)),
        ("Descriptors", format!("{} soft, {} hard", count(soft), count(hard))),
        ("PID namespaces", known(&environment.pid_namespaces)),
        ("Products run as", known(&environment.product_account)),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

/// What holds for a whole run, whichever its hosts are.
pub fn run_facts(environment: &Environment) -> Vec<(String, String)> {
    let scaled = if environment.scaled.is_empty() { "nothing".to_string() } else { environment.scaled.join("; ") };
    let origin = environment.origin.as_ref();
    let mut facts: Vec<(String, String)> = [
        ("weir", environment.weir_version.clone()),
        ("Scaled", scaled),
        ("Origin", origin.map_or("weir's own".to_string(), |origin| format!("{origin}, which has no counters"))),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into();
    for (role, cpus) in environment.placement.by_role() {
        let pinned = if cpus.is_empty() { "not pinned".to_string() } else { cpu_list(cpus) };
        facts.push((format!("CPUs of the {}", role.as_str()), pinned));
    }
    facts
}

/// CPUs by number.
pub(super) fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
