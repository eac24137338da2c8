//! The bytes that connections still have to send: queues of owned and borrowed bytes in a pool, so that a connection
//! with nothing to send holds no queue.
//!
//! Both drivers use it. It does not know sockets.

use std::collections::VecDeque;
use std::io::IoSlice;

/// Bodies of up to this many bytes are copied behind their head: the kernel takes one run of bytes more cheaply than
/// two.
const COPY_UP_TO: usize = 4096;

/// Bytes sent are dropped from the front of a queue once there are this many.
const DROP_FROM: usize = 64 * 1024;

/// The capacity, in bytes, that every queue may keep when it returns to the pool: enough for heads and short messages.
/// Otherwise thousands of connections that once sent much would hold memory for ever.
const KEEP: usize = 8 * 1024;

/// The capacity, in bytes, that all queues in the pool together keep beyond that, so that large messages need no new memory each time.
const KEEP_LARGE: usize = 1 << 20;

/// The most slices given to the kernel at once.
pub(crate) const MAX_SLICES: usize = 64;

/// No queue.
pub(crate) const NONE: u32 = u32::MAX;

/// Bytes to send, in order.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Owned bytes; those before `at` are sent.
    bytes: Vec<u8>,
    at: usize,
    /// Bodies between the owned bytes, in order.
    bodies: VecDeque<Body>,
    /// Bytes not yet sent, owned and borrowed.
    left: usize,
    /// The queue behind this one ([`NONE`]: none), for drivers that must not touch bytes which the kernel is reading.
    pub(crate) next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Body {
    /// The body comes after this many owned bytes.
    after: usize,
    /// The unsent part.
    rest: &'static [u8],
}

impl SendQueue {
    fn new() -> SendQueue {
        SendQueue { bytes: Vec::new(), at: 0, bodies: VecDeque::new(), left: 0, next: NONE }
    }

    /// Bytes not yet sent.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Adds owned bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.at > DROP_FROM && self.at * 2 > self.bytes.len() {
            self.drop_sent();
        }
        self.bytes.extend_from_slice(bytes);
        self.left += bytes.len();
    }

    /// Adds a head and a static body.
    pub(crate) fn push_with(&mut self, head: &[u8], body: &'static [u8]) {
        self.push(head);
        if !body.is_empty() {
            self.push_body(body);
        }
    }

    /// Adds static bytes.
    fn push_body(&mut self, body: &'static [u8]) {
        if body.len() <= COPY_UP_TO {
            self.push(body);
            return;
        }
        self.bodies.push_back(Body { after: self.bytes.len(), rest: body });
        self.left += body.len();
    }

    fn drop_sent(&mut self) {
        self.bytes.drain(..self.at);
        for body in &mut self.bodies {
            body.after -= self.at;
        }
        self.at = 0;
    }

    /// The unsent bytes, when they are one run.
    pub(crate) fn as_one(&self) -> Option<&[u8]> {
        self.bodies.is_empty().then(|| &self.bytes[self.at..])
    }

    /// Fills `slices` with the unsent bytes, as many as fit, and returns how many slices it filled.
    pub(crate) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut at = self.at;
        let mut add = |bytes: &'a [u8]| {
            if bytes.is_empty() {
                return true;
            }
            let Some(slice) = slices.get_mut(filled) else {
                return false;
            };
            *slice = IoSlice::new(bytes);
            filled += 1;
            true
        };
        for body in &self.bodies {
            if !add(&self.bytes[at..body.after]) || !add(body.rest) {
                return filled;
            }
            at = body.after;
        }
        add(&self.bytes[at..]);
        filled
    }

    /// Records that the first `count` unsent bytes are sent.
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.left);
        self.left -= count;
        let mut count = count;
        while count > 0 {
            let own = self.bodies.front().map_or(self.bytes.len(), |b| b.after) - self.at;
            if own > 0 {
                let taken = own.min(count);
                self.at += taken;
                count -= taken;
            } else if let Some(body) = self.bodies.front_mut() {
                let taken = body.rest.len().min(count);
                body.rest = &body.rest[taken..];
                count -= taken;
                if body.rest.is_empty() {
                    self.bodies.pop_front();
                }
            } else {
                return;
            }
        }
    }

    /// Capacity beyond what every queue keeps, in bytes.
    fn large(&self) -> usize {
        self.bytes.capacity().saturating_sub(KEEP)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bodies.clear();
        self.at = 0;
        self.left = 0;
        self.next = NONE;
    }
}

