//! Conservation of requests by their IDs. The fate of each request is known, so that kinds with equal sums are distinguished.

use weir_model::record::{Finding, OWN_RESPONSES, Severity};

use super::{RETRIES, SENT_AGAIN, by_sum};
use crate::{Evidence, check_of, finding_with, percent};

/// The remedy for a product that takes IDs away.
const PASS_ON: &str = "let the product pass on the headers x-weir-id and x-weir-origin, or name another for IDs with `request_ids` of \
                       the workload";

/// The remedy for responses that went to other requests.
const EXCHANGED: &str =
    "see how the product matches responses to requests on its connections: clients get those of others";

/// The remedy for requests that were refused too late.
const REFUSE_FIRST: &str = "let the product check a request before it sends it on";

/// Requests of each kind, without those that reached the origin once and got its response to them.
#[derive(Debug, Default, PartialEq)]
struct Kinds {
    /// They got a response that the origin had given before they were sent.
    cached: u64,
    /// They got a response to another request that was under way at the same time.
    coalesced: u64,
    /// They got one of both: the clocks of client and origin differ.
    of_another: u64,
    /// They got an ID that is not the origin's word.
    forged: u64,
    /// They never reached the origin, and the response has no ID.
    itself: u64,
    /// They got the response to another request in flight, nobody else did, and both reached the origin.
    exchanged: u64,
    /// They got the response to an earlier request, nobody else did, and both reached the origin.
    displaced: u64,
    /// They got another response than their own, and reached the origin all the same.
    behind: u64,
    /// They reached the origin more than once, and how often beyond the first time.
    repeated: u64,
    again: u64,
    /// Requests at the origin that the client did not send.
    strange: u64,
    /// Requests that the product's filter refused, but which reached the origin.
    leaked: u64,
    /// IDs that the product took away, from responses and from requests.
    stripped: u64,
    without_id: u64,
}

/// Judges by IDs; `None` where there are none to judge by.
pub fn check(e: &Evidence<'_>) -> Option<Option<Finding>> {
    let kinds = Kinds::of(e)?;
    if e.origin?.request_ids.identified == 0 && e.origin?.requests > 0 {
        let message = format!(
            "the product took the IDs of all requests away on their way to the origin, so that only sums could be compared: \
             {} sent, {} reached the origin",
            e.load.total.sent, e.origin?.requests
        );
        return Some(by_sum(e).or_else(|| finding_with("conservation-requests", Severity::Warning, message, PASS_ON)));
    }
    Some(kinds.judged(e))
}

impl Kinds {
    fn of(e: &Evidence<'_>) -> Option<Kinds> {
        let (responses, origin) = (e.load.request_ids?, e.origin?);
        let ids = &origin.request_ids;
        let (sent, maybe) = (e.load.total.sent, e.maybe_not_forwarded());
        let missing = sent.saturating_sub(ids.distinct + ids.unremembered);
        // Requests without an ID at the origin are some of the missing, or foreign.
        let unidentified = origin.requests.saturating_sub(ids.identified);
        let without_id = unidentified.min(missing);
        let by_filter = e.refused_by_filter(&e.load.total);
        let not_forwarded = (missing - without_id).saturating_sub(maybe + by_filter);
        let without = responses.missing.saturating_sub(e.refused_otherwise() + by_filter);
        let of_others = responses.count_of_another() + responses.forged;
        let itself = not_forwarded.saturating_sub(of_others).min(without);
        let behind = of_others.saturating_sub(not_forwarded);
        // A cache gives one response to several requests.
        let moved = if responses.reused * 2 < responses.count_of_another() { behind } else { 0 };
        let exchanged = moved.min(responses.coalesced + responses.of_another);
        let displaced = (moved - exchanged).min(responses.cached);
        let of_coalesced = exchanged.min(responses.coalesced);
        Some(Kinds {
            cached: responses.cached - displaced,
            coalesced: responses.coalesced - of_coalesced,
            of_another: responses.of_another - (exchanged - of_coalesced),
            exchanged,
            displaced,
            // A response with its own ID, to a request that the origin never saw, is none of the origin's.
            forged: responses.forged + not_forwarded.saturating_sub(of_others + itself),
            itself,
            behind: behind - exchanged - displaced,
            repeated: if e.replicates { 0 } else { ids.repeated },
            again: if e.replicates { 0 } else { ids.again() },
            strange: unidentified - without_id,
            leaked: by_filter.saturating_sub(missing),
            stripped: without - itself,
            without_id,
        })
    }

