//! The driver for kernels without a usable io_uring: edge-triggered epoll, one read buffer, one write a turn.
//!
//! It does not know what the bytes mean.

use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::mem;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use crate::out::{MAX_SLICES, NONE, OutPool};
use crate::slots::{Is, Slots};
use crate::socket::{self, RawAddr, check, errno};
use crate::{Conn, Driver, Event, Handler, Io, Waker, host};

/// Bytes read at once.
const READ_BUFFER: usize = 64 * 1024;

/// Reads of one connection in one turn; what is left is read in the next, so that others get theirs.
const READS_A_TURN: usize = 16;

/// Connections accepted from one listener in one turn.
const ACCEPTS_A_TURN: usize = 256;

/// Kernel events taken at once.
const EVENTS: usize = 512;

/// How long to wait before accepting is tried again after descriptors or memory ran out.
const STARVED_FOR: Duration = Duration::from_millis(10);

/// Lives of this number are no connection's: the waker and the listeners.
const NO_LIFE: u32 = u32::MAX;

/// The waker's token; listeners have the numbers below it.
const WAKER: u64 = ((NO_LIFE as u64) << 32) | u32::MAX as u64;

const WATCH: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
const WATCH_OUT: u32 = WATCH | libc::EPOLLOUT as u32;
const ENDS: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// The epoll driver. It belongs to the thread that makes it.
#[derive(Debug)]
pub struct EpollDriver {
    epoll: OwnedFd,
    waker: Waker,
    listeners: Vec<TcpListener>,
    /// Accepting stopped for want of descriptors or memory.
    starved: bool,
    slots: Slots,
    outs: OutPool,
    /// Connections with something to send or to be closed.
    dirty: Vec<u32>,
    /// Connections to be read again though the kernel will not say so.
    again: Vec<Conn>,
    /// Connections whose queue ran empty and that asked to know.
    sent: Vec<Conn>,
    /// Connections that failed before the kernel could say so in an event.
    failed: Vec<Conn>,
    /// Slots to be freed at the end of the turn.
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
        host::sharpen_timers()?;
        // SAFETY: no pointers are passed.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else's.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let waker = Waker::new()?;
        let driver = EpollDriver {
            epoll,
            waker,
            listeners: Vec::new(),
            starved: false,
            slots: Slots::default(),
            outs: OutPool::default(),
            dirty: Vec::new(),
            again: Vec::new(),
            sent: Vec::new(),
            failed: Vec::new(),
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

    /// Puts a socket into the table and under watch.
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
        if !self.slots.get_mut(index).test_and_set(Is::Dirty) {
            self.dirty.push(index);
        }
    }

    /// Queues through `fill`; `None` when the connection takes no more.
    fn queue(&mut self, conn: Conn, fill: impl FnOnce(&mut crate::out::Out)) {
        let Some(slot) = self.slots.open_mut(conn) else {
            return;
        };
        if slot.error != 0 {
            return;
        }
        if slot.out == NONE {
            slot.out = self.outs.take();
        }
        let (out, waits) = (slot.out, slot.is_any(&[Is::Connecting, Is::Blocked]));
        fill(self.outs.get_mut(out));
        if !waits {
            self.mark(conn.slot() as u32);
        }
    }

    /// Closes the socket; the slot is freed at the end of the turn.
    fn destroy(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        if slot.is(Is::Dead) {
            return;
        }
        slot.set(Is::Dead);
        let (fd, out) = (mem::replace(&mut slot.fd, -1), slot.out);
        slot.out = NONE;
        if out != NONE {
            self.outs.give(out);
        }
        // SAFETY: the slot owned the descriptor and forgot it just now.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        self.dead.push(index);
    }

    /// The connection is gone: tells so, unless the handler has closed it.
    fn fail<H: Handler>(&mut self, handler: &mut H, index: u32, error: i32) {
        let told = self.slots.get(index).is_open();
        let conn = self.slots.conn(index);
        self.destroy(index);
        if told {
            handler.on_event(self, conn, Event::Failed(io::Error::from_raw_os_error(error)));
        }
    }

    /// Sends what the queues hold, as far as the kernel takes it.
    fn flush_all(&mut self) {
        let mut dirty = mem::take(&mut self.dirty);
        for &index in &dirty {
            let slot = self.slots.get_mut(index);
            slot.clear(Is::Dirty);
            if !slot.is_any(&[Is::Dead, Is::Connecting, Is::Blocked]) {
                self.flush(index);
            }
        }
        dirty.clear();
        // Flushing marks nobody, so the list taken is the only one.
        self.dirty = dirty;
    }

