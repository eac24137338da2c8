//! Writes the text that `weir run` and `weir report` print after a run. [`short_answer`] fits a screen of 80 x 24, and
//! [`full_answer`] has every table and finding.

mod doubts;
mod short;

use std::iter::once;

use weir_model::record::Severity;
use weir_model::text::wrapped;

use crate::summary::{FindingGroup, Summary};
use crate::tables::text::draw;
use crate::tables::{self, Table, one_line};

pub use short::short_answer;

/// With more sections than this, [`full_answer`] shows one table of them all instead of one each.
const MOST_SECTIONS: usize = 6;

/// Every table and finding, at most `width` characters wide (at least 20).
pub fn full_answer(summary: &Summary, width: usize, colour: bool) -> String {
    let width = width.max(20);
    let mut text = String::new();
    if !summary.question.is_empty() {
        text.push_str(&paragraph(&summary.question, width, false));
    }
    text.push_str(&paragraph(&summary.answer, width, colour));
    for remark in &summary.remarks {
        text.push_str(&paragraph(&format!("- {remark}"), width, false));
    }
    let many = summary.sections.len() > MOST_SECTIONS;
    let mut all: Vec<Table> = tables::overall(summary).filter(|_| summary.sections.len() > 1).into_iter().collect();
    if many {
        all.push(tables::matrix(summary));
    } else {
        all.extend(
            summary.sections.iter().flat_map(|section| once(tables::ranking(section)).chain(tables::clients(section))),
        );
    }
    let failures = [tables::errors(&summary.errors), tables::broken_files(&summary.broken)];
    all.extend(failures.into_iter().filter(|table| !table.rows.is_empty()));
    for table in all {
        text.push_str(&format!("\n{}", draw(&table, width, colour)));
    }
    if !summary.findings.is_empty() {
        text.push('\n');
        text.extend(findings(&summary.findings).iter().map(|words| paragraph(words, width, false)));
    }
    text
}

/// One line of words, wrapped; in bold where there is colour. Escapes that the run may have put into them are taken out.
fn paragraph(words: &str, width: usize, bold: bool) -> String {
    wrapped(&one_line(words), width, 0).lines().map(|line| emphasised(line, bold)).collect()
}

/// A line, in bold where there is colour.
fn emphasised(line: &str, bold: bool) -> String {
    let (before, after) = if bold { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    format!("{before}{line}{after}\n")
}

/// What the checks noticed, in few lines, so that the ranking stays on the screen: what makes a trial invalid in full,
/// the rest by name. The report has the whole.
fn findings(found: &[FindingGroup]) -> Vec<String> {
    let (fatal, others): (Vec<&FindingGroup>, Vec<&FindingGroup>) =
        found.iter().partition(|f| f.severity == Severity::Fatal);
    let fatal = fatal.iter().map(|f| format!("{}: {}. What to do: {}.", named(f), f.message, f.remedy));
    let names: Vec<String> = others.iter().map(|f| named(f)).collect();
    let others = format!("Findings: {}. The report says what was seen and what to do.", names.join(", "));
    fatal.chain((!names.is_empty()).then_some(others)).collect()
}

/// `steal (warning, 2 trials)`, `doctor-cpus (warning)`.
fn named(found: &FindingGroup) -> String {
    let trials = match found.trials.len() {
        0 => String::new(),
        n => format!(", {}", weir_model::text::counted(n as u64, "trial")),
    };
    format!("{} ({}{trials})", found.check, found.severity.as_str())
}
