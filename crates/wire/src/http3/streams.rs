//! What a connection keeps of its request streams, which are in a [`StreamTable`].

use super::frame::Framer;
use crate::stream_table::{Entry, StreamTable};

/// What is true of a stream, as bits.
pub(super) mod is {
    /// The head of the final response (client) or of the request (server) has arrived.
    pub(in crate::http3) const HEADED: u8 = 1;
    /// Its trailers have.
    pub(in crate::http3) const TRAILED: u8 = 2;
    /// The peer has finished sending.
    pub(in crate::http3) const HEARD: u8 = 4;
    /// The response has no body: to HEAD, 204, 304.
    pub(in crate::http3) const BODILESS: u8 = 8;
    /// The head of the response was written (server).
    pub(in crate::http3) const RESPONDING: u8 = 16;
    /// All of the response was (server).
    pub(in crate::http3) const SENT: u8 = 32;
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// QUIC's ID of it, or [`Entry::NONE`]: the slot is free.
    pub(super) id: u64,
    /// Bytes of body still to come, or `ANY`.
    pub(super) left: u64,
    pub(super) framer: Framer,
    /// The caller's number for it; in a free slot the next free one.
    pub(super) tag: u32,
    /// Bits of [`is`].
    pub(super) state: u8,
}

impl Stream {
    #[inline]
    pub(super) fn is(&self, bits: u8) -> bool {
        self.state & bits == bits
    }
}

impl Entry for Stream {
    type Id = u64;
    const NONE: u64 = u64::MAX;

    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    fn number(id: u64) -> usize {
        (id >> 2) as usize
    }

    #[inline]
    fn tag(&self) -> u32 {
        self.tag
    }

    #[inline]
    fn free(&mut self, next: u32) {
        (self.id, self.tag) = (Stream::NONE, next);
    }

    /// The framer keeps its memory.
    #[inline]
    fn reuse(&mut self, stream: Stream) {
        (self.id, self.tag, self.left, self.state) = (stream.id, stream.tag, stream.left, stream.state);
        self.framer.clear();
    }
}

/// All that are open.
pub(super) type Streams = StreamTable<Stream>;

impl Streams {
    /// Adds a stream. Returns its slot.
    #[inline]
    pub(super) fn add(&mut self, id: u64, tag: u32, left: u64, state: u8) -> u32 {
        self.insert(Stream { id, left, framer: Framer::new(), tag, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_table::Removed;

    #[test]
    fn a_stream_that_outlives_many_is_still_found_and_slots_are_reused() {
        let mut streams = Streams::new();
        let old = streams.add(0, 7, 0, 0);
        for id in (4..4000).step_by(4) {
            let slot = streams.add(id, id as u32, 0, 0);
            assert_eq!((streams.find(0), streams.find(id), streams.find(id + 4)), (Some(old), Some(slot), None));
            assert_eq!(streams.remove(slot), Removed { id, tag: id as u32 });
            assert!(streams.find(id).is_none() && streams.get(slot, id).is_none());
        }
        assert_eq!((streams.slots.len(), streams.open(), streams.at(old).tag), (2, 1, 7));
    }
}
