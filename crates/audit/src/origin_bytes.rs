//! Conservation of bytes: the client received the bodies that the origin sent. Listed in `CHECKS`.
//!
//! Detects compression, truncation, rewriting, and responses made by the product. The sums must be equal when every request was
//! answered rightly. With failures they cannot be compared; other checks report the failures.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let origin = e.origin?;
    let clean = e.load.total.error_count() == 0 && e.unanswered() == 0 && origin.requests == e.load.total.sent;
    let (received, sent) = (e.load.total.body_bytes, origin.body_bytes_out);
    if !clean || received == sent {
        return None;
    }
    let message = format!("the client received {received} bytes of bodies, the origin sent {sent}");
    finding(
        "conservation-bytes",
        Severity::Fatal,
        message,
        "turn off compression and rewriting in the product's configuration",
    )
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn compression_is_seen() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.load.total.body_bytes = 400_000;
        assert!(trial.check(super::check).is_some());
    }
}
