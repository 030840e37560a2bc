//! Allocator that counts the memory of one part of a program, on its thread.

#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocations while counting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Bytes that are allocated at present.
    pub(crate) live: i64,
    /// Bytes that have been allocated, and number of allocations.
    pub(crate) total: u64,
    pub(crate) calls: u64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { live: 0, total: 0, calls: 0 }) };
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Counts the allocations of `run`.
pub(crate) fn counted<T>(run: impl FnOnce() -> T) -> T {
    with(true, run)
}

/// Excludes the allocations of a network or an application.
pub(crate) fn uncounted<T>(run: impl FnOnce() -> T) -> T {
    with(false, run)
}

fn with<T>(is_on: bool, run: impl FnOnce() -> T) -> T {
    let before = IS_ON.replace(is_on);
    let output = run();
    IS_ON.set(before);
    output
}

/// Returns the counts.
pub(crate) fn counts() -> Counts {
    COUNTS.get()
}

/// Counts from zero.
pub(crate) fn reset() {
    COUNTS.set(Counts::default());
    IS_ON.set(false);
}

fn count(freed: usize, taken: usize) {
    // Threads that end allocate after their variables have been dropped.
    if IS_ON.try_with(Cell::get) != Ok(true) {
        return;
    }
    let _ = COUNTS.try_with(|counts| {
        let Counts { live, total, calls } = counts.get();
        let live = live + taken as i64 - freed as i64;
        let (total, calls) = (total + taken as u64, calls + u64::from(taken > 0));
        counts.set(Counts { live, total, calls });
    });
}

/// The system's allocator, counted.
#[derive(Debug)]
pub(crate) struct CountingAllocator;

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(ptr, layout, size) }
    }
}
