//! Charts over time and by percentile: latency, CPU, memory, and what the parts of products reported. Blocks are joined end to end on
//! one axis, so that a block that went wrong is visible and not averaged away.

use std::collections::BTreeMap;

use weir_model::load::LoadResult;
use weir_model::record::{ResourceSecond, Role};
use weir_model::suite::Entry;
use weir_model::text::{Unit, short, unique};

use super::{note_broken, style};
use crate::charts::axis::{Axis, Scale, rarity};
use crate::charts::{Chart, ChartKind, Dash, Line, Points};
use crate::palette::{Style, lighter};
use crate::run::{Broken, Run, Trial, displayed};
use crate::series::{self, Merged, MonitorSecond};
use crate::summary::{Metric, Row, Section};

/// The second at which each block begins on the joined axis.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    starts: BTreeMap<u32, f64>,
    /// Times at which faults begin and end, and at which routes change.
    marks: Vec<(f64, String)>,
}

impl Timeline {
    /// Long enough for the longest window of each block.
    pub fn of(run: &Run, section: &Section) -> Timeline {
        let mut lengths: BTreeMap<u32, f64> = BTreeMap::new();
        for trial in measured(run, section) {
            let ends = windows(trial).into_iter().map(|(start, load)| start + load.window_s);
            let window = ends.fold(0.0, f64::max);
            let longest = lengths.entry(trial.measurement.block).or_default();
            *longest = longest.max(window);
        }
        let mut start = 0.0;
        let starts = lengths.into_iter().map(|(block, length)| {
            let own = start;
            start += length.ceil().max(1.0);
            (block, own)
        });
        let mut timeline = Timeline { starts: starts.collect(), marks: Vec::new() };
        timeline.marks = timeline.marks_of(run, section);
        timeline
    }

    /// Faults and changes of the first trial of each block that has some: the suite plans the same for all, and the direct path has none.
    fn marks_of(&self, run: &Run, section: &Section) -> Vec<(f64, String)> {
        let mut marks = Vec::new();
        for (block, start) in &self.starts {
            let of_block = || measured(run, section).map(|trial| &trial.measurement).filter(|m| m.block == *block);
            let changes = of_block().find_map(|measurement| measurement.changes.as_ref());
            let changes = changes.into_iter().flat_map(|changes| changes.began_s.iter().enumerate());
            marks.extend(changes.map(|(nth, began)| (start + began, format!("#{}", nth + 1))));
            let faults = of_block().map(|measurement| &measurement.faults).find(|faults| !faults.is_empty());
            for fault in faults.into_iter().flatten() {
                marks.push((start + fault.began_s, format!("{} {}", fault.what.as_str(), fault.part)));
                marks.push((start + fault.ended_s, "over".to_owned()));
            }
        }
        marks
    }

    /// Where `block` begins, seconds.
    pub fn start(&self, block: u32) -> f64 {
        self.starts.get(&block).copied().unwrap_or(0.0)
    }

    /// Rules where blocks begin, if there are several, where faults begin and end, and where routes change.
    pub fn rules(&self) -> Vec<(f64, String)> {
        let blocks = self.starts.iter().filter(|_| self.starts.len() > 1);
        let blocks = blocks.map(|(block, start)| (*start, format!("block {block}")));
        blocks.chain(self.marks.iter().cloned()).collect()
    }

    /// A sentence for the notes.
    pub fn words(&self) -> &'static str {
        if self.starts.len() < 2 {
            "Seconds since the measured window began."
        } else {
            "The measured windows of all blocks, joined end to end; what lies between them is not drawn."
        }
    }
}

/// The section's trials that have numbers, invalid ones too: they are evidence.
pub(super) fn measured<'a>(run: &'a Run, section: &'a Section) -> impl Iterator<Item = &'a Trial> {
    section.trials(run).filter(|trial| trial.measurement.load.is_some())
}

