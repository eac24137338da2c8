//! Builds the bars of a section: how many requests per second each product carries, and what a response costs in CPU time
//! and memory. Called by `of_section` in `section`; `overview` uses the bars and their words.

use weir_model::suite::{LoadKind, Series};
use weir_model::text::{Unit, short};
use weir_stats::Estimate;

use super::style;
use crate::charts::axis::Axis;
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::palette::lighter;
use crate::run::Run;
use crate::summary::{Metric, Row, Section, Standing};

/// How much paler the kernel's part of the CPU time is.
const SYSTEM: f64 = 0.5;

/// Right answers a second of each entry.
pub(super) fn rates(run: &Run, section: &Section) -> Chart {
    let unit = Unit::PER_SECOND;
    let group = |row: &Row| {
        let bars = row.of(Metric::Rate).iter().map(|rate| bar(run, row, rate, unit)).collect();
        BarGroup { label: label(row), baseline: row.is_baseline(), bars }
    };
    let what = match (&section.series, &section.kind) {
        (Series::Rounds(_), _) => "Rate of the middle round",
        (Series::Shares(_) | Series::Connections(_), _) => "Most carried at any point",
        (Series::Once, LoadKind::Search { .. }) => "Capacity under the objective",
        (Series::Once, LoadKind::Count { .. }) => "Rate",
        (Series::Once, _) if section.open => "Rate achieved",
        (Series::Once, _) => "Capacity",
    };
    Chart {
        name: format!("{}-rate", section.slug()),
        title: format!("{what}: {}", section.heading()),
        subtitle: subtitle(section),
        alt: format!("Bars of right answers a second: {}.", alt_text(section, |row| row.of(Metric::Rate), unit)),
        notes: section.how_drawn.clone(),
        kind: one_series(Axis::of_metric(Metric::Rate, unit), section.all_rows().map(group).collect()),
    }
}

/// CPU time of the proxy an answer, user and system.
pub(super) fn proxy_cpu(run: &Run, section: &Section) -> Chart {
    let group = |row: &Row| {
        let total = bar_text(row, &row.of(Metric::Cpu)?, Unit::MICROS_PER_REQUEST);
        let colour = style(run, &row.entry).colour;
        let paler = lighter(&colour, SYSTEM);
        let parts = [(row.of(Metric::CpuUser)?.value, colour), (row.of(Metric::CpuSystem)?.value, paler)];
        let parts = parts.into_iter().enumerate();
        let bars = parts.map(|(series, (value, colour))| stacked_bar(series, value, colour, &total)).collect();
        Some(BarGroup { label: label(row), baseline: false, bars })
    };
    let alt = alt_text(section, |row| row.of(Metric::Cpu), Unit::MICROS_PER_REQUEST);
    Chart {
        name: format!("{}-cost", section.slug()),
        title: format!("CPU time of the proxy for one answer: {}", section.heading()),
        subtitle: "Less is better. Dark is user mode, pale is the kernel.".to_string(),
        alt: format!("Stacked bars of CPU microseconds an answer: {alt}."),
        notes: notes(
            section,
            "CPU time of the proxy's process tree in the window, over the answers it gave in the window. Medians over blocks; the \
             numbers at the ends are medians of the sums.",
        ),
        kind: ChartKind::Bars(Bars {
            value: Axis::of_metric(Metric::Cpu, Unit::MICROS_PER_REQUEST),
            series: [("user", "#57606a"), ("system", "#abb0b4")].map(BarSeries::from).into(),
            groups: section.rows.iter().filter_map(group).collect(),
            arrangement: Arrangement::Stacked,
        }),
    }
}

/// CPU time of all three roles an answer.
pub(super) fn roles_cpu(section: &Section) -> Chart {
    let roles = [("proxy", "#0072b2"), ("client", "#8c959f"), ("origin", "#cdd3d9")];
    let of = |row: &Row| [Metric::Cpu, Metric::ClientCpu, Metric::OriginCpu].map(|metric| row.of(metric));
    let group = |row: &Row| {
        let total = short(of(row).iter().flatten().map(|estimate| estimate.value).sum());
        let parts = of(row).into_iter().zip(roles).enumerate();
        let bars = parts.filter_map(|(series, (estimate, (_, colour)))| {
            Some(stacked_bar(series, estimate?.value, colour.to_string(), &total))
        });
        BarGroup { label: label(row), baseline: false, bars: bars.collect() }
    };
    let rows = section.all_rows().filter(|row| of(row).iter().any(Option::is_some));
    let either = |row: &Row| row.of(Metric::Cpu).or(row.of(Metric::ClientCpu));
    let alt = alt_text(section, either, Unit::MICROS_PER_REQUEST);
    Chart {
        name: format!("{}-roles", section.slug()),
        title: format!("CPU time of all roles for one answer: {}", section.heading()),
        subtitle: "Less is better. Client and origin are weir's own, and do the same for every product.".to_string(),
        alt: format!("Stacked bars of CPU microseconds an answer of proxy, client and origin: {alt}."),
        notes: notes(
            section,
            "CPU time of a role's processes in the window, user and system, by the answers that the client got in the window. \
             Medians over blocks; the numbers at the ends are sums of medians.",
        ),
        kind: ChartKind::Bars(Bars {
            value: Axis::linear("CPU time", Unit::MICROS_PER_REQUEST.name),
            series: roles.map(BarSeries::from).into(),
            groups: rows.map(group).collect(),
            arrangement: Arrangement::Stacked,
        }),
    }
}

