//! The unsafe code of [frames](super): slots of memory, each of which one [`PageFrame`] has at a time.
//!
//! **Why a frame is sound.** A slot is a piece of a slab, and slots do not overlap. A slot is carved once, and from then
//! on it is either in a list of free ones, under the lock, or with the one frame that took it from there, which puts it
//! back when it is dropped: so nobody else touches it meanwhile. Slabs are freed by [`PageFrames`] alone, which every frame
//! keeps alive. That the kernel puts zeros in place of a released slot is seen by nobody: it is free.

use std::ops::Deref;
use std::ptr::NonNull;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

use super::{PageFrames, slot_bytes};
use crate::kernel::{PAGE_BYTES, Pages};
use crate::sync::Arc;

/// Memory from which slots are carved.
#[derive(Debug)]
pub(super) struct Slab(Pages);

impl Slab {
    /// Untouched memory. Its pages come and go one by one: a huge one would stay for any of them.
    pub(super) fn new(len_bytes: usize) -> Self {
        let slab = Self(Pages::zeroed(len_bytes));
        if !cfg!(miri) {
            // SAFETY: the range is the slab's own; the advice changes no byte, and may be refused.
            let _ = unsafe { madvise(slab.start().as_ptr().cast(), len_bytes, Advice::LinuxNoHugepage) };
        }
        slab
    }

    fn start(&self) -> NonNull<u8> {
        self.0.start()
    }

    /// The slot that begins at this place, of `len_bytes`. To be carved once.
    pub(super) fn carve(&self, at: usize, len_bytes: usize) -> Slot {
        assert!(
            at.checked_add(len_bytes).is_some_and(|end| end <= self.0.len()),
            "a slot is within its slab"
        );
        // SAFETY: it is within the slab, as was just seen.
        Slot(unsafe { self.start().add(at) })
    }
}

/// A piece of a slab.
#[derive(Debug)]
pub(super) struct Slot(NonNull<u8>);

// SAFETY: it is memory that only its holder uses, and nothing of it is tied to a thread.
unsafe impl Send for Slot {}

/// Gives the memory of slots back to the system, of as many bytes as each was carved with. They have zeros again when they
/// are used.
pub(super) fn release(slots: &mut [Slot], slot_bytes: usize) {
    slots.sort_unstable_by_key(|slot| slot.0);
    // Each call makes all cores forget the pages: one does for slots side by side.
    for run in slots.chunk_by(|slot, next| slot.0.addr().get() + slot_bytes == next.0.addr().get()) {
        // Where the system's pages are longer, the kernel would take slots beside these along.
        if !cfg!(miri) && page_size() == PAGE_BYTES {
            // SAFETY: the range is whole pages of slabs that are still mapped, those of the slots, which are exclusively
            // borrowed: nobody uses them.
            let _ =
                unsafe { madvise(run[0].0.as_ptr().cast(), run.len() * slot_bytes, Advice::LinuxDontNeed) };
        }
    }
}

/// Bytes in a slot, which no longer change.
#[derive(Debug)]
pub struct PageFrame {
    start: NonNull<u8>,
    len_bytes: usize,
    frames: Arc<PageFrames>,
}

// SAFETY: its bytes do not change, and nothing of them is tied to a thread.
unsafe impl Send for PageFrame {}
// SAFETY: as above.
unsafe impl Sync for PageFrame {}

impl PageFrame {
    /// A copy of `bytes` in a slot for as many.
    pub(super) fn new(slot: Slot, bytes: &[u8], frames: Arc<PageFrames>) -> Self {
        let Slot(start) = slot;
        // SAFETY: the slot is at least as long, and no reference to its bytes is there: it was free until now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len()) };
        Self { start, len_bytes: bytes.len(), frames }
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        slot_bytes(self.len_bytes)
    }
}

impl Deref for PageFrame {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `new` has written all of it, nobody changes it, and `frames` keeps its slab.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len_bytes) }
    }
}

impl Drop for PageFrame {
    fn drop(&mut self) {
        self.frames.put_back(Slot(self.start), self.len_bytes);
    }
}
