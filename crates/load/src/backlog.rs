//! The requests of an open load that are due and not yet sent, oldest first. `worker::pacing` takes requests from it.
//!
//! A queue of due times would grow without bound while a product is overloaded, and growing it would stall the
//! measuring thread. A schedule can be walked twice, so the queue is two walkers of one schedule and the distance
//! between them: `ahead` has counted what is due, `behind` yields what is sent next. Neither walks one by one through more requests
//! than it has to: at a rate that nobody can offer they fall due faster than they can be counted.

use crate::clock::NEVER;
use crate::schedule::Schedule;

/// So many are counted one by one, which is the cheapest for few.
const FEW: u64 = 16;

/// The queue of one thread. Times are of the run's clock.
#[derive(Debug)]
pub(crate) struct Backlog {
    ahead: Schedule,
    behind: Schedule,
    next: u64,
    /// The next value of `behind` after it was set to `ahead`, which is one request further.
    first: Option<u64>,
    waiting: u64,
    start: u64,
    end: u64,
}

impl Backlog {
    /// Nothing is due until [`Backlog::begin`].
    pub(crate) fn new(schedule: Schedule) -> Backlog {
        Backlog {
            behind: schedule.clone(),
            ahead: schedule,
            next: NEVER,
            first: None,
            waiting: 0,
            start: NEVER,
            end: NEVER,
        }
    }

    /// Fixes the load's start and its end. No request is due at `end` or later.
    pub(crate) fn begin(&mut self, start: u64, end: u64) {
        self.start = start;
        self.end = end;
        self.step();
    }

