//! Memory that the kernel reads while operations are submitted: addresses and message headers. The io_uring driver
//! fills it.
//!
//! `IORING_FEAT_SUBMIT_STABLE` says that the kernel has copied them when the submission is done, so the next turn reuses
//! the memory.

use std::io::IoSlice;

use rustix::net::SocketAddrAny;

use crate::send_queue::{MAX_SLICES, SendQueue};

/// A message header and the slices it names.
struct Message {
    header: libc::msghdr,
    slices: [libc::iovec; MAX_SLICES],
}

/// The memory, in boxes because the kernel gets pointers to it.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "the boxes must not move when the list grows")]
pub(super) struct Scratch {
    messages: Vec<Box<Message>>,
    messages_used: usize,
    addrs: Vec<Box<SocketAddrAny>>,
    addrs_used: usize,
}

impl Scratch {
    /// A header for as much of `out` as fits into one message, and its length in bytes.
    pub(super) fn message(&mut self, out: &SendQueue) -> (*const libc::msghdr, usize) {
        if self.messages_used == self.messages.len() {
            // SAFETY: all-zero is a valid value of both: null pointers and zero lengths.
            self.messages.push(Box::new(unsafe { std::mem::zeroed() }));
        }
        let message = &mut *self.messages[self.messages_used];
        self.messages_used += 1;
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let filled = out.slices(&mut slices);
        let mut len = 0;
        for (to, from) in message.slices.iter_mut().zip(&slices[..filled]) {
            to.iov_base = from.as_ptr().cast_mut().cast();
            to.iov_len = from.len();
            len += from.len();
        }
        message.header.msg_iov = message.slices.as_mut_ptr();
        message.header.msg_iovlen = filled as _;
        (&raw const message.header, len)
    }

    /// An address in the kernel's form.
    pub(super) fn addr(&mut self, addr: SocketAddrAny) -> &SocketAddrAny {
        if self.addrs_used == self.addrs.len() {
            self.addrs.push(Box::new(addr));
        } else {
            *self.addrs[self.addrs_used] = addr;
        }
        self.addrs_used += 1;
        &self.addrs[self.addrs_used - 1]
    }

    /// Everything has been submitted, so the memory can be reused.
    pub(super) fn submitted(&mut self) {
        self.messages_used = 0;
        self.addrs_used = 0;
    }
}
