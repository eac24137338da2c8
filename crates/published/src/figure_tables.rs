//! Builds the tables of all published results beside ours: how many there are of each kind, every one of them (also as
//! `published.csv`), and the measures that weir does not take. [`sections`](crate::sections) calls it.

use weir_model::text::{Unit, count, csv_cell, grouped, list, short, unique};
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};
use weir_stats::Estimate;

use super::beside::{self, Line, Measured, Ours};
use super::context::Context;
use super::figures::Figure;

/// The file of all published results beside ours, in the report's folder.
pub(super) const FILE: &str = "published.csv";

/// How many published results there are, by what stands beside them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    measured: u64,
    not_run: u64,
    no_counterpart: u64,
    not_taken: u64,
}

impl Counts {
    /// Counts each figure once, whatever the number of its lines.
    fn of<'l>(lines: impl Iterator<Item = &'l Line<'l>>) -> Counts {
        let mut counts = Counts::default();
        for line in lines {
            match &line.ours {
                Ours::Measured(measured) => counts.measured += u64::from(measured.closest),
                Ours::NotRun(_) => counts.not_run += 1,
                Ours::NoCounterpart(_) => counts.no_counterpart += 1,
                Ours::NotTaken => counts.not_taken += 1,
            }
        }
        counts
    }

    fn all(self) -> u64 {
        self.measured + self.not_run + self.no_counterpart + self.not_taken
    }
}

/// How many of the published results stand beside a number of this run, and why the others do not.
pub(super) fn sentence(lines: &[Line<'_>]) -> String {
    let counts = Counts::of(lines.iter());
    let others = [
        (counts.not_run, "of products or cases that were not run"),
        (counts.no_counterpart, "without a counterpart here"),
        (counts.not_taken, "of measures that weir does not take"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{} {why}", count(n)));
    let others: Vec<String> = others.collect();
    let rest = if others.is_empty() { String::new() } else { format!(": {}", list(&others)) };
    let more = match counts.not_run {
        0 => String::new(),
        _ => format!(" With every product and case it could be {}.", count(counts.measured + counts.not_run)),
    };
    let (all, measured) = (count(counts.all()), count(counts.measured));
    format!("Of {all} published results {measured} stand beside a number of this run{rest}.{more}")
}

/// The published results of each kind of measure, by what stands beside them.
pub(super) fn counts(context: &Context<'_>, lines: &[Line<'_>]) -> Table {
    let by_group = beside::by_group(context.source, lines.iter().map(|line| (line, line)));
    let rows: Vec<(&str, Counts)> =
        by_group.into_iter().map(|(group, lines)| (group, Counts::of(lines.into_iter()))).collect();
    let mut table = TableOf::<(&str, Counts)>::new();
    table.add(Column::text("Measure"), |(group, _)| *group);
    type Of = fn(&Counts) -> u64;
    let columns: [(&str, Of); 5] = [
        ("Published", |counts| counts.all()),
        ("Beside ours", |counts| counts.measured),
        ("Not run", |counts| counts.not_run),
        ("No counterpart here", |counts| counts.no_counterpart),
        ("Not taken", |counts| counts.not_taken),
    ];
    for (name, of) in columns {
        table.add(Column::number(name, ""), move |(_, counts)| Cell::count(of(counts)));
    }
    let title = "Published results, and how many stand beside a number of this run";
    table.table("published-counts", title, &rows, |_| RowKind::Plain).with_notes([context.scaled])
}

/// Every published result with what stands beside it.
pub(super) fn all(context: &Context<'_>, lines: &[Line<'_>]) -> Table {
    let run = context.cases.run;
    let mut table = TableOf::<Line<'_>>::new();
    table.add(Column::text("Measure"), |line| line.measure.group.clone());
    table.add(Column::text("Metric"), |line| line.figure.metric.clone());
    table.add(Column::text("Case"), |line| {
        [line.figure.case.as_str(), &line.figure.variant].join(" ").trim_end().to_string()
    });
    table.add(Column::text("Product"), |line| run.title_of(&line.figure.product).to_string());
    table.add(Column::text("Profile"), |line| match line.measured() {
        Some(_) if line.figure.product == BASELINE => "no proxy".to_string(),
        Some(measured) => measured.entry.profile.clone(),
        None => String::new(),
    });
    table.add(Column::number("Published", ""), |line| with_unit(line.figure.value, line.figure));
    table.add(Column::number("Here", "").with_details(), |line| {
        let measured = line.measured()?;
        let mut cell = estimate_cell(Some(measured.value), Unit::NONE);
        cell.main.push_str(if measured.invalid { " invalid" } else { "" });
        Some(cell)
    });
    table.add(Column::number("Here / published", "").with_details(), |line| {
        estimate_cell(line.measured().and_then(|measured| measured.ratio), Unit::NONE)
    });
    table.add(Column::text("Note"), |line| line.note());
    let kind = |line: &Line<'_>| match line.measured() {
        Some(Measured { invalid: true, .. }) => RowKind::Unranked,
        _ => RowKind::Plain,
    };
    let title = "Every published result and what stands beside it";
    table.table("published-all", title, lines, kind).with_notes([
        "In the unit of the published number. Ours are medians over blocks with their intervals; counts that grow with the number \
         of requests are compared as shares of it.",
        context.scaled,
    ])
}

