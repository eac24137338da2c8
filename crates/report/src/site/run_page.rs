//! The page of a run. Of a run that is kept whole it is the report, without PNG; of the others a shorter page that says what it leaves
//! out. Beside both lie `run.toml`, which repeats the run, and `summary.csv`, which has all numbers over blocks.

use std::path::Path;

use weir_model::record::{ProductFacts, Severity};
use weir_model::regular;
use weir_model::text::unique;

use super::SiteOptions;
use super::recorded::Recorded;
use crate::error::ReportError;
use crate::extra::{ExtraSection, Item};
use crate::make::{write as write_file, write_report};
use crate::page::{ChartFiles, Links, SectionsPage};
use crate::run::load_run;
use crate::summary::{FailedTrial, FindingGroup};
use crate::tables::{self, Cell, Column, RowKind, Table, TableOf};
use crate::{charts, summary_csv};

/// The way from a run's page to the site's folder.
const ROOT: &str = "../../";

/// Writes the page of a run and its files.
///
/// # Errors
/// When the run has vanished meanwhile; when a file cannot be written or drawn.
pub(super) fn write(run: &Recorded, site: &Path, options: &SiteOptions<'_>) -> Result<(), ReportError> {
    let page = site.join(run.page());
    let folder = page.with_file_name("");
    let suite = regular::read(&run.run.folder.join("run.toml")).ok();
    if let Some(suite) = &suite {
        write_file(&folder.join("run.toml"), suite)?;
    }
    if run.whole {
        let read = load_run(&run.run.folder)?;
        let extra = (options.extra)(&read, &run.summary);
        let links = Links::of_site(ROOT, "", ChartFiles::Pictures, Some(above(run)));
        return write_report(&read, run.summary.clone(), extra, &links, &page).map(drop);
    }
    let csv = summary_csv::draw(&run.summary).map_err(ReportError::draw("summary.csv"))?;
    write_file(&folder.join("summary.csv"), &csv)?;
    let mut repeat = Vec::new();
    if suite.is_some() {
        let words = "The run is repeated, with the same cases, order and seed, from its run.toml by:";
        repeat.push((words.to_owned(), "weir run run.toml".to_owned()));
    }
    repeat.push((
        "Its whole report, with every section, picture and trial, is made from the run's folder by:".to_owned(),
        format!("weir report {}", run.run.name),
    ));
    let mut words = run.summary.remarks.clone();
    if !run.summary.findings.is_empty() {
        words.push("Findings are counted here; the whole report explains each.".to_owned());
    }
    let short = SectionsPage {
        links: Links::of_site(ROOT, "", ChartFiles::Numbers, Some(above(run))),
        brand: &run.run.name,
        heading: &run.summary.title,
        question: &run.summary.question,
        answer: &run.summary.answer,
        words,
        sections: sections(run, suite.is_some()),
        repeat,
        ..SectionsPage::default()
    };
    short.write(&page).map(drop)
}

/// The page of its suite.
fn above(run: &Recorded) -> (String, String) {
    let suite = run.suite();
    (format!("suites/{suite}.html"), suite)
}

fn sections(run: &Recorded, has_suite: bool) -> Vec<ExtraSection> {
    let summary = &run.summary;
    let picture = charts::overview(&run.run, summary).map(Item::from);
    let overall = tables::streams(summary).into_iter().chain(tables::overall(summary)).map(Item::Table);
    let mut sections = Vec::new();
    let products: Vec<Item> = overall.chain(picture).collect();
    if !products.is_empty() {
        sections.push(ExtraSection::new("products", "Each product", products));
    }
    let mut matrix = tables::matrix(summary);
    // Its notes speak of sections that this page does not have.
    matrix.notes.clear();
    sections.push(ExtraSection::new("matrix", "Every workload under every load", vec![Item::Table(matrix)]));
    let noticed = [findings(&summary.findings), errors(&summary.errors)];
    let noticed: Vec<Item> = noticed.into_iter().filter(|table| !table.rows.is_empty()).map(Item::Table).collect();
    if !noticed.is_empty() {
        sections.push(ExtraSection::new("findings", "Findings", noticed));
    }
    sections.push(ExtraSection::new("machine", "Machine and programs", environment(run)));
    sections.push(ExtraSection::new("kept", "What is kept of this run", kept(has_suite)));
    sections
}

