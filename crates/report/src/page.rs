//! Writes `report.html`, a single file that works offline. Called by `make`. Templates escape all text that comes from
//! a run. Only two things pass unescaped: the style and script of the page, and drawings, which are escaped where they
//! are made.

use std::io::Write as _;

use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use weir_model::suite::Series;

use crate::charts::Chart;
use crate::charts::SectionCharts;
use crate::charts::draw::{self, Plot};
use crate::error::ReportError;
use crate::extra::{self, ExtraSection};
use crate::files::{self, Rendered};
use crate::page_filter;
use crate::run::Run;
use crate::summary::{FailedTrial, Section, Summary};
use crate::tables::{self, html};
use weir_model::text::count;

/// With more sections than this, each one is built when the reader scrolls near it.
const SECTIONS_AT_ONCE: usize = 12;

/// More remarks than this are folded up.
const REMARKS: usize = 5;

/// What the page does, one file a matter.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../assets/theme.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/only.js"),
    include_str!("../assets/page.js"),
    "})();\n"
);

/// Everything that a report draws.
pub(crate) struct Drawing<'a> {
    pub run: &'a Run,
    pub summary: &'a Summary,
    pub overview: Option<&'a Chart>,
    pub sections: Vec<(&'a Section, &'a SectionCharts)>,
    pub extra: &'a [ExtraSection],
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    summary: &'a Summary,
    style: String,
    script: &'static str,
    remarks: &'a [String],
    more_remarks: &'a [String],
    only: String,
    /// None when nothing may be ranked.
    head_table: Option<String>,
    head_chart: Option<ChartBlock<'a>>,
    matrix: Option<String>,
    sections: Vec<SectionBlock>,
    /// For the contents.
    extra_sections: &'a [ExtraSection],
    extra: String,
    findings: Option<String>,
    errors: String,
    broken: Option<String>,
    environment: Option<(String, String)>,
    doctor_remarks: usize,
    configurations: Vec<Rendered>,
    trials: String,
}

struct SectionBlock {
    workload: String,
    load: String,
    slug: String,
    heading: String,
    /// Its markup, at once or when it comes near.
    body: String,
}

#[derive(Template)]
#[template(path = "section.html")]
struct SectionPage<'a> {
    ranking: Option<String>,
    charts: Vec<ChartBlock<'a>>,
    tables: Vec<String>,
    more: Vec<ChartBlock<'a>>,
    more_words: &'static str,
    room: Vec<ChartBlock<'a>>,
    /// Of a series only.
    points: Option<String>,
    trials: String,
}

#[derive(Template)]
#[template(path = "errors.html")]
struct Errors<'a> {
    errors: &'a [FailedTrial],
}

#[derive(Template)]
#[template(path = "chart.html")]
struct ChartBlock<'a> {
    chart: &'a Chart,
    plot: Plot,
}

