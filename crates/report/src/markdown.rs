//! Writes `report.md`, which can be pasted into a README or a pull request. Called by `make`.

use std::fmt::Write as _;

use crate::page::Drawing;
use crate::tables::markdown::{draw as table, escape};
use crate::tables::{self, Table};
use weir_model::text::count;

/// More sections than this have one picture each.
const FEW_SECTIONS: usize = 6;

/// The whole file. Links to pictures are relative, so it must lie beside `charts/`.
pub(crate) fn draw(drawing: &Drawing<'_>) -> String {
    let summary = drawing.summary;
    let mut text = format!("# {}\n\n", escape(&summary.title));
    if !summary.question.is_empty() {
        let _ = writeln!(text, "*{}*\n", escape(&summary.question));
    }
    let _ = writeln!(text, "**{}**\n", escape(&summary.answer));
    for remark in &summary.remarks {
        let _ = writeln!(text, "- {}", escape(remark));
    }
    if !summary.remarks.is_empty() {
        text.push('\n');
    }
    if let Some(overall) = tables::overall(summary) {
        let _ = writeln!(text, "{}\n", escape(&overall.title));
        text.push_str(&table(&overall));
        text.push('\n');
    }
    if let Some(chart) = drawing.overview {
        picture(&mut text, chart);
    }
    if summary.sections.len() > 1 {
        let matrix = tables::matrix(summary);
        heading(&mut text, 2, &matrix.title);
        text.push_str(&table(&matrix));
        text.push('\n');
    }
    // With many sections each has only one picture; the page has the others.
    let pictures = if summary.sections.len() > FEW_SECTIONS { 1 } else { usize::MAX };
    for (section, charts) in &drawing.sections {
        heading(&mut text, 2, &section.heading());
        text.push_str(&table(&tables::ranking(section)));
        text.push('\n');
        for side_by_side in tables::side_by_side(section) {
            let _ = writeln!(text, "{}\n", escape(&side_by_side.title));
            text.push_str(&table(&side_by_side));
            text.push('\n');
        }
        for chart in charts.main.iter().take(pictures) {
            picture(&mut text, chart);
        }
    }
    text.push_str(&crate::extra::markdown(drawing.extra));
    let with_rows = |text: &mut String, table_of: Table| {
        if !table_of.rows.is_empty() {
            heading(text, 2, &table_of.title);
            text.push_str(&table(&table_of));
            text.push('\n');
        }
    };
    with_rows(&mut text, tables::findings(&summary.findings));
    with_rows(&mut text, tables::errors(&summary.errors));
    with_rows(&mut text, tables::broken_files(&summary.broken));
    if let Some(environment) = &drawing.run.environment {
        let (machine, products) = tables::environment(environment);
        with_rows(&mut text, products);
        with_rows(&mut text, machine);
    }
    repeat(&mut text, drawing);
    text
}

fn heading(text: &mut String, level: usize, words: &str) {
    let _ = writeln!(text, "{} {}\n", "#".repeat(level), escape(words));
}

fn picture(text: &mut String, chart: &crate::charts::Chart) {
    let _ = writeln!(text, "![{}](charts/{}.svg)\n", escape(&chart.alt), chart.name);
}

fn repeat(text: &mut String, drawing: &Drawing<'_>) {
    let run = &drawing.summary.run;
    heading(text, 2, "How to repeat it");
    let _ = writeln!(
        text,
        "Made from {} trials of the run folder {}. The run is repeated, with the same cases, order and seed, by:\n",
        count(drawing.summary.trials as u64),
        escape(run)
    );
    // Indented code cannot be ended by anything that stands in a name.
    let _ = writeln!(text, "    weir run {}/run.toml", tables::one_line(run));
}
