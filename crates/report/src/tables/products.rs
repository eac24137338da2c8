//! Tables with a row for each product: over all workloads, of one section, and every section beside each other. The cells and columns
//! that they share are here too. The module does not know how a table is drawn.

use std::ops::Deref;

use weir_model::metric::Quantity;
use weir_model::suite::{LoadKind, Series};
use weir_model::text::{Unit, count, grouped, least, list, percent, short};
use weir_stats::Estimate;

use super::costs::add_warmup;
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{
    Cause, Metric, Overall, OverallRow, PointRow, Row, Section, Standing, Summary, Verdicts, range_words,
};

pub(crate) fn row_kind(row: &Standing) -> RowKind {
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

/// The product's own use of a resource. A product whose processes were not read says so, because an empty cell is what the
/// baseline has.
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

/// Requests without a successful response: their share, and where `kinds` is set how many of each kind.
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

/// Each product over all workloads; `None` when nothing may be ranked.
pub fn overall(summary: &Summary) -> Option<Table> {
    let overall = summary.overall.as_ref()?;
    let at =
        if overall.same_rate { "at the rate offered alike to all" } else { "under the load that asks for the rate" };
    // Latencies share a unit, which the median decides.
    let median = least(overall.all_rows().filter_map(|row| row.of(Metric::P50)).map(|p50| p50.value));
    let mut table = TableOf::<OverallRow>::new();
    add_rank(&mut table);
    add_product(&mut table, overall.all_rows().any(|row| row.label != row.title), 9);
    for metric in Metric::ALL.iter().copied() {
        let (entry, unit) = (metric.entry(), metric.entry().quantity.unit(median));
        let Some(order) = entry.columns.overall else { continue };
        let at = if entry.quantity == Quantity::Latency { format!(" {at}.") } else { ".".to_string() };
        let help = format!("{}{at}", entry.help.trim_end_matches('.'));
        // One interval in a terminal and a README; the page has them all.
        let column = Column::number(entry.title, unit.name).with_details_if(metric == overall.ranked_by);
        table.add(column.dispensable(order).help(&help), move |row| metric_cell(row, metric, unit));
    }
    let measure = if overall.rows.iter().all(|row| row.proportional) { "proportional" } else { "resident" };
    let help = format!("Largest {measure} set of the proxy's processes by the client's connections.");
    let memory = Column::number("Memory", "KiB/connection").dispensable(5).help(&help);
    table.add(memory, |row| usage_cell(row, row.memory, Unit::KIBIBYTES));
    let errors = Column::number("Errors", "requests").dispensable(1).help("Requests without a successful response.");
    table.add(errors, |row| errors_cell(row, false));
    let trials = Column::text("Trials").dispensable(3);
    table.add(trials.help("What the audit says of the trials that the numbers come from."), |row| {
        verdict_words(row.verdicts)
    });
    let table = table.table("overall", title(overall), overall.all_rows(), |row| row_kind(row));
    Some(table.with_notes(notes(summary, overall, measure)))
}

fn title(overall: &Overall) -> String {
    match overall.workloads.as_slice() {
        [] => "Each product".to_string(),
        [only] => format!("Each product on {only}"),
        several => format!("Each product over {} workloads: geometric means", several.len()),
    }
}

/// How each column was obtained, in words: what a pointer shows over a header is lost in print.
fn notes(summary: &Summary, overall: &Overall, memory: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if overall.workloads.len() > 1 {
        notes.push(format!(
            "Each number is the geometric mean over {}, taken within each block.",
            overall.workloads.join(", ")
        ));
    }
    notes.push(intervals(overall));
    let rate_from = headings(summary, &overall.rate_from);
    let latency_from = headings(summary, &overall.latency_from);
    let offered = overall.offered_rate.map(|range| format!(" ({} requests/s)", range_words(range))).unwrap_or_default();
    match overall.ranked_by {
        Metric::Rate => {
            notes.push(format!("Rate: successful responses/s, {}.", from(&rate_from)));
            notes.push(if overall.same_rate {
                format!("p50 and p99: due to answered, at a rate{offered} offered alike to all, {}.", from(&latency_from))
            } else {
                "p50 and p99: due to answered, of the same load; where each connection waits for its response, that is the time in \
                 the product's queue. This run has no load that offers all the same."
                    .to_string()
            });
        }
        _ => notes.push(format!(
            "p50 and p99: due to answered, {}{offered}; ranked by p99. Rate: successful responses/s under that load.",
            from(&latency_from)
        )),
    }
    notes.push(format!(
        "CPU: user and system time of the proxy's processes by the responses it gave; per core: responses/s of that time. \
         Memory: the largest {memory} set of its processes by the client's connections, the product's own needs included. \
         All three under the load that the rank comes from. Errors: requests without a successful response, of these loads."
    ));
    notes
}

fn intervals(overall: &Overall) -> String {
    match overall.blocks {
        0 | 1 => "One block has no interval: it cannot say how far the next would be off.".to_string(),
        n => format!(
            "Behind or below a number stands the interval of the median over {n} blocks{}.",
            if n < 6 { ", smallest to largest" } else { " (95 %)" }
        ),
    }
}

fn from(headings: &[String]) -> String {
    let quoted: Vec<String> = headings.iter().map(|heading| format!("\u{201c}{heading}\u{201d}")).collect();
    if quoted.is_empty() { "of no load".to_string() } else { format!("under {}", quoted.join(", ")) }
}

/// The loads of sections, each once.
fn headings(summary: &Summary, slugs: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for section in summary.sections.iter().filter(|section| slugs.contains(&section.slug())) {
        let load = if section.load_title.is_empty() { &section.load } else { &section.load_title };
        if !all.contains(load) {
            all.push(load.clone());
        }
    }
    all
}

/// All sections beside each other: the rank and the ranked number of each product.
pub fn matrix(summary: &Summary) -> Table {
    let entries = entries(summary);
    let (id, title) = ("overview", "Every workload under every load");
    let table = if summary.sections.len() <= entries.len().min(6) {
        let kind = |row: &&Row| if row.is_baseline() { RowKind::Baseline } else { RowKind::Plain };
        products_down(summary, &entries).table(id, title, &entries, kind)
    } else {
        sections_down(&entries).table(id, title, &summary.sections, |_| RowKind::Plain)
    };
    table.with_notes([
        "Medians over blocks of what each section ranks by: successful responses/s, the 99th percentile of latency where the \
         rate was given, or that of the delay of a stream's messages. A rank such as 1\u{2013}2 is shared. Each has a section below.",
    ])
}

/// Every product with its profile, each once: the baseline first.
fn entries(summary: &Summary) -> Vec<&Row> {
    let mut entries: Vec<&Row> = Vec::new();
    let baselines = summary.sections.iter().flat_map(|section| &section.baseline);
    for row in baselines.chain(summary.sections.iter().flat_map(|section| &section.rows)) {
        if !entries.iter().any(|known| known.entry == row.entry) {
            entries.push(row);
        }
    }
    entries
}

fn products_down<'a>(summary: &'a Summary, entries: &[&'a Row]) -> TableOf<'a, &'a Row> {
    let profiles = entries.iter().any(|row| row.label != row.title);
    let mut table = TableOf::new();
    table.add(Column::text("Product"), |row: &&Row| row.title.clone());
    table.add(Column::text("Profile").dispensable(if profiles { 0 } else { 2 }), |row: &&Row| {
        profile_words(row).to_string()
    });
    for section in &summary.sections {
        let name = format!("{} {}: {}", section.workload, section.load, section.ranked_by.key());
        let column = Column::number(&name, unit(section).name).with_details().help(&section.heading());
        table.add(column, |row: &&Row| cell(row, section));
    }
    table
}

fn sections_down<'a>(entries: &[&'a Row]) -> TableOf<'a, Section> {
    let mut table = TableOf::<Section>::new();
    table.add(Column::text("Workload"), |section| section.workload.clone());
    table.add(Column::text("Load"), |section| section.load.clone());
    table.add(Column::text("Of"), |section| format!("{}, {}", section.ranked_by.key(), unit(section).name));
    for row in entries.iter().copied() {
        table.add(Column::number(&row.label, "").with_details(), move |section| cell(row, section));
    }
    table
}

