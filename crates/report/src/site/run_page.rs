//! The page of a run. Of a run that is kept whole it is the report, without PNG; of the others a shorter page that says what it leaves
//! out. Beside both lie `run.toml`, which repeats the run, and `summary.csv`, which has all numbers over blocks.

use std::path::Path;

use weir_model::regular;

use super::SiteOptions;
use super::recorded::Recorded;
use crate::error::ReportError;
use crate::extra::{ExtraSection, Item};
use crate::make::{write as write_file, write_report};
use crate::page::{ChartFiles, Links, SectionsPage};
use crate::run::load_run;
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
    let short = SectionsPage {
        links: Links::of_site(ROOT, "", ChartFiles::Numbers, Some(above(run))),
        brand: &run.run.name,
        heading: &run.summary.title,
        question: &run.summary.question,
        answer: &run.summary.answer,
        words: run.summary.remarks.clone(),
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
    let overview = charts::overview(&run.run, summary).into_iter();
    let pictures = overview.chain(charts::over_routes(&run.run, summary)).map(Item::from);
    let overall = tables::particular(summary).into_iter().chain(tables::overall(summary)).map(Item::Table);
    // Its notes speak of sections that this page does not have.
    let matrix = Table { notes: Vec::new(), ..tables::matrix(summary) };
    let mut noticed = vec![tables::findings(&summary.findings), tables::errors(&summary.errors)];
    noticed.retain(|table| !table.rows.is_empty());
    let machine = run.run.environment.iter().flat_map(tables::environment);
    let mut sections = vec![
        ExtraSection::new("ranking", "Each product", overall.chain(pictures).collect()),
        ExtraSection::new("matrix", "Every workload under every load", vec![Item::Table(matrix)]),
        ExtraSection::new("findings", "Findings", noticed.into_iter().map(Item::Table).collect()),
        ExtraSection::new("environment", "Machine and programs", machine.map(Item::Table).collect()),
        ExtraSection::new("kept", "What is kept of this run", kept(has_suite)),
    ];
    sections.retain(|section| !section.items.is_empty());
    sections
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
