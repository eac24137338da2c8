//! One turn of the io_uring driver: what it submits to the kernel, and how it handles the completions.

use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{opcode, squeue};

use super::UringDriver;
use super::files::{SocketRef, at};
use super::ring::{Completion, OpKind, Wait};
use crate::host::monotonic_ns;
use crate::send_queue::NONE;
use crate::slots::{Flag, Receipt};
use crate::socket::{ACCEPT_PAUSE, is_out_of_resources};
use crate::{Event, Handler};

/// Receives that are begun again in a turn after one in which buffers ran out: each buffer can take at least a part of a message.
const AGAIN: usize = 16;

/// Calls that receive datagrams of one socket in one turn, so that every socket is served.
const READS_A_TURN: usize = 16;

/// The most bytes given to the kernel in one send.
const SEND_AT_MOST: usize = 1 << 30;

/// With these flags a short send is a failure, which makes a completion even where success makes none.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// As above; in addition, bytes that the socket does not take at once are a failure.
pub(super) const SEND_NOW_FLAGS: i32 = SEND_FLAGS | libc::MSG_DONTWAIT;

impl UringDriver {
    pub(super) fn poll_once<H: Handler>(&mut self, handler: &mut H, until: Option<u64>) -> io::Result<()> {
        let soon = self.prepare();
        let wait = self.wait_for(until, soon);
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        self.ring.enter(wait)?;
        if self.ring.queued() > 0 {
            self.ring.submit_all()?;
        }
        self.scratch.submitted();
        // Their sockets are closed now. Those of slots that die below are still open.
        for index in self.dead.drain(..) {
            self.slots.give(index);
        }
        let mut batch = mem::take(&mut self.batch);
        self.ring.drain(&mut batch)?;
        for &completion in &batch {
            match completion.kind() {
                OpKind::SendNow => self.send_fell_short(completion),
                OpKind::Table => self.table_refused(completion.index()),
                _ => {}
            }
        }
        self.settle();
        for &completion in &batch {
            self.complete(handler, completion);
        }
        batch.clear();
        self.batch = batch;
        self.buffers.publish();
        self.dispatch_pending(handler);
        Ok(())
    }

    /// Submits what connections have queued. Returns true when there is more to do than wait.
    fn prepare(&mut self) -> bool {
        self.retry_starved();
        let mut soon = !self.failed.is_empty() || !self.sent.is_empty() || !self.starved.is_empty();
        soon |= !self.bound.is_empty();
        let mut dirty = mem::take(&mut self.dirty);
        for &index in &dirty {
            let slot = self.slots.get_mut(index);
            slot.clear(Flag::Dirty);
            if slot.is(Flag::Dead) || !slot.is(Flag::Used) {
                continue;
            }
            if slot.is(Flag::WantReceive) {
                slot.clear(Flag::WantReceive);
                if !slot.is(Flag::Receiving) {
                    self.push_receive(index);
                }
            }
            soon |= self.prepare_send(index);
        }
        dirty.clear();
        // Nothing above marks a connection, so no other list has been begun.
        self.dirty = dirty;
        if !self.accept_again.is_empty() && self.accept_paused_until.is_none_or(|end| end <= monotonic_ns()) {
            self.accept_paused_until = None;
            for number in mem::take(&mut self.accept_again) {
                self.push_accept(number);
            }
        }
        soon
    }

    /// Begins the receives of some connections again that found no buffer: of few, where there were too few buffers in the last turn, since
    /// a receive that finds none costs as much as one that does.
    fn retry_starved(&mut self) {
        for _ in 0..self.again {
            let Some(conn) = self.starved.pop_front() else { break };
            // It may have begun with a send meanwhile.
            if self.slots.living(conn).is_some_and(|slot| slot.is(Flag::WantReceive)) {
                self.mark(conn.slot() as u32);
            }
        }
        self.again = self.again.saturating_mul(2);
    }

