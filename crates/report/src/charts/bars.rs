//! Bars: who carries how much, and at what cost.

use weir_stats::Estimate;

use super::style;
use crate::chart::axis::{Axis, Scale};
use crate::chart::{Bar, BarGroup, BarSeries, Bars, Chart, Kind};
use crate::number::{Unit, short};
use crate::palette::lighter;
use crate::run::Run;
use crate::summary::{Metric, Row, Section, Summary};

/// How much paler the kernel's part of the CPU time is.
const SYSTEM: f64 = 0.5;

/// Right answers a second of each entry.
pub(super) fn capacity(run: &Run, section: &Section) -> Chart {
    let groups = section.baseline.iter().map(|row| (row, true)).chain(section.rows.iter().map(|row| (row, false)));
    let groups: Vec<BarGroup> = groups
        .map(|(row, baseline)| BarGroup {
            label: label(row),
            baseline,
            bars: row.rate.iter().map(|rate| bar(run, row, rate, 0, baseline)).collect(),
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
    let what = if section.open { "Rate achieved" } else { "Capacity" };
    Chart {
        name: format!("{}-rate", section.slug()),
        title: format!("{what}: {}", section.heading()),
        subtitle: subtitle(section),
        alt: format!("Bars of right answers a second: {}.", spoken(section, |row| row.rate, Unit::PER_SECOND)),
        notes: section.how_drawn.clone(),
        kind: Kind::Bars(bars),
    }
}

/// CPU time of the proxy an answer, user and system.
pub(super) fn cost(run: &Run, section: &Section) -> Chart {
    let with_cost =
        section.rows.iter().filter_map(|row| Some((row, row.cpu_us?, row.cpu_user_us?, row.cpu_system_us?)));
    let groups: Vec<BarGroup> = with_cost
        .map(|(row, total, user, system)| {
            let colour = style(run, &row.entry).0.colour;
            let paler = lighter(&colour, SYSTEM);
            let text = with_interval(&total, 1.0, row);
            let bars = [(0, user.value, colour), (1, system.value, paler)].map(|(series, value, colour)| Bar {
                series,
                value,
                interval: None,
                colour,
                hollow: false,
                text: text.clone(),
            });
            BarGroup { label: label(row), baseline: false, bars: bars.into() }
        })
        .collect();
    let unit = Unit::MICROS_PER_REQUEST;
    let series = [("user", "#57606a"), ("system", "#abb0b4")]
        .map(|(name, colour)| BarSeries { name: name.to_string(), colour: colour.to_string() });
    let bars = Bars {
        value: Axis { label: "CPU time of the proxy".to_string(), unit: unit.name.to_string(), scale: Scale::Linear },
        series: series.into(),
        groups,
        stacked: true,
    };
    let what = "CPU time of the proxy's process tree in the window, over the answers it gave in the window. Medians over \
                blocks; the numbers at the ends are medians of the sums.";
    let notes = vec![what.to_string(), section.how.first().cloned().unwrap_or_default()];
    Chart {
        name: format!("{}-cost", section.slug()),
        title: format!("Cost: {}", section.heading()),
        subtitle: "Less is better. Dark is user mode, pale is the kernel.".to_string(),
        alt: format!("Stacked bars of CPU microseconds an answer: {}.", spoken(section, |row| row.cpu_us, unit)),
        notes,
        kind: Kind::Bars(bars),
    }
}

/// Every section of the headline's kind, a group of bars each; with one section its capacity.
pub(super) fn overview(run: &Run, summary: &Summary) -> Option<Chart> {
    let headline = crate::summary::headline(summary)?;
    let sections: Vec<&Section> = summary.sections.iter().filter(|s| s.ranked_by == headline.ranked_by).collect();
    if sections.len() < 2 && headline.ranked_by == Metric::Rate {
        return Some(Chart { name: "overview".to_string(), ..capacity(run, headline) });
    }
    let (metric, unit, label) = match headline.ranked_by {
        Metric::Rate => (Metric::Rate, Unit::PER_SECOND, "Right answers a second"),
        Metric::P99 => (Metric::P99, Unit::MILLIS, "99th percentile of latency"),
    };
    let entries: Vec<_> = run.plan.entries.iter().collect();
    let series =
        entries.iter().map(|entry| BarSeries { name: run.label_of(entry), colour: style(run, entry).0.colour });
    let groups = sections.iter().map(|section| {
        let bars = entries.iter().enumerate().filter_map(|(index, entry)| {
            let row = section.all_rows().find(|row| row.entry == **entry)?;
            let estimate = row.of(metric)?;
            let baseline = section.baseline.iter().any(|row| row.entry == **entry);
            let mut bar = bar(run, row, estimate, index, baseline);
            bar.value /= unit.size;
            bar.interval = bar.interval.map(|(low, high)| (low / unit.size, high / unit.size));
            bar.text = with_interval(estimate, unit.size, row);
            Some(bar)
        });
        BarGroup { label: format!("{} {}", section.workload, section.load), baseline: false, bars: bars.collect() }
    });
    let bars = Bars {
        value: Axis { label: label.to_string(), unit: unit.name.to_string(), scale: Scale::Linear },
        series: series.collect(),
        groups: groups.collect(),
        stacked: false,
    };
    let spoken: Vec<String> = sections
        .iter()
        .map(|section| {
            let of = |row: &Row| row.of(metric).copied();
            format!("{}: {}", section.slug_words(), spoken(section, of, unit))
        })
        .collect();
    Some(Chart {
        name: "overview".to_string(),
        title: match metric {
            Metric::Rate => "Right answers a second: every workload at its most".to_string(),
            Metric::P99 => "99th percentile of latency: every workload".to_string(),
        },
        subtitle: subtitle(headline),
        alt: format!("Bars. {}.", spoken.join(". ")),
        notes: headline.how_drawn.iter().skip(1).cloned().collect(),
        kind: Kind::Bars(bars),
    })
}

fn bar(run: &Run, row: &Row, estimate: &Estimate, series: usize, baseline: bool) -> Bar {
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
fn with_interval(estimate: &Estimate, size: f64, row: &Row) -> String {
    let value = short(estimate.value / size);
    let not_ranked = row.rank.is_none() && row.verdicts.invalid > 0 && row.verdicts.valid + row.verdicts.suspect == 0;
    if not_ranked { format!("{value} invalid, not ranked") } else { value }
}

fn label(row: &Row) -> String {
    let mark = if row.suspect() { " *" } else { "" };
    match row.rank {
        None if row.rate.is_none() => format!("{} (failed)", row.label),
        _ => format!("{}{mark}", row.label),
    }
}

/// What the marks in this chart mean.
fn subtitle(section: &Section) -> String {
    let mut parts = vec![match section.ranked_by {
        Metric::Rate => "More is better.".to_string(),
        Metric::P99 => "Less is better.".to_string(),
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
    if section.rows.iter().any(|row| row.rank.is_none() && row.rate.is_some()) {
        parts.push("Outlined: invalid, not ranked.".to_string());
    }
    parts.join(" ")
}

/// "haproxy 45,100 requests/s, nginx 40,000 requests/s".
fn spoken(section: &Section, of: impl Fn(&Row) -> Option<Estimate>, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let estimate = of(row)?;
        Some(format!("{} {} {}", row.label, short(estimate.value / unit.size), unit.name))
    });
    words.collect::<Vec<_>>().join(", ")
}
