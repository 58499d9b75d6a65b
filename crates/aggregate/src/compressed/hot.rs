//! Keys that come again and again: a small table in front of the root, so that they do not descend. Where few come
//! again it is passed by for a while.

use forebay_base::{Block, Record};

use crate::aggregate::Aggregate;

/// So many keys it holds: with their states they fit the second cache.
const KEYS_MAX: usize = 8 << 10;
const SLOTS: usize = 2 * KEYS_MAX;
/// Fewer adds a key than this are not worth the table,
const ADDS_PER_KEY_MIN: f64 = 1.25;
/// which is then passed by for so many adds.
const PASSED_BY: u64 = 64 * KEYS_MAX as u64;

/// Keys with states of a fixed length.
pub(super) struct Hot {
    keys: Block,
    /// One more than the place in `keys`; 0 for none.
    slots: Vec<u32>,
    adds: u64,
    passes_by: u64,
}

impl Hot {
    /// An empty table; `keys` is an empty block of the records' shape.
    pub(super) fn new(keys: Block) -> Self {
        Self { keys, slots: vec![0; SLOTS], adds: 0, passes_by: 0 }
    }

    /// Merges a state into its key's. `false` where the table is passed by, or full: see [`keys`](Self::keys).
    #[inline]
    pub(super) fn add<A: Aggregate>(&mut self, function: &A, prefix: u64, key: &[u8], state: &[u8]) -> bool {
        if self.passes_by > 0 {
            self.passes_by -= 1;
            return false;
        }
        let mut slot = prefix as usize % SLOTS;
        while let Some(place) = (self.slots[slot] as usize).checked_sub(1) {
            if self.keys.prefixes()[place] == prefix && self.keys.key(place) == key {
                function.merge_in_place(self.keys.value_mut(place), state);
                self.adds += 1;
                return true;
            }
            slot = (slot + 1) % SLOTS;
        }
        if self.keys.len() == KEYS_MAX {
            return false;
        }
        self.keys.push(prefix, &Record::put(key, state));
        self.slots[slot] = self.keys.len() as u32;
        self.adds += 1;
        true
    }

    /// What it holds.
    pub(super) fn keys(&self) -> &Block {
        &self.keys
    }

    /// Whether it holds as much as it may.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.keys.len() == KEYS_MAX
    }

    /// Forgets all keys, and decides whether the next ones pass by.
    pub(super) fn clear(&mut self) {
        if (self.adds as f64) < ADDS_PER_KEY_MIN * self.keys.len() as f64 {
            self.passes_by = PASSED_BY;
        }
        self.keys.clear();
        self.slots.fill(0);
        self.adds = 0;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + size_of::<u32>() * self.slots.capacity()
    }
}