fn with_unit(value: f64, figure: &Figure) -> Cell {
    Cell::number(format!("{} {}", short(value), figure.unit), value)
}

/// The measures that weir does not take, and why. `None` where the document has none of them.
pub(super) fn not_taken(lines: &[Line<'_>]) -> Option<Table> {
    let own = lines.iter().filter(|line| matches!(line.ours, Ours::NotTaken));
    let rows = grouped(own.map(|line| (line.measure.note.as_str(), line.figure)));
    let mut table = TableOf::<(&str, Vec<&Figure>)>::new();
    table.add(Column::text("Metrics"), |(_, figures)| {
        unique(figures.iter().map(|figure| figure.metric.as_str())).join(", ")
    });
    table.add(Column::number("Published results", ""), |(_, figures)| Cell::count(figures.len() as u64));
    table.add(Column::text("Why not"), |(why, _)| (*why).to_string());
    (!rows.is_empty()).then(|| {
        table.table("published-not-taken", "Published measures that weir does not take", &rows, |_| RowKind::Plain)
    })
}

/// The same as a CSV file: a row for each line, with all digits.
pub(super) fn csv(suite: &str, lines: &[Line<'_>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: [&str; 14]| writer.write_record(row.map(csv_cell)).expect("a row in memory");
    write([
        "suite",
        "case",
        "product",
        "variant",
        "metric",
        "published",
        "unit",
        "standing",
        "profile",
        "ours",
        "low",
        "high",
        "ratio",
        "note",
    ]);
    for line in lines {
        let Figure { case, product, variant, metric, value, unit, .. } = line.figure;
        let (published, measured) = (value.to_string(), line.measured());
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let end = |of: fn(&Estimate) -> f64| number(measured.filter(|own| own.value.n > 1).map(|own| of(&own.value)));
        let standing = match &line.ours {
            Ours::Measured(own) if own.invalid => "invalid",
            Ours::Measured(_) => "beside",
            Ours::NotRun(_) => "not run",
            Ours::NoCounterpart(_) => "no counterpart",
            Ours::NotTaken => "not taken",
        };
        write([
            suite,
            case,
            product,
            variant,
            metric,
            &published,
            unit,
            standing,
            measured.map_or("", |own| &own.entry.profile),
            &number(measured.map(|own| own.value.value)),
            &end(|estimate| estimate.low),
            &end(|estimate| estimate.high),
            &number(measured.and_then(|own| own.ratio).map(|ratio| ratio.value)),
            &line.note(),
        ]);
    }
    String::from_utf8(writer.into_inner().expect("rows in memory")).expect("UTF-8")
}
