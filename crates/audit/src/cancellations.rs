//! Streams that the client cancels, and whose origin is not told.

use weir_model::load::Cancellation;
use weir_model::record::{Finding, Severity};
use weir_model::text::human_us;

use super::{Evidence, finding, finding_with};

/// The share that may come too late: a reset may meet the end of its stream.
const ALLOWED: f64 = 0.01;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let found = e.load.messages.as_ref()?.cancellation?;
    let Cancellation { cancelled, seen, in_time, .. } = found;
    if (cancelled - in_time) as f64 <= ALLOWED * cancelled as f64 {
        return None;
    }
    let within = human_us(Cancellation::WITHIN.as_micros() as f64);
    let mut message = format!(
        "the client cancelled {cancelled} streams in their middle, and the origin saw {in_time} of them end within {within}"
    );
    if seen > in_time {
        message += &format!(", the last one after {}", human_us(found.max_us));
    }
    if seen < cancelled {
        message += &format!("; {} of them it never saw end early", cancelled - seen);
    }
    if !e.proxied {
        return finding_with("cancellations", Severity::Warning, message, "give client and origin CPUs of their own");
    }
    finding("cancellations", Severity::Note, message)
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::load::{Cancellation, MessageResult};
    use weir_model::record::Severity;

    use crate::fixture::{Trial, good};

    /// A trial of 200 streams that were cancelled, so many of which the origin saw end, and so many in time.
    pub fn cancelled(seen: u64, in_time: u64) -> Trial {
        let mut trial = good();
        let cancellation =
            Cancellation { cancelled: 200, seen, in_time, p50_us: 400.0, p99_us: 900.0, max_us: 1_300_000.0 };
        trial.load.messages = Some(MessageResult { cancellation: Some(cancellation), ..MessageResult::default() });
        trial
    }

    #[test]
    fn a_product_that_keeps_cancellations_to_itself_is_named_and_ranked() {
        for in_time in [200, 198] {
            assert_eq!(cancelled(200, in_time).check(super::check), None, "{in_time}");
        }
        assert_eq!(good().check(super::check), None, "no streams");
        for (seen, in_time) in [(200, 197), (0, 0)] {
            let found = cancelled(seen, in_time).check(super::check).expect("fires");
            assert_eq!((found.check.as_str(), found.severity), ("cancellations", Severity::Note));
        }
        let mut direct = cancelled(0, 0);
        direct.proxied = false;
        assert_eq!(direct.check(super::check).expect("fires").severity, Severity::Warning);
    }
}
