//! Publishes many runs as one static site: an overview that answers by question, a page for each product, suite and run.
//! `weir site` calls [`site`](fn@site).
//!
//! A site needs no server and loads nothing from elsewhere: pages share one style and one script. The same runs give the same bytes. A
//! thousand whole reports would be hundreds of megabytes, so only the newest run of each suite on each machine keeps its whole report;
//! of the others a page keeps the answer, the tables over all products, one picture and `summary.csv` (`run_page`). The module judges
//! nothing: who comes first in a question is what the run's own summary says.

mod leaders;
mod list;
mod machines;
mod products;
mod recorded;
mod run_page;
mod suites;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use crate::error::ReportError;
use crate::extra::Extra;
use crate::make::{folder_beside, replace, write};
use crate::page::{self, SCRIPT, STYLE};
use crate::run::Run;
use crate::summary::{Metric, Summary};
use crate::tables::Table;
use recorded::Recorded;
use weir_model::text::Unit;

/// What a site is made with.
pub struct SiteOptions<'a> {
    /// What a caller adds to the pages of a run and of its suite, such as published figures.
    pub extra: &'a (dyn Fn(&Run, &Summary) -> Extra + Sync),
    /// How many runs keep their whole report at most: of the newest runs of each suite on each machine, the newest.
    pub whole: usize,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// The folder.
    pub folder: PathBuf,
    /// The page to begin with.
    pub index: PathBuf,
    /// Runs with a page.
    pub runs: usize,
    /// Those with their whole report.
    pub whole: usize,
    /// Machines that they ran on.
    pub machines: usize,
    /// Different questions: a workload under a load.
    pub questions: usize,
    /// Products with a page.
    pub products: usize,
    /// Suites with a page.
    pub suites: usize,
    /// Folders that look like runs and could not be read.
    pub skipped: Vec<SkippedRun>,
}

/// A folder that looks like a run and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedRun {
    /// The folder.
    pub folder: PathBuf,
    /// Why.
    pub why: String,
}

/// Rows of a table on a page; the file beside it has all.
const SHOWN: usize = 50;

/// The numbers shown of a case.
const SHOWN_METRICS: [(Metric, Unit); 3] =
    [(Metric::Rate, Unit::PER_SECOND), (Metric::P99, Unit::MILLIS), (Metric::Cpu, Unit::MICROS_PER_REQUEST)];

/// Makes a site of the runs in `given`, folders of runs or runs, in `folder`, which is made, or replaced where it is a site.
///
/// # Errors
/// When a folder has no run, or one that was given by name cannot be read; when `folder` holds something else; when it cannot be
/// written, or drawing fails (a defect of weir). An older site then stays as it was.
pub fn site(given: &[PathBuf], folder: &Path, options: &SiteOptions<'_>) -> Result<Site, ReportError> {
    list::may_replace(folder)?;
    let (runs, skipped) = recorded::read(given, options.whole)?;
    let Some(first) = given.first().filter(|_| runs.is_empty()) else {
        return write_site(&runs, skipped, folder, options);
    };
    let why = skipped.first().map_or_else(|| "there is no run in it".to_owned(), |skipped| skipped.why.clone());
    Err(ReportError::NotARun { path: first.clone(), why })
}

fn write_site(
    runs: &[Recorded],
    skipped: Vec<SkippedRun>,
    folder: &Path,
    options: &SiteOptions<'_>,
) -> Result<Site, ReportError> {
    let questions = recorded::all(runs);
    let products = products::all(&questions);
    let suites = suites::all(runs);
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| ReportError::io(parent, "make", error))?;
    let new = folder_beside(parent)?;
    let to = new.path();
    write(&to.join(page::STYLE_FILE), STYLE.as_bytes())?;
    write(&to.join(page::SCRIPT_FILE), SCRIPT.as_bytes())?;
    runs.par_iter().try_for_each(|run| run_page::write(run, to, options))?;
    products.par_iter().try_for_each(|product| products::write(product, to))?;
    suites.par_iter().try_for_each(|suite| suites::write_suite(suite, to, options))?;
    suites::write_overview(runs, &questions, &products, &suites, to)?;
    list::write_list(runs, to)?;
    replace(parent, new, folder)?;
    Ok(Site {
        folder: folder.to_path_buf(),
        index: folder.join("index.html"),
        runs: runs.len(),
        whole: runs.iter().filter(|run| run.whole).count(),
        machines: recorded::machines(runs).len(),
        questions: questions.len(),
        products: products.len(),
        suites: suites.len(),
        skipped,
    })
}

/// A table of the first [`SHOWN`] of some rows, which says so.
fn shortened(mut table: Table, rest: &str) -> Table {
    let all = table.rows.len();
    if all > SHOWN {
        table.rows.truncate(SHOWN);
        table.notes.push(format!("The newest {SHOWN} of {all}; {rest}."));
    }
    table
}

/// A name as a part of a path: it may come from a record that was tampered with.
fn safe(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let text: String = name.chars().map(safe).collect();
    match text.trim_start_matches('.') {
        "" => "unnamed".to_owned(),
        text => text.to_owned(),
    }
}

/// The first of `wanted`, `wanted-2`, `wanted-3` ... that is not taken, which it is then.
fn untaken(wanted: String, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|nth| format!("{wanted}-{nth}"));
    let name = std::iter::once(wanted.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(wanted);
    taken.insert(name.clone());
    name
}
