//! The highest open rate that meets conditions: `--find-max 'p99<5ms, errors<0.1%'`.
//!
//! [`find_max`] runs one load after another, as [`strategy`] says, which knows nothing of loads: it is told which rates
//! met the conditions and names the next one. [`judge`] says what a load's result means.

use weir_model::Condition;
use weir_model::load::{LoadSpec, Probe, ProbeKind, SearchOptions, SearchResult};

use crate::error::LoadError;
use crate::run::Progress;
use crate::stop::StopFlag;

/// How a search goes on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SearchProgress {
    /// A trial begins.
    Begins {
        /// Which, 0-based.
        number: usize,
        /// What it is for.
        kind: ProbeKind,
        /// Its rate, requests a second; `None` for the closed load.
        rate: Option<f64>,
        /// Length of its window, seconds.
        window_s: f64,
    },
    /// How the trial's load goes on.
    Load(Progress),
    /// The trial is over.
    Ends(Probe),
}

/// Finds the highest rate at which all conditions hold. The order gives everything else: connections, warm-up (a fresh one for
/// every trial), the length of the confirming trial (its duration), and the spacing of arrivals if its shape is open
/// with one rate; else they are evenly spaced.
///
/// # Errors
/// As for [`crate::run`], of the first trial that could not be run; and an order or options that make no search.
pub fn find_max(
    spec: &LoadSpec,
    conditions: &[Condition],
    options: &SearchOptions,
    stop: &StopFlag,
    progress: &mut dyn FnMut(SearchProgress),
) -> Result<SearchResult, LoadError> {
    let _ = (spec, conditions, options, stop, progress);
    Err(LoadError::Order("a search cannot be run yet".into()))
}
