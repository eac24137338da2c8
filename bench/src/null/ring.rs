//! The ring: how it is made, and pushing into it.

use std::io;

use io_uring::{IoUring, squeue};

/// A ring for the calling thread with room for `entries` operations a turn, rounded up to what the kernel takes.
///
/// # Errors
/// When the kernel refuses: it must be 6.1 or newer.
pub(super) fn make(entries: u32) -> io::Result<IoUring> {
    let entries = entries.next_power_of_two().clamp(64, 32 * 1024);
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_submit_all()
        .setup_cqsize((2 * entries).min(64 * 1024))
        .build(entries)
}

/// Queues an operation, submitting what is queued when there is no room.
///
/// # Safety
/// What the entry points to must live until the operation completes.
pub(super) unsafe fn push(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    // SAFETY: passed on to the caller.
    while unsafe { ring.submission().push(entry) }.is_err() {
        ring.submit()?;
    }
    Ok(())
}
