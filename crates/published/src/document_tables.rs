//! Repeats a document's own tables with this run's numbers: the document's columns and units, weir's precision. Which
//! tables a document has is data (`layout`). [`sections`](crate::sections) calls [`tables`].

use weir_model::suite::Entry;

use super::context::Context;
use super::layout::{ColumnLayout, TableLayout, TableShape, fill, head};
use super::metrics::unit_size;
use super::run_cases::RunCase;
use super::variant::Variant;
use weir_model::text::{Unit, count, short};
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableRow, estimate_cell};

/// The text of a cell for which weir has no number.
const NOT_MEASURED: &str = "not measured";

/// Every table of the document that has a case which was run.
pub(super) fn tables(context: &Context<'_>) -> Vec<Table> {
    let numbered = context.source.tables.iter().enumerate();
    let made = numbered.filter_map(|(number, layout)| {
        let builder = TableBuilder { context, layout };
        let (columns, rows) = match layout.shape {
            TableShape::Long => builder.long(),
            TableShape::Wide => builder.wide(),
            TableShape::Rounds => builder.rounds(),
        };
        let mut notes =
            vec![format!("Columns and units as in lines {} of the document, numbers of this run.", layout.lines)];
        notes.extend(builder.missing());
        notes.push(context.scaled.to_string());
        (!rows.is_empty()).then(|| Table {
            id: format!("published-table-{}", number + 1),
            title: layout.title.clone(),
            columns,
            rows,
            notes,
        })
    });
    made.collect()
}

struct TableBuilder<'a> {
    context: &'a Context<'a>,
    layout: &'a TableLayout,
}

impl<'a> TableBuilder<'a> {
    /// One row for each case and entry.
    fn long(&self) -> (Vec<Column>, Vec<TableRow>) {
        let columns = self.layout.columns();
        let mut header = self.first_columns();
        header.extend(columns.iter().map(|column| Column::number(&column.name, &self.unit(column)).with_details()));
        let mut rows = Vec::new();
        for (case, entry) in self.in_order() {
            let cells = columns.iter().map(|column| self.cell(case, Variant::Whole, entry, column));
            rows.push(self.row(case, entry, cells.collect()));
        }
        (header, rows)
    }

    /// One row for each head and entry, with each column repeated for each tail.
    fn wide(&self) -> (Vec<Column>, Vec<TableRow>) {
        let held: Vec<&RunCase<'_>> = self.cases();
        let mut tails: Vec<&str> = Vec::new();
        for case in &held {
            let tail = super::layout::tail(case.name);
            if !tails.contains(&tail) {
                tails.push(tail);
            }
        }
        let mut header = self.first_columns();
        for column in self.layout.columns() {
            let named = tails.iter().map(|tail| fill(&column.name, &format!("x-{tail}"), &[]));
            header.extend(named.map(|name| Column::number(&name, &self.unit(column)).with_details()));
        }
        let mut rows = Vec::new();
        let mut done: Vec<(&str, &Entry)> = Vec::new();
        for (case, entry) in self.in_order() {
            if done.contains(&(head(case.name), entry)) {
                continue;
            }
            done.push((head(case.name), entry));
            let of_tail = |tail: &&str| held.iter().find(|c| c.name == format!("{}-{tail}", head(case.name)));
            let cells = self.layout.columns().iter().flat_map(|column| {
                tails.iter().map(move |tail| match of_tail(tail) {
                    Some(case) => self.cell(case, Variant::Whole, entry, column),
                    None => Cell::none(),
                })
            });
            let cells: Vec<Cell> = cells.collect();
            rows.push(self.row(case, entry, cells));
        }
        (header, rows)
    }

    /// One row for each round and one for the mean, with a column for each entry.
    fn rounds(&self) -> (Vec<Column>, Vec<TableRow>) {
        let Some(column) = self.layout.columns().first() else { return (Vec::new(), Vec::new()) };
        let unit = self.unit(column);
        let mut header = vec![Column::text(&self.layout.first.name)];
        let mut rows: Vec<TableRow> = Vec::new();
        for case in self.cases() {
            let entries = self.entries_of(case);
            header.truncate(1);
            header.extend(entries.iter().map(|entry| {
                let name = fill(&column.name, case.name, &[("called", &self.label(entry))]);
                Column::number(&name, &unit).with_details()
            }));
            let rounds: Vec<u32> = (1..=case.rounds()).collect();
            for round in &rounds {
                let name = fill(&self.layout.first.text, case.name, &[("round", &format!("round {round}"))]);
                let cells = entries.iter().map(|entry| self.cell(case, Variant::Round(*round), entry, column));
                let cells = std::iter::once(Cell::from(name)).chain(cells).collect();
                rows.push(TableRow { kind: RowKind::Plain, cells });
            }
            if !rounds.is_empty() {
                rows.push(self.mean_row(case, &entries, &rounds, column));
            }
        }
        (header, rows)
    }

