//! The io_uring driver: multishot receive into provided buffers, and one system call per turn that submits everything
//! and waits.
//!
//! Sends. The kernel first tries a send at once (`MSG_DONTWAIT`), which makes no completion when all bytes were sent
//! (`IOSQE_CQE_SKIP_SUCCESS`). So after the submission every send without a completion is done, and its buffer is free:
//! the usual request costs one receive completion and nothing else. The rest of a partial send is submitted again as a
//! send that waits for room and makes a completion.
//!
//! Ends. A slot is reused only when the kernel has no operation for it any more. A multishot receive that is still
//! active is cancelled when its connection is closed.
//!
//! Datagrams. A multishot poll says that some have come, and `recvmmsg` takes all that have in one call: trains of up to 64 KiB (GRO),
//! which a ring of provided buffers would need a buffer of that size for each. They are sent with one call for a train.
//!
//! It does not know what the bytes mean.

mod buffers;
pub(crate) mod check;
mod completions;
mod files;
mod ring;
mod scratch;

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{opcode, squeue, types};

pub use self::buffers::BufferFill;
pub(crate) use self::ring::table_limit;

use self::buffers::{Buffers, Shape};
use self::files::{SocketRef, at};
use self::ring::{Completion, OpKind, Ring};
use self::scratch::Scratch;
use crate::datagrams::{self, DatagramIo, Outbound};
use crate::send_queue::{NONE, SendQueuePool};
use crate::slots::{Flag, Receipt, Receipts, Slots};
use crate::socket;
use crate::{Address, Conn, DatagramCounts, DescriptorKind, Driver, Handler, Io, Listener, SocketLimits, Waker, host};

/// What all connections receive in a turn, 1 or 2 MiB, stays in a core's cache until it is read. A response of 160 KiB takes two or three
/// receives. With buffers for 16 MiB such responses cost a sixth more, because they were written to memory and read from it; where
/// the buffers of a turn are full, the rest waits in the sockets.
const LARGE_BUFFERS: Shape = Shape { filling: BufferFill::Through, size: 128 * 1024, first: 8, most: 16 };

/// For kernels that cannot fill a buffer by several receives: 16 KiB holds most messages whole.
const SMALL_BUFFERS: Shape = Shape { filling: BufferFill::Once, size: 16 * 1024, first: 64, most: 1024 };

/// The most bytes that are received between two messages of which most is dropped.
const HEAD_BYTES: u32 = 2 * 1024;

/// The io_uring driver. It belongs to the thread that makes it.
pub struct UringDriver {
    // First, so that it is dropped first: the kernel then releases the memory below.
    ring: Ring,
    buffers: Buffers,
    scratch: Scratch,
    /// Entries in the ring's table of sockets.
    table: u32,
    descriptors: DescriptorKind,
    waker: Waker,
    /// By number. Numbers are not reused. `None`: closed.
    listeners: Vec<Option<Listener>>,
    /// Listeners to accept on again.
    accept_again: Vec<u32>,
    /// Listeners that refuse connections for now.
    refusing: Vec<u32>,
    /// Accepting has stopped because descriptors or memory ran out; it is tried again at this time.
    accept_paused_until: Option<u64>,
    slots: Slots,
    queues: SendQueuePool,
    /// Connections whose next bytes may be dropped, or that receive only so many. They have one receive at a time, since a multishot one
    /// would copy, and take all.
    receipts: Receipts,
    limits: SocketLimits,
    datagrams: DatagramIo,
    /// Bound sockets of datagrams that the handler does not know of yet, with their numbers as listeners.
    bound: Vec<(Conn, usize)>,
    /// Connections with something to submit.
    dirty: Vec<u32>,
    /// Connections whose receive found no buffer, in that order.
    starved: VecDeque<Conn>,
    /// How many of them receive again in the next turn, at most. It doubles with each turn in which buffers did not run out.
    again: usize,
    /// Sends of the current submission, with their lengths.
    in_flight: Vec<(u32, usize)>,
    /// Connections whose queue ran empty and that asked for [`Event::Sent`].
    sent: Vec<Conn>,
    /// Connections with an error and without a kernel operation that would end and report it.
    failed: Vec<Conn>,
    /// Slots to free with the next submission, which closes their sockets.
    dead: Vec<u32>,
    batch: Vec<Completion>,
    /// The first error of pushing an operation. The next turn returns it.
    broken: Option<io::Error>,
    /// A turn has failed. Queued operations may point to memory that changes from now on, so nothing is submitted any
    /// more.
    over: bool,
    /// Rings, and timer slack, belong to a thread; so does the driver.
    thread_bound: PhantomData<*const ()>,
}

