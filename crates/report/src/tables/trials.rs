//! Tables of single trials and of what happened in them: trials, findings, failures, faults, kinds of request, clients and hosts, and
//! the environment.

use std::collections::BTreeMap;

use weir_model::counters::OriginCounters;
use weir_model::fault::{FaultOutcome, FaultRecord};
use weir_model::load::{ErrorKind, RequestResult, SlowClients};
use weir_model::metric::{Metric, Window};
use weir_model::record::{Environment, HostClock, HostRecord, ProductFacts, Severity, Verdict};
use weir_model::release::Age;
use weir_model::text::{Unit, count, human_bytes, percent, seconds, short, unique};

use super::products::{marked, row_kind};
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::run::{Broken, Run, Trial};
use crate::summary::{ClientSummary, FailedTrial, FindingGroup, Row, Section};

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

/// A row for each fact, a column for each host.
pub(super) fn hosts(hosts: &[HostRecord]) -> Table {
    let of_host = |host: &HostRecord| {
        let mut facts = vec![
            ("Roles".to_string(), host.role_names().join(", ")),
            ("Address".to_string(), host.address.map_or("loopback".to_string(), |address| address.to_string())),
            ("CPUs of its roles".to_string(), cpu_list(&host.cpus)),
        ];
        facts.extend(host_facts(&host.facts));
        facts.extend(host.facts.sysctls.clone());
        facts
    };
    let of_hosts: Vec<Vec<(String, String)>> = hosts.iter().map(of_host).collect();
    let names: Vec<String> = unique(of_hosts.iter().flatten().map(|(name, _)| name.clone()));
    let mut table = TableOf::<String>::new();
    table.add(Column::text("Fact"), |name| name.clone());
    for (host, facts) in hosts.iter().zip(&of_hosts) {
        table.add(Column::text(&host.name), move |name| {
            Cell::from(facts.iter().find(|(known, _)| known == name).map(|(_, value)| Cell::from(value.clone())))
        });
    }
    table.table("machine", "Hosts", &names, |_| RowKind::Plain)
}

/// A row for each client of each product; `None` where one client made the load.
pub fn clients(section: &Section) -> Option<Table> {
    if section.clients.is_empty() {
        return None;
    }
    let of_row =
        |row: &'_ Row| section.clients.iter().filter(|client| client.entry == row.entry).cloned().collect::<Vec<_>>();
    let rows: Vec<(&Row, ClientSummary)> =
        section.all_rows().flat_map(|row| of_row(row).into_iter().map(move |client| (row, client))).collect();
    let mut table = TableOf::<(&Row, ClientSummary)>::new();
    table.add(Column::text("Product"), |(row, _)| marked(&row.label, row));
    table.add(Column::text("Client"), |(_, client)| client.host.clone());
    if section.open {
        let unit = Unit::for_least(rows.iter().filter_map(|(_, client)| client.lag_p99_us));
        let column = Column::number("Lag p99", unit.name).help("Due to sent, in the trial where it was longest.");
        table.add(column, move |(_, client)| client.lag_p99_us.map(|lag| Cell::short(lag / unit.size)));
    }
    let column = Column::number("Busiest thread", "").help("Share of the window, in the trial where it was most.");
    table.add(column, |(_, client)| client.busiest_thread.map(|busy| Cell::number(percent(busy), busy)));
    let title = format!("Clients by host, worst of all trials: {}", section.heading());
    Some(table.table(format!("clients-{}", section.slug()), title, &rows, |(row, _)| row_kind(row)))
}

/// One kind of request of one trial.
struct OperationRow<'a> {
    trial: u32,
    label: String,
    verdict: Verdict,
    promise: &'a str,
    kind: &'a RequestResult,
}

