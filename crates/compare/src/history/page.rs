//! The page of a history: the changes, a chart of each number with its data, the machines, and what was skipped. `weir history --html`
//! calls [`write_page`].

use std::path::{Path, PathBuf};

use weir_model::text::{Unit, counted, csv_cell, grouped};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{Chart, ChartKind, Line, better};
use weir_report::extra::{ExtraSection, Item};
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf};
use weir_report::{ReportError, SectionsPage};

use super::output::{changes, heading, what_else};
use super::{History, Machine, Order, Point, RunFacts, Series, Verdict, sentences};
use crate::output::signed;

/// Blue of runs, and vermilion of levels: of the palette of Okabe and Ito, which colour-blind readers can tell apart.
const RUNS: &str = "#56b4e9";
const LEVEL: &str = "#d55e00";

/// A series and its number, by which its files are called.
type Numbered<'a> = (usize, &'a Series);

/// Writes the page as `file`, with its charts in a folder `charts` beside it. `command` makes it again.
///
/// # Errors
/// When a file cannot be written, or a drawing fails (a defect of weir).
pub fn write_page(history: &History, file: &Path, command: &str) -> Result<Vec<PathBuf>, ReportError> {
    let runs = sentences::runs(history.machines.iter().map(|machine| machine.runs.len()).sum());
    let page = SectionsPage {
        title: &format!("History of {runs}"),
        brand: &runs,
        heading: &heading(history),
        words: std::iter::once(&history.answer).chain(&history.remarks).cloned().collect(),
        sections: sections(history),
        repeat: vec![("This page was made from the run folders:".to_owned(), command.to_owned())],
        ..SectionsPage::default()
    };
    page.write(file)
}

fn sections(history: &History) -> Vec<ExtraSection> {
    let mut about = vec![Item::Table(changes(history, usize::MAX))];
    for (series, change) in history.changes() {
        let words = what_else(change).map(|words| format!("{}, {}: {words}", sentences::case(series), change.run));
        about.extend(words.map(Item::Paragraph));
    }
    let numbered = history.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty());
    let mut cases = grouped(numbered.map(|(number, series)| (section_heading(history, series), (number, series))));
    cases.sort_by_key(|(_, all)| !all.iter().any(|(_, series)| !series.changes.is_empty()));
    let mut sections = vec![ExtraSection::new("history-changes", "Changes", about)];
    for (place, (heading, all)) in cases.into_iter().enumerate() {
        let (changed, unchanged): (Vec<Numbered<'_>>, Vec<Numbered<'_>>) =
            all.iter().partition(|(_, series)| !series.changes.is_empty());
        let mut items: Vec<Item> =
            changed.iter().map(|(number, series)| chart(*number, series, history).into()).collect();
        if !unchanged.is_empty() {
            let summary = format!("{} without a change", counted(unchanged.len() as u64, "number"));
            let charts = unchanged.iter().map(|(number, series)| chart(*number, series, history)).collect();
            items.push(Item::Charts { summary, charts });
        }
        items.extend(all.iter().map(|(number, series)| listed(*number, series, history.options.by)));
        sections.push(ExtraSection::new(format!("history-case-{}", place + 1), heading, items));
    }
    sections.push(runs(history));
    sections
}

fn section_heading(history: &History, series: &Series) -> String {
    let machine = if history.machines.len() > 1 { format!(" on {}", series.machine) } else { String::new() };
    let apart = series.points.first().filter(|_| series.apart.is_some());
    let apart = apart.map(|first| format!(", from {} on", first.run)).unwrap_or_default();
    let suites = history.machines.iter().flat_map(|machine| &machine.runs).any(|run| run.suite != series.suite);
    let suite = if suites { format!(" of {}", series.suite) } else { String::new() };
    format!("{}{suite}{machine}{apart}", sentences::case(series))
}

fn unit(series: &Series) -> Unit {
    let least = series.points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min);
    series.metric.entry().quantity.unit(least)
}

fn chart(number: usize, series: &Series, history: &History) -> Chart {
    let (entry, unit) = (series.metric.entry(), unit(series));
    let value = |(at, point): (usize, &Point)| vec![((at + 1) as f64, point.value / unit.size)];
    let ends = series.changes.iter().map(|change| change.at).chain([series.points.len()]);
    let mut from = 0;
    let level = |end: usize| {
        let values: Vec<f64> = series.points[from..end].iter().map(|point| point.value / unit.size).collect();
        let level = weir_stats::median(&values).unwrap_or(f64::NAN);
        // From halfway between two runs to halfway between two.
        let piece = vec![(from as f64 + 0.5, level), (end as f64 + 0.5, level)];
        from = end;
        piece
    };
    let line = |name: &str, colour: &str, pieces| Line {
        name: name.to_owned(),
        colour: colour.to_owned(),
        pieces,
        ..Line::default()
    };
    let levels = ends.map(level).collect();
    let rule = |change: &super::Change| (change.at as f64 + 0.5, signed(change.after / change.before));
    let found: Vec<String> = series.changes.iter().map(|change| sentences::change(series, change)).collect();
    let found = if found.is_empty() { "No change found".to_owned() } else { found.join("; ") };
    Chart {
        name: format!("history-{}-{}", number + 1, entry.key.replace('_', "-")),
        title: format!("{}: {}", entry.name, sentences::case(series)),
        subtitle: format!(
            "{} A dot for each run, by {}; lines are medians between changes.",
            better(series.metric),
            sentences::order(history.options.by)
        ),
        alt: format!("{} over {}. {found}.", entry.name, sentences::runs(series.points.len())),
        notes: notes(series, &history.options.reference),
        kind: ChartKind::lines(
            Axis::linear("Run", ""),
            Axis { scale: Scale::Fitted, ..Axis::of_metric(series.metric, unit) },
            vec![
                line("runs", RUNS, series.points.iter().enumerate().map(value).collect()),
                line("level", LEVEL, levels),
            ],
            series.changes.iter().map(rule).collect(),
        ),
    }
}

