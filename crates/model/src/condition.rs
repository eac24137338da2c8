//! Conditions on the result of a load, such as `p99<5ms`. The grammar is described in `parse`. `--fail-if` and
//! `--find-max` of `weir load`, `--objective` of `weir run`, suites and the search in `weir-load` use them. A condition
//! may name only the percentiles that the record holds, so that its verdict can be checked in the record. The module
//! does not know how a load runs, or what follows when a condition holds.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Counts, LoadResult, Quantiles};
use crate::text::{human_rate, human_us};

mod parse;
#[cfg(test)]
mod tests;

/// A statement about a load's result that holds or does not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Condition {
    /// What is compared.
    pub metric: ConditionMetric,
    /// How.
    pub is: Comparison,
    /// With what, in the metric's unit (see [`ConditionMetric`]).
    pub bound: f64,
}

/// Something that a result has one number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionMetric {
    /// A time: microseconds.
    Time(Timing, Statistic),
    /// Right answers a second.
    Rate,
    /// The number of requests with this outcome.
    Count(Outcome),
    /// The share of the requests that were due and had this outcome, in per cent.
    Share(Outcome),
}

/// Which time of a request or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timing {
    /// Due to answered.
    Latency,
    /// Sent to answered.
    Service,
    /// Due to sent.
    Lag,
    /// Sent to the answer's first byte.
    FirstByte,
    /// Time to connect.
    Connect,
    /// Connected to the end of the TLS handshake.
    Handshake,
}

/// A number that describes a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// The smallest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The standard deviation.
    Stdev,
    /// The largest.
    Max,
    /// The median.
    P50,
    /// The 75th percentile.
    P75,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The 99.99th percentile.
    P9999,
}

/// What became of requests that were due in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Requests without a right answer that were sent, or whose connection could not be opened.
    Errors,
    /// Never sent.
    Unsent,
}

/// How a value is compared with the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Condition {
    /// Reads one or more conditions, separated by commas.
    ///
    /// # Errors
    /// The first error, with what would be right.
    pub fn list(text: &str) -> Result<Vec<Condition>, crate::units::UnitError> {
        text.split(',').map(str::parse).collect()
    }

    /// The value that is compared; `None` when the result has none, because nothing was measured.
    pub fn value_of(&self, result: &LoadResult) -> Option<f64> {
        self.metric.value_of(result)
    }

    /// Whether the condition holds. Without a measured value it never does: neither `p99<5ms` nor `p99>5ms` holds if no
    /// request was due.
    pub fn holds(&self, result: &LoadResult) -> bool {
        self.value_of(result).is_some_and(|value| self.is.holds(value, self.bound))
    }

    /// For people, what was measured: `p99 is 6.2 ms`, `errors are 0.4 %`, `p99 was not measured`.
    pub fn finding(&self, result: &LoadResult) -> String {
        let verb = match self.metric {
            ConditionMetric::Count(_) | ConditionMetric::Share(_) => "are",
            ConditionMetric::Time(..) | ConditionMetric::Rate => "is",
        };
        let Some(value) = self.value_of(result) else {
            return format!("{} was not measured", self.metric);
        };
        let mut shown = self.metric.human(value);
        // "p99 is 5 ms" does not say whether p99<5ms holds, so more digits are shown.
        if value != self.bound && shown == self.metric.human(self.bound) {
            shown = Condition { bound: value, ..*self }.bound_text();
        }
        format!("{} {verb} {shown}", self.metric)
    }
}

impl ConditionMetric {
    /// The value in a result, in the metric's unit; `None` when nothing was measured.
    pub fn value_of(self, result: &LoadResult) -> Option<f64> {
        match self {
            ConditionMetric::Time(of, statistic) => {
                let times = of.in_result(result);
                (times.count > 0).then(|| statistic.of(times))
            }
            ConditionMetric::Rate => (result.window_s > 0.0).then_some(result.rate),
            ConditionMetric::Count(outcome) => Some(outcome.count(&result.window) as f64),
            ConditionMetric::Share(outcome) => {
                let due = result.window.due;
                (due > 0).then(|| outcome.count(&result.window) as f64 / due as f64 * 100.0)
            }
        }
    }

