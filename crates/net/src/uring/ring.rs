//! The ring itself: its set-up, the one system call of a turn, and its operations.
//!
//! The driver uses it. It does not know connections; a token says which slot an operation is for.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use io_uring::{IoUring, squeue};

use crate::DescriptorKind;

/// Entries of the submission queue. If a turn queues more, it is submitted in parts.
const SUBMISSIONS: u32 = 1024;

/// Entries of the completion queue. The kernel keeps what does not fit, and delivers it later.
const COMPLETIONS: u32 = 8 * SUBMISSIONS;

/// The most entries of the ring's table when connections have descriptors, too. Connections in higher slots are not in
/// the table.
const TABLE: u32 = 16 * 1024;

/// The most entries when only the table holds the sockets. An entry takes 8 bytes; a driver with more connections than
/// this would be slow for other reasons.
const TABLE_ALONE: u32 = 256 * 1024;

const ENTER_GETEVENTS: u32 = 1 << 0;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const ENTER_NO_IOWAIT: u32 = 1 << 7;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// The buffer of this completion is not full yet.
const BUFFER_MORE: u32 = 1 << 4;

/// How often a partly accepted submission is tried again.
const SUBMIT_TRIES: usize = 1000;

/// What an operation is. Together with a slot's or listener's number it makes the operation's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum OpKind {
    /// Multishot accept; the number is a listener's.
    Accept,
    /// Multishot receive.
    Receive,
    /// A send that the kernel tries once. It reports only a failure or a partial send.
    SendNow,
    /// A send that waits for room.
    SendWhenRoom,
    /// Connect.
    Connect,
    /// Cancels another operation; reported only if it fails.
    Cancel,
    /// Closes a socket; reported only if it fails.
    Close,
    /// Multishot poll of the waker.
    Wake,
    /// Puts a socket into the ring's table or takes it out; reported only if it fails.
    Table,
    /// Receives so many bytes and drops them.
    Skip,
    /// Multishot poll of a socket of datagrams.
    Poll,
}

impl OpKind {
    const ALL: [OpKind; 11] = [
        OpKind::Accept,
        OpKind::Receive,
        OpKind::SendNow,
        OpKind::SendWhenRoom,
        OpKind::Connect,
        OpKind::Cancel,
        OpKind::Close,
        OpKind::Wake,
        OpKind::Table,
        OpKind::Skip,
        OpKind::Poll,
    ];

    /// The token of an operation of this kind for slot `index`.
    pub(super) fn token(self, index: u32) -> u64 {
        (self as u64) << 32 | u64::from(index)
    }
}

/// The result of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completion {
    token: u64,
    /// A count, a descriptor, or a negated error number.
    pub(super) result: i32,
    flags: u32,
}

impl Completion {
    pub(super) fn kind(self) -> OpKind {
        // Tokens come from `OpKind::token` alone.
        OpKind::ALL[(self.token >> 32) as usize]
    }

    pub(super) fn index(self) -> u32 {
        self.token as u32
    }

    /// Whether the operation continues.
    pub(super) fn more(self) -> bool {
        io_uring::cqueue::more(self.flags)
    }

    /// Whether the kernel will receive more into that buffer before it is returned.
    pub(super) fn buffer_goes_on(self) -> bool {
        self.flags & BUFFER_MORE != 0
    }

    /// The provided buffer that holds what was received.
    pub(super) fn buffer(self) -> Option<u16> {
        io_uring::cqueue::buffer_select(self.flags)
    }
}

/// How long to wait for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Not at all.
    No,
    /// At most this long.
    For(Duration),
    /// Until there is a completion.
    Forever,
}

/// The kernel's `io_uring_getevents_arg`.
#[repr(C)]
struct GetEvents {
    sigmask: u64,
    sigmask_size: u32,
    min_wait_usec: u32,
    timeout: u64,
}