fn unit(section: &Section) -> Unit {
    let values = section.all_rows().filter_map(|row| row.of(section.ranked_by)).map(|estimate| estimate.value);
    section.ranked_by.entry().quantity.unit(least(values))
}

/// The section's rank and number of this product.
fn cell(entry: &Row, section: &Section) -> Option<Cell> {
    let row = section.all_rows().find(|row| row.entry == entry.entry)?;
    let estimate = row.of(section.ranked_by)?;
    let mark = if row.suspect() { "*" } else { "" };
    let number = Cell::number(format!("{}{mark}", short(estimate.value / unit(section).size)), estimate.value);
    Some(number.detail(match row.rank {
        _ if row.is_baseline() => "baseline".to_string(),
        Some(rank) => format!("rank {}", rank_words(rank)),
        None => "not ranked".to_string(),
    }))
}

/// The ranking of one section: rank, rate, latency, cost, memory, errors.
pub fn ranking(section: &Section) -> Table {
    let medians = section.all_rows().filter_map(|row| row.of(Metric::P50)).map(|p50| p50.value);
    let time = Quantity::Latency.unit(least(medians));
    let mut table = TableOf::<Row>::new();
    add_rank(&mut table);
    add_product(&mut table, section.tells_profiles_apart(), 2);
    add_rate(&mut table, section);
    match (&section.series, &section.kind) {
        (Series::Once, LoadKind::Search { .. }) => add_search(&mut table),
        (Series::Once, LoadKind::Count { .. }) => {
            let column = Column::number("Total", "s").help("From the first request to the last response.");
            add_estimate(&mut table, column, Unit::SECONDS, |row| row.of(Metric::Total));
        }
        (Series::Once, _) => {}
        (Series::Rounds(_), _) => {
            let round = |name: &str| Column::number(name, Unit::PER_SECOND.name).dispensable(3);
            let rate = |point: Option<&PointRow>| point?.of(Metric::Rate);
            add_estimate(&mut table, round("First round"), Unit::PER_SECOND, move |row| rate(row.points.first()));
            add_estimate(&mut table, round("Last round"), Unit::PER_SECOND, move |row| rate(row.points.last()));
        }
        (Series::Shares(_), _) => add_knee_of_rates(&mut table, time),
        (Series::Connections(_), _) => {
            let column =
                Column::number("Knee at", "connections").help("Connections from which the rate climbs no more.");
            table.add(column, |row| Some(Cell::count(knee(row)?.connections)));
        }
    }
    add_ratios(&mut table);
    add_metrics(&mut table, section, time);
    let memory = Column::number("Memory", Unit::MEBIBYTES.name).dispensable(7).help("Largest memory of the proxy.");
    add_estimate(&mut table, memory, Unit::MEBIBYTES, |row| row.memory.map(|memory| memory.bytes));
    let errors = Column::number("Errors", "requests").dispensable(2);
    table.add(errors.help("Requests of the ranked windows without a successful response."), |row| {
        errors_cell(row, true)
    });
    if section.all_rows().any(|row| row.warmup.is_some()) {
        add_warmup(&mut table, 5);
    }
    table.add(Column::text("Trials").dispensable(8), |row| verdict_words(row.verdicts));
    let id = format!("ranking-{}", section.slug());
    let table = table.table(id, section.heading(), section.all_rows(), |row| row_kind(row));
    Table { remarks: remarks(section), ..table.with_notes(section.how.iter().cloned()) }
}

