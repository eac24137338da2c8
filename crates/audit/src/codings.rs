//! Products that code the bodies of responses.

use weir_model::gateway::Filter;
use weir_model::load::CodedResponses;
use weir_model::record::{COMPRESSES, Finding, Severity};

use super::{Evidence, finding, finding_with, percent};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let codings = e.load.codings.as_ref().filter(|_| e.proxied)?;
    // Refusals, which are counted elsewhere, may come as they are.
    let responses = e.load.total.successful;
    let most = codings.iter().max_by_key(|(_, coded)| coded.responses);
    if e.gateway.filter == Some(Filter::Compression) {
        let came = most.map_or(0, |(_, coded)| coded.responses);
        let message = format!(
            "the product is to compress, and {} of {responses} responses came as they were",
            responses.saturating_sub(came)
        );
        return (came < responses).then(|| finding("not-coded", Severity::Fatal, message)).flatten();
    }
    let Some((coding, coded)) = most else {
        let message = format!("requests accept coded responses, and none of {responses} came coded");
        return finding_with(
            "not-coded",
            Severity::Note,
            message,
            "see whether the product is told to compress this type and size",
        );
    };
    if origin_codes(e, coded) {
        return None;
    }
    let message = format!(
        "the product compressed {} of {responses} responses ({}) to {:.0} % of their bytes",
        coded.responses,
        coding.as_str(),
        percent(coded.bytes as f64, coded.decoded_bytes as f64)
    );
    finding(COMPRESSES, Severity::Note, message)
}

/// Whether the bodies left the origin as they came: shorter than they are when they are decoded.
fn origin_codes(e: &Evidence<'_>, coded: &CodedResponses) -> bool {
    let of_origin = e.origin.filter(|origin| origin.answered > 0);
    let mean = |bytes: u64, responses: u64| bytes as f64 / responses.max(1) as f64;
    of_origin.is_some_and(|o| mean(o.body_bytes_out, o.answered) < mean(coded.decoded_bytes, coded.responses))
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::coding::Coding;
    use weir_model::gateway::Filter;
    use weir_model::load::CodedResponses;

    use crate::fixture::{Trial, filtered, good};

    /// A trial whose responses came coded, so many of them.
    pub fn coded(responses: u64) -> Trial {
        let mut trial = good();
        let of = CodedResponses { responses, bytes: responses * 96, decoded_bytes: responses * 128 };
        trial.load.codings = Some([(Coding::Gzip, of)].into_iter().filter(|(_, of)| of.responses > 0).collect());
        trial.load.total.body_bytes -= responses * 32;
        trial
    }

    #[test]
    fn a_product_that_compresses_is_named() {
        assert_eq!(good().check(super::check), None, "nothing was accepted");
        let message = coded(9_000).check(super::check).expect("fires").message;
        assert_eq!(message, "the product compressed 9000 of 10000 responses (gzip) to 75 % of their bytes");
        let mut direct = coded(9_000);
        direct.proxied = false;
        assert_eq!(direct.check(super::check), None);
    }

    #[test]
    fn what_the_origin_coded_is_not_the_products() {
        let mut trial = coded(10_000);
        trial.origin.body_bytes_out = trial.load.total.body_bytes;
        assert_eq!(trial.check(super::check), None);
        trial.has_counters = false;
        assert!(trial.check(super::check).is_some(), "nobody knows of an origin that codes");
    }

    #[test]
    fn a_filter_that_compresses_has_to_do_it_always() {
        let found = |responses| {
            let trial = Trial { gateway: filtered(Filter::Compression, None), ..coded(responses) };
            trial.check(super::check).map(|found| found.message)
        };
        assert_eq!(found(10_000), None);
        let message = "the product is to compress, and 1 of 10000 responses came as they were";
        assert_eq!(found(9_999).as_deref(), Some(message));
    }

    #[test]
    fn refusals_may_come_as_they_are() {
        let mut trial = Trial { gateway: filtered(Filter::Compression, None), ..coded(9_000) };
        trial.load.total.successful = 9_000;
        trial.load.total.statuses = [(200, 9_000), (503, 1_000)].into();
        assert_eq!(trial.check(super::check), None);
    }

    #[test]
    fn that_nobody_compressed_is_noted() {
        let found = coded(0).check(super::check).expect("fires");
        assert_eq!((found.check.as_str(), found.message.contains("none of 10000")), ("not-coded", true));
    }
}
