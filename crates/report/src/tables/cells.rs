//! Cells and columns that several tables of products share. The other modules of `tables` use them, and so does
//! `terminal`.

use std::ops::Deref;

use weir_model::text::{Unit, count, percent, short};
use weir_stats::Estimate;

use super::{Cell, Column, RowKind, TableOf};
use crate::summary::{Metric, Standing, Verdicts};

pub(super) fn row_kind(row: &Standing) -> RowKind {
    match row.rank {
        _ if row.is_baseline() => RowKind::Baseline,
        None => RowKind::Unranked,
        Some(_) if row.suspect() => RowKind::Marked,
        Some(_) => RowKind::Plain,
    }
}

/// Adds the columns of product and profile. The profile can be left out, as the column of that order, where all products
/// have the same, and never where it tells two rows apart.
pub(super) fn add_product<'a, R: Deref<Target = Standing> + 'a>(
    table: &mut TableOf<'a, R>,
    told_apart: bool,
    order: u8,
) {
    table.add(Column::text("Product"), |row| marked(&row.title, row));
    let profile = Column::text("Profile").help("The configuration it ran with.");
    table.add(profile.dispensable(if told_apart { 0 } else { order }), |row| profile_words(row).to_string());
}

pub(super) fn profile_words(row: &Standing) -> &str {
    if row.is_baseline() { "no proxy" } else { &row.entry.profile }
}

/// The mark that sends a reader to the remarks.
pub(super) fn marked(name: &str, row: &Standing) -> String {
    if row.suspect() { format!("{name} *") } else { name.to_string() }
}

pub(super) fn add_rank<'a, R: Deref<Target = Standing> + 'a>(table: &mut TableOf<'a, R>) {
    let column = Column::text("Rank").help("The best and the worst rank that the intervals allow.");
    table.add(column, |row| match row.rank {
        Some(rank) => Cell::number(rank_words(rank), rank.0 as f64 + rank.1 as f64 / 1_000.0),
        None if row.is_baseline() => Cell::none(),
        None => Cell::number("not ranked", 1e9),
    });
}

/// "1", or "1-2" when shared.
pub(crate) fn rank_words((low, high): (usize, usize)) -> String {
    if low == high { low.to_string() } else { format!("{low}\u{2013}{high}") }
}

/// An interval whose upper end is this many times the lower end says nothing.
const BOUNDLESS: f64 = 1_000.0;

/// A number with its interval.
pub fn estimate_cell(estimate: Option<Estimate>, unit: Unit) -> Cell {
    let number = |estimate: &Estimate| Cell::number(short(estimate.value / unit.size), estimate.value);
    estimate.map(|estimate| number(&estimate).detail(interval(&estimate, unit))).into()
}

/// What the product itself used: where it carried requests and its processes were not read, that is said, because an empty cell is what
/// the baseline has.
pub fn usage_cell(row: &Standing, estimate: Option<Estimate>, unit: Unit) -> Cell {
    match estimate {
        None if !row.is_baseline() && row.of(Metric::Rate).is_some() => Cell::from("unknown"),
        estimate => estimate_cell(estimate, unit),
    }
}

/// That of a metric in a table that also has metrics of other things.
pub fn metric_cell(row: &Standing, metric: Metric, unit: Unit) -> Cell {
    match metric {
        Metric::Cpu | Metric::PerCore => usage_cell(row, row.of(metric), unit),
        _ => estimate_cell(row.of(metric), unit),
    }
}

/// "0.80-0.90". Empty for one block, for a value compared with itself, and where both ends look the same.
fn interval(estimate: &Estimate, unit: Unit) -> String {
    let (low, high) = (short(estimate.low / unit.size), short(estimate.high / unit.size));
    if estimate.n < 2 || low == high {
        String::new()
    } else if estimate.high > estimate.low.max(0.0) * BOUNDLESS {
        "too few blocks for an interval".to_string()
    } else {
        format!("{low}\u{2013}{high}")
    }
}

/// Requests without a right answer: their share, and where `kinds` is set how many of each kind.
pub(super) fn errors_cell(row: &Standing, kinds: bool) -> Cell {
    let errors = row.error_count();
    let share = percent(errors as f64 / row.requests.max(1) as f64);
    match errors {
        0 if row.requests == 0 => Cell::none(),
        0 => Cell::count(0_u64),
        _ if !kinds => Cell::count(errors).detail(share),
        _ => {
            let kinds: Vec<String> = row.errors.iter().map(|(kind, n)| format!("{} {kind}", count(*n))).collect();
            Cell::count(errors).detail(format!("{share}: {}", kinds.join(", ")))
        }
    }
}

/// "3 valid, 1 suspect".
pub(super) fn verdict_words(verdicts: Verdicts) -> String {
    let Verdicts { valid, suspect, invalid, error } = verdicts;
    let counts = [(valid, "valid"), (suspect, "suspect"), (invalid, "invalid"), (error, "failed")];
    let words: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_says_nothing_is_not_shown() {
        let estimate = Estimate { value: 1_500.0, low: 1_400.0, high: 1_600.0, n: 3, level: 0.75 };
        let shown = |estimate| estimate_cell(Some(estimate), Unit::MILLIS).words(true);
        assert_eq!(shown(estimate), "1.50 (1.40\u{2013}1.60)");
        assert_eq!(shown(Estimate { n: 1, ..estimate }), "1.50");
        assert_eq!(shown(Estimate { low: 1_500.0, high: 1_500.0, ..estimate }), "1.50");
        assert_eq!(shown(Estimate { low: 1e-9, high: 1e9, ..estimate }), "1.50 (too few blocks for an interval)");
    }
}
