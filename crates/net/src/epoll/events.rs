//! Turns the kernel's epoll events into handler events: connections, bytes, ends.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use super::calls::{accept, receive, skip};
use super::{ACCEPTS_A_TURN, ENDS, EpollDriver, NO_GENERATION, READS_A_TURN, WAKER, WATCH, token};
use crate::host::monotonic_ns;
use crate::send_queue::NONE;
use crate::slots::{Flag, Receipt};
use crate::socket::{self, ACCEPT_PAUSE, is_out_of_resources};
use crate::{Conn, Event, Handler};

impl EpollDriver {
    pub(super) fn dispatch<H: Handler>(&mut self, handler: &mut H, token: u64, flags: u32) {
        let conn = Conn::new(token as u32, (token >> 32) as u32);
        if conn.generation() == NO_GENERATION {
            if token == WAKER {
                self.waker.clear();
            } else {
                self.accept(handler, conn.slot());
            }
            return;
        }
        let index = conn.slot() as u32;
        if self.stale(conn) {
            return;
        }
        if self.slots.get(index).is(Flag::Connecting) {
            let done = flags & (libc::EPOLLOUT as u32 | ENDS) != 0;
            if !done || !self.connected(handler, index) {
                return;
            }
        }
        if flags & libc::EPOLLOUT as u32 != 0 && self.slots.get(index).is(Flag::Blocked) {
            self.slots.get_mut(index).clear(Flag::Blocked);
            self.mark(index);
        }
        if flags & (libc::EPOLLIN as u32 | ENDS) != 0 {
            self.read(handler, conn, flags & ENDS != 0);
        }
    }

    /// Whether the connection has gone since the kernel or a list named it.
    pub(super) fn stale(&self, conn: Conn) -> bool {
        let slot = self.slots.get(conn.slot() as u32);
        slot.generation != conn.generation() || slot.is(Flag::Dead) || !slot.is(Flag::Used)
    }

    /// Finishes a connect. Returns false when there is nothing to read from it.
    pub(super) fn connected<H: Handler>(&mut self, handler: &mut H, index: u32) -> bool {
        let error = socket::take_error(self.slots.get(index).fd);
        if error != 0 {
            self.fail(handler, index, error);
            return false;
        }
        let slot = self.slots.get_mut(index);
        slot.clear(Flag::Connecting);
        if slot.queue != NONE || slot.is(Flag::Closing) {
            self.mark(index);
        }
        let conn = self.slots.conn(index);
        if self.slots.get(index).is_open() {
            handler.on_event(self, conn, Event::Connected);
        }
        !self.stale(conn)
    }

    pub(super) fn accept<H: Handler>(&mut self, handler: &mut H, listener: usize) {
        for _ in 0..ACCEPTS_A_TURN {
            // A handler may have stopped listening.
            let Some(Some(socket)) = self.listeners.get(listener) else {
                return;
            };
            match accept(socket).and_then(|fd| self.adopt(fd, WATCH).map_err(|e| e.raw_os_error().unwrap_or(libc::EIO)))
            {
                Ok(index) => {
                    let conn = self.slots.conn(index);
                    handler.on_event(self, conn, Event::Accepted(listener));
                }
                Err(libc::EAGAIN) => return,
                // Out of descriptors or memory: the kernel would report the waiting connection for ever.
                Err(error) if is_out_of_resources(error) => return self.pause_accepting(),
                // The connection died in the accept queue; there may be more.
                Err(_) => {}
            }
        }
    }

    pub(super) fn pause_accepting(&mut self) {
        self.accept_paused_until = Some(monotonic_ns() + ACCEPT_PAUSE);
        for listener in self.listeners.iter().flatten() {
            // If this fails, the wait returns again and again. That costs CPU and nothing else.
            let _ = self.control(libc::EPOLL_CTL_DEL, listener.as_raw_fd(), 0, 0);
        }
    }

    pub(super) fn resume_accepting(&mut self) {
        self.accept_paused_until = None;
        for number in 0..self.listeners.len() {
            if self.watch_listener(number).is_err() {
                return self.pause_accepting();
            }
        }
    }

