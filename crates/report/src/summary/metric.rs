//! Picks the window that represents a trial, and computes the estimates of a row over blocks.
//! Called by `row`, `curve` and `overall`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use weir_model::metric::{Metric, Window};
use weir_model::record::{Measurement, Point};
use weir_model::suite::{Load, Series};
use weir_stats::Estimate;

/// The window that represents a trial of `load`. For rounds it is the one with the median rate, and for a series over rates or
/// connections the one that carried most. `None` if the trial has no number.
pub(crate) fn window_of<'a>(measurement: &'a Measurement, load: &Load) -> Option<Window<'a>> {
    let whole = Window::of_trial(measurement)?;
    let mut by_rate: Vec<&Point> = measurement.points.iter().collect();
    by_rate.sort_by(|a, b| a.load.rate.total_cmp(&b.load.rate));
    let point = match load.series {
        Series::Once => None,
        // Of an even number the slower one of the two in the middle: a window that was, not a mean of two.
        Series::Rounds(_) => by_rate.get(by_rate.len().saturating_sub(1) / 2),
        Series::Shares(_) | Series::Connections(_) => by_rate.last(),
    };
    Some(point.map_or(whole, |point| Window::of_point(point)))
}

/// The estimates of a row, by metric. In `--json` each stands under its key, and is `null` where there is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimates(BTreeMap<Metric, Option<Estimate>>);

impl Estimates {
    /// Of those metrics of the table that are `shown`.
    pub(crate) fn of(shown: impl Fn(Metric) -> bool, estimate: impl Fn(Metric) -> Option<Estimate>) -> Estimates {
        let metrics = Metric::ALL.iter().copied().filter(|metric| shown(*metric));
        Estimates(metrics.map(|metric| (metric, estimate(metric))).collect())
    }

    /// That of one metric.
    pub fn get(&self, metric: Metric) -> Option<Estimate> {
        *self.0.get(&metric)?
    }
}

impl Serialize for Estimates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}
