//! [`Held`]: memory that is in a sum for as long as it is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    sum: Arc<AtomicUsize>,
}

impl Held {
    pub(crate) fn new(bytes: usize, sum: &Arc<AtomicUsize>) -> Self {
        sum.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, sum: Arc::clone(sum) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The sum that it is in.
    pub(crate) fn sum(&self) -> &Arc<AtomicUsize> {
        &self.sum
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
