//! Which connections to look at again, and when: a binary heap.
//!
//! A connection has at most one answer whose time is awaited (the oldest, since answers leave in order), so the
//! heap holds about one entry a connection. An entry whose connection is gone stays until its time and is then
//! ignored by its receiver.
//!
//! This module does not know what is due, nor what time it is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use weir_net::Conn;

/// Connections by the time at which they want to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    next_serial: u64,
}

/// Ordered by time, then by when it was set: connections due at once are served in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Instant,
    serial: u64,
    slot: u32,
    life: u32,
}

impl Timers {
    /// Asks for `conn` at `at`.
    pub(crate) fn set(&mut self, at: Instant, conn: Conn) {
        // A slot is made from a u32, so it fits.
        let slot = conn.slot() as u32;
        self.heap.push(Reverse(Entry { at, serial: self.next_serial, slot, life: conn.life() }));
        self.next_serial += 1;
    }

    /// When something is due next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next connection that is due at `now`; never one whose time is still to come.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Conn> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| Conn::new(entry.slot, entry.life))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn in_order_and_never_early() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        for (slot, ms) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
            timers.set(at(ms), Conn::new(slot, 7));
        }
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop(at(9)), None);
        assert_eq!(timers.pop(at(10)), Some(Conn::new(2, 7)));
        assert_eq!(timers.pop(at(25)), Some(Conn::new(4, 7)), "set later, served later");
        assert_eq!(timers.pop(at(25)), Some(Conn::new(3, 7)));
        assert_eq!(timers.pop(at(25)), None);
        assert_eq!(timers.pop(at(30)), Some(Conn::new(1, 7)));
        assert_eq!((timers.pop(at(99)), timers.next()), (None, None));
    }
}