impl std::fmt::Debug for UringDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringDriver").field("open", &self.open()).finish_non_exhaustive()
    }
}

impl UringDriver {
    /// Makes a driver for the calling thread, and sets the thread's timer slack to 1 ns. Call [`crate::probe`] first
    /// to find out whether the kernel supports all that it needs.
    ///
    /// # Errors
    /// When the kernel refuses the ring, its buffers or a descriptor.
    pub fn new() -> io::Result<UringDriver> {
        UringDriver::with_descriptors(DescriptorKind::Regular)
    }

    /// As [`UringDriver::new`], with sockets held as [`crate::Capacity::plan`] says. Sockets for which the table has
    /// no room have descriptors.
    ///
    /// # Errors
    /// When the kernel refuses the ring, its buffers or a descriptor.
    pub fn with_descriptors(descriptors: DescriptorKind) -> io::Result<UringDriver> {
        UringDriver::with_buffers(None, descriptors)
    }

    /// As [`UringDriver::new`], with `most` receive buffers of `size` bytes, for programs that know their messages.
    /// `most` is rounded up to a power of two between 1 and 32,768.
    ///
    /// # Errors
    /// When the kernel refuses the ring, its buffers (before Linux 6.12 those filled by several receives) or a
    /// descriptor.
    pub fn with_receive_buffers(filling: BufferFill, most: u16, size: usize) -> io::Result<UringDriver> {
        let most = most.clamp(1, 1 << 15).next_power_of_two();
        let shape = Shape { filling, size: size.clamp(64, 1 << 20), first: most.min(64), most };
        UringDriver::with_buffers(Some(shape), DescriptorKind::Regular)
    }

    fn with_buffers(shape: Option<Shape>, descriptors: DescriptorKind) -> io::Result<UringDriver> {
        host::set_timer_slack()?;
        let ring = Ring::new()?;
        let usual = if ring.fills_through() { LARGE_BUFFERS } else { SMALL_BUFFERS };
        let buffers = Buffers::new(&ring, shape.unwrap_or(usual))?;
        let table = ring.make_table(descriptors);
        let mut driver = UringDriver {
            ring,
            table,
            descriptors,
            buffers,
            scratch: Scratch::default(),
            waker: Waker::new()?,
            listeners: Vec::new(),
            accept_again: Vec::new(),
            refusing: Vec::new(),
            accept_paused_until: None,
            slots: Slots::default(),
            queues: SendQueuePool::default(),
            receipts: Receipts::default(),
            limits: SocketLimits::default(),
            datagrams: DatagramIo::default(),
            bound: Vec::new(),
            dirty: Vec::new(),
            starved: VecDeque::new(),
            again: 0,
            in_flight: Vec::new(),
            sent: Vec::new(),
            failed: Vec::new(),
            dead: Vec::new(),
            batch: Vec::new(),
            broken: None,
            over: false,
            thread_bound: PhantomData,
        };
        driver.watch_waker();
        Ok(driver)
    }

    /// Queues an operation. The next turn returns its error, if there is one.
    ///
    /// # Safety
    /// What the entry points to must live until the operation completes; addresses and message headers until it
    /// is submitted.
    unsafe fn push(&mut self, entry: squeue::Entry, kind: OpKind, index: u32) {
        if self.over {
            return;
        }
        let entry = entry.user_data(kind.token(index));
        // SAFETY: passed on to the caller.
        if let Err(error) = unsafe { self.ring.push(&entry) } {
            self.broken.get_or_insert(error);
        }
    }

    fn watch_waker(&mut self) {
        let poll = opcode::PollAdd::new(types::Fd(self.waker.raw()), libc::POLLIN as u32).multi(true).build();
        // SAFETY: it points to nothing.
        unsafe { self.push(poll, OpKind::Wake, 0) };
    }

