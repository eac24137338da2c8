//! Writes the text that `weir run` and `weir report` print after a run. [`short_answer`] fits a screen of 80 x 24, and
//! [`full_answer`] has every table and finding.

use std::path::Path;

use weir_model::record::Severity;
use weir_model::text::{Unit, count, list, wrapped};

use crate::run::BASELINE;
use crate::summary::{FailedTrial, FindingGroup, Metric, OverallRow, Rankable as _, Row, Section, Summary, Verdicts};
use crate::tables::text::draw;
use crate::tables::{self, Cell, Column, RowKind, Table, TableRow, estimate_cell, one_line, rank_words};

/// With more sections than this, [`full_answer`] shows one table of them all instead of one each.
const MOST_SECTIONS: usize = 6;

/// Lines that [`short_answer`] may take: a screen of 24 without the prompt and a last remark of the verb's.
const MOST_LINES: usize = 22;

/// From this width on the short answer's table has all its columns.
const ALL_COLUMNS: usize = 72;

/// Checks that the line below the table names; the others are counted.
const MOST_CHECKS: usize = 4;

/// One sentence that answers the suite's question, one table, what spoils its numbers, and where the report is: a screen
/// where `width` is 80 or more. Of many products the table has the first.
pub fn short_answer(summary: &Summary, report: &Path, width: usize, colour: bool) -> String {
    let width = width.max(20);
    let ranking = Ranking::of(summary);
    let text = |rows: usize| {
        let mut text = paragraph(&summary.answer, width, colour);
        if let Some(ranking) = &ranking {
            text.push_str(&format!("\n{}", paragraph(&ranking.from, width, false)));
            text.push_str(&draw(&ranking.table(rows, width), width, colour));
        }
        text.push('\n');
        let spoils = spoils(summary).join(" ");
        if !spoils.is_empty() {
            text.push_str(&paragraph(&spoils, width, false));
        }
        text.push_str(&format!("Report: {}\n", one_line(&report.display().to_string())));
        if let Some(run) = report.parent().and_then(Path::parent) {
            text.push_str(&format!("Every table: weir report {} --full\n", one_line(&run.display().to_string())));
        }
        text
    };
    let all = ranking.as_ref().map_or(1, |ranking| ranking.rows.len().max(1));
    // A row may wrap, so the number of rows that fit is found by drawing them.
    (1..=all).rev().map(text).find(|text| text.lines().count() <= MOST_LINES).unwrap_or_else(|| text(1))
}

