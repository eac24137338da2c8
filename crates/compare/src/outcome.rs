//! The outcome of a `--fail-if`: alarms, and what could not be judged. `weir compare` takes its exit status from it.
//!
//! An alarm is a sure change for the worse whose estimate is at least as bad as the condition. The whole interval need not be: a
//! product that lost exactly 5 % would then never be found by `-5%`, and one that lost 10 % only with twice the blocks. And a change
//! that may be none is no alarm however large it looks.

use serde::Serialize;
use weir_model::record::CaseId;

use super::{CaseChange, Change, Comparison, FailIf, Metric, Verdict, sentences};
use weir_model::text::percent;

/// The outcome of one condition.
#[derive(Debug, Clone, Serialize)]
pub struct ConditionOutcome {
    /// As written.
    pub condition: FailIf,
    /// Numbers that it applies to and that could be judged.
    pub claims: usize,
    /// Where it surely holds.
    pub alarms: Vec<Alarm>,
    /// Where it could not be judged.
    pub unjudged: Vec<NotJudged>,
    /// The changes that these blocks could have missed, one sentence; `None` where a change of that size would have been found.
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

/// A case that a condition could not be judged on.
#[derive(Debug, Clone, Serialize)]
pub struct NotJudged {
    /// The case; `None`: no case at all has such a number.
    pub case: Option<CaseId>,
    /// Why.
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
        outcome
            .unjudged
            .push(NotJudged { case: None, why: format!("no case that both runs have has a {}", condition.metric) });
    }
    outcome.blind = missed_changes(&missed, outcome.claims);
    outcome
}

/// The change that a condition asks about. A rate that a load looks for is a capacity.
fn asked(case: &CaseChange, metric: Metric) -> Option<&Change> {
    let of = |metric: Metric| case.changes.iter().find(|change| change.asked && change.metric == metric);
    of(metric).or_else(|| if metric == Metric::Rate { of(Metric::Capacity) } else { None })
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
