//! Formats a comparison as text for a terminal and as markdown for a pull request. `weir compare` calls [`text`] and
//! [`markdown`].

use std::fmt::Write as _;

use crate::{CaseChange, Change, Comparison, ConditionOutcome, Difference, RunFacts, Verdict, sentences};
use weir_model::metric::Metric;
use weir_model::text::{counted, percent, significant, wrapped};
use weir_report::tables::markdown::escape;
use weir_report::tables::text::draw as draw_text;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, markdown as markdown_table, one_line};

/// Detectable changes above this ratio are shown as "over" it.
const LARGEST_SHOWN: f64 = 4.0;

/// Text for a terminal, at most `width` characters wide (at least 20).
pub fn text(comparison: &Comparison, width: usize, colour: bool) -> String {
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let lines = |text: &str| wrapped(&one_line(text), width.max(20), 0);
    let mut out = format!("{}\n{}\n", lines(&heading(comparison)), lines(preface(comparison)));
    for difference in differences(comparison) {
        let _ = writeln!(out, "{}", lines(&format!("- {difference}")));
    }
    // A run may contain escape sequences. They are removed first, then colours are added around whole lines.
    for line in lines(&comparison.answer).lines() {
        let _ = writeln!(out, "{bold}{line}{plain}");
    }
    for remark in &comparison.remarks {
        let _ = writeln!(out, "{}", lines(&format!("- {remark}")));
    }
    let table = changes(comparison);
    if !table.rows.is_empty() {
        let _ = write!(out, "\n{}", draw_text(&table, width, colour));
    }
    for line in ending(comparison) {
        let _ = writeln!(out, "{}", lines(&line));
    }
    out
}

/// GitHub markdown for a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    let list = |lines: &[String], end: &str| -> String {
        let items: String = lines.iter().map(|line| format!("- {}\n", escape(line))).collect();
        if items.is_empty() { items } else { items + end }
    };
    let table = changes(comparison);
    let table = if table.rows.is_empty() { String::new() } else { format!("{}\n", markdown_table::draw(&table)) };
    format!(
        "### {}\n\n**{}**\n\n{}\n\n{}{}{table}{}",
        escape(&heading(comparison)),
        escape(&comparison.answer),
        escape(preface(comparison)),
        list(&differences(comparison), "\n"),
        list(&comparison.remarks, "\n"),
        list(&ending(comparison), "")
    )
}

fn heading(comparison: &Comparison) -> String {
    let started = |facts: &RunFacts| match facts.started.as_str() {
        "" => facts.run.clone(),
        started => format!("{} ({started})", facts.run),
    };
    format!("{} compared with {} before it", started(&comparison.after), started(&comparison.before))
}

/// The line above the differences.
fn preface(comparison: &Comparison) -> &'static str {
    match comparison.differences.is_empty() {
        true => "Nothing differs between machine, weir, products and suite of the two runs.",
        false => "What else differs, and may be the cause (before -> after):",
    }
}

fn differences(comparison: &Comparison) -> Vec<String> {
    let line = |Difference { what, before, after }: &Difference| format!("{what}: {before} -> {after}");
    comparison.differences.iter().map(line).collect()
}

/// The cases that cannot be compared, those that only one run has, and the outcome of the conditions.
fn ending(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let refused = comparison.refused.iter().map(|one| (&one.case, one.why.as_str()));
    lines.extend(sentences::by_reason(refused).iter().map(|said| format!("Not compared: {said}.")));
    for (cases, which) in [(&comparison.only_before, "before"), (&comparison.only_after, "after")] {
        if !cases.is_empty() {
            lines.push(format!("Only in the run {which}: {}.", sentences::cases(cases)));
        }
    }
    lines.extend(comparison.conditions.iter().flat_map(condition_lines));
    lines
}

fn condition_lines(outcome: &ConditionOutcome) -> Vec<String> {
    let condition = &outcome.condition;
    let mut lines: Vec<String> =
        outcome.alarms.iter().map(|alarm| format!("ALARM ({condition}): {}.", alarm.message)).collect();
    let of_cases = outcome.unjudged.iter().filter_map(|one| Some((one.case.as_ref()?, one.why.as_str())));
    let of_none = outcome.unjudged.iter().filter(|one| one.case.is_none()).map(|one| one.why.clone());
    let unjudged = sentences::by_reason(of_cases).into_iter().chain(of_none);
    lines.extend(unjudged.map(|said| format!("Not judged ({condition}): {said}.")));
    if outcome.claims > 0 && outcome.alarms.is_empty() {
        lines.push(format!("No alarm ({condition}), of {}.", counted(outcome.claims as u64, "number")));
    }
    lines.extend(outcome.blind.iter().map(|why| format!("Perhaps missed ({condition}): {why}.")));
    lines
}

