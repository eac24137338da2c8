//! The I/O drivers: one thread, one ring, many sockets. The client (`weir-load`) and the origin are built on them.
//!
//! A driver owns the sockets of one thread, and turns what the kernel reports into [`Event`]s for a [`Handler`]. Two
//! drivers have the same interface: [`UringDriver`] (multishot receive into a ring of provided buffers, sends batched
//! into one submit), and [`EpollDriver`] for kernels that cannot run it. The same tests run on both.
//!
//! This crate does not know what the bytes mean, what a request is, or how many threads there are.

mod address;
mod capacity;
mod datagrams;
mod epoll;
mod host;
mod probe;
mod send_queue;
#[cfg(feature = "sim")]
pub mod sim;
mod slots;
mod socket;
mod timer_queue;
mod unix;
mod uring;
mod waker;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use address::{Address, Listener};
pub use capacity::{Capacity, DescriptorKind, SocketPlan, capacity};
pub use datagrams::{DatagramCounts, Datagrams, PathCounts, datagram_socket};
pub use epoll::EpollDriver;
pub use host::{
    Clock, CpuTime, SchedulingClass, monotonic_ns, pin_to_cpu, raise_descriptor_limit, set_scheduling_class, unix_ns,
};
pub use probe::{DriverKind, ProbeError, probe};
pub use socket::{SocketLimits, interface_index, listen_socket};
pub use timer_queue::TimerQueue;
pub use unix::{UnixError, UnixSocket, listen_unix};
pub use uring::{BufferFill, UringDriver};

/// A connection of one driver: a slot and its generation. Slots are small dense numbers and are reused, so handlers
/// keep their state in a `Vec` indexed by [`Conn::slot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn {
    slot: u32,
    generation: u32,
}

impl Conn {
    /// Makes the identifier from its parts. Drivers call it; tests may.
    pub fn new(slot: u32, generation: u32) -> Conn {
        Conn { slot, generation }
    }

    /// The dense index. It is reused after the connection is gone.
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// Distinguishes the connections that have had this slot.
    pub fn generation(self) -> u32 {
        self.generation
    }
}

