//! Builds the latency charts: by percentile over all blocks, and for each second.
//! Called by `of_section` in `section`; `weir-published` uses the percentile curves.

use weir_model::suite::Entry;
use weir_model::text::{Unit, short};

use super::timeline::{Timeline, measured, windows};
use super::{note_broken, style};
use crate::charts::axis::{Axis, Scale, rarity};
use crate::charts::{Chart, ChartKind, Dash, Line, Lines, Points};
use crate::hlog::{self, Merged};
use crate::palette::Style;
use crate::run::{Broken, Run, displayed};
use crate::series;
use crate::summary::{Metric, Row, Section};

/// A percentile that rests on fewer samples than this is not trustworthy.
const SAMPLES_BEYOND: f64 = 10.0;

/// The rarest percentile drawn: 99.999 %.
const RAREST: f64 = 5.0;

/// Points of a percentile curve for each factor of ten in rarity.
const POINTS_PER_DECADE: f64 = 40.0;

/// How lines of merged histograms were obtained.
pub const PERCENTILES_NOTE: &str = "Latency is due to answered. Histograms of all blocks that count, added up; a curve ends where \
                                    fewer than ten samples lie beyond.";

/// Latency by percentile, from the histograms of all blocks that count, added up.
pub(super) fn by_percentile(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Chart {
    let mut curves: Vec<(&Row, Points)> = Vec::new();
    for row in section.all_rows() {
        let curve = percentile_curve(run, section, &row.entry, broken);
        curves.extend(curve.map(|curve| (row, curve)));
    }
    let least = curves.iter().flat_map(|(_, curve)| curve).map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
    let unit = Unit::for_time(least);
    let lines = curves.iter().map(|(row, curve)| line(run, row, "", std::slice::from_ref(curve), unit));
    let alt_text = section.all_rows().filter_map(|row| {
        let shown = |metric| Some(format!("{} {}", short(row.of(metric)?.value / unit.size), unit.name));
        Some(format!("{} {} at 50 % and {} at 99 %", row.label, shown(Metric::P50)?, shown(Metric::P99)?))
    });
    Chart {
        name: format!("{}-percentiles", section.slug()),
        title: format!("Latency by percentile: {}", section.heading()),
        subtitle: "Less is better. Each step to the right is ten times as rare.".to_string(),
        alt: format!("Latency over percentile: {}.", alt_text.collect::<Vec<_>>().join("; ")),
        notes: vec![PERCENTILES_NOTE.to_string(), section.how.first().cloned().unwrap_or_default()],
        kind: ChartKind::Lines(Lines {
            x: Axis::percentiles(),
            y: Axis { scale: Scale::Log, ..Axis::linear("Latency", unit.name) },
            series: lines.collect(),
            rules: Vec::new(),
        }),
    }
}

/// Microseconds of a product as a line of its own colour.
fn line(run: &Run, row: &Row, part: &str, pieces: &[Points], unit: Unit) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let scaled = |piece: &Points| piece.iter().map(|(x, us)| (*x, us / unit.size)).collect();
    let (name, part) = (row.label.clone(), part.to_string());
    Line { name, part, colour, dash, pieces: pieces.iter().map(scaled).collect() }
}

/// One entry's histograms of the section added up: (share of requests, microseconds), as far as the samples carry.
/// `None` where there is no sample.
pub fn percentile_curve(run: &Run, section: &Section, entry: &Entry, broken: &mut Vec<Broken>) -> Option<Points> {
    let mut sum: Option<Merged> = None;
    for trial in displayed(section.trials(run).filter(|trial| trial.is_of(entry))) {
        let file = format!("{}/latency.hlog", trial.folder);
        let read = hlog::read(&run.folder.join(&file), "latency").and_then(|read| {
            let cut_off = read.broken.clone();
            match &mut sum {
                Some(sum) => sum.histogram.add(&read.histogram).map_err(|error| error.to_string())?,
                None => sum = Some(read),
            }
            cut_off.map_or(Ok(()), Err)
        });
        if let Err(why) = read {
            note_broken(broken, Broken { file, why });
        }
    }
    sum.filter(|sum| !sum.histogram.is_empty()).map(|sum| curve(&sum))
}

fn curve(merged: &Merged) -> Points {
    let trusted = rarity(1.0 - SAMPLES_BEYOND / merged.histogram.len() as f64);
    let last = (trusted.clamp(0.0, RAREST) * POINTS_PER_DECADE).floor() as usize;
    // The first step of rarity is already 5.6 %. Below 1 % a curve drops steeply because of a single fast request.
    let steep = [0.01, 0.02, 0.035].into_iter();
    let shares = steep.chain((1..=last).map(|i| 1.0 - 10f64.powf(-(i as f64) / POINTS_PER_DECADE)));
    // A value of 0 has no place on a log axis; the histogram's own resolution is one.
    let us = |p: f64| merged.histogram.value_at_quantile(p).max(1) as f64 * merged.us_per_value;
    shares.map(|p| (p, us(p))).collect()
}

/// p50 and p99 of each second, every block.
pub(super) fn over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Chart {
    let timeline = Timeline::of(run, section);
    let mut lines: Vec<(&Row, [Vec<Points>; 2])> = Vec::new();
    for row in section.all_rows() {
        let mut pieces = [Vec::new(), Vec::new()];
        for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
            let start = timeline.start(trial.measurement.block);
            match series::load_seconds(run, trial) {
                Ok(all) => windows(trial).into_iter().zip(all).for_each(|((offset, _), seconds)| {
                    let answered: Vec<_> = seconds.iter().filter(|second| second.p50_us > 0.0).collect();
                    let at = |second: u32| start + offset + f64::from(second) + 0.5;
                    pieces[0].push(answered.iter().map(|s| (at(s.second), s.p50_us)).collect());
                    pieces[1].push(answered.iter().map(|s| (at(s.second), s.p99_us)).collect());
                }),
                Err(one) => note_broken(broken, one),
            }
        }
        lines.push((row, pieces));
    }
    let all = lines.iter().flat_map(|(_, pieces)| pieces.iter().flatten().flatten());
    let unit = Unit::for_time(all.map(|(_, us)| *us).fold(f64::INFINITY, f64::min));
    let p99 = lines.iter().map(|(row, [_, p99])| line(run, row, "p99", p99, unit));
    let p50 = lines.iter().map(|(row, [p50, _])| Line { dash: Dash::Dotted, ..line(run, row, "p50", p50, unit) });
    Chart {
        name: format!("{}-latency-time", section.slug()),
        title: format!("Latency over time: {}", section.heading()),
        subtitle: "Less is better. The upper line of a colour is p99 of each second, the dotted one p50.".to_string(),
        alt: "Median and 99th percentile of latency, second by second, for every product and block.".to_string(),
        notes: vec![
            timeline.words().to_string(),
            "Each point is of the requests answered in that second. Every trial is drawn, invalid ones too."
                .to_string(),
        ],
        kind: ChartKind::Lines(Lines {
            x: Axis::time(),
            y: Axis { scale: Scale::Log, ..Axis::linear("Latency", unit.name) },
            series: p99.chain(p50).collect(),
            rules: timeline.rules(),
        }),
    }
}
