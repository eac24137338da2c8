//! The driver for kernels without a usable io_uring: edge-triggered epoll, one read buffer, one write per turn.
//!
//! It does not know what the bytes mean.

mod calls;
mod connects;
mod events;
mod sends;

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::event::epoll;

use crate::datagrams::{self, DatagramIo, Outbound};
use crate::send_queue::{NONE, SendQueuePool};
use crate::slots::{Flag, Receipt, Receipts, Slots};
use crate::socket::{self, check};
use crate::{Address, Conn, DatagramCounts, Driver, Event, Handler, Io, Listener, SocketLimits, Waker, host};

/// The most bytes that one read takes.
const READ_BUFFER: usize = 64 * 1024;

/// Reads of one connection in one turn. The rest is read in the next turn, so that every connection is served.
const READS_A_TURN: usize = 16;

/// Connections accepted from one listener in one turn.
const ACCEPTS_A_TURN: usize = 256;

/// Kernel events fetched at once.
const EVENTS: usize = 512;

/// A generation that no connection has: it marks the tokens of the waker and the listeners.
const NO_GENERATION: u32 = u32::MAX;

/// The waker's token; listeners have the numbers below it.
const WAKER: u64 = ((NO_GENERATION as u64) << 32) | u32::MAX as u64;

const WATCH: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
const WATCH_OUT: u32 = WATCH | libc::EPOLLOUT as u32;
const ENDS: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// The epoll driver. It belongs to the thread that makes it.
#[derive(Debug)]
pub struct EpollDriver {
    epoll: OwnedFd,
    waker: Waker,
    /// By number; `None`: of datagrams, which is a connection.
    listeners: Vec<Option<Listener>>,
    /// Accepting has stopped because descriptors or memory ran out; it is tried again at this time.
    accept_paused_until: Option<u64>,
    slots: Slots,
    queues: SendQueuePool,
    receipts: Receipts,
    limits: SocketLimits,
    datagrams: DatagramIo,
    /// Bound sockets of datagrams that the handler does not know of yet, with their numbers as listeners.
    bound: Vec<(Conn, usize)>,
    /// Connections that have something to send or have to be closed.
    dirty: Vec<u32>,
    /// Connections to be read again without a kernel event.
    again: Vec<Conn>,
    /// Connections whose queue ran empty and that asked for [`Event::Sent`].
    sent: Vec<Conn>,
    /// Connections that failed before the kernel could report it in an event.
    failed: Vec<Conn>,
    /// Connects to Unix sockets whose queue is full.
    waiting: Vec<connects::Waiting>,
    /// Slots to free at the end of the turn.
    dead: Vec<u32>,
    events: Vec<libc::epoll_event>,
    buffer: Vec<u8>,
    /// The kernel has `epoll_pwait2`.
    fine_waits: bool,
    /// Timer slack belongs to a thread, and so does the driver.
    thread_bound: PhantomData<*const ()>,
}

impl EpollDriver {
    /// Makes a driver for the calling thread, and sets the thread's timer slack to 1 ns.
    ///
    /// # Errors
    /// When the kernel refuses a descriptor.
    pub fn new() -> io::Result<EpollDriver> {
        host::set_timer_slack()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        let driver = EpollDriver {
            epoll,
            waker,
            listeners: Vec::new(),
            accept_paused_until: None,
            slots: Slots::default(),
            queues: SendQueuePool::default(),
            receipts: Receipts::default(),
            limits: SocketLimits::default(),
            datagrams: DatagramIo::default(),
            bound: Vec::new(),
            dirty: Vec::new(),
            again: Vec::new(),
            sent: Vec::new(),
            failed: Vec::new(),
            waiting: Vec::new(),
            dead: Vec::new(),
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; READ_BUFFER],
            fine_waits: true,
            thread_bound: PhantomData,
        };
        driver.control(libc::EPOLL_CTL_ADD, driver.waker.raw(), libc::EPOLLIN as u32, WAKER)?;
        Ok(driver)
    }

    fn control(&self, what: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: the event lives during the call.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, fd, &raw mut event) }).map(drop)
    }

    /// Adds a socket to the table, and watches it.
    fn adopt(&mut self, fd: OwnedFd, events: u32) -> io::Result<u32> {
        let raw = fd.as_raw_fd();
        let index = self.slots.take(raw);
        match self.control(libc::EPOLL_CTL_ADD, raw, events, token(self.slots.conn(index))) {
            Ok(()) => {
                // The slot owns it now.
                let _ = fd.into_raw_fd();
                Ok(index)
            }
            Err(error) => {
                self.slots.give(index);
                Err(error)
            }
        }
    }

    fn mark(&mut self, index: u32) {
        if !self.slots.get_mut(index).test_and_set(Flag::Dirty) {
            self.dirty.push(index);
        }
    }

    /// Queues bytes, unless the connection is closing or gone.
    fn queue(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        let Some(slot) = self.slots.open_mut(conn) else {
            return;
        };
        if slot.queue == NONE {
            slot.queue = self.queues.take();
        }
        // After an error, bytes are queued only to be counted.
        let (queue, waits) = (slot.queue, slot.is_any(&[Flag::Connecting, Flag::Blocked]) || slot.error != 0);
        self.queues.get_mut(queue).push_with(head, body);
        if !waits {
            self.mark(conn.slot() as u32);
        }
    }

    /// Closes the socket; the slot is freed at the end of the turn.
    fn destroy(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        if slot.is(Flag::Dead) {
            return;
        }
        slot.set(Flag::Dead);
        let (fd, queue) = (mem::replace(&mut slot.fd, -1), slot.queue);
        slot.queue = NONE;
        self.receipts.end(index);
        if queue != NONE {
            self.queues.give(queue);
        }
        // SAFETY: the slot owned the descriptor and has just given it up.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        self.dead.push(index);
    }

    /// The connection is gone: reports it, unless the handler has closed it.
    fn fail<H: Handler>(&mut self, handler: &mut H, index: u32, error: i32) {
        let slot = self.slots.get(index);
        let (open, unsent) = (slot.is_open(), self.queues.left(slot.queue));
        let conn = self.slots.conn(index);
        self.destroy(index);
        if open {
            let error = io::Error::from_raw_os_error(error);
            handler.on_event(self, conn, Event::Failed { error, unsent });
        }
    }
}