    /// The mean over the rounds of the median over blocks.
    fn mean_row(&self, case: &RunCase<'_>, entries: &[&Entry], rounds: &[u32], column: &ColumnLayout) -> TableRow {
        let mean = |entry: &&Entry| {
            let of_round = |round: &u32| {
                self.context.cases.estimate(case, Variant::Round(*round), entry, &column.metric).map(|e| e.value)
            };
            let values: Vec<f64> = rounds.iter().filter_map(of_round).collect();
            if values.is_empty() {
                return Cell::none();
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            Cell::number(short(mean / self.size(column)), mean)
        };
        let cells = std::iter::once(Cell::from("mean of the rounds")).chain(entries.iter().map(mean)).collect();
        TableRow { kind: RowKind::Plain, cells }
    }

    fn in_order(&self) -> Vec<(&'a RunCase<'a>, &'a Entry)> {
        self.context.document_order(self.layout.order, |case| self.layout.holds(case))
    }

    fn cases(&self) -> Vec<&'a RunCase<'a>> {
        let known = self.context.source.cases();
        let held = known.into_iter().filter(|case| self.layout.holds(case));
        held.filter_map(|case| self.context.cases.case(case)).collect()
    }

    fn entries_of(&self, case: &RunCase<'_>) -> Vec<&'a Entry> {
        let all =
            self.context.source.products.iter().flat_map(|measured| self.context.cases.entries(&measured.product));
        all.filter(|entry| !case.usable_trials(entry).is_empty()).collect()
    }

    /// The column of the row's name and, if the run has several profiles, that of the profile.
    fn first_columns(&self) -> Vec<Column> {
        let mut columns = vec![Column::text(&self.layout.first.name)];
        if self.context.cases.profiles.len() > 1 {
            columns.push(Column::text("Profile"));
        }
        columns
    }

    fn row(&self, case: &RunCase<'_>, entry: &Entry, cells: Vec<Cell>) -> TableRow {
        let cores = case.cores().unwrap_or(1).to_string();
        let more = [
            ("cores", cores.as_str()),
            ("product", entry.product.as_str()),
            ("called", self.context.source.called(&entry.product)),
        ];
        let mut all = vec![Cell::from(fill(&self.layout.first.text, case.name, &more))];
        if self.context.cases.profiles.len() > 1 {
            all.push(Cell::from(if entry.product == BASELINE { "no proxy" } else { &entry.profile }));
        }
        all.extend(cells);
        TableRow { kind: if case.invalid(entry) { RowKind::Unranked } else { RowKind::Plain }, cells: all }
    }

    /// The document's name of a product, with the profile if the run has several.
    fn label(&self, entry: &Entry) -> String {
        let called = self.context.source.called(&entry.product);
        if self.context.cases.entries(&entry.product).len() > 1 {
            format!("{called} {}", entry.profile)
        } else {
            called.to_string()
        }
    }

    fn cell(&self, case: &RunCase<'_>, variant: Variant, entry: &Entry, column: &ColumnLayout) -> Cell {
        if column.metric.is_empty() {
            return Cell::from(NOT_MEASURED);
        }
        let Some(estimate) = self.context.cases.estimate(case, variant, entry, &column.metric) else {
            return Cell::none();
        };
        let size = self.size(column);
        // Times are measured to a microsecond, so less than half of one is 0.
        let nothing = is_time(&self.unit(column)) && estimate.value < 0.5;
        if nothing {
            return Cell::number("0", 0.0);
        }
        let mut cell = estimate_cell(Some(estimate), Unit { name: "", size });
        if is_count(&self.unit(column)) {
            cell.main = count((estimate.value / size).round().max(0.0) as u64);
        }
        cell
    }

    /// The unit that the document uses most for this metric.
    fn unit(&self, column: &ColumnLayout) -> String {
        let first = self.context.source.results(&column.metric).next();
        first.map(|figure| figure.unit.clone()).unwrap_or_default()
    }

    fn size(&self, column: &ColumnLayout) -> f64 {
        unit_size(&self.unit(column)).unwrap_or(1.0)
    }

    /// The reasons why columns are empty.
    fn missing(&self) -> Vec<String> {
        let empty = self.layout.columns().iter().filter(|column| !column.missing.is_empty());
        empty.map(|column| format!("{}: {NOT_MEASURED}, {}.", column.name, column.missing)).collect()
    }
}

fn is_time(unit: &str) -> bool {
    ["s", "ms"].contains(&unit)
}

fn is_count(unit: &str) -> bool {
    ["requests", "responses", "errors", "B"].contains(&unit)
}
