//! The ring's table of sockets, and how the kernel finds a connection's socket: by its descriptor or by its index in
//! that table.
//!
//! Usually ([`DescriptorKind::Regular`]) a connection has a descriptor, and is added to the table with its second
//! send. A send to a socket in the table saves the kernel a descriptor lookup and its reference counting, about 1.7 %
//! of a short request on loopback. Connections that send once never pay for it. In this mode only sends that the
//! kernel tries at once use the table. Operations that wait use the descriptor, so that none keeps a socket in the
//! table alive.
//!
//! With [`DescriptorKind::Direct`] a socket is put into the table when it is made or accepted, at the index of its
//! slot, and its descriptor is closed. A process may then have more connections than descriptors, and every operation
//! uses the table. Before Linux 6.13, one operation that waits on a socket in the table keeps open all sockets that
//! leave the table after it; [`super::check::check_table`] finds out. When the table is full, connections have
//! descriptors.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use io_uring::{opcode, squeue};

use super::UringDriver;
use super::ring::{OpKind, Wait};
use crate::slots::Flag;
use crate::{DescriptorKind, socket};

/// The option that [`UringDriver::linger_zero`] sets. The kernel reads it while the operation is submitted.
static LINGER_ZERO: libc::linger = libc::linger { l_onoff: 1, l_linger: 0 };

/// How long the ends of connections are waited for at a time, and how often without one.
const WAITS_FOR_END: Duration = Duration::from_millis(10);
const MOST_ROUNDS_WITHOUT_END: u32 = 10;

/// Where the kernel finds a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketRef {
    /// A descriptor of the process.
    Descriptor(RawFd),
    /// An index in the ring's table.
    Table(u32),
}

/// Builds the entry of an operation at a [`SocketRef`].
macro_rules! at {
    ($place:expr, |$at:ident| $entry:expr) => {
        match $place {
            SocketRef::Descriptor(fd) => {
                let $at = io_uring::types::Fd(fd);
                $entry
            }
            SocketRef::Table(index) => {
                let $at = io_uring::types::Fixed(index);
                $entry
            }
        }
    };
}
pub(super) use at;

impl UringDriver {
    /// Gives a new socket a slot, and an index in the table instead of its descriptor when sockets are held that way.
    pub(super) fn hold(&mut self, socket: OwnedFd) -> u32 {
        let index = self.slots.take(-1);
        let in_table =
            self.descriptors == DescriptorKind::Direct && index < self.table && self.move_to_table(&socket, index);
        let slot = self.slots.get_mut(index);
        if in_table {
            slot.set(Flag::InTable);
        } else {
            slot.fd = socket.into_raw_fd();
        }
        index
    }

    /// Done at once and not with the submission, so that at most one connection has a descriptor at a time.
    fn move_to_table(&mut self, socket: &OwnedFd, index: u32) -> bool {
        let moved = self.ring.ring().submitter().register_files_update(index, &[socket.as_raw_fd()]);
        moved.is_ok_and(|count| count == 1)
    }

    /// Where an operation that may wait finds the connection's socket.
    pub(super) fn socket_ref(&self, index: u32) -> SocketRef {
        match self.slots.get(index).fd {
            -1 => SocketRef::Table(index),
            fd => SocketRef::Descriptor(fd),
        }
    }

    /// Where a send that is tried at once finds the connection's socket. Adds the socket to the table when it is time.
    pub(super) fn socket_for_send(&mut self, index: u32) -> SocketRef {
        let room = index < self.table;
        let slot = self.slots.get_mut(index);
        if slot.is(Flag::InTable) {
            return SocketRef::Table(index);
        }
        if !slot.test_and_set(Flag::HasSent) || !room {
            return SocketRef::Descriptor(slot.fd);
        }
        slot.set(Flag::InTable);
        let fd = &raw const slot.fd;
        // The table is smaller than i32::MAX, and the index inside it.
        let update = opcode::FilesUpdate::new(fd, 1).offset(index as i32).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the descriptor is read while it is submitted. It is in the table of slots, which does not grow
        // between preparing and submitting. After a turn that fails in between, nothing is submitted.
        unsafe { self.push(update, OpKind::Table, index) };
        SocketRef::Table(index)
    }

    /// Closes the connection's socket, and removes it from the table, which holds it open, too. This happens with the
    /// next submission; the slot must not be reused before.
    pub(super) fn close_socket(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        let fd = std::mem::replace(&mut slot.fd, -1);
        if slot.is(Flag::InTable) {
            slot.clear(Flag::InTable);
            self.push_close(SocketRef::Table(index), index);
        }
        if fd != -1 {
            self.push_close(SocketRef::Descriptor(fd), index);
        }
    }

