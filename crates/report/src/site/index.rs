//! The overview of a site, which answers by question, and the list of all its runs.

use std::path::Path;

use weir_model::metric::Metric;
use weir_model::text::{Unit, counted, list};

use super::products::{self, Product};
use super::question::{Answer, Question};
use super::recorded::{self, Recorded};
use super::suites::{self, Suite};
use super::{Page, section, shortened};
use crate::error::ReportError;
use crate::extra::Item;
use crate::links::ChartFiles;
use crate::summary::Row;
use crate::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};

/// Writes both pages.
///
/// # Errors
/// When a file cannot be written or drawn.
pub(super) fn write(
    runs: &[Recorded],
    questions: &[Question<'_>],
    products: &[Product<'_>],
    suites: &[Suite<'_>],
    site: &Path,
) -> Result<(), ReportError> {
    let machines = recorded::machines(runs).len();
    let counts = [(runs.len(), "run"), (suites.len(), "suite"), (machines, "machine")];
    let [all, of_suites, on_machines] = counts.map(|(n, what)| counted(n as u64, what));
    let days = match (runs.last().map(Recorded::date), runs.first().map(Recorded::date)) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last} UTC"),
        (_, Some(only)) => format!(", {only} UTC"),
        _ => String::new(),
    };
    let newest: Vec<&Recorded> = runs.iter().collect();
    let list = suites::runs("runs", &newest, "", true);
    let overview = Page {
        address: "index.html",
        root: "",
        files: "",
        charts: ChartFiles::Pictures,
        brand: "",
        heading: "Which product, for which work?",
        question: "",
        answer: "",
        words: vec![format!(
            "{all} of {of_suites} on {on_machines}{days}. Each answer is what the newest run on a machine says: products are compared \
             within one run, and two machines' numbers compare the machines.",
        )],
        sections: vec![
            section("answers", "Answers, by question", vec![Item::Table(answers(questions))]),
            section("products", "Products", vec![Item::Table(of_products(products))]),
            section("suites", "Suites", vec![Item::Table(of_suites_table(suites))]),
            section(
                "runs",
                "Newest runs",
                vec![Item::Table(shortened(list.clone(), "the list of all runs has the others")), Item::Table(more())],
            ),
        ],
        repeat: vec![
            ("The site was made from the runs' folders by:".to_owned(), "weir site RUNS --out FOLDER".to_owned()),
            ("Each run's page has the run.toml that repeats the run:".to_owned(), "weir run run.toml".to_owned()),
        ],
        above: Vec::new(),
    };
    overview.write(site)?;
    let list = suites::runs("runs", &newest, "../", true);
    let all_runs = Page {
        address: "runs/index.html",
        root: "../",
        brand: "all runs",
        heading: "All runs",
        words: vec![format!("{all}{days}.")],
        sections: vec![section("runs", "Runs, newest first", vec![Item::Table(list)])],
        ..overview
    };
    all_runs.write(site)
}

/// A question, and what the newest run of a machine answers.
struct Line<'a> {
    words: &'a str,
    answer: Answer<'a>,
    runs: usize,
}

impl<'a> Line<'a> {
    fn best(&self) -> Option<&'a Row> {
        self.answer.first().first().copied()
    }
}

/// Who comes first, question by question and machine by machine.
fn answers(questions: &[Question<'_>]) -> Table {
    let lines: Vec<Line<'_>> = questions
        .iter()
        .flat_map(|question| {
            let words = question.words.as_str();
            question.by_machine().into_iter().map(move |(answer, runs)| Line { words, answer, runs })
        })
        .collect();
    let mut table = TableOf::<Line<'_>>::new();
    table.add(Column::text("Question"), |line| Cell::from(line.words).link(line.answer.address()));
    table.add(
        Column::text("First").help("Products that the run ranks first; of several it cannot tell which is better."),
        first,
    );
    for (metric, unit) in [(Metric::Rate, Unit::PER_SECOND), (Metric::P99, Unit::MILLIS)] {
        let column = Column::number(metric.entry().title, unit.name).help(metric.entry().help);
        table.add(column, move |line| estimate_cell(line.best().and_then(|row| row.of(metric)), unit));
    }
    table.add(Column::text("Ranked by"), |line| line.answer.section.ranked_by.entry().title);
    table.add(Column::text("Machine"), |line| line.answer.run.machine.clone());
    table.add(Column::text("Run"), |line| line.answer.run.date_cell(""));
    table.add(
        Column::number("Blocks", "").help("How often each case was measured. Of one block nothing is sure."),
        |line| Cell::count(line.answer.section.blocks as u64),
    );
    table.add(Column::number("Runs", "").help("Runs on this machine that answer it."), |line| {
        Cell::count(line.runs as u64)
    });
    let kind = |line: &Line<'_>| match line.answer.first().as_slice() {
        [] => RowKind::Unranked,
        first if first.iter().any(|row| row.suspect()) => RowKind::Marked,
        _ => RowKind::Plain,
    };
    table.table("answers-table", "Who comes first", &lines, kind).with_notes([
        "Rate and p99 are of the first product that is named: medians over blocks, with their intervals. Coloured rows: a check made a \
         trial of the first suspect, or nothing may be ranked; the run's page says why.",
    ])
}

fn first(line: &Line<'_>) -> Cell {
    let names: Vec<String> = line.answer.first().iter().map(|row| named(row)).collect();
    match line.best() {
        None => Cell::from("nobody may be ranked"),
        Some(best) => Cell::from(list(&names)).link(products::address(&best.entry.product)),
    }
}

/// A product with its version.
fn named(row: &Row) -> String {
    let version = row.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let profile = row.label.strip_prefix(row.title.as_str()).unwrap_or_default();
    let mark = if row.suspect() { " *" } else { "" };
    format!("{}{version}{profile}{mark}", row.title)
}

fn of_products(products: &[Product<'_>]) -> Table {
    let mut table = TableOf::<Product<'_>>::new();
    table.add(Column::text("Product"), |product| Cell::from(product.title.as_str()).link(product.address()));
    table.add(Column::text("Newest run's version"), |product| product.version().to_owned());
    table.add(Column::number("Runs", ""), |product| Cell::count(product.runs.len() as u64));
    table.add(Column::text("Newest run"), |product| product.runs.first().map(|run| run.date_cell("")));
    table.table("products-table", "Products", products, |_| RowKind::Plain)
}

fn of_suites_table(suites: &[Suite<'_>]) -> Table {
    let mut table = TableOf::<Suite<'_>>::new();
    table.add(Column::text("Suite"), |suite| Cell::from(suite.name.as_str()).link(suite.address()));
    table.add(Column::text("What it is"), |suite| suite.title().to_owned());
    table.add(Column::number("Runs", ""), |suite| Cell::count(suite.runs.len() as u64));
    table.add(Column::text("Newest run"), |suite| suite.runs.first().map(|run| run.date_cell("")));
    table.table("suites-table", "Suites", suites, |_| RowKind::Plain)
}

/// What else the site has.
fn more() -> Table {
    let rows = [
        ("runs/index.html", "every run"),
        ("feed.xml", "the newest runs and what changed in them, for feed readers (Atom)"),
        ("site.json", "every run, for programs"),
    ];
    let mut table = TableOf::<(&str, &str)>::new();
    table.add(Column::text("File"), |(file, _)| Cell::from(*file).link(*file));
    table.add(Column::text("What it has"), |(_, what)| Cell::from(*what));
    table.table("more-table", "More", &rows, |_| RowKind::Plain)
}
