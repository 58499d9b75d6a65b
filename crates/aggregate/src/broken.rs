//! Groups that are lost: their states became too long to be kept. All others go on.

use std::collections::BTreeMap;

use forebay_base::Error;

/// Keys, each with what is told to whoever asks for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken(BTreeMap<Box<[u8]>, Error>);

impl Broken {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is told of a key, if its group is lost.
    pub(crate) fn of(&self, key: &[u8]) -> Option<&Error> {
        self.0.get(key)
    }

    pub(crate) fn add(&mut self, key: &[u8], error: Error) {
        self.0.entry(key.into()).or_insert(error);
    }

    /// What is told of the first of them.
    pub(crate) fn first(&self) -> Option<&Error> {
        self.0.values().next()
    }

    /// Takes all of the other's.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Takes off those whose keys are such.
    pub(crate) fn split_off(&mut self, is_taken: impl Fn(&[u8]) -> bool) -> Self {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(key, _)| is_taken(key));
        self.0 = left;
        Self(taken)
    }

    /// About.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.keys().map(|key| key.len() + ENTRY_BYTES).sum()
    }
}

/// What a key takes beside its own bytes: places in the map, and what is told, which names the key's beginning.
const ENTRY_BYTES: usize = 512;