/// Why products are marked or not ranked: a sentence for each cause, with the products and blocks that have it.
fn remarks(section: &Section) -> Vec<String> {
    let causes = section.all_rows().flat_map(|row| row.causes.iter().map(move |cause| (&cause.kind, (row, cause))));
    let sentence = |(kind, all): (&String, Vec<(&Row, &Cause)>)| {
        let whose = all.iter().map(|(row, cause)| match cause.blocks.as_slice() {
            [] => row.label.clone(),
            _ => format!("{} ({})", row.label, cause.block_words()),
        });
        let whose = list(&whose.collect::<Vec<_>>());
        let (row, first) = all[0];
        let differs = all.iter().any(|(_, cause)| cause.differs || cause.message != first.message);
        let of = if differs { format!(" ({}, block {})", row.label, first.blocks[0]) } else { String::new() };
        let message = if first.message.is_empty() { String::new() } else { format!(": {}{of}", first.message) };
        format!("{kind}: {whose}{message}.")
    };
    grouped(causes).into_iter().map(sentence).collect()
}

fn add_estimate<'a>(
    table: &mut TableOf<'a, Row>,
    column: Column,
    unit: Unit,
    pick: impl Fn(&Row) -> Option<Estimate> + 'a,
) {
    table.add(column, move |row| estimate_cell(pick(row), unit));
}