/// The kernel's `__kernel_timespec`.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// The kernel's `io_uring_rsrc_update`.
#[repr(C)]
struct Update {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// The ring.
pub(super) struct Ring {
    ring: IoUring,
    /// The ring's descriptor, or its index among the thread's registered rings.
    fd: RawFd,
    /// The flags of every `io_uring_enter` call.
    flags: u32,
    /// What a wait goes on for; `None`: it ends with the first completion.
    gathering: Option<Gathering>,
}

/// Until when a wait goes on that has its first completion.
#[derive(Debug, Clone, Copy)]
struct Gathering {
    within: Duration,
    completions: u32,
}

impl Ring {
    /// Sets up a ring for the calling thread, with the newest flags that the kernel accepts.
    pub(super) fn new() -> io::Result<Ring> {
        let ring = build()?;
        let mut flags = 0;
        let mut fd = ring.as_raw_fd();
        if let Some(index) = register_ring(fd) {
            fd = index;
            flags |= ENTER_REGISTERED_RING;
        }
        if ring.params().is_feature_no_iowait() {
            // A driver that waits for the network is idle; it must not be counted as waiting for a disk.
            flags |= ENTER_NO_IOWAIT;
        }
        Ok(Ring { ring, fd, flags, gathering: None })
    }

    /// A wait goes on until so many completions are there, or this time has passed and one is. Zero: until one is. Kernels before 6.12
    /// cannot do that; whether this one can.
    pub(super) fn batch_completions(&mut self, within: Duration, completions: u32) -> bool {
        let can = self.ring.params().is_feature_min_timeout();
        self.gathering = (can && within.as_micros() > 0).then_some(Gathering { within, completions });
        can
    }

    /// Makes the ring's empty table of sockets, and returns its size: zero where it is not worth having. Kernels
    /// before 6.4 close a socket up to a second after it has left the table; this requires a feature of 6.10.
    ///
    /// The kernel limits the table by the soft limit of descriptors, though its entries are no descriptors.
    pub(super) fn make_table(&self, descriptors: DescriptorKind) -> u32 {
        let size = match descriptors {
            DescriptorKind::Regular => table_limit().min(TABLE),
            DescriptorKind::Direct => table_limit(),
        };
        let wise = self.ring.params().is_feature_recvsend_bundle();
        if wise && self.ring.submitter().register_files_sparse(size).is_ok() { size } else { 0 }
    }

    /// Whether several receives can fill a buffer. The feature flag is of 6.15, when the code below it had matured.
    pub(super) fn fills_through(&self) -> bool {
        self.ring.params().is_feature_no_iowait()
    }

    pub(super) fn ring(&self) -> &IoUring {
        &self.ring
    }

    /// Queues an operation; submits what is queued when there is no room.
    ///
    /// # Safety
    /// What the entry points to must live until the operation completes; addresses and message headers until it
    /// is submitted.
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: passed on to the caller.
        if unsafe { self.ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        self.submit_all()?;
        // SAFETY: passed on to the caller.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| io::Error::other("the submission queue stays full"))
    }

    /// Operations queued and not yet submitted.
    pub(super) fn queued(&mut self) -> u32 {
        self.ring.submission().len() as u32
    }

    /// Submits until nothing is queued, without waiting and without checking for completions.
    pub(super) fn submit_all(&mut self) -> io::Result<()> {
        for _ in 0..SUBMIT_TRIES {
            let queued = self.queued();
            if queued == 0 {
                return Ok(());
            }
            self.enter_raw(queued, 0, 0, None, 0)?;
        }
        Err(io::Error::other("the kernel takes no more operations"))
    }

    /// Submits what is queued and waits, in one system call. A signal or a timeout is not an error.
    pub(super) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let queued = self.queued();
        let (want, timeout) = match wait {
            Wait::No => (0, None),
            Wait::For(Duration::ZERO) => (0, None),
            Wait::For(time) => (1, Some(time)),
            Wait::Forever => (1, None),
        };
        match self.gathering {
            Some(Gathering { within, completions }) if want > 0 && timeout.is_none_or(|timeout| timeout > within) => {
                self.enter_raw(queued, completions, ENTER_GETEVENTS, timeout, within.as_micros() as u32)
            }
            _ => self.enter_raw(queued, want, ENTER_GETEVENTS, timeout, 0),
        }
    }

