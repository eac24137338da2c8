//! The overview of a site, which answers by question; the list of all its runs; and the page of each suite.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_model::metric::Metric;
use weir_model::text::{Unit, counted, list};

use super::machines::{Machines, are_comparable};
use super::products::Product;
use super::recorded::{Answer, Question, Recorded};
use super::{SiteOptions, leaders, products, recorded, shortened, words};
use crate::error::ReportError;
use crate::extra::{ExtraSection, Item};
use crate::page::{ChartFiles, Links, SectionsPage};
use crate::run::load_run;
use crate::summary::Row;
use crate::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};

/// Writes both pages.
///
/// # Errors
/// When a file cannot be written or drawn.
pub(super) fn write_overview(
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
    let list = runs_table("runs", &newest, "", true);
    let picture = leaders::chart(questions);
    let picture = (!picture.is_empty()).then(|| Item::from(picture));
    let answers = picture.into_iter().chain([Item::Table(answers(questions))]).collect();
    let overview = SectionsPage {
        links: Links::of_site("", "", ChartFiles::Pictures, None),
        heading: "Which product, for which work?",
        words: vec![format!(
            "{all} of {of_suites} on {on_machines}{days}. Each answer is what the newest run on a machine says: products are compared \
             within one run, and two machines' numbers compare the machines.",
        )],
        sections: vec![
            ExtraSection::new("answers", "Answers, by question", answers),
            ExtraSection::new("products", "Products", vec![Item::Table(of_products(products))]),
            ExtraSection::new("suites", "Suites", vec![Item::Table(of_suites_table(suites))]),
            ExtraSection::new(
                "runs",
                "Newest runs",
                vec![Item::Table(shortened(list.clone(), "the list of all runs has the others")), Item::Table(more())],
            ),
        ],
        repeat: vec![
            ("The site was made from the runs' folders by:".to_owned(), "weir site RUNS --out FOLDER".to_owned()),
            ("Each run's page has the run.toml that repeats the run:".to_owned(), "weir run run.toml".to_owned()),
        ],
        ..SectionsPage::default()
    };
    overview.write(&site.join("index.html"))?;
    let list = runs_table("runs", &newest, "../", true);
    let all_runs = SectionsPage {
        links: Links::of_site("../", "", ChartFiles::Pictures, None),
        brand: "all runs",
        heading: "All runs",
        words: vec![format!("{all}{days}.")],
        sections: vec![ExtraSection::new("runs", "Runs, newest first", vec![Item::Table(list)])],
        ..overview
    };
    all_runs.write(&site.join("runs/index.html")).map(drop)
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

/// The first products, question by question and machine by machine.
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

/// The site's other files.
fn more() -> Table {
    let rows = [("runs/index.html", "every run"), ("site.json", "every run, for programs")];
    let mut table = TableOf::<(&str, &str)>::new();
    table.add(Column::text("File"), |(file, _)| Cell::from(*file).link(*file));
    table.add(Column::text("What it has"), |(_, what)| Cell::from(*what));
    table.table("more-table", "More", &rows, |_| RowKind::Plain)
}

/// The way from a suite's page to the site's folder.
const ROOT: &str = "../";

/// Machines that stand beside each other at most: more bars cannot be read.
const MOST_MACHINES: usize = 6;

/// A suite and its runs.
pub(super) struct Suite<'a> {
    /// As a part of a path.
    pub name: String,
    /// Newest first; there is one.
    pub runs: Vec<&'a Recorded>,
}

/// The suites of all runs by name.
pub(super) fn all(runs: &[Recorded]) -> Vec<Suite<'_>> {
    let mut by_name: BTreeMap<String, Vec<&Recorded>> = BTreeMap::new();
    for run in runs {
        by_name.entry(run.suite()).or_default().push(run);
    }
    by_name.into_iter().map(|(name, runs)| Suite { name, runs }).collect()
}

