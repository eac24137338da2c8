//! What a load saw of faults, second by second: successful responses, and errors. The rules are where faults begin and end. The module
//! does not know what a fault is.

use super::seconds::{Timeline, measured, windows};
use super::style;
use crate::charts::axis::Axis;
use crate::charts::{Chart, ChartKind, Line, Points};
use crate::palette::Style;
use crate::run::{Run, Trial};
use crate::summary::{Row, Section};
use weir_model::load::LoadSecond;
use weir_model::text::Unit;

/// The charts of a section in which faults were provoked, or routes changed; none of another.
pub(super) fn over_time(run: &Run, section: &Section) -> Vec<Chart> {
    let is_disturbed = |trial: &Trial| !trial.measurement.faults.is_empty() || trial.measurement.changes.is_some();
    if !section.trials(run).any(is_disturbed) {
        return Vec::new();
    }
    let chart = |stem: &str, title: &str, subtitle: &str, value: fn(&LoadSecond) -> u64| {
        let timeline = Timeline::of(run, section);
        let lines = section.all_rows().map(|row| line(run, section, row, &timeline, value)).collect();
        Chart {
            name: format!("{}-{stem}", section.slug()),
            title: format!("{title} over time: {}", section.heading()),
            subtitle: subtitle.to_owned(),
            alt: format!("{title}, second by second, for every product and block, with the times of faults."),
            notes: vec![timeline.words().to_owned()],
            kind: ChartKind::lines(Axis::time(), Axis::linear(title, Unit::PER_SECOND.name), lines, timeline.rules()),
        }
    };
    vec![
        chart("errors-time", "Errors", "Less is better. Requests without a successful response.", |row| row.errors),
        chart("rate-time", "Successful responses", "More is better.", |row| row.successful),
    ]
}

fn line(run: &Run, section: &Section, row: &Row, timeline: &Timeline, value: fn(&LoadSecond) -> u64) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let mut pieces: Vec<Points> = Vec::new();
    for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
        let start = timeline.start(trial.measurement.block);
        for (offset, load) in windows(trial) {
            let whole = load.series.iter().filter(|second| second.length_s > 0.0);
            let at = |second: &LoadSecond| start + offset + f64::from(second.second) + second.length_s / 2.0;
            pieces.push(whole.map(|second| (at(second), value(second) as f64 / second.length_s)).collect());
        }
    }
    Line { name: row.label.clone(), colour, dash, pieces, ..Line::default() }
}
