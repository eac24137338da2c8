//! How the epoll driver connects: TCP in the background, Unix sockets at once. While the queue of a Unix server is
//! full, the driver tries again.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use rustix::io::Errno;
use rustix::net::SocketAddrAny;

use super::{EpollDriver, WATCH_OUT, token};
use crate::host::monotonic_ns;
use crate::slots::Flag;
use crate::socket;
use crate::{Address, Conn};

/// How long until a connect to a Unix socket whose queue is full is tried again, nanoseconds. The kernel does not report when
/// there is room.
const TRY_AGAIN: u64 = 1_000_000;

/// A connect that waits for room in a Unix socket's queue.
#[derive(Debug)]
pub(super) struct Waiting {
    conn: Conn,
    to: SocketAddrAny,
}

impl EpollDriver {
    pub(super) fn begin_connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        let addr = socket::raw_addr(to)?;
        let fd = socket::client_socket(to, from, self.limits, true)?;
        let error = connect(fd.as_raw_fd(), &addr).err();
        if error == Some(libc::EAGAIN) && to.tcp().is_none() {
            // Not watched yet: the kernel would report that an unconnected socket is writable.
            let index = self.slots.take(fd.into_raw_fd());
            self.slots.get_mut(index).set(Flag::Connecting);
            let conn = self.slots.conn(index);
            self.waiting.push(Waiting { conn, to: addr });
            return Ok(conn);
        }
        let index = self.adopt(fd, WATCH_OUT)?;
        let slot = self.slots.get_mut(index);
        slot.set(Flag::Connecting);
        slot.set(Flag::WatchOut);
        let conn = self.slots.conn(index);
        if let Some(error) = error {
            self.fail_soon(conn, error);
        }
        Ok(conn)
    }

    fn fail_soon(&mut self, conn: Conn, error: i32) {
        self.slots.get_mut(conn.slot() as u32).error = error as u16;
        self.failed.push(conn);
    }

    /// Retries the connects that wait for room in a queue.
    pub(super) fn connect_again(&mut self) {
        for Waiting { conn, to } in std::mem::take(&mut self.waiting) {
            if self.stale(conn) {
                continue;
            }
            let index = conn.slot() as u32;
            let fd = self.slots.get(index).fd;
            match connect(fd, &to) {
                Ok(()) => {
                    self.slots.get_mut(index).set(Flag::WatchOut);
                    if let Err(error) = self.control(libc::EPOLL_CTL_ADD, fd, WATCH_OUT, token(conn)) {
                        self.fail_soon(conn, error.raw_os_error().unwrap_or(libc::EIO));
                    }
                }
                Err(libc::EAGAIN) => self.waiting.push(Waiting { conn, to }),
                Err(error) => self.fail_soon(conn, error),
            }
        }
    }

    /// When to retry, if any connect waits.
    pub(super) fn connect_again_at(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then(|| monotonic_ns() + TRY_AGAIN)
    }
}

/// Begins to connect. A connect that is still in progress is not an error.
fn connect(fd: RawFd, addr: &SocketAddrAny) -> Result<(), i32> {
    match rustix::net::connect(socket::borrow(fd), addr) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(error) => Err(error.raw_os_error()),
    }
}