/// What happened to a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// A listener accepted the connection: the first, the second (0, 1, ...) that [`Driver::listen`] was called with. One of datagrams
    /// "accepts" itself, once: all that comes to it and goes from it has this [`Conn`].
    Accepted(usize),
    /// An [`Io::connect`] succeeded.
    Connected,
    /// Bytes arrived. The slice is valid only during the call.
    Data(&'a [u8]),
    /// So many bytes arrived and were dropped, as [`Io::skip`] allows. They stand between the bytes of the [`Event::Data`] before and after.
    Skipped(usize),
    /// Datagrams arrived at a socket of datagrams, one behind the other from one peer.
    Datagrams(Datagrams<'a>),
    /// The kernel has taken everything queued with [`Io::send`]. It is reported at most once each time that the queue
    /// runs empty, and only after [`Io::want_sent`], once per call.
    Sent,
    /// The peer has finished sending. The connection can still send until the handler closes it. A reset after this is
    /// reported at once by epoll, and by io_uring when something is sent.
    Eof,
    /// The connection failed or could not be made, and is gone; do not close it.
    Failed {
        /// The kernel's error.
        error: io::Error,
        /// Bytes given to [`Io::send`] that the kernel has not taken, or may not have taken.
        unsent: usize,
    },
}

/// The operations of a handler, from inside an event or between turns.
///
/// Operations on a connection that is gone are ignored, so a handler need not track what the kernel knows better. The clocks are
/// the kernel's unless a driver has others.
pub trait Io {
    /// The time of the monotonic clock, nanoseconds: `CLOCK_MONOTONIC` (see [`monotonic_ns`]), or the virtual time of a simulated
    /// world. Every call reads the clock.
    #[inline]
    fn now(&self) -> u64 {
        Clock::Kernel.now()
    }

    /// The time of the wall clock, nanoseconds since the epoch of Unix.
    fn unix_now(&self) -> u64 {
        Clock::Kernel.unix_now()
    }

    /// CPU time of the driver's thread so far, nanoseconds, exact.
    fn cpu_ns(&self) -> u64 {
        host::thread_cpu_ns()
    }

    /// The same in two parts: see [`CpuTime`].
    fn cpu_time(&self) -> CpuTime {
        CpuTime::read()
    }

    /// Begins a connection. [`Event::Connected`] or [`Event::Failed`] follows. `from` binds the source address (for
    /// spreading over 127.0.0.0/8 when ports run short); the unspecified address leaves it to the kernel, which then tries
    /// all ports alike, for when most are taken. A Unix socket ignores it.
    ///
    /// # Errors
    /// When no socket can be made (descriptors, memory), with the kernel's error, and when `to` is a path too long
    /// for a Unix socket.
    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn>;

    /// Makes a socket of datagrams that exchanges them with one peer; there is no handshake and no [`Event::Connected`]. `from` binds
    /// the source address. [`Event::Failed`] says that nothing listens there.
    ///
    /// # Errors
    /// When no socket can be made, and where the driver has none of this kind.
    fn connect_datagrams(&mut self, _to: SocketAddr, _from: Option<IpAddr>) -> io::Result<Conn> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends `bytes` at once as datagrams of `segment` bytes, of which the last may be shorter: at most [`Datagrams::MOST`] of them and
    /// [`Datagrams::MOST_BYTES`] in all. `to` is the peer; `None`: the one that the socket is connected to. What the kernel has no room
    /// for is lost, as on the way, and counted.
    fn send_datagrams(&mut self, _conn: Conn, _to: Option<SocketAddr>, _bytes: &[u8], _segment: usize) {}

    /// What the driver's sockets of datagrams have done so far.
    fn datagram_counts(&self) -> DatagramCounts {
        DatagramCounts::default()
    }

    /// What the driver's connections have counted of their paths so far, where it makes them of datagrams.
    fn path_counts(&self) -> PathCounts {
        PathCounts::default()
    }

    /// Queues a copy of `bytes`. They are sent when the next turn begins, together with those of all other
    /// connections. If the connection is not established yet, they are sent once it is.
    fn send(&mut self, conn: Conn, bytes: &[u8]) {
        self.send_with(conn, bytes, &[]);
    }

    /// Queues `head` (copied) and then `body` (not copied).
    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]);

    /// The next `bytes` that arrive need not be looked at: the kernel may drop them, which saves copying them. They then come as
    /// [`Event::Skipped`]; those that were on their way to the program come as [`Event::Data`]. A later call replaces an earlier one.
    /// Only for TCP: other sockets need a buffer. A driver may ignore it.
    fn skip(&mut self, _conn: Conn, _bytes: u64) {}

    /// At most so many bytes are received from now on, and none after them until the next call; [`u64::MAX`]: as many as come, as before
    /// any call. Bytes that the program does not receive fill the kernel's buffers, and then the peer can send no more. The end of the
    /// stream and a reset are reported once there is something to receive for again, or when sending fails. Called in the event in
    /// which a connection is accepted or made, or before, it holds for all bytes. After that, bytes that are on their way to the program come
    /// all the same. It ends what [`Io::skip`] has allowed, as that ends this. Only for TCP and Unix sockets.
    fn receive_at_most(&mut self, _conn: Conn, _bytes: u64) {}

    /// TCP sockets that [`Io::connect`] makes from now on have these limits.
    fn limit_sockets(&mut self, _limits: SocketLimits) {}

    /// From now on a wait that would end with the first event goes on until there are about so many `events`, for `within` at most, so
    /// that what comes in short succession is handled together. Zero: it ends with the first, as it does before any call. Only
    /// io_uring on Linux 6.12 or newer can; elsewhere nothing changes. Whether this driver can.
    fn batch_completions(&mut self, _within: Duration, _events: u32) -> bool {
        false
    }

    /// Asks for [`Event::Sent`] the next time that the queue runs empty.
    fn want_sent(&mut self, conn: Conn);

    /// Closes the connection: queued bytes are sent first, then FIN. No event follows.
    fn close(&mut self, conn: Conn);

    /// Closes the connection at once with RST (which Unix sockets do not have), and drops what is queued. No event
    /// follows. This also ends a closed connection whose queue cannot be sent because its peer does not read.
    fn abort(&mut self, conn: Conn);

    /// Bytes queued that the kernel has not taken yet.
    fn unsent(&self, conn: Conn) -> usize;
}

