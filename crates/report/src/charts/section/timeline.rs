//! Joins the blocks end to end on one time axis, so that a block that went wrong is visible and not averaged away.
//! `latency`, `resources` and `monitors` use it, and so does `weir-published`.

use std::collections::BTreeMap;

use weir_model::load::LoadResult;
use weir_model::record::ResourceSecond;

use crate::charts::Points;
use crate::run::{Run, Trial};
use crate::summary::Section;

/// Where each block begins on the joined axis.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    starts: BTreeMap<u32, f64>,
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
        Timeline { starts: starts.collect() }
    }

    /// Where `block` begins, seconds.
    pub fn start(&self, block: u32) -> f64 {
        self.starts.get(&block).copied().unwrap_or(0.0)
    }

    /// Rules where blocks begin; none for a single block.
    pub fn rules(&self) -> Vec<(f64, String)> {
        if self.starts.len() < 2 {
            return Vec::new();
        }
        self.starts.iter().map(|(block, start)| (*start, format!("block {block}"))).collect()
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
pub(super) fn pieces(points: &Points) -> impl Iterator<Item = Points> {
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
