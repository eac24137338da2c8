//! Conservation of bytes: the bodies the client received are those the origin sent.
//!
//! Sees compression, truncation, rewriting, answers made up by the product. Threshold: exact when every request was
//! answered rightly; with failures the sums cannot be compared, and the checks of requests and errors speak.

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
