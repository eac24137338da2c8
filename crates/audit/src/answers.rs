//! A window without a right response.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Answers,
    names: &["no-answers"],
    sees: "a window without any successful response. Other checks may not notice it: a product that stops during \
         warm-up holds every connection of a closed load until the timeout. No request is then due in the window, \
         none fails in it, and the rate is a steady 0",
    threshold: "no successful response",
    source: "",
    remedy: "see the product's output in the trial's folder; if its responses are only slow, make the window longer",
    blind: "",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if e.load.window.right_in_window > 0 {
        return None;
    }
    let failed = e.load.total.error_count();
    let message = format!("not one right answer came within the window; {failed} requests failed in all");
    CHECK.finding(Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_nothing_was_answered() {
        let mut trial = good();
        trial.load.window.right_in_window = 1;
        assert_eq!(trial.check(super::check), None);
        trial.load.window.right_in_window = 0;
        assert!(trial.check(super::check).is_some());
    }
}
