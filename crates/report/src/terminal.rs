//! What stands in the terminal after a run: the answer, the tables, what went wrong. Knows the summary and a width.

use weir_model::record::Severity;
use weir_model::text::wrapped;

use crate::summary::{Found, Summary};
use crate::tables::text::draw;
use crate::tables::{self, one_line};

/// Of more sections than this a terminal shows what is over all of them, and each in a line.
const MOST: usize = 6;

/// Everything, at most `width` characters wide (at least 20).
pub fn text_tables(summary: &Summary, width: usize, colour: bool) -> String {
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text = String::new();
    // Escapes are added around whole lines, after whatever the run may have put into them was taken out.
    let mut paragraph = |words: &str, before: &str, after: &str| {
        for line in wrapped(&one_line(words), width.max(20), 0).lines() {
            text.push_str(&format!("{before}{line}{after}\n"));
        }
    };
    if !summary.question.is_empty() {
        paragraph(&summary.question, "", "");
    }
    paragraph(&summary.answer, bold, plain);
    for remark in &summary.remarks {
        paragraph(&format!("- {remark}"), "", "");
    }
    let several = summary.sections.len() > 1;
    let rankings = summary.sections.iter().take(if summary.sections.len() > MOST { 0 } else { MOST });
    let overall = tables::overall(summary).filter(|_| several);
    let matrix = (summary.sections.len() > MOST).then(|| tables::matrix(summary));
    for table in overall.into_iter().chain(matrix).chain(rankings.map(tables::ranking)) {
        text.push('\n');
        text.push_str(&draw(&table, width, colour));
    }
    let more = [
        (summary.errors.is_empty(), tables::errors(&summary.errors)),
        (summary.broken.is_empty(), tables::broken_files(&summary.broken)),
    ];
    for (_, table) in more.iter().filter(|(empty, _)| !empty) {
        text.push('\n');
        text.push_str(&draw(table, width, colour));
    }
    if !summary.findings.is_empty() {
        text.push('\n');
        for words in findings(&summary.findings) {
            text.push_str(&format!("{}\n", wrapped(&words, width.max(20), 0)));
        }
    }
    text
}

/// What the checks noticed, in few lines, so that the ranking stays on the screen: what makes a trial invalid in full,
/// the rest by name. The report has the whole.
fn findings(found: &[Found]) -> Vec<String> {
    let (fatal, others): (Vec<&Found>, Vec<&Found>) = found.iter().partition(|f| f.severity == Severity::Fatal);
    let mut lines: Vec<String> =
        fatal.iter().map(|f| one_line(&format!("{}: {}. What to do: {}.", named(f), f.message, f.remedy))).collect();
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|f| named(f)).collect();
        lines.push(one_line(&format!("Findings: {}. The report says what was seen and what to do.", names.join(", "))));
    }
    lines
}

/// `steal (warning, 2 trials)`, `doctor-cpus (warning)`.
fn named(found: &Found) -> String {
    let severity = match found.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Fatal => "fatal",
    };
    match found.trials.len() {
        0 => format!("{} ({severity})", found.check),
        1 => format!("{} ({severity}, 1 trial)", found.check),
        n => format!("{} ({severity}, {n} trials)", found.check),
    }
}
