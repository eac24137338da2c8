//! The request streams of a connection, in slots that are reused, and found by their IDs without hashing in the usual case:
//! IDs are consecutive, so that their low bits seldom collide. When two do, a scan finds the older one.

use super::frame::Framer;

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

/// The ID of no stream.
pub(super) const NONE: u64 = u64::MAX;
const NO_SLOT: u32 = u32::MAX;

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// QUIC's ID of it, or [`NONE`]: the slot is free.
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

/// All that are open.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    /// Slots by the low bits of the stream's number among its kind. A power of two long, at least as long as `slots`.
    index: Vec<u32>,
    free: u32,
    open: u32,
}

impl Streams {
    pub(super) fn new() -> Streams {
        Streams { slots: Vec::new(), index: Vec::new(), free: NO_SLOT, open: 0 }
    }

    /// How many are open.
    #[inline]
    pub(super) fn open(&self) -> u32 {
        self.open
    }

    /// Adds a stream. Returns its slot.
    #[inline]
    pub(super) fn add(&mut self, id: u64, tag: u32, left: u64, state: u8) -> u32 {
        let slot = self.free;
        let slot = match self.slots.get_mut(slot as usize) {
            Some(place) => {
                self.free = place.tag;
                (place.id, place.tag, place.left, place.state) = (id, tag, left, state);
                place.framer.clear();
                slot
            }
            None => self.add_slot(Stream { id, left, framer: Framer::new(), tag, state }),
        };
        let place = self.place(id);
        self.index[place] = slot;
        self.open += 1;
        slot
    }

    #[cold]
    fn add_slot(&mut self, stream: Stream) -> u32 {
        if self.slots.len() == self.slots.capacity() {
            // The first stream is often the only one at a time.
            self.slots.reserve_exact(self.slots.len().max(1));
        }
        self.slots.push(stream);
        if self.slots.len() > self.index.len() {
            self.index = vec![NO_SLOT; self.slots.len().next_power_of_two()];
            for slot in 0..self.slots.len() {
                let place = self.place(self.slots[slot].id);
                self.index[place] = slot as u32;
            }
        }
        self.slots.len() as u32 - 1
    }

    #[inline]
    fn place(&self, id: u64) -> usize {
        (id >> 2) as usize & (self.index.len() - 1)
    }

    /// The slot of an open stream.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        let slot = self.index[self.place(id)];
        match self.slots.get(slot as usize) {
            Some(stream) if stream.id == id => Some(slot),
            _ => self.search(|stream| stream.id == id),
        }
    }

    /// The slot of the first open stream for which `wanted` is true.
    #[cold]
    pub(super) fn search(&self, wanted: impl Fn(&Stream) -> bool) -> Option<u32> {
        self.slots.iter().position(|stream| stream.id != NONE && wanted(stream)).map(|slot| slot as u32)
    }

    /// The stream in a slot, if it (still) has this ID.
    #[inline]
    pub(super) fn get(&mut self, slot: u32, id: u64) -> Option<&mut Stream> {
        self.slots.get_mut(slot as usize).filter(|stream| stream.id == id && id != NONE)
    }

    /// The stream in a slot that is known to be in use.
    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> &mut Stream {
        &mut self.slots[slot as usize]
    }

    /// Frees a slot. Returns the stream's ID and tag.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> (u64, u32) {
        let stream = &mut self.slots[slot as usize];
        debug_assert_ne!(stream.id, NONE, "the slot is in use");
        let gone = (stream.id, stream.tag);
        (stream.id, stream.tag) = (NONE, self.free);
        self.free = slot;
        self.open -= 1;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_outlives_many_is_still_found_and_slots_are_reused() {
        let mut streams = Streams::new();
        let old = streams.add(0, 7, 0, 0);
        for id in (4..4000).step_by(4) {
            let slot = streams.add(id, id as u32, 0, 0);
            assert_eq!((streams.find(0), streams.find(id), streams.find(id + 4)), (Some(old), Some(slot), None));
            assert_eq!(streams.remove(slot), (id, id as u32));
            assert!(streams.find(id).is_none() && streams.get(slot, id).is_none());
        }
        assert_eq!((streams.slots.len(), streams.open(), streams.at(old).tag), (2, 1, 7));
    }
}
