//! Keys that come again and again: a small table in front of the leaves, so that they are not sorted and merged as
//! often as they come. Where few come again it is passed by for a while.

use forebay_base::wire::is_same;
use forebay_env::prefetch;

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

/// What stands before a key: its hash, and how many bytes it has.
const HEADER_BYTES: usize = size_of::<u64>() + size_of::<u16>();

/// Keys with states of a fixed length.
pub(super) struct Hot {
    state_bytes: usize,
    /// How many keys there are.
    keys: usize,
    /// `hash | u16 key bytes | key | state`, one behind the other.
    bytes: Vec<u8>,
    bytes_max: usize,
    slots: Vec<Slot>,
    adds: u64,
    passes_by: u64,
}

/// Where a key may be. A half of its hash tells nearly all that are others, so that those are not looked at.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    /// One more than the place in `bytes`; 0 for none.
    start: u32,
}

impl Slot {
    fn new(hash: u64, place: usize) -> Self {
        debug_assert!(u32::try_from(place + 1).is_ok(), "places are of 32 bits");
        Self { tag: tag(hash), start: place as u32 + 1 }
    }

    #[inline]
    fn place(self) -> Option<usize> {
        (self.start as usize).checked_sub(1)
    }
}

#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Hot {
    /// An empty table of about this many bytes.
    pub(super) fn new(state_bytes: usize, bytes: usize) -> Self {
        Self {
            state_bytes,
            keys: 0,
            bytes: Vec::new(),
            bytes_max: bytes / 2,
            slots: vec![Slot::default(); SLOTS_MIN],
            adds: 0,
            passes_by: 0,
        }
    }

    /// Asks for what is looked at to find these keys, all at the same time.
    #[inline]
    pub(super) fn prefetch(&self, hashes: &[u64]) {
        if self.passes_by > 0 {
            return;
        }
        let slots = || hashes.iter().map(|hash| &self.slots[*hash as usize & (self.slots.len() - 1)]);
        slots().for_each(prefetch);
        for place in slots().filter_map(|slot| slot.place()) {
            self.bytes.get(place).into_iter().for_each(prefetch);
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
        let (mask, tag) = (self.slots.len() - 1, tag(hash));
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let start = slot.place()?;
            if slot.tag == tag {
                let (_, other) = record_at(&self.bytes, start)?;
                if is_same(other, key) {
                    return Some(start + HEADER_BYTES + key.len());
                }
            }
            at = (at + 1) & mask;
        }
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
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&hash.to_le_bytes());
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(state);
        self.keys += 1;
        self.adds += 1;
        if 2 * self.keys > self.slots.len() {
            self.slots = vec![Slot::default(); 2 * self.slots.len()];
            self.index_all();
        } else {
            self.index(hash, start);
        }
        true
    }

    /// Whether it holds as much as it may.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.keys >= KEYS_MAX || self.bytes.len() >= self.bytes_max
    }

    /// Empties the table: each key goes to `take` with its hash and its state. What `take` fails for stays.
    pub(super) fn empty<E>(
        &mut self,
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // What is left of a time before tells nothing.
        if self.adds > 0 && (self.adds as f64) < ADDS_PER_KEY_MIN * self.keys as f64 {
            self.passes_by = (PASSED_BY * self.keys) as u64;
        }
        self.adds = 0;
        self.slots.fill(Slot::default());
        let (mut place, mut outcome) = (0, Ok(()));
        while let Some((hash, key)) = record_at(&self.bytes, place) {
            let state = place + HEADER_BYTES + key.len();
            outcome = take(hash, key, &self.bytes[state..state + self.state_bytes]);
            if outcome.is_err() {
                break;
            }
            self.keys -= 1;
            place = state + self.state_bytes;
        }
        self.bytes.drain(..place);
        debug_assert!(outcome.is_err() || self.keys == 0 && self.bytes.is_empty(), "all of it has left");
        if outcome.is_err() {
            self.index_all();
        }
        outcome
    }

    /// Finds an empty slot for each key; all slots are empty.
    fn index_all(&mut self) {
        let (mut place, mut keys) = (0, 0);
        while let Some((hash, key)) = record_at(&self.bytes, place) {
            let end = place + HEADER_BYTES + key.len() + self.state_bytes;
            self.index(hash, place);
            (place, keys) = (end, keys + 1);
        }
        debug_assert_eq!(keys, self.keys, "each key has a slot");
    }

    /// Finds an empty slot for the key of the record at a place.
    fn index(&mut self, hash: u64, place: usize) {
        debug_assert!(self.slots.len().is_power_of_two() && self.keys < self.slots.len());
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].start > 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot::new(hash, place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Gives the memory of an empty table to the allocator.
    pub(super) fn shrink(&mut self) {
        *self = Self::new(self.state_bytes, 2 * self.bytes_max);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<Slot>() * self.slots.len()
    }
}

/// The hash and the key of the record at a place; nothing behind the last.
#[inline]
fn record_at(bytes: &[u8], place: usize) -> Option<(u64, &[u8])> {
    let (hash, rest) = bytes.get(place..)?.split_first_chunk()?;
    let (key_bytes, rest) = rest.split_first_chunk()?;
    Some((u64::from_le_bytes(*hash), rest.get(..u16::from_le_bytes(*key_bytes) as usize)?))
}
