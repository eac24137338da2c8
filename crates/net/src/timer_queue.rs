//! Things to do at a time: backoffs and think times of the client, delays of the origin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Things to do at a time, the earliest first. None is taken back: who set one sees when it comes whether it still means anything.
#[derive(Debug)]
pub struct TimerQueue<T>(BinaryHeap<Reverse<(u64, T)>>);

impl<T: Ord + Copy> Default for TimerQueue<T> {
    fn default() -> TimerQueue<T> {
        TimerQueue::with_capacity(0)
    }
}

impl<T: Ord + Copy> TimerQueue<T> {
    /// With room for so many.
    pub fn with_capacity(most: usize) -> TimerQueue<T> {
        TimerQueue(BinaryHeap::with_capacity(most))
    }

    /// Adds one.
    pub fn push(&mut self, at: u64, what: T) {
        self.0.push(Reverse((at, what)));
    }

    /// The earliest time.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the earliest, if its time has come.
    pub fn pop(&mut self, now: u64) -> Option<(u64, T)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
