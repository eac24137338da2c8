//! What the slices of a duet say: how many times B is A, how sure that is, and whether it is enough. A pure function of the slices, so
//! that recorded ones can be judged again in any number and order. [`super`] calls it after each quad.
//!
//! The unit of a claim is a *start*: both products are started anew again and again, because two processes of one program differ
//! by where the kernel put them, for as long as they live. A start has one quad or several. A quad's number is the mean over its
//! four slices, in the order ABBA or BAAB, so that a steady drift of the machine cancels.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use weir_model::metric::{Metric, Window};
use weir_model::record::Measurement;
use weir_model::suite::{Load, LoadKind};
use weir_stats::{Estimate, anytime_ratio, median};

/// The confidence that all claims of a duet keep together, however often one looks at them.
pub const LEVEL: f64 = 0.95;

/// The first or the second product of a duet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Who {
    /// The first.
    A,
    /// The second.
    B,
}

impl Who {
    /// Both.
    pub const BOTH: [Who; 2] = [Who::A, Who::B];

    /// The other one.
    pub fn other(self) -> Who {
        if self == Who::A { Who::B } else { Who::A }
    }
}

/// The numbers of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Whose it is.
    pub who: Who,
    /// By metric; without those that were not measured.
    pub values: BTreeMap<Metric, f64>,
}

impl Slice {
    /// The numbers of a measured slice.
    pub fn of(who: Who, measurement: &Measurement, metrics: &[Metric]) -> Slice {
        let window = Window::of_trial(measurement);
        let value = |metric: &Metric| Some((*metric, metric.value(window.as_ref()?)?));
        Slice { who, values: metrics.iter().filter_map(value).collect() }
    }
}

/// Four slices, two of each product.
#[derive(Debug, Clone, PartialEq)]
pub struct Quad {
    /// 1-based number of the start.
    pub start: u32,
    /// In the order in which they were measured.
    pub slices: Vec<Slice>,
}

impl Quad {
    /// The logarithm of B over A.
    fn log_ratio(&self, metric: Metric) -> Option<f64> {
        Some(self.mean_log(metric, Who::B)? - self.mean_log(metric, Who::A)?)
    }

    fn mean_log(&self, metric: Metric, who: Who) -> Option<f64> {
        let logs: Vec<f64> = self.values(metric, who).map(f64::ln).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        mean.is_finite().then_some(mean)
    }

    fn values(&self, metric: Metric, who: Who) -> impl Iterator<Item = f64> {
        self.slices.iter().filter(move |slice| slice.who == who).filter_map(move |one| one.values.get(&metric).copied())
    }
}

/// What is known of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A difference: the interval excludes 1.
    Sure,
    /// No difference as large as asked for: the interval lies within it.
    Same,
    /// Neither.
    Open,
}

/// How a metric of B differs from that of A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Which.
    #[serde(serialize_with = "name")]
    pub metric: Metric,
    /// Median of A's slices.
    pub a: f64,
    /// Median of B's slices.
    pub b: f64,
    /// B over A. Of too few starts the interval is from 0 to infinity, which JSON writes as null.
    pub ratio: Estimate,
    /// What that says.
    pub verdict: Verdict,
}

impl Change {
    /// Whether B is worse, if it differs at all.
    pub fn worse(&self) -> bool {
        (self.ratio.value < 1.0) == self.metric.entry().higher_is_better
    }
}

fn name<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.compared_name())
}

/// The metrics under a load, the one that decides first: CPU time for a request. A rate that is given says nothing, and latencies of a
/// closed load are its rate again.
pub fn metrics(load: &Load) -> &'static [Metric] {
    match load.kind {
        LoadKind::Open { .. } => &[Metric::Cpu, Metric::P50, Metric::P99],
        _ => &[Metric::Cpu, Metric::Rate],
    }
}

/// What the quads say of each metric that was measured, in this order. `find` is the ratio that matters, above 1.
pub fn judge(quads: &[Quad], metrics: &[Metric], find: f64) -> Vec<Change> {
    // All claims together keep the level (Bonferroni).
    let level = 1.0 - (1.0 - LEVEL) / metrics.len().max(1) as f64;
    metrics.iter().filter_map(|metric| change(quads, *metric, level, find)).collect()
}

