//! Pages: `report.html`, a single file that works offline; `report.md`, which can be pasted into a README; and the page of several runs.
//! Their looks are in the templates, which escape all text that comes from a run. Only two things pass unescaped: the style and script of
//! the page, and what was drawn by another template.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use weir_model::suite::Series;
use weir_model::text::{count, counted};

use crate::charts::draw::Plot;
use crate::charts::{Chart, SectionCharts, draw};
use crate::error::{DrawError, ReportError};
use crate::extra::{ExtraSection, Item};
use crate::files::Rendered;
use crate::make::{write, write_charts};
use crate::run::Run;
use crate::summary::{Section, Summary};
use crate::tables::markdown::escape;
use crate::tables::{Table, html, markdown, one_line};
use crate::{files, tables};

/// With more sections than this, each one is built when the reader scrolls near it. A page of a few sections can be
/// searched and printed as it is.
const SECTIONS_AT_ONCE: usize = 12;

/// More remarks than this are folded up.
const REMARKS: usize = 5;

/// More sections than this have one picture each in `report.md`; the page has the others.
const FEW_SECTIONS: usize = 6;

/// What the page does, one file a matter.
pub(crate) const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../assets/theme.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/only.js"),
    include_str!("../assets/page.js"),
    "})();\n"
);

pub(crate) const STYLE: &str = concat!(include_str!("../assets/drawing.css"), include_str!("../assets/page.css"));

/// Everything that a report draws.
pub(crate) struct Drawing<'a> {
    pub run: &'a Run,
    pub summary: &'a Summary,
    /// The charts of the first screen.
    pub first: &'a [Chart],
    pub sections: Vec<(&'a Section, &'a SectionCharts)>,
    pub extra: &'a [ExtraSection],
    pub links: &'a Links,
}

impl Drawing<'_> {
    /// The trials that ended, and of how many.
    fn trials(&self) -> String {
        let planned = self.summary.trials_planned.unwrap_or(self.summary.trials);
        format!("{} of {}", count(self.summary.trials as u64), counted(planned as u64, "trial"))
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    drawing: &'a Drawing<'a>,
    links: &'a Links,
    brand: &'a str,
    summary: &'a Summary,
    filter: Filter,
    configurations: Vec<Rendered>,
}

#[derive(Template)]
#[template(path = "section.html")]
struct SectionPage<'a> {
    links: &'a Links,
    run: &'a Run,
    section: &'a Section,
    charts: &'a SectionCharts,
}

#[derive(Template)]
#[template(path = "chart.html")]
struct ChartBlock<'a> {
    links: &'a Links,
    chart: &'a Chart,
    plot: Plot,
}

#[derive(Template)]
#[template(path = "report.md", escape = "none")]
struct Markdown<'a> {
    drawing: &'a Drawing<'a>,
    summary: &'a Summary,
}

/// The page.
///
/// # Errors
///
/// Only when a template is wrong.
pub(crate) fn html(drawing: &Drawing<'_>) -> askama::Result<String> {
    let filter = Filter::of(drawing.run, drawing.summary);
    let configurations = files::configurations(drawing.run);
    let (links, brand) = (drawing.links, drawing.summary.run.as_str());
    Page { drawing, links, brand, summary: drawing.summary, filter, configurations }.render()
}

/// The text. Links to pictures are relative, so it must lie beside `charts/`.
///
/// # Errors
///
/// Only when the template is wrong.
pub(crate) fn markdown(drawing: &Drawing<'_>) -> askama::Result<String> {
    Markdown { drawing, summary: drawing.summary }.render()
}

impl Page<'_> {
    /// Everything of a section below its heading, at once or compressed: ten thousand trials are twenty megabytes of markup.
    fn section(&self, section: &Section, charts: &SectionCharts) -> Result<String, DrawError> {
        let body = SectionPage { links: self.links, run: self.drawing.run, section, charts }.render()?;
        if self.drawing.sections.len() <= SECTIONS_AT_ONCE {
            return Ok(body);
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body.as_bytes())?;
        Ok(in_script("text/deflate", &BASE64_STANDARD.encode(encoder.finish()?)))
    }

    fn chart(&self, picture: &Chart) -> Result<String, DrawError> {
        chart(picture, self.links)
    }
}

impl SectionPage<'_> {
    fn chart(&self, picture: &Chart) -> Result<String, DrawError> {
        chart(picture, self.links)
    }
}

