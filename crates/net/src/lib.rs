//! The I/O driver: one thread, one ring, many sockets.
//!
//! A driver owns the sockets of one thread and turns what the kernel says into [`Event`]s for a [`Handler`].
//! There are two behind one interface: [`UringDriver`] (multishot receive into a ring of provided buffers, sends
//! batched into one submit) and [`EpollDriver`] for kernels that lack it. The same tests run on both.
//!
//! This crate does not know what the bytes mean, what a request is, or how many threads there are.

mod address;
mod capacity;
mod epoll;
mod host;
mod probe;
mod send_queue;
mod slots;
mod socket;
mod unix;
mod uring;
mod waker;

use std::io;
use std::net::IpAddr;
use std::time::Instant;

pub use address::{Address, Listener};
pub use capacity::{Capacity, DescriptorKind, SocketPlan, capacity};
pub use epoll::EpollDriver;
pub use host::{pin_to_cpu, raise_descriptor_limit};
pub use probe::{DriverKind, DriverPreference, ProbeError, probe};
pub use socket::listen_socket;
pub use unix::{UnixError, UnixSocket, listen_unix};
pub use uring::{BufferFill, UringDriver};

/// A connection of one driver: a slot, and which of the slot's lives it is. Slots are small dense numbers and
/// are used again, so handlers keep their state in a `Vec` indexed by [`Conn::slot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conn {
    slot: u32,
    generation: u32,
}

impl Conn {
    /// A connection's name from its parts. Drivers make these; tests may.
    pub fn new(slot: u32, generation: u32) -> Conn {
        Conn { slot, generation }
    }

    /// Dense index, used again after the connection is gone.
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
    /// A listener accepted it.
    Accepted,
    /// A [`Io::connect`] succeeded.
    Connected,
    /// Bytes came. Valid only during the call.
    Data(&'a [u8]),
    /// Everything queued with [`Io::send`] has been handed to the kernel. Comes at most once after each time
    /// that the queue ran empty; only connections that asked with [`Io::want_sent`] get it, once for asking.
    Sent,
    /// The peer will send no more. The connection can still send until the handler closes it. A reset after this
    /// is told at once by epoll, by io_uring when something is sent.
    Eof,
    /// The connection failed or could not be made, and is gone; do not close it.
    Failed {
        /// What the kernel said.
        error: io::Error,
        /// Bytes given to [`Io::send`] that were not handed to the kernel, or not known to be.
        unsent: usize,
    },
}

/// What a handler may do, from inside an event or between turns.
///
/// Operations on a connection that is gone are ignored: a handler need not track what the kernel knows better.
pub trait Io {
    /// Begins a connection; what follows is [`Event::Connected`] or [`Event::Failed`]. `from` binds the source
    /// address (for spreading over 127.0.0.0/8 when ports run short); a Unix socket has none, and ignores it.
    ///
    /// # Errors
    /// When no socket can be made (descriptors, memory), with what the kernel said, and when `to` is a path too
    /// long for a Unix socket.
    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn>;

    /// Queues bytes, copied. They leave when the next turn begins, with those of all other connections; while
    /// the connection is being made, when it is made.
    fn send(&mut self, conn: Conn, bytes: &[u8]) {
        self.send_with(conn, bytes, &[]);
    }

    /// Queues `head` (copied) and then `body` (not copied).
    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]);

    /// Asks for [`Event::Sent`] the next time that the queue runs empty.
    fn want_sent(&mut self, conn: Conn);

    /// Closes: what is queued is sent first, then FIN. No event follows.
    fn close(&mut self, conn: Conn);

    /// Closes at once with RST (which Unix sockets do not have), dropping what is queued. No event follows. Also ends a connection that was closed
    /// and cannot send what is queued because its peer does not read.
    fn abort(&mut self, conn: Conn);

    /// Bytes queued and not yet handed to the kernel.
    fn unsent(&self, conn: Conn) -> usize;
}

/// What a program does with events.
pub trait Handler {
    /// Called for every event, in the order the kernel told them.
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>);
}

/// A driver: [`Io`], and the turn that waits for the kernel.
pub trait Driver: Io {
    /// `io_uring` or `epoll`.
    fn name(&self) -> &'static str;

    /// Accepts connections on a bound, listening socket; new TCP connections have `TCP_NODELAY`.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn listen(&mut self, listener: impl Into<Listener>) -> io::Result<()>
    where
        Self: Sized;

    /// Stops accepting and closes the listeners.
    fn stop_listening(&mut self);

    /// Sends what is queued, then waits until something happens or `until` passes (`None`: waits for as long as
    /// it takes), and hands every event to the handler. Returns after one batch. A wake-up by [`Driver::waker`]
    /// or a signal also returns.
    ///
    /// # Errors
    /// When the kernel refuses the wait itself; errors of single connections are events. The driver is of no use then:
    /// drop it.
    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<Instant>) -> io::Result<()>;

    /// Wakes a waiting turn from another thread.
    fn waker(&self) -> Waker;

    /// Connections open, being made or being closed. Those closed or failed are counted to the end of a turn
    /// after the kernel has let go of them, so a program that turns until this is zero has sent all.
    fn open(&self) -> usize;
}

/// Wakes a driver's turn from another thread.
#[derive(Debug, Clone)]
pub struct Waker {
    /// An eventfd.
    pub(crate) fd: std::sync::Arc<std::os::fd::OwnedFd>,
}