    fn flush(&mut self, index: u32) {
        if self.slots.get(index).out != NONE && !self.hand_over(index) {
            return;
        }
        let slot = self.slots.get_mut(index);
        if slot.is(Is::Closing) {
            self.destroy(index);
        } else if slot.is(Is::WantSent) {
            slot.clear(Is::WantSent);
            let conn = self.slots.conn(index);
            self.sent.push(conn);
        }
    }

    /// Gives the queue to the kernel; true when all of it went.
    fn hand_over(&mut self, index: u32) -> bool {
        let slot = self.slots.get(index);
        let (fd, out) = (slot.fd, slot.out);
        let queue = self.outs.get_mut(out);
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
        self.slots.get_mut(index).out = NONE;
        self.outs.give(out);
        true
    }

    /// Waits for room in the socket.
    fn block(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        slot.set(Is::Blocked);
        if slot.test_and_set(Is::WatchOut) {
            return;
        }
        let fd = slot.fd;
        let token = token(self.slots.conn(index));
        if let Err(error) = self.control(libc::EPOLL_CTL_MOD, fd, WATCH_OUT, token) {
            self.send_failed(index, error.raw_os_error().unwrap_or(libc::EIO));
        }
    }

    /// Nothing more can be sent. What the peer sent before is still to be read and told.
    fn send_failed(&mut self, index: u32, error: i32) {
        let slot = self.slots.get_mut(index);
        if slot.is(Is::Closing) {
            return self.destroy(index);
        }
        slot.error = error as u16;
        let out = mem::replace(&mut slot.out, NONE);
        if out != NONE {
            self.outs.give(out);
        }
        let conn = self.slots.conn(index);
        self.again.push(conn);
    }

    fn dispatch<H: Handler>(&mut self, handler: &mut H, token: u64, flags: u32) {
        let conn = Conn::new(token as u32, (token >> 32) as u32);
        if conn.life() == NO_LIFE {
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
        if self.slots.get(index).is(Is::Connecting) {
            let done = flags & (libc::EPOLLOUT as u32 | ENDS) != 0;
            if !done || !self.connected(handler, index) {
                return;
            }
        }
        if flags & libc::EPOLLOUT as u32 != 0 && self.slots.get(index).is(Is::Blocked) {
            self.slots.get_mut(index).clear(Is::Blocked);
            self.mark(index);
        }
        if flags & (libc::EPOLLIN as u32 | ENDS) != 0 {
            self.read(handler, conn, flags & ENDS != 0);
        }
    }

    /// Whether the connection has gone since the kernel or a list named it.
    fn stale(&self, conn: Conn) -> bool {
        let slot = self.slots.get(conn.slot() as u32);
        slot.life != conn.life() || slot.is(Is::Dead) || !slot.is(Is::Used)
    }

    /// Finishes a connect; false when there is nothing to read from it.
    fn connected<H: Handler>(&mut self, handler: &mut H, index: u32) -> bool {
        let error = socket::take_error(self.slots.get(index).fd);
        if error != 0 {
            self.fail(handler, index, error);
            return false;
        }
        let slot = self.slots.get_mut(index);
        slot.clear(Is::Connecting);
        if slot.out != NONE || slot.is(Is::Closing) {
            self.mark(index);
        }
        let conn = self.slots.conn(index);
        if self.slots.get(index).is_open() {
            handler.on_event(self, conn, Event::Connected);
        }
        !self.stale(conn)
    }

    fn accept<H: Handler>(&mut self, handler: &mut H, listener: usize) {
        for _ in 0..ACCEPTS_A_TURN {
            // A handler may have stopped listening.
            let Some(socket) = self.listeners.get(listener) else {
                return;
            };
            match accept(socket.as_raw_fd())
                .and_then(|fd| self.adopt(fd, WATCH).map_err(|e| e.raw_os_error().unwrap_or(libc::EIO)))
            {
                Ok(index) => {
                    let conn = self.slots.conn(index);
                    handler.on_event(self, conn, Event::Accepted);
                }
                Err(libc::EAGAIN) => return,
                // Out of descriptors or memory: the kernel would report the waiting connection for ever.
                Err(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC) => {
                    return self.starve();
                }
                // The connection died in the queue; there may be more.
                Err(_) => {}
            }
        }
    }

    fn starve(&mut self) {
        self.starved = true;
        for listener in &self.listeners {
            // Refused: the wait stays busy, which is worse for the CPU only.
            let _ = self.control(libc::EPOLL_CTL_DEL, listener.as_raw_fd(), 0, 0);
        }
    }

    fn unstarve(&mut self) {
        self.starved = false;
        for number in 0..self.listeners.len() {
            if self.watch_listener(number).is_err() {
                return self.starve();
            }
        }
    }

    fn watch_listener(&self, number: usize) -> io::Result<()> {
        let token = token(Conn::new(number as u32, NO_LIFE));
        let fd = self.listeners[number].as_raw_fd();
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, token)
    }

