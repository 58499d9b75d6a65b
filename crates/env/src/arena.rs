//! [`Arena`]: the write buffer's memory. Fixed size, append-only, recycled, never moved.
//!
//! **Invariant:** a byte is readable only if it was appended since the arena was made or recycled, and
//! by readers only once it was published. The memory part, and why it is sound, is in `kernel.rs`.

use std::ops::Range;

use crate::kernel::{self, Pages};
use crate::sync::Arc;

pub use crate::kernel::{Appender, Arena};

impl Arena {
    /// An empty arena of `capacity_bytes`, and its only appender.
    pub fn new(capacity_bytes: usize) -> (Arc<Self>, Appender) {
        kernel::arena(Pages::zeroed(capacity_bytes))
    }

    /// The first `len_bytes` of what readers may see, or all of it when that is less.
    pub fn prefix(&self, len_bytes: usize) -> &[u8] {
        let bytes = self.bytes();
        &bytes[..len_bytes.min(bytes.len())]
    }

    /// `range`, if all of it is published.
    pub fn reader_view(&self, range: Range<usize>) -> Option<&[u8]> {
        self.bytes().get(range)
    }

    /// Starts again at length 0 without touching the memory: first touch of a page is what costs.
    /// Gives the arena back when somebody else, its appender included, still holds it.
    pub fn recycle(arena: Arc<Self>) -> Result<(Arc<Self>, Appender), Arc<Self>> {
        kernel::reclaim(arena).map(kernel::arena)
    }
}
