//! A load during faults: successful responses by tenth of a second, and errors by second. The rules are where faults begin and end. The module
//! does not know what a fault is.

use super::seconds::{Timeline, measured, windows};
use super::style;
use crate::charts::axis::Axis;
use crate::charts::{Chart, ChartKind, Line, Points};
use crate::palette::Style;
use crate::run::{Run, Trial};
use crate::summary::{Row, Section};
use weir_model::load::{LoadResult, LoadSecond, TENTH_S};
use weir_model::text::Unit;

/// The charts of a section in which faults were provoked, or routes changed; none of another.
pub(super) fn over_time(run: &Run, section: &Section) -> Vec<Chart> {
    let is_disturbed = |trial: &Trial| !trial.measurement.faults.is_empty() || trial.measurement.changes.is_some();
    if !section.trials(run).any(is_disturbed) {
        return Vec::new();
    }
    let chart = |stem: &str, title: &str, subtitle: &str, step: &str, rates: fn(&LoadResult) -> Points| {
        let timeline = Timeline::of(run, section);
        let lines = section.all_rows().map(|row| line(run, section, row, &timeline, rates)).collect();
        Chart {
            name: format!("{}-{stem}", section.slug()),
            title: format!("{title} over time: {}", section.heading()),
            subtitle: subtitle.to_owned(),
            alt: format!("{title} by {step}, for every product and block, with the times of faults."),
            notes: vec![timeline.words().to_owned()],
            kind: ChartKind::lines(Axis::time(), Axis::linear(title, Unit::PER_SECOND.name), lines, timeline.rules()),
        }
    };
    vec![
        chart("errors-time", "Errors", "Less is better. Requests without a successful response.", "second", errors),
        chart(
            "rate-time",
            "Successful responses",
            "More is better. A point is a tenth of a second.",
            "tenth",
            successes,
        ),
    ]
}

/// Errors a second, by second of the window.
fn errors(load: &LoadResult) -> Points {
    let whole = load.series.iter().filter(|second| second.length_s > 0.0);
    let at = |second: &LoadSecond| f64::from(second.second) + second.length_s / 2.0;
    whole.map(|second| (at(second), second.errors as f64 / second.length_s)).collect()
}

/// Successful responses a second, by tenth of a second of the window.
fn successes(load: &LoadResult) -> Points {
    let tenths = load.tenths.iter().enumerate();
    tenths.map(|(nth, responses)| ((nth as f64 + 0.5) * TENTH_S, *responses as f64 / TENTH_S)).collect()
}

fn line(run: &Run, section: &Section, row: &Row, timeline: &Timeline, rates: fn(&LoadResult) -> Points) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let mut pieces: Vec<Points> = Vec::new();
    for trial in measured(run, section).filter(|trial| trial.is_of(&row.entry)) {
        let start = timeline.start(trial.measurement.block);
        for (offset, load) in windows(trial) {
            pieces.push(rates(load).into_iter().map(|(at, rate)| (start + offset + at, rate)).collect());
        }
    }
    Line { name: row.label.clone(), colour, dash, pieces, ..Line::default() }
}
