//! Options, trials and result of the search for the highest rate that meets a set of conditions.
//! `weir-load` runs the search for `weir load --find-max` and for the lab. Audit and report read the result.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::LoadResult;
use crate::condition::Condition;

/// How a search goes about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchOptions {
    /// How near the rate found has to be to the lowest that failed: 0.02 is two per cent. At least 0.001, at most 0.5.
    pub tolerance: f64,
    /// Seconds that the search may take, warm-ups and confirming trial included. It ends with what it has.
    pub budget_s: f64,
    /// No rate above this is tried, requests a second.
    pub ceiling: Option<f64>,
    /// Where to begin, requests a second, instead of a closed load that finds out.
    pub guess: Option<f64>,
}

/// The length of a search's first trials, seconds, where the full length allows it.
pub const SHORT_WINDOW_S: f64 = 2.0;

/// Trials that a search has time for, of the first length and of full length. Of 100 simulated searches 97 need no more, and the median
/// needs two thirds of that time.
const SHORT_TRIALS: f64 = 22.0;
const FULL_TRIALS: f64 = 5.0;

/// About how many seconds a trial takes beside warm-up and window: connections are opened and drained.
const BETWEEN_S: f64 = 0.5;

impl SearchOptions {
    /// With the time for a search whose trials have this warm-up and, at full length, this window.
    pub fn for_windows(warmup: Duration, full: Duration) -> SearchOptions {
        let trial_s = |window_s: f64| warmup.as_secs_f64() + window_s + BETWEEN_S;
        let full_s = full.as_secs_f64();
        let budget_s = SHORT_TRIALS * trial_s(full_s.min(SHORT_WINDOW_S)) + FULL_TRIALS * trial_s(full_s);
        SearchOptions { budget_s, ..SearchOptions::default() }
    }
}

impl Default for SearchOptions {
    /// Two per cent, three minutes, no ceiling, a closed load for the first guess.
    fn default() -> SearchOptions {
        SearchOptions { tolerance: 0.02, budget_s: 180.0, ceiling: None, guess: None }
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// Version of this shape: [`SEARCH_SCHEMA`].
    pub schema: u32,
    /// What the rate had to meet.
    pub conditions: Vec<Condition>,
    /// Its options.
    pub options: SearchOptions,
    /// Why it ended.
    pub end: SearchEnd,
    /// The highest rate found that meets the conditions, requests a second; `None` when none did.
    pub rate: Option<f64>,
    /// That rate met the conditions in a trial of full length too.
    pub confirmed: bool,
    /// The lower end of the interval: the highest rate, of those below every one that failed, that met the conditions
    /// in all its trials.
    pub met_up_to: Option<f64>,
    /// The upper end of the interval: the lowest rate that failed; `None` when none did.
    pub failed_from: Option<f64>,
    /// What kept the rate from being higher; `None` when nothing failed.
    pub limit: Option<SearchLimit>,
    /// Every trial, in order.
    pub probes: Vec<Probe>,
    /// How long it took, seconds.
    pub seconds: f64,
    /// The result of the last confirming trial, if there was one.
    pub confirmation: Option<Box<LoadResult>>,
}

/// Version of [`SearchResult`].
pub const SEARCH_SCHEMA: u32 = 1;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// It found what it looked for: the rate is confirmed, and the interval as narrow as was asked for, unless trials of
    /// full length failed where short ones had not.
    Found,
    /// The highest rate allowed meets the conditions.
    Ceiling,
    /// No rate met them, however low.
    NothingMet,
    /// Trials of full length failed repeatedly where short ones had met the conditions.
    Unsteady,
    /// The time was over.
    Budget,
    /// Somebody stopped it.
    CutShort,
}

/// Who could not do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchLimit {
    /// The target, or the way to it.
    Target,
    /// The client: its threads were busy, or late although connections were free. The rate found says little of the target.
    Client,
}

/// One trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// What it was for.
    pub kind: ProbeKind,
    /// Offered, requests a second; `None` for the closed load.
    pub offered: Option<f64>,
    /// Successful responses/s.
    pub carried: f64,
    /// The conditions' values, in their order and units; `None` for what was not measured.
    pub values: Vec<Option<f64>>,
    /// The responses kept up with the requests. A rate that is not carried is not met, whatever the conditions say.
    pub kept_up: bool,
    /// All conditions held, and the responses kept up; `None` for the closed load, of which nothing is asked.
    pub met: Option<bool>,
    /// One value at least was so near its bound that noise may have decided.
    pub near: bool,
    /// Share of the window that the busiest worker thread was at work.
    pub busiest: f64,
    /// 99th percentile of due to sent, µs.
    pub lag_p99_us: f64,
    /// The client was at its own limit.
    pub client_limited: bool,
    /// When it began, seconds since the search's start.
    pub at_s: f64,
    /// Length of its window, seconds.
    pub window_s: f64,
    /// How long it took in all, seconds: connecting, warm-up, window, drain.
    pub seconds: f64,
}

/// What a trial of a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProbeKind {
    /// A closed load, for a first guess.
    Guess,
    /// Finds one rate that meets the conditions and one that does not.
    Coarse,
    /// Brings the two together.
    Fine,
    /// Repeats the lowest rate that failed, in case it failed by chance.
    Again,
    /// The rate found, at full length.
    Confirm,
}

impl ProbeKind {
    /// The name used in records and tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl SearchResult {
    /// For people, how it ended: one sentence.
    pub fn sentence(&self) -> String {
        let end = match self.end {
            SearchEnd::Found if self.limit == Some(SearchLimit::Client) => "the client was the limit, not the target",
            SearchEnd::Found => "above it the conditions are not met",
            SearchEnd::Ceiling => "it is the highest rate that was allowed",
            SearchEnd::NothingMet if self.limit == Some(SearchLimit::Client) => {
                "no rate met the conditions, and the client was the limit, not the target"
            }
            SearchEnd::NothingMet => "no rate met the conditions, however low",
            SearchEnd::Unsteady => {
                "longer trials failed where short ones had met the conditions: the target is not steady"
            }
            SearchEnd::Budget => "the time for the search was over before it was done",
            SearchEnd::CutShort => "the search was stopped before it was done",
        };
        end.to_owned()
    }
}
