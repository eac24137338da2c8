//! The streams of a connection: found by their numbers without hashing in the usual case.
//!
//! Streams are in slots that are reused. A small table maps the low bits of a number to its slot. Numbers are
//! consecutive, so streams that are open together rarely collide. When two collide, the older one is found by a scan
//! of all slots.

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
const NONE: u32 = u32::MAX;

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

/// All streams of a connection that are open.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    /// Slots by the low bits of half the stream's number. A power of two long, at least as long as `slots`.
    index: Vec<u32>,
    free: u32,
    open: u32,
}

impl Streams {
    pub(super) fn new() -> Streams {
        Streams { slots: Vec::new(), index: Vec::new(), free: NONE, open: 0 }
    }

    /// How many are open.
    #[inline]
    pub(super) fn open(&self) -> u32 {
        self.open
    }

    /// Adds a stream. Returns its slot.
    #[inline]
    pub(super) fn add(&mut self, id: u32, tag: u32, window: i32, state: u8) -> u32 {
        let stream = Stream { id, tag, window, received: 0, left: ANY, state };
        let slot = self.free;
        match self.slots.get_mut(slot as usize) {
            Some(place) => {
                self.free = place.tag;
                *place = stream;
            }
            None => return self.add_slot(stream),
        }
        self.note(id, slot);
        slot
    }

    #[cold]
    fn add_slot(&mut self, stream: Stream) -> u32 {
        let slot = self.slots.len() as u32;
        if self.slots.len() == self.slots.capacity() {
            // The first stream is often the only one at a time.
            self.slots.reserve_exact(self.slots.len().max(1));
        }
        self.slots.push(stream);
        if self.slots.len() > self.index.len() {
            self.index = vec![NONE; self.slots.len().next_power_of_two()];
            for slot in 0..self.slots.len() {
                let id = self.slots[slot].id;
                if id != 0 {
                    let place = self.place(id);
                    self.index[place] = slot as u32;
                }
            }
        }
        self.note(stream.id, slot);
        slot
    }

    #[inline]
    fn note(&mut self, id: u32, slot: u32) {
        let place = self.place(id);
        self.index[place] = slot;
        self.open += 1;
    }

    #[inline]
    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.index.len() - 1)
    }

    /// The slot of an open stream.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
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
        self.slots.iter().position(|stream| stream.id != 0 && wanted(stream)).map(|slot| slot as u32)
    }

    /// The stream in a slot, if it (still) has this number.
    #[inline]
    pub(super) fn get(&mut self, slot: u32, id: u32) -> Option<&mut Stream> {
        self.slots.get_mut(slot as usize).filter(|stream| stream.id == id && id != 0)
    }

    /// The stream in a slot that is known to be in use.
    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> &mut Stream {
        &mut self.slots[slot as usize]
    }

    /// Frees a slot. Returns the stream.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> Stream {
        let stream = self.slots[slot as usize];
        debug_assert_ne!(stream.id, 0, "the slot is in use");
        self.slots[slot as usize].id = 0;
        self.slots[slot as usize].tag = self.free;
        self.free = slot;
        self.open -= 1;
        stream
    }

    /// All open streams.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().filter(|stream| stream.id != 0)
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