    /// Submits a connection's queue. Returns true when there is work to do once it is sent.
    fn prepare_send(&mut self, index: u32) -> bool {
        let slot = self.slots.get_mut(index);
        if slot.queue == NONE || slot.error != 0 || slot.is_any(&[Flag::Connecting, Flag::Sending]) {
            return false;
        }
        let when_room = slot.is(Flag::Blocked);
        let follows = slot.is_any(&[Flag::Closing, Flag::WantSent]);
        if when_room {
            slot.clear(Flag::Blocked);
            slot.set(Flag::Sending);
        }
        let place = if when_room { self.socket_ref(index) } else { self.socket_for_send(index) };
        let flags = if when_room { SEND_FLAGS } else { SEND_NOW_FLAGS };
        let queue = self.queues.get(self.slots.get(index).queue);
        let (entry, len) = if let Some(bytes) = queue.as_one() {
            let len = bytes.len().min(SEND_AT_MOST);
            let (start, count) = (bytes.as_ptr(), len as u32);
            (at!(place, |at| opcode::Send::new(at, start, count).flags(flags).build()), len)
        } else {
            let (message, len) = self.scratch.message(queue);
            (at!(place, |at| opcode::SendMsg::new(at, message).flags(flags as u32).build()), len)
        };
        let part = len < queue.left();
        if when_room {
            // SAFETY: the queue is not touched while `Sending`, and outlives the connection if that ends first.
            unsafe { self.push(entry, OpKind::SendWhenRoom, index) };
            return false;
        }
        self.in_flight.push((index, len));
        // SAFETY: the queue is not touched before `settle`, when the submission is over. After a turn that fails
        // before that, nothing is submitted.
        unsafe {
            self.push(entry.flags(squeue::Flags::SKIP_SUCCESS), OpKind::SendNow, index);
        }
        follows || part
    }

    fn wait_for(&self, until: Option<u64>, soon: bool) -> Wait {
        // The last connection has just gone and there is no listener, so a wait could last for ever.
        let has_no_sockets =
            !self.dead.is_empty() && self.slots.used() == self.dead.len() && self.listeners.iter().all(Option::is_none);
        if soon || has_no_sockets || self.broken.is_some() {
            return Wait::No;
        }
        let until = match (until, self.accept_paused_until) {
            (Some(until), Some(accept_paused_until)) => Some(until.min(accept_paused_until)),
            (until, accept_paused_until) => until.or(accept_paused_until),
        };
        until.map_or(Wait::Forever, |until| Wait::For(Duration::from_nanos(until.saturating_sub(monotonic_ns()))))
    }

    /// A send that was tried at once has not sent everything.
    fn send_fell_short(&mut self, completion: Completion) {
        let index = completion.index();
        let Some(sent) = self.in_flight.iter_mut().find(|sent| sent.0 == index) else {
            return;
        };
        sent.1 = 0;
        match completion.result {
            count @ 0.. => self.sent_of_queue(index, count as usize),
            error if is_passing(-error) => self.sent_of_queue(index, 0),
            // The socket is not in the ring's table after all.
            error if error == -libc::EBADF => self.sent_of_queue(index, 0),
            error => self.send_failed(index, -error),
        }
    }

    /// The socket took only `count` bytes. The rest waits for room.
    fn sent_of_queue(&mut self, index: u32, count: usize) {
        let slot = self.slots.get_mut(index);
        slot.set(Flag::Blocked);
        let queue = slot.queue;
        self.queues.get_mut(queue).advance(count);
        self.mark(index);
    }

    /// The submission is over: sends without a completion are done.
    fn settle(&mut self) {
        let mut in_flight = mem::take(&mut self.in_flight);
        for &(index, len) in &in_flight {
            if len > 0 {
                self.advance(index, len);
            }
        }
        in_flight.clear();
        self.in_flight = in_flight;
    }

    /// `count` bytes of the connection's queue are sent. Continues with the rest, the queue behind it, or the end.
    fn advance(&mut self, index: u32, count: usize) {
        let slot = self.slots.get_mut(index);
        let queue = self.queues.get_mut(slot.queue);
        queue.advance(count);
        if queue.left() > 0 {
            return self.mark(index);
        }
        let next = mem::replace(&mut queue.next, NONE);
        let done = mem::replace(&mut slot.queue, next);
        self.queues.give(done);
        if next != NONE {
            self.mark(index);
        } else if slot.is(Flag::Closing) {
            self.finish(index);
        } else if slot.is(Flag::WantSent) {
            slot.clear(Flag::WantSent);
            let conn = self.slots.conn(index);
            self.sent.push(conn);
        }
    }

    /// Nothing more can be sent. What the peer sent before is still received and reported.
    fn send_failed(&mut self, index: u32, error: i32) {
        let slot = self.slots.get_mut(index);
        if slot.is(Flag::Closing) {
            return self.finish(index);
        }
        slot.error = error as u16;
        if slot.is(Flag::Receiving) {
            // A reset should end the receive by itself, but Linux 6.18 was seen to leave a multishot one waiting for ever, as it may leave
            // one on a Unix socket that the peer has shut down (liburing's issue 1549).
            self.cancel_receive(index);
        } else if !slot.is(Flag::WantReceive) {
            let conn = self.slots.conn(index);
            self.failed.push(conn);
        }
    }

