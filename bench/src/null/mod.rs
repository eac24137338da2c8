//! The floor: a client and an origin on io_uring that parse almost nothing, read no clock and keep no histogram. Called
//! by the program `null`.
//!
//! It uses the io-uring crate alone, not weir's own driver: multishot receive into provided buffers, sends without
//! completions, sockets in the ring's table, and one system call a turn that submits everything and waits. The cost of
//! such a program is the cost of the kernel's TCP. A load generator that does the same over the same kernel interface
//! cannot cost less by more than noise. It does not check responses.

mod buffers;
pub mod client;
pub mod origin;

use std::io;

use io_uring::{IoUring, squeue};

/// A ring for the calling thread with room for `entries` operations a turn, rounded up to what the kernel takes.
///
/// # Errors
/// When the kernel refuses: it must be 6.1 or newer.
fn new_ring(entries: u32) -> io::Result<IoUring> {
    let entries = entries.next_power_of_two().clamp(64, 32 * 1024);
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_submit_all()
        .setup_cqsize((2 * entries).min(64 * 1024))
        .build(entries)
}

/// Submits the queued operations and waits for at least one completion.
///
/// # Safety
/// What the operations point to must live until they complete.
unsafe fn submit(ring: &mut IoUring, queue: &mut Vec<squeue::Entry>) -> io::Result<()> {
    for entry in queue.drain(..) {
        // SAFETY: passed on to the caller.
        while unsafe { ring.submission().push(&entry) }.is_err() {
            ring.submit()?;
        }
    }
    match ring.submit_and_wait(1) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => Err(error),
        _ => Ok(()),
    }
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
