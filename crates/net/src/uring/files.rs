//! The ring's own table of sockets: a send to a socket in it saves the kernel looking the descriptor up and
//! counting its users, about 1.7 % of a short request on loopback.
//!
//! Only sends that the kernel tries at once use it. What waits, waits on the descriptor, so that no operation
//! keeps a socket in the table alive. A connection comes into the table with its second send: those that send
//! once never pay for it.

use io_uring::{opcode, squeue};

use super::UringDriver;
use super::ring::Kind;
use crate::slots::Is;

/// Takes an entry out of the table.
static NO_SOCKET: i32 = -1;

impl UringDriver {
    /// Whether the connection's next send may go through the table; puts it there when it is time.
    pub(super) fn in_table(&mut self, index: u32) -> bool {
        let room = index < self.table;
        let slot = self.slots.get_mut(index);
        if slot.is(Is::InTable) {
            return true;
        }
        if !slot.test_and_set(Is::HasSent) || !room {
            return false;
        }
        slot.set(Is::InTable);
        let fd = &raw const slot.fd;
        self.push_update(fd, index);
        true
    }

    /// Takes the connection out of the table. Goes before the close: the table holds the socket open.
    pub(super) fn leave_table(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        if slot.is(Is::InTable) {
            slot.clear(Is::InTable);
            self.push_update(&raw const NO_SOCKET, index);
        }
    }

    fn push_update(&mut self, fd: *const i32, index: u32) {
        // The table is smaller than i32::MAX, and the index inside it.
        let update = opcode::FilesUpdate::new(fd, 1).offset(index as i32).build().flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the descriptor is read while it is submitted. It is static, or in the table of slots, which does
        // not grow between preparing and submitting; after a turn that fails in between nothing is submitted.
        unsafe { self.push(update, Kind::Table, index) };
    }

    /// The kernel refuses an update: goes on without the table. The send behind it fails and is made again by
    /// descriptor.
    pub(super) fn table_refused(&mut self, index: u32) {
        self.table = 0;
        self.slots.get_mut(index).clear(Is::InTable);
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

    /// Echoes a few messages; whether the connection was in the table after each.
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
                let until = Instant::now() + Duration::from_millis(5);
                driver.turn(&mut echo, Some(until)).unwrap();
            }
            assert_eq!(back, [byte]);
            in_table.push(driver.slots.get(0).is(Is::InTable));
        }
        assert_eq!(echo.failed, 0);
        in_table
    }

    #[test]
    fn a_connection_comes_into_the_table_with_its_second_send() {
        let mut driver = UringDriver::new().unwrap();
        let has_table = driver.table > 0;
        if !has_table {
            eprintln!("THE TABLE IS NOT TESTED: this kernel has none worth having");
        }
        assert_eq!(echoes(&mut driver), [false, has_table, has_table, has_table, has_table]);
    }

    #[test]
    fn a_table_that_refuses_costs_no_byte_and_no_connection() {
        let mut driver = UringDriver::new().unwrap();
        if driver.table > 0 {
            driver.ring.ring().submitter().unregister_files().unwrap();
        }
        driver.table = 100;
        assert_eq!(echoes(&mut driver), [false; 5]);
        assert_eq!(driver.table, 0, "it is not asked again");
    }
}
