//! The table of a driver's connections: small slots, reused, each with the number of its generation.
//!
//! Both drivers use it. It closes sockets only when the driver is dropped.

use std::collections::HashMap;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::Conn;
use crate::send_queue::NONE;

/// The state that a driver keeps for a connection. It is small: an idle connection costs nothing else here.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// The socket, or -1.
    pub(crate) fd: RawFd,
    /// Which generation of the slot this is.
    pub(crate) generation: u32,
    /// The queue to send, or [`NONE`].
    pub(crate) queue: u32,
    /// The error to report when reading has ended, or zero.
    pub(crate) error: u16,
    flags: u16,
}

/// A flag of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Flag {
    /// In use.
    Used = 1 << 0,
    /// Not yet connected.
    Connecting = 1 << 1,
    /// The handler has closed it: no more events follow. It ends when its queue has been sent.
    Closing = 1 << 2,
    /// The connection is gone; the slot waits to be freed.
    Dead = 1 << 3,
    /// On the list of connections to be sent.
    Dirty = 1 << 4,
    /// [`crate::Event::Sent`] is requested.
    WantSent = 1 << 5,
    /// The socket has no room for now.
    Blocked = 1 << 6,
    /// The peer has finished sending.
    Eof = 1 << 7,
    /// The kernel is asked to report room for sending (epoll).
    WatchOut = 1 << 8,
    /// The kernel has a receive operation (io_uring).
    Receiving = 1 << 10,
    /// The kernel has a send operation that waits for room (io_uring).
    Sending = 1 << 12,
    /// That operation drops what it receives (io_uring).
    Skipping = 1 << 9,
    /// In the ring's table of sockets (io_uring).
    InTable = 1 << 11,
    /// Has sent at least once (io_uring).
    HasSent = 1 << 14,
    /// A receive operation has to be submitted (io_uring).
    WantReceive = 1 << 13,
    /// A socket of datagrams, which has no queue.
    Datagrams = 1 << 15,
}

impl Slot {
    pub(crate) fn is(&self, what: Flag) -> bool {
        self.flags & what as u16 != 0
    }

    /// Whether any of the flags is set.
    pub(crate) fn is_any(&self, what: &[Flag]) -> bool {
        what.iter().any(|&one| self.is(one))
    }

    pub(crate) fn set(&mut self, what: Flag) {
        self.flags |= what as u16;
    }

    pub(crate) fn clear(&mut self, what: Flag) {
        self.flags &= !(what as u16);
    }

    /// Sets the flag, and returns whether it was set before.
    pub(crate) fn test_and_set(&mut self, what: Flag) -> bool {
        let was = self.is(what);
        self.set(what);
        was
    }

    /// Whether the connection is still known to the handler.
    pub(crate) fn is_open(&self) -> bool {
        self.flags & (Flag::Used as u16 | Flag::Closing as u16 | Flag::Dead as u16) == Flag::Used as u16
    }
}

/// How the next bytes of a connection are received, where that is not the usual way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// So many bytes may be dropped.
    Skip(u64),
    /// So many bytes are received, and then none.
    AtMost(u64),
}

/// The same by slot: of few connections, which have large messages, or of slow readers.
#[derive(Debug, Default)]
pub(crate) struct Receipts(HashMap<u32, Receipt>);

impl Receipts {
    /// The most that one operation drops or receives, so that progress shows.
    const AT_ONCE: u64 = 1 << 20;

    /// Bytes that arrive in a slot from now on are received so.
    pub(crate) fn set(&mut self, index: u32, receipt: Receipt) {
        self.0.insert(index, receipt);
    }

    /// At most so much is received in a slot from now on; [`u64::MAX`]: all is as usual.
    pub(crate) fn limit(&mut self, index: u32, bytes: u64) {
        if bytes == u64::MAX { self.end(index) } else { self.set(index, Receipt::AtMost(bytes)) }
    }

    /// So much has arrived, dropped or not.
    #[inline]
    pub(crate) fn arrived(&mut self, index: u32, bytes: usize) {
        if !self.0.is_empty()
            && let Some(Receipt::Skip(left) | Receipt::AtMost(left)) = self.0.get_mut(&index)
        {
            *left = left.saturating_sub(bytes as u64);
        }
    }