/// The page.
///
/// # Errors
///
/// Only when a template is wrong.
pub(crate) fn draw(drawing: &Drawing<'_>) -> Result<String, ReportError> {
    let summary = drawing.summary;
    // A page of a few sections can be searched and printed as it is. With many sections, each one is built when the reader scrolls near it.
    let at_once = summary.sections.len() <= SECTIONS_AT_ONCE;
    let mut sections = Vec::new();
    for (section, charts) in &drawing.sections {
        let body = section_body(drawing.run, section, charts)?;
        sections.push(SectionBlock {
            workload: section.workload.clone(),
            load: section.load.clone(),
            slug: section.slug(),
            heading: section.heading(),
            body: if at_once { body } else { packed(&body)? },
        });
    }
    let rendered = |what: &str, text: askama::Result<String>| text.map_err(|error| ReportError::draw(what, error));
    let table = |wanted: bool, table: tables::Table| wanted.then(|| html::draw(&table)).transpose();
    let environment = match &drawing.run.environment {
        Some(environment) => {
            let (machine, products) = tables::environment(environment);
            Some((html::draw(&machine)?, html::draw(&products)?))
        }
        None => None,
    };
    let trials = match summary.trials_planned {
        Some(planned) => format!("{} of {} trials", count(summary.trials as u64), count(planned as u64)),
        None => format!("{} trials", count(summary.trials as u64)),
    };
    let page = Page {
        summary,
        style: [draw::STYLE, include_str!("../assets/page.css")].concat(),
        script: SCRIPT,
        remarks: &summary.remarks[..summary.remarks.len().min(REMARKS)],
        more_remarks: summary.remarks.get(REMARKS..).unwrap_or_default(),
        only: page_filter::draw(drawing.run, summary)?,
        head_table: tables::overall(summary).map(|table| html::draw(&table)).transpose()?,
        head_chart: drawing.overview.map(block).transpose()?,
        matrix: table(summary.sections.len() > 1, tables::matrix(summary))?,
        sections,
        extra_sections: drawing.extra,
        extra: extra::html(drawing.extra)?,
        findings: table(!summary.findings.is_empty(), tables::findings(&summary.findings))?,
        errors: rendered("errors", Errors { errors: &summary.errors }.render())?,
        broken: table(!summary.broken.is_empty(), tables::broken_files(&summary.broken))?,
        doctor_remarks: drawing.run.environment.as_ref().map_or(0, |environment| environment.doctor.len()),
        environment,
        configurations: files::configurations(drawing.run),
        trials,
    };
    rendered("report.html", page.render())
}

/// Everything of a section below its heading.
fn section_body(run: &Run, section: &Section, charts: &SectionCharts) -> Result<String, ReportError> {
    let mut drawn = Vec::new();
    for table in tables::side_by_side(section).iter().chain(&tables::cost(section)) {
        drawn.push(html::draw(table)?);
    }
    let series = section.series != Series::Once;
    let page = SectionPage {
        ranking: Some(html::draw(&tables::ranking(section))?),
        charts: blocks(&charts.main)?,
        tables: drawn,
        more: blocks(&charts.more)?,
        more_words: if series { "other percentiles, and what all roles cost" } else { "what all roles cost" },
        room: blocks(&charts.room)?,
        points: if series { Some(lazy(&html::draw(&tables::points(section))?)) } else { None },
        trials: lazy(&html::draw(&tables::trials(run, section))?),
    };
    page.render().map_err(|error| ReportError::draw(section.slug(), error))
}

/// Markup that the script of the page inserts when the reader scrolls near it, so that a page of ten thousand trials opens
/// at once. Only an end tag can end a script element, so the end tags of inner scripts are escaped.
fn lazy(markup: &str) -> String {
    in_script("text/html", &markup.replace("</script", "<\\/script"))
}

/// Like [`lazy`], but compressed: ten thousand trials are twenty megabytes of markup.
fn packed(markup: &str) -> Result<String, ReportError> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let bytes = encoder.write_all(markup.as_bytes()).and_then(|()| encoder.finish());
    let bytes = bytes.map_err(|error| ReportError::draw("report.html", error))?;
    Ok(in_script("text/deflate", &BASE64_STANDARD.encode(bytes)))
}

fn in_script(kind: &str, inert: &str) -> String {
    format!(
        "<div class=\"lazy\"><script type=\"{kind}\">{inert}</script><noscript>This part is built by a script, which is \
         switched off; report.md and summary.csv have its numbers.</noscript></div>"
    )
}

/// A chart as the page has it.
///
/// # Errors
///
/// Only when the template is wrong.
pub(crate) fn chart(chart: &Chart) -> Result<String, ReportError> {
    block(chart)?.render().map_err(|error| ReportError::draw(&chart.name, error))
}

fn block(chart: &Chart) -> Result<ChartBlock<'_>, ReportError> {
    Ok(ChartBlock { chart, plot: draw::plot(chart, false)? })
}

fn blocks(charts: &[Chart]) -> Result<Vec<ChartBlock<'_>>, ReportError> {
    charts.iter().map(block).collect()
}
