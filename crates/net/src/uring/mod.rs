//! The io_uring driver: multishot receive into provided buffers, and one system call a turn that submits
//! everything and waits.
//!
//! Sends. A send is first tried by the kernel at once (`MSG_DONTWAIT`) and makes no completion when all of it
//! went (`IOSQE_CQE_SKIP_SUCCESS`). So after the submission every send without a completion is done, and its
//! buffer is free: the usual request costs one receive completion and nothing else. What did not go is given to
//! the kernel again as a send that waits for room and does make a completion.
//!
//! Ends. A slot is used again only when the kernel has no operation for it any more; a multishot receive that
//! is still going is cancelled when its connection is closed.
//!
//! It does not know what the bytes mean.

mod buffers;
pub(crate) mod check;
mod completions;
mod files;
mod ring;
mod scratch;

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::time::Instant;

use io_uring::{opcode, squeue, types};

pub use self::buffers::BufferFill;
pub(crate) use self::ring::table_limit;

use self::buffers::{Buffers, Shape};
use self::files::{Place, at};
use self::ring::{Completion, Kind, Ring};
use self::scratch::Scratch;
use crate::send_queue::{NONE, SendQueuePool};
use crate::slots::{Flag, Slots};
use crate::socket::{self, RawAddr};
use crate::{Address, Conn, DescriptorKind, Driver, Handler, Io, Listener, Waker, host};

/// A thread with short messages touches 1 MiB, which a cache holds; one that needs them all 16 MiB. A response of
/// 160 KiB takes two or three receives.
const LARGE_BUFFERS: Shape = Shape { filling: BufferFill::Through, size: 128 * 1024, first: 8, most: 128 };

/// The same for kernels that cannot fill a buffer through: 16 KiB takes most messages whole.
const SMALL_BUFFERS: Shape = Shape { filling: BufferFill::Once, size: 16 * 1024, first: 64, most: 1024 };

/// The io_uring driver. It belongs to the thread that makes it.
pub struct UringDriver {
    // First, so that it is dropped first: the kernel lets go of the memory below.
    ring: Ring,
    buffers: Buffers,
    scratch: Scratch,
    /// Places in the ring's table of sockets.
    table: u32,
    descriptors: DescriptorKind,
    waker: Waker,
    /// By number; numbers are not used again. `None`: closed.
    listeners: Vec<Option<Listener>>,
    /// Listeners to accept on again.
    accept_again: Vec<u32>,
    /// Accepting stopped for want of descriptors or memory; tried again then.
    accept_paused_until: Option<Instant>,
    slots: Slots,
    queues: SendQueuePool,
    /// Connections with something to give to the kernel.
    dirty: Vec<u32>,
    /// Sends of the submission under way, with their lengths.
    in_flight: Vec<(u32, usize)>,
    /// Connections whose queue ran empty and that asked to know.
    sent: Vec<Conn>,
    /// Connections with an error and no operation of the kernel's that would end and tell it.
    failed: Vec<Conn>,
    /// Slots to be freed with the next submission, which closes their sockets.
    dead: Vec<u32>,
    batch: Vec<Completion>,
    /// The first error of pushing an operation; told by the next turn.
    broken: Option<io::Error>,
    /// A turn has failed. Operations may be queued that point to memory which changes from now on, so nothing is
    /// submitted any more.
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
    /// Makes a driver for the calling thread, and sets the thread's timer slack to 1 ns. Ask
    /// [`crate::probe`] first whether the kernel can do all that it needs.
    ///
    /// # Errors
    /// When the kernel refuses the ring, its buffers or a descriptor.
    pub fn new() -> io::Result<UringDriver> {
        UringDriver::with_descriptors(DescriptorKind::Regular)
    }

    /// As [`UringDriver::new`], with sockets held as [`crate::Capacity::plan`] says. Sockets beyond what the
    /// table takes have descriptors.
    ///
    /// # Errors
    /// When the kernel refuses the ring, its buffers or a descriptor.
    pub fn with_descriptors(descriptors: DescriptorKind) -> io::Result<UringDriver> {
        UringDriver::with_buffers(None, descriptors)
    }

    /// As [`UringDriver::new`], with `most` receive buffers of `size` bytes, for programs that know their
    /// messages. `most` is rounded up to a power of two between 1 and 32,768.
    ///
    /// # Errors
    /// When the kernel refuses the ring, its buffers (before Linux 6.12 those to be filled through) or a
    /// descriptor.
    pub fn with_receive_buffers(filling: BufferFill, most: u16, size: usize) -> io::Result<UringDriver> {
        let most = most.clamp(1, 1 << 15).next_power_of_two();
        let shape = Shape { filling, size: size.clamp(64, 1 << 20), first: most.min(64), most };
        UringDriver::with_buffers(Some(shape), DescriptorKind::Regular)
    }

