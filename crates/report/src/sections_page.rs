//! The page of several runs: a heading, what a reader must know first, sections of tables and charts, and how to repeat it. `machines`
//! draws one in the folder of its report, `weir-compare` one of a history, `site` many. It does not know what the runs have in common.

use std::path::{Path, PathBuf};

use askama::Template;

use crate::charts::Chart;
use crate::error::{DrawError, ReportError};
use crate::extra::{Extra, ExtraSection, Item};
use crate::links::Links;
use crate::make::{Options, write, write_charts};
use crate::page::chart;
use crate::tables::html;

/// Such a page, as a report on its own.
#[derive(Debug, Clone)]
pub struct SectionsPage<'a> {
    /// What the window of a browser is called.
    pub title: &'a str,
    /// What it is of, such as `40 runs`.
    pub brand: &'a str,
    /// The first heading.
    pub heading: &'a str,
    /// What a reader must know first, one paragraph each.
    pub words: &'a [String],
    /// In reading order.
    pub sections: &'a [ExtraSection],
    /// The sentence above the command.
    pub repeat: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
}

impl SectionsPage<'_> {
    /// Writes the page as `file`, and what it links to beside it: the charts in a folder `charts`, and the sections' files. Returns
    /// all other files that were written.
    ///
    /// # Errors
    /// A file cannot be written, or a drawing fails (a defect of weir).
    pub fn write(&self, file: &Path, options: &Options) -> Result<Vec<PathBuf>, ReportError> {
        let sheet = Sheet {
            links: &Links::of_report(options.png),
            brand: self.brand,
            title: self.title,
            heading: self.heading,
            question: "",
            answer: "",
            words: self.words,
            sections: self.sections,
            repeat: &[(self.repeat.to_owned(), self.command.to_owned())],
        };
        sheet.write(file)
    }
}

/// A page of sections, alone or of a site.
#[derive(Template)]
#[template(path = "sections.html")]
pub(crate) struct Sheet<'a> {
    pub links: &'a Links,
    pub brand: &'a str,
    pub title: &'a str,
    pub heading: &'a str,
    /// The question that the page answers, and the answer; both may be empty.
    pub question: &'a str,
    pub answer: &'a str,
    pub words: &'a [String],
    pub sections: &'a [ExtraSection],
    /// How its numbers come about again: a sentence and a command each.
    pub repeat: &'a [(String, String)],
}

impl Sheet<'_> {
    /// Writes the page as `file`, and what it links to where its links say. Returns all other files that were written.
    ///
    /// # Errors
    /// As [`SectionsPage::write`].
    pub fn write(&self, file: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let folder = file.with_file_name("").join(&self.links.files);
        let charts: Vec<&Chart> = self.sections.iter().flat_map(ExtraSection::charts).collect();
        let names = write_charts(&charts, &folder, self.links.charts)?;
        let mut files: Vec<PathBuf> = names.into_iter().map(|name| folder.join("charts").join(name)).collect();
        for (name, text) in (Extra { sections: self.sections.to_vec(), broken: Vec::new() }).files() {
            write(&folder.join(name), text.as_bytes())?;
            files.push(folder.join(name));
        }
        let page = self.render().map_err(ReportError::draw(&file.to_string_lossy()))?;
        write(file, page.as_bytes())?;
        Ok(files)
    }

    fn chart(&self, picture: &Chart) -> Result<String, DrawError> {
        chart(picture, self.links)
    }
}
