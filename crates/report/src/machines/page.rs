//! The page of several machines: `report.html`, `report.md` and charts in a folder of their own. Called by `machines`.

use std::path::Path;

use askama::Template;

use super::{Machines, cases, facts};
use crate::error::ReportError;
use crate::extra::{ExtraSection, Item};
use crate::make::{Made, Options, folder_beside, replace, write};
use crate::sections_page::SectionsPage;
use crate::summary::slug;
use crate::tables::markdown::{self, escape};
use crate::tables::one_line;

#[derive(Template)]
#[template(path = "machines.md", escape = "none")]
struct Markdown<'a> {
    all: &'a Machines<'a>,
    title: &'a str,
    words: &'a [String],
    sections: &'a [ExtraSection],
}

/// Writes the report.
pub(super) fn make(all: &Machines<'_>, folder: &Path, options: &Options) -> Result<Made, ReportError> {
    let is_report = folder.join("report.html").is_file();
    let empty = std::fs::read_dir(folder).map_or(true, |mut files| files.next().is_none());
    if !is_report && !empty {
        return Err(ReportError::Occupied { path: folder.to_path_buf(), what: "report" });
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|error| ReportError::io(parent, "make", error))?;
    let (sections, words) = (sections(all), words(all));
    let title = all.machines.first().map(|machine| machine.summary.title.as_str()).unwrap_or_default();
    let new = folder_beside(parent)?;
    let (sections, words) = (sections.as_slice(), words.as_slice());
    let count = all.machines.len();
    let runs: Vec<&str> = all.machines.iter().map(|machine| machine.run.name.as_str()).collect();
    let page = SectionsPage {
        title: &format!("{title}, {count} machines"),
        brand: &format!("{count} runs"),
        heading: &format!("{title}, on {count} machines"),
        words,
        sections,
        repeat: "This report was made from the run folders:",
        command: &format!("weir report {}", runs.join(" ")),
    };
    let drawn = page.write(&new.path().join("report.html"), options)?;
    let text = Markdown { all, title, words, sections }.render().map_err(ReportError::draw("report.md"))?;
    write(&new.path().join("report.md"), text.as_bytes())?;
    let csv = cases::csv(all).map_err(ReportError::draw("summary.csv"))?;
    write(&new.path().join("summary.csv"), &csv)?;
    let charts = drawn.iter().filter_map(|file| Some(folder.join(file.strip_prefix(new.path()).ok()?))).collect();
    replace(parent, new, folder)?;
    Ok(Made {
        html: folder.join("report.html"),
        markdown: folder.join("report.md"),
        charts,
        summary_csv: folder.join("summary.csv"),
    })
}

/// What a reader must know first.
fn words(all: &Machines<'_>) -> Vec<String> {
    let mut words = vec![
        "A product's numbers on two machines compare the machines, with all that differs between the runs. Products are compared \
         within one machine: each run's own report ranks them."
            .to_owned(),
    ];
    let programs = facts::other_programs(all);
    if !programs.is_empty() {
        let programs = weir_model::text::list(&programs);
        words
            .push(format!("{programs} ran as another version or build on some: of these, machine and program differ."));
    }
    words
}

/// What the machines are, and each case on all of them.
pub(super) fn sections(all: &Machines<'_>) -> Vec<ExtraSection> {
    let mut about = vec![Item::Table(facts::machines(all))];
    let differences = facts::differences(all);
    about.push(match differences.rows.is_empty() {
        true => Item::Paragraph("Nothing else that was recorded differs between the runs.".to_owned()),
        false => Item::Table(differences),
    });
    let about = ExtraSection { id: "machines".to_owned(), heading: "Machines".to_owned(), items: about };
    let case = |case: (&str, &str)| {
        let charts = cases::charts(all, case).into_iter().map(|chart| Item::Chart(Box::new(chart)));
        ExtraSection {
            id: slug(case.0, case.1),
            heading: cases::heading(all, case),
            items: charts.chain([Item::Table(cases::table(all, case))]).collect(),
        }
    };
    [about].into_iter().chain(all.cases().into_iter().map(case)).collect()
}
