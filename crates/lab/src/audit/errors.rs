//! Sees requests without a right answer.
//!
//! Thresholds: k6 and fortio users commonly fail a test at 1 % of errors; a comparison of products needs to be
//! stricter, because an error is often cheaper than an answer. Any error is noted; from 0.1 % the number is suspect;
//! from 1 % it is the rate of something else.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding, percent};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let window = &e.load.window;
    let failed = window.error_count();
    if failed == 0 {
        return None;
    }
    let share = percent(failed as f64, window.due as f64);
    let severity = match share {
        s if s >= 1.0 => Severity::Fatal,
        s if s >= 0.1 => Severity::Warning,
        _ => Severity::Note,
    };
    let kinds: Vec<String> = window.errors.iter().map(|(kind, n)| format!("{} {n}", kind.as_str())).collect();
    let message =
        format!("{failed} of {} requests ({share:.2} %) got no right answer: {}", window.due, kinds.join(", "));
    finding("errors", severity, message, "see the product's output in the trial's folder; offer less")
}

#[cfg(test)]
mod tests {
    use crate::audit::fixture::good;
    use weir_model::load::ErrorKind;
    use weir_model::record::Severity;

    #[test]
    fn severity_follows_the_share() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        for (n, severity) in [(1, Severity::Note), (10, Severity::Warning), (100, Severity::Fatal)] {
            trial.load.window.errors = [(ErrorKind::Reset, n)].into();
            let found = trial.check(super::check).expect("fires");
            assert_eq!(found.severity, severity);
            assert!(found.message.contains(&format!("reset {n}")), "{}", found.message);
        }
    }
}