/// Adds the column of the rate that the load offers or searches; of streams, whose rate is their sender's, that of the delay.
fn add_rate(table: &mut TableOf<'_, Row>, section: &Section) {
    if section.of_streams() {
        let unit = unit(section);
        let entry = Metric::MessageDelay.entry();
        let column = Column::number(entry.title, unit.name).with_details().help(entry.help);
        return add_estimate(table, column, unit, |row| row.of(Metric::MessageDelay));
    }
    let (name, help) = match (&section.series, &section.kind) {
        (Series::Once, LoadKind::Search { .. }) => ("Capacity", "The highest rate found that meets the objective."),
        (Series::Once, _) => ("Rate", "Successful responses/s."),
        (Series::Rounds(_), _) => ("Rate", "Successful responses/s, of the round in the middle of their rates."),
        _ => ("Most", "The most successful responses/s at any point of the series."),
    };
    let column = Column::number(name, Unit::PER_SECOND.name).with_details_if(section.ranked_by == Metric::Rate);
    add_estimate(table, column.help(help), Unit::PER_SECOND, |row| row.of(Metric::Rate));
}

/// The point at which the curve bends.
fn knee(row: &Row) -> Option<&PointRow> {
    row.points.get(row.knee?)
}

fn add_knee_of_rates(table: &mut TableOf<'_, Row>, time: Unit) {
    let column = Column::number("Knee at", Unit::PER_SECOND.name).help("The offered rate from which p99 climbs.");
    table.add(column, |row| knee(row)?.offered.map(Cell::short));
    for (name, help, metric) in [
        ("p50 there", "Median latency at the knee.", Metric::P50),
        ("p99 there", "99th percentile of latency at the knee.", Metric::P99),
    ] {
        add_estimate(table, Column::number(name, time.name).help(help), time, move |row| knee(row)?.of(metric));
    }
}

fn add_ratios(table: &mut TableOf<'_, Row>) {
    let ratio = |name: &str, order, help: &str| Column::number(name, "ratio").dispensable(order).help(help);
    let help = "Of what the ranks go by: this product over the direct path, the median of ratios within blocks.";
    add_estimate(table, ratio("To direct", 4, help), Unit::NONE, |row| row.ratio_to_baseline);
    add_estimate(table, ratio("To best", 5, "The same over the first in rank."), Unit::NONE, |row| row.ratio_to_best);
}

fn add_search(table: &mut TableOf<'_, Row>) {
    let rate = |name: &str, help: &str| Column::number(name, Unit::PER_SECOND.name).dispensable(3).help(help);
    let column = rate("Met up to", "The highest rate that met the objective in all its trials.");
    add_estimate(table, column, Unit::PER_SECOND, |row| row.search.as_ref()?.met_up_to);
    let column = rate("Failed from", "The lowest rate that failed.");
    add_estimate(table, column, Unit::PER_SECOND, |row| row.search.as_ref()?.failed_from);
    let column = Column::text("Confirmed").help("Searches whose rate met the objective in a trial of full length too.");
    table.add(column, |row| {
        row.search.as_ref().map(|search| Cell::from(format!("{} of {}", search.confirmed, search.of)))
    });
    table.add(Column::text("Limit").help("Who could not do more."), |row| {
        let limits = &row.search.as_ref()?.limits;
        let several = limits.len() > 1;
        let words = limits.iter().map(|(who, n)| if several { format!("{who} ({n})") } else { (*who).into() });
        Some(Cell::from(words.collect::<Vec<String>>().join(", ")))
    });
}

/// The metrics that the table of metrics shows here.
fn add_metrics(table: &mut TableOf<'_, Row>, section: &Section, time: Unit) {
    // At the highest rate the queue is as long as the client waits, and a stream takes as long as its sender likes: such latency says
    // nothing about the product.
    let with_latency = !matches!(section.series, Series::Shares(_)) && !section.of_streams();
    for metric in Metric::ALL.iter().copied() {
        let (entry, latency) = (metric.entry(), metric.entry().quantity == Quantity::Latency);
        let Some(order) = entry.columns.ranking.filter(|_| with_latency || !latency) else { continue };
        let unit = if latency { time } else { entry.quantity.unit(1.0) };
        let column = Column::number(entry.title, unit.name).dispensable(order).help(entry.help);
        let column = column.with_details_if(metric == section.ranked_by);
        add_estimate(table, column, unit, move |row| row.of(metric));
    }
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