/// How often each check noticed something. The report has its words.
fn findings(found: &[FindingGroup]) -> Table {
    let kinds = unique(found.iter().map(|group| (group.check.clone(), group.severity)));
    let of = |(check, severity): (String, Severity)| {
        let trials = found.iter().filter(|group| group.check == check && group.severity == severity);
        let trials = trials.map(|group| group.trials.len()).sum();
        Noticed { check, severity, trials }
    };
    let rows: Vec<Noticed> = kinds.into_iter().map(of).collect();
    let mut table = TableOf::<Noticed>::new();
    table.add(Column::text("Check"), |noticed| noticed.check.clone());
    table.add(Column::text("Severity"), |noticed| noticed.severity.as_str());
    table.add(Column::number("Trials", ""), |noticed| match noticed.trials {
        0 => Cell::from("the machine"),
        trials => Cell::count(trials as u64),
    });
    table.table("findings-table", "What the checks noticed", &rows, |_| RowKind::Plain)
}

/// A check of one severity, and how many trials it is of.
struct Noticed {
    check: String,
    severity: Severity,
    trials: usize,
}

fn errors(failed: &[FailedTrial]) -> Table {
    let mut table = TableOf::<FailedTrial>::new();
    table.add(Column::text("Product"), |failed| failed.label.clone());
    table.add(Column::text("Workload, load"), |failed| format!("{}, {}", failed.workload, failed.load));
    table.add(Column::text("What happened"), |failed| failed.message.clone());
    table.table("errors-table", "Trials that failed", failed, |_| RowKind::Unranked)
}

fn environment(run: &Recorded) -> Vec<Item> {
    let Some(environment) = &run.run.environment else {
        let words = "environment.json is missing or cannot be read, so nothing is known of the machine.";
        return vec![Item::Paragraph(words.to_owned())];
    };
    let mut facts = vec![("Started".to_owned(), environment.started.clone())];
    facts.extend(tables::host_facts(environment));
    facts.extend(tables::run_facts(environment));
    let mut machine = TableOf::<(String, String)>::new();
    machine.add(Column::text("Fact"), |(name, _)| name.clone());
    machine.add(Column::text("Value"), |(_, value)| value.clone());
    let mut programs = TableOf::<ProductFacts>::new();
    programs.add(Column::text("Product"), |facts| facts.title.clone());
    programs.add(Column::text("Version"), |facts| facts.version.clone());
    programs.add(Column::text("SHA-256"), |facts| facts.sha256.clone());
    vec![
        Item::Table(programs.table("programs", "Products as they were run", &environment.products, |_| RowKind::Plain)),
        Item::Table(machine.table("facts", "Machine", &facts, |_| RowKind::Plain)),
    ]
}

fn kept(has_suite: bool) -> Vec<Item> {
    let words = "This is an older run of its suite on its machine. Kept are the answer, the tables over blocks, the picture above, and \
                 these files. The newest run of each suite on each machine has its whole report: every section, picture, trial and \
                 configuration.";
    let mut files = vec![("summary.csv", "every number over blocks, with its interval")];
    if has_suite {
        files.insert(0, ("run.toml", "the suite as it was run, which repeats it"));
    }
    let mut table = TableOf::<(&str, &str)>::new();
    table.add(Column::text("File"), |(file, _)| Cell::from(*file).link(*file));
    table.add(Column::text("What it is"), |(_, what)| Cell::from(*what));
    vec![Item::Paragraph(words.to_owned()), Item::Table(table.table("files", "Files", &files, |_| RowKind::Plain))]
}
