//! What is read off a single trial. Knows one measurement at a time, nothing of blocks.

use serde::{Deserialize, Serialize};
use weir_model::load::LoadResult;
use weir_model::record::{Measurement, Point, Role, RoleUsage};
use weir_model::suite::Series;

use super::cpu;
use crate::plan::{Arrival, PlannedLoad};

/// What ranks go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Right answers a second: more is better. For loads that look for the most.
    Rate,
    /// 99th percentile of latency: less is better. For loads with a rate given.
    P99,
}

impl Metric {
    /// Whether a larger value is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::Rate)
    }

    /// Its value in one window.
    pub(crate) fn value(self, reading: &Reading<'_>) -> Option<f64> {
        match self {
            Metric::Rate => reading.rate,
            Metric::P99 => Some(reading.load.latency.p99_us),
        }
    }

    /// In words, as in "ranked by".
    pub fn words(self) -> &'static str {
        match self {
            Metric::Rate => "right answers a second",
            Metric::P99 => "99th percentile of latency",
        }
    }
}

/// The window of a trial that stands for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Right answers a second; of a search the rate that it found, `None` when no rate met the objective.
    pub rate: Option<f64>,
    /// The client's account.
    pub load: &'a LoadResult,
    /// What the roles used.
    pub usage: &'a [RoleUsage],
}

impl<'a> Reading<'a> {
    /// Of a trial of `load`. A series is not its last window: of rounds it is the one in the middle of their rates, of a
    /// series over rates or connections the one that carried most. `None` when the trial has no number.
    pub fn of(measurement: &'a Measurement, load: &PlannedLoad) -> Option<Reading<'a>> {
        let last = measurement.load.as_ref()?;
        let point = match load.series {
            Series::Once => None,
            Series::Rounds(_) => middle(&measurement.points),
            Series::Shares(_) | Series::Connections(_) => most(&measurement.points),
        };
        if let Some(point) = point {
            return Some(Reading::of_point(point));
        }
        let rate = match (&load.arrival, &measurement.search) {
            (Arrival::Search(_), Some(search)) => search.rate,
            _ => Some(last.rate),
        };
        Some(Reading { rate, load: last, usage: &measurement.usage })
    }

    /// Of one window of a series.
    pub fn of_point(point: &'a Point) -> Reading<'a> {
        Reading { rate: Some(point.load.rate), load: &point.load, usage: &point.usage }
    }

    /// What a role's process tree used.
    pub fn role(&self, role: Role) -> Option<&'a RoleUsage> {
        cpu::usage_of(self.usage, role)
    }

    /// CPU microseconds of a role for one answer: user, system. See [`cpu::cpu_us`].
    pub fn cpu_us(&self, role: Role) -> Option<(f64, f64)> {
        cpu::cpu_us(self.load, self.usage, role)
    }
}

fn by_rate(points: &[Point]) -> Vec<&Point> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.load.rate.total_cmp(&b.load.rate));
    sorted
}

/// Of an even number the slower one of the two in the middle: a window that was, not a mean of two.
fn middle(points: &[Point]) -> Option<&Point> {
    by_rate(points).get(points.len().saturating_sub(1) / 2).copied()
}

fn most(points: &[Point]) -> Option<&Point> {
    by_rate(points).last().copied()
}