    /// How much the next operation in a slot may drop or receive; `None` where all is as usual.
    #[inline]
    pub(crate) fn next(&self, index: u32) -> Option<Receipt> {
        if self.0.is_empty() {
            return None;
        }
        Some(match *self.0.get(&index)? {
            Receipt::Skip(left) => Receipt::Skip(left.min(Receipts::AT_ONCE)),
            Receipt::AtMost(left) => Receipt::AtMost(left.min(Receipts::AT_ONCE)),
        })
    }

    /// All is as usual in a slot.
    #[inline]
    pub(crate) fn end(&mut self, index: u32) {
        if !self.0.is_empty() {
            self.0.remove(&index);
        }
    }
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// Puts a socket into a free slot, and begins the slot's next generation.
    pub(crate) fn take(&mut self, fd: RawFd) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Slot { fd: -1, generation: 0, queue: NONE, error: 0, flags: 0 });
            (self.all.len() - 1) as u32
        });
        let slot = &mut self.all[index as usize];
        *slot =
            Slot { fd, generation: slot.generation.wrapping_add(1), queue: NONE, error: 0, flags: Flag::Used as u16 };
        index
    }

    /// Frees a slot. Its socket is closed, and nothing refers to it any more.
    pub(crate) fn give(&mut self, index: u32) {
        let slot = &mut self.all[index as usize];
        debug_assert!(slot.is(Flag::Used) && slot.queue == NONE);
        slot.fd = -1;
        slot.flags = 0;
        self.free.push(index);
    }

    pub(crate) fn get(&self, index: u32) -> &Slot {
        &self.all[index as usize]
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.all[index as usize]
    }

    /// The connection in a slot.
    pub(crate) fn conn(&self, index: u32) -> Conn {
        Conn::new(index, self.all[index as usize].generation)
    }

    /// The slot of `conn`, if the handler still knows the connection.
    pub(crate) fn open_mut(&mut self, conn: Conn) -> Option<&mut Slot> {
        self.all.get_mut(conn.slot()).filter(|slot| slot.generation == conn.generation() && slot.is_open())
    }

    /// The slot of `conn`, if the handler still knows the connection.
    pub(crate) fn open(&self, conn: Conn) -> Option<&Slot> {
        self.all.get(conn.slot()).filter(|slot| slot.generation == conn.generation() && slot.is_open())
    }

    /// The slot of `conn`, if the connection is not gone: it is open, or closed and still sending.
    pub(crate) fn living(&self, conn: Conn) -> Option<&Slot> {
        self.all
            .get(conn.slot())
            .filter(|slot| slot.generation == conn.generation() && slot.is(Flag::Used) && !slot.is(Flag::Dead))
    }

    /// Slots that there are, in use or not; they have the numbers below.
    pub(crate) fn made(&self) -> u32 {
        self.all.len() as u32
    }

    /// Slots in use.
    pub(crate) fn used(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Requests [`crate::Event::Sent`], if the handler still knows the connection.
    pub(crate) fn want_sent(&mut self, conn: Conn) {
        if let Some(slot) = self.open_mut(conn) {
            slot.set(Flag::WantSent);
        }
    }

    /// Closes every socket, because the driver is dropped.
    pub(crate) fn close_all(&mut self) {
        for slot in &mut self.all {
            let fd = mem::replace(&mut slot.fd, -1);
            if fd >= 0 {
                // SAFETY: the slot owned the descriptor and has just given it up.
                drop(unsafe { OwnedFd::from_raw_fd(fd) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_sixteen_bytes() {
        assert_eq!(size_of::<Slot>(), 16);
    }

    #[test]
    fn a_stale_connection_finds_no_slot() {
        let mut slots = Slots::default();
        let index = slots.take(3);
        let first = slots.conn(index);
        assert!(slots.open(first).is_some());
        slots.give(index);
        assert!(slots.open(first).is_none());
        assert_eq!(slots.take(4), index);
        assert!(slots.open(first).is_none());
        assert!(slots.open(slots.conn(index)).is_some());
        assert_eq!(slots.used(), 1);
    }

    #[test]
    fn closing_and_dead_connections_are_not_open() {
        let mut slots = Slots::default();
        for what in [Flag::Closing, Flag::Dead] {
            let index = slots.take(3);
            slots.get_mut(index).set(what);
            assert!(slots.open_mut(slots.conn(index)).is_none());
        }
    }
}
