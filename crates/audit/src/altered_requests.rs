//! Requests that reached the origin otherwise than the client sent them.

use weir_model::record::{Finding, Severity};

use super::{Evidence, finding, finding_with, percent};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let origin = e.origin?;
    if e.by_product && e.proxied {
        return None;
    }
    let (contents, total) = (&origin.contents, &e.load.total);
    let unfinished = contents.unfinished.saturating_sub(e.maybe_not_forwarded() + origin.request_ids.again());
    let bodies = [
        (contents.body, "reached the origin with another body of the same length"),
        (contents.shortened, "reached the origin with a shorter body, or none"),
        (contents.lengthened, "reached the origin with a longer body"),
        (unfinished, "had a response early: their bodies never reached the origin as a whole"),
        (total.early, "had a response early: before they were sent to their end"),
        (contents.unchecked, "reached the origin with an ID that is cut off, so that they could not be compared"),
    ];
    let heads = [
        (contents.target, "reached the origin with another method, path or query"),
        (contents.headers, "reached the origin without headers that were sent, or with other values"),
    ];
    let words: Vec<String> = heads
        .iter()
        .chain(&bodies)
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} ({:.2} %) {what}", percent(*n as f64, total.sent as f64)))
        .collect();
    if words.is_empty() {
        return None;
    }
    let message = format!("of {} requests {}", total.sent, words.join("; "));
    if e.caches && bodies.iter().all(|(n, _)| *n == 0) {
        let message = format!("{message}; a cache may do that");
        return finding_with("altered-requests", Severity::Note, message, "compare it with other caches");
    }
    finding("altered-requests", Severity::Fatal, message)
}

#[cfg(test)]
mod tests {
    use weir_model::counters::{ContentCounters, RequestIdCounters};
    use weir_model::record::Severity;

    use crate::fixture::{Trial, good};

    fn altered(contents: ContentCounters) -> Trial {
        let mut trial = good();
        trial.origin.contents = contents;
        trial
    }

    const NONE: ContentCounters =
        ContentCounters { target: 0, headers: 0, body: 0, shortened: 0, lengthened: 0, unfinished: 0, unchecked: 0 };

    #[test]
    fn each_difference_is_fatal_from_the_first_request_on() {
        assert_eq!(altered(NONE).check(super::check), None);
        for (contents, word) in [
            (ContentCounters { target: 1, ..NONE }, "method, path or query"),
            (ContentCounters { headers: 1, ..NONE }, "without headers"),
            (ContentCounters { body: 1, ..NONE }, "another body"),
            (ContentCounters { shortened: 1, ..NONE }, "a shorter body"),
            (ContentCounters { lengthened: 1, ..NONE }, "a longer body"),
            (ContentCounters { unfinished: 1, ..NONE }, "never reached the origin"),
            (ContentCounters { unchecked: 1, ..NONE }, "an ID that is cut off"),
        ] {
            let found = altered(contents).check(super::check).expect("fires");
            assert_eq!(found.severity, Severity::Fatal, "{}", found.message);
            assert!(found.message.starts_with("of 10000 requests 1 (0.01 %)"), "{}", found.message);
            assert!(found.message.contains(word), "{}", found.message);
        }
        let mut trial = good();
        trial.load.total.early = 3;
        assert!(trial.check(super::check).expect("fires").message.contains("3 (0.03 %) had a response early"));
    }

    #[test]
    fn bodies_that_were_cut_off_are_allowed_where_something_explains_them() {
        let mut trial = altered(ContentCounters { unfinished: 12, ..NONE });
        trial.load.total.statuses = [(200, 9_990)].into();
        trial.origin.request_ids =
            RequestIdCounters { identified: 10_001, distinct: 9_999, repeated: 2, ..RequestIdCounters::default() };
        assert_eq!(trial.check(super::check), None, "ten have no response, and two came again");
        trial.origin.contents.unfinished = 13;
        assert!(trial.check(super::check).expect("fires").message.contains("of 10000 requests 1 "));
    }

    #[test]
    fn a_cache_may_ask_otherwise_and_what_a_product_serves_itself_is_not_compared() {
        let mut trial = altered(ContentCounters { target: 5, headers: 7, ..NONE });
        trial.caches = true;
        assert_eq!(trial.check(super::check).expect("notes").severity, Severity::Note);
        trial.origin.contents.shortened = 1;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Fatal);
        trial.by_product = true;
        assert_eq!(trial.check(super::check), None, "nothing has to reach the origin");
    }
}
