//! Reads and writes conditions as text. Flags and suite files call it through `FromStr` and `Display`.

use std::fmt;
use std::str::FromStr;

use super::{Comparison, Condition, ConditionMetric, Timing};
use crate::metric::{Metric, Quantity};
use crate::text::{one_of, suggestion};
use crate::units::{HumanDuration, Rate, UnitError, serde_as_text};

/// Expected where the text is not a condition.
const WANTED: &str = "a metric, one of < <= > >=, and a bound, such as p99<5ms, errors<0.1% or rate>=20k/s";

/// Expected as the bound of a count.
const COUNT_WANTED: &str = "a whole number such as 10, or a share of the requests that were due such as 0.1%";

/// A condition is a metric, a comparison and a bound, with or without blanks between them:
///
/// ```text
/// condition  = metric ("<" | "<=" | ">" | ">=") bound
/// metric     = [of "."] time | "rate" | "errors" | "unsent"
/// of         = "latency" | "service" | "lag" | "first-byte" | "connect" | "handshake"
/// time       = "min" | "mean" | "stdev" | "max" | "p50" | "p75" | "p90" | "p95" | "p99" | "p99.9" | "p99.99"
/// ```
///
/// A time without `of` is one of the latency (due to answered): `p99<5ms` is `latency.p99<5ms`. The bound of a time is a
/// time (`5ms`), and that of the rate of successful responses is a rate (`5000`, `20k/s`). The bound of `errors` (sent, without a
/// successful response) and `unsent` (due, never sent) is a number (`errors>10`) or a share of what was due (`errors<0.1%`).
/// Commas separate several conditions: `p99<5ms, errors<0.1%`.
impl FromStr for Condition {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Condition, UnitError> {
        let text = text.trim();
        let wrong = |found: String| Err(error(found, WANTED));
        if text.is_empty() {
            return wrong("nothing where a condition should be".to_owned());
        }
        let Some(at) = text.find(['<', '>', '=', '≤', '≥']) else {
            return wrong(format!("{text:?} compares nothing"));
        };
        let (metric, rest) = (text[..at].trim(), &text[at..]);
        let Some((is, bound)) = comparison(rest) else {
            return wrong(format!("{text:?} has no comparison that is known"));
        };
        if metric.is_empty() {
            return wrong(format!("{text:?} does not say what is compared"));
        }
        if bound.is_empty() {
            return wrong(format!("{text:?} does not say with what {metric} is compared"));
        }
        let named = named(metric)?;
        let (metric, bound) = measure(named, bound)
            .map_err(|UnitError { found, wanted }| error(format!("in {text:?}: {found}"), &wanted))?;
        Ok(Condition { metric, is, bound })
    }
}

/// The comparison at the beginning of a text, and the rest of the text.
fn comparison(text: &str) -> Option<(Comparison, &str)> {
    [
        ("<=", Comparison::AtMost),
        (">=", Comparison::AtLeast),
        ("≤", Comparison::AtMost),
        ("≥", Comparison::AtLeast),
        ("<", Comparison::Less),
        (">", Comparison::More),
    ]
    .into_iter()
    .find_map(|(sign, is)| Some((is, text.strip_prefix(sign)?.trim())))
}

/// The metric of that name, and which times it is of.
fn named(text: &str) -> Result<(Timing, Metric), UnitError> {
    if let Some(metric) = metric(text) {
        return Ok((Timing::Latency, metric));
    }
    // Names of percentiles have a point too, so only the first one divides.
    if let Some((of, number)) = text.split_once('.')
        && let (Some(of), Some(metric)) = (timing(of), metric(number).filter(|metric| metric.is_time()))
    {
        return Ok((of, metric));
    }
    Err(unknown(text))
}

fn metric(name: &str) -> Option<Metric> {
    Metric::ALL.iter().copied().find(|metric| metric.entry().condition == Some(name))
}

fn timing(name: &str) -> Option<Timing> {
    Timing::ALL.iter().find(|(_, known)| *known == name).map(|(timing, _)| *timing)
}

/// The names of all metrics in conditions: numbers of times, or the others.
fn names(times: bool) -> impl Iterator<Item = &'static str> {
    let metrics = Metric::ALL.iter().filter(move |metric| metric.is_time() == times);
    metrics.filter_map(|metric| metric.entry().condition)
}

