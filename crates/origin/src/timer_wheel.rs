//! A hierarchical timer wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987): setting and
//! cancelling cost the same however many timers there are.
//!
//! A tick is 2^15 ns, about 33 µs. Level 0 has a list for each of the next 64 ticks, level 1 for each of the next 64
//! spans of 64 ticks, and so on. When the time of a list of an upper level comes, its timers are distributed to the
//! levels below. The timers of a list expire when their tick is over, so up to a tick late. Where a list is short, as
//! it is under light load, its timers are checked one by one and expire exactly when they are due. None expires
//! early.
//!
//! [`crate::timers`] uses it. This module does not know clocks: times are nanoseconds since any fixed moment.

/// A tick is 2 to this power nanoseconds.
const TICK_BITS: u32 = 15;
/// A level has 2 to this power lists.
const LEVEL_BITS: u32 = 6;
const LISTS: usize = 1 << LEVEL_BITS;
/// Eight levels span 2^48 ticks: all that [`LATEST`] allows.
const LEVELS: usize = 8;
/// The latest time that can be represented, 292 years.
const LATEST: u64 = (1 << (TICK_BITS as usize + LEVEL_BITS as usize * LEVELS)) - 1;
/// Lists up to this long are searched for the timer that is due first.
const SHORT: usize = 8;
const NONE: u32 = u32::MAX;

/// The identifier of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerId {
    node: u32,
    /// Distinguishes the timers that have used the node.
    generation: u32,
}

/// Timers, each with a small value that says what to wake.
#[derive(Debug)]
pub(crate) struct TimerWheel<T> {
    nodes: Vec<Node<T>>,
    /// First of the free nodes, linked by `next`.
    free: u32,
    levels: [Level; LEVELS],
    /// Every timer whose tick is before this one has expired.
    tick: u64,
    set: usize,
}

#[derive(Debug)]
struct Level {
    /// A bit for each list that has timers.
    occupied: u64,
    lists: [List; LISTS],
}

/// A list, both ends.
#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Node<T> {
    at: u64,
    before: u32,
    next: u32,
    generation: u32,
    level: u8,
    list: u8,
    used: bool,
    value: T,
}

/// A list with timers: its position, and the tick at which it begins.
#[derive(Debug, Clone, Copy)]
struct ListPosition {
    level: usize,
    list: usize,
    tick: u64,
}

impl<T> Default for TimerWheel<T> {
    fn default() -> TimerWheel<T> {
        let list = List { first: NONE, last: NONE };
        let level = || Level { occupied: 0, lists: [list; LISTS] };
        TimerWheel { nodes: Vec::new(), free: NONE, levels: std::array::from_fn(|_| level()), tick: 0, set: 0 }
    }
}

