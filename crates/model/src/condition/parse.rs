//! Reads and writes conditions as text. Flags and suite files call it through `FromStr` and `Display`.

use std::fmt;
use std::str::FromStr;

use super::{Comparison, Condition, ConditionMetric, Outcome, Statistic, Timing};
use crate::text::{one_of, suggestion};
use crate::units::{HumanDuration, Rate, UnitError};

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
/// time (`5ms`), and that of the rate of right answers is a rate (`5000`, `20k/s`). The bound of `errors` (sent, without a
/// right answer) and `unsent` (due, never sent) is a number (`errors>10`) or a share of what was due (`errors<0.1%`).
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

/// What a metric's name says, before its bound tells a count from a share.
enum Named {
    Time(Timing, Statistic),
    Rate,
    Requests(Outcome),
}

fn named(text: &str) -> Result<Named, UnitError> {
    if text == "rate" {
        return Ok(Named::Rate);
    }
    if let Some(became) = find(&Outcome::ALL, text) {
        return Ok(Named::Requests(became));
    }
    if let Some(statistic) = find(&Statistic::ALL, text) {
        return Ok(Named::Time(Timing::Latency, statistic));
    }
    // Names of percentiles have a point too, so only the first one divides.
    if let Some((of, statistic)) = text.split_once('.')
        && let (Some(of), Some(statistic)) = (find(&Timing::ALL, of), find(&Statistic::ALL, statistic))
    {
        return Ok(Named::Time(of, statistic));
    }
    Err(unknown(text))
}

fn find<T: Copy>(table: &[(T, &str)], wanted: &str) -> Option<T> {
    table.iter().find(|(_, name)| *name == wanted).map(|(value, _)| *value)
}

/// The error for an unknown metric: a percentile that is not recorded, half a name, or a near miss.
fn unknown(text: &str) -> UnitError {
    let statistics = || Statistic::ALL.iter().map(|(_, name)| *name);
    let ofs = || Timing::ALL.iter().map(|(_, name)| *name);
    if find(&Timing::ALL, text).is_some() {
        return error(
            format!("{text:?} is many times; one number of them is needed"),
            &format!("{text}.p99, or another {}", one_of(statistics())),
        );
    }
    let (of, last) = match text.split_once(['.', ' ']) {
        Some((of, last)) if find(&Timing::ALL, of).is_some() => (Some(of), last.trim()),
        _ => (None, text),
    };
    let percentile =
        last.strip_prefix(['p', 'P']).is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    if percentile && find(&Statistic::ALL, last).is_none() {
        let percentiles = statistics().filter(|name| name.starts_with('p'));
        return error(format!("{last:?} is no percentile that is recorded"), &one_of(percentiles));
    }
    let near = match (of, last) {
        (Some(of), last) if find(&Statistic::ALL, last).is_some() => format!("; did you mean \"{of}.{last}\"?"),
        (_, "median") => "; did you mean \"p50\"?".to_owned(),
        (_, "avg" | "average") => "; did you mean \"mean\"?".to_owned(),
        (Some(_), last) => suggestion(last, statistics()),
        (None, text) => {
            let whole = ofs().flat_map(|of| statistics().map(move |name| format!("{of}.{name}")));
            let single =
                statistics().chain(["rate"]).chain(Outcome::ALL.iter().map(|(_, name)| *name)).map(str::to_owned);
            let names: Vec<String> = single.chain(whole).collect();
            suggestion(text, names.iter().map(String::as_str))
        }
    };
    let wanted = format!(
        "rate, errors, unsent, or a time: {}; of the latency, or of another time written before it with a point ({})",
        statistics().collect::<Vec<_>>().join(", "),
        ofs().skip(1).map(|of| format!("{of}.p99")).collect::<Vec<_>>().join(", "),
    );
    error(format!("{text:?} is no metric{near}"), &wanted)
}

/// The bound in the metric's unit.
fn measure(named: Named, bound: &str) -> Result<(ConditionMetric, f64), UnitError> {
    match named {
        Named::Time(of, statistic) => {
            let time: HumanDuration = bound.parse()?;
            Ok((ConditionMetric::Time(of, statistic), time.0.as_nanos() as f64 / 1e3))
        }
        Named::Rate => Ok((ConditionMetric::Rate, bound.parse::<Rate>()?.per_second())),
        Named::Requests(became) => match bound.strip_suffix('%') {
            Some(percent) => Ok((ConditionMetric::Share(became), percentage(bound, percent.trim_end())?)),
            None => {
                let whole = bound.bytes().all(|b| b.is_ascii_digit()).then(|| bound.parse::<u32>().ok()).flatten();
                let count = whole.ok_or_else(|| error(format!("{bound:?} is no number of requests"), COUNT_WANTED))?;
                Ok((ConditionMetric::Count(became), f64::from(count)))
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
        match self.metric {
            ConditionMetric::Time(..) => {
                let nanos = (self.bound * 1e3).round() as u64;
                HumanDuration(std::time::Duration::from_nanos(nanos)).to_string()
            }
            ConditionMetric::Rate => {
                Rate::new(self.bound).map_or_else(|_| self.bound.to_string(), |rate| rate.to_string())
            }
            ConditionMetric::Count(_) => self.bound.to_string(),
            ConditionMetric::Share(_) => format!("{}%", self.bound),
        }
    }
}

impl TryFrom<String> for Condition {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Condition, UnitError> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> String {
        condition.to_string()
    }
}
