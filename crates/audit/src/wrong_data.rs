//! Responses of a key-value server that cannot be right.

use weir_model::load::ErrorKind;
use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let total = &e.load.total;
    let wrong = || total.errors.iter().filter(|(kind, n)| kind.is_wrong_data() && **n > 0);
    let sum: u64 = wrong().map(|(_, n)| n).sum();
    if sum == 0 {
        return None;
    }
    let message = format!("{sum} of {} responses had wrong data: {}", total.sent, ErrorKind::listed(wrong()));
    finding("wrong-data", Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::load::ErrorKind;
    use weir_model::record::Severity;

    #[test]
    fn one_wrong_response_is_enough_and_other_errors_are_not_meant() {
        for kind in [ErrorKind::Stale, ErrorKind::Lost, ErrorKind::WrongValue, ErrorKind::Resurrected] {
            let mut trial = good();
            trial.load.total.errors = [(kind, 1), (ErrorKind::Timeout, 7)].into();
            let found = trial.check(super::check).expect("fires");
            assert_eq!(found.severity, Severity::Fatal);
            assert!(found.message.starts_with("1 of 10000 responses"), "{}", found.message);
            assert!(found.message.ends_with(&format!("{} 1", kind.as_str())), "{}", found.message);
        }
        let mut trial = good();
        trial.load.total.errors = [(ErrorKind::Timeout, 7), (ErrorKind::Busy, 1), (ErrorKind::Stale, 0)].into();
        assert_eq!(trial.check(super::check), None);
    }
}
