//! What a connection keeps of its streams, which are in a [`StreamTable`].

use crate::stream_table::{Entry, StreamTable};

/// What is true of a stream, as bits.
pub(super) mod is {
    /// The head of the final response (client) or of the request (server) has arrived.
    pub(in crate::http2) const HEADED: u8 = 1;
    /// We have finished sending.
    pub(in crate::http2) const SENT: u8 = 2;
    /// The peer has finished sending.
    pub(in crate::http2) const HEARD: u8 = 4;
    /// The response has no body: to HEAD, 204, 304.
    pub(in crate::http2) const BODILESS: u8 = 8;
    /// The head of the response was written (server).
    pub(in crate::http2) const RESPONDING: u8 = 16;
    /// A part of a body waits for a window.
    pub(in crate::http2) const WAITING: u8 = 32;
    /// The waiting part is the last (server).
    pub(in crate::http2) const ENDING: u8 = 64;
}

/// No length was announced.
pub(crate) const ANY: u64 = u64::MAX;

/// One stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Its number; 0: the slot is free.
    pub(super) id: u32,
    /// The caller's number for it; in a free slot the next free one.
    pub(super) tag: u32,
    /// Bytes that may be sent. Below 0 after SETTINGS made windows smaller.
    pub(super) window: i32,
    /// Bytes received for which no WINDOW_UPDATE was sent.
    pub(super) received: u32,
    /// Bytes of body still to come, or [`ANY`].
    pub(super) left: u64,
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
    type Id = u32;
    const NONE: u32 = 0;

    #[inline]
    fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    fn number(id: u32) -> usize {
        (id >> 1) as usize
    }

    #[inline]
    fn tag(&self) -> u32 {
        self.tag
    }

    #[inline]
    fn free(&mut self, next: u32) {
        (self.id, self.tag) = (Stream::NONE, next);
    }

    #[inline]
    fn reuse(&mut self, stream: Stream) {
        *self = stream;
    }
}

/// All streams of a connection that are open.
pub(super) type Streams = StreamTable<Stream>;

impl Streams {
    /// Adds a stream. Returns its slot.
    #[inline]
    pub(super) fn add(&mut self, id: u32, tag: u32, window: i32, state: u8) -> u32 {
        self.insert(Stream { id, tag, window, received: 0, left: ANY, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_outlives_many_is_still_found() {
        let mut streams = Streams::new();
        let old = streams.add(1, 7, 0, 0);
        for id in (3..4003).step_by(2) {
            let slot = streams.add(id, id, 0, 0);
            assert_eq!(streams.find(1), Some(old));
            assert_eq!(streams.find(id), Some(slot));
            assert_eq!(streams.find(id + 2), None);
            assert_eq!(streams.remove(slot).tag, id);
            assert_eq!(streams.find(id), None);
        }
        assert_eq!(streams.slots.len(), 2);
        assert_eq!((streams.open(), streams.at(old).tag), (1, 7));
    }

    #[test]
    fn slots_are_reused_and_an_old_handle_does_not_match_the_new_stream() {
        let mut streams = Streams::new();
        let slots: Vec<u32> = (0..5).map(|n| streams.add(2 * n + 1, n, 0, 0)).collect();
        assert_eq!(slots, [0, 1, 2, 3, 4]);
        streams.remove(2);
        streams.remove(4);
        assert_eq!(streams.add(11, 0, 0, 0), 4);
        assert_eq!(streams.add(13, 0, 0, 0), 2);
        assert!(streams.get(2, 5).is_none());
        assert!(streams.get(2, 13).is_some());
        assert!(streams.get(9, 13).is_none());
        assert!(streams.get(0, 0).is_none());
        assert_eq!(streams.find(0), None);
    }
}
