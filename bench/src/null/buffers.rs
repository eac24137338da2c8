//! Memory that the kernel receives into, as a ring of provided buffers. Used by `null::client` and `null::origin`.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The number of the only group.
pub(super) const GROUP: u16 = 0;

const PAGE: usize = 4096;

/// The buffers. They must be dropped after the ring that they are registered with.
pub(super) struct Buffers {
    entries: *mut BufRingEntry,
    data: *mut u8,
    count: u16,
    size: usize,
    tail: u16,
}

impl Buffers {
    /// `count` buffers (a power of two) of `size` bytes, registered with the ring.
    pub(super) fn new(ring: &IoUring, count: u16, size: usize) -> io::Result<Buffers> {
        assert!(count.is_power_of_two());
        let entries = allocate(entries_layout(count)).cast();
        let data = allocate(data_layout(count, size));
        let mut buffers = Buffers { entries, data, count, size, tail: 0 };
        // SAFETY: the entries are page-aligned, zeroed and live until `drop`.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, count, GROUP, 0) }?;
        for number in 0..count {
            buffers.give_back(number);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// Gives buffer `number` back; the kernel sees it after [`Buffers::publish`].
    pub(super) fn give_back(&mut self, number: u16) {
        let at = usize::from(self.tail & (self.count - 1));
        // SAFETY: `at` is below `count`, and the kernel reads no entry beyond the published tail.
        let entry = unsafe { &mut *self.entries.add(at) };
        entry.set_addr(self.address(number) as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the kernel what was given back.
    pub(super) fn publish(&mut self) {
        // SAFETY: the pointer is to the first entry.
        let tail = unsafe { BufRingEntry::tail(self.entries) };
        // SAFETY: an aligned u16 that only this thread writes.
        unsafe { AtomicU16::from_ptr(tail.cast_mut()) }.store(self.tail, Ordering::Release);
    }

    /// The bytes received into buffer `number`.
    pub(super) fn bytes(&self, number: u16, len: usize) -> &[u8] {
        assert!(len <= self.size);
        // SAFETY: the kernel has filled `len` bytes of it, and it is not given back while this is borrowed.
        unsafe { std::slice::from_raw_parts(self.address(number), len) }
    }

    fn address(&self, number: u16) -> *mut u8 {
        assert!(number < self.count);
        // SAFETY: `number` is below `count`, so it stays inside the allocation.
        unsafe { self.data.add(usize::from(number) * self.size) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate` with these layouts, and not used any more.
        unsafe {
            dealloc(self.entries.cast(), entries_layout(self.count));
            dealloc(self.data, data_layout(self.count, self.size));
        }
    }
}

fn entries_layout(count: u16) -> Layout {
    layout(usize::from(count) * size_of::<BufRingEntry>())
}

fn data_layout(count: u16, size: usize) -> Layout {
    layout(usize::from(count) * size)
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(PAGE), PAGE).expect("some MiB, aligned to a power of two")
}

fn allocate(layout: Layout) -> *mut u8 {
    // SAFETY: the layout is never empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}
