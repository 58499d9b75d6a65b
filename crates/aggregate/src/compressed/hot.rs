//! Keys that come again and again: a small table in front of the leaves, so that they are not sorted and merged as
//! often as they come. Where few come again it is passed by for a while.

use forebay_base::wire::is_same;

use super::stripe::is_short;

/// This many keys it holds at most: with their states they fit the second cache.
const KEYS_MAX: usize = 8 << 10;
/// It begins with this many slots, and has twice as many as keys: few keys stay in the first cache.
const SLOTS_MIN: usize = 64;
/// Fewer adds a key than this are not worth the table,
const ADDS_PER_KEY_MIN: f64 = 1.25;
/// which is then passed by for this many adds for each that it could hold.
const PASSED_BY: usize = 64;

const _: () = assert!(SLOTS_MIN.is_power_of_two() && SLOTS_MIN <= KEYS_MAX && ADDS_PER_KEY_MIN > 1.0);

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
    /// An empty table of about this many bytes.
    pub(super) fn new(state_bytes: usize, bytes: usize) -> Self {
        Self {
            state_bytes,
            entries: Vec::new(),
            bytes: Vec::new(),
            bytes_max: bytes / 2,
            slots: vec![0; SLOTS_MIN],
            adds: 0,
            passes_by: 0,
        }
    }

    /// The state of a key, if it is here and a value may be merged into it.
    #[inline]
    pub(super) fn find(&mut self, hash: u64, key: &[u8]) -> Option<&mut [u8]> {
        if self.passes_by > 0 {
            return None;
        }
        let state = self.place(hash, key)?;
        self.adds += 1;
        Some(&mut self.bytes[state..state + self.state_bytes])
    }

    /// The state of a key, if it is here.
    pub(super) fn peek(&self, hash: u64, key: &[u8]) -> Option<&[u8]> {
        let state = self.place(hash, key)?;
        Some(&self.bytes[state..state + self.state_bytes])
    }

    /// Where the state of a key is.
    #[inline]
    fn place(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(place) = (self.slots[slot] as usize).checked_sub(1) {
            let Entry { hash: other, start, key_bytes } = self.entries[place];
            if other == hash && key_bytes as usize == key.len() {
                let start = start as usize;
                if is_same(&self.bytes[start..start + key.len()], key) {
                    return Some(start + key.len());
                }
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// Takes a key that is not here. `false` where the table is passed by, or full.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, key: &[u8], state: &[u8]) -> bool {
        if self.passes_by > 0 {
            self.passes_by -= 1;
            return false;
        }
        if self.is_full() || !is_short(key, state) {
            return false;
        }
        debug_assert_eq!(state.len(), self.state_bytes, "states of one length");
        debug_assert!(u32::try_from(self.bytes.len()).is_ok(), "places are of 32 bits");
        self.entries.push(Entry { hash, start: self.bytes.len() as u32, key_bytes: key.len() as u32 });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(state);
        self.adds += 1;
        if 2 * self.entries.len() > self.slots.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            self.index(0);
        } else {
            self.index(self.entries.len() - 1);
        }
        true
    }

    /// Whether it holds as much as it may.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= KEYS_MAX || self.bytes.len() >= self.bytes_max
    }

    /// Empties the table: each key goes to `take` with its hash and its state. What `take` fails for stays.
    pub(super) fn empty<E>(
        &mut self,
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // What is left of a time before tells nothing.
        if self.adds > 0 && (self.adds as f64) < ADDS_PER_KEY_MIN * self.entries.len() as f64 {
            self.passes_by = (PASSED_BY * self.entries.len()) as u64;
        }
        self.adds = 0;
        self.slots.fill(0);
        while let Some(&Entry { hash, start, key_bytes }) = self.entries.last() {
            let (key, state) = self.bytes[start as usize..].split_at(key_bytes as usize);
            if let Err(error) = take(hash, key, state) {
                self.index(0);
                return Err(error);
            }
            self.entries.pop();
            self.bytes.truncate(start as usize);
        }
        Ok(())
    }

    /// Finds empty slots for all keys from this one on.
    fn index(&mut self, first: usize) {
        debug_assert!(self.slots.len().is_power_of_two() && self.entries.len() < self.slots.len());
        let mask = self.slots.len() - 1;
        for (place, entry) in self.entries.iter().enumerate().skip(first) {
            let mut slot = entry.hash as usize & mask;
            while self.slots[slot] > 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = place as u32 + 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives the memory of an empty table to the allocator.
    pub(super) fn shrink(&mut self) {
        *self = Self::new(self.state_bytes, 2 * self.bytes_max);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Entry>() * self.entries.capacity()
            + self.bytes.capacity()
            + size_of::<u32>() * self.slots.len()
    }
}