    /// A value of this metric for people, in three digits: `6.2 ms`, `62.3k/s`, `0.4 %`; counts in full.
    pub fn human(self, value: f64) -> String {
        match self {
            ConditionMetric::Time(..) => human_us(value),
            ConditionMetric::Rate => human_rate(value),
            ConditionMetric::Count(_) => format!("{value}"),
            ConditionMetric::Share(_) => {
                // Shares are often far below 1: three places, and two digits of what is smaller.
                let places = if value > 0.0 { (1.0 - value.log10().floor()).clamp(3.0, 12.0) } else { 3.0 };
                let unit = 10f64.powf(places);
                format!("{} %", (value * unit).round() / unit)
            }
        }
    }
}

impl Timing {
    /// All, as they are named.
    pub const ALL: [(Timing, &str); 6] = [
        (Timing::Latency, "latency"),
        (Timing::Service, "service"),
        (Timing::Lag, "lag"),
        (Timing::FirstByte, "first-byte"),
        (Timing::Connect, "connect"),
        (Timing::Handshake, "handshake"),
    ];

    /// The distribution in a result.
    pub fn in_result(self, result: &LoadResult) -> &Quantiles {
        match self {
            Timing::Latency => &result.latency,
            Timing::Service => &result.service,
            Timing::Lag => &result.lag,
            Timing::FirstByte => &result.first_byte,
            Timing::Connect => &result.connect,
            Timing::Handshake => &result.handshake,
        }
    }
}

impl Statistic {
    /// All, as they are named.
    pub const ALL: [(Statistic, &str); 11] = [
        (Statistic::Min, "min"),
        (Statistic::Mean, "mean"),
        (Statistic::Stdev, "stdev"),
        (Statistic::Max, "max"),
        (Statistic::P50, "p50"),
        (Statistic::P75, "p75"),
        (Statistic::P90, "p90"),
        (Statistic::P95, "p95"),
        (Statistic::P99, "p99"),
        (Statistic::P999, "p99.9"),
        (Statistic::P9999, "p99.99"),
    ];

    /// The number of a distribution: microseconds.
    pub fn of(self, times: &Quantiles) -> f64 {
        match self {
            Statistic::Min => times.min_us,
            Statistic::Mean => times.mean_us,
            Statistic::Stdev => times.stdev_us,
            Statistic::Max => times.max_us,
            Statistic::P50 => times.p50_us,
            Statistic::P75 => times.p75_us,
            Statistic::P90 => times.p90_us,
            Statistic::P95 => times.p95_us,
            Statistic::P99 => times.p99_us,
            Statistic::P999 => times.p999_us,
            Statistic::P9999 => times.p9999_us,
        }
    }
}

impl Outcome {
    /// All, as they are named.
    pub const ALL: [(Outcome, &str); 2] = [(Outcome::Errors, "errors"), (Outcome::Unsent, "unsent")];

    fn count(self, counts: &Counts) -> u64 {
        match self {
            Outcome::Errors => counts.error_count(),
            Outcome::Unsent => counts.unsent,
        }
    }
}

impl Comparison {
    /// Whether the comparison of `value` with `bound` is true.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::Less => value < bound,
            Comparison::AtMost => value <= bound,
            Comparison::More => value > bound,
            Comparison::AtLeast => value >= bound,
        }
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::More => ">",
            Comparison::AtLeast => ">=",
        }
    }
}

impl fmt::Display for ConditionMetric {
    /// As it is written: `p99`, `lag.p99.9`, `errors`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionMetric::Time(of, statistic) => {
                if *of != Timing::Latency {
                    write!(f, "{}.", name(&Timing::ALL, of))?;
                }
                f.write_str(name(&Statistic::ALL, statistic))
            }
            ConditionMetric::Rate => f.write_str("rate"),
            ConditionMetric::Count(outcome) | ConditionMetric::Share(outcome) => {
                f.write_str(name(&Outcome::ALL, outcome))
            }
        }
    }
}

/// The name of a value in its table; every table lists all values.
fn name<T: PartialEq>(table: &[(T, &'static str)], wanted: &T) -> &'static str {
    table.iter().find(|(value, _)| value == wanted).map_or("", |(_, name)| *name)
}