impl Markdown<'_> {
    /// The tables at the end that have rows.
    fn last_tables(&self) -> Vec<Table> {
        let summary = self.summary;
        let mut tables = vec![
            tables::findings(&summary.findings),
            tables::errors(&summary.errors),
            tables::broken_files(&summary.broken),
        ];
        if let Some(environment) = &self.drawing.run.environment {
            tables.extend(tables::environment(environment));
        }
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    fn pictures(&self) -> usize {
        if self.drawing.sections.len() > FEW_SECTIONS { 1 } else { usize::MAX }
    }
}

/// Markup that the script of the page inserts when the reader scrolls near it, so that a page of ten thousand trials opens
/// at once. Only an end tag can end a script element, so the end tags of inner scripts are escaped.
fn lazy(markup: impl AsRef<str>) -> String {
    in_script("text/html", &markup.as_ref().replace("</script", "<\\/script"))
}

fn in_script(kind: &str, inert: &str) -> String {
    format!(
        "<div class=\"lazy\"><script type=\"{kind}\">{inert}</script><noscript>This part is built by a script, which is \
         switched off; report.md and summary.csv have its numbers.</noscript></div>"
    )
}

/// A chart as a page has it.
pub(crate) fn chart(chart: &Chart, links: &Links) -> Result<String, DrawError> {
    Ok(ChartBlock { links, chart, plot: draw::plot(chart, false)? }.render()?)
}

/// The choices that a page offers its reader.
#[derive(Default)]
pub(crate) struct Filter {
    /// Kinds with more than one thing to choose.
    pub groups: Vec<Group>,
    /// The names, as the page's script reads them.
    pub names: String,
}

/// Names to choose from.
pub(crate) struct Group {
    /// Its key in the address.
    pub key: &'static str,
    pub heading: &'static str,
    /// Each with its title.
    pub names: Vec<(String, String)>,
}

impl Filter {
    /// Everything in the summary, in the suite's order and not in that of a table.
    pub fn of(run: &Run, summary: &Summary) -> Filter {
        let group = |key, heading| Group { key, heading, names: Vec::new() };
        let (mut products, mut profiles) = (group("product", "Products"), group("profile", "Profiles"));
        let (mut workloads, mut loads) = (group("workload", "Workloads"), group("load", "Loads"));
        let mut entries = Vec::new();
        for entry in &run.suite.entries {
            let mut rows = summary.sections.iter().flat_map(|section| section.all_rows());
            let Some(row) = rows.find(|row| row.entry == *entry) else { continue };
            entries.push(json!({
                "product": entry.product, "profile": entry.profile, "title": row.title, "label": row.label,
                "baseline": row.is_baseline(),
            }));
            if !row.is_baseline() {
                products.add(&entry.product, &row.title);
                profiles.add(&entry.profile, "");
            }
        }
        for section in &summary.sections {
            workloads.add(&section.workload, &section.workload_title);
            loads.add(&section.load, &section.load_title);
        }
        let mut groups = vec![products, profiles, workloads, loads];
        // A choice of one is none.
        groups.retain(|group| group.names.len() > 1);
        Filter { groups, names: json!({ "entries": entries }).to_string().replace('<', "\\u003c") }
    }
}

impl Group {
    fn add(&mut self, name: &str, title: &str) {
        if !self.names.iter().any(|(known, _)| known == name) {
            let title = if title.is_empty() { name } else { title };
            self.names.push((name.to_string(), title.to_string()));
        }
    }
}

/// A page of several runs: a heading, what a reader must know first, sections of tables and charts, and how to repeat it. It does not
/// know what the runs have in common.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "sections.html")]
pub struct SectionsPage<'a> {
    /// The paths to its other files; by default it is a report on its own, with PNG.
    pub links: Links,
    /// The subject beside weir's name, such as `40 runs`.
    pub brand: &'a str,
    /// The title of the browser's window; empty: as the heading.
    pub title: &'a str,
    /// The first heading.
    pub heading: &'a str,
    /// The question that the page answers; may be empty.
    pub question: &'a str,
    /// The response; may be empty.
    pub answer: &'a str,
    /// The introduction, one string a paragraph.
    pub words: Vec<String>,
    /// In reading order.
    pub sections: Vec<ExtraSection>,
    /// How its numbers come about again: a sentence and a command each.
    pub repeat: Vec<(String, String)>,
}