    fn complete<H: Handler>(&mut self, handler: &mut H, completion: Completion) {
        match completion.kind() {
            OpKind::Receive => self.received(handler, completion),
            OpKind::Skip => self.skipped(handler, completion),
            OpKind::Poll => self.datagrams_came(handler, completion),
            OpKind::Accept => self.accepted(handler, completion),
            OpKind::Connect => self.connected(handler, completion),
            OpKind::SendWhenRoom => self.sent_when_room(completion),
            OpKind::Cancel => self.not_cancelled(completion),
            OpKind::Wake => {
                self.waker.clear();
                if !completion.more() {
                    self.watch_waker();
                }
            }
            // Handled before the others; and a failed close has closed the socket all the same.
            OpKind::SendNow | OpKind::Table | OpKind::Close => {}
        }
    }

    fn received<H: Handler>(&mut self, handler: &mut H, completion: Completion) {
        let index = completion.index();
        if !completion.more() {
            self.slots.get_mut(index).clear(Flag::Receiving);
        }
        let was_dead = self.slots.get(index).is(Flag::Dead);
        if let Some(buffer) = completion.buffer() {
            if completion.result > 0 && self.slots.get(index).is_open() {
                match self.receipts.next(index) {
                    None => {}
                    // The message after one that was dropped: if this one is not, what follows is received as usual.
                    Some(Receipt::Skip(0)) => self.receipts.end(index),
                    Some(_) => self.receipts.arrived(index, completion.result as usize),
                }
                // SAFETY: the kernel has filled that many bytes, and the buffer is returned only below.
                let bytes = unsafe { self.buffers.bytes(buffer, completion.result as usize) };
                let conn = self.slots.conn(index);
                handler.on_event(self, conn, Event::Data(bytes));
            }
            self.buffers.processed(buffer, completion.result.max(0) as usize, completion.buffer_goes_on());
        }
        // What the handler has ended meanwhile, it has freed.
        if !completion.more() && self.slots.get(index).is(Flag::Dead) == was_dead {
            self.receive_ended(handler, index, completion.result);
        }
    }

    /// Bytes were dropped.
    fn skipped<H: Handler>(&mut self, handler: &mut H, completion: Completion) {
        let (index, count) = (completion.index(), completion.result.max(0) as usize);
        let slot = self.slots.get_mut(index);
        slot.clear(Flag::Receiving);
        slot.clear(Flag::Skipping);
        let was_dead = slot.is(Flag::Dead);
        if count > 0 && slot.is_open() {
            self.receipts.arrived(index, count);
            let conn = self.slots.conn(index);
            handler.on_event(self, conn, Event::Skipped(count));
        }
        if self.slots.get(index).is(Flag::Dead) == was_dead {
            self.receive_ended(handler, index, completion.result);
        }
    }