/// The table of changes: for each case the number that its load measures, and every number that may have changed.
fn changes(comparison: &Comparison) -> Table {
    let mut rows: Vec<(&CaseChange, &Change)> = Vec::new();
    let mut hidden = 0;
    for case in &comparison.cases {
        for (at, change) in case.changes.iter().enumerate() {
            // The first one represents the case: capacity, or median latency.
            let unchanged = matches!(change.verdict, Verdict::None | Verdict::Unclaimable | Verdict::Machine);
            let main = at == 0 || (change.metric == Metric::P99 && case.changes[0].metric != Metric::Rate);
            if unchanged && !main && !change.asked {
                hidden += usize::from(!case.machine);
            } else {
                rows.push((case, change));
            }
        }
    }
    let mut table = TableOf::<(&CaseChange, &Change)>::new();
    table.add(Column::text("Product"), |(case, _)| case.label.clone());
    table.add(Column::text("Workload"), |(case, _)| case.case.workload.clone());
    table.add(Column::text("Load"), |(case, _)| case.case.load.clone());
    table.add(Column::text("Number"), |(_, change)| change.metric.compared_name());
    let measured = |change: &Change, median: f64| Cell::number(change.metric.human(median), median);
    let before = Column::number("Before", "").dispensable(3);
    table.add(before, move |(_, change)| measured(change, change.before.median));
    let after = Column::number("After", "").dispensable(2);
    table.add(after, move |(_, change)| measured(change, change.after.median));
    table.add(Column::number("Change", ""), |(_, change)| {
        Cell::number(signed(change.ratio.value), change.ratio.value - 1.0)
    });
    table.add(Column::number("Interval", ""), |(_, change)| {
        let (low, high) = (signed(change.ratio.low), signed(change.ratio.high));
        let interval = format!("{} to {high}", low.trim_end_matches(" %"));
        (change.verdict != Verdict::Unclaimable).then(|| Cell::from(interval))
    });
    table.add(Column::text("Verdict"), |(_, change)| match change.verdict {
        Verdict::Sure => "sure",
        Verdict::Likely => "likely",
        Verdict::Unclear => "unclear",
        Verdict::None => "none found",
        Verdict::Unclaimable => "too few blocks",
        Verdict::Machine => "the machine",
    });
    table.add(Column::number("Could find", "").dispensable(1), |(_, change)| {
        let least = change.detectable_ratio.filter(|_| change.verdict != Verdict::Machine)?;
        let over = format!("over {}", percent(LARGEST_SHOWN - 1.0));
        Some(Cell::from(if least > LARGEST_SHOWN { over } else { percent(least - 1.0) }))
    });
    table.add(Column::number("Blocks", "").dispensable(4), |(_, change)| {
        format!("{}, {}", change.before.blocks, change.after.blocks)
    });
    let kind = |(_, change): &(&CaseChange, &Change)| match change.verdict {
        Verdict::Machine => RowKind::Baseline,
        Verdict::Sure => RowKind::Marked,
        _ => RowKind::Plain,
    };
    table.table("changes", "Changes", &rows, kind).with_notes(notes(comparison, hidden))
}

/// `-4.8 %`, `+12 %`.
pub(crate) fn signed(ratio: f64) -> String {
    let share = ratio - 1.0;
    let text = percent(share.abs());
    if text.starts_with("0 ") || significant(share.abs() * 1e4, 1) == "0" {
        return "0 %".to_owned();
    }
    format!("{}{text}", if share < 0.0 { '-' } else { '+' })
}

fn notes(comparison: &Comparison, hidden: usize) -> Vec<String> {
    let mut notes = vec![format!(
        "Intervals are at {}. Likely: the interval excludes 0. Sure: it does so even at the level at which all claims \
         together are right in {} of comparisons ({}), and by more than whole runs of one program differ by.",
        percent(comparison.level),
        percent(comparison.level),
        family(comparison)
    )];
    if comparison.cases.iter().any(|case| case.changes.iter().any(|change| change.divided)) {
        notes.push("Before and after are medians as measured; the change is that of the divided numbers.".to_owned());
    }
    if comparison.all.claims > 0 {
        notes.push(
            "Could find: the least change that such blocks show for sure in four of five comparisons.".to_owned(),
        );
    }
    if hidden > 0 {
        let what = counted(hidden as u64, "further number");
        notes.push(format!("Not shown: {what} without a change that could be claimed; --json has all."));
    }
    notes
}

fn family(comparison: &Comparison) -> String {
    let each = |family: &crate::Family| {
        format!("{} % for each of {}", significant(family.level_of_each * 100.0, 4), family.claims)
    };
    match comparison.asked.claims {
        0 => each(&comparison.all),
        _ => format!(
            "{} that --fail-if asks about, {} in all for the others",
            each(&comparison.asked),
            each(&comparison.all)
        ),
    }
}
