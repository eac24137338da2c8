//! Builds the latency charts: by percentile over all blocks, and for each second.
//! Called by `of_section` in `section`; `weir-published` uses the percentile curves.

use hdrhistogram::Histogram;
use weir_model::load::LoadSecond;
use weir_model::suite::Entry;

use super::timeline::{Timeline, measured, windows};
use super::{note_broken, style};
use crate::charts::axis::{Axis, Scale, rarity};
use crate::charts::{Chart, ChartKind, Dash, Line, Lines, Points};
use crate::run::{Broken, Run, Trial};
use crate::summary::{Metric, Section};
use crate::{hlog, series};
use weir_model::text::{Unit, short};

/// A percentile that rests on fewer samples than this is not trustworthy.
const SAMPLES_BEYOND: f64 = 10.0;

/// The rarest percentile drawn: 99.999 %.
const RAREST: f64 = 5.0;

/// Points of a percentile curve for each factor of ten in rarity.
const POINTS_PER_DECADE: f64 = 40.0;

/// Latency by percentile, from the histograms of all blocks that count, added up.
pub(super) fn by_percentile(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Chart {
    let mut curves: Vec<(Entry, Vec<(f64, f64)>)> = Vec::new();
    for row in section.all_rows() {
        if let Some((histogram, us)) = merged_histogram(run, section, &row.entry, broken) {
            curves.push((row.entry.clone(), percentile_curve(&histogram, us)));
        }
    }
    let least = curves.iter().flat_map(|(_, curve)| curve).map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
    let unit = Unit::for_time(least);
    let lines = curves.iter().map(|(entry, curve)| {
        let (look, dash) = style(run, entry);
        let points = curve.iter().map(|(p, us)| (*p, us / unit.size)).collect();
        Line { name: run.label_of(entry), part: String::new(), colour: look.colour, dash, pieces: vec![points] }
    });
    let alt_text = section.all_rows().filter_map(|row| {
        let (p50, p99) = (row.of(Metric::P50)?.value / unit.size, row.of(Metric::P99)?.value / unit.size);
        Some(format!("{} {} {} at 50 % and {} {} at 99 %", row.label, short(p50), unit.name, short(p99), unit.name))
    });
    Chart {
        name: format!("{}-percentiles", section.slug()),
        title: format!("Latency by percentile: {}", section.heading()),
        subtitle: "Less is better. Each step to the right is ten times as rare.".to_string(),
        alt: format!("Latency over percentile: {}.", alt_text.collect::<Vec<_>>().join("; ")),
        notes: vec![
            "Latency is due to answered. Histograms of all blocks that count, added up; a curve ends where fewer than ten \
             samples lie beyond."
                .to_string(),
            section.how.first().cloned().unwrap_or_default(),
        ],
        kind: ChartKind::Lines(Lines {
            x: Axis { label: "Share of requests answered within".to_string(), unit: String::new(), scale: Scale::Percentile },
            y: Axis { label: "Latency".to_string(), unit: unit.name.to_string(), scale: Scale::Log },
            series: lines.collect(),
            rules: Vec::new(),
        }),
    }
}

/// One entry's histograms of the section added up, and microseconds a value.
pub fn merged_histogram(
    run: &Run,
    section: &Section,
    entry: &Entry,
    broken: &mut Vec<Broken>,
) -> Option<(Histogram<u64>, f64)> {
    let mut sum: Option<(Histogram<u64>, f64)> = None;
    let ranked = section.trials(run).any(|t| t.is_of(entry) && t.counts());
    for trial in measured(run, section).filter(|t| t.is_of(entry) && (t.counts() || !ranked)) {
        let file = format!("{}/latency.hlog", trial.folder);
        match hlog::read(&run.folder.join(&file), "latency") {
            Ok(read) => {
                if let Some(why) = read.broken {
                    note_broken(broken, file.clone(), why);
                }
                match &mut sum {
                    Some((sum, _)) => {
                        if let Err(error) = sum.add(&read.histogram) {
                            note_broken(broken, file, error.to_string());
                        }
                    }
                    None => sum = Some((read.histogram, read.us_per_value)),
                }
            }
            Err(why) => note_broken(broken, file, why),
        }
    }
    sum.filter(|(histogram, _)| !histogram.is_empty())
}

/// (share of requests, microseconds), as far as the samples carry.
pub fn percentile_curve(histogram: &Histogram<u64>, us_per_value: f64) -> Vec<(f64, f64)> {
    let trusted = rarity(1.0 - SAMPLES_BEYOND / histogram.len() as f64);
    let last = (trusted.clamp(0.0, RAREST) * POINTS_PER_DECADE).floor() as usize;
    let point = |i: usize| {
        let p = 1.0 - 10f64.powf(-(i as f64) / POINTS_PER_DECADE);
        // A value of 0 has no place on a log axis; the histogram's own resolution is one.
        let value = histogram.value_at_quantile(p).max(1);
        (p, value as f64 * us_per_value)
    };
    let mut points: Vec<(f64, f64)> = (1..=last).map(point).collect();
    // The first step of rarity is already 5.6 %. Below 1 % a curve drops steeply because of a single fast request.
    let steep = [0.01, 0.02, 0.035].map(|p| (p, histogram.value_at_quantile(p).max(1) as f64 * us_per_value));
    points.splice(0..0, steep);
    points
}

/// The seconds of each window of a trial, with the seconds from the first one's start to its own.
fn seconds_of(run: &Run, trial: &Trial) -> Result<Vec<(f64, Vec<LoadSecond>)>, Broken> {
    let starts = windows(trial).into_iter().map(|(offset, _)| offset);
    Ok(starts.zip(series::load_seconds(run, trial)?).collect())
}

/// p50 and p99 of each second, every block.
pub(super) fn over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Chart {
    let timeline = Timeline::of(run, section);
    let mut lines: Vec<(Entry, [Vec<Points>; 2])> = Vec::new();
    for row in section.all_rows() {
        let mut pieces = [Vec::new(), Vec::new()];
        for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
            let start = timeline.start(trial.measurement.block);
            match seconds_of(run, trial) {
                Ok(windows) => windows.into_iter().for_each(|(offset, seconds)| {
                    let answered: Vec<_> = seconds.iter().filter(|second| second.p50_us > 0.0).collect();
                    let at = |second: u32| start + offset + f64::from(second) + 0.5;
                    pieces[0].push(answered.iter().map(|s| (at(s.second), s.p50_us)).collect::<Vec<_>>());
                    pieces[1].push(answered.iter().map(|s| (at(s.second), s.p99_us)).collect::<Vec<_>>());
                }),
                Err(one) => note_broken(broken, one.file, one.why),
            }
        }
        lines.push((row.entry.clone(), pieces));
    }
    let all = lines.iter().flat_map(|(_, pieces)| pieces.iter().flatten().flatten());
    let unit = Unit::for_time(all.map(|(_, us)| *us).fold(f64::INFINITY, f64::min));
    let scaled = |pieces: &[Vec<(f64, f64)>]| -> Vec<Vec<(f64, f64)>> {
        pieces.iter().map(|piece| piece.iter().map(|(x, us)| (*x, us / unit.size)).collect()).collect()
    };
    let mut drawn = Vec::new();
    for (part, index) in [("p99", 1), ("p50", 0)] {
        for (entry, pieces) in &lines {
            let (look, dash) = style(run, entry);
            drawn.push(Line {
                name: run.label_of(entry),
                part: part.to_string(),
                colour: look.colour,
                dash: if index == 0 { Dash::Dotted } else { dash },
                pieces: scaled(&pieces[index]),
            });
        }
    }
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
            x: Axis { label: "Time".to_string(), unit: "s".to_string(), scale: Scale::Linear },
            y: Axis { label: "Latency".to_string(), unit: unit.name.to_string(), scale: Scale::Log },
            series: drawn,
            rules: timeline.rules(),
        }),
    }
}