    /// Reads what there is. With `to_end` the kernel has said that the end is there too, and will not say so
    /// again.
    fn read<H: Handler>(&mut self, handler: &mut H, conn: Conn, to_end: bool) {
        let index = conn.slot() as u32;
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

    /// One read and what follows from it; true when there may be more to read.
    fn read_once<H: Handler>(&mut self, handler: &mut H, conn: Conn, buffer: &mut [u8], to_end: bool) -> bool {
        let index = conn.slot() as u32;
        let slot = self.slots.get(index);
        let (fd, known) = (slot.fd, i32::from(slot.error));
        if slot.is(Is::Eof) {
            self.look_for_reset(handler, index);
            return false;
        }
        match receive(fd, buffer) {
            Ok(0) => self.ended(handler, index),
            Ok(count) => {
                if self.slots.get(index).is_open() {
                    handler.on_event(self, conn, Event::Data(&buffer[..count]));
                }
                // A short read has emptied the socket; the next bytes make a new kernel event.
                let more = count == buffer.len() || to_end || known != 0;
                return more && !self.stale(conn);
            }
            Err(libc::EINTR) => return true,
            Err(libc::EAGAIN) if known == 0 => {}
            Err(libc::EAGAIN) => self.fail(handler, index, known),
            Err(error) => self.fail(handler, index, error),
        }
        false
    }

    /// The peer has sent its last.
    fn ended<H: Handler>(&mut self, handler: &mut H, index: u32) {
        let slot = self.slots.get_mut(index);
        slot.set(Is::Eof);
        if slot.error != 0 {
            let error = i32::from(slot.error);
            return self.fail(handler, index, error);
        }
        if slot.is_open() {
            let conn = self.slots.conn(index);
            handler.on_event(self, conn, Event::Eof);
        }
    }

    /// After the end there is nothing to read; a reset shows in the socket's error.
    fn look_for_reset<H: Handler>(&mut self, handler: &mut H, index: u32) {
        let slot = self.slots.get(index);
        let error = match i32::from(slot.error) {
            0 => socket::take_error(slot.fd),
            known => known,
        };
        if error != 0 {
            self.fail(handler, index, error);
        }
    }

    /// The last connection has just gone and there is no listener: a wait could be for ever.
    fn nothing_can_come(&self) -> bool {
        let none_left = self.slots.used() == self.dead.len();
        none_left && !self.dead.is_empty() && self.listeners.is_empty()
    }

    fn wait(&mut self, until: Option<Instant>, poll: bool) -> io::Result<()> {
        let timeout = if poll {
            Some(Duration::ZERO)
        } else {
            until.map(|until| until.saturating_duration_since(Instant::now()))
        };
        let timeout = if self.starved { Some(timeout.map_or(STARVED_FOR, |t| t.min(STARVED_FOR))) } else { timeout };
        self.events.clear();
        let got = if self.fine_waits {
            match self.wait_fine(timeout) {
                Err(libc::ENOSYS) => {
                    self.fine_waits = false;
                    self.wait_coarse(timeout)
                }
                got => got,
            }
        } else {
            self.wait_coarse(timeout)
        };
        match got {
            Ok(count) => {
                // SAFETY: the kernel has filled that many, which is at most the capacity.
                unsafe { self.events.set_len(count) };
                Ok(())
            }
            Err(libc::EINTR) => Ok(()),
            Err(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// `epoll_pwait2`: nanoseconds.
    fn wait_fine(&mut self, timeout: Option<Duration>) -> Result<usize, i32> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the events have room for as many as is said, the timeout lives during the call, and there is
        // no signal mask.
        let got = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(got).map_err(|_| errno())
    }

    /// `epoll_wait`: milliseconds, rounded up, since a wait must not end early.
    fn wait_coarse(&mut self, timeout: Option<Duration>) -> Result<usize, i32> {
        let timeout =
            timeout.map_or(-1, |timeout| i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX));
        // SAFETY: the events have room for as many as is said.
        let got = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), EVENTS as libc::c_int, timeout)
        };
        usize::try_from(got).map_err(|_| errno())
    }

    /// Tells what happened outside the kernel's events; true if there was any.
    fn tell_pending<H: Handler>(&mut self, handler: &mut H) -> bool {
        let any = !self.sent.is_empty() || !self.failed.is_empty();
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

impl Io for EpollDriver {
    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Conn> {
        let fd = socket::client_socket(&to, from, true)?;
        let addr = RawAddr::new(&to);
        // SAFETY: the address lives during the call and its length is its own.
        let error = match unsafe { libc::connect(fd.as_raw_fd(), addr.as_ptr(), addr.len()) } {
            0 => 0,
            _ => match errno() {
                libc::EINPROGRESS | libc::EINTR => 0,
                error => error,
            },
        };
        let index = self.adopt(fd, WATCH_OUT)?;
        let slot = self.slots.get_mut(index);
        slot.set(Is::Connecting);
        slot.set(Is::WatchOut);
        let conn = self.slots.conn(index);
        if error != 0 {
            self.slots.get_mut(index).error = error as u16;
            self.failed.push(conn);
        }
        Ok(conn)
    }

    fn send(&mut self, conn: Conn, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.queue(conn, |out| out.push(bytes));
        }
    }

    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        if !head.is_empty() || !body.is_empty() {
            self.queue(conn, |out| {
                out.push(head);
                out.push_body(body);
            });
        }
    }

    fn want_sent(&mut self, conn: Conn) {
        if let Some(slot) = self.slots.open_mut(conn) {
            slot.set(Is::WantSent);
        }
    }

    fn close(&mut self, conn: Conn) {
        let Some(slot) = self.slots.open_mut(conn) else {
            return;
        };
        slot.set(Is::Closing);
        if slot.out == NONE {
            slot.clear(Is::Connecting);
            slot.clear(Is::Blocked);
        }
        if !slot.is_any(&[Is::Connecting, Is::Blocked]) {
            self.mark(conn.slot() as u32);
        }
    }

    fn abort(&mut self, conn: Conn) {
        if let Some(slot) = self.slots.open_mut(conn) {
            socket::linger_zero(slot.fd);
            self.destroy(conn.slot() as u32);
        }
    }

    fn unsent(&self, conn: Conn) -> usize {
        match self.slots.open(conn) {
            Some(slot) if slot.out != NONE => self.outs.get(slot.out).left(),
            _ => 0,
        }
    }
}

