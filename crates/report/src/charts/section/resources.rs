//! Builds the charts of CPU and memory of each role for each second. Called by `of_section` in `section`.

use weir_model::record::{ResourceSecond, Role};

use super::timeline::{Timeline, measured, pieces as split, placed};
use super::{note_broken, style};
use crate::charts::axis::Axis;
use crate::charts::{Chart, ChartKind, Line, Lines, Points};
use crate::palette::Style;
use crate::run::{Broken, Run};
use crate::series;
use crate::summary::{Row, Section};
use weir_model::text::Unit;

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
pub(super) fn over_time(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> Vec<(Role, Chart)> {
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
        let lines = section.all_rows().map(|row| line(run, row, role, quantity, &trials, &timeline));
        let lines = lines.filter(|line| !line.pieces.is_empty()).collect();
        (role, chart(section, role, quantity, lines, &timeline))
    })
    .collect()
}

fn line(run: &Run, row: &Row, role: Role, quantity: &Quantity, trials: &[Seconds<'_>], timeline: &Timeline) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let own = trials.iter().filter(|(of, ..)| of.entry == row.entry);
    let pieces = own.flat_map(|(_, block, rows)| {
        let of_role = rows.iter().filter(|(_, row)| row.who == role.as_str());
        let start = timeline.start(*block);
        let points: Points =
            of_role.filter_map(|(at, row)| Some((start + at, (quantity.of)(row)? / quantity.unit.size))).collect();
        split(&points).collect::<Vec<_>>()
    });
    Line { name: row.label.clone(), part: String::new(), colour, dash, pieces: pieces.collect() }
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
            x: Axis::time(),
            y: Axis::linear(quantity.name, quantity.unit.name),
            series,
            rules: timeline.rules(),
        }),
    }
}
