//! How the epoll driver sends queues: one write per turn, and the rest when there is room.

use std::mem;

use super::calls::send;
use super::{EpollDriver, WATCH_OUT, token};
use crate::send_queue::NONE;
use crate::slots::Flag;

impl EpollDriver {
    /// Sends what the queues hold, as far as the kernel takes it.
    pub(super) fn flush_all(&mut self) {
        let mut dirty = mem::take(&mut self.dirty);
        for &index in &dirty {
            let slot = self.slots.get_mut(index);
            slot.clear(Flag::Dirty);
            if !slot.is_any(&[Flag::Dead, Flag::Connecting, Flag::Blocked]) {
                self.flush(index);
            }
        }
        dirty.clear();
        // Flushing marks no connection, so no other list has been begun.
        self.dirty = dirty;
    }

    pub(super) fn flush(&mut self, index: u32) {
        let slot = self.slots.get(index);
        // After an error nothing more is sent. Queued bytes are only counted.
        let sent_all = slot.error == 0 && (slot.queue == NONE || self.write_queue(index));
        let slot = self.slots.get_mut(index);
        if !sent_all && (slot.error == 0 || !slot.is(Flag::Closing)) {
            return;
        }
        if slot.is(Flag::Closing) {
            self.destroy(index);
        } else if slot.is(Flag::WantSent) {
            slot.clear(Flag::WantSent);
            let conn = self.slots.conn(index);
            self.sent.push(conn);
        }
    }

    /// Writes the queue to the socket. Returns true when all of it was taken.
    fn write_queue(&mut self, index: u32) -> bool {
        let slot = self.slots.get(index);
        let (fd, number) = (slot.fd, slot.queue);
        let queue = self.queues.get_mut(number);
        while queue.left() > 0 {
            match send(fd, queue) {
                Ok(count) => queue.advance(count),
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => {
                    self.block(index);
                    return false;
                }
                Err(error) => {
                    self.send_failed(index, error);
                    return false;
                }
            }
        }
        self.slots.get_mut(index).queue = NONE;
        self.queues.give(number);
        true
    }

    /// Waits for room in the socket.
    fn block(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        slot.set(Flag::Blocked);
        if slot.test_and_set(Flag::WatchOut) {
            return;
        }
        let fd = slot.fd;
        let token = token(self.slots.conn(index));
        if let Err(error) = self.control(libc::EPOLL_CTL_MOD, fd, WATCH_OUT, token) {
            self.send_failed(index, error.raw_os_error().unwrap_or(libc::EIO));
        }
    }

    /// Nothing more can be sent. What the peer sent before is still read and reported.
    pub(super) fn send_failed(&mut self, index: u32, error: i32) {
        let slot = self.slots.get_mut(index);
        if slot.is(Flag::Closing) {
            return self.destroy(index);
        }
        slot.error = error as u16;
        let conn = self.slots.conn(index);
        self.again.push(conn);
    }
}
