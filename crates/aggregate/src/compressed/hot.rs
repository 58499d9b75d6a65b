//! Keys that come again and again: a small table in front of the root, so that they do not descend. Where few come
//! again it is passed by for a while.

use forebay_base::{Block, Record};

use crate::aggregate::Aggregate;

/// So many keys it holds at most: with their states they fit the second cache.
const KEYS_MAX: usize = 8 << 10;
const KEYS_MIN: usize = 256;
/// What a key takes, about.
const KEY_BYTES: usize = 64;
/// Fewer adds a key than this are not worth the table,
const ADDS_PER_KEY_MIN: f64 = 1.25;
/// which is then passed by for so many adds for each that it could hold.
const PASSED_BY: usize = 64;

/// Keys with states of a fixed length.
pub(super) struct Hot {
    keys: Block,
    /// One more than the place in `keys`; 0 for none.
    slots: Vec<u32>,
    adds: u64,
    passes_by: u64,
}

impl Hot {
    /// An empty table of about so many bytes; `keys` is an empty block of the records' shape.
    pub(super) fn new(keys: Block, bytes: usize) -> Self {
        let keys_max = (bytes / KEY_BYTES).clamp(KEYS_MIN, KEYS_MAX).next_power_of_two();
        Self { keys, slots: vec![0; 2 * keys_max], adds: 0, passes_by: 0 }
    }

    /// Merges a state into its key's. `false` where the table is passed by, or full: see [`keys`](Self::keys).
    #[inline]
    pub(super) fn add<A: Aggregate>(&mut self, function: &A, prefix: u64, key: &[u8], state: &[u8]) -> bool {
        if self.passes_by > 0 {
            self.passes_by -= 1;
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut slot = prefix as usize & mask;
        while let Some(place) = (self.slots[slot] as usize).checked_sub(1) {
            if self.keys.prefixes()[place] == prefix && self.keys.key(place) == key {
                function.merge_in_place(self.keys.value_mut(place), state);
                self.adds += 1;
                return true;
            }
            slot = (slot + 1) & mask;
        }
        if self.is_full() {
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
        2 * self.keys.len() >= self.slots.len()
    }

    /// Forgets all keys, and decides whether the next ones pass by.
    pub(super) fn clear(&mut self) {
        if (self.adds as f64) < ADDS_PER_KEY_MIN * self.keys.len() as f64 {
            self.passes_by = (PASSED_BY * self.keys.len()) as u64;
        }
        self.keys.clear();
        self.slots.fill(0);
        self.adds = 0;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + size_of::<u32>() * self.slots.capacity()
    }
}
