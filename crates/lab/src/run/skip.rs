//! Decides when a trial is not tried: its rate is not known, or similar trials failed repeatedly. [`super::Run`] calls it before
//! each trial.
//!
//! A pure function of the measurements so far. A trial that is not tried gets an error row with the reason.

use weir_model::record::{CaseId, Measurement, TrialError};
use weir_model::suite::{Load, LoadKind, RateBase, RateSpec};

/// How many trials may fail in a row before their load began, until weir stops trying. One failure may be chance.
const FAILURES_IN_A_ROW: usize = 2;

/// Stages at which an entry fails for every workload, because it does not start.
const OF_THE_ENTRY: [&str; 4] = ["render", "check", "start", "ready"];

/// Stages at which an entry may fail because of the workload.
const OF_THE_WORKLOAD: [&str; 5] = ["render", "check", "start", "ready", "verify"];

/// Stages of error rows for trials that were not tried. They do not count as failures.
const NOT_TRIED: [&str; 2] = ["not-tried", "rate"];

/// The error row's reason, or `None` when the trial should be tried.
pub fn reason(measured: &[Measurement], case: &CaseId, load: &Load, rate: Option<f64>) -> Option<TrialError> {
    no_rate(load, rate).or_else(|| {
        let of_entry = |m: &Measurement| m.case.product == case.product && m.case.profile == case.profile;
        let of_both = |m: &Measurement| of_entry(m) && m.case.workload == case.workload;
        let last =
            failing(measured, of_entry, &OF_THE_ENTRY).or_else(|| failing(measured, of_both, &OF_THE_WORKLOAD))?;
        let TrialError { stage, message, .. } = last;
        Some(TrialError {
            stage: "not-tried".to_owned(),
            message: format!("not tried again after failing twice; the last time at \"{stage}\": {message}"),
            ..last.clone()
        })
    })
}

fn no_rate(load: &Load, rate: Option<f64>) -> Option<TrialError> {
    let (LoadKind::Open { rate: RateSpec::Share { of, load: base, .. }, .. }, None) = (&load.kind, rate) else {
        return None;
    };
    let whose = match of {
        RateBase::Slowest => "no product",
        RateBase::Own => "this product never",
        RateBase::Direct => "the direct path never",
    };
    let message = format!("{whose} carried the load {base}, of which this one's rate is a share");
    Some(TrialError::new("rate", message, "the error rows and findings of that load", "see why they failed"))
}

/// The last error, if the last [`FAILURES_IN_A_ROW`] tried trials all failed at one of these stages.
fn failing<'a>(
    measured: &'a [Measurement],
    mine: impl Fn(&Measurement) -> bool,
    stages: &[&str],
) -> Option<&'a TrialError> {
    let stage_in =
        |m: &Measurement, stages: &[&str]| m.error.as_ref().is_some_and(|e| stages.contains(&e.stage.as_str()));
    let tried = measured.iter().rev().filter(|m| mine(m) && !stage_in(m, &NOT_TRIED));
    let last: Vec<&Measurement> = tried.take(FAILURES_IN_A_ROW).collect();
    let all = last.len() == FAILURES_IN_A_ROW && last.iter().all(|m| stage_in(m, stages));
    if all { last.first()?.error.as_ref() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{case, failed, load_share, measured};

    fn closed() -> Load {
        Load { kind: LoadKind::Closed, ..load_share("capacity", RateBase::Own, 0.5, "") }
    }

    fn reason_for(rows: &[Measurement], product: &str, workload: &str) -> Option<TrialError> {
        reason(rows, &case(product, workload, "capacity"), &closed(), None)
    }

    #[test]
    fn a_product_that_fails_to_start_twice_is_not_tried_again() {
        let mut rows = vec![failed(1, "a", "w", "ready", "slow")];
        assert_eq!(reason_for(&rows, "a", "w"), None, "once may be chance");
        rows.push(measured(2, "b", "w", 9.0));
        rows.push(failed(3, "a", "v", "start", "no binary"));
        let said = reason_for(&rows, "a", "other").expect("twice, whatever was asked");
        assert_eq!((said.stage.as_str(), said.evidence.as_str(), said.remedy.as_str()), ("not-tried", "seen", "mend"));
        assert_eq!(said.message, "not tried again after failing twice; the last time at \"start\": no binary");
        assert_eq!(reason_for(&rows, "b", "w"), None, "another product");
    }

    #[test]
    fn what_was_not_tried_says_the_same_again_and_again_and_never_nests() {
        let mut rows = vec![failed(1, "a", "w", "ready", "slow"), failed(2, "a", "w", "ready", "slow")];
        let first = reason_for(&rows, "a", "w").expect("twice");
        for trial in 3..9 {
            let again = reason_for(&rows, "a", "w").expect("still");
            assert_eq!(again, first);
            rows.push(failed(trial, "a", "w", &again.stage, &again.message));
            rows.push(failed(trial + 100, "a", "w", "rate", "none"));
        }
    }

    #[test]
    fn a_success_or_a_failure_under_load_resets_the_count() {
        for between in [measured(2, "a", "w", 9.0), failed(2, "a", "w", "load", "died")] {
            let rows = [failed(1, "a", "w", "ready", "slow"), between, failed(3, "a", "w", "ready", "slow")];
            assert_eq!(reason_for(&rows, "a", "w"), None);
        }
    }

    #[test]
    fn one_workload_with_wrong_responses_does_not_skip_the_others() {
        let rows = [failed(1, "a", "w", "verify", "wrong"), failed(2, "a", "w", "verify", "wrong")];
        assert!(reason_for(&rows, "a", "w").is_some());
        assert_eq!(reason_for(&rows, "a", "v"), None);
    }

    #[test]
    fn a_share_of_nothing_is_not_tried() {
        let own = load_share("half", RateBase::Own, 0.5, "capacity");
        let said = reason(&[], &case("a", "w", "capacity"), &own, None).expect("no rate");
        assert_eq!(said.stage, "rate");
        assert_eq!(said.message, "this product never carried the load capacity, of which this one's rate is a share");
        let slowest = load_share("half", RateBase::Slowest, 0.5, "capacity");
        let said = reason(&[], &case("a", "w", "capacity"), &slowest, None).expect("no rate");
        assert!(said.message.starts_with("no product carried"), "{}", said.message);
        assert_eq!(reason(&[], &case("a", "w", "capacity"), &slowest, Some(5.0)), None);
    }
}