/// Memory of the proxy by connection.
pub(super) fn memory(run: &Run, section: &Section) -> Chart {
    let unit = Unit { name: "KiB/connection", ..Unit::KIBIBYTES };
    let by_connection = |row: &Row| row.memory.and_then(|memory| memory.by_connection);
    let group = |row: &Row| {
        let bars = vec![bar(run, row, &by_connection(row)?, unit)];
        Some(BarGroup { label: label(row), baseline: false, bars })
    };
    let proportional = section.rows.iter().filter_map(|row| row.memory).all(|memory| memory.proportional);
    let measure = if proportional {
        "Proportional sets: a page that several processes share is counted once."
    } else {
        "Resident sets: a page that several processes share is counted in each of them."
    };
    let what =
        format!("{measure} The largest in the window by the client's connections, the product's own needs included.");
    Chart {
        name: format!("{}-memory-connection", section.slug()),
        title: format!("Memory of the proxy by connection: {}", section.heading()),
        subtitle: "Less is better.".to_string(),
        alt: format!("Bars of memory by connection: {}.", alt_text(section, by_connection, Unit::KIBIBYTES)),
        notes: notes(section, &what),
        kind: one_series(Axis::linear("Memory", unit.name), section.rows.iter().filter_map(group).collect()),
    }
}

/// What is measured, and under which load.
fn notes(section: &Section, what: &str) -> Vec<String> {
    std::iter::once(what.to_string()).chain(section.how.first().cloned()).collect()
}

/// Bars of one series, which needs no legend.
pub(super) fn one_series(value: Axis, groups: Vec<BarGroup>) -> ChartKind {
    ChartKind::Bars(Bars { value, series: vec![BarSeries::from(("", ""))], groups, arrangement: Arrangement::Below })
}

/// A product's estimate as a bar of the first series.
pub(super) fn bar(run: &Run, row: &Standing, estimate: &Estimate, unit: Unit) -> Bar {
    let bar = Bar::of(estimate, unit.size, style(run, &row.entry).colour);
    Bar { hollow: !row.is_baseline() && row.rank.is_none(), text: bar_text(row, estimate, unit), ..bar }
}

/// The number at the end of a bar; the whisker shows the interval.
fn bar_text(row: &Standing, estimate: &Estimate, unit: Unit) -> String {
    let value = short(estimate.value / unit.size);
    let not_ranked = row.rank.is_none() && row.verdicts.invalid > 0 && row.verdicts.valid + row.verdicts.suspect == 0;
    if not_ranked { format!("{value} invalid, not ranked") } else { value }
}

fn stacked_bar(series: usize, value: f64, colour: String, text: &str) -> Bar {
    Bar { series, value, interval: None, colour, hollow: false, text: text.to_string() }
}

fn label(row: &Row) -> String {
    match row.rank {
        None if row.of(Metric::Rate).is_none() => format!("{} (failed)", row.label),
        _ if row.suspect() => format!("{} *", row.label),
        _ => row.label.clone(),
    }
}

/// What the marks in this chart mean.
pub(super) fn subtitle(section: &Section) -> String {
    let outlined = section.rows.iter().any(|row| row.rank.is_none() && row.of(Metric::Rate).is_some());
    let better = if section.ranked_by.higher_is_better() { "More is better." } else { "Less is better." };
    let parts = [
        (!section.open, better),
        (section.blocks > 1, "Whiskers are the interval of the median."),
        (section.all_rows().any(|row| row.suspect()), "* suspect, see its remark."),
        (outlined, "Outlined: invalid, not ranked."),
    ];
    parts.iter().filter(|(true_here, _)| *true_here).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

/// "haproxy 45,100 requests/s, nginx 40,000 requests/s".
pub(super) fn alt_text(section: &Section, of: impl Fn(&Row) -> Option<Estimate>, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let estimate = of(row)?;
        Some(format!("{} {} {}", row.label, short(estimate.value / unit.size), unit.name))
    });
    words.collect::<Vec<_>>().join(", ")
}
