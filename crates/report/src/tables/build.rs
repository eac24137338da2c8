//! Builds the tables of trials, findings, failures and the environment from the summary.
//! Called by `page`, `markdown` and `terminal`; the other tables share its cells.

use weir_model::record::{Environment, Severity};
use weir_stats::Estimate;

use super::{Cell, Column, RowKind, Table, TableRow};
use crate::run::{Broken, Run};
use crate::summary::{FailedTrial, FindingGroup, Rankable, Row, Section, Verdicts};
use weir_model::text::{Unit, count, percent, short};

/// Every trial of a section, ranked or not.
pub fn trials(run: &Run, section: &Section) -> Table {
    let columns = vec![
        Column::number("Trial", ""),
        Column::number("Block", ""),
        Column::text("Product"),
        Column::text("Verdict"),
        Column::number("Rate", "requests/s"),
        Column::number("p50", "\u{b5}s"),
        Column::number("p99", "\u{b5}s"),
        Column::number("Due", "requests"),
        Column::number("Errors", "requests"),
        Column::text("Folder"),
    ];
    let rows = section.trials(run).map(|trial| {
        let measurement = &trial.measurement;
        let load = measurement.load.as_ref();
        let number = |value: Option<f64>| value.map_or_else(Cell::none, |value| Cell::number(short(value), value));
        let whole = |value: u64| Cell::number(count(value), value as f64);
        let meant = section.series.leaves_queue(section.saturating);
        let left = |load: &weir_model::load::LoadResult| if meant { 0 } else { load.window.unsent };
        let failed = load.map(|load| load.window.error_count() + left(load));
        let kind = match measurement.verdict {
            weir_model::record::Verdict::Valid => RowKind::Plain,
            weir_model::record::Verdict::Suspect => RowKind::Marked,
            _ => RowKind::Unranked,
        };
        let cells = vec![
            whole(u64::from(measurement.trial)),
            whole(u64::from(measurement.block)),
            Cell::text(run.label_of(&trial.entry())),
            Cell::text(measurement.verdict.as_str()),
            number(load.map(|load| load.rate)),
            number(load.map(|load| load.latency.p50_us)),
            number(load.map(|load| load.latency.p99_us)),
            load.map_or_else(Cell::none, |load| whole(load.window.due)),
            failed.map_or_else(Cell::none, whole),
            Cell::text(&trial.folder),
        ];
        TableRow { kind, cells }
    });
    Table {
        id: format!("trials-{}", section.slug()),
        title: "Every trial, ranked or not".to_string(),
        columns,
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// What the checks noticed.
pub fn findings(found: &[FindingGroup]) -> Table {
    let columns = ["Severity", "Check", "What was seen", "What to do", "Where"].map(Column::text);
    let rows = found.iter().map(|found| {
        let place = match found.trials.as_slice() {
            [] => Cell::text("the machine"),
            [only] => Cell::text(only),
            [first, rest @ ..] => Cell::text(format!("{first} and {} more", rest.len())),
        };
        let (word, kind) = match found.severity {
            Severity::Note => ("note", RowKind::Plain),
            Severity::Warning => ("warning", RowKind::Marked),
            Severity::Fatal => ("fatal", RowKind::Unranked),
        };
        let severity = Cell { main: word.to_string(), detail: String::new(), sort: Some(found.severity as u8 as f64) };
        let cells =
            vec![severity, Cell::text(&found.check), Cell::text(&found.message), Cell::text(&found.remedy), place];
        TableRow { kind, cells }
    });
    Table {
        id: "findings-table".to_string(),
        title: "Findings".to_string(),
        columns: columns.into(),
        rows: rows.collect(),
        notes: vec![
            "A note lets the number stand, a warning makes a trial suspect, a fatal finding makes it invalid. Equal \
             findings of several trials stand in one row, with the first one's numbers."
                .to_string(),
        ],
    }
}

/// Trials that failed.
pub fn errors(failed: &[FailedTrial]) -> Table {
    let columns =
        ["Product", "Workload, load", "Block", "Stage", "What happened", "What to do", "Trial"].map(Column::text);
    let rows = failed.iter().map(|failed| TableRow {
        kind: RowKind::Unranked,
        cells: vec![
            Cell::text(&failed.label),
            Cell::text(format!("{}, {}", failed.workload, failed.load)),
            Cell::number(failed.block.to_string(), f64::from(failed.block)),
            Cell::text(&failed.stage),
            Cell::text(&failed.message),
            Cell::text(&failed.remedy),
            Cell::text(&failed.trial),
        ],
    });
    Table {
        id: "errors-table".to_string(),
        title: "Trials that failed".to_string(),
        columns: columns.into(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// Files of the run that could not be read.
pub fn broken_files(broken: &[Broken]) -> Table {
    let row = |broken: &Broken| TableRow {
        kind: RowKind::Unranked,
        cells: vec![Cell::text(&broken.file), Cell::text(&broken.why)],
    };
    Table {
        id: "broken-files".to_string(),
        title: "Files of the run that could not be read".to_string(),
        columns: vec![Column::text("File"), Column::text("What is wrong")],
        rows: broken.iter().map(row).collect(),
        notes: vec!["What they hold is missing from this report; the rest stands.".to_string()],
    }
}

/// The machine, and the products as they were run.
pub fn environment(environment: &Environment) -> (Table, Table) {
    let products = environment.products.iter().map(|facts| TableRow {
        kind: RowKind::Plain,
        cells: [&facts.title, &facts.version, &facts.from, &facts.binary, &facts.sha256].map(Cell::text).into(),
    });
    let machine = machine_facts(environment)
        .into_iter()
        .map(|(name, value)| TableRow { kind: RowKind::Plain, cells: vec![Cell::text(name), Cell::text(value)] });
    let machine = Table {
        id: "machine".to_string(),
        title: "Machine".to_string(),
        columns: vec![Column::text("Fact"), Column::text("Value")],
        rows: machine.collect(),
        notes: Vec::new(),
    };
    let products = Table {
        id: "products".to_string(),
        title: "Products as they were run".to_string(),
        columns: ["Product", "Version", "From", "Binary", "SHA-256"].map(Column::text).into(),
        rows: products.collect(),
        notes: Vec::new(),
    };
    (machine, products)
}

fn machine_facts(environment: &Environment) -> Vec<(String, String)> {
    let (soft, hard) = environment.descriptors;
    let gib = environment.memory_bytes as f64 / 1_073_741_824.0;
    let unknown = || "not known".to_string();
    let mut facts = vec![
        ("Started", environment.started.clone()),
        ("Host", environment.host.clone()),
        ("Kernel", format!("{} {}", environment.kernel, environment.arch)),
        ("System", environment.os.clone()),
        ("CPU", format!("{}, {} online", environment.cpu_model, environment.cpus)),
        ("Memory", format!("{} GiB", short(gib))),
        ("Virtualization", environment.virtualization.clone().unwrap_or_else(unknown)),
        ("Governor", environment.governor.clone().unwrap_or_else(unknown)),
        ("Descriptors", format!("{} soft, {} hard", count(soft), count(hard))),
        ("weir", environment.weir_version.clone()),
        ("weir SHA-256", environment.weir_sha256.clone()),
        ("Seed of the order", environment.seed.to_string()),
    ];
    let scaled = if environment.scaled.is_empty() { "nothing".to_string() } else { environment.scaled.join("; ") };
    facts.push(("Scaled", scaled));
    if let Some(origin) = &environment.origin {
        facts.push(("Origin", format!("{origin}, instead of weir's own: it has no counters")));
    }
    let mut facts: Vec<(String, String)> = facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    for (role, cpus) in environment.placement.by_role() {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let where_ = if cpus.is_empty() { "not pinned".to_string() } else { format!("CPU {}", cpus.join(", ")) };
        facts.push((format!("Place of the {}", role.as_str()), where_));
    }
    facts.extend(environment.sysctls.iter().map(|(name, value)| (name.clone(), value.clone())));
    facts
}

pub(super) fn row_kind(row: &Row, baseline: bool) -> RowKind {
    if baseline {
        RowKind::Baseline
    } else if row.rank.is_none() {
        RowKind::Unranked
    } else if row.suspect() {
        RowKind::Marked
    } else {
        RowKind::Plain
    }
}

/// The profile can be left out where all products have the same, and never where it tells two rows apart.
pub(super) fn profile_order<'a>(mut rows: impl Iterator<Item = &'a Row>) -> u8 {
    if rows.any(|row| row.label != row.title) { 0 } else { 2 }
}

/// The mark that sends a reader to the remarks.
pub(super) fn marked(name: &str, row: &Row) -> String {
    if row.suspect() { format!("{name} *") } else { name.to_string() }
}

pub(super) fn rank_cell_of(rank: Option<(usize, usize)>, baseline: bool) -> Cell {
    match rank {
        Some(rank) => Cell::number(rank_words(rank), rank.0 as f64 + rank.1 as f64 / 1_000.0),
        None if baseline => Cell::none(),
        None => Cell::number("not ranked", 1e9),
    }
}

/// "1", or "1-2" when shared.
pub(crate) fn rank_words((low, high): (usize, usize)) -> String {
    if low == high { low.to_string() } else { format!("{low}\u{2013}{high}") }
}

pub(crate) fn estimate_cell(estimate: Option<Estimate>, unit: Unit) -> Cell {
    let Some(estimate) = estimate else { return Cell::none() };
    let mut cell = Cell::number(short(estimate.value / unit.size), estimate.value);
    // An interval without length is the best compared with itself.
    if estimate.n > 1 && estimate.low < estimate.high {
        cell.detail = format!("{}\u{2013}{}", short(estimate.low / unit.size), short(estimate.high / unit.size));
    }
    cell
}

pub(super) fn errors_cell(row: &Row) -> Cell {
    let errors = row.error_count();
    if row.requests == 0 && errors == 0 {
        return Cell::none();
    }
    let mut cell = Cell::number(count(errors), errors as f64);
    if errors > 0 {
        let kinds: Vec<String> = row.errors.iter().map(|(kind, n)| format!("{} {kind}", count(*n))).collect();
        let share = errors as f64 / row.requests.max(1) as f64;
        cell.detail = format!("{}: {}", percent(share), kinds.join(", "));
    }
    cell
}

/// "3 valid, 1 suspect".
pub(super) fn verdict_words_of(verdicts: Verdicts) -> String {
    let counts = [
        (verdicts.valid, "valid"),
        (verdicts.suspect, "suspect"),
        (verdicts.invalid, "invalid"),
        (verdicts.error, "failed"),
    ];
    let words: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    words.join(", ")
}