    fn with_buffers(shape: Option<Shape>, descriptors: DescriptorKind) -> io::Result<UringDriver> {
        host::sharpen_timers()?;
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
            accept_paused_until: None,
            slots: Slots::default(),
            queues: SendQueuePool::default(),
            dirty: Vec::new(),
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

    /// Queues an operation. An error is kept for the next turn to tell.
    ///
    /// # Safety
    /// What the entry points to must live until the operation completes; addresses and message headers until it
    /// is submitted.
    unsafe fn push(&mut self, entry: squeue::Entry, kind: Kind, index: u32) {
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
        unsafe { self.push(poll, Kind::Wake, 0) };
    }

    fn push_accept(&mut self, number: u32) {
        if let Some(listener) = &self.listeners[number as usize] {
            let accept = opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd())).flags(libc::SOCK_CLOEXEC).build();
            // SAFETY: it points to nothing.
            unsafe { self.push(accept, Kind::Accept, number) };
        }
    }

    fn push_receive(&mut self, index: u32) {
        self.slots.get_mut(index).set(Flag::Receiving);
        let receive = at!(self.place(index), |at| opcode::RecvMulti::new(at, buffers::GROUP).build());
        // SAFETY: the buffers live as long as the ring.
        unsafe { self.push(receive, Kind::Receive, index) };
    }

    fn push_cancel(&mut self, kind: Kind, index: u32) {
        let cancel = opcode::AsyncCancel::new(kind.token(index)).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { self.push(cancel, Kind::Cancel, index) };
    }

    fn mark(&mut self, index: u32) {
        if !self.slots.get_mut(index).test_and_set(Flag::Dirty) {
            self.dirty.push(index);
        }
    }

    /// Queues, behind the queue that the kernel reads if there is one.
    fn queue(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        let Some(slot) = self.slots.open_mut(conn) else {
            return;
        };
        let busy = slot.is(Flag::Sending);
        // After an error it is queued only to be counted.
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

    /// Gives the connection's queues back to the pool, except the one that the kernel reads.
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

    /// Ends the connection: cancels what the kernel has of it and closes the socket. The slot is freed when all
    /// operations have completed.
    fn finish(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        if slot.test_and_set(Flag::Dead) {
            return;
        }
        self.drop_queues(index);
        for (is, kind) in
            [(Flag::Receiving, Kind::Receive), (Flag::Sending, Kind::SendWhenRoom), (Flag::Connecting, Kind::Connect)]
        {
            if self.slots.get(index).is(is) {
                self.push_cancel(kind, index);
            }
        }
        self.let_go(index);
        self.free_if_idle(index);
    }

    fn push_close(&mut self, place: Place, index: u32) {
        let close = at!(place, |at| opcode::Close::new(at).build()).flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: it points to nothing.
        unsafe { self.push(close, Kind::Close, index) };
    }

    /// Frees a dead slot of which the kernel has nothing any more.
    fn free_if_idle(&mut self, index: u32) {
        let slot = self.slots.get(index);
        if slot.is(Flag::Dead) && !slot.is_any(&[Flag::Receiving, Flag::Sending, Flag::Connecting]) {
            self.dead.push(index);
        }
    }
}

impl Io for UringDriver {
    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        let addr = RawAddr::new(to)?;
        // Blocking: the ring waits for what a blocking socket would, and gives up at once on others.
        let socket = socket::client_socket(to, from, false)?;
        let index = self.hold(socket);
        self.slots.get_mut(index).set(Flag::Connecting);
        let addr = self.scratch.addr(addr);
        let (start, len) = (addr.as_ptr(), addr.len());
        let connect = at!(self.place(index), |at| opcode::Connect::new(at, start, len).build());
        // SAFETY: scratch memory lives until everything is submitted.
        unsafe { self.push(connect, Kind::Connect, index) };
        Ok(self.slots.conn(index))
    }

    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        if !head.is_empty() || !body.is_empty() {
            self.queue(conn, head, body);
        }
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
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn listen(&mut self, listener: impl Into<Listener>) -> io::Result<()> {
        let listener = listener.into();
        socket::prepare_listener(&listener)?;
        self.listeners.push(Some(listener));
        self.push_accept(self.listeners.len() as u32 - 1);
        Ok(())
    }

    fn stop_listening(&mut self) {
        for number in 0..self.listeners.len() {
            if let Some(listener) = self.listeners[number].take() {
                self.push_cancel(Kind::Accept, number as u32);
                let fd = OwnedFd::from(listener).into_raw_fd();
                self.push_close(Place::Descriptor(fd), number as u32);
            }
        }
        self.accept_again.clear();
        self.accept_paused_until = None;
    }

    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<Instant>) -> io::Result<()> {
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
            // Queued closes are done; a ring that refuses is closed below with everything in it.
            let _ = self.ring.submit_all();
        }
        // Ends all operations, so that none keeps a socket open behind its descriptor's back.
        let _ = self
            .ring
            .ring()
            .submitter()
            .register_sync_cancel(Some(types::Timespec::new().sec(1)), types::CancelBuilder::any());
        // The sockets that only the table holds. The end of the ring would come to it later.
        let _ = self.ring.ring().submitter().unregister_files();
        self.slots.close_all();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::Event;

    struct Deaf;

    impl Handler for Deaf {
        fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, _: Event<'_>) {}
    }

    #[test]
    fn after_a_turn_that_failed_nothing_is_submitted() {
        let mut driver = UringDriver::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        driver.broken = Some(io::Error::other("made up"));
        let now = Some(Instant::now());
        assert_eq!(driver.poll(&mut Deaf, now).unwrap_err().to_string(), "made up");
        driver.connect(&listener.local_addr().unwrap().into(), None).unwrap();
        assert!(driver.poll(&mut Deaf, now).is_err());
        drop(driver);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody has come");
    }
}