impl Driver for EpollDriver {
    fn name(&self) -> &'static str {
        "epoll"
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        socket::no_delay(listener.as_raw_fd())?;
        self.listeners.push(listener);
        if self.starved {
            return Ok(());
        }
        self.watch_listener(self.listeners.len() - 1).inspect_err(|_| drop(self.listeners.pop()))
    }

    fn stop_listening(&mut self) {
        // Closing takes them off the watch.
        self.listeners.clear();
        self.starved = false;
    }

    fn turn<H: Handler>(&mut self, handler: &mut H, until: Option<Instant>) -> io::Result<()> {
        self.flush_all();
        let told = self.tell_pending(handler);
        if self.starved {
            self.unstarve();
        }
        let again = mem::take(&mut self.again);
        let soon = told || !again.is_empty() || self.nothing_can_come();
        self.wait(until, soon)?;
        for number in 0..self.events.len() {
            let event = self.events[number];
            self.dispatch(handler, event.u64, event.events);
        }
        for conn in again {
            if !self.stale(conn) {
                // Whether the end was there is forgotten; reading to it is right anyway.
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
        for slot in self.slots.iter_used() {
            if slot.fd >= 0 {
                // SAFETY: the slot owned the descriptor, and the table goes with the driver.
                drop(unsafe { OwnedFd::from_raw_fd(slot.fd) });
            }
        }
    }
}

fn token(conn: Conn) -> u64 {
    (u64::from(conn.life()) << 32) | conn.slot() as u64
}

fn accept(listener: RawFd) -> Result<OwnedFd, i32> {
    // SAFETY: the peer's address is not asked for, so both pointers may be null.
    let fd = unsafe {
        libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
    };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn receive(fd: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: the buffer is writable for the length given.
    let got = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(got).map_err(|_| errno())
}

fn send(fd: RawFd, out: &crate::out::Out) -> Result<usize, i32> {
    let sent = if let Some(bytes) = out.as_one() {
        // SAFETY: the bytes live during the call.
        unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) }
    } else {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let filled = out.slices(&mut slices);
        // SAFETY: all-zero is a valid msghdr: no name, no control data.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = slices.as_mut_ptr().cast();
        message.msg_iovlen = filled as _;
        // SAFETY: IoSlice has the layout of iovec; slices and what they point to live during the call.
        unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_NOSIGNAL) }
    };
    usize::try_from(sent).map_err(|_| errno())
}