/// The measured windows of a trial, each with the seconds from the first one's start to its own.
pub(super) fn windows(trial: &Trial) -> Vec<(f64, &LoadResult)> {
    let all = trial.measurement.windows();
    let first = all.first().map_or(0, |load| load.window_start_ms);
    all.into_iter().map(|load| (load.window_start_ms.saturating_sub(first) as f64 / 1_000.0, load)).collect()
}

/// Seconds between two rows of one window, at most.
const LONGEST_STEP: f64 = 2.5;

/// The pieces of a line of rows of several windows: it ends where two windows of a series are separated in time.
pub(super) fn split_at_gaps(points: &Points) -> impl Iterator<Item = Points> {
    points.chunk_by(|a, b| b.0 - a.0 < LONGEST_STEP).map(<[_]>::to_vec)
}

/// The rows of the measured windows, each at the middle of its second, in seconds since the first window began.
pub fn placed(trial: &Trial, rows: Vec<ResourceSecond>) -> Vec<(f64, ResourceSecond)> {
    let windows = windows(trial);
    let Some(first) = windows.first().map(|(_, load)| load.window_start_ms) else { return Vec::new() };
    let placed = rows.into_iter().map(|row| {
        let end = (row.time_ms as f64 - first as f64) / 1_000.0;
        (end - row.length_s / 2.0, row)
    });
    let inside = |at: f64| windows.iter().any(|(start, load)| at >= *start && at <= start + load.window_s);
    placed.filter(|(at, _)| inside(*at)).collect()
}

/// A percentile that rests on fewer samples than this is not trustworthy.
const SAMPLES_BEYOND: f64 = 10.0;

/// The rarest percentile drawn: 99.999 %.
const RAREST: f64 = 5.0;

/// Values of histograms are nanoseconds.
const NANOS_IN_US: f64 = 1e3;

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
        kind: ChartKind::lines(
            Axis::percentiles(),
            Axis { scale: Scale::Log, ..Axis::linear("Latency", unit.name) },
            lines.collect(),
            Vec::new(),
        ),
    }
}

/// Microseconds of a product as a line of its own colour.
fn line(run: &Run, row: &Row, part: &str, pieces: &[Points], unit: Unit) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let scaled = |piece: &Points| piece.iter().map(|(x, us)| (*x, us / unit.size)).collect();
    let (name, part) = (row.label.clone(), part.to_string());
    Line { name, part, colour, dash, pieces: pieces.iter().map(scaled).collect(), ..Line::default() }
}

