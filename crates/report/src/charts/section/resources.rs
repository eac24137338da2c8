//! Builds the charts of CPU and memory of each role for each second. Called by `of_section` in `section`.

use weir_model::record::{ResourceSecond, Role};
use weir_model::suite::Entry;

use super::timeline::{Timeline, measured, windows};
use super::{note_broken, style};
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Chart, ChartKind, Line, Lines, Points};
use crate::run::{Broken, Run, Trial};
use crate::series;
use crate::summary::Section;
use weir_model::text::Unit;

/// A chart and the role that it shows.
pub(super) struct RoleChart {
    pub role: Role,
    pub chart: Chart,
}

/// A row and where it stands: seconds since the window began.
type Placed = (f64, ResourceSecond);

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

/// CPU and memory of the proxy, the client and the origin.
pub(super) fn over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Vec<RoleChart> {
    let timeline = Timeline::of(run, section);
    let mut trials: Vec<(Entry, u32, Vec<Placed>)> = Vec::new();
    for row in section.all_rows() {
        for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
            match series::resource_seconds(run, trial) {
                Ok(rows) => trials.push((row.entry.clone(), trial.measurement.block, inside(trial, rows))),
                Err(one) => note_broken(broken, one.file, one.why),
            }
        }
    }
    let mut charts = Vec::new();
    for role in [Role::Proxy, Role::Client, Role::Origin] {
        for quantity in &QUANTITIES {
            let lines = section.all_rows().map(|row| {
                let (look, dash) = style(run, &row.entry);
                let own = trials.iter().filter(|(entry, ..)| *entry == row.entry);
                let pieces = own.map(|(_, block, rows)| {
                    let of_role = rows.iter().filter(|(_, row)| row.who == role.as_str());
                    let point = |(at, row): &Placed| {
                        Some((timeline.start(*block) + at, (quantity.of)(row)? / quantity.unit.size))
                    };
                    of_role.filter_map(point).collect()
                });
                Line {
                    name: row.label.clone(),
                    part: String::new(),
                    colour: look.colour,
                    dash,
                    pieces: pieces.flat_map(|piece: Points| apart(&piece)).collect(),
                }
            });
            let series: Vec<Line> = lines.filter(|line| !line.pieces.is_empty()).collect();
            charts.push(RoleChart { role, chart: chart(section, role, quantity, series, &timeline) });
        }
    }
    charts
}

/// Splits a line where two windows of a series are separated in time.
fn apart(piece: &Points) -> Vec<Points> {
    piece.chunk_by(|a, b| b.0 - a.0 < LONGEST_STEP).map(<[_]>::to_vec).collect()
}

/// Seconds between two rows of one window, at most.
const LONGEST_STEP: f64 = 2.5;

/// The rows of the measured window, each at the middle of its second, in seconds since the window began.
fn inside(trial: &Trial, rows: Vec<ResourceSecond>) -> Vec<Placed> {
    let windows = windows(trial);
    let Some(first) = windows.first().map(|(_, load)| load.window_start_ms) else { return Vec::new() };
    let placed = rows.into_iter().map(|row| {
        let end = (row.time_ms as f64 - first as f64) / 1_000.0;
        (end - row.length_s / 2.0, row)
    });
    let inside = |at: f64| windows.iter().any(|(start, load)| at >= *start && at <= start + load.window_s);
    placed.filter(|(at, _)| inside(*at)).collect()
}

fn chart(section: &Section, role: Role, quantity: &Quantity, series: Vec<Line>, timeline: &Timeline) -> Chart {
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
        kind: ChartKind::Lines(Lines {
            x: Axis { label: "Time".to_string(), unit: "s".to_string(), scale: Scale::Linear },
            y: Axis { label: quantity.name.to_string(), unit: quantity.unit.name.to_string(), scale: Scale::Linear },
            series,
            rules: timeline.rules(),
        }),
    }
}
