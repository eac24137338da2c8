//! What becomes of a `--fail-if`: alarms, and what could not be judged. Knows a comparison, nothing of exit statuses.
//!
//! An alarm is a change for the worse that is sure, and whose estimate is at least as bad as was said. Not: one whose whole
//! interval lies beyond what was said. A product that lost exactly 5 % would then never be found by `-5%`, and one that lost
//! 10 % only by twice the blocks; and a change that may be none at all is no alarm however large it looks.

use serde::Serialize;
use weir_model::record::CaseId;

use super::{CaseChange, Change, Comparison, FailIf, Metric, Verdict, words};
use weir_model::text::percent;

/// What became of one condition.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// As written.
    pub condition: FailIf,
    /// Numbers that it was asked of and could be judged by.
    pub claims: usize,
    /// Where it holds, surely.
    pub alarms: Vec<Alarm>,
    /// Where it could not be judged.
    pub unjudged: Vec<Unjudged>,
    /// Where a change of that size would probably have been missed, one sentence; `None` where it would have been found.
    pub blind: Option<String>,
}

/// A condition that surely holds.
#[derive(Debug, Clone, Serialize)]
pub struct Alarm {
    /// The case.
    #[serde(flatten)]
    pub case: CaseId,
    /// What changed, in words.
    pub message: String,
}

/// A case of which a condition says nothing.
#[derive(Debug, Clone, Serialize)]
pub struct Unjudged {
    /// The case; `None`: no case at all has such a number.
    pub case: Option<CaseId>,
    /// Why.
    pub why: String,
}

pub(super) fn judge(condition: FailIf, comparison: &Comparison) -> Judged {
    let mut judged = Judged { condition, claims: 0, alarms: Vec::new(), unjudged: Vec::new(), blind: None };
    let products =
        comparison.refused.iter().any(|one| !one.machine) || comparison.cases.iter().any(|case| !case.machine);
    for refused in comparison.refused.iter().filter(|one| !one.machine || !products) {
        judged.unjudged.push(Unjudged { case: Some(refused.case.clone()), why: refused.why.clone() });
    }
    let mut missed: Vec<f64> = Vec::new();
    for case in comparison.cases.iter().filter(|case| !case.machine) {
        let Some(change) = asked(case, condition.metric) else { continue };
        if change.verdict == Verdict::Unclaimable {
            judged.unjudged.push(Unjudged { case: Some(case.case.clone()), why: words::unclaimable(change) });
            continue;
        }
        judged.claims += 1;
        let alarm = change.verdict == Verdict::Sure && condition.reached(change.ratio.value);
        if alarm {
            judged.alarms.push(Alarm { case: case.case.clone(), message: words::sentence(case, change) });
        } else if let Some(least) = change.detectable_ratio.filter(|least| *least > condition.size()) {
            missed.push(least);
        }
    }
    if judged.claims == 0 && judged.unjudged.is_empty() {
        judged
            .unjudged
            .push(Unjudged { case: None, why: format!("no case that both runs have has a {}", condition.metric) });
    }
    judged.blind = blind(&missed, judged.claims);
    judged
}

/// The change that a condition asks about: a rate that is looked for goes by the name of capacity.
fn asked(case: &CaseChange, metric: Metric) -> Option<&Change> {
    let of = |metric: Metric| case.changes.iter().find(|change| change.asked && change.metric == metric);
    of(metric).or_else(|| if metric == Metric::Rate { of(Metric::Capacity) } else { None })
}

fn blind(missed: &[f64], claims: usize) -> Option<String> {
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
