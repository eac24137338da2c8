//! What is read off a single trial. Knows one measurement at a time, nothing of blocks.

use serde::{Deserialize, Serialize};
use weir_model::load::ErrorKind;
use weir_model::record::{Measurement, Role, RoleUsage};

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

    /// Its value in one trial.
    pub(crate) fn value(self, measurement: &Measurement) -> Option<f64> {
        let load = measurement.load.as_ref()?;
        Some(match self {
            Metric::Rate => load.rate,
            Metric::P99 => load.latency.p99_us,
        })
    }

    /// In words, as in "ranked by".
    pub fn words(self) -> &'static str {
        match self {
            Metric::Rate => "right answers a second",
            Metric::P99 => "99th percentile of latency",
        }
    }
}

/// What the proxy's process tree used; `None` for the direct path.
pub(crate) fn proxy_usage(measurement: &Measurement) -> Option<&RoleUsage> {
    measurement.usage.iter().find(|usage| usage.role == Role::Proxy)
}

/// Answers, right and wrong ones, that the proxy gave in the window: what its CPU time is divided by.
pub(crate) fn answered(measurement: &Measurement) -> Option<f64> {
    let counts = &measurement.load.as_ref()?.window;
    let wrong = [ErrorKind::BadStatus, ErrorKind::WrongBody];
    let wrong: u64 = wrong.iter().filter_map(|kind| counts.errors.get(kind)).sum();
    let answered = counts.right_in_window + wrong;
    (answered > 0).then_some(answered as f64)
}

/// CPU microseconds of the proxy an answer: user, system.
pub(crate) fn cpu_us_per_answer(measurement: &Measurement) -> Option<(f64, f64)> {
    let usage = proxy_usage(measurement)?;
    let answered = answered(measurement)?;
    Some((usage.cpu_user_us as f64 / answered, usage.cpu_system_us as f64 / answered))
}
