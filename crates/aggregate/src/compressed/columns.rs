//! Records in order, column by column: what a chunk is packed from and unpacked to.

use std::ops::Range;

use forebay_base::wire::is_same;

/// Byte strings side by side, all of one length or each of its own.
#[derive(Debug, Default)]
pub(super) struct Strings {
    /// The length of all.
    length: Option<usize>,
    /// Where each ends in `bytes`; empty where all are of one length.
    ends: Vec<u32>,
    pub(super) bytes: Vec<u8>,
}

impl Strings {
    pub(super) fn new(length: Option<usize>) -> Self {
        Self { length, ..Self::default() }
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<u32>() * self.ends.capacity()
    }

    /// Where the string at `index` begins; that behind the last is where they end.
    #[inline]
    fn start(&self, index: usize) -> usize {
        match self.length {
            Some(length) => index * length,
            None => index.checked_sub(1).map_or(0, |before| self.ends[before] as usize),
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.start(index + 1)]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> &mut [u8] {
        let (start, end) = (self.start(index), self.start(index + 1));
        &mut self.bytes[start..end]
    }

    #[inline]
    pub(super) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        if self.length.is_none() {
            self.ends.push(self.bytes.len() as u32);
        }
    }

    fn extend(&mut self, from: &Self, range: Range<usize>) {
        debug_assert_eq!(self.length, from.length, "strings of one kind");
        let (start, end, here) = (from.start(range.start), from.start(range.end), self.bytes.len());
        self.bytes.extend_from_slice(&from.bytes[start..end]);
        if self.length.is_none() {
            let moved = from.ends[range].iter().map(|&end| (end as usize - start + here) as u32);
            self.ends.extend(moved);
        }
    }

    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        let mut start = 0;
        self.ends.iter().map(move |&end| u64::from(end - std::mem::replace(&mut start, end)))
    }

    /// Says how long the strings are that `bytes` will be. Returns how many bytes those are.
    pub(super) fn set_lengths(&mut self, lengths: &[u64]) -> Option<usize> {
        let mut end = 0u64;
        self.ends.clear();
        for &length in lengths {
            end = end.checked_add(length).filter(|&end| end <= u64::from(u32::MAX))?;
            self.ends.push(end as u32);
        }
        debug_assert_eq!(self.ends.len(), lengths.len());
        Some(end as usize)
    }
}

/// Sorted records of different keys.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) hashes: Vec<u64>,
    pub(super) keys: Strings,
    pub(super) states: Strings,
}

impl Columns {
    pub(super) fn new(state_bytes: Option<usize>) -> Self {
        Self { hashes: Vec::new(), keys: Strings::default(), states: Strings::new(state_bytes) }
    }

    /// Whether there are as many keys and states as hashes.
    pub(super) fn is_whole(&self) -> bool {
        let is_whole = |strings: &Strings| strings.start(self.len()) == strings.bytes.len();
        is_whole(&self.keys) && is_whole(&self.states)
    }

    /// Forgets all records and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.keys.clear();
        self.states.clear();
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Bytes of keys and states.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes.len() + self.states.bytes.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<u64>() * self.hashes.capacity() + self.keys.memory_bytes() + self.states.memory_bytes()
    }

    #[inline]
    pub(super) fn push(&mut self, hash: u64, key: &[u8], state: &[u8]) {
        debug_assert!(self.hashes.last().is_none_or(|&last| last <= hash), "records come in order");
        debug_assert!(self.states.length.is_none_or(|length| length == state.len()));
        self.hashes.push(hash);
        self.keys.push(key);
        self.states.push(state);
    }

    /// The end of the shortest part of a range, from its start on, that has this many bytes, or of all of it.
    pub(super) fn reach(&self, range: Range<usize>, bytes: usize) -> usize {
        let place = |index| self.keys.start(index) + self.states.start(index);
        debug_assert!(range.start < range.end && range.end <= self.len());
        let wanted = place(range.start) + bytes;
        let (mut low, mut high) = (range.start + 1, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match place(middle) < wanted {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        high
    }

    /// Adds a range of the records of other columns.
    pub(super) fn extend(&mut self, from: &Self, range: Range<usize>) {
        self.keys.extend(&from.keys, range.clone());
        self.states.extend(&from.states, range.clone());
        self.hashes.extend_from_slice(&from.hashes[range]);
        debug_assert!(self.is_whole(), "each record has a hash, a key and a state");
    }

    /// The first record from `start` on that is not below this place in the order.
    #[inline]
    pub(super) fn seek(&self, start: usize, hash: u64, key: &[u8]) -> usize {
        let mut at = start;
        while at < self.len()
            && (self.hashes[at] < hash || self.hashes[at] == hash && self.keys.get(at) < key)
        {
            at += 1;
        }
        at
    }

    /// Whether the record at `index`, if there is one, is this key's.
    #[inline]
    pub(super) fn is(&self, index: usize, hash: u64, key: &[u8]) -> bool {
        self.hashes.get(index) == Some(&hash) && is_same(self.keys.get(index), key)
    }
}
