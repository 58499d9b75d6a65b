//! [`PageFrames`]: memory for the pages of a cache, whose pages come and go in any order. What is freed goes back to the
//! system: an allocator keeps what lies between pieces that are in use, and so nearly all of what a cache gives up.
//!
//! **Invariant:** what frames take of the system is what they hold, and at most [`KEPT_BYTES`] more of each length. It is
//! more only where the system's pages are longer than 4 KiB: there nothing goes back.

mod kernel;
#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;

use std::array;

use crate::kernel::PAGE_BYTES;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};

pub use kernel::PageFrame;
use kernel::{Slab, Slot, release};

/// The longest that is held in a frame.
const FRAME_BYTES_MAX: usize = 64 << 10;
/// There are slots of so many lengths.
const CLASSES: usize = FRAME_BYTES_MAX / PAGE_BYTES;
/// No more of a slot than this part is left empty: a cache is to hold pages.
const EMPTY_PART: usize = 4;
/// What slots are carved from.
const SLAB_BYTES: usize = 1 << 20;
/// Free memory of each length that is kept for the next frame: to give it back and fault it in again costs more than to
/// copy a page.
const KEPT_BYTES: usize = 128 << 10;

const _: () =
    assert!(KEPT_BYTES >= FRAME_BYTES_MAX && SLAB_BYTES >= FRAME_BYTES_MAX, "one of each length fits");

/// A supply of frames.
#[derive(Debug)]
pub struct PageFrames {
    /// Much is about to be freed: it is released together.
    is_gathering: AtomicBool,
    classes: [Mutex<Class>; CLASSES],
}

/// All slots of one length.
#[derive(Debug, Default)]
struct Class {
    slabs: Vec<Slab>,
    /// How much of the last slab is carved.
    carved_bytes: usize,
    /// Free ones that take memory, and those that take none.
    kept: Vec<Slot>,
    released: Vec<Slot>,
}

impl Default for PageFrames {
    fn default() -> Self {
        Self { is_gathering: AtomicBool::new(false), classes: array::from_fn(|_| Mutex::default()) }
    }
}

impl PageFrames {
    /// A copy of `bytes` in a frame, unless they are too many, or so few that much of a frame would be empty.
    pub fn hold(self: &Arc<Self>, bytes: &[u8]) -> Option<PageFrame> {
        let slot_bytes = slot_bytes(bytes.len());
        if slot_bytes - bytes.len() > slot_bytes / EMPTY_PART {
            return None;
        }
        let slot = self.classes.get(slot_bytes / PAGE_BYTES - 1)?.lock().take(slot_bytes);
        Some(PageFrame::new(slot, bytes, Arc::clone(self)))
    }

    /// Does what frees many frames, and gives their memory back in few pieces.
    pub fn free_many(&self, free: impl FnOnce()) {
        self.is_gathering.store(true, Ordering::Relaxed);
        free();
        self.is_gathering.store(false, Ordering::Relaxed);
        for (class, slot_bytes) in self.classes.iter().zip((PAGE_BYTES..).step_by(PAGE_BYTES)) {
            let surplus = class.lock().surplus(slot_bytes);
            give_back(class, surplus, slot_bytes);
        }
    }

    /// Takes back the slot of a frame of this length.
    fn put_back(&self, slot: Slot, len_bytes: usize) {
        let slot_bytes = slot_bytes(len_bytes);
        let Some(class) = self.classes.get(slot_bytes / PAGE_BYTES - 1) else { return };
        let mut free = class.lock();
        free.kept.push(slot);
        if !self.is_gathering.load(Ordering::Relaxed) {
            let surplus = free.surplus(slot_bytes);
            drop(free);
            give_back(class, surplus, slot_bytes);
        }
    }
}

impl Class {
    fn take(&mut self, slot_bytes: usize) -> Slot {
        self.kept.pop().or_else(|| self.released.pop()).unwrap_or_else(|| self.carve(slot_bytes))
    }

    /// Free ones that are not to be kept.
    fn surplus(&mut self, slot_bytes: usize) -> Vec<Slot> {
        self.kept.split_off(self.kept.len().min(KEPT_BYTES / slot_bytes))
    }

    fn carve(&mut self, slot_bytes: usize) -> Slot {
        let has_room = !self.slabs.is_empty() && self.carved_bytes + slot_bytes <= SLAB_BYTES;
        if !has_room {
            self.slabs.push(Slab::new(SLAB_BYTES));
            self.carved_bytes = 0;
        }
        let at = self.carved_bytes;
        self.carved_bytes += slot_bytes;
        self.slabs[self.slabs.len() - 1].carve(at, slot_bytes)
    }
}

/// Gives the memory of free slots back to the system. Nobody waits for the lock meanwhile.
fn give_back(class: &Mutex<Class>, mut surplus: Vec<Slot>, slot_bytes: usize) {
    release(&mut surplus, slot_bytes);
    class.lock().released.append(&mut surplus);
}

/// How long a slot for so many bytes is.
fn slot_bytes(len_bytes: usize) -> usize {
    len_bytes.max(1).next_multiple_of(PAGE_BYTES)
}
