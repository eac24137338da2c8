//! The outcome of each `--fail-if` condition: alarms, and cases that could not be judged. `lib` calls it, and
//! `weir compare` derives its exit status from it.
//!
//! An alarm is a sure change for the worse whose estimate is at least as bad as the condition. A stricter rule was
//! rejected: if the whole interval had to be as bad, `-5%` would never find a product that lost exactly 5 %, and would
//! find one that lost 10 % only with twice the blocks. A change that may be none is no alarm, however large it looks.

use serde::Serialize;
use weir_model::metric::Metric;
use weir_model::record::CaseId;

use super::{CaseChange, Change, Comparison, FailIf, Verdict, sentences};
use weir_model::text::percent;

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