    fn push_accept(&mut self, number: u32) {
        if let Some(listener) = &self.listeners[number as usize] {
            let accept = opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd())).flags(libc::SOCK_CLOEXEC).build();
            // SAFETY: it points to nothing.
            unsafe { self.push(accept, OpKind::Accept, number) };
        }
    }

    fn push_receive(&mut self, index: u32) {
        let next = self.receipts.next(index);
        // A connection that has failed is read to its end.
        if next == Some(Receipt::AtMost(0)) && self.slots.get(index).error == 0 {
            return;
        }
        self.slots.get_mut(index).set(Flag::Receiving);
        let place = self.socket_ref(index);
        if self.slots.get(index).is(Flag::Datagrams) {
            let poll = at!(place, |at| opcode::PollAdd::new(at, libc::POLLIN as u32).multi(true).build());
            // SAFETY: it points to nothing.
            return unsafe { self.push(poll, OpKind::Poll, index) };
        }
        let once = |most: u32| {
            let entry =
                at!(place, |at| opcode::Recv::new(at, std::ptr::null_mut(), most).buf_group(buffers::GROUP).build());
            (entry.flags(squeue::Flags::BUFFER_SELECT), OpKind::Receive)
        };
        let (receive, kind) = match next {
            None | Some(Receipt::AtMost(0)) => {
                (at!(place, |at| opcode::RecvMulti::new(at, buffers::GROUP).build()), OpKind::Receive)
            }
            Some(Receipt::AtMost(most)) => once(most as u32),
            // All was dropped, and what comes now is looked at: as little as a head, for more of the same may follow it.
            Some(Receipt::Skip(0)) => once(HEAD_BYTES),
            // The kernel writes nothing, so there is no buffer. With MSG_WAITALL one operation would be enough, but on Linux 6.18 it may then
            // never complete.
            Some(Receipt::Skip(most)) => {
                self.slots.get_mut(index).set(Flag::Skipping);
                let (most, flags) = (most as u32, libc::MSG_TRUNC);
                let entry = at!(place, |at| opcode::Recv::new(at, std::ptr::null_mut(), most).flags(flags).build());
                (entry, OpKind::Skip)
            }
        };
        // SAFETY: the buffers live as long as the ring; with MSG_TRUNC, TCP writes nothing (tcp(7)).
        unsafe { self.push(receive, kind, index) };
    }

    /// Cancels the receive that the kernel has.
    fn cancel_receive(&mut self, index: u32) {
        let slot = self.slots.get(index);
        let kind = match (slot.is(Flag::Datagrams), slot.is(Flag::Skipping)) {
            (true, _) => OpKind::Poll,
            (false, true) => OpKind::Skip,
            (false, false) => OpKind::Receive,
        };
        self.push_cancel(kind, index);
    }

    /// The next receive is to be another.
    fn receive_otherwise(&mut self, index: u32) {
        let slot = self.slots.get(index);
        if !slot.is_any(&[Flag::Receiving, Flag::Connecting, Flag::Eof]) {
            self.receive_again(index);
        } else if slot.is(Flag::Receiving) && self.receipts.next(index).is_none() {
            // A multishot one would copy all that comes. Once it has ended, an operation follows that does not.
            self.push_cancel(OpKind::Receive, index);
        }
    }

    fn push_cancel(&mut self, kind: OpKind, index: u32) {
        let cancel = opcode::AsyncCancel::new(kind.token(index)).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { self.push(cancel, OpKind::Cancel, index) };
    }

    fn mark(&mut self, index: u32) {
        if !self.slots.get_mut(index).test_and_set(Flag::Dirty) {
            self.dirty.push(index);
        }
    }

    /// Queues bytes; if the kernel is reading a queue, in a second one behind it.
    fn queue(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        let Some(slot) = self.slots.open_mut(conn) else {
            return;
        };
        let busy = slot.is(Flag::Sending);
        // After an error, bytes are queued only to be counted.
        let waits = busy || slot.is(Flag::Connecting) || slot.error != 0;
        let mut queue = slot.queue;
        if queue == NONE {
            queue = self.queues.take();
            slot.queue = queue;
        } else if busy {
            if self.queues.get(queue).next == NONE {
                let next = self.queues.take();
                self.queues.get_mut(queue).next = next;
            }
            queue = self.queues.get(queue).next;
        }
        self.queues.get_mut(queue).push_with(head, body);
        if !waits {
            self.mark(conn.slot() as u32);
        }
    }

    /// Returns the connection's queues to the pool, except the one that the kernel is reading.
    fn drop_queues(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        let queue = slot.queue;
        if queue == NONE {
            return;
        }
        let busy = slot.is(Flag::Sending);
        if !busy {
            slot.queue = NONE;
        }
        let next = mem::replace(&mut self.queues.get_mut(queue).next, NONE);
        if next != NONE {
            self.queues.give(next);
        }
        if !busy {
            self.queues.give(queue);
        }
    }

    /// Ends the connection: cancels its operations and closes the socket. The slot is freed when all operations have
    /// completed.
    fn finish(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        if slot.test_and_set(Flag::Dead) {
            return;
        }
        self.drop_queues(index);
        self.receipts.end(index);
        if self.slots.get(index).is(Flag::Receiving) {
            self.cancel_receive(index);
        }
        for (is, kind) in [(Flag::Sending, OpKind::SendWhenRoom), (Flag::Connecting, OpKind::Connect)] {
            if self.slots.get(index).is(is) {
                self.push_cancel(kind, index);
            }
        }
        self.close_socket(index);
        self.free_if_idle(index);
    }

    /// Gives a socket of datagrams a slot. It has a descriptor, for the calls that receive and send.
    fn hold_datagrams(&mut self, socket: OwnedFd) -> Conn {
        let index = self.slots.take(socket.into_raw_fd());
        self.slots.get_mut(index).set(Flag::Datagrams);
        self.receive_again(index);
        self.slots.conn(index)
    }

    fn push_close(&mut self, place: SocketRef, index: u32) {
        let close = at!(place, |at| opcode::Close::new(at).build()).flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { self.push(close, OpKind::Close, index) };
    }

    /// Frees a dead slot if the kernel has no operation for it any more.
    fn free_if_idle(&mut self, index: u32) {
        let slot = self.slots.get(index);
        if slot.is(Flag::Dead) && !slot.is_any(&[Flag::Receiving, Flag::Sending, Flag::Connecting]) {
            self.dead.push(index);
        }
    }
}

