//! What the slices of a duet say: how many times B is A, how sure that is, and whether it is enough. A pure function of the slices, so
//! that recorded ones can be judged again in any number and order. [`super`] calls it after each pair.
//!
//! The unit of a claim is a *start*: both products are started anew again and again, because two processes of one program differ
//! by where the kernel put them, for as long as they live. A start has one pair of slices or several.

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

/// Slices of both products that were measured together, in turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// 1-based number of the start.
    pub start: u32,
    /// One of each, the one with the first turn before.
    pub slices: Vec<Slice>,
}

impl Pair {
    /// The logarithm of B over A.
    fn log_ratio(&self, metric: Metric) -> Option<f64> {
        let log = |who| self.value(metric, who).map(f64::ln).filter(|log| log.is_finite());
        Some(log(Who::B)? - log(Who::A)?)
    }

    /// A number of one of them.
    pub fn value(&self, metric: Metric, who: Who) -> Option<f64> {
        self.slices.iter().find(|slice| slice.who == who)?.values.get(&metric).copied()
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

/// What the pairs say of each metric that was measured, in this order. `find` is the ratio that matters, above 1.
pub fn judge(pairs: &[Pair], metrics: &[Metric], find: f64) -> Vec<Change> {
    // All claims together keep the level (Bonferroni).
    let level = 1.0 - (1.0 - LEVEL) / metrics.len().max(1) as f64;
    metrics.iter().filter_map(|metric| change(pairs, *metric, level, find)).collect()
}

fn change(pairs: &[Pair], metric: Metric, level: f64, find: f64) -> Option<Change> {
    let mut starts: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for pair in pairs {
        starts.entry(pair.start).or_default().extend(pair.log_ratio(metric));
    }
    let means: Vec<f64> = starts.values().map(|logs| logs.iter().sum::<f64>() / logs.len() as f64).collect();
    let ratio = anytime_ratio(&means, level)?;
    let of = |who| median(&pairs.iter().filter_map(|pair| pair.value(metric, who)).collect::<Vec<_>>());
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

    fn pair(start: u32, a: f64, b: f64) -> Pair {
        let slice = |who, cpu: f64| Slice { who, values: [(Metric::Cpu, cpu), (Metric::Rate, 1e6 / cpu)].into() };
        Pair { start, slices: vec![slice(Who::B, b), slice(Who::A, a)] }
    }

    const METRICS: [Metric; 2] = [Metric::Cpu, Metric::Rate];

    /// Noise of about one per cent, the same every time.
    fn noise(n: u32) -> f64 {
        1.0 + 0.01 * (f64::from(n * 7 % 5) - 2.0) / 2.0
    }

    fn judged(starts: u32, ratio: f64) -> Vec<Change> {
        let pairs: Vec<Pair> = (0..starts).map(|n| pair(n, 10.0, 10.0 * ratio * noise(n))).collect();
        judge(&pairs, &METRICS, 1.03)
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
    fn pairs_of_a_start_count_once() {
        let pairs: Vec<Pair> = (0..8).map(|n| pair(n, 10.0, 10.0 * noise(n))).collect();
        assert_eq!(judge(&pairs, &METRICS, 1.03)[0].ratio.n, 8);
        let one_start: Vec<Pair> = pairs.iter().map(|pair| Pair { start: 1, ..pair.clone() }).collect();
        assert_eq!(judge(&one_start, &METRICS, 1.03)[0].ratio.n, 1);
    }

    #[test]
    fn what_was_not_measured_is_omitted() {
        let mut pairs: Vec<Pair> = (0..8).map(|n| pair(n, 10.0, 10.0)).collect();
        for slice in pairs.iter_mut().flat_map(|pair| &mut pair.slices) {
            slice.values.remove(&Metric::Cpu);
        }
        let changes = judge(&pairs, &METRICS, 1.03);
        assert_eq!(changes.iter().map(|change| change.metric).collect::<Vec<_>>(), [Metric::Rate]);
        assert_eq!(judge(&[], &METRICS, 1.03), []);
    }
}
