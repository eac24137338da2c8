//! Summarises the windows of a series over blocks as points of a curve, and finds the knee of the curve.
//! Called by `section` and `row`.

use serde::Serialize;
use weir_model::metric::Window;
use weir_model::record::{Measurement, Point, Severity};
use weir_model::suite::Series;
use weir_stats::{Bend, Estimate, knee, median, median_interval};

use super::metric::Estimates;
use super::row::Cases;
use super::{LEVEL, Metric, Row, SEED};

/// The sensitivity of the knee detection: the value that the authors of the method advise.
const SENSITIVITY: f64 = 1.0;

/// One point of a product's curve. Times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointRow {
    /// 1-based place in the series.
    pub point: u32,
    /// Requests a second that were due, the median over blocks; `None` for a closed load.
    pub offered: Option<f64>,
    /// Connections.
    pub connections: u32,
    /// The metrics that are shown of points.
    #[serde(flatten)]
    pub estimates: Estimates,
    /// Requests due, all blocks together.
    pub requests: u64,
    /// Requests without a right answer.
    pub errors: u64,
    /// Blocks in which a check found this point invalid.
    pub invalid: usize,
}

impl PointRow {
    /// The estimate of a metric.
    pub fn of(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(metric)
    }
}

/// The points of the trials shown, in order.
pub(super) fn points(cases: &Cases<'_>, blocks: &[u32]) -> Vec<PointRow> {
    let longest = cases.displayed().map(|trial| trial.measurement.points.len()).max().unwrap_or(0);
    (0..longest).filter_map(|place| point(cases, blocks, place)).collect()
}

fn point(cases: &Cases<'_>, blocks: &[u32], place: usize) -> Option<PointRow> {
    let own: Vec<&Point> = cases.displayed().filter_map(|trial| trial.measurement.points.get(place)).collect();
    let first = own.first()?;
    let estimate = |metric: Metric| -> Option<Estimate> {
        let of = |measurement: &Measurement| metric.value(&Window::of_point(measurement.points.get(place)?));
        median_interval(&cases.of_measurements(blocks, of), LEVEL, SEED)
    };
    let offered: Vec<f64> = own.iter().filter_map(|point| point.offered_rate).collect();
    let fatal = |point: &&&Point| point.findings.iter().any(|finding| finding.severity == Severity::Fatal);
    Some(PointRow {
        point: first.point,
        offered: median(&offered),
        connections: first.connections,
        estimates: Estimates::of(|metric| metric.entry().columns.points, estimate),
        requests: own.iter().map(|point| point.load.window.due).sum(),
        errors: own.iter().map(|point| point.load.window.error_count() + point.load.window.unsent).sum(),
        invalid: own.iter().filter(fatal).count(),
    })
}

/// Sets the knee of the row's curve. For offered rates it is the rate from which p99 climbs by orders of magnitude. It is found
/// on the logarithm of p99, because a latency of seconds past saturation makes everything before it look flat. For connections
/// it is the number from which the rate climbs no more. Rounds have no knee.
pub(super) fn bend(row: &mut Row, series: &Series) {
    let of = |value: fn(&PointRow) -> Option<f64>| -> Vec<f64> {
        row.points.iter().map(|point| value(point).unwrap_or(f64::NAN)).collect()
    };
    row.knee = match series {
        Series::Shares(_) => {
            let latency = of(|point| point.of(Metric::P99).map(|p99| p99.value.ln()));
            knee(&of(|point| point.offered), &latency, Bend::Up, SENSITIVITY)
        }
        Series::Connections(_) => {
            let rates = of(|point| point.of(Metric::Rate).map(|rate| rate.value));
            knee(&of(|point| Some(f64::from(point.connections))), &rates, Bend::Down, SENSITIVITY)
        }
        Series::Once | Series::Rounds(_) => None,
    };
}
