//! Formats a history for a terminal, and its table of changes for the page. `weir history` calls [`text`].

use std::fmt::Write as _;

use weir_model::text::{counted, percent, wrapped};
use weir_report::tables::text::draw;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, one_line};

use super::{Change, History, Series, Verdict, sentences};
use crate::output::signed;

/// Rows of series without a change; the others are counted.
const UNCHANGED: usize = 8;

/// Differences that are told of a change; the others are counted.
const DIFFERENCES: usize = 4;

/// A change, or a series without one.
type Row<'a> = (&'a Series, Option<&'a Change>);

/// Text for a terminal, at most `width` characters wide (at least 20).
pub fn text(history: &History, width: usize, colour: bool) -> String {
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let lines = |text: &str| wrapped(&one_line(text), width.max(20), 0);
    let mut out = format!("{}\n", lines(&heading(history)));
    // A run may contain escape sequences. They are removed first, then colours are added around whole lines.
    for line in lines(&history.answer).lines() {
        let _ = writeln!(out, "{bold}{line}{plain}");
    }
    for remark in &history.remarks {
        let _ = writeln!(out, "- {}", lines(remark));
    }
    let table = changes(history, UNCHANGED);
    if !table.rows.is_empty() {
        let _ = write!(out, "\n{}", draw(&table, width, colour));
    }
    for (series, change) in history.changes() {
        if let Some(words) = what_else(change) {
            let _ = writeln!(out, "{}", lines(&format!("{}, {}: {words}", sentences::case(series), change.run)));
        }
    }
    out
}

/// `40 runs of quick on bench-1 from 2026-01-02 to 2026-02-10, by date`.
pub(super) fn heading(history: &History) -> String {
    let runs = || history.machines.iter().flat_map(|machine| &machine.runs);
    let suites: Vec<&str> = weir_model::text::unique(runs().map(|run| run.suite.as_str()));
    let (first, last) = (runs().map(|run| &run.started).min(), runs().map(|run| &run.started).max());
    let span = match first.zip(last).map(|(first, last)| (day(first), day(last))) {
        Some((first, last)) if first == last => format!(" of {first}"),
        Some((first, last)) => format!(" from {first} to {last}"),
        None => String::new(),
    };
    let machines = match history.machines.as_slice() {
        [only] => only.label.clone(),
        all => counted(all.len() as u64, "machine"),
    };
    let all = sentences::runs(runs().count());
    format!(
        "{all} of {} on {machines}{span}, by {}",
        weir_model::text::list(&suites),
        sentences::order(history.options.by)
    )
}

/// The day of a time such as `2026-01-02T03:04:05Z`.
fn day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(day, _)| day)
}

/// Changes first, then series without one.
pub(super) fn changes(history: &History, unchanged: usize) -> Table {
    let changed = history.changes().into_iter().map(|(series, change)| (series, Some(change)));
    let judged = |series: &&Series| series.points.len() >= weir_stats::FEWEST_RUNS && !series.of_machine;
    let level: Vec<Row<'_>> = history
        .series
        .iter()
        .filter(judged)
        .filter(|series| series.changes.is_empty())
        .map(|series| (series, None))
        .collect();
    let hidden = level.len().saturating_sub(unchanged);
    let rows: Vec<Row<'_>> = changed.chain(level.into_iter().take(unchanged)).collect();
    let several = history.machines.len() > 1;
    let mut table = TableOf::<Row<'_>>::new();
    table.add(Column::text("Case"), |(series, _)| sentences::case(series));
    if several {
        table.add(Column::text("Machine"), |(series, _)| series.machine.clone());
    }
    table.add(Column::text("Number"), |(series, _)| series.metric.compared_name());
    let of = |(series, _): &Row<'_>, value: f64| Cell::number(series.metric.human(value), value);
    table.add(Column::number("Before", ""), move |row| row.1.map(|change| of(row, change.before)));
    table.add(Column::number("After", ""), move |row| {
        let usual = || weir_stats::median(&row.0.points.iter().map(|point| point.value).collect::<Vec<_>>());
        row.1.map(|change| change.after).or_else(usual).map(|value| of(row, value))
    });
    table.add(Column::number("Change", ""), |(_, change)| {
        change.map(|change| Cell::number(signed(change.after / change.before), change.after / change.before - 1.0))
    });
    table.add(Column::number("Interval", "").dispensable(3), |(_, change)| {
        change.map(|change| {
            let (low, high) = (signed(change.ratio.low), signed(change.ratio.high));
            Cell::from(format!("{} to {high}", low.trim_end_matches(" %")))
        })
    });
    table.add(Column::text("From"), |(_, change)| change.map(|change| Cell::from(change.run.as_str())));
    table.add(Column::text("p"), |(_, change)| change.map(|change| Cell::from(sentences::p(change.p))));
    table.add(Column::text("Verdict"), |(_, change)| match change {
        None => "no change",
        Some(change) => match (change.verdict, change.worse) {
            (Verdict::Changed, true) => "worse",
            (Verdict::Changed, false) => "better",
            (Verdict::Unclear, _) => "unclear",
            (Verdict::Machine, _) => "the machine",
        },
    });
    table.add(Column::number("Noise", "").dispensable(1), |(series, _)| {
        series.noise.map(|noise| Cell::number(percent(noise), noise))
    });
    table.add(Column::number("Runs", "").dispensable(2), |(series, _)| Cell::count(series.points.len() as u64));
    let kind = |(_, change): &Row<'_>| match change {
        Some(Change { verdict: Verdict::Changed, worse: true, .. }) => RowKind::Marked,
        Some(Change { verdict: Verdict::Machine, .. }) => RowKind::Unranked,
        _ => RowKind::Plain,
    };
    table.table("changes", "Changes", &rows, kind).with_notes(notes(history, hidden))
}

fn notes(history: &History, hidden: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if history.claims.claims > 0 {
        notes.push(format!(
            "Of 100 histories without any change, at most {} show one by chance (p at most {}{}); more where a machine \
             drifts over many runs: docs/history.md. Changes below {} are left out.",
            ((1.0 - history.options.level) * 100.0).round(),
            sentences::p(1.0 - history.claims.level_of_each),
            if history.claims.claims > 1 {
                format!(" for each of {} numbers", history.claims.claims)
            } else {
                String::new()
            },
            percent(history.options.least - 1.0),
        ));
    }
    if hidden > 0 {
        notes.push(format!("Not shown: {} without a change.", counted(hidden as u64, "further number")));
    }
    notes
}

/// `weir: 0.1.0 -> 0.2.0; ...`: what else changed within two runs of a change.
pub(super) fn what_else(change: &Change) -> Option<String> {
    let all: Vec<String> =
        change.differences.iter().map(|one| format!("{}: {} -> {}", one.what, one.before, one.after)).collect();
    let more = all.len().saturating_sub(DIFFERENCES);
    let more = if more > 0 { format!("; and {more} more, in --json") } else { String::new() };
    let shown: Vec<&str> = all.iter().take(DIFFERENCES).map(String::as_str).collect();
    (!all.is_empty()).then(|| format!("about then changed {}{more}.", shown.join("; ")))
}
