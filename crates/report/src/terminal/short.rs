//! The short answer: a sentence, a table, a line on what spoils the numbers, and a line on where the rest is. Called by
//! `terminal`.

use std::path::Path;

use weir_model::text::{Unit, count, list, unique, wrapped};

use super::doubts::doubts;
use super::emphasised;
use crate::summary::{Metric, OverallRow, Row, Section, Standing, Summary, Verdicts};
use crate::tables::text::draw;
use crate::tables::{Column, RowKind, Table, TableOf, metric_cell, one_line, rank_words, usage_cell};

/// Lines that it may take: a screen of 24 without the prompt and a last remark of the verb's.
const MOST_LINES: usize = 22;

/// Lines that its sentence may take.
const MOST_OF_SENTENCE: usize = 4;

/// From this width on the table has all its columns.
const ALL_COLUMNS: usize = 72;

/// One sentence that answers the suite's question, one table, what spoils its numbers, and where the report is: a screen
/// where `width` is 80 or more. Of many products the table has the first.
pub fn short_answer(summary: &Summary, report: &Path, width: usize, colour: bool) -> String {
    let width = width.max(20);
    let ranking = Ranking::of(summary, width);
    let text = |rows: usize, colour: bool| {
        let mut text = sentence(&summary.answer, width, colour);
        if let Some(ranking) = &ranking {
            text.push_str(&format!("\n{}", draw(&ranking.table(rows, width), width, colour)));
        }
        format!("{text}\n{}\n{}\n", doubts(summary, width), place(report, width))
    };
    let all = ranking.as_ref().map_or(1, |ranking| ranking.rows.len().max(1));
    // A row may wrap, so the number of rows that fit is found by drawing them.
    let rows = (1..=all).rev().find(|rows| screen_lines(&text(*rows, false), width) <= MOST_LINES);
    text(rows.unwrap_or(1), colour)
}

/// Lines that a text without colour takes on a terminal, which breaks what is too wide for it.
fn screen_lines(text: &str, width: usize) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum()
}

/// The sentence; one that is too long ends with an ellipsis. The report has the whole.
fn sentence(words: &str, width: usize, colour: bool) -> String {
    let words = wrapped(&one_line(words), width, 0);
    let mut lines: Vec<String> = words.lines().take(MOST_OF_SENTENCE).map(|line| cut(line, width)).collect();
    if let Some(last) = lines.last_mut().filter(|_| words.lines().count() > MOST_OF_SENTENCE) {
        *last = cut(&format!("{last} \u{2026}"), width);
    }
    lines.iter().map(|line| emphasised(line, colour)).collect()
}

/// A line of at most `width` characters, with an ellipsis in the place of what is cut off.
pub(super) fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_string();
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end().trim_end_matches('\u{2026}').trim_end())
}

/// Where the report is, and what prints the rest; on two lines where one is too narrow. A path is never cut.
fn place(report: &Path, width: usize) -> String {
    let path = format!("Report: {}", one_line(&report.display().to_string()));
    let rest = "or weir report --full";
    let line = format!("{path}, {rest}");
    if line.chars().count() <= width { line } else { format!("{path}\n{rest}") }
}

/// The rows of the table, and where its numbers come from.
struct Ranking {
    /// One line.
    from: String,
    /// Each with why it is marked or not ranked; empty when all of its trials are valid.
    rows: Vec<(OverallRow, String)>,
}

impl Ranking {
    /// Each product over all workloads; where nothing may be ranked, the first section that has a number, with its trials in
    /// all sections counted.
    fn of(summary: &Summary, width: usize) -> Option<Ranking> {
        let (from, rows): (Vec<String>, Vec<OverallRow>) = match &summary.overall {
            Some(overall) => (overall_from(summary), overall.all_rows().cloned().collect()),
            None => unranked(summary)?,
        };
        let fits = from.iter().find(|line| line.chars().count() <= width).or(from.last())?;
        let rows = rows.into_iter().map(|row| (row.clone(), mark(summary, &row))).collect();
        Some(Ranking { from: cut(fits, width), rows })
    }

    /// The first rows of it. Two lines of header keep it narrow.
    fn table(&self, rows: usize, width: usize) -> Table {
        let time = Unit::for_least(self.rows.iter().filter_map(|(row, _)| row.of(Metric::P50)).map(|p50| p50.value));
        let mut table = TableOf::<(OverallRow, String)>::new();
        table.add(Column::text("Rank"), |(row, _)| row.rank.map(|rank| rank_words(rank).into()));
        table.add(Column::text("Product"), |(row, _)| row.label.clone());
        for (metric, unit, name, order) in [
            (Metric::Rate, Unit::PER_SECOND, Unit::PER_SECOND.name, 0),
            (Metric::P50, time, time.name, 3),
            (Metric::P99, time, time.name, 0),
            (Metric::Cpu, Unit::MICROS_PER_REQUEST, "µs/req", 1),
        ] {
            table.add(column(metric.entry().title, name, order, width), move |(row, _)| metric_cell(row, metric, unit));
        }
        table.add(column("Memory", "KiB/conn", 2, width), |(row, _)| usage_cell(row, row.memory, Unit::KIBIBYTES));
        table.add(Column::text("Mark"), |(_, mark)| mark.clone());
        let more = self.rows.len().saturating_sub(rows);
        let table = table.table("", &self.from, self.rows.iter().take(rows), |(row, mark)| match row.rank {
            _ if row.is_baseline() => RowKind::Baseline,
            None => RowKind::Unranked,
            Some(_) if mark.is_empty() => RowKind::Plain,
            Some(_) => RowKind::Marked,
        });
        table.with_notes((more > 0).then(|| format!("and {more} more; --full shows all.")))
    }
}

