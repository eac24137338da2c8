//! Request IDs on the client's side: gives each request of a worker its ID, and compares it with that of its response. The
//! protocols write the ID into the request and find the response's; `worker` and `result` read the counts. It does not know
//! connections, nor what the counts mean for a product (the audit does).

use weir_model::load::{RequestIdCounts, RequestIds};
use weir_wire::request_id::{RequestId, ResponseKey, ResponseTag};

/// IDs of other requests that are remembered.
const REMEMBERED: usize = 1_024;

/// The IDs of one worker.
#[derive(Debug, Clone)]
pub(crate) struct RequestIdWatch {
    load: u16,
    thread: u32,
    one_clock: bool,
    key: ResponseKey,
    /// The number of the next request.
    next: u64,
    /// IDs of other requests that responses had, each at the place that its number gives.
    of_others: Vec<RequestId>,
    /// What came of them so far.
    pub counts: RequestIdCounts,
}

impl RequestIdWatch {
    /// For the thread with this number of all.
    pub(crate) fn new(ids: &RequestIds, thread: u32) -> RequestIdWatch {
        let (load, one_clock, key) = (ids.load, ids.one_clock, ResponseKey(ids.key));
        let of_others = vec![RequestId::default(); REMEMBERED];
        RequestIdWatch { load, thread, one_clock, key, next: 0, of_others, counts: RequestIdCounts::default() }
    }

    /// The request ID that is encoded now.
    #[inline]
    pub(crate) fn id(&self) -> RequestId {
        RequestId::new(self.load, self.thread, self.next)
    }

    /// That request was sent.
    #[inline]
    pub(crate) fn sent(&mut self) -> RequestId {
        let id = self.id();
        self.next += 1;
        id
    }

    /// The request with this ID, sent at `sent`, had a response with this header.
    #[inline]
    pub(crate) fn check(&mut self, id: RequestId, sent: u64, value: Option<&[u8]>) {
        let Some(value) = value else {
            self.counts.missing += 1;
            return;
        };
        let tag = ResponseTag::parse(value, self.key);
        match tag {
            Some(tag) if tag.id == id && !self.is_before(tag, sent) => self.counts.own += 1,
            _ => self.other(tag, id, sent),
        }
    }

    #[cold]
    fn other(&mut self, tag: Option<ResponseTag>, id: RequestId, sent: u64) {
        let Some(tag) = tag else {
            self.counts.forged += 1;
            return;
        };
        let issued = tag.id.load() != self.load || tag.id.thread() != self.thread || tag.id.number() < self.next;
        // IDs of other loads, and weir's own, are of earlier requests.
        let earlier = tag.id.load() != self.load;
        let before = self.is_before(tag, sent);
        let counts = &mut self.counts;
        if tag.id != id && issued {
            let place = &mut self.of_others[tag.id.number() as usize % REMEMBERED];
            counts.reused += u64::from(std::mem::replace(place, tag.id) == tag.id);
        }
        match () {
            () if tag.id == id || !issued => counts.forged += 1,
            () if earlier || before => counts.cached += 1,
            () if self.one_clock => counts.coalesced += 1,
            () => counts.of_another += 1,
        }
    }

    /// Whether the origin answered before a request was sent at that time.
    #[inline]
    fn is_before(&self, tag: ResponseTag, sent: u64) -> bool {
        self.one_clock && tag.at_us < sent / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(one_clock: bool) -> RequestIdWatch {
        let ids = RequestIds { key: [1, 2], ..RequestIds::new("x".into(), 7, one_clock) };
        RequestIdWatch::new(&ids, 3)
    }

    /// What a response to request 1 counts as. `after_us`: when it was answered, after request 1 was sent.
    fn counted(one_clock: bool, response: Option<(RequestId, i64)>) -> RequestIdCounts {
        let mut watch = watch(one_clock);
        watch.sent();
        let id = watch.sent();
        let sent: u64 = 1_000_000_000;
        let text = response.map(|(id, after_us)| {
            let at_us = sent / 1_000;
            ResponseTag { id, worker: 0, at_us: at_us.saturating_add_signed(after_us) }.text(watch.key)
        });
        watch.check(id, sent, text.as_ref().map(|text| &text[..]));
        watch.counts
    }

    #[test]
    fn names_follow_each_other() {
        let mut watch = watch(true);
        assert_eq!(
            (watch.id(), watch.sent(), watch.sent()),
            (RequestId::new(7, 3, 0), RequestId::new(7, 3, 0), RequestId::new(7, 3, 1))
        );
    }

    #[test]
    fn answers_are_told_apart_by_name_and_time() {
        let none = RequestIdCounts::default();
        let own = RequestId::new(7, 3, 1);
        assert_eq!(counted(true, None), RequestIdCounts { missing: 1, ..none });
        assert_eq!(counted(true, Some((own, 0))), RequestIdCounts { own: 1, ..none });
        assert_eq!(counted(true, Some((own, -1))), RequestIdCounts { forged: 1, ..none }, "older than its request");
        assert_eq!(counted(false, Some((own, -1))), RequestIdCounts { own: 1, ..none }, "the clocks differ");
        for other in [RequestId::new(7, 3, 0), RequestId::new(7, 4, 9)] {
            assert_eq!(counted(true, Some((other, -1))), RequestIdCounts { cached: 1, ..none });
            assert_eq!(counted(true, Some((other, 5))), RequestIdCounts { coalesced: 1, ..none });
            assert_eq!(counted(false, Some((other, 5))), RequestIdCounts { of_another: 1, ..none });
        }
        assert_eq!(
            counted(false, Some((RequestId::new(6, 3, 900), 5))),
            RequestIdCounts { cached: 1, ..none },
            "of a load before"
        );
        assert_eq!(
            counted(true, Some((RequestId::new(7, 3, 2), 5))),
            RequestIdCounts { forged: 1, ..none },
            "never issued"
        );
    }

    #[test]
    fn a_response_that_several_requests_get_is_told_from_one_that_moves() {
        let mut watch = watch(true);
        let ids: Vec<RequestId> = (0..6).map(|_| watch.sent()).collect();
        let mut response = |to: usize, of: usize| {
            let text = ResponseTag { id: ids[of], worker: 0, at_us: 5 }.text(watch.key);
            watch.check(ids[to], 0, Some(&text));
            watch.counts.reused
        };
        assert_eq!([response(0, 1), response(1, 0)], [0, 0], "exchanged");
        assert_eq!([response(2, 2), response(3, 2), response(4, 2), response(5, 2)], [0, 0, 1, 2], "one for all");
    }

    #[test]
    fn what_is_no_name_is_forged_and_what_another_wrote() {
        let mut watch = watch(true);
        let id = watch.sent();
        watch.check(id, 0, Some(b"0000"));
        let right = ResponseTag { id, worker: 0, at_us: u64::MAX };
        watch.check(id, 0, Some(&right.text(ResponseKey([1, 3]))));
        assert_eq!(watch.counts, RequestIdCounts { forged: 2, ..RequestIdCounts::default() });
        watch.check(id, 0, Some(&right.text(ResponseKey([1, 2]))));
        assert_eq!(watch.counts, RequestIdCounts { forged: 2, own: 1, ..RequestIdCounts::default() });
    }
}
