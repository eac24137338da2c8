//! The system calls that one turn of the epoll driver makes.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags};

use super::{EVENTS, EpollDriver};
use crate::Listener;
use crate::host::monotonic_ns;
use crate::send_queue::{MAX_SLICES, SendQueue};
use crate::socket::{borrow, errno};

impl EpollDriver {
    /// The last connection has just gone and there is no listener, so a wait could last for ever.
    pub(super) fn has_no_sockets(&self) -> bool {
        let none_left = self.slots.used() == self.dead.len();
        none_left && !self.dead.is_empty() && self.listeners.iter().all(Option::is_none)
    }

    pub(super) fn wait(&mut self, until: Option<u64>, poll: bool) -> io::Result<()> {
        let until = [until, self.accept_paused_until, self.connect_again_at()].into_iter().flatten().min();
        let timeout = if poll {
            Some(Duration::ZERO)
        } else {
            until.map(|until| Duration::from_nanos(until.saturating_sub(monotonic_ns())))
        };
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

    /// Calls `epoll_pwait2`, whose timeout is in nanoseconds.
    pub(super) fn wait_fine(&mut self, timeout: Option<Duration>) -> Result<usize, i32> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the events have room for the count passed, the timeout lives during the call, and there is no
        // signal mask.
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

    /// Calls `epoll_wait`, whose timeout is in milliseconds. It is rounded up, because a wait must not end early.
    pub(super) fn wait_coarse(&mut self, timeout: Option<Duration>) -> Result<usize, i32> {
        let timeout =
            timeout.map_or(-1, |timeout| i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX));
        // SAFETY: the events have room for the count passed.
        let got = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), EVENTS as libc::c_int, timeout)
        };
        usize::try_from(got).map_err(|_| errno())
    }
}

pub(super) fn accept(listener: &Listener) -> Result<OwnedFd, i32> {
    net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).map_err(Errno::raw_os_error)
}

pub(super) fn receive(fd: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
    net::recv(borrow(fd), buffer, RecvFlags::empty()).map(|(count, _)| count).map_err(Errno::raw_os_error)
}

/// Drops up to `most` bytes that have arrived at a TCP socket. Returns how many.
pub(super) fn skip(fd: RawFd, most: u32) -> Result<usize, i32> {
    // SAFETY: with MSG_TRUNC, TCP writes nothing to the buffer (tcp(7)), so there may be none.
    let got = unsafe { libc::recv(fd, std::ptr::null_mut(), most as usize, libc::MSG_TRUNC) };
    usize::try_from(got).map_err(|_| errno())
}

pub(super) fn send(fd: RawFd, out: &SendQueue) -> Result<usize, i32> {
    let sent = if let Some(bytes) = out.as_one() {
        net::send(borrow(fd), bytes, SendFlags::NOSIGNAL)
    } else {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let filled = out.slices(&mut slices);
        net::sendmsg(borrow(fd), &slices[..filled], &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
    };
    sent.map_err(Errno::raw_os_error)
}
