//! What a run and its trials report while they go on. [`crate::run`] and [`crate::trial`] send it, `weir run` shows it.

use std::path::Path;
use std::time::Duration;

use weir_model::load::LoadSecond;
use weir_model::record::Measurement;

use crate::plan::Planned;
use crate::rates::ChosenRate;
use crate::trial::Part;

/// Progress of a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The run begins.
    Begin {
        /// Trials in all.
        trials: usize,
        /// Those finished before.
        finished: &'a [Measurement],
        /// Its folder.
        folder: &'a Path,
    },
    /// A rate was chosen for an open load.
    Rate(&'a ChosenRate),
    /// A trial begins.
    Trial {
        /// The trial.
        planned: &'a Planned,
        /// Estimated time for the rest of the run, this trial included.
        left: Duration,
    },
    /// A stage of the trial begins: `starting`, `verifying`, `connecting`, `warming up`, `measuring`, `settling`.
    Stage(&'static str),
    /// A part of the trial begins: a point of a series, a trial of a search.
    Part(Part),
    /// A second of warm-up or window.
    Second(&'a LoadSecond),
    /// A trial is over and recorded.
    Finished(&'a Measurement),
}

/// Receives the progress of a run.
pub trait Observer {
    /// Called on the run's thread; must not take long.
    fn notify(&mut self, event: RunEvent<'_>);
}

/// Nobody watches.
impl Observer for () {
    fn notify(&mut self, _: RunEvent<'_>) {}
}
