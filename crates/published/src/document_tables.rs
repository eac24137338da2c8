//! Repeats a document's own tables with this run's numbers: the document's columns and units, weir's precision. Which tables a document has
//! is data (`layout`).

use weir_model::suite::Entry;

use crate::figures::Variant;
use crate::layout::{ColumnLayout, TableLayout, TableShape, fill, head, holds, tail};
use crate::numbers::unit_size;
use crate::run_cases::{Context, RunCase};
use weir_model::text::{Unit, count, grouped, short, unique};
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};

/// The text of a cell for which weir has no number.
const NOT_MEASURED: &str = "not measured";

/// Every table of the document that has a case which was run.
pub(super) fn tables(context: &Context<'_>) -> Vec<Table> {
    let numbered = context.source.layout.tables.iter().enumerate();
    let made = numbered.map(|(number, layout)| {
        let builder = TableBuilder { context, layout };
        let table = match layout.shape {
            TableShape::Long => builder.long(),
            TableShape::Wide => builder.wide(),
            TableShape::Rounds => builder.rounds(),
        };
        let columns = format!("Columns and units as in lines {} of the document, numbers of this run.", layout.lines);
        let notes = std::iter::once(columns).chain(builder.missing());
        let table = table.with_notes(notes).with_notes([context.scaled]);
        Table { id: format!("published-table-{}", number + 1), title: layout.title.clone(), ..table }
    });
    made.filter(|table| !table.rows.is_empty()).collect()
}

/// A case of an entry.
type Place<'a> = (&'a RunCase<'a>, &'a Entry);

struct TableBuilder<'a> {
    context: &'a Context<'a>,
    layout: &'a TableLayout,
}

impl<'a> TableBuilder<'a> {
    /// One row for each case and entry.
    fn long(&self) -> Table {
        let mut table = self.named();
        for column in self.columns() {
            let header = Column::number(&column.name, &self.unit(column)).with_details();
            table.add(header, |(case, entry)| self.cell(case, Variant::Whole, entry, column));
        }
        table.table("", "", &self.in_order(), kind)
    }

    /// One row for each head and entry, with each column repeated for each tail.
    fn wide(&self) -> Table {
        let tails = unique(self.cases().iter().map(|case| tail(case.name)));
        let mut table = self.named();
        for (column, tail) in self.columns().iter().flat_map(|column| tails.iter().map(move |tail| (column, tail))) {
            let name = fill(&column.name, &format!("x-{tail}"), &[]);
            table.add(Column::number(&name, &self.unit(column)).with_details(), move |(case, entry)| {
                let wanted = format!("{}-{tail}", head(case.name));
                let case = self.cases().into_iter().find(|case| case.name == wanted)?;
                Some(self.cell(case, Variant::Whole, entry, column))
            });
        }
        let heads = grouped(self.in_order().into_iter().map(|(case, entry)| ((head(case.name), entry), case)));
        let rows: Vec<Place<'_>> = heads.into_iter().map(|((_, entry), cases)| (cases[0], entry)).collect();
        table.table("", "", &rows, kind)
    }

    /// One row for each round and one for the mean, with a column for each entry.
    fn rounds(&self) -> Table {
        let (cases, column) = (self.cases(), self.columns().first());
        let mut table = TableOf::<(&RunCase<'_>, Option<u32>)>::new();
        table.add(Column::text(&self.layout.first.name), |(case, round)| match round {
            Some(round) => fill(&self.layout.first.text, case.name, &[("round", &format!("round {round}"))]),
            None => "mean of the rounds".to_string(),
        });
        for (column, case) in column.into_iter().zip(cases.last()) {
            for entry in self.entries_of(case) {
                let name = fill(&column.name, case.name, &[("called", &self.label(entry))]);
                let header = Column::number(&name, &self.unit(column)).with_details();
                table.add(header, move |(case, round)| match round {
                    Some(round) => self.cell(case, Variant::Round(*round), entry, column),
                    None => self.mean(case, entry, column).into(),
                });
            }
        }
        let of_case = |case: &&'a RunCase<'a>| {
            let mean = (case.rounds() > 0).then_some(None);
            (1..=case.rounds()).map(Some).chain(mean).map(|round| (*case, round)).collect::<Vec<_>>()
        };
        let rows: Vec<_> = cases.iter().flat_map(of_case).collect();
        table.table("", "", &rows, |_| RowKind::Plain)
    }

    /// The mean over the rounds of the median over blocks.
    fn mean(&self, case: &RunCase<'_>, entry: &Entry, column: &ColumnLayout) -> Option<Cell> {
        let of_round = |round| self.context.cases.estimate(case, Variant::Round(round), entry, &column.metric);
        let values: Vec<f64> = (1..=case.rounds()).filter_map(of_round).map(|estimate| estimate.value).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then(|| Cell::number(short(mean / self.size(column)), mean))
    }

    /// The column of the row's name and, if the run has several profiles, that of the profile.
    fn named(&self) -> TableOf<'_, Place<'a>> {
        let mut table = TableOf::<Place<'a>>::new();
        table.add(Column::text(&self.layout.first.name), |(case, entry)| {
            let cores = case.cores().unwrap_or(1).to_string();
            let called = self.context.source.called(&entry.product);
            let more = [("cores", cores.as_str()), ("product", entry.product.as_str()), ("called", called)];
            fill(&self.layout.first.text, case.name, &more)
        });
        if self.context.cases.profiles.len() > 1 {
            table.add(Column::text("Profile"), |(_, entry)| {
                if entry.product == BASELINE { "no proxy".to_string() } else { entry.profile.clone() }
            });
        }
        table
    }

    fn columns(&self) -> &'a [ColumnLayout] {
        self.context.source.layout.columns(self.layout)
    }

    fn in_order(&self) -> Vec<(&'a RunCase<'a>, &'a Entry)> {
        self.context.document_order(self.layout.order, |case| holds(&self.layout.cases, case))
    }

    fn cases(&self) -> Vec<&'a RunCase<'a>> {
        let known = self.context.source.cases();
        let held = known.into_iter().filter(|case| holds(&self.layout.cases, case));
        held.filter_map(|case| self.context.cases.case(case)).collect()
    }

    fn entries_of(&self, case: &RunCase<'_>) -> Vec<&'a Entry> {
        let all =
            self.context.source.products.iter().flat_map(|measured| self.context.cases.entries(&measured.product));
        all.filter(|entry| !case.usable_trials(entry).is_empty()).collect()
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
        if self.context.source.not_taken(&column.metric).is_some() {
            return Cell::from(NOT_MEASURED);
        }
        let Some(estimate) = self.context.cases.estimate(case, variant, entry, &column.metric) else {
            return Cell::none();
        };
        let size = self.size(column);
        // Times are measured to a microsecond, so less than half of one is 0.
        if ["s", "ms"].contains(&self.unit(column).as_str()) && estimate.value < 0.5 {
            return Cell::number("0", 0.0);
        }
        let mut cell = estimate_cell(Some(estimate), Unit { name: "", size });
        if ["requests", "responses", "errors", "B"].contains(&self.unit(column).as_str()) {
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
        let why = |column: &ColumnLayout| {
            let why = self.context.source.not_taken(&column.metric)?;
            Some(format!("{}: {NOT_MEASURED}, {why}.", column.name))
        };
        self.columns().iter().filter_map(why).collect()
    }
}

fn kind((case, entry): &Place<'_>) -> RowKind {
    if case.invalid(entry) { RowKind::Unranked } else { RowKind::Plain }
}
