//! Right responses while the product's route changes, and each change in a response.

use weir_model::change::ChangeOutcome;
use weir_model::record::{Finding, Severity};
use weir_model::text::counted;

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let outcomes = e.changes?.outcomes(e.load);
    let count = |is: fn(&ChangeOutcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    let window = &e.load.window;
    let mut found = Vec::new();
    if window.error_count() > 0 {
        let failed = counted(window.error_count(), "request");
        found.push(format!("{failed} of {} failed ({})", window.due, e.load.list_errors(&window.errors)));
    }
    let changes = counted(outcomes.len() as u64, "change");
    let (skipped, lost) =
        (count(|one| matches!(one, ChangeOutcome::Skipped(_))), count(|one| *one == ChangeOutcome::Lost));
    if skipped > 0 {
        found.push(format!("{skipped} of {changes} gave way to a later one"));
    }
    if lost > 0 {
        found.push(format!("no response showed {lost} of {changes}"));
    }
    if found.is_empty() {
        return None;
    }
    finding("reload", Severity::Warning, format!("while the route changed, {}", found.join("; ")))
}

#[cfg(test)]
mod tests {
    use weir_model::change::{ChangeRecord, ChangeSeen};
    use weir_model::load::ErrorKind;

    use crate::fixture::{Trial, good};

    fn message(spoil: impl Fn(&mut Trial)) -> Option<String> {
        let mut trial = good();
        trial.changes = Some(ChangeRecord { began_s: vec![1.0, 2.0, 3.0], ..ChangeRecord::default() });
        let seen = |number| ChangeSeen { number, first_s: 0.0, last_s: 1.0, responses: 9 };
        trial.load.changes = (1..=4).map(seen).collect();
        spoil(&mut trial);
        trial.check(super::check).map(|finding| finding.message)
    }

    #[test]
    fn a_failed_request_and_an_unseen_change_are_suspect() {
        assert_eq!(message(|_| ()), None);
        let failed = |t: &mut Trial| t.load.window.errors = [(ErrorKind::Reset, 2)].into();
        assert_eq!(message(failed).as_deref(), Some("while the route changed, 2 requests of 10000 failed (reset 2)"));
        let lost = message(|t| t.load.changes.truncate(2));
        assert_eq!(lost.as_deref(), Some("while the route changed, no response showed 2 of 3 changes"));
        let skipped = message(|t| t.load.changes.retain(|seen| seen.number != 2));
        assert_eq!(skipped.as_deref(), Some("while the route changed, 1 of 3 changes gave way to a later one"));
        let plain = |t: &mut Trial| {
            failed(t);
            t.changes = None;
        };
        assert_eq!(message(plain), None, "no change was asked for");
    }
}