/// One entry's histograms of the section added up: (share of requests, microseconds), as far as the samples carry.
/// `None` where there is no sample.
pub fn percentile_curve(run: &Run, section: &Section, entry: &Entry, broken: &mut Vec<Broken>) -> Option<Points> {
    let mut sum: Option<Merged> = None;
    for trial in displayed(section.trials(run).filter(|trial| trial.is_of(entry))) {
        let file = format!("{}/latency.hlog", trial.folder);
        let read = series::histogram(&run.folder.join(&file), "latency").and_then(|read| {
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
    let us = |p: f64| merged.histogram.value_at_quantile(p).max(1) as f64 / NANOS_IN_US;
    shares.map(|p| (p, us(p))).collect()
}

/// p50 and p99 of each second, every block.
pub(super) fn latency_over_time(run: &Run, section: &Section) -> Chart {
    let timeline = Timeline::of(run, section);
    let mut lines: Vec<(&Row, [Vec<Points>; 2])> = Vec::new();
    for row in section.all_rows() {
        let mut pieces = [Vec::new(), Vec::new()];
        for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
            let start = timeline.start(trial.measurement.block);
            for (offset, load) in windows(trial) {
                let answered = || load.series.iter().filter(|second| second.p50_us > 0.0);
                let at = |second: u32| start + offset + f64::from(second) + 0.5;
                pieces[0].push(answered().map(|s| (at(s.second), s.p50_us)).collect());
                pieces[1].push(answered().map(|s| (at(s.second), s.p99_us)).collect());
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
        kind: ChartKind::lines(
            Axis::time(),
            Axis { scale: Scale::Log, ..Axis::linear("Latency", unit.name) },
            p99.chain(p50).collect(),
            timeline.rules(),
        ),
    }
}

/// One of the two quantities drawn.
struct Quantity {
    name: &'static str,
    stem: &'static str,
    unit: Unit,
    of: fn(&ResourceSecond) -> Option<f64>,
    note: &'static str,
}

const QUANTITIES: [Quantity; 2] = [
    Quantity {
        name: "CPU",
        stem: "cpu",
        unit: Unit::CORES,
        of: |row| Some(row.cpu_user? + row.cpu_system?),
        note: "User and system time of the role's process tree, in cores. In an open load the client stays awake for the last \
               50 µs before each due time, and yields to others meanwhile: that is in its CPU.",
    },
    Quantity {
        name: "Memory",
        stem: "memory",
        unit: Unit::MEBIBYTES,
        of: |row| row.rss_bytes.map(|bytes| bytes as f64),
        note: "Resident set of the role's process tree; a page that several processes share is counted in each.",
    },
];

/// The seconds of one trial: whose it is, its block, and each row with its place in the window.
type Seconds<'a> = (&'a Row, u32, Vec<(f64, ResourceSecond)>);

/// CPU and memory of the proxy, the client and the origin, each with its role.
pub(super) fn resources_over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Vec<(Role, Chart)> {
    let timeline = Timeline::of(run, section);
    let mut trials: Vec<Seconds<'_>> = Vec::new();
    for row in section.all_rows() {
        for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
            match series::resource_seconds(run, trial) {
                Ok(rows) => trials.push((row, trial.measurement.block, placed(trial, rows))),
                Err(one) => note_broken(broken, one),
            }
        }
    }
    let roles = [Role::Proxy, Role::Client, Role::Origin].into_iter();
    let all = roles.flat_map(|role| QUANTITIES.iter().map(move |quantity| (role, quantity)));
    all.map(|(role, quantity)| {
        let lines = section.all_rows().map(|row| resource_line(run, row, role, quantity, &trials, &timeline));
        let lines = lines.filter(|line| !line.pieces.is_empty()).collect();
        (role, resource_chart(section, role, quantity, lines, &timeline))
    })
    .collect()
}

fn resource_line(
    run: &Run,
    row: &Row,
    role: Role,
    quantity: &Quantity,
    trials: &[Seconds<'_>],
    timeline: &Timeline,
) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let own = trials.iter().filter(|(of, ..)| of.entry == row.entry);
    let pieces = own.flat_map(|(_, block, rows)| {
        let of_role = rows.iter().filter(|(_, row)| row.who == role.as_str());
        let start = timeline.start(*block);
        let points: Points =
            of_role.filter_map(|(at, row)| Some((start + at, (quantity.of)(row)? / quantity.unit.size))).collect();
        split_at_gaps(&points).collect::<Vec<_>>()
    });
    Line { name: row.label.clone(), colour, dash, pieces: pieces.collect(), ..Line::default() }
}

fn resource_chart(section: &Section, role: Role, quantity: &Quantity, series: Vec<Line>, timeline: &Timeline) -> Chart {
    let who = role.as_str();
    Chart {
        name: format!("{}-{}-{who}", section.slug(), quantity.stem),
        title: format!("{} of the {who} over time: {}", quantity.name, section.heading()),
        subtitle: if role == Role::Proxy {
            "Less is better, for the same rate.".to_string()
        } else {
            format!("The {who} is part of the bench: it must have room left.")
        },
        alt: format!("{} of the {who}, second by second, for every product and block.", quantity.name),
        notes: vec![quantity.note.to_string(), timeline.words().to_string()],
        kind: ChartKind::lines(Axis::time(), Axis::linear(quantity.name, quantity.unit.name), series, timeline.rules()),
    }
}

/// The share of white in the colour of a product's last part.
const PALEST: f64 = 0.6;

/// The end of a name whose numbers are bytes.
const BYTES: &str = "_bytes";

/// By name, and then by product and part: the pieces of a line.
type Lists = BTreeMap<String, BTreeMap<(usize, String), Vec<Points>>>;

/// A chart for each name whose number changed in a window, in the order of names.
pub(super) fn monitors_over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Vec<Chart> {
    let timeline = Timeline::of(run, section);
    let mut all = Lists::new();
    for (place, row) in section.all_rows().enumerate() {
        for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
            match series::monitor_seconds(run, trial) {
                Ok(told) => add(&mut all, place, trial, timeline.start(trial.measurement.block), told),
                Err(one) => note_broken(broken, one),
            }
        }
    }
    let changes = |pieces: &Vec<Points>| pieces.iter().any(|piece| piece.iter().any(|point| point.1 != piece[0].1));
    all.retain(|_, lines| lines.values().any(changes));
    all.into_iter().map(|(name, lines)| monitor_chart(run, section, &timeline, &name, lines)).collect()
}

/// Adds what the parts told in the windows of a trial, in seconds on the joined axis.
fn add(all: &mut Lists, place: usize, trial: &Trial, start: f64, told: Vec<(String, MonitorSecond)>) {
    let windows = windows(trial);
    let Some(first) = windows.first().map(|(_, load)| load.window_start_ms) else { return };
    let mut own: BTreeMap<(String, String), Points> = BTreeMap::new();
    for (part, MonitorSecond { time_ms, name, value }) in told {
        let at = (time_ms as f64 - first as f64) / 1_000.0;
        if windows.iter().any(|(start, load)| at >= *start && at <= start + load.window_s) {
            own.entry((name, part)).or_default().push((start + at, value));
        }
    }
    for ((name, part), points) in own {
        all.entry(name).or_default().entry((place, part)).or_default().extend(split_at_gaps(&points));
    }
}

fn monitor_chart(
    run: &Run,
    section: &Section,
    timeline: &Timeline,
    name: &str,
    lines: BTreeMap<(usize, String), Vec<Points>>,
) -> Chart {
    let (words, unit) = match name.strip_suffix(BYTES) {
        Some(words) => (words.replace('_', " "), Unit::MEBIBYTES),
        None => (name.replace('_', " "), Unit::NONE),
    };
    let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
    let words = first.to_uppercase() + rest;
    let rows: Vec<_> = section.all_rows().collect();
    let parts = unique(lines.keys().map(|(_, part)| part.clone()));
    let series = lines.into_iter().map(|((place, part), mut pieces)| {
        let row = rows[place];
        let Style { colour, dash } = style(run, &row.entry);
        let paler = parts.iter().position(|own| *own == part).unwrap_or(0) as f64 / parts.len() as f64;
        pieces.iter_mut().flatten().for_each(|point| point.1 /= unit.size);
        Line {
            name: row.label.clone(),
            part,
            colour: lighter(&colour, PALEST * paler),
            dash,
            pieces,
            ..Line::default()
        }
    });
    // The name comes from a product, and becomes a path.
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    Chart {
        name: format!("{}-monitor-{}", section.slug(), name.chars().map(safe).collect::<String>()),
        title: format!("{words} of each part over time: {}", section.heading()),
        subtitle: "As the part itself tells it.".to_string(),
        alt: format!("{words}, second by second, for {}.", parts.join(", ")),
        notes: vec![format!("{name} of {}; later parts are paler.", parts.join(", ")), timeline.words().to_string()],
        kind: ChartKind::lines(Axis::time(), Axis::linear(&words, unit.name), series.collect(), timeline.rules()),
    }
}