/// The error for an unknown metric: a percentile that is not recorded, half a name, or a near miss.
fn unknown(text: &str) -> UnitError {
    let ofs = || Timing::ALL.iter().map(|(_, name)| *name);
    let time = |name: &str| metric(name).is_some_and(Metric::is_time);
    if timing(text).is_some() {
        return error(
            format!("{text:?} is many times; one number of them is needed"),
            &format!("{text}.p99, or another {}", one_of(names(true))),
        );
    }
    let (of, last) = match text.split_once(['.', ' ']) {
        Some((of, last)) if timing(of).is_some() => (Some(of), last.trim()),
        _ => (None, text),
    };
    let percentile =
        last.strip_prefix(['p', 'P']).is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    if percentile && !time(last) {
        let percentiles = names(true).filter(|name| name.starts_with('p'));
        return error(format!("{last:?} is no percentile that is recorded"), &one_of(percentiles));
    }
    let near = match (of, last) {
        (Some(of), last) if time(last) => format!("; did you mean \"{of}.{last}\"?"),
        (_, "median") => "; did you mean \"p50\"?".to_owned(),
        (_, "avg" | "average") => "; did you mean \"mean\"?".to_owned(),
        (Some(_), last) => suggestion(last, names(true)),
        (None, text) => {
            let whole = ofs().flat_map(|of| names(true).map(move |name| format!("{of}.{name}")));
            let all: Vec<String> = names(true).chain(names(false)).map(str::to_owned).chain(whole).collect();
            suggestion(text, all.iter().map(String::as_str))
        }
    };
    let wanted = format!(
        "{}, or a time: {}; of the latency, or of another time written before it with a point ({})",
        names(false).collect::<Vec<_>>().join(", "),
        names(true).collect::<Vec<_>>().join(", "),
        ofs().skip(1).map(|of| format!("{of}.p99")).collect::<Vec<_>>().join(", "),
    );
    error(format!("{text:?} is no metric{near}"), &wanted)
}

/// The bound in the metric's unit.
fn measure((of, metric): (Timing, Metric), bound: &str) -> Result<(ConditionMetric, f64), UnitError> {
    let whole = ConditionMetric { metric, of, share: false };
    match metric.entry().quantity {
        Quantity::Latency => Ok((whole, bound.parse::<HumanDuration>()?.0.as_nanos() as f64 / 1e3)),
        Quantity::Rate => Ok((whole, bound.parse::<Rate>()?.per_second())),
        _ => match bound.strip_suffix('%') {
            Some(percent) => Ok((ConditionMetric { share: true, ..whole }, percentage(bound, percent.trim_end())?)),
            None => {
                let number = bound.bytes().all(|b| b.is_ascii_digit()).then(|| bound.parse::<u32>().ok()).flatten();
                let count = number.ok_or_else(|| error(format!("{bound:?} is no number of requests"), COUNT_WANTED))?;
                Ok((whole, f64::from(count)))
            }
        },
    }
}

fn percentage(bound: &str, digits: &str) -> Result<f64, UnitError> {
    // Rust's own parser takes `inf`, `nan`, signs and exponents; none of them is how a share is written.
    let plain =
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent = digits.parse::<f64>().ok().filter(|percent| plain && *percent <= 100.0);
    percent.ok_or_else(|| error(format!("{bound:?} is no share"), COUNT_WANTED))
}

fn error(found: String, wanted: &str) -> UnitError {
    UnitError { found, wanted: wanted.to_owned() }
}

impl fmt::Display for Condition {
    /// As it is read, without blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.metric, self.is.as_str(), self.bound_text())
    }
}

impl Condition {
    /// The bound as it is read.
    pub(super) fn bound_text(&self) -> String {
        match self.metric.quantity() {
            Quantity::Latency => {
                let nanos = (self.bound * 1e3).round() as u64;
                HumanDuration(std::time::Duration::from_nanos(nanos)).to_string()
            }
            Quantity::Rate => Rate::new(self.bound).map_or_else(|_| self.bound.to_string(), |rate| rate.to_string()),
            _ if self.metric.share => format!("{}%", self.bound),
            _ => self.bound.to_string(),
        }
    }
}

serde_as_text!(Condition);
