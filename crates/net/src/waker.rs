//! Waking a driver that waits: an eventfd, written from any thread, watched by one driver.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::Waker;

impl Waker {
    /// Makes the eventfd.
    pub(crate) fn new() -> io::Result<Waker> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker { fd: Arc::new(fd) })
    }

    /// Ends the wait of the driver's present turn, or of its next one if none is on. Several calls before that
    /// turn count as one.
    pub fn wake(&self) {
        // It can only fail when 2^64 - 2 wake-ups are outstanding, and then the driver is awake.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Takes the wake-ups that are outstanding.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        // It fails when there is nothing to take.
        let _ = rustix::io::read(self.fd.as_fd(), &mut count);
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