    pub(super) fn watch_listener(&self, number: usize) -> io::Result<()> {
        let token = token(Conn::new(number as u32, NO_GENERATION));
        let Some(listener) = &self.listeners[number] else { return Ok(()) };
        let fd = listener.as_raw_fd();
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, token)
    }

    /// Reads what is available. `to_end` means that the kernel has reported the end of the stream, which it does only
    /// once.
    pub(super) fn read<H: Handler>(&mut self, handler: &mut H, conn: Conn, to_end: bool) {
        let index = conn.slot() as u32;
        if self.slots.get(index).is(Flag::Datagrams) {
            return self.receive_datagrams(handler, conn);
        }
        let mut buffer = mem::take(&mut self.buffer);
        let mut reads = 0;
        while self.read_once(handler, conn, &mut buffer, to_end) {
            reads += 1;
            if reads == READS_A_TURN {
                self.again.push(self.slots.conn(index));
                break;
            }
        }
        self.buffer = buffer;
    }

    /// Receives the datagrams that have come.
    fn receive_datagrams<H: Handler>(&mut self, handler: &mut H, conn: Conn) {
        let index = conn.slot() as u32;
        let mut receiver = self.datagrams.take_receiver();
        for reads in 0.. {
            if reads == READS_A_TURN {
                self.again.push(conn);
                break;
            }
            match receiver.receive(self.slots.get(index).fd) {
                Ok((trains, more)) => {
                    self.datagrams.counts.receive_calls += 1;
                    for train in (0..trains).filter_map(|train| receiver.train(train)) {
                        self.datagrams.count(&train);
                        if self.slots.open(conn).is_some() {
                            handler.on_event(self, conn, Event::Datagrams(train));
                        }
                    }
                    if !more || self.stale(conn) {
                        break;
                    }
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => break,
                Err(error) => {
                    self.fail(handler, index, error);
                    break;
                }
            }
        }
        self.datagrams.give_back(receiver);
    }

    /// Does one read and handles its result. Returns true when there may be more to read.
    pub(super) fn read_once<H: Handler>(
        &mut self,
        handler: &mut H,
        conn: Conn,
        buffer: &mut [u8],
        to_end: bool,
    ) -> bool {
        let index = conn.slot() as u32;
        let slot = self.slots.get(index);
        let (fd, known) = (slot.fd, i32::from(slot.error));
        if slot.is(Flag::Eof) {
            self.check_for_reset(handler, index);
            return false;
        }
        let next = self.receipts.next(index);
        let skipping = matches!(next, Some(Receipt::Skip(1..)));
        let (received, most) = match next {
            Some(Receipt::Skip(most @ 1..)) => (skip(fd, most as u32), most as usize),
            // A connection that has failed is read to its end.
            Some(Receipt::AtMost(0)) if known == 0 => return false,
            Some(Receipt::AtMost(most @ 1..)) => {
                let most = buffer.len().min(most as usize);
                (receive(fd, &mut buffer[..most]), most)
            }
            _ => (receive(fd, buffer), buffer.len()),
        };
        match received {
            Ok(0) => self.ended(handler, index),
            Ok(count) => {
                self.receipts.arrived(index, count);
                if self.slots.get(index).is_open() {
                    let event = if skipping { Event::Skipped(count) } else { Event::Data(&buffer[..count]) };
                    handler.on_event(self, conn, event);
                }
                // A short read has emptied the socket. The next bytes cause a new kernel event.
                let more = count == most || to_end || known != 0;
                return more && !self.stale(conn);
            }
            Err(libc::EINTR) => return true,
            Err(libc::EAGAIN) if known == 0 => {}
            Err(libc::EAGAIN) => self.fail(handler, index, known),
            Err(error) => self.fail(handler, index, error),
        }
        false
    }

    /// The peer has finished sending.
    pub(super) fn ended<H: Handler>(&mut self, handler: &mut H, index: u32) {
        let slot = self.slots.get_mut(index);
        slot.set(Flag::Eof);
        if slot.error != 0 {
            let error = i32::from(slot.error);
            return self.fail(handler, index, error);
        }
        if slot.is_open() {
            let conn = self.slots.conn(index);
            handler.on_event(self, conn, Event::Eof);
        }
    }

    /// Checks the socket for a reset: after the end of the stream, a reset shows only in the socket's error.
    pub(super) fn check_for_reset<H: Handler>(&mut self, handler: &mut H, index: u32) {
        let slot = self.slots.get(index);
        let error = match i32::from(slot.error) {
            0 => socket::take_error(slot.fd),
            known => known,
        };
        if error != 0 {
            self.fail(handler, index, error);
        }
    }

    /// Reports what happened outside of the kernel's events. Returns true if there was anything.
    pub(super) fn dispatch_pending<H: Handler>(&mut self, handler: &mut H) -> bool {
        let any = !self.sent.is_empty() || !self.failed.is_empty() || !self.bound.is_empty();
        for (conn, number) in mem::take(&mut self.bound) {
            handler.on_event(self, conn, Event::Accepted(number));
        }
        // Handlers cannot flush, so the list does not grow meanwhile.
        for number in 0..self.sent.len() {
            let conn = self.sent[number];
            if self.slots.open(conn).is_some() {
                handler.on_event(self, conn, Event::Sent);
            }
        }
        self.sent.clear();
        for conn in mem::take(&mut self.failed) {
            if !self.stale(conn) {
                let index = conn.slot() as u32;
                let error = i32::from(self.slots.get(index).error);
                self.fail(handler, index, error);
            }
        }
        any
    }
}
