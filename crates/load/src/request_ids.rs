//! Names of requests on the client's side: gives each request of a worker its name, and compares it with that of its answer. The
//! protocols write the name into the request and find the answer's; `worker` and `result` read the counts. It does not know
//! connections, nor what the counts mean for a product (the audit does).

use weir_model::load::{ANSWER_HEADER, NameCounts, Names};
use weir_wire::names::{AnswerKey, Answered, HeaderFinder, Name};

/// Names of other requests that are remembered.
const REMEMBERED: usize = 1_024;

/// The names of one worker.
#[derive(Debug, Clone)]
pub(crate) struct NameWatch {
    load: u16,
    thread: u32,
    one_clock: bool,
    key: AnswerKey,
    /// The number of the next request.
    next: u64,
    finder: HeaderFinder,
    /// Names of other requests that responses had, each at the place that its number gives.
    of_others: Vec<Name>,
    /// What came of them so far.
    pub counts: NameCounts,
}

impl NameWatch {
    /// For the thread with this number of all.
    pub(crate) fn new(names: &Names, thread: u32) -> NameWatch {
        let finder = HeaderFinder::new(ANSWER_HEADER);
        let (load, one_clock, key) = (names.load, names.one_clock, AnswerKey(names.key));
        let of_others = vec![Name::default(); REMEMBERED];
        NameWatch { load, thread, one_clock, key, next: 0, finder, of_others, counts: NameCounts::default() }
    }

    /// The name of the request that is encoded now.
    #[inline]
    pub(crate) fn name(&self) -> Name {
        Name::new(self.load, self.thread, self.next)
    }

    /// That request was sent.
    #[inline]
    pub(crate) fn sent(&mut self) -> Name {
        let name = self.name();
        self.next += 1;
        name
    }

    /// The answer's name in a head of HTTP/1.1.
    #[inline]
    pub(crate) fn find<'h>(&mut self, head: &'h [u8]) -> Option<&'h [u8]> {
        self.finder.find(head)
    }

    /// The request `name`, sent at `sent`, was answered with this name.
    #[inline]
    pub(crate) fn answered(&mut self, name: Name, sent: u64, value: Option<&[u8]>) {
        let Some(value) = value else {
            self.counts.without += 1;
            return;
        };
        let answered = Answered::parse(value, self.key);
        match answered {
            Some(answered) if answered.name == name && !self.is_before(answered, sent) => self.counts.own += 1,
            _ => self.other(answered, name, sent),
        }
    }

    #[cold]
    fn other(&mut self, answered: Option<Answered>, name: Name, sent: u64) {
        let Some(answered) = answered else {
            self.counts.forged += 1;
            return;
        };
        let issued = answered.name.load() != self.load
            || answered.name.thread() != self.thread
            || answered.name.number() < self.next;
        // Names of other loads, and weir's own, are of earlier requests.
        let earlier = answered.name.load() != self.load;
        let before = self.is_before(answered, sent);
        let counts = &mut self.counts;
        if answered.name != name && issued {
            let place = &mut self.of_others[answered.name.number() as usize % REMEMBERED];
            counts.reused += u64::from(std::mem::replace(place, answered.name) == answered.name);
        }
        match () {
            () if answered.name == name || !issued => counts.forged += 1,
            () if earlier || before => counts.cached += 1,
            () if self.one_clock => counts.shared += 1,
            () => counts.anothers += 1,
        }
    }

    /// Whether the origin answered before a request was sent at that time.
    #[inline]
    fn is_before(&self, answered: Answered, sent: u64) -> bool {
        self.one_clock && answered.at_us < sent / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(one_clock: bool) -> NameWatch {
        let names = Names { header: "x".into(), load: 7, one_clock, key: [1, 2] };
        NameWatch::new(&names, 3)
    }

    /// What an answer to request 1 counts as. `after_us`: when it was answered, after request 1 was sent.
    fn counted(one_clock: bool, answer: Option<(Name, i64)>) -> NameCounts {
        let mut watch = watch(one_clock);
        watch.sent();
        let name = watch.sent();
        let sent: u64 = 1_000_000_000;
        let text = answer.map(|(name, after_us)| {
            let at_us = sent / 1_000;
            Answered { name, worker: 0, at_us: at_us.saturating_add_signed(after_us) }.text(watch.key)
        });
        watch.answered(name, sent, text.as_ref().map(|text| &text[..]));
        watch.counts
    }

    #[test]
    fn names_follow_each_other() {
        let mut watch = watch(true);
        assert_eq!(
            (watch.name(), watch.sent(), watch.sent()),
            (Name::new(7, 3, 0), Name::new(7, 3, 0), Name::new(7, 3, 1))
        );
    }

    #[test]
    fn answers_are_told_apart_by_name_and_time() {
        let none = NameCounts::default();
        let own = Name::new(7, 3, 1);
        assert_eq!(counted(true, None), NameCounts { without: 1, ..none });
        assert_eq!(counted(true, Some((own, 0))), NameCounts { own: 1, ..none });
        assert_eq!(counted(true, Some((own, -1))), NameCounts { forged: 1, ..none }, "older than its request");
        assert_eq!(counted(false, Some((own, -1))), NameCounts { own: 1, ..none }, "the clocks differ");
        for other in [Name::new(7, 3, 0), Name::new(7, 4, 9)] {
            assert_eq!(counted(true, Some((other, -1))), NameCounts { cached: 1, ..none });
            assert_eq!(counted(true, Some((other, 5))), NameCounts { shared: 1, ..none });
            assert_eq!(counted(false, Some((other, 5))), NameCounts { anothers: 1, ..none });
        }
        assert_eq!(
            counted(false, Some((Name::new(6, 3, 900), 5))),
            NameCounts { cached: 1, ..none },
            "of a load before"
        );
        assert_eq!(counted(true, Some((Name::new(7, 3, 2), 5))), NameCounts { forged: 1, ..none }, "never issued");
    }

    #[test]
    fn a_response_that_several_requests_get_is_told_from_one_that_moves() {
        let mut watch = watch(true);
        let names: Vec<Name> = (0..6).map(|_| watch.sent()).collect();
        let mut answer = |to: usize, of: usize| {
            let text = Answered { name: names[of], worker: 0, at_us: 5 }.text(watch.key);
            watch.answered(names[to], 0, Some(&text));
            watch.counts.reused
        };
        assert_eq!([answer(0, 1), answer(1, 0)], [0, 0], "exchanged");
        assert_eq!([answer(2, 2), answer(3, 2), answer(4, 2), answer(5, 2)], [0, 0, 1, 2], "one for all");
    }

    #[test]
    fn what_is_no_name_is_forged_and_what_another_wrote() {
        let mut watch = watch(true);
        let name = watch.sent();
        watch.answered(name, 0, Some(b"0000"));
        let right = Answered { name, worker: 0, at_us: u64::MAX };
        watch.answered(name, 0, Some(&right.text(AnswerKey([1, 3]))));
        assert_eq!(watch.counts, NameCounts { forged: 2, ..NameCounts::default() });
        watch.answered(name, 0, Some(&right.text(AnswerKey([1, 2]))));
        assert_eq!(watch.counts, NameCounts { forged: 2, own: 1, ..NameCounts::default() });
    }
}
