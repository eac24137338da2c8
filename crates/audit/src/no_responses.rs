//! A window without a successful response.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if e.load.window.successful_in_window > 0 {
        return None;
    }
    let failed = e.load.total.error_count();
    let message = format!("not one successful response came within the window; {failed} requests failed in all");
    finding("no-responses", Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_nothing_was_answered() {
        let mut trial = good();
        trial.load.window.successful_in_window = 1;
        assert_eq!(trial.check(super::check), None);
        trial.load.window.successful_in_window = 0;
        assert!(trial.check(super::check).is_some());
    }
}
