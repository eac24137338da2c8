//! Builds the table of faults that a load provoked: what each did to the load, when it had recovered, and which answers were
//! wrong. Called by `page` and `markdown`.

use std::collections::BTreeMap;

use weir_model::fault::{FaultOutcome, FaultRecord};
use weir_model::load::ErrorKind;
use weir_model::text::{Unit, count, seconds};

use super::{Cell, Column, RowKind, Table, TableOf};
use crate::run::{Run, Trial};
use crate::summary::Section;

/// A fault of a trial.
struct Provoked<'a> {
    trial: &'a Trial,
    fault: &'a FaultRecord,
    outcome: Option<FaultOutcome>,
}

/// One row for each fault of each trial; `None` where none was provoked.
pub fn faults(run: &Run, section: &Section) -> Option<Table> {
    let mut provoked: Vec<Provoked<'_>> = Vec::new();
    for trial in section.trials(run) {
        let load = trial.measurement.load.as_ref();
        for fault in &trial.measurement.faults {
            provoked.push(Provoked { trial, fault, outcome: load.and_then(|load| fault.outcome(load)) });
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

/// "timeout 12, reset 3"; "none" where there is nothing.
fn by_kind(errors: &BTreeMap<ErrorKind, u64>, counts: impl Fn(ErrorKind) -> bool) -> String {
    let some = errors.iter().filter(|(kind, n)| **n > 0 && counts(**kind));
    let words: Vec<String> = some.map(|(kind, n)| format!("{} {}", kind.as_str(), count(*n))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