impl Io for EpollDriver {
    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        self.begin_connect(to, from)
    }

    fn connect_datagrams(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Conn> {
        let index = self.adopt(datagrams::connected_socket(to, from)?, WATCH)?;
        self.slots.get_mut(index).set(Flag::Datagrams);
        Ok(self.slots.conn(index))
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

    fn skip(&mut self, conn: Conn, bytes: u64) {
        if self.slots.open(conn).is_some() {
            self.receipts.set(conn.slot() as u32, Receipt::Skip(bytes));
        }
    }

    fn receive_at_most(&mut self, conn: Conn, bytes: u64) {
        let Some(slot) = self.slots.open(conn) else { return };
        // Bytes that came meanwhile cause no kernel event.
        if bytes > 0 && !slot.is(Flag::Connecting) {
            self.again.push(conn);
        }
        self.receipts.limit(conn.slot() as u32, bytes);
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
        if slot.queue == NONE {
            slot.clear(Flag::Connecting);
            slot.clear(Flag::Blocked);
        }
        if !slot.is_any(&[Flag::Connecting, Flag::Blocked]) {
            self.mark(conn.slot() as u32);
        }
    }

    fn abort(&mut self, conn: Conn) {
        if let Some(slot) = self.slots.living(conn) {
            socket::linger_zero(slot.fd);
            self.destroy(conn.slot() as u32);
        }
    }

    fn unsent(&self, conn: Conn) -> usize {
        self.slots.open(conn).map_or(0, |slot| self.queues.left(slot.queue))
    }
}

impl Driver for EpollDriver {
    type Listener = Listener;
    type Waker = Waker;

    fn name(&self) -> &'static str {
        "epoll"
    }

    fn listen(&mut self, listener: impl Into<Listener>) -> io::Result<()> {
        let listener = listener.into();
        socket::prepare_listener(&listener)?;
        if let Listener::Udp(socket) = listener {
            let index = self.adopt(socket.into(), WATCH)?;
            self.slots.get_mut(index).set(Flag::Datagrams);
            self.bound.push((self.slots.conn(index), self.listeners.len()));
            self.listeners.push(None);
            return Ok(());
        }
        self.listeners.push(Some(listener));
        if self.accept_paused_until.is_some() {
            return Ok(());
        }
        self.watch_listener(self.listeners.len() - 1).inspect_err(|_| drop(self.listeners.pop()))
    }

    fn stop_listening(&mut self) {
        // Closing a listener also removes it from epoll.
        self.listeners.clear();
        self.accept_paused_until = None;
    }

    fn refuse(&mut self, listener: usize, refuse: bool) -> io::Result<()> {
        let Some(Some(socket)) = self.listeners.get(listener) else { return Ok(()) };
        if refuse {
            let _ = self.control(libc::EPOLL_CTL_DEL, socket.as_raw_fd(), 0, 0);
            socket::refuse(socket, true)
        } else {
            socket::refuse(socket, false)?;
            self.watch_listener(listener)
        }
    }

    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<u64>) -> io::Result<()> {
        self.flush_all();
        if !self.waiting.is_empty() {
            self.connect_again();
        }
        let dispatched = self.dispatch_pending(handler);
        if self.accept_paused_until.is_some_and(|end| end <= host::monotonic_ns()) {
            self.resume_accepting();
        }
        let again = mem::take(&mut self.again);
        let soon = dispatched || !again.is_empty() || self.has_no_sockets();
        self.wait(until, soon)?;
        for number in 0..self.events.len() {
            let event = self.events[number];
            self.dispatch(handler, event.u64, event.events);
        }
        for conn in again {
            if !self.stale(conn) {
                // Whether the end was there is not remembered. Reading up to it is always right.
                self.read(handler, conn, true);
            }
        }
        for index in self.dead.drain(..) {
            self.slots.give(index);
        }
        Ok(())
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn open(&self) -> usize {
        self.slots.used()
    }
}

impl Drop for EpollDriver {
    fn drop(&mut self) {
        self.slots.close_all();
    }
}

fn token(conn: Conn) -> u64 {
    (u64::from(conn.generation()) << 32) | conn.slot() as u64
}