/// All queues of a driver, for reuse.
#[derive(Debug, Default)]
pub(crate) struct SendQueuePool {
    all: Vec<SendQueue>,
    free: Vec<u32>,
    /// What the free queues keep beyond [`KEEP`], in bytes: at most [`KEEP_LARGE`].
    large: usize,
}

impl SendQueuePool {
    /// An empty queue's index.
    pub(crate) fn take(&mut self) -> u32 {
        let Some(index) = self.free.pop() else {
            self.all.push(SendQueue::new());
            return (self.all.len() - 1) as u32;
        };
        self.large -= self.all[index as usize].large();
        index
    }

    /// Returns a queue to the pool. Nothing may refer to its bytes any more.
    pub(crate) fn give(&mut self, index: u32) {
        let queue = &mut self.all[index as usize];
        queue.clear();
        if self.large + queue.large() > KEEP_LARGE {
            queue.bytes.shrink_to(KEEP);
        }
        self.large += queue.large();
        self.free.push(index);
    }

    /// Bytes not yet sent of the queue `index` ([`NONE`]: no queue) and of the one behind it.
    pub(crate) fn left(&self, index: u32) -> usize {
        if index == NONE {
            return 0;
        }
        let out = self.get(index);
        let behind = if out.next == NONE { 0 } else { self.get(out.next).left };
        out.left + behind
    }

    pub(crate) fn get(&self, index: u32) -> &SendQueue {
        &self.all[index as usize]
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut SendQueue {
        &mut self.all[index as usize]
    }

    /// Queues in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LARGE: [u8; 10_000] = [7; 10_000];

    fn rest(out: &SendQueue) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let filled = out.slices(&mut slices);
        slices[..filled].iter().flat_map(|s| s.to_vec()).collect()
    }

    #[test]
    fn bytes_and_bodies_keep_their_order_however_they_are_taken() {
        for step in [101, 999, 4096, 10_001, 30_000] {
            let mut out = SendQueue::new();
            out.push(b"first");
            out.push_body(&LARGE);
            out.push_body(&LARGE[..10]);
            out.push(b"second");
            out.push_body(&LARGE[..9_000]);
            let whole = rest(&out);
            assert_eq!(whole.len(), 5 + 10_000 + 10 + 6 + 9_000);
            assert_eq!(out.left(), whole.len());
            let mut sent = 0;
            while out.left() > 0 {
                assert_eq!(rest(&out), whole[sent..]);
                let taken = step.min(out.left());
                out.advance(taken);
                sent += taken;
            }
            assert!(rest(&out).is_empty());
        }
    }

    #[test]
    fn a_queue_that_never_runs_empty_drops_what_is_sent() {
        let mut out = SendQueue::new();
        for _ in 0..1_000 {
            out.push(&LARGE);
            out.advance(out.left() - 1);
        }
        assert!(out.bytes.capacity() < 4 * DROP_FROM);
        assert_eq!(out.left(), 1);
    }

    #[test]
    fn more_bodies_than_slices_are_cut_not_lost() {
        let mut out = SendQueue::new();
        for _ in 0..100 {
            out.push(b"x");
            out.push_body(&LARGE);
        }
        let mut sent = 0;
        while out.left() > 0 {
            let taken = rest(&out).len();
            out.advance(taken);
            sent += taken;
        }
        assert_eq!(sent, 100 * 10_001);
    }

    #[test]
    fn the_pool_uses_queues_again() {
        let mut pool = SendQueuePool::default();
        let one = pool.take();
        pool.get_mut(one).push(b"bytes");
        pool.give(one);
        assert_eq!(pool.take(), one);
        assert_eq!(pool.get(one).left(), 0);
        assert_eq!(pool.used(), 1);
    }

    #[test]
    fn free_queues_keep_large_memory_for_the_next_message_but_not_each_of_them() {
        let mut pool = SendQueuePool::default();
        let message = [0; 20_000];
        let taken: Vec<_> = (0..1_000).map(|_| pool.take()).collect();
        for &index in &taken {
            pool.get_mut(index).push(&message);
        }
        taken.into_iter().for_each(|index| pool.give(index));
        let large = |pool: &SendQueuePool| pool.all.iter().map(SendQueue::large).sum::<usize>();
        assert!(large(&pool) <= KEEP_LARGE, "{}", large(&pool));
        assert_eq!(large(&pool), pool.large);
        // Of the queues that keep more, none is lost by being used again.
        for _ in 0..1_000 {
            let index = pool.take();
            pool.get_mut(index).push(&message);
            pool.give(index);
        }
        assert_eq!(large(&pool), pool.large);
        assert!(pool.large > 0);
    }
}
