//! The page of a suite: what it asks, its newest run on each machine beside each other, what a caller adds (published figures), and all
//! of its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_model::text::counted;

use super::recorded::Recorded;
use super::{Page, SiteOptions, section, shortened, words};
use crate::error::ReportError;
use crate::extra::{ExtraSection, Item};
use crate::links::ChartFiles;
use crate::machines;
use crate::run::{Run, load_run};
use crate::summary::Summary;
use crate::tables::{Cell, Column, RowKind, Table, TableOf};

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
        let beside = |run: &&Recorded| run.id == newest.id || machines::comparable(&newest.run, &run.run).is_ok();
        each.filter(beside).take(MOST_MACHINES).collect()
    }
}

/// Writes the page of a suite and its files.
///
/// # Errors
/// When the newest run has vanished meanwhile; when a file cannot be written or drawn.
pub(super) fn write(suite: &Suite<'_>, site: &Path, options: &SiteOptions<'_>) -> Result<(), ReportError> {
    let Some(newest) = suite.newest() else { return Ok(()) };
    let mut sections = asks(newest);
    let by_machine = suite.by_machine();
    let beside: Vec<(&Run, &Summary)> = by_machine.iter().map(|run| (&run.run, &run.summary)).collect();
    sections.extend(machines::sections(&beside));
    // Its figures stand beside trials, which are not kept in memory.
    let extra = (options.extra)(&load_run(&newest.run.folder)?, &newest.summary);
    sections.extend(extra.sections);
    let all = runs("runs", &suite.runs, ROOT, false);
    sections.push(section("runs", "Its runs", vec![Item::Table(shortened(all, "runs/index.html has all"))]));
    let runs = counted(suite.runs.len() as u64, "run");
    let mut words = vec![format!("{runs}. The newest, of {}, answers:", newest.date())];
    words.push(newest.summary.answer.clone());
    let page = Page {
        address: &suite.address(),
        root: ROOT,
        files: &suite.name,
        charts: ChartFiles::Pictures,
        brand: &format!("suite {}", suite.name),
        heading: suite.title(),
        question: &newest.summary.question,
        answer: "",
        words,
        sections,
        repeat: vec![(
            "The suite as its newest run had it is the run.toml on that run's page; a suite that weir has is run by its name:".to_owned(),
            format!("weir run {}", suite.name),
        )],
        above: Vec::new(),
    };
    page.write(site)
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
    vec![section("asks", "What it asks", vec![Item::Table(table)])]
}

/// A table of runs, newest first; `root` is the way from the page to the site's folder.
pub(super) fn runs(id: &str, runs: &[&Recorded], root: &str, of_several_suites: bool) -> Table {
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
