//! The floor: a client and an origin on io_uring that parse almost nothing, read no clock and keep no histogram.
//!
//! It uses the io-uring crate alone, not weir's own driver: multishot receive into provided buffers, sends without
//! completions, sockets in the ring's table, and one system call a turn that submits everything and waits. Of large responses
//! nothing is copied: they are dropped in the kernel. The cost of
//! such a program is the cost of the kernel's TCP. A load generator that does the same over the same kernel interface
//! cannot cost less by more than noise. It does not check responses.

mod buffers;
pub mod client;
pub mod origin;

use std::io;

use buffers::Buffers;
use io_uring::{IoUring, cqueue, opcode, squeue, types};

/// A ring for the calling thread, the buffers that it receives into, and the operations of the next turn.
struct Turns {
    // Before the buffers: the kernel lets go of them first.
    ring: IoUring,
    buffers: Buffers,
    queue: Vec<squeue::Entry>,
}

/// What came of an operation.
enum Event<'a> {
    /// A connection brought these bytes.
    Received(u32, &'a [u8]),
    /// Anything else: the operation, its connection, the kernel's result, and whether more results will come.
    Other(Operation, u32, i32, bool),
}

impl Turns {
    /// With room for `entries` operations a turn, rounded up to what the kernel takes, and `count` buffers (a power of two) of
    /// `size` bytes.
    ///
    /// # Errors
    /// When the kernel refuses: it must be 6.1 or newer.
    fn new(entries: u32, count: u16, size: usize) -> io::Result<Turns> {
        let entries = entries.next_power_of_two().clamp(64, 32 * 1024);
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize((2 * entries).min(64 * 1024))
            .build(entries)?;
        let buffers = Buffers::new(&ring, count, size)?;
        Ok(Turns { ring, buffers, queue: Vec::new() })
    }

    /// Submits the queued operations, waits for at least one completion, and handles all there are. Receiving goes on until
    /// the peer closes.
    ///
    /// # Safety
    /// What the operations point to must live until they complete.
    unsafe fn turn(
        &mut self,
        mut handle: impl FnMut(&mut Vec<squeue::Entry>, Event<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        for entry in self.queue.drain(..) {
            // SAFETY: passed on to the caller.
            while unsafe { self.ring.submission().push(&entry) }.is_err() {
                self.ring.submit()?;
            }
        }
        match self.ring.submit_and_wait(1) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => return Err(error),
            _ => {}
        }
        for completion in self.ring.completion() {
            let (operation, number) = Operation::of(completion.user_data());
            let more = cqueue::more(completion.flags());
            match (operation, completion.result(), cqueue::buffer_select(completion.flags())) {
                (Operation::Receive, count @ 1.., Some(buffer)) => {
                    handle(&mut self.queue, Event::Received(number, self.buffers.bytes(buffer, count as usize)))?;
                    self.buffers.give_back(buffer);
                    if !more {
                        self.queue.push(receive(number));
                    }
                }
                (Operation::Receive, error, _) if error == -libc::ENOBUFS => self.queue.push(receive(number)),
                (_, result, _) => handle(&mut self.queue, Event::Other(operation, number, result, more))?,
            }
        }
        self.buffers.publish();
        Ok(())
    }
}

/// Receives from a connection until it ends.
fn receive(number: u32) -> squeue::Entry {
    opcode::RecvMulti::new(types::Fixed(number), buffers::GROUP).build().user_data(Operation::Receive.token(number))
}

/// Drops at most so many bytes of a connection's in the kernel, once.
fn drop_bytes(number: u32, most: usize) -> squeue::Entry {
    opcode::Recv::new(types::Fixed(number), std::ptr::null_mut(), most as u32)
        .flags(libc::MSG_TRUNC)
        .build()
        .user_data(Operation::Receive.token(number))
}

/// Sends all of it, and completes only when that fails.
fn send(bytes: &[u8], number: u32) -> squeue::Entry {
    opcode::Send::new(types::Fixed(number), bytes.as_ptr(), bytes.len() as u32)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
        .build()
        .flags(squeue::Flags::SKIP_SUCCESS)
        .user_data(Operation::Send.token(number))
}

/// What an operation is, in the upper half of its token. The lower half is a connection's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Operation {
    Receive,
    Send,
    Accept,
    Close,
    Time,
}

impl Operation {
    fn token(self, number: u32) -> u64 {
        (self as u64) << 32 | u64::from(number)
    }

    fn of(token: u64) -> (Operation, u32) {
        let operation = match token >> 32 {
            0 => Operation::Receive,
            1 => Operation::Send,
            2 => Operation::Accept,
            3 => Operation::Close,
            _ => Operation::Time,
        };
        (operation, token as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_operation_and_connection() {
        for operation in [Operation::Receive, Operation::Send, Operation::Accept, Operation::Close, Operation::Time] {
            assert_eq!(Operation::of(operation.token(u32::MAX)), (operation, u32::MAX));
        }
    }
}