    /// The system call. For `min_wait_usec` the kernel waits for `want` completions, and then for one.
    fn enter_raw(
        &mut self,
        submit: u32,
        want: u32,
        flags: u32,
        timeout: Option<Duration>,
        min_wait_usec: u32,
    ) -> io::Result<()> {
        let timespec = timeout.map(|timeout| Timespec {
            seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: i64::from(timeout.subsec_nanos()),
        });
        let argument = (timespec.is_some() || min_wait_usec > 0).then(|| GetEvents {
            sigmask: 0,
            sigmask_size: 0,
            min_wait_usec,
            timeout: timespec.as_ref().map_or(0, |timespec| std::ptr::from_ref(timespec) as u64),
        });
        let (pointer, size, extended) = match &argument {
            Some(argument) => (std::ptr::from_ref(argument), size_of::<GetEvents>(), ENTER_EXT_ARG),
            None => (std::ptr::null(), 0, 0),
        };
        // SAFETY: the argument and the time in it live during the call; entries were pushed under `push`'s
        // contract.
        let entered = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.fd, submit, want, self.flags | flags | extended, pointer, size)
        };
        if entered >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // A timeout; a signal; the kernel wants its completions taken, or is short of memory for a moment.
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        }
    }

    /// Moves all completions into `batch`, also those that the kernel kept because the queue was full.
    pub(super) fn drain(&mut self, batch: &mut Vec<Completion>) -> io::Result<()> {
        loop {
            batch.extend(self.ring.completion().map(|entry| Completion {
                token: entry.user_data(),
                result: entry.result(),
                flags: entry.flags(),
            }));
            if !self.ring.submission().cq_overflow() {
                return Ok(());
            }
            self.enter_raw(0, 0, ENTER_GETEVENTS, None, 0)?;
        }
    }
}

/// The size of the largest table that a ring may have here.
pub(crate) fn table_limit() -> u32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| u32::try_from(limit).ok()).map_or(TABLE_ALONE, |limit| limit.min(TABLE_ALONE))
}

/// Registers the ring with the calling thread, which saves a descriptor lookup at every enter. Returns the index, or
/// `None` when the kernel does not support it (before 5.18).
fn register_ring(fd: RawFd) -> Option<RawFd> {
    let mut update = Update { offset: u32::MAX, reserved: 0, data: fd as u64 };
    // SAFETY: the update lives during the call, and the count passed is one.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, fd, REGISTER_RING_FDS, &raw mut update, 1) };
    (done == 1).then_some(update.offset as RawFd)
}

impl Drop for Ring {
    /// The thread's registration would hold the ring, and with it every socket, until the thread ends.
    fn drop(&mut self) {
        if self.flags & ENTER_REGISTERED_RING != 0 {
            let mut update = Update { offset: self.fd as u32, reserved: 0, data: 0 };
            // SAFETY: the update lives during the call, and the count passed is one. A ring that is not registered is
            // refused.
            unsafe {
                libc::syscall(
                    libc::SYS_io_uring_register,
                    self.ring.as_raw_fd(),
                    UNREGISTER_RING_FDS,
                    &raw mut update,
                    1,
                );
            }
        }
    }
}

fn build() -> io::Result<IoUring> {
    type Flags = fn(&mut io_uring::Builder<squeue::Entry>);
    // Newest first: completions made only on request (6.1); one thread (6.0); no interrupt to make them.
    let flag_sets: [Flags; 3] = [
        |b| {
            b.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        },
        |b| {
            b.setup_single_issuer().setup_coop_taskrun();
        },
        |b| {
            b.setup_coop_taskrun();
        },
    ];
    let mut refused = None;
    for wish in flag_sets {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_submit_all().setup_cqsize(COMPLETIONS);
        wish(&mut builder);
        match builder.build(SUBMISSIONS) {
            Ok(ring) => return Ok(ring),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)))
}