impl Suite<'_> {
    /// The address of its page, from the site's folder.
    pub fn address(&self) -> String {
        format!("suites/{}.html", self.name)
    }

    /// Its title in the newest run.
    pub fn title(&self) -> &str {
        self.newest().map(|run| run.summary.title.as_str()).unwrap_or_default()
    }

    fn newest(&self) -> Option<&Recorded> {
        self.runs.first().copied()
    }

    /// The newest run of each machine that can stand beside the newest of all.
    fn by_machine(&self) -> Vec<&Recorded> {
        let Some(newest) = self.newest() else { return Vec::new() };
        let mut seen = BTreeSet::new();
        let each = self.runs.iter().copied().filter(|run| seen.insert(run.machine.as_str()));
        let beside = |run: &&Recorded| run.id == newest.id || are_comparable(&newest.run.suite, &run.run.suite);
        each.filter(beside).take(MOST_MACHINES).collect()
    }
}

/// Writes the page of a suite and its files.
///
/// # Errors
/// When the newest run has vanished meanwhile; when a file cannot be written or drawn.
pub(super) fn write_suite(suite: &Suite<'_>, site: &Path, options: &SiteOptions<'_>) -> Result<(), ReportError> {
    let Some(newest) = suite.newest() else { return Ok(()) };
    let mut sections = asks(newest);
    let by_machine = suite.by_machine();
    sections.extend(Machines::new(&by_machine).sections());
    // Its figures stand beside trials, which are not kept in memory.
    let extra = (options.extra)(&load_run(&newest.run.folder)?, &newest.summary);
    sections.extend(extra.sections);
    let all = runs_table("runs", &suite.runs, ROOT, false);
    sections.push(ExtraSection::new("runs", "Its runs", vec![Item::Table(shortened(all, "runs/index.html has all"))]));
    let runs = counted(suite.runs.len() as u64, "run");
    let mut words = vec![format!("{runs}. The newest, of {}, answers:", newest.date())];
    words.push(newest.summary.answer.clone());
    let page = SectionsPage {
        links: Links::of_site(ROOT, &suite.name, ChartFiles::Pictures, None),
        brand: &format!("suite {}", suite.name),
        heading: suite.title(),
        question: &newest.summary.question,
        words,
        sections,
        repeat: vec![(
            "The suite as its newest run had it is the run.toml on that run's page; a suite that weir has is run by its name:".to_owned(),
            format!("weir run {}", suite.name),
        )],
        ..SectionsPage::default()
    };
    page.write(&site.join(suite.address())).map(drop)
}

/// What the suite asks, in plain words.
fn asks(newest: &Recorded) -> Vec<ExtraSection> {
    let suite = &newest.run.suite;
    let workloads = suite.workloads.iter().map(|workload| ("workload", &workload.name, words::of_workload(workload)));
    let any = suite.workloads.first().cloned().unwrap_or_default();
    let loads = suite.loads.iter().map(|load| ("load", &load.name, words::of_load(load, &any)));
    let rows: Vec<(&str, &String, String)> = workloads.chain(loads).collect();
    let mut table = TableOf::<(&str, &String, String)>::new();
    table.add(Column::text("Part"), |(kind, ..)| Cell::from(*kind));
    table.add(Column::text("Name"), |(_, name, _)| (*name).clone());
    table.add(Column::text("What it is"), |(.., words)| words.clone());
    let table = table.table("asks-table", "Workloads and loads", &rows, |_| RowKind::Plain);
    vec![ExtraSection::new("asks", "What it asks", vec![Item::Table(table)])]
}

/// A table of runs, newest first; `root` is the way from the page to the site's folder.
pub(super) fn runs_table(id: &str, runs: &[&Recorded], root: &str, of_several_suites: bool) -> Table {
    let mut table = TableOf::<&Recorded>::new();
    table.add(Column::text("Run"), move |run| run.date_cell(root));
    if of_several_suites {
        table.add(Column::text("Suite"), move |run| {
            let suite = run.suite();
            Cell::from(suite.as_str()).link(format!("{root}suites/{suite}.html"))
        });
    }
    table.add(Column::text("Machine"), |run| run.machine.clone());
    table.add(Column::text("Answer"), |run| run.summary.answer.clone());
    table.add(Column::text("Name"), |run| run.run.name.clone());
    table.table(format!("{id}-table"), "Runs", runs, |_| RowKind::Plain)
}
