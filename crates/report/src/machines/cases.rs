//! One case on every machine: bars grouped by machine, a bar for each product, and the numbers as a table. `page` shows them.

use weir_model::suite::Entry;
use weir_model::text::{Unit, csv_cell, short};

use super::{Machine, Machines};
use crate::charts::axis::Axis;
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::palette::style;
use crate::summary::{Metric, Row, Section, slug};
use crate::tables::{Cell, Column, RowKind, Table, TableRow, estimate_cell};

/// What is shown of a case: the metric, its unit, and what is better.
const SHOWN: [(Metric, Unit, &str); 3] = [
    (Metric::Rate, Unit::PER_SECOND, "More is better."),
    (Metric::P99, Unit::MILLIS, "Less is better."),
    (Metric::Cpu, Unit::MICROS_PER_REQUEST, "Less is better."),
];

/// What an entry did in a case on a machine.
fn row<'a>(machine: &'a Machine<'_>, (workload, load): (&str, &str), entry: &Entry) -> Option<&'a Row> {
    machine.section(workload, load)?.all_rows().find(|row| row.entry == *entry)
}

/// What a case is called: as in the first run that has it.
pub(super) fn heading(all: &Machines<'_>, (workload, load): (&str, &str)) -> String {
    let mut sections = all.machines.iter().filter_map(|machine| machine.section(workload, load));
    sections.next().map(Section::heading).unwrap_or_default()
}

/// A chart for each metric that was measured.
pub(super) fn charts(all: &Machines<'_>, case: (&str, &str)) -> Vec<Chart> {
    let chart = |(metric, unit, better): &(Metric, Unit, &str)| chart(all, case, *metric, *unit, better);
    SHOWN.iter().map(chart).filter(|chart| !chart.is_empty()).collect()
}

fn chart(all: &Machines<'_>, case: (&str, &str), metric: Metric, unit: Unit, better: &str) -> Chart {
    let entries: Vec<&Entry> = all.entries.iter().filter(|entry| has(all, case, entry, metric)).collect();
    let bar = |machine: &Machine<'_>, (series, entry): (usize, &&Entry)| {
        let row = row(machine, case, entry)?;
        let bar = Bar::of(&row.of(metric)?, unit.size, style(entry, &all.entries).colour);
        let hollow = row.rank.is_none() && !row.is_baseline();
        let text = if hollow { format!("{} not ranked", bar.text) } else { bar.text.clone() };
        Some(Bar { series, hollow, text, ..bar })
    };
    let group = |machine: &Machine<'_>| BarGroup {
        label: machine.label.clone(),
        baseline: false,
        bars: entries.iter().enumerate().filter_map(|entry| bar(machine, entry)).collect(),
    };
    let groups: Vec<BarGroup> = all.machines.iter().map(group).filter(|group| !group.bars.is_empty()).collect();
    let words = |group: &BarGroup| {
        let bars = group.bars.iter().map(|bar| format!("{} {}", all.label_of(entries[bar.series]), bar.text));
        format!("{}: {}", group.label, bars.collect::<Vec<_>>().join(", "))
    };
    let alt = format!("Bars by machine. {}.", groups.iter().map(words).collect::<Vec<_>>().join("; "));
    let series = |entry: &&Entry| BarSeries { name: all.label_of(entry), colour: style(entry, &all.entries).colour };
    let bars = Bars {
        value: Axis::of_metric(metric, unit),
        series: entries.iter().map(series).collect(),
        groups,
        arrangement: Arrangement::Below,
    };
    Chart {
        name: format!("{}-{}", slug(case.0, case.1), metric.entry().key),
        title: format!("{}: {}", metric.entry().title, heading(all, case)),
        subtitle: format!("{better} By machine, a bar for each product."),
        alt,
        notes: notes(all, case),
        kind: ChartKind::Bars(bars),
    }
}

fn has(all: &Machines<'_>, case: (&str, &str), entry: &Entry, metric: Metric) -> bool {
    all.machines.iter().any(|machine| row(machine, case, entry).is_some_and(|row| row.of(metric).is_some()))
}

/// How the numbers came about: what was offered on each machine, and where the case was not run.
fn notes(all: &Machines<'_>, (workload, load): (&str, &str)) -> Vec<String> {
    let mut notes = vec!["Medians over the blocks of each run; whiskers are the interval of the median.".to_owned()];
    let offered = all.machines.iter().filter_map(|machine| {
        let (least, most) = machine.section(workload, load)?.offered_rate?;
        let rate = if most > least * 1.001 { format!("{} to {}", short(least), short(most)) } else { short(least) };
        Some(format!("{rate} on {}", machine.label))
    });
    let offered: Vec<String> = offered.collect();
    if !offered.is_empty() {
        notes.push(format!("Requests due a second: {}.", offered.join(", ")));
    }
    let without = all.machines.iter().filter(|machine| machine.section(workload, load).is_none());
    let without: Vec<&str> = without.map(|machine| machine.label.as_str()).collect();
    if !without.is_empty() {
        notes.push(format!("Not measured on {}.", without.join(", ")));
    }
    notes
}

/// The numbers: a row for each product on each machine.
pub(super) fn table(all: &Machines<'_>, case: (&str, &str)) -> Table {
    let mut rows = Vec::new();
    for entry in &all.entries {
        for machine in &all.machines {
            let Some(row) = row(machine, case, entry) else { continue };
            let kind = match row.rank {
                None if !row.is_baseline() => RowKind::Unranked,
                _ if row.suspect() => RowKind::Marked,
                _ => RowKind::Plain,
            };
            let mut cells = vec![Cell::from(all.label_of(entry)), Cell::from(machine.label.as_str())];
            cells.extend(SHOWN.map(|(metric, unit, _)| estimate_cell(row.of(metric), unit)));
            rows.push(TableRow { kind, cells });
        }
    }
    let numbers = SHOWN.map(|(metric, unit, _)| Column::number(metric.entry().name, unit.name).with_details());
    Table {
        id: format!("{}-table", slug(case.0, case.1)),
        title: "Every product on every machine".to_owned(),
        columns: [Column::text("Product"), Column::text("Machine")].into_iter().chain(numbers).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// The numbers of all cases: a row for each product on each machine, empty where there is none.
pub(super) fn csv(all: &Machines<'_>) -> csv::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let units = SHOWN.map(|(metric, unit, _)| format!("{}, {}", metric.entry().name, unit.name));
    let names = ["run", "machine", "workload", "load", "product", "profile"].map(str::to_owned);
    writer.write_record(names.iter().chain(&units))?;
    for case in all.cases() {
        for (entry, machine) in
            all.entries.iter().flat_map(|entry| all.machines.iter().map(move |machine| (entry, machine)))
        {
            let Some(row) = row(machine, case, entry) else { continue };
            let numbers = SHOWN.map(|(metric, unit, _)| {
                row.of(metric).map_or_else(String::new, |estimate| (estimate.value / unit.size).to_string())
            });
            let own = [&machine.run.name, &machine.label, case.0, case.1, &entry.product, &entry.profile];
            writer.write_record(own.map(csv_cell).iter().chain(&numbers))?;
        }
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}
