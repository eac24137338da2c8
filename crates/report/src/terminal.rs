//! Writes the text that `weir run` and `weir report` print after a run. [`short_answer`] fits a screen of 80 x 24, and
//! [`full_answer`] has every table and finding.

use std::iter::once;
use std::path::Path;

use weir_model::record::Severity;
use weir_model::text::{Unit, count, grouped, list, unique, wrapped};

use crate::summary::{FailedTrial, FindingGroup, Metric, OverallRow, Row, Section, Standing, Summary, Verdicts};
use crate::tables::text::draw;
use crate::tables::{self, Column, RowKind, Table, TableOf, metric_cell, one_line, rank_words, usage_cell};

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
    /// Each with why it is marked or not ranked; empty when all of its trials are valid.
    rows: Vec<(OverallRow, String)>,
}

impl Ranking {
    /// Each product over all workloads; where nothing may be ranked, the first section that has a number, with its trials in
    /// all sections counted.
    fn of(summary: &Summary) -> Option<Ranking> {
        let (from, rows): (String, Vec<OverallRow>) = match &summary.overall {
            Some(overall) => (overall_from(summary), overall.all_rows().cloned().collect()),
            None => unranked(summary)?,
        };
        let from = if summary.hosts.is_empty() { from } else { format!("{from} {}.", summary.hosts) };
        Some(Ranking { from, rows: rows.into_iter().map(|row| (row.clone(), mark(summary, &row))).collect() })
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
        let table = table.table("", "", self.rows.iter().take(rows), |(row, mark)| match row.rank {
            _ if row.is_baseline() => RowKind::Baseline,
            None => RowKind::Unranked,
            Some(_) if mark.is_empty() => RowKind::Plain,
            Some(_) => RowKind::Marked,
        });
        table.with_notes((more > 0).then(|| format!("and {more} more; --full shows all.")))
    }
}

/// A column of the short answer. Where there is room for all columns, a long name wraps rather than a column goes.
fn column(name: &str, unit: &str, order: u8, width: usize) -> Column {
    Column::number(&format!("{name}\n{unit}"), "").dispensable(if width < ALL_COLUMNS { order } else { 0 })
}

/// Over which workloads, and under which loads.
fn overall_from(summary: &Summary) -> String {
    let Some(overall) = &summary.overall else { return String::new() };
    let loads = |slugs: &[String]| {
        let sections = summary.sections.iter().filter(|section| slugs.contains(&section.slug()));
        list(&unique(sections.map(|section| section.load.as_str())))
    };
    let over = match overall.workloads.len() {
        1 => format!("On {}", overall.workloads[0]),
        2..=4 => format!("Geometric means over {}", list(&overall.workloads)),
        n => format!("Geometric means over {n} workloads"),
    };
    let leading = overall.leading();
    let under = if leading == overall.latency_from {
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
    Some((format!("{}{of}.", section.slug_words()), rows.collect()))
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

/// What is wrong with the numbers: trials by verdict with the checks behind it, trials that are missing, and the machine.
fn spoils(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    let trials = count(summary.trials as u64);
    if let Some(planned) = summary.trials_planned.filter(|planned| summary.trials < *planned) {
        sentences.push(format!("Only {trials} of {} trials have ended.", count(planned as u64)));
    }
    match summary.skipped.as_slice() {
        [] => {}
        [one] => sentences.push(format!("{one}.")),
        many => sentences.push(format!("{} products or cases were skipped; the report says why.", many.len())),
    }
    for (n, word, severity) in
        [(summary.invalid(), "invalid", Severity::Fatal), (summary.suspect(), "suspect", Severity::Warning)]
    {
        if n > 0 {
            let are = if n == 1 { "is" } else { "are" };
            let checks = checks(&summary.findings, severity);
            sentences.push(format!("{} of {trials} trials {are} {word}: {checks}.", count(n as u64)));
        }
    }
    if let Some(FailedTrial { label, workload, load, stage, message, remedy, .. }) = summary.errors.first() {
        let n = count(summary.errors.len() as u64);
        let first = if summary.errors.len() == 1 { "" } else { "the first was " };
        sentences.push(format!(
            "{n} of {trials} trials failed: {first}{label} on {workload} under {load}, at {stage}: {message}. What to do: {remedy}."
        ));
    }
    sentences.extend(summary.outdated_words());
    let of_machine = summary.findings.iter().filter(|found| found.trials.is_empty() && found.severity > Severity::Note);
    let mut machine: Vec<&str> = of_machine.map(|found| found.check.trim_start_matches("doctor-")).collect();
    // Several machines may warn of the same.
    machine.dedup();
    if !machine.is_empty() {
        sentences.push(format!("`weir doctor` warns of {}.", list(&machine)));
    }
    sentences
}

/// Checks that found something of this severity in trials, with the number of trials, most first.
fn checks(found: &[FindingGroup], severity: Severity) -> String {
    let found = found.iter().filter(|found| found.severity == severity && !found.trials.is_empty());
    let by_check = grouped(found.map(|found| (found.check.as_str(), found.trials.len())));
    let mut counts: Vec<(&str, usize)> = by_check.into_iter().map(|(check, n)| (check, n.iter().sum())).collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let more = counts.len().saturating_sub(MOST_CHECKS);
    let words = counts.iter().take(MOST_CHECKS).map(|(check, n)| format!("{check} {n}"));
    words.chain((more > 0).then(|| format!("{more} more checks"))).collect::<Vec<_>>().join(", ")
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