    /// Moves the end to an earlier time.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = self.end.min(end);
        if self.next >= self.end {
            self.next = NEVER;
        }
    }

    /// When the next request will be due that has not been counted yet; [`NEVER`] after the end.
    pub(crate) fn next_due(&self) -> u64 {
        self.next
    }

    /// Counts the requests that are due at or before `now`. Returns when the first is due, and how many they are.
    #[inline]
    pub(crate) fn count_due(&mut self, now: u64) -> Option<(u64, u64)> {
        let first = self.count_one(now)?;
        let mut n = 1;
        while self.count_one(now).is_some() {
            n += 1;
            if n == FEW && self.next <= now {
                // The next one has been taken from the schedule; those after it are passed over.
                let more = self.ahead.skip_until(now.min(self.end - 1) - self.start, u64::MAX);
                self.waiting += more;
                n += more;
            }
        }
        Some((first, n))
    }

    /// Counts one request that is due at or before `now`, and returns its due time; `None` when there is none left.
    fn count_one(&mut self, now: u64) -> Option<u64> {
        if self.next > now || self.next == NEVER {
            return None;
        }
        let due = self.next;
        self.waiting += 1;
        self.step();
        Some(due)
    }

    /// Takes the oldest request that waits, as its due time.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        self.waiting -= 1;
        let due = self.first.take().unwrap_or_else(|| self.start.saturating_add(self.behind.next_due()));
        Some(due)
    }

    /// Takes the requests that wait and are due at or before `at`, where their schedule can pass over them. Returns how many they are.
    pub(crate) fn pop_until(&mut self, at: u64) -> u64 {
        if self.waiting == 0 || self.first.is_some() || at < self.start {
            return 0;
        }
        let popped = self.behind.skip_until(at - self.start, self.waiting);
        self.waiting -= popped;
        popped
    }

    /// Which request is due then, of the run's clock; `None` where the time does not say.
    #[inline]
    pub(crate) fn request_at(&self, due: u64) -> Option<u32> {
        self.ahead.request_at(due.checked_sub(self.start)?)
    }

    /// Drops all waiting requests, and returns their number.
    pub(crate) fn forget(&mut self) -> u64 {
        self.behind = self.ahead.clone();
        self.first = Some(self.next);
        std::mem::take(&mut self.waiting)
    }

    /// Requests due and not sent.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    fn step(&mut self) {
        let due = self.start.saturating_add(self.ahead.next_due());
        self.next = if due < self.end { due } else { NEVER };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Timetable;
    use weir_model::load::OfferedRate;
    use weir_model::suite::{Arrivals, LoadKind};

    fn backlog(arrivals: Arrivals) -> Backlog {
        let mut backlog = Backlog::new(Timetable::Rate(1_000.0, arrivals).schedule(3, 0, 1));
        backlog.begin(5_000_000, 105_000_000);
        backlog
    }

    #[test]
    fn yields_exactly_what_was_counted_in_order() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let mut backlog = backlog(arrivals);
            let mut due = Vec::new();
            let mut sent = Vec::new();
            for now in (0..200).map(|ms| ms * 1_000_000) {
                while let Some(at) = backlog.count_one(now) {
                    assert!(at <= now);
                    due.push(at);
                }
                // Sends slower than they come, so that the distance grows and shrinks.
                if now % 2_000_000 == 0 {
                    sent.extend(backlog.pop());
                }
            }
            assert_eq!(backlog.waiting(), (due.len() - sent.len()) as u64);
            while let Some(at) = backlog.pop() {
                sent.push(at);
            }
            assert_eq!(due, sent);
        }
    }

    #[test]
    fn goes_on_after_what_was_forgotten() {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let mut backlog = backlog(arrivals);
            let count = |backlog: &mut Backlog, now| std::iter::from_fn(|| backlog.count_one(now)).count() as u64;
            let before = count(&mut backlog, 40_000_000);
            assert!(backlog.pop().is_some());
            assert_eq!(backlog.forget(), before - 1);
            assert_eq!((backlog.waiting(), backlog.pop()), (0, None));
            let due: Vec<u64> = std::iter::from_fn(|| backlog.count_one(NEVER - 1)).collect();
            let sent: Vec<u64> = std::iter::from_fn(|| backlog.pop()).collect();
            assert!(due.len() > 10 && due[0] > 40_000_000);
            assert_eq!(due, sent);
        }
    }

    #[test]
    fn nothing_is_due_before_the_start_or_from_the_end() {
        let mut backlog = backlog(Arrivals::Constant);
        assert_eq!(backlog.count_one(4_999_999), None);
        let all: Vec<u64> = std::iter::from_fn(|| backlog.count_one(NEVER - 1)).collect();
        assert_eq!(all.len(), 100);
        assert_eq!(all[0], 5_000_000);
        assert_eq!(all[99], 104_000_000);
        assert_eq!(backlog.next_due(), NEVER);
    }

    #[test]
    fn the_end_can_come_earlier() {
        let mut backlog = backlog(Arrivals::Constant);
        backlog.end_at(15_000_000);
        let all: Vec<u64> = std::iter::from_fn(|| backlog.count_one(NEVER - 1)).collect();
        assert_eq!(all.len(), 10);
    }

    #[test]
    fn a_schedule_may_end_before_the_load() {
        let kind =
            LoadKind::Open { rate: OfferedRate::Replay(vec![0.001, 0.002, 0.002, 0.5]), arrivals: Arrivals::Constant };
        let mut backlog = Backlog::new(Timetable::new(&kind, 0, 1_000_000_000).unwrap().schedule(0, 0, 1));
        assert_eq!(backlog.count_one(NEVER - 1), None, "nothing before the start");
        backlog.begin(1_000, 100_000_000);
        let all: Vec<u64> = std::iter::from_fn(|| backlog.count_one(NEVER - 1)).collect();
        assert_eq!(all, [1_001_000, 2_001_000, 2_001_000], "the last is due after the load's end");
        assert_eq!(backlog.next_due(), NEVER);

        let mut backlog = Backlog::new(Timetable::new(&kind, 0, 1_000_000_000).unwrap().schedule(0, 0, 1));
        backlog.begin(1_000, 1_000_000_000);
        let all: Vec<u64> = std::iter::from_fn(|| backlog.count_one(NEVER - 1)).collect();
        assert_eq!((all.len(), backlog.next_due()), (4, NEVER));
        assert_eq!(backlog.count_one(NEVER - 1), None);
        let sent: Vec<u64> = std::iter::from_fn(|| backlog.pop()).collect();
        assert_eq!(sent, all);
        assert_eq!(backlog.waiting(), 0);
    }
}
