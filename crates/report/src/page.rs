//! Writes `report.html`, a single file that works offline, and `report.md`, which can be pasted into a README. Called by
//! `make`. What they look like is in the templates, which escape all text that comes from a run. Only two things pass
//! unescaped: the style and script of the page, and what was drawn by another template.

use std::io::Write as _;

use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use weir_model::suite::Series;
use weir_model::text::{count, counted};

use crate::charts::draw::{self, Plot};
use crate::charts::{Chart, SectionCharts};
use crate::error::DrawError;
use crate::extra::{ExtraSection, Item};
use crate::files::{self, Rendered};
use crate::links::Links;
use crate::page_filter::Filter;
use crate::run::Run;
use crate::summary::{Section, Summary};
use crate::tables::markdown::{self, escape};
use crate::tables::{self, Table, html, one_line};

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
    pub overview: Option<&'a Chart>,
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
