//! Tries, on a socket pair, everything of io_uring that the driver relies on.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use io_uring::{opcode, squeue, types};

use super::buffers::{self, BufferFill, Buffers, Shape};
use super::completions::SEND_NOW_FLAGS;
use super::ring::{Completion, OpKind, Ring, Wait};

/// Far more time than the kernel needs for anything here.
const TIMEOUT: Duration = Duration::from_secs(1);

/// More than a socket takes at once.
const LARGE: usize = 8 << 20;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A ring.
    SetUp,
    /// A socket pair to try with.
    Sockets,
    /// A ring of provided buffers.
    Buffers,
    /// A multishot receive.
    Receive,
    /// Sends without completions, and exact counts of those that fall short.
    Send,
}

impl Step {
    /// The step's name for error texts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Step::SetUp => "the set-up of a ring",
            Step::Sockets => "a socket pair",
            Step::Buffers => "rings of provided buffers",
            Step::Receive => "multishot receive",
            Step::Send => "exact counts of partial sends",
        }
    }
}

/// Tries everything. Returns the first step that failed, and its error.
pub(crate) fn check() -> Result<(), (Step, io::Error)> {
    let mut ring = Ring::new().map_err(|error| (Step::SetUp, error))?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| (Step::Sockets, error))?;
    let shape = Shape { filling: BufferFill::Once, size: 4096, first: 2, most: 2 };
    let buffers = Buffers::new(&ring, shape).map_err(|error| (Step::Buffers, error))?;
    let received = check_receive(&mut ring, &buffers, &ours, &theirs);
    let sent = check_send(&mut ring, &ours, &theirs);
    // Nothing may use the buffers after this, whatever the checks found.
    drop(ours);
    let _ =
        ring.ring().submitter().register_sync_cancel(Some(types::Timespec::new().sec(1)), types::CancelBuilder::any());
    drop(ring);
    drop(buffers);
    received.map_err(|error| (Step::Receive, error))?;
    sent.map_err(|error| (Step::Send, error))
}

/// Checks that the ring's table alone can hold connections: a socket that leaves the table must be closed at once, even
/// while an operation waits on another.
pub(crate) fn check_table() -> io::Result<()> {
    let mut ring = Ring::new()?;
    let buffers = Buffers::new(&ring, Shape { filling: BufferFill::Once, size: 4096, first: 2, most: 2 })?;
    let closed = check_close(&mut ring);
    let _ =
        ring.ring().submitter().register_sync_cancel(Some(types::Timespec::new().sec(1)), types::CancelBuilder::any());
    drop(ring);
    drop(buffers);
    closed
}

fn check_close(ring: &mut Ring) -> io::Result<()> {
    let ((waits, _peer), (leaves, mut left)) = (UnixStream::pair()?, UnixStream::pair()?);
    ring.ring().submitter().register_files_sparse(2)?;
    ring.ring().submitter().register_files_update(0, &[waits.as_raw_fd(), leaves.as_raw_fd()])?;
    drop((waits, leaves));
    let receive = opcode::RecvMulti::new(types::Fixed(0), buffers::GROUP).build().user_data(OpKind::Receive.token(0));
    let close = opcode::Close::new(types::Fixed(1)).build().user_data(OpKind::Close.token(0));
    for entry in [receive, close] {
        // SAFETY: the buffers outlive the ring.
        unsafe { ring.push(&entry) }?;
        ring.submit_all()?;
    }
    let partial = one_completion(ring, OpKind::Close)?;
    if partial.result < 0 {
        return Err(io::Error::from_raw_os_error(-partial.result));
    }
    left.set_read_timeout(Some(TIMEOUT / 10))?;
    match left.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("bytes came that nobody sent")),
    }
}

fn check_receive(ring: &mut Ring, buffers: &Buffers, ours: &UnixStream, theirs: &UnixStream) -> io::Result<()> {
    let receive =
        opcode::RecvMulti::new(types::Fd(ours.as_raw_fd()), buffers::GROUP).build().user_data(OpKind::Receive.token(0));
    // SAFETY: the buffers outlive the ring.
    unsafe { ring.push(&receive) }?;
    ring.submit_all()?;
    // Twice: only the second byte shows that the receive continues.
    for byte in [b"1", b"2"] {
        rustix::io::write(theirs, byte)?;
        let partial = one_completion(ring, OpKind::Receive)?;
        if partial.result < 0 {
            return Err(io::Error::from_raw_os_error(-partial.result));
        }
        let buffer = partial.buffer().filter(|_| partial.result == 1 && partial.more());
        let buffer = buffer.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the kernel has filled one byte, and the buffer is not given back.
        if unsafe { buffers.bytes(buffer, 1) } != byte {
            return Err(io::Error::other("other bytes came than were sent"));
        }
    }
    Ok(())
}

fn check_send(ring: &mut Ring, ours: &UnixStream, theirs: &UnixStream) -> io::Result<()> {
    let bytes = vec![b'x'; LARGE];
    let fd = types::Fd(ours.as_raw_fd());
    for len in [1, LARGE] {
        let send = opcode::Send::new(fd, bytes.as_ptr(), len as u32)
            .flags(SEND_NOW_FLAGS)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(OpKind::SendNow.token(0));
        // SAFETY: the kernel tries the send once, while it is submitted, and the bytes live longer.
        unsafe { ring.push(&send) }?;
    }
    // The first makes no completion. The second reports how many bytes were sent.
    let partial = one_completion(ring, OpKind::SendNow)?;
    let counted = usize::try_from(partial.result).map_err(|_| io::Error::from_raw_os_error(-partial.result))?;
    theirs.set_nonblocking(true)?;
    let mut theirs = theirs;
    let mut chunk = vec![0; 1 << 16];
    let mut came = 0;
    while let Ok(count @ 1..) = theirs.read(&mut chunk) {
        came += count;
    }
    if counted == 0 || came != counted + 1 {
        // Kernels before 6.1 without the fix lose the count of a partial send.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(())
}

/// The single completion that must be there now, of this kind.
fn one_completion(ring: &mut Ring, kind: OpKind) -> io::Result<Completion> {
    let mut batch = Vec::new();
    ring.enter(Wait::For(TIMEOUT))?;
    ring.drain(&mut batch)?;
    match batch[..] {
        [completion] if completion.kind() == kind => Ok(completion),
        [] => Err(io::Error::from(io::ErrorKind::TimedOut)),
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}
