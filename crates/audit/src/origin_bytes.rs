//! Conservation of bytes, in both directions.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let origin = e.origin?;
    let all_reached = e.unanswered() == 0 && origin.requests == e.load.total.sent;
    if let Some(sent) = e.load.request_body_bytes.filter(|sent| all_reached && *sent != origin.body_bytes_in) {
        let message =
            format!("the client sent {sent} bytes of request bodies, and {} reached the origin", origin.body_bytes_in);
        return finding("conservation-bytes", Severity::Fatal, message);
    }
    let clean = all_reached && e.load.total.error_count() + e.cancelled() == 0;
    let (received, sent) = (e.load.total.body_bytes, origin.body_bytes_out);
    let coded = e.load.codings.iter().flatten().map(|(_, coded)| coded);
    let decoded = coded.fold(received, |sum, coded| sum - coded.bytes + coded.decoded_bytes);
    if !clean || received == sent || decoded == sent {
        return None;
    }
    let message = format!("the client received {received} bytes of bodies, the origin sent {sent}");
    finding("conservation-bytes", Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::coding::Coding;
    use weir_model::load::CodedResponses;

    #[test]
    fn request_bodies_that_are_dropped_or_longer_are_seen() {
        let mut trial = good();
        (trial.load.request_body_bytes, trial.origin.body_bytes_in) = (Some(10_000), 10_000);
        assert_eq!(trial.check(super::check), None);
        for reached in [0, 9_999, 10_001] {
            trial.origin.body_bytes_in = reached;
            let message = trial.check(super::check).expect("fires").message;
            assert!(
                message.contains(&format!("sent 10000 bytes of request bodies, and {reached} reached")),
                "{message}"
            );
        }
        trial.load.request_body_bytes = None;
        assert_eq!(trial.check(super::check), None, "their lengths are drawn");
        trial.load.request_body_bytes = Some(10_000);
        trial.load.total.statuses = [(200, 9_999)].into();
        assert_eq!(trial.check(super::check), None, "one may not have reached the origin");
    }

    #[test]
    fn what_a_cancelled_stream_had_on_the_way_is_nobodys() {
        let mut trial = crate::messages::tests::cancelled(200, 200);
        trial.load.total.body_bytes -= 1;
        assert_eq!(trial.check(super::check), None);
    }

    #[test]
    fn compression_is_seen() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.load.total.body_bytes = 400_000;
        assert!(trial.check(super::check).is_some());
        let coded = |decoded_bytes| CodedResponses { responses: 10_000, bytes: 400_000, decoded_bytes };
        trial.load.codings = Some([(Coding::Gzip, coded(1_280_000))].into());
        assert_eq!(trial.check(super::check), None, "what was accepted");
        trial.load.codings = Some([(Coding::Gzip, coded(1_279_999))].into());
        assert!(trial.check(super::check).is_some());
    }
}
