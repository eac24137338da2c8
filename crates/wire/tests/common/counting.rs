//! An allocator that counts what its thread allocates, so that tests may run in parallel.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Allocations so far.
    pub static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that are allocated.
    pub static BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator; counting in const thread-locals allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as i64);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
