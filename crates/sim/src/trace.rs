//! A rolling hash of everything that happens, so that two runs can be compared.

use std::hash::{DefaultHasher, Hash, Hasher};

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(DefaultHasher);

impl Trace {
    pub(crate) fn add(&mut self, event: impl Hash) {
        event.hash(&mut self.0);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.finish()
    }
}