impl SectionsPage<'_> {
    /// Writes the page as `file`, and what it links to where its links say: the charts in a folder `charts`, and the sections' files.
    /// Returns all other files that were written.
    ///
    /// # Errors
    /// A file cannot be written, or a drawing fails (a defect of weir).
    pub fn write(&self, file: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let folder = file.with_file_name("").join(&self.links.files);
        let charts: Vec<&Chart> = self.sections.iter().flat_map(ExtraSection::charts).collect();
        let names = write_charts(&charts, &folder, self.links.charts)?;
        let mut files: Vec<PathBuf> = names.into_iter().map(|name| folder.join("charts").join(name)).collect();
        for (name, text) in self.sections.iter().flat_map(ExtraSection::files) {
            write(&folder.join(name), text.as_bytes())?;
            files.push(folder.join(name));
        }
        let page = self.render().map_err(ReportError::draw(&file.to_string_lossy()))?;
        write(file, page.as_bytes())?;
        Ok(files)
    }

    fn chart(&self, picture: &Chart) -> Result<String, DrawError> {
        chart(picture, &self.links)
    }
}

/// Names of the files that the pages of a site share, from the site's folder.
pub(crate) const STYLE_FILE: &str = "assets/weir.css";
pub(crate) const SCRIPT_FILE: &str = "assets/weir.js";

/// The policy of every page: it loads nothing but pictures, connects to no server, and sends nothing.
const ALWAYS: &str =
    "default-src 'none'; img-src 'self' file: data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'";

/// Pages of a site run only the site's script. `file:` is for a site that is read from a disk.
const OF_SITE: &str = "script-src 'self' file:; style-src 'self' file:";

/// The files of a chart beside a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartFiles {
    /// Its numbers as CSV; the picture is on the page alone.
    Numbers,
    /// The picture as SVG, too.
    Pictures,
    /// And as PNG.
    #[default]
    Raster,
}

impl ChartFiles {
    /// True if the picture is a file of its own.
    pub(crate) fn has_svg(self) -> bool {
        self >= ChartFiles::Pictures
    }

    /// True if there is a picture of pixels, too.
    pub(crate) fn has_png(self) -> bool {
        self == ChartFiles::Raster
    }

    /// The endings of the files' names.
    pub(crate) fn endings(self) -> &'static [&'static str] {
        match self {
            ChartFiles::Numbers => &["csv"],
            ChartFiles::Pictures => &["svg", "csv"],
            ChartFiles::Raster => &["svg", "png", "csv"],
        }
    }
}

/// The paths from a page to its other files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The way from the page to the site's folder, empty or with a `/` at its end; `None`: the page is a report on its own.
    pub root: Option<&'static str>,
    /// The way from the page to the folder of its files, likewise.
    pub files: String,
    /// As what its charts are there as files.
    pub charts: ChartFiles,
    /// The pages above it, as the reader knows them: address from the site's folder, and name.
    pub above: Vec<(String, String)>,
}

impl Links {
    /// Those of a report.
    pub(crate) fn of_report(charts: ChartFiles) -> Links {
        Links { charts, ..Links::default() }
    }

    /// Those of a page of a site. `root` is the path from it to the site's folder. `files` is the folder of its files, empty for its own
    /// folder. `above` are the pages between the overview and it.
    pub(crate) fn of_site(
        root: &'static str,
        files: &str,
        charts: ChartFiles,
        above: Option<(String, String)>,
    ) -> Links {
        let files = if files.is_empty() { String::new() } else { format!("{files}/") };
        let overview = ("index.html".to_owned(), "weir".to_owned());
        Links { root: Some(root), files, charts, above: [overview].into_iter().chain(above).collect() }
    }

    /// The page's Content Security Policy. A page that is one file names its script by its hash. A script from a run's texts would not
    /// run even if it were not escaped.
    pub fn policy(&self) -> String {
        let own = match self.root {
            None => {
                let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
                format!("script-src 'sha256-{hash}'; style-src 'unsafe-inline'")
            }
            Some(_) => OF_SITE.to_owned(),
        };
        format!("{ALWAYS}; {own}")
    }

    /// Its style, and of a site the feed, as markup for its head.
    pub fn style(&self) -> String {
        match self.root {
            None => format!("<style>{STYLE}</style>"),
            Some(root) => format!("<link rel=\"stylesheet\" href=\"{root}{STYLE_FILE}\">"),
        }
    }

    /// Its script, as markup for its end.
    pub fn script(&self) -> String {
        match self.root {
            None => format!("<script>{SCRIPT}</script>"),
            Some(root) => format!("<script src=\"{root}{SCRIPT_FILE}\"></script>"),
        }
    }
}
