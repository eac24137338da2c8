//! Conditions of `--fail-if`: a metric, the change for the worse from which on it is an alarm, and the outcome in a comparison.
//!
//! An alarm is a sure change for the worse whose estimate is at least as bad as the condition. A stricter rule was rejected, by which
//! the whole interval had to be as bad. With it `-5%` would never find a product that lost exactly 5 %, and would need twice the blocks
//! to find one that lost 10 %. A change that may be none is no alarm, however large it looks.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use weir_model::InputError;
use weir_model::metric::Metric;
use weir_model::record::CaseId;
use weir_model::text::{one_of, percent, suggestion};

use crate::{CaseChange, Change, Comparison, Verdict, sentences};

/// The hint for an argument that is no condition.
const WANTED: &str = "a metric and the change from which on it is an alarm, in per cent with its sign, such as \
                      'capacity -5%', 'p99 +10%' or 'cpu +5%'";

/// The largest rise allowed, in per cent: a larger one is a typing error.
const MOST: f64 = 100_000.0;

/// One `--fail-if 'capacity -5%'`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct FailIf {
    /// The metric.
    pub metric: Metric,
    /// The change as a share of the value before, negative where less is worse: -0.05.
    pub change: f64,
}

impl FailIf {
    /// True when a ratio (after over before) is at least this bad.
    pub fn reached(&self, ratio: f64) -> bool {
        let bound = 1.0 + self.change;
        if self.metric.higher_is_better() { ratio <= bound } else { ratio >= bound }
    }

    /// The size of the change, as a ratio above 1.
    pub(super) fn size(&self) -> f64 {
        let bound = 1.0 + self.change;
        bound.max(1.0 / bound)
    }
}

impl FromStr for FailIf {
    type Err = InputError;

    fn from_str(text: &str) -> Result<FailIf, InputError> {
        let text = text.trim();
        let Some(at) = text.find(['-', '+', '\u{2212}']) else {
            let what = if text.contains(['<', '>', '=']) {
                "compares with a bound; here two runs are compared"
            } else {
                "has no change with a sign"
            };
            return Err(error(format!("{text:?} {what}"), WANTED));
        };
        let (name, change) = (text[..at].trim(), &text[at..]);
        let metric = metric(name).ok_or_else(|| unknown(text, name))?;
        let name = metric.compared_name();
        let percent = percentage(change).ok_or_else(|| {
            let found = format!("in {text:?}: {change:?} is no change in per cent");
            error(found, if metric.higher_is_better() { "-5%" } else { "+5%" })
        })?;
        let for_the_worse =
            if metric.higher_is_better() { change.starts_with(['-', '\u{2212}']) } else { change.starts_with('+') };
        if !for_the_worse {
            let (right, more) = if metric.higher_is_better() { ('-', "more") } else { ('+', "less") };
            let digits = change.trim_start_matches(['-', '+', '\u{2212}']).trim();
            let found = format!("{text:?} would be an alarm when {name} gets better: {more} of it is");
            return Err(error(found, format!("{name} {right}{digits}")));
        }
        if metric.higher_is_better() && percent >= 100.0 {
            return Err(error(format!("in {text:?}: nothing can fall by {percent}%"), "less than 100%"));
        }
        let share = percent / 100.0;
        Ok(FailIf { metric, change: if metric.higher_is_better() { -share } else { share } })
    }
}

fn metric(name: &str) -> Option<Metric> {
    let name = if name == "p99.9" { "p999" } else { name };
    Metric::compared().find(|(_, compared)| compared.name == name).map(|(metric, _)| metric)
}

fn unknown(text: &str, name: &str) -> InputError {
    let names = || Metric::compared().map(|(_, compared)| compared.name);
    match name {
        "" => error(format!("{text:?} does not say what is compared"), WANTED),
        _ => error(format!("in {text:?}: {name:?} is no metric{}", suggestion(name, names())), one_of(names())),
    }
}