/// Each kind of request of every trial, of a series its last point; `None` where there is but one, or none has a latency of its
/// own.
pub fn operations(run: &Run, section: &Section) -> Option<Table> {
    let promises = run.environment.as_ref().map(|environment| &environment.promises);
    let mut rows = Vec::new();
    for trial in section.trials(run) {
        let entry = trial.entry();
        let promise = promises.and_then(|all| all.get(&format!("{}:{}", entry.product, entry.profile)));
        let (promise, label) = (promise.map_or("", String::as_str), run.label_of(&entry));
        let kinds = trial.measurement.load.iter().flat_map(|load| &load.by_request);
        rows.extend(kinds.filter(|kind| kind.latency.count > 0).map(|kind| OperationRow {
            trial: trial.measurement.trial,
            label: label.clone(),
            verdict: trial.measurement.verdict,
            promise,
            kind,
        }));
    }
    if rows.iter().all(|row| row.kind.name == rows[0].kind.name) {
        return None;
    }
    let promised = rows.iter().any(|row| !row.promise.is_empty());
    let mut table = TableOf::<OperationRow>::new();
    table.add(Column::number("Trial", ""), |row| Cell::count(row.trial));
    table.add(Column::text("Product"), |row| row.label.clone());
    table.add(Column::text("Operation"), |row| row.kind.name.clone());
    table.add(Column::number("Sent", "requests"), |row| Cell::count(row.kind.sent));
    table.add(Column::number("p50", Unit::MICROS.name), |row| Cell::short(row.kind.latency.p50_us));
    table.add(Column::number("p95", Unit::MICROS.name), |row| Cell::short(row.kind.latency.p95_us));
    table.add(Column::number("p99", Unit::MICROS.name), |row| Cell::short(row.kind.latency.p99_us));
    table.add(Column::number("Errors", "requests"), |row| Cell::count(row.kind.errors));
    table.add(Column::text("Errors by kind"), |row| ErrorKind::listed(&row.kind.errors_by_kind));
    if promised {
        table.add(Column::text("An acknowledged write is"), |row| row.promise.to_owned());
    }
    let id = format!("operations-{}", section.slug());
    Some(table.table(id, "Latency and errors by operation", &rows, |row| row.verdict.into()))
}

/// A fault of a trial.
struct Provoked<'a> {
    trial: &'a Trial,
    fault: &'a FaultRecord,
    outcome: Option<FaultOutcome>,
    slow: Option<&'a SlowClients>,
}

/// What the origin counted in the trial of a fault.
fn origin<'a>(row: &Provoked<'a>) -> Option<&'a OriginCounters> {
    row.trial.measurement.origin.as_ref()
}

