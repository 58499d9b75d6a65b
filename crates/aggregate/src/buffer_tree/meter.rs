//! Counting memory that goes from thread to thread.

use forebay_env::sync::Arc;
use forebay_env::sync::atomic::{AtomicUsize, Ordering};

/// How much is held.
#[derive(Clone, Default)]
pub(super) struct Meter(Arc<AtomicUsize>);

/// Some memory, until it is dropped.
#[derive(Default)]
pub(super) struct Held {
    meter: Meter,
    bytes: usize,
}

impl Meter {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn hold(&self, bytes: usize) -> Held {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Held { meter: self.clone(), bytes }
    }
}

impl Held {
    /// It is so much from now on.
    pub(super) fn set(&mut self, bytes: usize) {
        // It wraps where it is less than before.
        self.meter.0.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}