/// A percentage without its sign: plain digits with a point, and `%`.
fn percentage(change: &str) -> Option<f64> {
    let digits = change.strip_prefix(['-', '+', '\u{2212}'])?.trim().strip_suffix('%')?.trim_end();
    // Rust's own parser accepts `inf`, `nan`, signs and exponents, which are not valid here.
    let plain =
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    digits.parse::<f64>().ok().filter(|percent| plain && *percent <= MOST)
}

fn error(found: impl Into<String>, wanted: impl Into<String>) -> InputError {
    InputError::of("--fail-if", found, wanted)
}

impl fmt::Display for FailIf {
    /// The form that can be parsed again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.metric.higher_is_better() { '-' } else { '+' };
        // As a floating-point share, 7 per cent is not exactly 0.07.
        let percent = (self.change.abs() * 1e8).round() / 1e6;
        write!(f, "{} {sign}{percent}%", self.metric.compared_name())
    }
}

impl From<FailIf> for String {
    fn from(condition: FailIf) -> String {
        condition.to_string()
    }
}

/// The outcome of one condition.
#[derive(Debug, Clone, Serialize)]
pub struct ConditionOutcome {
    /// The condition as written.
    pub condition: FailIf,
    /// The number of changes that the condition applies to and that could be judged.
    pub claims: usize,
    /// The cases in which the condition surely holds.
    pub alarms: Vec<Alarm>,
    /// The cases that could not be judged.
    pub unjudged: Vec<NotJudged>,
    /// The size of change that these blocks could have missed, one sentence; `None` where a change as large as the
    /// condition's would have been found.
    pub blind: Option<String>,
}

/// A case in which a condition surely holds.
#[derive(Debug, Clone, Serialize)]
pub struct Alarm {
    /// The case.
    #[serde(flatten)]
    pub case: CaseId,
    /// The change, as text.
    pub message: String,
}

/// A case for which a condition could not be judged.
#[derive(Debug, Clone, Serialize)]
pub struct NotJudged {
    /// The case; `None` when no case has such a number.
    pub case: Option<CaseId>,
    /// The reason.
    pub why: String,
}

pub(super) fn evaluate(condition: FailIf, comparison: &Comparison) -> ConditionOutcome {
    let mut outcome = ConditionOutcome { condition, claims: 0, alarms: Vec::new(), unjudged: Vec::new(), blind: None };
    let products =
        comparison.refused.iter().any(|one| !one.machine) || comparison.cases.iter().any(|case| !case.machine);
    for refused in comparison.refused.iter().filter(|one| !one.machine || !products) {
        outcome.unjudged.push(NotJudged { case: Some(refused.case.clone()), why: refused.why.clone() });
    }
    let mut missed: Vec<f64> = Vec::new();
    for case in comparison.cases.iter().filter(|case| !case.machine) {
        let Some(change) = asked(case, condition.metric) else { continue };
        if change.verdict == Verdict::Unclaimable {
            outcome.unjudged.push(NotJudged { case: Some(case.case.clone()), why: sentences::unclaimable(change) });
            continue;
        }
        outcome.claims += 1;
        let alarm = change.verdict == Verdict::Sure && condition.reached(change.ratio.value);
        if alarm {
            outcome.alarms.push(Alarm { case: case.case.clone(), message: sentences::sentence(case, change) });
        } else if let Some(least) = change.detectable_ratio.filter(|least| *least > condition.size()) {
            missed.push(least);
        }
    }
    if outcome.claims == 0 && outcome.unjudged.is_empty() {
        outcome.unjudged.push(NotJudged {
            case: None,
            why: format!("no case that both runs have has a {}", condition.metric.compared_name()),
        });
    }
    outcome.blind = missed_changes(&missed, outcome.claims);
    outcome
}

