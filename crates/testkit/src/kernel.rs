//! A heap that counts for tests what their thread takes of it: how much, and not for how long, follows from what they
//! do.
//!
//! **Invariant:** what is handed out is the system's own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has taken and not given back, and the most of it. What others gave it may make it
    /// negative.
    static TAKEN: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// To be a test program's `global_allocator`.
#[derive(Debug)]
pub struct CountingHeap;

impl CountingHeap {
    /// The most that this thread holds at a time while it does something, beyond what it held before; and what came of
    /// it.
    pub fn peak_bytes<T>(act: impl FnOnce() -> T) -> (usize, T) {
        let before = TAKEN.get().0;
        TAKEN.set((before, before));
        let outcome = act();
        (usize::try_from(TAKEN.get().1 - before).unwrap_or(0), outcome)
    }
}

/// Counts more or fewer bytes. A thread that is ending has no count any more.
fn count(bytes: isize) {
    let _ = TAKEN.try_with(|taken| {
        let (now, most) = taken.get();
        taken.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: everything is the system allocator's, to which layouts and pointers go as they came. Counting allocates
// nothing.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the rules of this very call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}
