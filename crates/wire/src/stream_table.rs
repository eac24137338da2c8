//! The open streams of a connection, in slots that are reused, and found by their IDs without hashing in the usual case.
//!
//! A small table maps the low bits of a stream's number to its slot. Numbers are consecutive, so streams that are open together rarely
//! collide. When two do, the older one is found by a scan of all slots. It does not know what a protocol keeps of a stream.

/// What a protocol keeps of a stream.
pub(crate) trait Entry {
    /// The protocol's ID of a stream.
    type Id: Copy + Eq;

    /// The ID of no stream: the slot is free.
    const NONE: Self::Id;

    /// The stream's ID.
    fn id(&self) -> Self::Id;

    /// The number of a stream among its kind: IDs count in steps.
    fn number(id: Self::Id) -> usize;

    /// The caller's number for the stream; in a free slot the next free one.
    fn tag(&self) -> u32;

    /// The slot is free now, and `next` is the next free one.
    fn free(&mut self, next: u32);

    /// Another stream takes the slot.
    fn reuse(&mut self, stream: Self);
}

const NO_SLOT: u32 = u32::MAX;

/// A stream that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removed<I> {
    pub(crate) id: I,
    pub(crate) tag: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StreamTable<S> {
    pub(crate) slots: Vec<S>,
    /// Slots by the low bits of the stream's number. A power of two long, at least as long as `slots`.
    index: Vec<u32>,
    free: u32,
    open: u32,
}

impl<S: Entry> StreamTable<S> {
    pub(crate) fn new() -> StreamTable<S> {
        StreamTable { slots: Vec::new(), index: Vec::new(), free: NO_SLOT, open: 0 }
    }

    /// How many are open.
    #[inline]
    pub(crate) fn open(&self) -> u32 {
        self.open
    }

    /// Adds a stream. Returns its slot.
    #[inline]
    pub(crate) fn insert(&mut self, stream: S) -> u32 {
        let id = stream.id();
        let slot = self.free;
        match self.slots.get_mut(slot as usize) {
            Some(place) => {
                self.free = place.tag();
                place.reuse(stream);
            }
            None => return self.insert_slot(stream),
        }
        self.note(id, slot);
        slot
    }

    #[cold]
    fn insert_slot(&mut self, stream: S) -> u32 {
        let (id, slot) = (stream.id(), self.slots.len() as u32);
        if self.slots.len() == self.slots.capacity() {
            // The first stream is often the only one at a time.
            self.slots.reserve_exact(self.slots.len().max(1));
        }
        self.slots.push(stream);
        if self.slots.len() > self.index.len() {
            self.index = vec![NO_SLOT; self.slots.len().next_power_of_two()];
            // None is free, or it would have been taken.
            for slot in 0..self.slots.len() {
                let place = self.place(self.slots[slot].id());
                self.index[place] = slot as u32;
            }
        }
        self.note(id, slot);
        slot
    }

    #[inline]
    fn note(&mut self, id: S::Id, slot: u32) {
        let place = self.place(id);
        self.index[place] = slot;
        self.open += 1;
    }

    #[inline]
    fn place(&self, id: S::Id) -> usize {
        S::number(id) & (self.index.len() - 1)
    }

    /// The slot of an open stream.
    #[inline]
    pub(crate) fn find(&self, id: S::Id) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        let slot = self.index[self.place(id)];
        match self.slots.get(slot as usize) {
            Some(stream) if stream.id() == id => Some(slot),
            _ => self.search(|stream| stream.id() == id),
        }
    }

    /// The slot of the first open stream for which `wanted` is true.
    #[cold]
    pub(crate) fn search(&self, wanted: impl Fn(&S) -> bool) -> Option<u32> {
        self.slots.iter().position(|stream| stream.id() != S::NONE && wanted(stream)).map(|slot| slot as u32)
    }

    /// The stream in a slot, if it (still) has this ID.
    #[inline]
    pub(crate) fn get(&mut self, slot: u32, id: S::Id) -> Option<&mut S> {
        self.slots.get_mut(slot as usize).filter(|stream| stream.id() == id && id != S::NONE)
    }

    /// The stream in a slot that is known to be in use.
    #[inline]
    pub(crate) fn at(&mut self, slot: u32) -> &mut S {
        &mut self.slots[slot as usize]
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> Removed<S::Id> {
        let stream = &mut self.slots[slot as usize];
        debug_assert!(stream.id() != S::NONE, "the slot is in use");
        let removed = Removed { id: stream.id(), tag: stream.tag() };
        stream.free(self.free);
        self.free = slot;
        self.open -= 1;
        removed
    }

    /// All open streams.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut S> {
        self.slots.iter_mut().filter(|stream| stream.id() != S::NONE)
    }
}
