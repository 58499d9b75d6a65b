//! What a thread that adds has for itself.

use super::hot::Hot;
use super::options::Sizes;
use super::worker::{Shared, recount};
use crate::aggregate::Aggregate;

/// See the module.
pub(super) struct Stripe {
    /// Where states are of a fixed length.
    pub(super) hot: Option<Hot>,
    /// The state of the last value.
    pub(super) lifted: Vec<u8>,
    counted_bytes: usize,
}

impl Stripe {
    pub(super) fn new(state_bytes: Option<usize>, sizes: &Sizes) -> Self {
        let hot = state_bytes.map(|bytes| Hot::new(bytes, sizes.hot_bytes));
        Self { hot, lifted: Vec::new(), counted_bytes: 0 }
    }

    /// Counts the memory that it takes now.
    pub(super) fn count<A: Aggregate>(&mut self, shared: &Shared<A>) {
        let bytes = self.lifted.capacity() + self.hot.as_ref().map_or(0, Hot::memory_bytes);
        let before = std::mem::replace(&mut self.counted_bytes, bytes);
        if before != bytes {
            recount(&shared.room.stripe_bytes, before, bytes);
        }
    }

    /// Takes no more memory than it needs.
    pub(super) fn shrink<A: Aggregate>(&mut self, shared: &Shared<A>) {
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.is_empty()) {
            *hot = Hot::new(hot.state_bytes(), shared.sizes.hot_bytes);
        }
        self.count(shared);
    }
}
