//! Deadlines that are many and rarely reached, such as the timeouts of `pool` and `connector`. Backoffs and think times are fewer and all
//! reached: they are in a [`weir_net::TimerQueue`].
//!
//! The wheel costs nothing per request. An id is filed under the tick of its deadline, unless it is still filed under
//! an earlier one. When that tick comes the id is taken out, and filed again if its deadline has moved. All timeouts
//! are equally long, so no id is filed too late, and each is checked once per timeout.

use crate::clock::MILLI;

/// The precision of deadlines: one may be found late by this much.
const TICK: u64 = 10 * MILLI;

/// Deadlines further ahead than this many ticks (10 s) are checked more than once.
const TICKS: u64 = 1024;

/// The end of a list, and not being in any.
const LAST: u32 = u32::MAX;
const UNFILED: u32 = u32::MAX - 1;

/// See the module. Ids are small dense numbers.
#[derive(Debug)]
pub(super) struct TimerWheel {
    /// The first id of each tick.
    buckets: Box<[u32]>,
    /// For each id, the next in its bucket.
    next: Vec<u32>,
    /// Those whose tick has come and that have not been taken yet.
    expired: u32,
    /// The next tick to check.
    tick: u64,
}

impl TimerWheel {
    /// Without ids; there will be `most`.
    pub(super) fn new(most: u32, now: u64) -> TimerWheel {
        let next = Vec::with_capacity(most as usize);
        TimerWheel { buckets: vec![LAST; TICKS as usize].into(), next, expired: LAST, tick: now / TICK }
    }

    /// Adds so many ids.
    pub(super) fn grow(&mut self, by: u32) {
        self.next.resize(self.next.len() + by as usize, UNFILED);
    }

    /// `id` has a deadline.
    #[inline]
    pub(super) fn watch(&mut self, id: u32, until: u64) {
        if self.next[id as usize] == UNFILED {
            self.file(id, until);
        }
    }

    fn file(&mut self, id: u32, until: u64) {
        let tick = (until / TICK).saturating_add(1).clamp(self.tick, self.tick + TICKS - 1);
        let first = &mut self.buckets[(tick % TICKS) as usize];
        self.next[id as usize] = std::mem::replace(first, id);
    }

    /// Takes an id whose deadline may have passed; `None` when there are no more.
    pub(super) fn take(&mut self, now: u64) -> Option<u32> {
        let present = now / TICK;
        loop {
            if self.expired != LAST {
                let id = self.expired;
                self.expired = std::mem::replace(&mut self.next[id as usize], UNFILED);
                return Some(id);
            }
            if self.tick > present {
                return None;
            }
            let bucket = &mut self.buckets[(self.tick % TICKS) as usize];
            self.expired = std::mem::replace(bucket, LAST);
            self.tick += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    fn wheel(count: u32, now: u64) -> TimerWheel {
        let mut wheel = TimerWheel::new(count, now);
        wheel.grow(count);
        wheel
    }

    fn all(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
        let mut ids: Vec<u32> = std::iter::from_fn(|| wheel.take(now)).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn deadlines_are_found_a_tick_late_at_most_and_never_early() {
        let mut wheel = wheel(100, 3 * SECOND);
        for id in 0..100 {
            wheel.watch(id, 4 * SECOND + u64::from(id) * MILLI);
        }
        for now in (3 * SECOND..5 * SECOND).step_by(MILLI as usize) {
            while let Some(id) = wheel.take(now) {
                let until = 4 * SECOND + u64::from(id) * MILLI;
                assert!(now > until && now <= until + TICK, "{id}: {now} {until}");
            }
        }
        assert!(all(&mut wheel, 100 * SECOND).is_empty());
    }

    #[test]
    fn an_id_stays_where_it_is_filed_until_it_is_taken() {
        let mut wheel = wheel(2, 0);
        wheel.watch(1, SECOND);
        wheel.watch(1, 2 * SECOND);
        assert_eq!(all(&mut wheel, SECOND + TICK), [1]);
        // What it is looked at for has moved: it is filed again, also while others are being taken.
        wheel.watch(1, 2 * SECOND);
        assert!(all(&mut wheel, 2 * SECOND - TICK).is_empty());
        assert_eq!(all(&mut wheel, 2 * SECOND + TICK), [1]);
    }

    #[test]
    fn deadlines_far_ahead_are_looked_at_on_the_way() {
        let mut wheel = wheel(1, 0);
        wheel.watch(0, 25 * SECOND);
        let mut looks = Vec::new();
        for now in (0..30 * SECOND).step_by(TICK as usize) {
            while let Some(id) = wheel.take(now) {
                looks.push(now);
                if now < 25 * SECOND {
                    wheel.watch(id, 25 * SECOND);
                }
            }
        }
        assert_eq!(looks.len(), 3);
        assert_eq!(*looks.last().unwrap(), 25 * SECOND + TICK);
    }

    #[test]
    fn a_clock_that_jumps_loses_no_deadline() {
        let mut wheel = wheel(10, 0);
        (0..10).for_each(|id| wheel.watch(id, u64::from(id) * SECOND));
        assert_eq!(all(&mut wheel, 3_600 * SECOND).len(), 10);
    }
}