    /// Shuts every connection down, so that its receive ends by itself, and waits for these ends. Cancelling would do the same, but
    /// the kernel looks through all operations for each that it cancels: seconds for 20,000.
    pub(super) fn shut_down(&mut self) -> io::Result<()> {
        let mut receiving = 0;
        for index in 0..self.slots.made() {
            if self.slots.get(index).is(Flag::Receiving) && !self.slots.get(index).is(Flag::Dead) {
                let shutdown = at!(self.socket_ref(index), |at| opcode::Shutdown::new(at, libc::SHUT_RDWR).build());
                // SAFETY: it points to nothing.
                unsafe { self.push(shutdown.flags(squeue::Flags::SKIP_SUCCESS), OpKind::Close, index) };
                receiving += 1;
            }
        }
        self.ring.submit_all()?;
        let mut batch = Vec::new();
        let mut rounds_without_end = 0;
        while receiving > 0 && rounds_without_end < MOST_ROUNDS_WITHOUT_END {
            self.ring.enter(Wait::For(WAITS_FOR_END))?;
            self.ring.drain(&mut batch)?;
            let ended = batch
                .drain(..)
                .filter(|end| matches!(end.kind(), OpKind::Receive | OpKind::Skip | OpKind::Poll) && !end.more())
                .count();
            receiving -= ended.min(receiving);
            rounds_without_end = if ended > 0 { 0 } else { rounds_without_end + 1 };
        }
        Ok(())
    }

    /// Makes the close of the connection's socket a reset.
    pub(super) fn linger_zero(&mut self, index: u32) {
        let place = self.socket_ref(index);
        if let SocketRef::Descriptor(fd) = place {
            return socket::linger_zero(fd);
        }
        let (level, name) = (libc::SOL_SOCKET as u32, libc::SO_LINGER as u32);
        let (value, len) = (&raw const LINGER_ZERO, size_of::<libc::linger>() as u32);
        // A socket that refuses the option still gets closed, with FIN instead of RST.
        let set = at!(place, |at| opcode::SetSockOpt::new(at, level, name, value.cast(), len).build());
        // SAFETY: the value is static.
        unsafe { self.push(set.flags(squeue::Flags::SKIP_SUCCESS), OpKind::Close, index) };
    }

    /// The kernel has refused an update, so the driver continues without the table. The send behind it fails, and is
    /// repeated by descriptor.
    pub(super) fn table_refused(&mut self, index: u32) {
        self.table = 0;
        self.slots.get_mut(index).clear(Flag::InTable);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Conn, Driver, Event, Handler, Io, listen_socket};

    #[derive(Default)]
    struct Echo {
        failed: usize,
    }

    impl Handler for Echo {
        fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
            match event {
                Event::Data(bytes) => io.send(conn, bytes),
                Event::Failed { .. } => self.failed += 1,
                _ => {}
            }
        }
    }

    /// Echoes a few messages. Returns whether the connection was in the table after each.
    fn echoes(driver: &mut UringDriver) -> Vec<bool> {
        let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 8, false).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        driver.listen(listener).unwrap();
        let mut echo = Echo::default();
        let end = Instant::now() + Duration::from_secs(60);
        let mut in_table = Vec::new();
        for byte in 0..5 {
            peer.write_all(&[byte]).unwrap();
            let mut back = [0];
            while peer.read(&mut back).is_err() {
                assert!(Instant::now() < end, "it hangs");
                let until = driver.now() + 5_000_000;
                driver.poll(&mut echo, Some(until)).unwrap();
            }
            assert_eq!(back, [byte]);
            in_table.push(driver.slots.get(0).is(Flag::InTable));
        }
        assert_eq!(echo.failed, 0);
        in_table
    }

    #[test]
    fn a_connection_enters_the_table_with_its_second_send() {
        let mut driver = UringDriver::new().unwrap();
        assert!(driver.table > 0, "this kernel has none worth having");
        assert_eq!(echoes(&mut driver), [false, true, true, true, true]);
    }

    #[test]
    fn a_table_that_refuses_costs_no_byte_and_no_connection() {
        let mut driver = UringDriver::new().unwrap();
        driver.ring.ring().submitter().unregister_files().unwrap();
        driver.table = 100;
        assert_eq!(echoes(&mut driver), [false; 5]);
        assert_eq!(driver.table, 0, "it is not asked again");
    }
}