fn change(quads: &[Quad], metric: Metric, level: f64, find: f64) -> Option<Change> {
    let mut starts: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for quad in quads {
        starts.entry(quad.start).or_default().extend(quad.log_ratio(metric));
    }
    let means: Vec<f64> = starts.values().map(|logs| logs.iter().sum::<f64>() / logs.len() as f64).collect();
    let ratio = anytime_ratio(&means, level)?;
    let of = |who| median(&quads.iter().flat_map(|quad| quad.values(metric, who)).collect::<Vec<_>>());
    let verdict = match ratio {
        Estimate { low, high, .. } if low > 1.0 || high < 1.0 => Verdict::Sure,
        Estimate { low, high, .. } if high < find && low > 1.0 / find => Verdict::Same,
        _ => Verdict::Open,
    };
    Some(Change { metric, a: of(Who::A)?, b: of(Who::B)?, ratio, verdict })
}

/// Whether that is enough: the first metric is decided.
pub fn enough(changes: &[Change]) -> Option<Verdict> {
    changes.first().map(|change| change.verdict).filter(|verdict| *verdict != Verdict::Open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quad(start: u32, a: [f64; 2], b: [f64; 2]) -> Quad {
        let slice = |who, cpu: f64| Slice { who, values: [(Metric::Cpu, cpu), (Metric::Rate, 1e6 / cpu)].into() };
        let slices = vec![slice(Who::A, a[0]), slice(Who::B, b[0]), slice(Who::B, b[1]), slice(Who::A, a[1])];
        Quad { start, slices }
    }

    const METRICS: [Metric; 2] = [Metric::Cpu, Metric::Rate];

    /// Noise of about one per cent, the same every time.
    fn noise(n: u32) -> f64 {
        1.0 + 0.01 * (f64::from(n * 7 % 5) - 2.0) / 2.0
    }

    fn judged(starts: u32, ratio: f64) -> Vec<Change> {
        let quads: Vec<Quad> =
            (0..starts).map(|n| quad(n, [10.0, 10.0], [10.0 * ratio, 10.0 * ratio].map(|b| b * noise(n)))).collect();
        judge(&quads, &METRICS, 1.03)
    }

    #[test]
    fn a_difference_is_sure_in_both_metrics_and_a_small_one_is_the_same() {
        let dearer = judged(20, 1.05);
        assert_eq!([dearer[0].verdict, dearer[1].verdict], [Verdict::Sure; 2], "{dearer:?}");
        assert!(dearer.iter().all(Change::worse), "{dearer:?}");
        assert!((dearer[0].ratio.value - 1.05).abs() < 0.003 && dearer[0].b > dearer[0].a);
        assert!(judged(20, 0.95).iter().all(|change| !change.worse() && change.verdict == Verdict::Sure));
        let same = judged(20, 1.0);
        assert_eq!(enough(&same), Some(Verdict::Same), "{same:?}");
        assert_eq!(enough(&judged(5, 1.05)), None, "too few starts");
        assert_eq!(enough(&[]), None);
    }

    #[test]
    fn a_steady_drift_cancels_and_quads_of_a_start_count_once() {
        // 1 % more with each slice: A has the first and the last of them.
        let drifting: Vec<Quad> = (0..8).map(|n| quad(n, [10.0, 10.3], [10.1 * noise(n), 10.2 * noise(n)])).collect();
        let changes = judge(&drifting, &METRICS, 1.03);
        assert!((changes[0].ratio.value - 1.0).abs() < 0.002, "{changes:?}");
        let one_start: Vec<Quad> = drifting.iter().map(|quad| Quad { start: 1, ..quad.clone() }).collect();
        assert_eq!(judge(&one_start, &METRICS, 1.03)[0].ratio.n, 1);
    }

    #[test]
    fn what_was_not_measured_is_omitted() {
        let mut quads: Vec<Quad> = (0..8).map(|n| quad(n, [10.0; 2], [10.0; 2])).collect();
        for slice in quads.iter_mut().flat_map(|quad| &mut quad.slices) {
            slice.values.remove(&Metric::Cpu);
        }
        let changes = judge(&quads, &METRICS, 1.03);
        assert_eq!(changes.iter().map(|change| change.metric).collect::<Vec<_>>(), [Metric::Rate]);
        assert_eq!(judge(&[], &METRICS, 1.03), []);
    }
}