fn notes(series: &Series, reference: &str) -> Vec<String> {
    let mut notes = vec!["A run's number is the median over its blocks.".to_owned()];
    if series.divided {
        notes.push(format!(
            "It was divided by that of {} in the same block, and multiplied by that one's median.",
            sentences::reference(reference)
        ));
    }
    if series.of_machine {
        let shows = match series.case.product.as_str() {
            BASELINE => "The direct path shows the machine, and weir itself",
            _ => "Others are divided by it, so that it shows the machine",
        };
        notes.push(format!("{shows}; nothing is claimed of it."));
    }
    if series.changes.iter().any(|change| change.verdict == Verdict::Unclear) {
        notes.push("Unclear: it changed when divided, and not as measured.".to_owned());
    }
    if !series.without.is_empty() {
        notes.push(format!("{} without such a number.", sentences::runs(series.without.len())));
    }
    notes
}

/// The runs of a series with their numbers: the chart's horizontal axis counts them.
fn listed(number: usize, series: &Series, by: Order) -> Item {
    let unit = unit(series);
    let mut table = TableOf::<(usize, &Point)>::new();
    table.add(Column::number("Number", ""), |(at, _)| Cell::count(*at as u64 + 1));
    table.add(Column::text("Run"), |(_, point)| point.run.clone());
    table.add(Column::text("Started"), |(_, point)| point.started.clone());
    if by != Order::Date {
        table.add(Column::text("Ordered by"), |(_, point)| point.key.clone());
    }
    table.add(Column::number("Judged", unit.name), |(_, point)| Cell::short(point.value / unit.size));
    table.add(Column::number("Measured", unit.name), |(_, point)| Cell::short(point.measured / unit.size));
    table.add(Column::number("Blocks", ""), |(_, point)| Cell::count(point.blocks as u64));
    let rows: Vec<(usize, &Point)> = series.points.iter().enumerate().collect();
    let changed = |(at, _): &(usize, &Point)| series.changes.iter().any(|change| change.at == *at);
    let kind = |row: &(usize, &Point)| if changed(row) { RowKind::Marked } else { RowKind::Plain };
    let id = format!("history-{}-runs", number + 1);
    let table = table.table(id.clone(), format!("{}, run by run", series.metric.entry().name), &rows, kind);
    let header = format!("number,run,started,ordered_by,judged {0},measured {0},blocks,change\n", unit.name);
    let row = |row: &(usize, &Point)| {
        let (at, point) = row;
        let mark = if changed(row) { "change" } else { "" };
        let (value, measured) = (point.value / unit.size, point.measured / unit.size);
        let names = [&point.run, &point.started, &point.key].map(|text| quoted(text)).join(",");
        format!("{},{names},{value},{measured},{},{mark}\n", at + 1, point.blocks)
    };
    let csv = header + &rows.iter().map(row).collect::<String>();
    Item::Listed { table, csv, file: format!("charts/{id}.csv") }
}

/// A cell of CSV.
fn quoted(text: &str) -> String {
    format!("\"{}\"", csv_cell(text).replace('"', "\"\"").replace(char::is_control, " "))
}

/// The machines, their runs, and the runs that are not used.
fn runs(history: &History) -> ExtraSection {
    let mut items = Vec::new();
    for (place, Machine { label, facts, runs }) in history.machines.iter().enumerate() {
        let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
        items.push(Item::Paragraph(format!(
            "{label}: {}. In common: {}.",
            sentences::runs(runs.len()),
            facts.join("; ")
        )));
        let mut table = TableOf::<RunFacts>::new();
        table.add(Column::text("Run"), |run| run.run.clone());
        table.add(Column::text("Started"), |run| run.started.clone());
        table.add(Column::text("Suite"), |run| run.suite.clone());
        table.add(Column::text("weir"), |run| run.weir.clone());
        table.add(Column::text("Kernel"), |run| run.kernel.clone());
        let versions = |run: &RunFacts| {
            let each = run.products.iter().filter(|(_, version)| !version.is_empty());
            each.map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
        };
        table.add(Column::text("Versions"), versions);
        let id = format!("history-machine-{}", place + 1);
        items.push(Item::Folded(table.table(id, format!("Runs on {label}"), runs, |_| RowKind::Plain)));
    }
    if !history.skipped.is_empty() {
        items.push(Item::Table(skipped(history)));
    }
    ExtraSection::new("history-runs", "Runs", items)
}

fn skipped(history: &History) -> Table {
    let mut table = TableOf::<super::SkippedRun>::new();
    table.add(Column::text("Folder"), |one| one.folder.to_string_lossy().into_owned());
    table.add(Column::text("Why"), |one| one.why.clone());
    table.table("history-skipped", "Runs that are not used", &history.skipped, |_| RowKind::Unranked)
}
