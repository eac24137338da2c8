//! Answers of a key-value server that cannot be right.

use weir_model::load::ErrorKind;
use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Answers,
    names: &["wrong-data"],
    sees: "impossible responses of a key-value server: an old value, a missing one, one of another key, or a removed \
         one. A store that loses data may be fast because of it",
    threshold: "one in the client's whole life, the warm-up included",
    source: "each value holds a version and a hash, so chance cannot explain a wrong one",
    remedy: "do not use it where data matters; see what its promise of durability and consistency says",
    blind: "keys that the load does not read",
    provoked: false,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let total = &e.load.total;
    let wrong = || total.errors.iter().filter(|(kind, n)| kind.is_wrong_data() && **n > 0);
    let sum: u64 = wrong().map(|(_, n)| n).sum();
    if sum == 0 {
        return None;
    }
    let message = format!("{sum} of {} answers had wrong data: {}", total.sent, ErrorKind::listed(wrong()));
    CHECK.finding(Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::load::ErrorKind;
    use weir_model::record::Severity;

    #[test]
    fn one_wrong_answer_is_enough_and_other_errors_are_not_meant() {
        for kind in [ErrorKind::Stale, ErrorKind::Lost, ErrorKind::WrongValue, ErrorKind::Resurrected] {
            let mut trial = good();
            trial.load.total.errors = [(kind, 1), (ErrorKind::Timeout, 7)].into();
            let found = trial.check(super::check).expect("fires");
            assert_eq!(found.severity, Severity::Fatal);
            assert!(found.message.starts_with("1 of 10000 answers"), "{}", found.message);
            assert!(found.message.ends_with(&format!("{} 1", kind.as_str())), "{}", found.message);
        }
        let mut trial = good();
        trial.load.total.errors = [(ErrorKind::Timeout, 7), (ErrorKind::Busy, 1), (ErrorKind::Stale, 0)].into();
        assert_eq!(trial.check(super::check), None);
    }
}
