//! Builds the bars that show how many requests per second each product carries. Called by `of_section` in `section`.

use weir_model::suite::{LoadKind, Series};
use weir_stats::Estimate;

use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::run::Run;
use crate::summary::{Metric, Row, Section};
use weir_model::text::{Unit, short};

/// Right answers a second of each entry.
pub(super) fn bars(run: &Run, section: &Section) -> Chart {
    let groups = section.baseline.iter().map(|row| (row, true)).chain(section.rows.iter().map(|row| (row, false)));
    let groups: Vec<BarGroup> = groups
        .map(|(row, baseline)| BarGroup {
            label: label(row),
            baseline,
            bars: row.of(Metric::Rate).iter().map(|rate| bar(run, row, rate, 0, baseline)).collect(),
        })
        .collect();
    let bars = Bars {
        value: Axis {
            label: "Right answers a second".to_string(),
            unit: "requests/s".to_string(),
            scale: Scale::Linear,
        },
        series: vec![BarSeries { name: "rate".to_string(), colour: String::new() }],
        groups,
        stacked: false,
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
        alt: format!(
            "Bars of right answers a second: {}.",
            alt_text(section, |row| row.of(Metric::Rate), Unit::PER_SECOND)
        ),
        notes: section.how_drawn.clone(),
        kind: ChartKind::Bars(bars),
    }
}

pub(super) fn bar(run: &Run, row: &Row, estimate: &Estimate, series: usize, baseline: bool) -> Bar {
    Bar {
        series,
        value: estimate.value,
        interval: (estimate.n > 1).then_some((estimate.low, estimate.high)),
        colour: style(run, &row.entry).0.colour,
        hollow: !baseline && row.rank.is_none(),
        text: with_interval(estimate, 1.0, row),
    }
}

/// The number at the end of a bar; the whisker shows the interval.
pub(super) fn with_interval(estimate: &Estimate, size: f64, row: &Row) -> String {
    let value = short(estimate.value / size);
    let not_ranked = row.rank.is_none() && row.verdicts.invalid > 0 && row.verdicts.valid + row.verdicts.suspect == 0;
    if not_ranked { format!("{value} invalid, not ranked") } else { value }
}

pub(super) fn label(row: &Row) -> String {
    let mark = if row.suspect() { " *" } else { "" };
    match row.rank {
        None if row.of(Metric::Rate).is_none() => format!("{} (failed)", row.label),
        _ => format!("{}{mark}", row.label),
    }
}

/// What the marks in this chart mean.
pub(super) fn subtitle(section: &Section) -> String {
    let mut parts = vec![match section.ranked_by {
        Metric::Rate => "More is better.".to_string(),
        _ => "Less is better.".to_string(),
    }];
    if section.open {
        parts = Vec::new();
    }
    if section.blocks > 1 {
        parts.push("Whiskers are the interval of the median.".to_string());
    }
    if section.all_rows().any(Row::suspect) {
        parts.push("* suspect, see its remark.".to_string());
    }
    if section.rows.iter().any(|row| row.rank.is_none() && row.of(Metric::Rate).is_some()) {
        parts.push("Outlined: invalid, not ranked.".to_string());
    }
    parts.join(" ")
}

/// "haproxy 45,100 requests/s, nginx 40,000 requests/s".
pub(super) fn alt_text(section: &Section, of: impl Fn(&Row) -> Option<Estimate>, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let estimate = of(row)?;
        Some(format!("{} {} {}", row.label, short(estimate.value / unit.size), unit.name))
    });
    words.collect::<Vec<_>>().join(", ")
}