/// A column. Where there is room for all columns, a long name wraps rather than a column goes.
fn column(name: &str, unit: &str, order: u8, width: usize) -> Column {
    Column::number(&format!("{name}\n{unit}"), "").dispensable(if width < ALL_COLUMNS { order } else { 0 })
}

/// Over which workloads and under which loads, in ever fewer words.
fn overall_from(summary: &Summary) -> Vec<String> {
    let Some(overall) = &summary.overall else { return Vec::new() };
    let workloads = match overall.workloads.len() {
        1 => overall.workloads[0].clone(),
        n => format!("{n} workloads"),
    };
    let loads = |slugs: &[String]| {
        let sections = summary.sections.iter().filter(|section| slugs.contains(&section.slug()));
        unique(sections.map(|section| section.load.as_str()))
    };
    let (leading, latency) = (loads(overall.leading()), loads(&overall.latency_from));
    let under = |words: &dyn Fn(&[&str]) -> String| match overall.leading() == overall.latency_from {
        true => format!(", under {}", words(&leading)),
        false => format!(": rate, CPU, memory under {}; p50, p99 under {}", words(&leading), words(&latency)),
    };
    let named = under(&|loads| list(loads));
    let counted =
        under(&|loads| if loads.len() == 1 { loads[0].to_string() } else { format!("{} loads", loads.len()) });
    vec![
        format!("Over {}{named}", list(&overall.workloads)),
        format!("Over {workloads}{named}"),
        format!("Over {workloads}{counted}"),
    ]
}

/// The first section with a number, else the first, and a row for each product in it.
fn unranked(summary: &Summary) -> Option<(Vec<String>, Vec<OverallRow>)> {
    let has_number = |section: &&Section| section.all_rows().any(|row| row.of(Metric::Rate).is_some());
    let section = summary.sections.iter().find(has_number).or(summary.sections.first())?;
    let of = match summary.sections.len() {
        1 => String::new(),
        n => format!(", 1 of {n} combinations; marks count the trials of all"),
    };
    let verdicts = |row: &Row| {
        let mut all = Verdicts::default();
        rows(summary).filter(|other| other.entry == row.entry).for_each(|other| all += other.verdicts);
        all
    };
    let rows = section.all_rows().map(|row| OverallRow {
        standing: Standing { rank: None, ratio_to_best: None, verdicts: verdicts(row), ..row.standing.clone() },
        memory: row.memory.and_then(|memory| memory.by_connection),
        proportional: false,
        missing: Vec::new(),
    });
    Some((vec![format!("Of {}{of}", section.slug_words())], rows.collect()))
}

/// The rows of all sections.
fn rows(summary: &Summary) -> impl Iterator<Item = &Row> {
    summary.sections.iter().flat_map(Section::all_rows)
}

/// The most severe problem of a row, in one or two words.
fn mark(summary: &Summary, row: &OverallRow) -> String {
    let Verdicts { suspect, invalid, error, .. } = row.verdicts;
    let errors = row.error_count();
    match () {
        () if rows(summary).any(|own| own.entry == row.entry && own.answers_itself) => "cache".to_string(),
        () if invalid > 0 => format!("{invalid} invalid"),
        () if error > 0 => format!("{error} failed"),
        () if errors > 0 => format!("{} errors", count(errors)),
        () if suspect > 0 => format!("{suspect} suspect"),
        () if row.rank.is_none() && !row.is_baseline() => "not ranked".to_string(),
        () => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_is_too_long_is_cut() {
        let text = sentence(&"word ".repeat(100), 40, false);
        assert_eq!(text.lines().count(), MOST_OF_SENTENCE);
        assert!(text.ends_with("word\u{2026}\n") && text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert_eq!(sentence(&"x".repeat(50), 40, false), format!("{}\u{2026}\n", "x".repeat(39)));
        assert_eq!(sentence("a short one.", 40, false), "a short one.\n");
    }

    #[test]
    fn the_path_of_the_report_is_never_cut() {
        assert_eq!(place(Path::new("runs/a/report.html"), 80), "Report: runs/a/report.html, or weir report --full");
        let long = "x".repeat(90);
        let said = place(Path::new(&long), 80);
        assert_eq!(said, format!("Report: {long}\nor weir report --full"));
        assert_eq!(screen_lines(&said, 80), 3);
    }
}
