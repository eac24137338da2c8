//! Tracks which answers the kernel has taken. Responses are sent in batches, one for what arrived at once, and a batch is
//! complete when its last byte was taken.

use std::collections::VecDeque;

/// What a connection has queued.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    /// Bytes ever queued, and ever reported as taken.
    queued: u64,
    taken: u64,
    batches: VecDeque<(u64, Batch)>,
}

/// Responses that are sent together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Responses to counted requests.
    pub(crate) responses: u64,
    /// Bytes of values or bodies in them.
    pub(crate) values: u64,
    /// All bytes that count, where some do not.
    pub(crate) bytes: u64,
}

impl Batch {
    pub(crate) fn add(&mut self, other: Batch) {
        self.responses += other.responses;
        self.values += other.values;
        self.bytes += other.bytes;
    }
}

impl Sends {
    /// Nothing is queued that the kernel has not taken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// A batch of so many bytes was queued.
    #[inline]
    pub(crate) fn push(&mut self, bytes: u64, batch: Batch) {
        self.queued += bytes;
        self.batches.push_back((self.queued, batch));
    }

    /// The driver still holds `unsent` bytes. Reports the bytes and the batches taken since the last call.
    #[inline]
    pub(crate) fn account(&mut self, unsent: usize) -> (u64, Batch) {
        let taken = self.queued.saturating_sub(unsent as u64).max(self.taken);
        let mut sum = Batch::default();
        while let Some((end, batch)) = self.batches.front()
            && *end <= taken
        {
            sum.add(*batch);
            self.batches.pop_front();
        }
        (taken - std::mem::replace(&mut self.taken, taken), sum)
    }

    /// Forgets everything, for the next connection.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
        self.batches.shrink_to(64);
        (self.queued, self.taken) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_answered_with_its_last_byte() {
        let mut sends = Sends::default();
        let batch = |responses, values| Batch { responses, values, bytes: 0 };
        sends.push(10, batch(2, 5));
        sends.push(20, batch(1, 7));
        assert_eq!(sends.account(21), (9, batch(0, 0)));
        assert_eq!(sends.account(25), (0, batch(0, 0)), "unsent may be too high");
        assert_eq!(sends.account(1), (20, batch(2, 5)));
        assert_eq!((sends.account(0), sends.is_empty()), ((1, batch(1, 7)), true));
    }
}
