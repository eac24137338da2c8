//! An open load that was not carried.

use weir_model::record::{Finding, Severity};
use weir_model::text::human_rate;

use super::{Evidence, RateIntent, finding, finding_with, percent};

/// Per cent of what was due.
const NOT_CARRIED: f64 = 2.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let offered = e.load.offered_rate?;
    let window = &e.load.window;
    let behind = window.due.saturating_sub(window.successful_in_window);
    let share = percent(behind as f64, window.due as f64);
    if share < NOT_CARRIED {
        return if e.rate_intent == RateIntent::TooMuch { carried(offered) } else { None };
    }
    let message = format!(
        "{share:.1} % of the {} offered was not answered rightly within the window ({} never sent): \
         the latencies are those of a growing queue",
        human_rate(offered),
        window.unsent
    );
    match e.rate_intent {
        RateIntent::Carried => finding("offered-load", Severity::Warning, message),
        RateIntent::Either | RateIntent::TooMuch => finding_with(
            "offered-load",
            Severity::Note,
            message,
            "nothing: the load goes beyond what is carried on purpose",
        ),
    }
}

fn carried(offered: f64) -> Option<Finding> {
    let message = format!(
        "the {} offered were meant to be more than can be carried, and were carried: the rate is what was offered",
        human_rate(offered)
    );
    finding_with("not-saturated", Severity::Note, message, "offer more, or read this as: carries at least that rate")
}

#[cfg(test)]
mod tests {
    use crate::RateIntent;
    use crate::fixture::good;
    use weir_model::record::Severity;

    #[test]
    fn fires_only_for_open_loads_that_fell_behind() {
        let mut trial = good();
        trial.load.window.successful_in_window = 9_000;
        assert_eq!(trial.check(super::check), None, "closed loads offer nothing");
        trial.load.offered_rate = Some(10_000.0);
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.load.window.successful_in_window = 9_900;
        assert_eq!(trial.check(super::check), None);
    }

    #[test]
    fn falling_behind_is_only_noted_where_it_is_meant() {
        for intent in [RateIntent::Either, RateIntent::TooMuch] {
            let mut trial = good();
            trial.rate_intent = intent;
            trial.load.offered_rate = Some(10_000.0);
            trial.load.window.successful_in_window = 5_000;
            let found = trial.check(super::check).expect("says so");
            assert_eq!((found.check.as_str(), found.severity), ("offered-load", Severity::Note));
            trial.load.window.successful_in_window = 10_000;
            let found = trial.check(super::check).map(|found| (found.check, found.severity));
            let carried = (intent == RateIntent::TooMuch).then(|| ("not-saturated".to_owned(), Severity::Note));
            assert_eq!(found, carried);
        }
    }
}
