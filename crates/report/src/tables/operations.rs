//! Builds the table of a section's kinds of request, such as the operations of a key-value load: latency and errors of each.
//! Called by `page` and `markdown`.

use weir_model::load::{ErrorKind, RequestResult};
use weir_model::record::Verdict;
use weir_model::text::Unit;

use super::{Cell, Column, Table, TableOf};
use crate::run::Run;
use crate::summary::Section;

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