impl Io for UringDriver {
    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        let addr = socket::raw_addr(to)?;
        // Blocking: the ring waits where a blocking socket would, and fails at once on non-blocking ones.
        let socket = socket::client_socket(to, from, self.limits, false)?;
        let index = self.hold(socket);
        self.slots.get_mut(index).set(Flag::Connecting);
        let addr = self.scratch.addr(addr);
        let (start, len) = (addr.as_ptr().cast(), addr.addr_len());
        let connect = at!(self.socket_ref(index), |at| opcode::Connect::new(at, start, len).build());
        // SAFETY: scratch memory lives until everything is submitted.
        unsafe { self.push(connect, OpKind::Connect, index) };
        Ok(self.slots.conn(index))
    }

    fn connect_datagrams(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Conn> {
        Ok(self.hold_datagrams(datagrams::connected_socket(to, from)?))
    }

    fn send_datagrams(&mut self, conn: Conn, to: Option<SocketAddr>, bytes: &[u8], segment: usize) {
        self.datagrams.send_on(&mut self.slots, &mut self.failed, conn, Outbound { to, bytes, segment });
    }

    fn datagram_counts(&self) -> DatagramCounts {
        self.datagrams.counts
    }

    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        if !head.is_empty() || !body.is_empty() {
            self.queue(conn, head, body);
        }
    }

    fn batch_completions(&mut self, within: Duration, events: u32) -> bool {
        self.ring.batch_completions(within, events)
    }

    fn skip(&mut self, conn: Conn, bytes: u64) {
        if self.slots.open(conn).is_some() {
            self.receive_otherwise(conn.slot() as u32);
            self.receipts.set(conn.slot() as u32, Receipt::Skip(bytes));
        }
    }

    fn receive_at_most(&mut self, conn: Conn, bytes: u64) {
        if self.slots.open(conn).is_some() {
            self.receive_otherwise(conn.slot() as u32);
            self.receipts.limit(conn.slot() as u32, bytes);
        }
    }

    fn limit_sockets(&mut self, limits: SocketLimits) {
        self.limits = limits;
    }

    fn want_sent(&mut self, conn: Conn) {
        self.slots.want_sent(conn);
    }

    fn close(&mut self, conn: Conn) {
        let Some(slot) = self.slots.open_mut(conn) else {
            return;
        };
        slot.set(Flag::Closing);
        if slot.queue == NONE || slot.error != 0 {
            self.finish(conn.slot() as u32);
        }
    }

    fn abort(&mut self, conn: Conn) {
        if self.slots.living(conn).is_some() {
            self.linger_zero(conn.slot() as u32);
            self.finish(conn.slot() as u32);
        }
    }

    fn unsent(&self, conn: Conn) -> usize {
        self.slots.open(conn).map_or(0, |slot| self.queues.left(slot.queue))
    }
}

