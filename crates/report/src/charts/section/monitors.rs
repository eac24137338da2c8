//! Builds the charts of what the parts of products told about themselves, one for each name: the size of a store, how often it
//! compacted. Called by `of_section` in `section`. It does not know what the numbers mean.

use std::collections::BTreeMap;

use weir_model::text::{Unit, unique};

use super::timeline::{Timeline, measured, pieces, windows};
use super::{note_broken, style};
use crate::charts::axis::Axis;
use crate::charts::{Chart, ChartKind, Line, Lines, Points};
use crate::palette::{Style, lighter};
use crate::run::{Broken, Run, Trial};
use crate::series::{self, MonitorSecond};
use crate::summary::Section;

/// The share of white in the colour of a product's last part.
const PALEST: f64 = 0.6;

/// The end of a name whose numbers are bytes.
const BYTES: &str = "_bytes";

/// By name, and then by product and part: the pieces of a line.
type Lists = BTreeMap<String, BTreeMap<(usize, String), Vec<Points>>>;

/// A chart for each name whose number changed in a window, in the order of names.
pub(super) fn over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Vec<Chart> {
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
    all.into_iter().map(|(name, lines)| chart(run, section, &timeline, &name, lines)).collect()
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
        all.entry(name).or_default().entry((place, part)).or_default().extend(pieces(&points));
    }
}

fn chart(
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
        Line { name: row.label.clone(), part, colour: lighter(&colour, PALEST * paler), dash, pieces }
    });
    // The name comes from a product, and becomes a path.
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    Chart {
        name: format!("{}-monitor-{}", section.slug(), name.chars().map(safe).collect::<String>()),
        title: format!("{words} of each part over time: {}", section.heading()),
        subtitle: "As the part itself tells it.".to_string(),
        alt: format!("{words}, second by second, for {}.", parts.join(", ")),
        notes: vec![format!("{name} of {}; later parts are paler.", parts.join(", ")), timeline.words().to_string()],
        kind: ChartKind::Lines(Lines {
            x: Axis::time(),
            y: Axis::linear(&words, unit.name),
            series: series.collect(),
            rules: timeline.rules(),
        }),
    }
}