    fn judged(&self, e: &Evidence<'_>) -> Option<Finding> {
        let sent = e.load.total.sent;
        let share = |n: u64| percent(n as f64, sent as f64);
        let many = |n: u64| share(n) >= RETRIES;
        let wrong = self.forged + self.exchanged + self.leaked;
        let not_its_own = self.cached + self.coalesced + self.of_another + wrong + self.displaced + self.itself;
        let severity = match () {
            () if wrong > 0 || many(self.again) || many(self.strange) => Severity::Fatal,
            () if not_its_own > 0 && !e.caches => Severity::Fatal,
            () if *self == Kinds::default() => return None,
            () => Severity::Warning,
        };
        let said = self.said(sent, share);
        if e.caches && not_its_own > 0 && severity == Severity::Warning {
            let message = format!("of {sent} requests {said}; a cache does that");
            let remedy = "compare it with other caches; products that pass every request on do other work";
            return finding_with(OWN_RESPONSES, severity, message, remedy);
        }
        let remedy = match () {
            () if self.leaked > 0 => REFUSE_FIRST,
            () if self.exchanged + self.displaced > 0 => EXCHANGED,
            () if not_its_own > 0 => &check_of("conservation-requests").remedy,
            () if self.again + self.strange > 0 => SENT_AGAIN,
            () => PASS_ON,
        };
        finding_with("conservation-requests", severity, format!("of {sent} requests {said}"), remedy)
    }

