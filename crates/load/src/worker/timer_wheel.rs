//! Who has waited too long, without looking at everybody and without work for each request.
//!
//! Whoever begins to wait is filed under the time at which its timeouts would end, unless it still is filed from an
//! earlier wait. When that time comes it is taken out and looked at: if by then it waits for something newer, it is filed
//! again. As all wait equally long, nobody is filed too late, and each is looked at once a timeout, not once a request.
//!
//! It does not know what anybody waits for.

use crate::clock::MILLI;

/// How exact times are; so late may a timeout be.
pub(super) const TICK: u64 = 10 * MILLI;

/// Times further ahead than so many ticks (10 s) are looked at more often than once.
const TICKS: u64 = 1024;

/// The end of a list, and not being in any.
const LAST: u32 = u32::MAX;
const UNFILED: u32 = u32::MAX - 1;

/// Files who waits, by small dense numbers.
#[derive(Debug)]
pub(super) struct TimerWheel {
    /// The first of those filed under each tick.
    files: Box<[u32]>,
    /// For each number, who comes behind it.
    behind: Vec<u32>,
    /// Those whose time has come, and that have not been taken yet.
    overdue: u32,
    /// The next tick to look at.
    tick: u64,
}

impl TimerWheel {
    /// For nobody yet, and numbers below `most` later.
    pub(super) fn new(most: u32, now: u64) -> TimerWheel {
        let behind = Vec::with_capacity(most as usize);
        TimerWheel { files: vec![LAST; TICKS as usize].into(), behind, overdue: LAST, tick: now / TICK }
    }

    /// For so many numbers more.
    pub(super) fn grow(&mut self, by: u32) {
        self.behind.resize(self.behind.len() + by as usize, UNFILED);
    }

    /// `id` is to be looked at when `until` has passed.
    #[inline]
    pub(super) fn watch(&mut self, id: u32, until: u64) {
        if self.behind[id as usize] == UNFILED {
            self.file(id, until);
        }
    }

    fn file(&mut self, id: u32, until: u64) {
        let tick = (until / TICK).saturating_add(1).clamp(self.tick, self.tick + TICKS - 1);
        let first = &mut self.files[(tick % TICKS) as usize];
        self.behind[id as usize] = std::mem::replace(first, id);
    }

    /// Takes out somebody whose time may have come; `None` when nobody else's has.
    pub(super) fn take(&mut self, now: u64) -> Option<u32> {
        let present = now / TICK;
        loop {
            if self.overdue != LAST {
                let id = self.overdue;
                self.overdue = std::mem::replace(&mut self.behind[id as usize], UNFILED);
                return Some(id);
            }
            if self.tick > present {
                return None;
            }
            let file = &mut self.files[(self.tick % TICKS) as usize];
            self.overdue = std::mem::replace(file, LAST);
            self.tick += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    fn timeouts(count: u32, now: u64) -> TimerWheel {
        let mut timeouts = TimerWheel::new(count, now);
        timeouts.grow(count);
        timeouts
    }

    fn all(timeouts: &mut TimerWheel, now: u64) -> Vec<u32> {
        let mut ids: Vec<u32> = std::iter::from_fn(|| timeouts.take(now)).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn nobody_is_taken_early_and_nobody_more_than_a_tick_late() {
        let mut timeouts = timeouts(100, 3 * SECOND);
        for id in 0..100 {
            timeouts.watch(id, 4 * SECOND + u64::from(id) * MILLI);
        }
        for now in (3 * SECOND..5 * SECOND).step_by(MILLI as usize) {
            while let Some(id) = timeouts.take(now) {
                let until = 4 * SECOND + u64::from(id) * MILLI;
                assert!(now > until && now <= until + TICK, "{id}: {now} {until}");
            }
        }
        assert!(all(&mut timeouts, 100 * SECOND).is_empty());
    }

    #[test]
    fn who_is_filed_stays_where_it_is_until_it_is_taken() {
        let mut timeouts = timeouts(2, 0);
        timeouts.watch(1, SECOND);
        timeouts.watch(1, 2 * SECOND);
        assert_eq!(all(&mut timeouts, SECOND + TICK), [1]);
        // What it is looked at for has moved: it is filed again, also while others are being taken.
        timeouts.watch(1, 2 * SECOND);
        assert!(all(&mut timeouts, 2 * SECOND - TICK).is_empty());
        assert_eq!(all(&mut timeouts, 2 * SECOND + TICK), [1]);
    }

    #[test]
    fn times_far_ahead_are_looked_at_on_the_way() {
        let mut timeouts = timeouts(1, 0);
        timeouts.watch(0, 25 * SECOND);
        let mut looks = Vec::new();
        for now in (0..30 * SECOND).step_by(TICK as usize) {
            while let Some(id) = timeouts.take(now) {
                looks.push(now);
                if now < 25 * SECOND {
                    timeouts.watch(id, 25 * SECOND);
                }
            }
        }
        assert_eq!(looks.len(), 3);
        assert_eq!(*looks.last().unwrap(), 25 * SECOND + TICK);
    }

    #[test]
    fn a_clock_that_jumps_loses_nobody() {
        let mut timeouts = timeouts(10, 0);
        (0..10).for_each(|id| timeouts.watch(id, u64::from(id) * SECOND));
        assert_eq!(all(&mut timeouts, 3_600 * SECOND).len(), 10);
    }
}
