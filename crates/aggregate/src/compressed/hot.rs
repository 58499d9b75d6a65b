//! Keys that come again and again: a small table in front of the leaves, so that they are not sorted and merged as
//! often as they come. Where few come again it is passed by for a while.

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
    state_bytes: usize,
    entries: Vec<Entry>,
    /// Keys, each with its state behind it.
    bytes: Vec<u8>,
    bytes_max: usize,
    /// One more than the place in `entries`; 0 for none.
    slots: Vec<u32>,
    adds: u64,
    passes_by: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    start: u32,
    key_bytes: u32,
}

impl Hot {
    /// An empty table of about so many bytes.
    pub(super) fn new(state_bytes: usize, bytes: usize) -> Self {
        let keys_max = (bytes / KEY_BYTES).clamp(KEYS_MIN, KEYS_MAX).next_power_of_two();
        let slots = vec![0; 2 * keys_max];
        let (entries, bytes_max) = (Vec::new(), bytes);
        Self { state_bytes, entries, bytes: Vec::new(), bytes_max, slots, adds: 0, passes_by: 0 }
    }

    /// Merges a state into its key's. `false` where the table is passed by, or full.
    #[inline]
    pub(super) fn add<A: Aggregate>(&mut self, function: &A, hash: u64, key: &[u8], state: &[u8]) -> bool {
        if self.passes_by > 0 {
            self.passes_by -= 1;
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(place) = (self.slots[slot] as usize).checked_sub(1) {
            let Entry { hash: other, start, key_bytes } = self.entries[place];
            if other == hash && key_bytes as usize == key.len() {
                let bytes = &mut self.bytes[start as usize..][..key.len() + self.state_bytes];
                let (other, place) = bytes.split_at_mut(key.len());
                if other == key {
                    function.merge_in_place(place, state);
                    self.adds += 1;
                    return true;
                }
            }
            slot = (slot + 1) & mask;
        }
        if self.is_full() {
            return false;
        }
        self.slots[slot] = self.entries.len() as u32 + 1;
        self.entries.push(Entry { hash, start: self.bytes.len() as u32, key_bytes: key.len() as u32 });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(state);
        self.adds += 1;
        true
    }

    /// Whether it holds as much as it may.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        2 * self.entries.len() >= self.slots.len() || self.bytes.len() >= self.bytes_max
    }

    /// Empties the table: each key goes to `take` with its hash and its state. What `take` fails for stays.
    pub(super) fn empty<E>(
        &mut self,
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if (self.adds as f64) < ADDS_PER_KEY_MIN * self.entries.len() as f64 {
            self.passes_by = (PASSED_BY * self.entries.len()) as u64;
        }
        self.adds = 0;
        self.slots.fill(0);
        while let Some(&Entry { hash, start, key_bytes }) = self.entries.last() {
            let (key, state) = self.bytes[start as usize..].split_at(key_bytes as usize);
            if let Err(error) = take(hash, key, state) {
                self.index();
                return Err(error);
            }
            self.entries.pop();
            self.bytes.truncate(start as usize);
        }
        Ok(())
    }

    /// Finds empty slots for all keys.
    fn index(&mut self) {
        let mask = self.slots.len() - 1;
        for (place, entry) in self.entries.iter().enumerate() {
            let mut slot = entry.hash as usize & mask;
            while self.slots[slot] > 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = place as u32 + 1;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Entry>() * self.entries.capacity()
            + self.bytes.capacity()
            + size_of::<u32>() * self.slots.len()
    }
}