    /// Datagrams have come, or the socket has failed, or the poll is over.
    fn datagrams_came<H: Handler>(&mut self, handler: &mut H, completion: Completion) {
        let index = completion.index();
        if !completion.more() {
            self.slots.get_mut(index).clear(Flag::Receiving);
        }
        if self.slots.get(index).is(Flag::Dead) {
            return self.free_if_idle(index);
        }
        let conn = self.slots.conn(index);
        let mut receiver = self.datagrams.take_receiver();
        let mut reads = 0;
        while self.slots.open(conn).is_some() {
            if reads == READS_A_TURN {
                // The end of the poll leads here again, after the others.
                self.push_cancel(OpKind::Poll, index);
                break;
            }
            reads += 1;
            match receiver.receive(self.slots.get(index).fd) {
                Ok((trains, more)) => {
                    self.datagrams.counts.receive_calls += 1;
                    for train in (0..trains).filter_map(|train| receiver.train(train)) {
                        self.datagrams.count(&train);
                        if self.slots.open(conn).is_some() {
                            handler.on_event(self, conn, Event::Datagrams(train));
                        }
                    }
                    if !more {
                        break;
                    }
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => break,
                Err(error) => self.fail(handler, index, error),
            }
        }
        self.datagrams.give_back(receiver);
        // One that has ended in an event is freed already: the kernel had no operation for it any more.
        if !completion.more() && self.slots.living(conn).is_some() {
            self.receive_again(index);
        }
    }

    /// A receive is over: the connection has ended, or the receive has to begin again.
    fn receive_ended<H: Handler>(&mut self, handler: &mut H, index: u32, result: i32) {
        let slot = self.slots.get_mut(index);
        let known = i32::from(slot.error);
        if slot.is(Flag::Dead) {
            return self.free_if_idle(index);
        }
        match -result {
            libc::ENOBUFS => {
                self.buffers.grow();
                self.again = AGAIN;
                slot.set(Flag::WantReceive);
                self.starved.push_back(self.slots.conn(index));
            }
            ..0 => self.receive_again(index),
            // What the peer sent before it reset the connection is still to be received.
            libc::ECANCELED if matches!(known, libc::EPIPE | libc::ECONNRESET) => self.receive_again(index),
            _ if known != 0 => self.fail(handler, index, known),
            0 => {
                slot.set(Flag::Eof);
                if slot.is_open() {
                    let conn = self.slots.conn(index);
                    handler.on_event(self, conn, Event::Eof);
                }
            }
            libc::ECANCELED | libc::EAGAIN | libc::EINTR => self.receive_again(index),
            error => self.fail(handler, index, error),
        }
    }

    pub(super) fn receive_again(&mut self, index: u32) {
        self.slots.get_mut(index).set(Flag::WantReceive);
        self.mark(index);
    }

    fn accepted<H: Handler>(&mut self, handler: &mut H, completion: Completion) {
        let number = completion.index();
        let listening = self.listeners[number as usize].is_some();
        match completion.result {
            fd @ 0.. if listening => {
                // SAFETY: the kernel made the descriptor for this driver, and nothing else owns it.
                let index = self.hold(unsafe { OwnedFd::from_raw_fd(fd) });
                let conn = self.slots.conn(index);
                handler.on_event(self, conn, Event::Accepted(number as usize));
                if !self.slots.get(index).is(Flag::Dead) {
                    self.receive_again(index);
                }
            }
            // SAFETY: the kernel made the descriptor for this driver, and nothing else owns it.
            fd @ 0.. => drop(unsafe { OwnedFd::from_raw_fd(fd) }),
            error => {
                let error = -error;
                if is_out_of_resources(error) {
                    self.accept_paused_until = Some(monotonic_ns() + ACCEPT_PAUSE);
                }
            }
        }
        let accepts = self.listeners[number as usize].is_some() && !self.refusing.contains(&number);
        if !completion.more() && accepts {
            self.accept_again.push(number);
        }
    }

    fn connected<H: Handler>(&mut self, handler: &mut H, completion: Completion) {
        let index = completion.index();
        let slot = self.slots.get_mut(index);
        slot.clear(Flag::Connecting);
        if slot.is(Flag::Dead) {
            return self.free_if_idle(index);
        }
        if completion.result < 0 {
            return self.fail(handler, index, -completion.result);
        }
        if slot.is_open() {
            let conn = self.slots.conn(index);
            handler.on_event(self, conn, Event::Connected);
        }
        if !self.slots.get(index).is(Flag::Dead) {
            // This also marks the connection, for bytes queued meanwhile.
            self.receive_again(index);
        }
    }

    fn sent_when_room(&mut self, completion: Completion) {
        let index = completion.index();
        let slot = self.slots.get_mut(index);
        slot.clear(Flag::Sending);
        if slot.is(Flag::Dead) {
            self.drop_queues(index);
            return self.free_if_idle(index);
        }
        match completion.result {
            count @ 0.. => self.advance(index, count as usize),
            error if is_passing(-error) => self.sent_of_queue(index, 0),
            error => self.send_failed(index, -error),
        }
    }

    /// A cancellation found no operation, or came while the operation was running. It is tried again if the operation
    /// has still not ended.
    fn not_cancelled(&mut self, completion: Completion) {
        if completion.result != -libc::EALREADY {
            return;
        }
        let index = completion.index();
        let slot = self.slots.get(index);
        let limited = matches!(self.receipts.next(index), Some(Receipt::AtMost(_)));
        if (slot.is(Flag::Dead) || slot.error != 0 || limited) && slot.is(Flag::Receiving) {
            self.cancel_receive(index);
        }
    }

    /// The connection is gone: reports it, unless the handler has closed it.
    fn fail<H: Handler>(&mut self, handler: &mut H, index: u32, error: i32) {
        let slot = self.slots.get(index);
        let (open, unsent) = (slot.is_open(), self.queues.left(slot.queue));
        let conn = self.slots.conn(index);
        self.finish(index);
        if open {
            let error = io::Error::from_raw_os_error(error);
            handler.on_event(self, conn, Event::Failed { error, unsent });
        }
    }

    /// Reports the events that follow from sends.
    fn dispatch_pending<H: Handler>(&mut self, handler: &mut H) {
        for (conn, number) in mem::take(&mut self.bound) {
            if self.slots.open(conn).is_some() {
                handler.on_event(self, conn, Event::Accepted(number));
            }
        }
        // Handlers cannot settle sends, so the lists do not grow meanwhile.
        for number in 0..self.sent.len() {
            let conn = self.sent[number];
            if self.slots.open(conn).is_some() {
                handler.on_event(self, conn, Event::Sent);
            }
        }
        self.sent.clear();
        for number in 0..self.failed.len() {
            let conn = self.failed[number];
            if let Some(slot) = self.slots.open(conn) {
                let error = i32::from(slot.error);
                self.fail(handler, conn.slot() as u32, error);
            }
        }
        self.failed.clear();
    }
}

/// Errors after which the same operation may well succeed.
fn is_passing(error: i32) -> bool {
    matches!(error, libc::EAGAIN | libc::EINTR)
}