impl<T: Copy> TimerWheel<T> {
    /// Whether no timer is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.set == 0
    }

    /// Sets a timer. One whose time has passed expires at the next check.
    pub(crate) fn set(&mut self, at: u64, value: T) -> TimerId {
        let at = at.min(LATEST);
        let node = self.take_node(at, value);
        self.insert(node);
        self.set += 1;
        TimerId { node, generation: self.nodes[node as usize].generation }
    }

    /// Cancels a timer. Returns false when it has expired or been cancelled already.
    pub(crate) fn cancel(&mut self, id: TimerId) -> bool {
        let node = &self.nodes[id.node as usize];
        let is_set = node.used && node.generation == id.generation;
        if is_set {
            self.remove(id.node);
        }
        is_set
    }

    /// When to check next: never after a timer's time (except for the tick that a long list waits for), and sometimes
    /// before anything is due.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        if self.is_empty() { None } else { self.next_check() }
    }

    fn next_check(&self) -> Option<u64> {
        let place = self.first()?;
        let list = self.levels[place.level].lists[place.list];
        let (first, short) = self.first_of(list);
        let end = if place.level == 0 { place.tick + 1 } else { place.tick };
        Some(if short { first } else { end << TICK_BITS })
    }

    /// The next timer that is due at `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<T> {
        let tick = now.min(LATEST) >> TICK_BITS;
        while let Some(place) = self.first() {
            if place.tick > tick {
                break;
            }
            self.tick = place.tick.max(self.tick);
            let list = self.levels[place.level].lists[place.list];
            if place.level > 0 {
                self.distribute(list);
            } else if place.tick < tick {
                return Some(self.remove(list.first));
            } else {
                return self.due_in(list, now).map(|node| self.remove(node));
            }
        }
        // Nothing is set for the ticks before `tick`, so no list on the way has to be distributed.
        self.tick = tick.max(self.tick);
        None
    }

    /// The list whose time comes first. Lower levels come before upper ones: a timer is in the level of the highest
    /// digit in which its tick differs from the wheel's.
    fn first(&self) -> Option<ListPosition> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        let list = self.levels[level].occupied.trailing_zeros() as usize;
        let shift = level as u32 * LEVEL_BITS;
        let above = self.tick >> shift >> LEVEL_BITS << LEVEL_BITS << shift;
        Some(ListPosition { level, list, tick: above | (list as u64) << shift })
    }

    fn insert(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let tick = (node.at >> TICK_BITS).max(self.tick);
        let differs = (tick ^ self.tick) | 1;
        let level = ((63 - differs.leading_zeros()) / LEVEL_BITS) as usize;
        let list = (tick >> (level as u32 * LEVEL_BITS)) as usize % LISTS;
        // Both are below 64.
        (node.level, node.list) = (level as u8, list as u8);
        let level = &mut self.levels[level];
        level.occupied |= 1 << list;
        let List { first, last } = &mut level.lists[list];
        (node.before, node.next) = (*last, NONE);
        match *last {
            NONE => *first = index,
            last => self.nodes[last as usize].next = index,
        }
        *last = index;
    }

    /// Removes a node from its list.
    fn unlink(&mut self, index: u32) {
        let Node { before, next, level, list, .. } = self.nodes[index as usize];
        let level = &mut self.levels[level as usize];
        let ends = &mut level.lists[list as usize];
        match before {
            NONE => ends.first = next,
            before => self.nodes[before as usize].next = next,
        }
        match next {
            NONE => ends.last = before,
            next => self.nodes[next as usize].before = before,
        }
        if ends.first == NONE {
            level.occupied &= !(1 << list);
        }
    }

    fn remove(&mut self, index: u32) -> T {
        self.unlink(index);
        let node = &mut self.nodes[index as usize];
        node.used = false;
        node.generation = node.generation.wrapping_add(1);
        node.next = self.free;
        self.free = index;
        self.set -= 1;
        node.value
    }

    /// Distributes a list of an upper level to the levels below.
    fn distribute(&mut self, list: List) {
        let mut index = list.first;
        while index != NONE {
            let next = self.nodes[index as usize].next;
            self.unlink(index);
            self.insert(index);
            index = next;
        }
    }

    /// The earliest time in a list, if the list is short.
    fn first_of(&self, list: List) -> (u64, bool) {
        let mut first = u64::MAX;
        let mut index = list.first;
        for _ in 0..SHORT {
            if index == NONE {
                return (first, true);
            }
            let node = &self.nodes[index as usize];
            first = first.min(node.at);
            index = node.next;
        }
        (first, index == NONE)
    }

    /// The first timer that is due, of those in a list that is not over, if the list is short.
    fn due_in(&self, list: List, now: u64) -> Option<u32> {
        let (first, short) = self.first_of(list);
        if !short || first > now {
            return None;
        }
        let mut index = list.first;
        while index != NONE && self.nodes[index as usize].at != first {
            index = self.nodes[index as usize].next;
        }
        (index != NONE).then_some(index)
    }

    fn take_node(&mut self, at: u64, value: T) -> u32 {
        if self.free != NONE {
            let index = self.free;
            let node = &mut self.nodes[index as usize];
            self.free = node.next;
            (node.at, node.value, node.used) = (at, value, true);
            return index;
        }
        // A timer takes over 32 bytes: memory ends long before u32 does.
        let index = self.nodes.len() as u32;
        self.nodes.push(Node { at, before: NONE, next: NONE, generation: 0, level: 0, list: 0, used: true, value });
        index
    }
}

#[cfg(test)]
mod tests;
