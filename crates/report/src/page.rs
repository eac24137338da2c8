//! `report.html`: one file that works offline. What a run says is escaped by the templates; the only things let through
//! are the library, the page's own script, and JSON in which no tag can begin.

use askama::Template;

use crate::chart::{Chart, plotly};
use crate::charts::SectionCharts;
use crate::error::ReportError;
use crate::files::{self, Rendered};
use crate::number::count;
use crate::published::{Block, Published, draw as published};
use crate::run::Run;
use crate::summary::{Section, Summary};
use crate::tables::{self, html};

/// Everything that a report draws.
pub(crate) struct Drawing<'a> {
    pub run: &'a Run,
    pub summary: &'a Summary,
    pub overview: Option<&'a Chart>,
    pub sections: Vec<(&'a Section, &'a SectionCharts)>,
    pub published: Option<&'a Published>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    summary: &'a Summary,
    style: &'static str,
    script: &'static str,
    library: String,
    head_table: String,
    head_chart: Option<ChartBlock<'a>>,
    sections: Vec<SectionBlock<'a>>,
    /// For the contents.
    published_blocks: &'a [Block],
    published: String,
    findings: Option<String>,
    broken: Option<String>,
    environment: Option<(String, String)>,
    doctor_remarks: usize,
    configurations: Vec<Rendered>,
    trials: String,
}

struct SectionBlock<'a> {
    slug: String,
    heading: String,
    /// None when the first screen has it already.
    ranking: Option<String>,
    charts: Vec<ChartBlock<'a>>,
    room: Vec<ChartBlock<'a>>,
    trials: String,
}

#[derive(Template)]
#[template(path = "chart.html")]
struct ChartBlock<'a> {
    chart: &'a Chart,
    json: String,
    height: usize,
}

/// The page.
///
/// # Errors
///
/// Only when a template is wrong.
pub(crate) fn draw(drawing: &Drawing<'_>) -> Result<String, ReportError> {
    let summary = drawing.summary;
    let single = summary.sections.len() == 1;
    let head_table = match summary.sections.as_slice() {
        [only] => html::draw(&tables::ranking(only))?,
        _ => html::draw(&tables::overview(summary))?,
    };
    let mut sections = Vec::new();
    for (section, charts) in &drawing.sections {
        sections.push(SectionBlock {
            slug: section.slug(),
            heading: section.heading(),
            ranking: if single { None } else { Some(html::draw(&tables::ranking(section))?) },
            charts: charts.main.iter().map(block).collect(),
            room: charts.room.iter().map(block).collect(),
            trials: html::draw(&tables::trials(drawing.run, section))?,
        });
    }
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
        style: include_str!("../assets/page.css"),
        script: include_str!("../assets/page.js"),
        library: plotly::library(),
        head_table,
        head_chart: drawing.overview.map(block),
        sections,
        published_blocks: drawing.published.map_or(&[], |published| &published.blocks),
        published: drawing.published.map(published::html).transpose()?.unwrap_or_default(),
        findings: table(!summary.findings.is_empty(), tables::findings(&summary.findings))?,
        broken: table(!summary.broken.is_empty(), tables::broken_files(&summary.broken))?,
        doctor_remarks: drawing.run.environment.as_ref().map_or(0, |environment| environment.doctor.len()),
        environment,
        configurations: files::configurations(drawing.run),
        trials,
    };
    page.render().map_err(|error| ReportError::draw("report.html", error))
}

/// A chart as the page has it.
///
/// # Errors
///
/// Only when the template is wrong.
pub(crate) fn chart(chart: &Chart) -> Result<String, ReportError> {
    block(chart).render().map_err(|error| ReportError::draw(&chart.name, error))
}

fn block(chart: &Chart) -> ChartBlock<'_> {
    // Inside of a script element only a tag can end it; in JSON every `<` stands in a string and may be written so.
    let json =
        plotly::json(chart).replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    ChartBlock { chart, json, height: plotly::height(chart) }
}
