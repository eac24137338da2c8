//! Wakes a waiting driver: an eventfd that any thread writes and one driver watches.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::{Wake, Waker};

impl Waker {
    /// Makes the eventfd.
    pub(crate) fn new() -> io::Result<Waker> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker { fd: Arc::new(fd) })
    }

    /// Clears the pending wake-ups.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        // This fails when there is nothing to clear.
        let _ = rustix::io::read(self.fd.as_fd(), &mut count);
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Wake for Waker {
    fn wake(&self) {
        // It can only fail when 2^64 - 2 wake-ups are outstanding, and then the driver is awake.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }
}
