//! Writes the report of a run. It writes into a new folder and then swaps that with the old one, so that a reader never sees half a report.
//! It changes nothing in the run except `report/`.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::charts::{self, Chart, SectionCharts, csv, draw, png};
use crate::error::ReportError;
use crate::extra::Extra;
use crate::page::{self, ChartFiles, Drawing, Links};
use crate::run::{Broken, Run, load_run};
use crate::summary::{Summary, summary};
use crate::summary_csv;

/// Name of the report's folder in a run.
const FOLDER: &str = "report";

/// Name of the page in it.
const PAGE: &str = "report.html";

/// The paths of the files of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The page.
    pub html: PathBuf,
    /// The report as markdown, for a README.
    pub markdown: PathBuf,
    /// SVG, PNG and CSV of each chart.
    pub charts: Vec<PathBuf>,
    /// One row a product and section.
    pub summary_csv: PathBuf,
}

/// Makes the report of `run`, which may still be growing; may be called any time, as often as wanted.
///
/// # Errors
///
/// When the folder is no run, no trial has ended, a file cannot be written, or drawing fails (a defect of weir). An older
/// report then stays as it was.
pub fn make(run: &Path, files: ChartFiles) -> Result<Made, ReportError> {
    let run = load_run(run)?;
    make_of(&run, summary(&run), Extra::default(), files)
}

/// Makes the report of a loaded run, or of a part of it, from its `summary`. The caller already has the summary, which takes
/// long to compute. The sections of `extra` follow those of the report.
///
/// # Errors
///
/// As [`make`].
pub fn make_of(loaded: &Run, summary: Summary, extra: Extra, files: ChartFiles) -> Result<Made, ReportError> {
    let run = loaded.folder.as_path();
    let new = folder_beside(run)?;
    let names = write_report(loaded, summary, extra, &Links::of_report(files), &new.path().join(PAGE))?;
    let folder = run.join(FOLDER);
    replace(run, new, &folder)?;
    Ok(Made {
        html: folder.join(PAGE),
        markdown: folder.join("report.md"),
        charts: names.into_iter().map(|name| folder.join("charts").join(name)).collect(),
        summary_csv: folder.join("summary.csv"),
    })
}

/// Writes the page of a run and, beside it, its other files; the names of its charts' files.
pub(crate) fn write_report(
    loaded: &Run,
    mut summary: Summary,
    extra: Extra,
    links: &Links,
    page: &Path,
) -> Result<Vec<String>, ReportError> {
    let (mut drawn, mut broken) = draw_sections(loaded, &summary);
    // Histograms and series are only read for charts, so only now is it known which of them are broken.
    extra.broken.iter().for_each(|row| charts::note_broken(&mut broken, row.clone()));
    summary.broken.append(&mut broken);
    let overview = charts::overview(loaded, &summary);
    if let ([only], Some(_)) = (drawn.as_mut_slice(), &overview) {
        // With one section, its first chart is on the first screen already.
        only.main.drain(..only.main.len().min(1));
    }
    let first: Vec<Chart> = overview.into_iter().chain(charts::over_routes(loaded, &summary)).collect();
    let drawing = Drawing {
        run: loaded,
        summary: &summary,
        first: &first,
        sections: summary.sections.iter().zip(&drawn).collect(),
        extra: &extra.sections,
        links,
    };
    let folder = page.with_file_name("");
    let of_sections = drawn.iter().flat_map(SectionCharts::all);
    let of_extra = extra.charts();
    let all: Vec<&Chart> = first.iter().chain(of_sections).chain(of_extra).collect();
    let names = write_charts(&all, &folder, links.charts)?;
    let html = page::html(&drawing).map_err(ReportError::draw(PAGE))?;
    let markdown = page::markdown(&drawing).map_err(ReportError::draw("report.md"))?;
    let csv = summary_csv::draw(&summary).map_err(ReportError::draw("summary.csv"))?;
    write(page, html.as_bytes())?;
    write(&folder.join("report.md"), markdown.as_bytes())?;
    write(&folder.join("summary.csv"), &csv)?;
    for (file, text) in extra.files() {
        write(&folder.join(file), text.as_bytes())?;
    }
    Ok(names)
}

/// The charts of all sections, and the files that could not be read. Most of the time goes into every trial's histogram.
fn draw_sections(run: &Run, summary: &Summary) -> (Vec<SectionCharts>, Vec<Broken>) {
    let drawn = summary.sections.par_iter().map(|section| {
        let mut broken = Vec::new();
        let charts = charts::of_section(run, section, &mut broken);
        (charts, broken)
    });
    let (charts, broken): (Vec<_>, Vec<_>) = drawn.unzip();
    (charts, broken.into_iter().flatten().collect())
}

/// A folder that vanishes unless it is renamed.
pub(crate) fn folder_beside(run: &Path) -> Result<tempfile::TempDir, ReportError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".report-");
    // Other users read reports too; the umask still applies.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    builder.tempdir_in(run).map_err(|error| ReportError::io(run, "make a folder in", error))
}

/// Puts the new folder where the old one was.
pub(crate) fn replace(run: &Path, new: tempfile::TempDir, folder: &Path) -> Result<(), ReportError> {
    // Goes away, with the old report in it, when this function ends.
    let old = folder_beside(run)?;
    match fs::rename(folder, old.path().join(FOLDER)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(ReportError::io(folder, "move the old report away", error));
        }
        _ => {}
    }
    let new = new.keep();
    fs::rename(&new, folder).map_err(|error| ReportError::io(folder, "rename to", error))
}

/// Writes a file. Its folder is made when it is not there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, bytes)).map_err(|error| ReportError::io(path, "write", error))
}

/// Draws each chart as the `files` that are wanted; their names, in the order of the charts.
pub(crate) fn write_charts(charts: &[&Chart], report: &Path, files: ChartFiles) -> Result<Vec<String>, ReportError> {
    let folder = report.join("charts");
    // Rasterising takes most of the time.
    charts.par_iter().try_for_each(|chart| write_chart(chart, &folder, files))?;
    Ok(charts
        .iter()
        .flat_map(|chart| files.endings().iter().map(|ending| format!("{}.{ending}", chart.name)))
        .collect())
}

fn write_chart(chart: &Chart, folder: &Path, files: ChartFiles) -> Result<(), ReportError> {
    let file = |ending: &str| folder.join(format!("{}.{ending}", chart.name));
    if files.has_svg() {
        let picture = draw::svg(chart).map_err(ReportError::draw(&chart.name))?;
        if files.has_png() {
            write(&file("png"), &png::draw(&picture).map_err(ReportError::draw(&chart.name))?)?;
        }
        write(&file("svg"), picture.as_bytes())?;
    }
    write(&file("csv"), &csv::draw(chart).map_err(ReportError::draw(&chart.name))?)
}