impl Driver for UringDriver {
    type Listener = Listener;
    type Waker = Waker;

    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn listen(&mut self, listener: impl Into<Listener>) -> io::Result<()> {
        let listener = listener.into();
        socket::prepare_listener(&listener)?;
        if let Listener::Udp(socket) = listener {
            let conn = self.hold_datagrams(socket.into());
            self.bound.push((conn, self.listeners.len()));
            self.listeners.push(None);
            return Ok(());
        }
        self.listeners.push(Some(listener));
        self.push_accept(self.listeners.len() as u32 - 1);
        Ok(())
    }

    fn stop_listening(&mut self) {
        for number in 0..self.listeners.len() {
            if let Some(listener) = self.listeners[number].take() {
                self.push_cancel(OpKind::Accept, number as u32);
                let fd = OwnedFd::from(listener).into_raw_fd();
                self.push_close(SocketRef::Descriptor(fd), number as u32);
            }
        }
        self.accept_again.clear();
        self.accept_paused_until = None;
    }

    fn refuse(&mut self, listener: usize, refuse: bool) -> io::Result<()> {
        let Some(Some(socket)) = self.listeners.get(listener) else { return Ok(()) };
        socket::refuse(socket, refuse)?;
        if refuse {
            self.refusing.push(listener as u32);
        } else {
            self.refusing.retain(|number| *number != listener as u32);
            self.push_accept(listener as u32);
        }
        Ok(())
    }

    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<u64>) -> io::Result<()> {
        if self.over {
            return Err(io::Error::other("the ring has failed before"));
        }
        self.poll_once(handler, until).inspect_err(|_| self.over = true)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn open(&self) -> usize {
        self.slots.used()
    }
}

impl Drop for UringDriver {
    fn drop(&mut self) {
        if !self.over {
            // Queued closes are done, too; a ring that refuses is closed below with everything in it.
            let _ = self.shut_down();
        }
        // This ends all other operations, so that none keeps a socket open after its descriptor is closed.
        let _ = self
            .ring
            .ring()
            .submitter()
            .register_sync_cancel(Some(types::Timespec::new().sec(1)), types::CancelBuilder::any());
        // This closes the sockets that only the table holds. The end of the ring would close them later.
        let _ = self.ring.ring().submitter().unregister_files();
        self.slots.close_all();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::Event;

    struct IgnoresEvents;

    impl Handler for IgnoresEvents {
        fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, _: Event<'_>) {}
    }

    #[test]
    fn after_a_turn_that_failed_nothing_is_submitted() {
        let mut driver = UringDriver::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        driver.broken = Some(io::Error::other("made up"));
        let now = Some(host::monotonic_ns());
        assert_eq!(driver.poll(&mut IgnoresEvents, now).unwrap_err().to_string(), "made up");
        driver.connect(&listener.local_addr().unwrap().into(), None).unwrap();
        assert!(driver.poll(&mut IgnoresEvents, now).is_err());
        drop(driver);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody has come");
    }
}
