//! Conditions on the result of a load, such as `p99<5ms`. The grammar is described in `parse`. `--fail-if` and
//! `--find-max` of `weir load`, `--objective` of `weir run`, suites and the search in `weir-load` use them. A condition
//! may name only the metrics that the table of metrics ([`crate::metric`]) reads from the record, so that its verdict can
//! be checked in the record. The module
//! does not know how a load runs, or what follows when a condition holds.

use std::fmt;

use schemars::JsonSchema;

use crate::load::{LoadResult, Quantiles};
use crate::metric::{Metric, Quantity, Source, Window};
use crate::text::{human_rate, human_us};

mod parse;
#[cfg(test)]
mod tests;

/// A statement about a load's result that holds or does not.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema)]
#[schemars(with = "String")]
pub struct Condition {
    /// What is compared.
    pub metric: ConditionMetric,
    /// How.
    pub is: Comparison,
    /// With what: microseconds, requests a second, requests, or per cent.
    pub bound: f64,
}

/// The number of a result that a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConditionMetric {
    /// Its entry in the table of metrics.
    pub metric: Metric,
    /// Of a time: which one; of everything else [`Timing::Latency`].
    pub of: Timing,
    /// A number of requests is compared as a share of those that were due, in per cent.
    pub share: bool,
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
    /// Sent to the response's first byte.
    FirstByte,
    /// Time to connect.
    Connect,
    /// Connected to the end of the TLS handshake.
    Handshake,
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
        let verb = if self.metric.quantity() == Quantity::Requests { "are" } else { "is" };
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
        if let Source::Times(number) = self.metric.entry().source {
            let times = self.of.in_result(result);
            return (times.count > 0).then(|| number(times));
        }
        let value = self.metric.value(&Window::of_load(result))?;
        let due = result.window.due as f64;
        if self.share { (due > 0.0).then(|| value / due * 100.0) } else { Some(value) }
    }

    /// A value of this metric for people, in three digits: `6.2 ms`, `62.3k/s`, `0.4 %`; counts in full.
    pub fn human(self, value: f64) -> String {
        match self.quantity() {
            Quantity::Latency => human_us(value),
            Quantity::Rate => human_rate(value),
            _ if self.share => {
                // Shares are often far below 1: three places, and two digits of what is smaller.
                let places = if value > 0.0 { (1.0 - value.log10().floor()).clamp(3.0, 12.0) } else { 3.0 };
                let unit = 10f64.powf(places);
                format!("{} %", (value * unit).round() / unit)
            }
            _ => format!("{value}"),
        }
    }

    fn quantity(self) -> Quantity {
        self.metric.entry().quantity
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
        if self.of != Timing::Latency
            && let Some((_, name)) = Timing::ALL.iter().find(|(of, _)| *of == self.of)
        {
            write!(f, "{name}.")?;
        }
        f.write_str(self.metric.entry().condition.unwrap_or_default())
    }
}
