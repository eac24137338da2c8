//! Sees an open load that was not carried: what was due and could not be sent, or answers that fell behind.
//!
//! Threshold: 2 % of the offered requests not answered rightly inside the window. Latency above a load that is not
//! carried is the length of a queue that grows with the window; it says nothing of the product but that.

use weir_model::record::{Finding, Severity};
use weir_model::units::human_rate;

use super::{Evidence, finding, percent};

/// Per cent of what was due.
const NOT_CARRIED: f64 = 2.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let offered = e.load.offered_rate?;
    let window = &e.load.window;
    let behind = window.due.saturating_sub(window.right_in_window);
    let share = percent(behind as f64, window.due as f64);
    if share < NOT_CARRIED {
        return None;
    }
    let message = format!(
        "{share:.1} % of the {} offered was not answered rightly within the window ({} never sent): \
         the latencies are those of a growing queue",
        human_rate(offered),
        window.unsent
    );
    finding("offered-load", Severity::Warning, message, "offer less, or read this as: cannot carry that rate")
}

#[cfg(test)]
mod tests {
    use crate::audit::fixture::good;

    #[test]
    fn fires_only_for_open_loads_that_fell_behind() {
        let mut trial = good();
        trial.load.window.right_in_window = 9_000;
        assert_eq!(trial.check(super::check), None, "closed loads offer nothing");
        trial.load.offered_rate = Some(10_000.0);
        assert!(trial.check(super::check).is_some());
        trial.load.window.right_in_window = 9_900;
        assert_eq!(trial.check(super::check), None);
    }
}