/// The program's side: it handles events.
pub trait Handler {
    /// Called for every event, in the order in which the kernel reported them.
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>);
}

/// A driver: [`Io`], and the turn that waits for events.
pub trait Driver: Io {
    /// A bound, listening socket.
    type Listener;

    /// See [`Driver::waker`].
    type Waker: Wake;

    /// `io_uring`, `epoll` or `simulated`.
    fn name(&self) -> &'static str;

    /// Accepts connections on a bound, listening socket; new TCP connections have `TCP_NODELAY`. Or exchanges datagrams on a bound one.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn listen(&mut self, listener: impl Into<Self::Listener>) -> io::Result<()>
    where
        Self: Sized;

    /// Stops accepting and closes the listeners, without those of datagrams, which are connections.
    fn stop_listening(&mut self);

    /// Refuses new connections at a listener, by its number in the order of [`Driver::listen`], or accepts them again. Connections that
    /// wait to be accepted are reset. The listener must have been bound to a port by number: the kernel takes one that it chose.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn refuse(&mut self, listener: usize, refuse: bool) -> io::Result<()>;

    /// Sends what is queued, then waits until something happens or [`Io::now`] reaches `until` (`None`: no time limit), and
    /// passes every event to the handler. Returns after one batch. A wake-up by [`Driver::waker`] or a signal also ends the
    /// wait.
    ///
    /// # Errors
    /// When the wait itself fails; errors of single connections are events. The driver is then unusable: drop it.
    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<u64>) -> io::Result<()>;

    /// Returns a waker, which ends a wait from another thread.
    fn waker(&self) -> Self::Waker;

    /// The clock that [`Io::now`] and [`Io::unix_now`] read.
    fn clock(&self) -> Clock {
        Clock::Kernel
    }

    /// How late a wait may end, nanoseconds. Who has to act on time waits that much less, and polls for the rest.
    fn wake_latency(&self) -> u64 {
        host::WAKE_LATENCY
    }

    /// Leaves the CPU to other threads that want it.
    fn yield_now(&mut self) {
        std::thread::yield_now();
    }

    /// Puts the thread that turns the driver into a class.
    ///
    /// # Errors
    /// Those of [`set_scheduling_class`].
    fn set_scheduling_class(&mut self, class: SchedulingClass) -> io::Result<()> {
        set_scheduling_class(class)
    }

    /// Connections that are open, being established or being closed. Closed and failed ones count until the end of
    /// the turn after the kernel has released them, so a program that polls until this is zero has sent everything.
    fn open(&self) -> usize;
}

/// What one thread does on a driver, as turns. The kernel's drivers run it with [`run`]; a simulated world runs many on one thread.
pub trait Task<D: Driver> {
    /// Does everything that is due, and returns what comes next.
    ///
    /// # Errors
    /// When the task cannot go on.
    fn turn(&mut self, driver: &mut D) -> io::Result<Next>;

    /// [`Driver::poll`] with the task as the handler.
    ///
    /// # Errors
    /// Those of the driver.
    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()>;
}

/// Makes a task for a driver, on which it is to run.
pub type MakeTask<D> = Box<dyn FnOnce(&D) -> Box<dyn Task<D>> + Send>;

/// What comes after a turn of a [`Task`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another turn: when something happens, or at this time ([`Io::now`]) if nothing does; `None`: no time limit.
    Poll(Option<u64>),
    /// Nothing. The task is over.
    Over,
}

/// Runs a task to its end on the calling thread.
///
/// # Errors
/// Those of the task and of its driver.
pub fn run<D: Driver>(task: &mut (impl Task<D> + ?Sized), driver: &mut D) -> io::Result<()> {
    while let Next::Poll(until) = task.turn(driver)? {
        task.poll(driver, until)?;
    }
    Ok(())
}

/// Wakes a driver's turn from outside of its thread.
pub trait Wake: Clone + Send + Sync + 'static {
    /// Ends the wait of the driver's current turn, or of the next one if none is waiting. Several calls before that
    /// turn count as one.
    fn wake(&self);
}

/// The [`Wake`] of the kernel's drivers.
#[derive(Debug, Clone)]
pub struct Waker {
    /// An eventfd.
    pub(crate) fd: std::sync::Arc<std::os::fd::OwnedFd>,
}