/// The change that a condition refers to. A rate that a load looks for is a capacity.
fn asked(case: &CaseChange, metric: Metric) -> Option<&Change> {
    let of = |metric: Metric| case.changes.iter().find(|change| change.asked && change.metric == metric);
    of(metric).or_else(|| of(metric.entry().compared?.instead?))
}

fn missed_changes(missed: &[f64], claims: usize) -> Option<String> {
    let least = missed.iter().copied().fold(f64::INFINITY, f64::min);
    let most = missed.iter().copied().fold(0.0, f64::max);
    (!missed.is_empty()).then(|| {
        let sizes = if most > least * 1.005 {
            format!("{} to {}", percent(least - 1.0), percent(most - 1.0))
        } else {
            percent(least - 1.0)
        };
        let of =
            if missed.len() == claims { String::new() } else { format!(", in {} of {claims} numbers", missed.len()) };
        format!("the least change that these blocks show for sure is {sizes}{of}; more blocks show smaller ones")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        for (text, metric, change) in [
            ("capacity -5%", Metric::Rate, -0.05),
            ("rate -0.5%", Metric::SuccessfulShare, -0.005),
            ("p99 +10%", Metric::P99, 0.1),
            ("p999 +7%", Metric::P999, 0.07),
            ("cpu +0%", Metric::Cpu, 0.0),
            ("memory +250%", Metric::Rss, 2.5),
        ] {
            let condition: FailIf = text.parse().expect(text);
            assert_eq!(condition.metric, metric);
            assert!((condition.change - change).abs() < 1e-12, "{text}");
            assert_eq!(condition.to_string(), text);
        }
        for text in ["capacity-5%", " capacity  - 5 % ", "capacity \u{2212}5%"] {
            assert_eq!(text.parse::<FailIf>().expect(text).to_string(), "capacity -5%");
        }
        assert_eq!("p99.9 +5%".parse::<FailIf>().expect("p99.9").metric, Metric::P999);
    }

    #[test]
    fn each_mistake_has_its_own_response() {
        for (text, found, right) in [
            ("", "\"\" has no change with a sign", "such as 'capacity -5%'"),
            ("capacity 5%", "\"capacity 5%\" has no change with a sign", "such as 'capacity -5%'"),
            ("p99>5ms", "\"p99>5ms\" compares with a bound; here two runs are compared", "'p99 +10%'"),
            ("-5%", "\"-5%\" does not say what is compared", "a metric and the change"),
            ("capcity -5%", "\"capcity\" is no metric; did you mean \"capacity\"?", "one of capacity, rate, p50"),
            ("capacity -5", "\"-5\" is no change in per cent", "expected: -5%"),
            ("capacity --5%", "\"--5%\" is no change in per cent", "expected: -5%"),
            ("p99 +inf%", "\"+inf%\" is no change in per cent", "expected: +5%"),
            ("capacity +5%", "would be an alarm when capacity gets better", "expected: capacity -5%"),
            ("p99 -5%", "would be an alarm when p99 gets better", "expected: p99 +5%"),
            ("capacity -100%", "nothing can fall by 100%", "less than 100%"),
        ] {
            let message = text.parse::<FailIf>().expect_err(text).to_string();
            assert!(message.starts_with("--fail-if: "), "{message}");
            assert!(message.contains(found) && message.contains(right), "{text}: {message}");
        }
    }

    #[test]
    fn the_bound_itself_is_reached() {
        let falls: FailIf = "capacity -5%".parse().expect("read");
        assert!(falls.reached(0.95) && falls.reached(0.5) && !falls.reached(0.951) && !falls.reached(1.2));
        let rises: FailIf = "p99 +10%".parse().expect("read");
        assert!(rises.reached(1.2) && !rises.reached(1.09) && !rises.reached(0.5));
        assert!((falls.size() - 1.0 / 0.95).abs() < 1e-12 && (rises.size() - 1.1).abs() < 1e-12);
    }
}
