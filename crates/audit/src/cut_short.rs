//! A load that was ended early.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    if !e.load.cut_short {
        return None;
    }
    let message = format!("the load was cut short after {:.1} s of its window", e.load.window_s);
    finding("cut-short", Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_cut_short() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.load.cut_short = true;
        assert!(trial.check(super::check).is_some());
    }
}
