//! Conservation of bytes.

use weir_model::record::{Finding, Severity};

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Conservation,
    names: &["conservation-bytes"],
    sees: "whether the client received the bodies that the origin sent: compression (where requests accept it, decoded bodies are \
         compared), truncation, rewriting, and responses made by the product",
    threshold: "any byte, where every request was answered rightly. With failures the sums cannot be compared; other \
         checks report those",
    source: "",
    remedy: "turn off compression and rewriting in the product's configuration",
    blind: "another body of the same length (the client's own check of bodies sees that)",
    provoked: true,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let origin = e.origin?;
    let clean = e.load.total.error_count() == 0 && e.unanswered() == 0 && origin.requests == e.load.total.sent;
    let (received, sent) = (e.load.total.body_bytes, origin.body_bytes_out);
    let coded = e.load.codings.iter().flatten().map(|(_, coded)| coded);
    let decoded = coded.fold(received, |sum, coded| sum - coded.bytes + coded.decoded_bytes);
    if !clean || received == sent || decoded == sent {
        return None;
    }
    let message = format!("the client received {received} bytes of bodies, the origin sent {sent}");
    CHECK.finding(Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::coding::Coding;
    use weir_model::load::CodedAnswers;

    #[test]
    fn compression_is_seen() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.load.total.body_bytes = 400_000;
        assert!(trial.check(super::check).is_some());
        let coded = |decoded_bytes| CodedAnswers { answers: 10_000, bytes: 400_000, decoded_bytes };
        trial.load.codings = Some([(Coding::Gzip, coded(1_280_000))].into());
        assert_eq!(trial.check(super::check), None, "what was accepted");
        trial.load.codings = Some([(Coding::Gzip, coded(1_279_999))].into());
        assert!(trial.check(super::check).is_some());
    }
}
