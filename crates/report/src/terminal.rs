//! What stands in the terminal after a run: the answer, the tables, what went wrong. Knows the summary and a width.

use crate::summary::Summary;
use crate::tables::text::{draw, wrap};
use crate::tables::{self, one_line};

/// Everything, at most `width` characters wide (at least 20).
pub fn text_tables(summary: &Summary, width: usize, colour: bool) -> String {
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text = String::new();
    // Escapes are added around whole lines, after whatever the run may have put into them was taken out.
    let mut paragraph = |words: &str, before: &str, after: &str| {
        for line in wrap(&one_line(words), width.max(20)) {
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
    for section in &summary.sections {
        text.push('\n');
        text.push_str(&draw(&tables::ranking(section), width, colour));
    }
    let more = [
        (summary.findings.is_empty(), tables::findings(&summary.findings)),
        (summary.errors.is_empty(), tables::errors(&summary.errors)),
        (summary.broken.is_empty(), tables::broken_files(&summary.broken)),
    ];
    for (_, table) in more.iter().filter(|(empty, _)| !empty) {
        text.push('\n');
        text.push_str(&draw(table, width, colour));
    }
    text
}