    /// What there was, in words.
    fn said(&self, sent: u64, share: impl Fn(u64) -> f64) -> String {
        let again = match () {
            () if self.repeated * 2 > sent => "mirrored, or sent twice",
            () => "retried, or sent twice",
        };
        let kinds = [
            (self.cached, "got a response that the origin had given before they were sent: it was cached".to_owned()),
            (self.coalesced, "got the response to another request that was in flight: it was coalesced".to_owned()),
            (self.of_another, "got another request's response: it was cached or coalesced".to_owned()),
            (
                self.exchanged,
                "got the response to another request in flight, which reached the origin as they did: responses were exchanged"
                    .to_owned(),
            ),
            (
                self.displaced,
                "got the response to an earlier request, and reached the origin all the same: responses are mixed up, or a cache \
                 revalidates behind each"
                    .to_owned(),
            ),
            (self.forged, "got a forged ID: never given, older than the request, or not of the origin".to_owned()),
            (self.itself, "never reached the origin, and were answered by the product itself".to_owned()),
            (
                self.behind,
                "got another response and reached the origin all the same, as where a cache revalidates behind"
                    .to_owned(),
            ),
            (self.repeated, format!("reached the origin more than once, {} times more: {again}", self.again)),
            (self.strange, "more reached the origin than were sent, without an ID: others use it, too".to_owned()),
            (
                self.leaked,
                "were refused by the product's filter, but reached the origin".to_owned(),
            ),
            (self.stripped, "got a response without its ID: the product took it away".to_owned()),
            (self.without_id, "reached the origin without their ID: the product took it away".to_owned()),
        ];
        let there = kinds.iter().filter(|(n, _)| *n > 0);
        there.map(|(n, what)| format!("{n} ({:.2} %) {what}", share(*n))).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use weir_model::counters::RequestIdCounters;
    use weir_model::gateway::{Filter, Gateway};
    use weir_model::load::{ErrorKind, RequestIdCounts};
    use weir_model::record::Severity;

    use crate::fixture::{Trial, good};

    /// A trial with IDs: what 10,000 responses had, and what the origin counted.
    fn named(responses: RequestIdCounts, origin: RequestIdCounters) -> Trial {
        let mut trial = good();
        trial.load.request_ids = Some(responses);
        trial.origin.request_ids = origin;
        trial.origin.requests = origin.identified;
        trial
    }

    const ALL: RequestIdCounts =
        RequestIdCounts { own: 10_000, cached: 0, coalesced: 0, of_another: 0, forged: 0, missing: 0, reused: 0 };
    const ONCE: RequestIdCounters =
        RequestIdCounters { identified: 10_000, distinct: 10_000, repeated: 0, malformed: 0, unremembered: 0 };

    /// The severity of a finding, which has to say all of these and nothing of those.
    fn found(trial: &Trial, says: &[&str], not: &[&str]) -> Severity {
        let found = trial.check(super::super::check).expect("fires");
        says.iter().for_each(|word| assert!(found.message.contains(word), "{word}: {}", found.message));
        not.iter().for_each(|word| assert!(!found.message.contains(word), "{word}: {}", found.message));
        found.severity
    }

    #[test]
    fn each_once_and_its_own_response_is_right() {
        assert_eq!(named(ALL, ONCE).check(super::super::check), None);
    }

    #[test]
    fn requests_that_a_filter_refuses_may_not_reach_the_origin() {
        let mut trial = named(RequestIdCounts { own: 9_900, missing: 100, ..ALL }, ONCE);
        trial.load.total.statuses = [(200, 9_900), (401, 100)].into();
        let only = |distinct: u64| RequestIdCounters { identified: distinct, distinct, ..ONCE };
        let set = |trial: &mut Trial, filter, reached| {
            trial.gateway = Gateway { filter, ..Gateway::default() };
            (trial.origin.request_ids, trial.origin.requests) = (only(reached), reached);
        };
        let keys = Some(Filter::KeyAuth);
        set(&mut trial, keys, 9_900);
        assert_eq!(trial.check(super::super::check), None);
        set(&mut trial, keys, 9_903);
        assert_eq!(
            found(&trial, &["3 (0.03 %) were refused by the product's filter, but reached"], &["cached"]),
            Severity::Fatal
        );
        set(&mut trial, keys, 9_890);
        assert_eq!(found(&trial, &["10 (0.10 %)"], &["refused"]), Severity::Fatal, "others never reached it");
        set(&mut trial, None, 9_900);
        assert_eq!(found(&trial, &["answered by the product itself"], &["refused"]), Severity::Fatal);
    }

    #[test]
    fn caches_are_told_from_what_else_sums_up_alike() {
        let cached = RequestIdCounts { own: 9_000, cached: 1_000, ..ALL };
        let fewer = RequestIdCounters { identified: 9_000, distinct: 9_000, ..ONCE };
        assert_eq!(
            found(&named(cached, fewer), &["1000 (10.00 %)", "cached"], &["revalidates", "twice"]),
            Severity::Fatal
        );
        let sums_agree = RequestIdCounters { repeated: 1_000, identified: 10_000, ..fewer };
        assert_eq!(
            found(&named(cached, sums_agree), &["cached", "1000 times more: retried, or sent twice"], &["revalid"]),
            Severity::Fatal
        );
        let revalidated = RequestIdCounts { reused: 990, ..cached };
        assert_eq!(
            found(
                &named(revalidated, ONCE),
                &["cached", "1000 (10.00 %) got another response and reached"],
                &["twice"]
            ),
            Severity::Fatal
        );
    }

    #[test]
    fn responses_that_go_to_other_requests_are_no_cache() {
        let exchanged = RequestIdCounts { own: 9_728, coalesced: 272, ..ALL };
        let says = ["272 (2.72 %) got the response to another request in flight", "responses were exchanged"];
        assert_eq!(found(&named(exchanged, ONCE), &says, &["cache", "coalesced"]), Severity::Fatal);
        let other_clocks = RequestIdCounts { own: 9_728, of_another: 272, ..ALL };
        assert_eq!(found(&named(other_clocks, ONCE), &says, &["cache", "coalesced"]), Severity::Fatal);
        let one_behind = RequestIdCounts { own: 9_000, cached: 1_000, ..ALL };
        assert_eq!(found(&named(one_behind, ONCE), &["1000 (10.00 %)", "mixed up"], &["was cached"]), Severity::Fatal);
        let mut cache = named(exchanged, ONCE);
        cache.caches = true;
        assert_eq!(found(&cache, &["exchanged"], &[]), Severity::Fatal, "no cache does that");
    }

    #[test]
    fn coalesced_responses_are_told_from_cached_ones_where_clocks_allow() {
        let fewer = RequestIdCounters { identified: 9_000, distinct: 9_000, ..ONCE };
        let coalesced = RequestIdCounts { own: 9_000, coalesced: 1_000, ..ALL };
        assert_eq!(found(&named(coalesced, fewer), &["it was coalesced"], &["cached"]), Severity::Fatal);
        let of_another = RequestIdCounts { own: 9_000, of_another: 1_000, ..ALL };
        assert_eq!(found(&named(of_another, fewer), &["cached or coalesced"], &["in flight"]), Severity::Fatal);
    }

    #[test]
    fn forged_ids_are_seen_by_their_time_or_because_the_origin_never_saw_them() {
        let fewer = RequestIdCounters { identified: 9_000, distinct: 9_000, ..ONCE };
        let old = RequestIdCounts { own: 9_000, forged: 1_000, ..ALL };
        assert_eq!(found(&named(old, fewer), &["1000 (10.00 %) got a forged ID"], &["cached"]), Severity::Fatal);
        assert_eq!(found(&named(ALL, fewer), &["1000 (10.00 %) got a forged ID"], &["cached"]), Severity::Fatal);
    }

    #[test]
    fn the_products_own_responses_are_told_from_ids_that_it_took_away() {
        let without = RequestIdCounts { own: 9_000, missing: 1_000, ..ALL };
        let fewer = RequestIdCounters { identified: 9_000, distinct: 9_000, ..ONCE };
        assert_eq!(found(&named(without, fewer), &["by the product itself"], &["took"]), Severity::Fatal);
        assert_eq!(found(&named(without, ONCE), &["the product took it away"], &["itself"]), Severity::Warning);
        let half = RequestIdCounters { identified: 9_500, distinct: 9_500, ..ONCE };
        let both = ["500 (5.00 %) never reached", "500 (5.00 %) got a response without its ID"];
        assert_eq!(found(&named(without, half), &both, &[]), Severity::Fatal);
    }

    #[test]
    fn what_reached_the_origin_again_is_counted() {
        let twice = |n: u64| RequestIdCounters { identified: 10_000 + n, repeated: n, ..ONCE };
        assert_eq!(found(&named(ALL, twice(9)), &["9 times more: retried"], &[]), Severity::Warning);
        assert_eq!(found(&named(ALL, twice(500)), &["500 times more: retried"], &[]), Severity::Fatal);
        assert_eq!(found(&named(ALL, twice(10_000)), &["10000 times more: mirrored"], &[]), Severity::Fatal);
        let mut strange = named(ALL, ONCE);
        strange.origin.requests = 10_050;
        assert_eq!(
            found(&strange, &["50 (0.50 %) more reached the origin than were sent"], &["took"]),
            Severity::Fatal
        );
    }

    #[test]
    fn ids_that_are_taken_from_requests_leave_the_sums() {
        let nothing = RequestIdCounters::default();
        let mut trial = named(RequestIdCounts { own: 0, missing: 10_000, ..ALL }, nothing);
        trial.origin.requests = 10_000;
        assert_eq!(found(&trial, &["took the IDs of all requests away"], &[]), Severity::Warning);
        trial.origin.requests = 12;
        assert_eq!(found(&trial, &["9988 of 10000"], &[]), Severity::Fatal);
        let mut some = named(
            RequestIdCounts { own: 9_900, missing: 100, ..ALL },
            RequestIdCounters { identified: 9_900, distinct: 9_900, ..ONCE },
        );
        some.origin.requests = 10_000;
        assert_eq!(found(&some, &["100 (1.00 %) reached the origin without their ID"], &["itself"]), Severity::Warning);
    }

    #[test]
    fn refused_and_unanswered_requests_are_allowed_for() {
        let mut trial = named(
            RequestIdCounts { own: 9_943, missing: 47, ..ALL },
            RequestIdCounters { identified: 9_945, distinct: 9_945, ..ONCE },
        );
        trial.load.total.statuses = [(200, 9_943), (503, 47)].into();
        trial.load.total.errors = [(ErrorKind::BadStatus, 47)].into();
        assert_eq!(trial.check(super::super::check), None, "the product refused 47, and 10 have no response");
        trial.load.total.statuses = [(200, 9_943), (404, 47)].into();
        assert_eq!(
            found(&trial, &["45 (0.45 %) never reached", "2 (0.02 %) got a response without its ID"], &[]),
            Severity::Fatal
        );
    }

    #[test]
    fn a_cache_is_expected_to_answer_and_not_to_send_twice() {
        let cached = RequestIdCounts { own: 12, cached: 9_988, ..ALL };
        let few = RequestIdCounters { identified: 12, distinct: 12, ..ONCE };
        let mut trial = named(cached, few);
        trial.caches = true;
        assert_eq!(found(&trial, &["9988 (99.88 %)", "a cache does that"], &[]), Severity::Warning);
        assert_eq!(trial.check(super::super::check).expect("fires").check, "own-responses");
        trial.origin.request_ids = RequestIdCounters { identified: 2_012, repeated: 12, ..few };
        trial.origin.requests = 2_012;
        assert_eq!(found(&trial, &["2000 times more"], &[]), Severity::Fatal);
    }
}
