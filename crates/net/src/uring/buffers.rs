//! The provided buffers: a ring of memory that the kernel receives into, shared by all connections of a driver.
//!
//! Where the kernel supports it ([`BufferFill::Through`]), receives of all connections fill a large buffer one behind
//! the other: short messages lie close together, and long ones arrive in few pieces. Elsewhere each receive takes a
//! whole buffer.
//!
//! The io_uring driver uses it. It does not know connections.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::ring::Ring;

/// The group's number in the ring; there is one.
pub(super) const GROUP: u16 = 0;

/// The flag of a ring whose buffers are filled by several receives.
const INCREMENTAL: u16 = 2;

/// How receives use a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferFill {
    /// Each receive takes a whole buffer.
    Once,
    /// Each receive continues where the last one ended, until the buffer is full (Linux 6.12; used from 6.15 on, the
    /// oldest version that reports it as a feature).
    Through,
}

/// How many buffers, and of what size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) filling: BufferFill,
    /// Bytes of one buffer.
    pub(super) size: usize,
    /// Buffers that the kernel has at first.
    pub(super) first: u16,
    /// The most buffers that the kernel may have: a power of two, at most 32,768.
    pub(super) most: u16,
}

/// The buffers.
pub(super) struct Buffers {
    shape: Shape,
    entries: NonNull<BufRingEntry>,
    data: NonNull<u8>,
    /// Where the next provided buffer goes.
    tail: u16,
    /// Buffers in use; those with higher numbers have not been touched yet.
    provided: u16,
    /// How much of each buffer is filled and processed, when several receives fill one.
    filled: Vec<u32>,
}

impl Buffers {
    /// Maps the memory and registers it with the ring.
    pub(super) fn new(ring: &Ring, shape: Shape) -> io::Result<Buffers> {
        assert!(shape.most.is_power_of_two() && shape.first <= shape.most);
        let entries = map(shape.entries_len())?;
        let data = match map(shape.data_len()) {
            Ok(data) => data,
            Err(error) => {
                unmap(entries, shape.entries_len());
                return Err(error);
            }
        };
        let mut buffers = Buffers { shape, entries: entries.cast(), data, tail: 0, provided: 0, filled: Vec::new() };
        let mut flags = 0;
        if shape.filling == BufferFill::Through {
            flags = INCREMENTAL;
            buffers.filled = vec![0; usize::from(shape.most)];
        }
        // SAFETY: the memory is the driver's own; a kernel without huge pages refuses, which does no harm.
        let _ = unsafe { madvise(data.as_ptr().cast(), shape.data_len(), Advice::LinuxHugepage) };
        let (address, submitter) = (entries.as_ptr() as u64, ring.ring().submitter());
        // SAFETY: the entries are mapped, page-aligned, zeroed, and live until `drop`, which the driver calls after
        // the ring is closed.
        unsafe { submitter.register_buf_ring_with_flags(address, shape.most, GROUP, flags) }?;
        buffers.provide(shape.first);
        Ok(buffers)
    }

    /// Doubles the buffers in use, up to the limit. Called when the kernel has run out.
    pub(super) fn grow(&mut self) {
        self.provide(self.provided.min(self.shape.most - self.provided));
    }

    fn provide(&mut self, count: u16) {
        for _ in 0..count {
            let number = self.provided;
            self.provided += 1;
            self.give(number);
        }
        self.publish();
    }

    /// The bytes of the next unprocessed receive into buffer `number`.
    ///
    /// # Safety
    /// The kernel must have received `len` bytes into it, and it must not be returned while they are used.
    pub(super) unsafe fn bytes<'a>(&self, number: u16, len: usize) -> &'a [u8] {
        let start = self.filled.get(usize::from(number)).map_or(0, |&filled| filled as usize);
        assert!(number < self.shape.most && start + len <= self.shape.size);
        // SAFETY: inside the mapping, by the assertion; filled and left alone, by the contract.
        unsafe { std::slice::from_raw_parts(self.address(number).add(start), len) }
    }

    /// The `len` bytes of a receive into buffer `number` have been processed. `goes_on` means that the kernel will
    /// receive more into it; otherwise the buffer is returned to the ring.
    pub(super) fn processed(&mut self, number: u16, len: usize, goes_on: bool) {
        match self.filled.get_mut(usize::from(number)) {
            // An empty receive leaves the buffer as it was, though not every kernel says so.
            Some(filled) if goes_on || len == 0 => *filled += len as u32,
            Some(filled) => {
                *filled = 0;
                self.give(number);
            }
            None => self.give(number),
        }
    }

    fn address(&self, number: u16) -> *mut u8 {
        // SAFETY: numbers are below `most`, so it stays inside the mapping.
        unsafe { self.data.as_ptr().add(usize::from(number) * self.shape.size) }
    }

    /// Returns a buffer to the ring. The kernel sees it after [`Buffers::publish`].
    fn give(&mut self, number: u16) {
        let at = usize::from(self.tail & (self.shape.most - 1));
        let address = self.address(number);
        // SAFETY: inside the mapping of `most` entries, and the kernel reads no entry beyond the published tail.
        let entry = unsafe { &mut *self.entries.as_ptr().add(at) };
        entry.set_addr(address as u64);
        entry.set_len(self.shape.size as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes the returned buffers visible to the kernel.
    pub(super) fn publish(&mut self) {
        // SAFETY: the pointer is to the ring's first entry.
        let tail = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: the tail is an aligned u16 of the mapping that only this thread writes and the kernel reads.
        unsafe { AtomicU16::from_ptr(tail.cast_mut()) }.store(self.tail, Ordering::Release);
    }
}

impl Shape {
    fn entries_len(self) -> usize {
        usize::from(self.most) * size_of::<BufRingEntry>()
    }

    fn data_len(self) -> usize {
        usize::from(self.most) * self.size
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        unmap(self.data, self.shape.data_len());
        unmap(self.entries.cast(), self.shape.entries_len());
    }
}

fn map(len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let memory =
        unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

fn unmap(memory: NonNull<u8>, len: usize) {
    // SAFETY: mapped by `map` with the same length, and nothing refers to it any more. So it cannot fail.
    let _ = unsafe { munmap(memory.as_ptr().cast(), len) };
}