/// One row for each fault of each trial; `None` where none was provoked.
pub fn faults(run: &Run, section: &Section) -> Option<Table> {
    let mut provoked: Vec<Provoked<'_>> = Vec::new();
    for trial in section.trials(run) {
        let load = trial.measurement.load.as_ref();
        let mut slow = load.iter().flat_map(|load| &load.slow_clients);
        for fault in &trial.measurement.faults {
            let slow = if fault.what.is_of_clients() { slow.next() } else { None };
            provoked.push(Provoked { trial, fault, outcome: load.and_then(|load| fault.outcome(load)), slow });
        }
    }
    if provoked.is_empty() {
        return None;
    }
    let mut table = TableOf::<Provoked<'_>>::new();
    table.add(Column::text("Product"), |row| run.label_of(&row.trial.entry()));
    table.add(Column::number("Block", ""), |row| Cell::count(row.trial.measurement.block));
    table.add(Column::text("Fault"), |row| format!("{} {}", row.fault.what.as_str(), row.fault.part));
    table.add(Column::number("At", "s"), |row| Cell::short(row.fault.began_s));
    table.add(Column::number("For", "s"), |row| Cell::short(row.fault.ended_s - row.fault.began_s));
    table.add(Column::text("Recovered after its end"), |row| match &row.outcome {
        Some(FaultOutcome { recovered_s: Some(s), .. }) => Cell::number(seconds(*s), *s),
        Some(FaultOutcome { recovered_s: None, .. }) => Cell::number("not in the window", f64::MAX),
        None => Cell::default(),
    });
    table.add(Column::number("Rate before", Unit::PER_SECOND.name), |row| {
        row.outcome.as_ref().map(|outcome| Cell::short(outcome.rate.0))
    });
    table.add(Column::number("Worst second", Unit::PER_SECOND.name), |row| {
        row.outcome.as_ref().map(|outcome| Cell::short(outcome.rate.1))
    });
    table.add(Column::text("Errors until then"), |row| {
        row.outcome.as_ref().map_or_else(String::new, |outcome| by_kind(&outcome.errors, |_| true))
    });
    if provoked.iter().any(|row| row.slow.is_some()) {
        slow_clients(&mut table);
    }
    let of_pool = provoked.iter().any(|row| origin(row).is_some_and(|origin| origin.addresses.len() > 1));
    if of_pool {
        let checks = Column::number("Health checks", Unit::PER_SECOND.name);
        table.add(checks.help("Requests to /_weir/ready during the load, by its length."), |row| {
            // The origin counts requests of slow clients with them.
            let load = row.trial.measurement.load.as_ref().filter(|load| load.slow_clients.is_empty());
            let seconds = load.map_or(0.0, |load| load.window_s);
            origin(row).filter(|_| seconds > 0.0).map(|origin| Cell::short(origin.own_requests as f64 / seconds))
        });
        table.add(
            Column::number("Sent twice", "requests").help("Requests that reached origins more than once."),
            |row| origin(row).map(|origin| Cell::count(origin.request_ids.repeated)),
        );
    }
    table.add(Column::text("Wrong data, whole window"), |row| {
        let window = row.trial.measurement.load.as_ref().map(|load| &load.window.errors);
        window.map_or_else(String::new, |errors| by_kind(errors, ErrorKind::is_wrong_data))
    });
    let kind = |row: &Provoked<'_>| {
        let errors = row.trial.measurement.load.iter().flat_map(|load| load.window.errors.keys());
        if errors.copied().any(ErrorKind::is_wrong_data) { RowKind::Unranked } else { RowKind::Plain }
    };
    let table = table.table(format!("faults-{}", section.slug()), "Faults and recovery", &provoked, kind);
    Some(table.with_notes([
        "Recovered: the first of two seconds in a row without errors and with at least 90 % of the rate before the fault (the \
         median of the seconds before it). Wrong data: an acknowledged write was lost, or a read was stale, of another key, or of a \
         key that was removed.",
    ]))
}

/// The columns of slow clients.
fn slow_clients<'r>(table: &mut TableOf<'r, Provoked<'r>>) {
    let held = Column::number("Held", "clients").help("Slow clients whose connections were open at a time, at most.");
    table.add(held, |row| row.slow.map(|slow| Cell::count(slow.held)));
    let help = "Resident memory of the product while they were there, at most, less that of the second before, by how many it held, \
                without the kernel's memory.";
    table.add(Column::text("Memory a client").help(help), |row| {
        let bytes = row.fault.memory_each(row.slow?)?;
        Some(Cell::number(human_bytes(bytes), bytes))
    });
    let completed =
        Column::number("Completed", "requests").help("Requests of slow clients that had their whole response.");
    table.add(completed, |row| row.slow.map(|slow| Cell::count(slow.completed)));
    let help = "How the product ended other requests of slow clients: by a status, or by closing the connection. Or it refused that.";
    table.add(Column::text("Ended otherwise").help(help), |row| row.slow.map_or_else(String::new, ends));
}

/// How requests of slow clients ended otherwise than they should: "408 12, closed 3"; "none".
fn ends(slow: &SlowClients) -> String {
    let statuses = slow.statuses.iter().map(|(status, n)| (status.to_string(), *n));
    let others = [("closed".to_owned(), slow.cut), ("refused".to_owned(), slow.refused)];
    let some = statuses.chain(others).filter(|(_, n)| *n > 0);
    let words: Vec<String> = some.map(|(what, n)| format!("{what} {}", count(n))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// "timeout 12, reset 3"; "none" where there is nothing.
fn by_kind(errors: &BTreeMap<ErrorKind, u64>, counts: impl Fn(ErrorKind) -> bool) -> String {
    let some = errors.iter().filter(|(kind, n)| **n > 0 && counts(**kind));
    let words: Vec<String> = some.map(|(kind, n)| format!("{} {}", kind.as_str(), count(*n))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
