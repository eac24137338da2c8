//! The text that `weir run` and `weir report` print after a run. [`short_answer`] fits a screen of 80 x 24: a sentence, a table, a line on
//! what spoils the numbers, and a line on where the rest is. [`full_answer`] has every table and finding.

use std::iter::once;
use std::path::Path;

use weir_model::record::Severity;
use weir_model::text::{Unit, count, counted, grouped, list, unique, wrapped};

use crate::summary::{FindingGroup, Metric, OverallRow, Row, Section, Standing, Summary, Verdicts};
use crate::tables::text::draw;
use crate::tables::{self, Column, RowKind, Table, TableOf, metric_cell, one_line, rank_words, usage_cell};

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
    let mut all = tables::particular(summary);
    all.extend(tables::overall(summary).filter(|_| summary.sections.len() > 1));
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
    // Streams last as long as their sender wants: what is ranked says little of them.
    let particular = tables::particular(summary).into_iter().next();
    let particular = particular.map(|table| Table { title: String::new(), notes: Vec::new(), ..table });
    let ranking = Ranking::of(summary, width).filter(|_| particular.is_none());
    let text = |rows: usize, colour: bool| {
        let mut text = sentence(&summary.answer, width, colour);
        if let Some(table) = &particular {
            let shown = Table { rows: table.rows.iter().take(rows).cloned().collect(), ..table.clone() };
            text.push_str(&format!("\n{}", draw(&shown, width, colour)));
        }
        if let Some(ranking) = &ranking {
            text.push_str(&format!("\n{}", draw(&ranking.table(rows, width), width, colour)));
        }
        format!("{text}\n{}\n{}\n", doubts(summary, width), place(report, width))
    };
    let all = particular.as_ref().map(|table| table.rows.len()).or(ranking.as_ref().map(|ranking| ranking.rows.len()));
    let all = all.unwrap_or(1).max(1);
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
        () if rows(summary).any(|own| own.entry == row.entry && own.responds_itself) => "cache".to_string(),
        () if invalid > 0 => format!("{invalid} invalid"),
        () if error > 0 => format!("{error} failed"),
        () if errors > 0 => format!("{} errors", count(errors)),
        () if suspect > 0 => format!("{suspect} suspect"),
        () if row.rank.is_none() && !row.is_baseline() => "not ranked".to_string(),
        () => String::new(),
    }
}

/// Names that one doubt lists at most; the others are counted.
const MOST_NAMES: usize = 2;

/// Something that spoils the numbers, and the names of what it is about.
struct Doubt {
    words: String,
    names: Vec<String>,
}

impl Doubt {
    /// `2 suspect (drift, 1 more)`: with at most so many names.
    fn text(&self, most: usize) -> String {
        if most == 0 || self.names.is_empty() {
            return self.words.clone();
        }
        format!("{} ({})", self.words, some(&self.names, most))
    }
}

/// `Doubts: 3 of 72 trials invalid (conservation-requests); 1 suspect`: at most `width` characters, worst first. Where all
/// of it does not fit, names go, and then the lesser doubts.
fn doubts(summary: &Summary, width: usize) -> String {
    let all = all_doubts(summary);
    if all.is_empty() {
        return "Doubts: none.".to_string();
    }
    let fits = |line: &String| line.chars().count() <= width;
    let mut most = vec![0; all.len()];
    let brief = doubt_line(&all, &most, 0);
    if !fits(&brief) {
        let mut fewer = (1..all.len()).rev().map(|kept| doubt_line(&all[..kept], &most, all.len() - kept));
        return fewer.find(fits).unwrap_or_else(|| cut(&brief, width));
    }
    for place in 0..all.len() {
        for names in (0..=MOST_NAMES).rev() {
            most[place] = names;
            if fits(&doubt_line(&all, &most, 0)) {
                break;
            }
        }
    }
    doubt_line(&all, &most, 0)
}

/// The doubts, each with at most so many names, and how many more doubts there are.
fn doubt_line(doubts: &[Doubt], most: &[usize], more: usize) -> String {
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    let words: Vec<String> = doubts.iter().zip(most).map(|(doubt, most)| doubt.text(*most)).collect();
    one_line(&format!("Doubts: {}{more}.", words.join("; ")))
}

fn all_doubts(summary: &Summary) -> Vec<Doubt> {
    let mut all: Vec<(u64, String, Vec<String>)> = Vec::new();
    let broken = summary.broken.len() as u64;
    all.push((broken, format!("{} damaged or changed", counted(broken, "file")), Vec::new()));
    let trials = counted(summary.trials as u64, "trial");
    let missing = summary.trials_planned.unwrap_or(0).saturating_sub(summary.trials);
    let what = if summary.broken.is_empty() { "have ended" } else { "are shown" };
    let planned = counted((summary.trials + missing) as u64, "trial");
    all.push((missing as u64, format!("only {} of {planned} {what}", summary.trials), Vec::new()));
    let failed = unique(summary.errors.iter().map(|failed| format!("{} at {}", failed.label, failed.stage)));
    let verdicts = [
        ("failed", summary.errors.len(), failed),
        ("invalid", summary.invalid(), checks(&summary.findings, Severity::Fatal)),
        ("suspect", summary.suspect(), checks(&summary.findings, Severity::Warning)),
    ];
    let mut of = format!(" of {trials}");
    for (word, n, names) in verdicts.into_iter().filter(|(_, n, _)| *n > 0) {
        all.push((n as u64, format!("{}{} {word}", count(n as u64), std::mem::take(&mut of)), names));
    }
    let skipped = summary.skipped.len() as u64;
    all.push((skipped, format!("{skipped} left out"), Vec::new()));
    let without = summary.overall.as_ref().map_or(0, |overall| overall.without.len() as u64);
    all.push((without, format!("{without} workloads in no mean"), Vec::new()));
    let old: Vec<String> = summary.outdated.iter().map(|old| format!("{} {}", old.title, old.version)).collect();
    all.push((old.len() as u64, counted(old.len() as u64, "old version"), old));
    let of_machine = summary.findings.iter().filter(|found| found.trials.is_empty() && found.severity > Severity::Note);
    let machine = unique(of_machine.map(|found| found.check.trim_start_matches("doctor-").to_string()));
    all.push((machine.len() as u64, format!("doctor: {}", machine.len()), machine));
    all.into_iter().filter(|(n, ..)| *n > 0).map(|(_, words, names)| Doubt { words, names }).collect()
}

/// The first `most` of several names, and how many more.
fn some(names: &[String], most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("{more} more"));
    names.iter().take(most).cloned().chain(more).collect::<Vec<_>>().join(", ")
}

/// Checks that found something of this severity in trials, with the number of trials, most first.
fn checks(found: &[FindingGroup], severity: Severity) -> Vec<String> {
    let found = found.iter().filter(|found| found.severity == severity && !found.trials.is_empty());
    let by_check = grouped(found.map(|found| (found.check.as_str(), found.trials.len())));
    let mut counts: Vec<(&str, usize)> = by_check.into_iter().map(|(check, n)| (check, n.iter().sum())).collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    match counts.as_slice() {
        [(only, _)] => vec![(*only).to_string()],
        many => many.iter().map(|(check, n)| format!("{check} {n}")).collect(),
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
