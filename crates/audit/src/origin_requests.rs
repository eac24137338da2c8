//! Conservation of requests.

use weir_model::record::{Finding, OWN_RESPONSES, Severity};

use crate::{Evidence, finding, finding_with, percent};

mod by_id;

/// Fewer in a hundred that reached the origin again count as a proxy's retries.
const RETRIES: f64 = 0.1;

/// What to do about requests that reached the origin again.
const SENT_AGAIN: &str = "turn off retries and mirroring, and see that nobody else uses the origin";

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let (sent, reached) = (e.load.total.sent, e.origin?.requests);
    if e.by_product && e.proxied {
        return passed_on(reached, sent);
    }
    by_id::check(e).unwrap_or_else(|| by_sum(e))
}

/// Compares the sums alone.
fn by_sum(e: &Evidence<'_>) -> Option<Finding> {
    let sent = e.load.total.sent - e.refused_by_filter(&e.load.total);
    let (reached, unknown) = (e.origin?.requests, e.maybe_not_forwarded());
    let share = |n: u64| percent(n as f64, sent as f64);
    if reached + unknown < sent {
        let missing = sent - reached;
        if e.caches {
            let message = format!(
                "the product answered {missing} of {sent} requests ({:.2} %) itself, as a cache does; {reached} reached the origin",
                share(missing)
            );
            let remedy = "compare it with other caches; products that pass every request on do other work";
            return finding_with(OWN_RESPONSES, Severity::Warning, message, remedy);
        }
        let answered = if unknown == 0 { "every one" } else { &format!("all but {unknown}") };
        let message = format!(
            "{missing} of {sent} requests ({:.2} %) never reached the origin, and yet {answered} had a response",
            share(missing)
        );
        return finding("conservation-requests", Severity::Fatal, message);
    }
    if reached > sent && e.replicates {
        let message = format!(
            "the origins got {reached} requests for {sent} of the client, {:.1} for each: the product keeps copies, and so this does \
             not tell whether it answered some itself",
            reached as f64 / sent as f64
        );
        let remedy = "compare it with others that keep as many copies";
        return finding_with("conservation-requests", Severity::Note, message, remedy);
    }
    if reached > sent {
        let extra = reached - sent;
        let message = format!(
            "the client sent {sent} requests and the origin saw {reached}, {extra} more ({:.2} %)",
            share(extra)
        );
        let severity = if share(extra) < RETRIES { Severity::Warning } else { Severity::Fatal };
        return finding_with("conservation-requests", severity, message, SENT_AGAIN);
    }
    None
}

/// Checks that a product forwarded nothing of a workload that it has to answer itself.
fn passed_on(reached: u64, sent: u64) -> Option<Finding> {
    if reached == 0 {
        return None;
    }
    let message = format!("{reached} of {sent} requests reached the origin, and the product was to answer them itself");
    finding_with(
        "conservation-requests",
        Severity::Fatal,
        message,
        "let the product's profile answer the path itself, or drop `by_product` from the workload",
    )
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;
    use weir_model::record::Severity;

    #[test]
    fn a_cache_is_seen() {
        let mut trial = good();
        trial.origin.requests = 12;
        let found = trial.check(super::check).expect("fires");
        assert_eq!(found.severity, Severity::Fatal);
        assert!(found.message.contains("9988 of 10000"), "{}", found.message);
    }

    #[test]
    fn a_product_that_is_a_cache_is_said_to_have_answered_itself() {
        let mut trial = good();
        trial.caches = true;
        assert_eq!(trial.check(super::check), None, "nothing came from the cache");
        trial.origin.requests = 12;
        let found = trial.check(super::check).expect("fires");
        assert_eq!((found.severity, found.check.as_str()), (Severity::Warning, "own-responses"));
        assert!(found.message.contains("9988 of 10000"), "{}", found.message);
        trial.origin.requests = 20_000;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Fatal, "retries are no cache's");
    }

    #[test]
    fn a_product_that_replicates_may_ask_more_than_it_was_asked_but_not_less() {
        let mut trial = good();
        trial.replicates = true;
        assert_eq!(trial.check(super::check), None, "one for each");
        trial.origin.requests = 44_000;
        let found = trial.check(super::check).expect("fires");
        assert_eq!(found.severity, Severity::Note);
        assert!(found.message.contains("4.4 for each"), "{}", found.message);
        trial.origin.requests = 9_000;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Fatal, "it answers from memory");
    }

    #[test]
    fn what_a_product_answers_itself_must_not_reach_the_origin() {
        let mut trial = good();
        trial.by_product = true;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Fatal);
        trial.origin.requests = 0;
        assert_eq!(trial.check(super::check), None);
        assert_eq!(trial.all(), [], "no other check wants it at the origin");
        trial.proxied = false;
        assert!(trial.check(super::check).is_some(), "without a product the origin answers");
    }

    #[test]
    fn unanswered_requests_may_be_missing_but_no_others() {
        let mut trial = good();
        trial.load.total.statuses = [(200, 9_990)].into();
        trial.origin.requests = 9_990;
        assert_eq!(trial.check(super::check), None);
        trial.origin.requests = 9_989;
        assert!(trial.check(super::check).is_some());
        trial.load.total.statuses = [(200, 9_943), (503, 47)].into();
        trial.load.total.errors = [(weir_model::load::ErrorKind::BadStatus, 47)].into();
        assert_eq!(trial.check(super::check), None, "the product refused them itself: no cache");
        trial.origin.requests = 9_942;
        assert!(trial.check(super::check).is_some(), "one more than was refused or not answered");
    }

    #[test]
    fn retries_are_seen() {
        let mut trial = good();
        trial.origin.requests = 10_001;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
        trial.origin.requests = 20_000;
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Fatal);
    }
}