/// One line of words, wrapped; in bold where there is colour. Escapes that the run may have put into them are taken out.
fn paragraph(words: &str, width: usize, bold: bool) -> String {
    let (before, after) = if bold { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    wrapped(&one_line(words), width, 0).lines().map(|line| format!("{before}{line}{after}\n")).collect()
}

/// The rows of the short answer's table, and where its numbers come from.
struct Ranking {
    from: String,
    rows: Vec<RankingRow>,
}

struct RankingRow {
    row: OverallRow,
    /// Why it is marked or not ranked; empty when all of its trials are valid.
    mark: String,
}

impl Ranking {
    /// Each product over all workloads; where nothing may be ranked, the first section that has a number, with its trials in
    /// all sections counted.
    fn of(summary: &Summary) -> Option<Ranking> {
        let (from, rows) = match &summary.overall {
            Some(overall) => (overall_from(summary), overall.all_rows().cloned().collect()),
            None => unranked(summary)?,
        };
        let rows: Vec<OverallRow> = rows;
        let rows = rows.into_iter().map(|row| RankingRow { mark: mark(summary, &row), row }).collect();
        Some(Ranking { from, rows })
    }

    /// The first rows of it. Two lines of header keep it narrow.
    fn table(&self, rows: usize, width: usize) -> Table {
        let time = Unit::for_least(self.rows.iter().filter_map(|line| line.row.of(Metric::P50)).map(|p50| p50.value));
        // Where there is room for all columns, a long name wraps rather than a column goes.
        let column = |name: &str, unit: &str, order| {
            let dispensable = if width < ALL_COLUMNS { order } else { 0 };
            Column::number(&format!("{name}\n{unit}"), "").dispensable(dispensable)
        };
        let columns = vec![
            Column::text("Rank"),
            Column::text("Product"),
            column("Rate", "requests/s", 0),
            column("p50", time.name, 3),
            column("p99", time.name, 0),
            column("CPU", "µs/req", 1),
            column("Memory", "KiB/conn", 2),
            Column::text("Mark"),
        ];
        let cells = |RankingRow { row, mark }: &RankingRow| {
            let number = |metric, unit| estimate_cell(row.of(metric), unit);
            vec![
                row.rank.map_or_else(Cell::none, |rank| Cell::text(rank_words(rank))),
                Cell::text(&row.label),
                number(Metric::Rate, Unit::PER_SECOND),
                number(Metric::P50, time),
                number(Metric::P99, time),
                number(Metric::Cpu, Unit::MICROS_PER_REQUEST),
                estimate_cell(row.memory, Unit::KIBIBYTES),
                Cell::text(mark),
            ]
        };
        let kind = |RankingRow { row, mark }: &RankingRow| match row.rank {
            _ if row.entry.product == BASELINE => RowKind::Baseline,
            None => RowKind::Unranked,
            Some(_) if mark.is_empty() => RowKind::Plain,
            Some(_) => RowKind::Marked,
        };
        let more = self.rows.len().saturating_sub(rows);
        let shown = self.rows.iter().take(rows);
        Table {
            columns,
            rows: shown.map(|line| TableRow { kind: kind(line), cells: cells(line) }).collect(),
            notes: (more > 0).then(|| format!("and {more} more; --full shows all.")).into_iter().collect(),
            ..Table::default()
        }
    }
}

/// Over which workloads, and under which loads.
fn overall_from(summary: &Summary) -> String {
    let Some(overall) = &summary.overall else { return String::new() };
    let loads = |slugs: &[String]| {
        let mut names: Vec<&str> = Vec::new();
        for section in summary.sections.iter().filter(|section| slugs.contains(&section.slug())) {
            if !names.contains(&section.load.as_str()) {
                names.push(&section.load);
            }
        }
        list(&names)
    };
    let workloads: Vec<&str> = overall.workloads.iter().map(String::as_str).collect();
    let over = match workloads.len() {
        1 => format!("On {}", workloads[0]),
        2..=4 => format!("Geometric means over {}", list(&workloads)),
        n => format!("Geometric means over {n} workloads"),
    };
    let leading = if overall.ranked_by == Metric::Rate { &overall.rate_from } else { &overall.latency_from };
    let under = if *leading == overall.latency_from {
        format!("under {}", loads(leading))
    } else {
        format!("rate, CPU and memory under {}, p50 and p99 under {}", loads(leading), loads(&overall.latency_from))
    };
    let blocks =
        if overall.blocks < 2 { "one block".to_string() } else { format!("medians of {} blocks", overall.blocks) };
    format!("{over}: {under}; {blocks}.")
}

/// The first section with a number, else the first, and a row for each product in it.
fn unranked(summary: &Summary) -> Option<(String, Vec<OverallRow>)> {
    let has_number = |section: &&Section| section.all_rows().any(|row| row.of(Metric::Rate).is_some());
    let section = summary.sections.iter().find(has_number).or(summary.sections.first())?;
    let of = match summary.sections.len() {
        1 => String::new(),
        n => format!(", one of {n} combinations of workload and load; marks count the trials of all"),
    };
    let verdicts = |row: &Row| {
        let same = |other: &&Row| other.entry == row.entry;
        summary.sections.iter().flat_map(Section::all_rows).filter(same).fold(Verdicts::default(), |sum, other| {
            Verdicts {
                valid: sum.valid + other.verdicts.valid,
                suspect: sum.suspect + other.verdicts.suspect,
                invalid: sum.invalid + other.verdicts.invalid,
                error: sum.error + other.verdicts.error,
            }
        })
    };
    let rows = section.all_rows().map(|row| OverallRow {
        entry: row.entry.clone(),
        title: row.title.clone(),
        label: row.label.clone(),
        rank: None,
        estimates: row.estimates.clone(),
        memory: row.memory.and_then(|memory| memory.by_connection),
        proportional: false,
        ratio_to_best: None,
        requests: row.requests,
        errors: row.errors.clone(),
        verdicts: verdicts(row),
        missing: Vec::new(),
    });
    Some((format!("{}{of}.", section.slug_words()), rows.collect()))
}

/// The most severe problem of a row, in one or two words.
fn mark(summary: &Summary, row: &OverallRow) -> String {
    let cache = |own: &Row| own.entry == row.entry && own.answers_itself;
    let Verdicts { suspect, invalid, error, .. } = row.verdicts;
    let errors = row.error_count();
    match () {
        () if summary.sections.iter().flat_map(Section::all_rows).any(cache) => "cache".to_string(),
        () if invalid > 0 => format!("{invalid} invalid"),
        () if error > 0 => format!("{error} failed"),
        () if errors > 0 => format!("{} errors", count(errors)),
        () if suspect > 0 => format!("{suspect} suspect"),
        () if row.rank.is_none() && row.entry.product != BASELINE => "not ranked".to_string(),
        () => String::new(),
    }
}

/// What is wrong with the numbers: trials by verdict with the checks behind it, trials that are missing, and the machine.
fn spoils(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(planned) = summary.trials_planned.filter(|planned| summary.trials < *planned) {
        sentences.push(format!(
            "Only {} of {} trials have ended.",
            count(summary.trials as u64),
            count(planned as u64)
        ));
    }
    match summary.skipped.as_slice() {
        [] => {}
        [one] => sentences.push(format!("{one}.")),
        many => sentences.push(format!("{} products or cases were skipped; the report says why.", many.len())),
    }
    let rows = || summary.sections.iter().flat_map(Section::all_rows);
    let suspect: usize = rows().filter(|row| !row.answers_itself).map(|row| row.verdicts.suspect).sum();
    let invalid: usize = summary.sections.iter().map(|section| section.invalid).sum();
    for (n, word, severity) in [(invalid, "invalid", Severity::Fatal), (suspect, "suspect", Severity::Warning)] {
        if n > 0 {
            let are = if n == 1 { "is" } else { "are" };
            let checks = checks(&summary.findings, severity);
            sentences.push(format!(
                "{} of {} trials {are} {word}: {checks}.",
                count(n as u64),
                count(summary.trials as u64)
            ));
        }
    }
    if let Some(FailedTrial { label, workload, load, stage, message, remedy, .. }) = summary.errors.first() {
        let (n, trials) = (count(summary.errors.len() as u64), count(summary.trials as u64));
        let first = if summary.errors.len() == 1 { "" } else { "the first was " };
        sentences.push(format!(
            "{n} of {trials} trials failed: {first}{label} on {workload} under {load}, at {stage}: {message}. What to do: {remedy}."
        ));
    }
    let machine: Vec<&str> = summary
        .findings
        .iter()
        .filter(|found| found.trials.is_empty() && found.severity > Severity::Note)
        .map(|found| found.check.trim_start_matches("doctor-"))
        .collect();
    if !machine.is_empty() {
        sentences.push(format!("`weir doctor` warns of {}.", list(&machine)));
    }
    sentences
}

/// Checks that found something of this severity in trials, with the number of trials, most first.
fn checks(found: &[FindingGroup], severity: Severity) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for found in found.iter().filter(|found| found.severity == severity && !found.trials.is_empty()) {
        match counts.iter_mut().find(|(check, _)| *check == found.check) {
            Some((_, n)) => *n += found.trials.len(),
            None => counts.push((&found.check, found.trials.len())),
        }
    }
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let more = counts.len().saturating_sub(MOST_CHECKS);
    let mut words: Vec<String> = counts.iter().take(MOST_CHECKS).map(|(check, n)| format!("{check} {n}")).collect();
    if more > 0 {
        words.push(format!("{more} more checks"));
    }
    words.join(", ")
}

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
    let several = summary.sections.len() > 1;
    let rankings = summary.sections.iter().take(if summary.sections.len() > MOST_SECTIONS { 0 } else { MOST_SECTIONS });
    let overall = tables::overall(summary).filter(|_| several);
    let matrix = (summary.sections.len() > MOST_SECTIONS).then(|| tables::matrix(summary));
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
            text.push_str(&paragraph(&words, width, false));
        }
    }
    text
}

/// What the checks noticed, in few lines, so that the ranking stays on the screen: what makes a trial invalid in full,
/// the rest by name. The report has the whole.
fn findings(found: &[FindingGroup]) -> Vec<String> {
    let (fatal, others): (Vec<&FindingGroup>, Vec<&FindingGroup>) =
        found.iter().partition(|f| f.severity == Severity::Fatal);
    let mut lines: Vec<String> =
        fatal.iter().map(|f| format!("{}: {}. What to do: {}.", named(f), f.message, f.remedy)).collect();
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|f| named(f)).collect();
        lines.push(format!("Findings: {}. The report says what was seen and what to do.", names.join(", ")));
    }
    lines
}

/// `steal (warning, 2 trials)`, `doctor-cpus (warning)`.
fn named(found: &FindingGroup) -> String {
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
