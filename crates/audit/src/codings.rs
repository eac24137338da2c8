//! Products that code the bodies of answers.

use weir_model::load::CodedAnswers;
use weir_model::record::{COMPRESSES, Finding, Severity};

use super::{Check, Evidence, Kind, finding, percent};

pub const CHECK: Check = Check {
    kind: Kind::Fairness,
    names: &[COMPRESSES, "not-coded"],
    sees: "a product that compresses responses whose requests accept that (`accept_encoding` of a workload). It does \
         work that others skip, so it is not ranked with products of the case that do not compress. The check also \
         notes that no response came compressed although the workload accepts it",
    threshold: "any response: it is noted, because the suite allows it",
    source: "",
    remedy: "compare it with products that compress as well, or turn off compression in the product's configuration",
    blind: "a product that compresses anew what the origin sends compressed. Compression that nobody requested is a \
         wrong response (`wrong-answers`)",
    provoked: false,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let codings = e.load.codings.as_ref().filter(|_| e.proxied)?;
    let answers: u64 = e.load.total.statuses.values().sum();
    let Some((coding, coded)) = codings.iter().max_by_key(|(_, coded)| coded.answers) else {
        let message = format!("requests accept coded answers, and none of {answers} came coded");
        return finding(
            CHECK.names[1],
            Severity::Note,
            message,
            "see whether the product is told to compress this type and size",
        );
    };
    if origin_codes(e, coded) {
        return None;
    }
    let message = format!(
        "the product compressed {} of {answers} answers ({}) to {:.0} % of their bytes",
        coded.answers,
        coding.as_str(),
        percent(coded.bytes as f64, coded.decoded_bytes as f64)
    );
    CHECK.finding(Severity::Note, message)
}

/// Whether the bodies left the origin as they came: shorter than they are when they are decoded.
fn origin_codes(e: &Evidence<'_>, coded: &CodedAnswers) -> bool {
    let of_origin = e.origin.filter(|origin| origin.answered > 0);
    let mean = |bytes: u64, answers: u64| bytes as f64 / answers.max(1) as f64;
    of_origin.is_some_and(|o| mean(o.body_bytes_out, o.answered) < mean(coded.decoded_bytes, coded.answers))
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::coding::Coding;
    use weir_model::load::CodedAnswers;

    use crate::fixture::{Trial, good};

    /// A trial whose answers came coded, so many of them.
    pub fn coded(answers: u64) -> Trial {
        let mut trial = good();
        let of = CodedAnswers { answers, bytes: answers * 96, decoded_bytes: answers * 128 };
        trial.load.codings = Some([(Coding::Gzip, of)].into_iter().filter(|(_, of)| of.answers > 0).collect());
        trial.load.total.body_bytes -= answers * 32;
        trial
    }

    #[test]
    fn a_product_that_compresses_is_named() {
        assert_eq!(good().check(super::check), None, "nothing was accepted");
        let message = coded(9_000).check(super::check).expect("fires").message;
        assert_eq!(message, "the product compressed 9000 of 10000 answers (gzip) to 75 % of their bytes");
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
    fn that_nobody_compressed_is_noted() {
        let found = coded(0).check(super::check).expect("fires");
        assert_eq!((found.check.as_str(), found.message.contains("none of 10000")), ("not-coded", true));
    }
}
