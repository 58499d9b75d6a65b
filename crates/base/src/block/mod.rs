//! Puts or pointers in order, side by side: what the hot loops of spills and merges work on, instead of one record at a time.
//! Records of one shape pay nothing for their lengths; others have the ends of their keys and values beside them.

mod short;

use crate::combine::Combine;
use crate::limits::STEP_BYTES;
use crate::record::Shape;
use crate::wire::put_raw;
use crate::{Error, Kind, Order, Record, Result};
use short::{End, put_short};

/// What a block should hold, in bytes: it stays in the first cache, or nearly.
const BLOCK_BYTES: usize = 32 << 10;
/// And how many records at least, however long they are.
const RECORDS_MIN: usize = 16;

const _: () =
    assert!(RECORDS_MIN < BLOCK_BYTES / 8 && BLOCK_BYTES < STEP_BYTES, "blocks are parts of a step");

/// Sorted records, and their prefixes.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// What all of them do.
    kind: Kind,
    /// Bytes of a key and of a record, where all have the same.
    fixed: Option<(usize, usize)>,
    records_max: usize,
    prefixes: Vec<u64>,
    /// Where each record ends and how long its key is, where they differ: see [`End`].
    ends: Vec<End>,
    bytes: Vec<u8>,
}

impl Block {
    /// An empty block for records of this shape; `None` where they are not all puts, or all pointers of one length.
    pub fn new(shape: Shape) -> Option<Self> {
        let kind = shape.kind()?;
        let fixed = shape.sizes().map(|(key_bytes, value_bytes)| (key_bytes, key_bytes + value_bytes));
        let record_bytes = fixed.map_or(0, |(_, record_bytes)| record_bytes);
        let records_max = (BLOCK_BYTES / record_bytes.max(1)).clamp(RECORDS_MIN, BLOCK_BYTES / 8);
        Some(Self { kind, fixed, records_max, ..Self::default() })
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.prefixes.clear();
        self.ends.clear();
        self.bytes.clear();
    }

    /// How many records.
    #[inline]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// How many more it should take.
    #[inline]
    pub fn room(&self) -> usize {
        // Two at least, so that whoever keeps one back gets on.
        if self.fixed.is_none() && self.bytes.len() >= BLOCK_BYTES && self.len() > 1 {
            return 0;
        }
        self.records_max.saturating_sub(self.len())
    }

    /// What every record does.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Bytes of one record, where all have the same.
    #[inline]
    pub fn record_bytes(&self) -> Option<usize> {
        self.fixed.map(|(_, record_bytes)| record_bytes)
    }

    /// The records' prefixes.
    #[inline]
    pub fn prefixes(&self) -> &[u64] {
        &self.prefixes
    }

    /// The records: key, value, key, value.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether its bytes are those of its records, to the last one.
    fn is_whole(&self) -> bool {
        self.offset(self.len()) == self.bytes.len() && (self.fixed.is_some() || self.ends.len() == self.len())
    }

    /// Where the record at `index` begins in [`bytes`](Self::bytes); that behind the last is where they end.
    #[inline]
    pub fn offset(&self, index: usize) -> usize {
        match self.fixed {
            Some((_, record_bytes)) => index * record_bytes,
            None => index.checked_sub(1).map_or(0, |before| self.ends[before].end()),
        }
    }

    /// How long the key of the record at `index` is.
    #[inline]
    fn key_bytes(&self, index: usize) -> usize {
        self.fixed.map_or_else(|| self.ends[index].key_bytes(), |(key_bytes, _)| key_bytes)
    }

    /// The key of the record at `index`, below [`len`](Self::len).
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        let at = self.offset(index);
        &self.bytes[at..at + self.key_bytes(index)]
    }

    /// The value of the record at `index`, below [`len`](Self::len).
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        &self.bytes[self.offset(index) + self.key_bytes(index)..self.offset(index + 1)]
    }

    /// The record at `index`, below [`len`](Self::len).
    #[inline]
    pub fn record(&self, index: usize) -> Record<'_> {
        Record { kind: self.kind, key: self.key(index), value: self.value(index) }
    }

    /// Adds a record of the block's shape.
    #[inline]
    pub fn push(&mut self, prefix: u64, record: &Record<'_>) {
        debug_assert_eq!(record.kind, self.kind, "a block's records do the same");
        self.prefixes.push(prefix);
        put_raw(&mut self.bytes, record.key);
        put_raw(&mut self.bytes, record.value);
        match self.fixed {
            None => self.ends.push(End::new(self.bytes.len(), record.key.len())),
            Some((key_bytes, record_bytes)) => debug_assert_eq!(
                (record.key.len(), record.value.len()),
                (key_bytes, record_bytes - key_bytes)
            ),
        }
    }

    /// Adds the records whose keys and values lie in `from` at these places. The block must be of a fixed shape.
    #[inline]
    pub fn gather(&mut self, order: Order, from: &[u8], places: impl ExactSizeIterator<Item = usize>) {
        debug_assert!(self.fixed.is_some(), "records of any length are not gathered");
        let Some((key_bytes, record_bytes)) = self.fixed else { return };
        // The shortest records are copied by a load and a store rather than a call.
        match record_bytes {
            16 => self.gather_sized::<16>(key_bytes, order, from, places),
            24 => self.gather_sized::<24>(key_bytes, order, from, places),
            32 => self.gather_sized::<32>(key_bytes, order, from, places),
            64 => self.gather_sized::<64>(key_bytes, order, from, places),
            bytes => places.for_each(|place| self.append(key_bytes, order, &from[place..place + bytes])),
        }
    }

    fn gather_sized<const N: usize>(
        &mut self,
        key_bytes: usize,
        order: Order,
        from: &[u8],
        places: impl ExactSizeIterator<Item = usize>,
    ) {
        self.prefixes.reserve(places.len());
        self.bytes.reserve(places.len() * N);
        for place in places {
            if let Some(record) = from[place..].first_chunk::<N>() {
                self.append(key_bytes, order, record);
            }
        }
    }

    #[inline(always)]
    fn append(&mut self, key_bytes: usize, order: Order, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.prefixes.push(order.prefix(&record[..key_bytes]));
    }

    /// Adds the records at these places of another block of this shape.
    pub fn pick(&mut self, from: &Self, places: impl ExactSizeIterator<Item = usize>) {
        debug_assert_eq!((self.kind, self.fixed), (from.kind, from.fixed), "blocks of one shape");
        match self.record_bytes() {
            Some(16) => self.pick_sized::<16>(from, places),
            Some(24) => self.pick_sized::<24>(from, places),
            Some(32) => self.pick_sized::<32>(from, places),
            Some(64) => self.pick_sized::<64>(from, places),
            _ => places.for_each(|place| self.copy(from, place)),
        }
    }

    /// Adds a record of another block of this shape.
    #[inline]
    fn copy(&mut self, from: &Self, index: usize) {
        let (start, end) = (from.offset(index), from.offset(index + 1));
        self.prefixes.push(from.prefixes[index]);
        put_short(&mut self.bytes, &from.bytes, start, end);
        if self.fixed.is_none() {
            self.ends.push(End::new(self.bytes.len(), from.ends[index].key_bytes()));
        }
    }

    fn pick_sized<const N: usize>(&mut self, from: &Self, places: impl ExactSizeIterator<Item = usize>) {
        let records = from.bytes.as_chunks::<N>().0;
        self.prefixes.reserve(places.len());
        self.bytes.reserve(places.len() * N);
        for place in places {
            self.prefixes.push(from.prefixes[place]);
            self.bytes.extend_from_slice(&records[place]);
        }
    }

    /// Adds a range of the records of another block, of this shape or one that this one's allows.
    pub fn extend(&mut self, from: &Self, range: std::ops::Range<usize>) {
        if self.fixed != from.fixed {
            return range.for_each(|index| self.push(from.prefixes[index], &from.record(index)));
        }
        debug_assert!(from.is_whole() && range.end <= from.len());
        let (start, end) = (from.offset(range.start), from.offset(range.end));
        let before = self.bytes.len();
        self.prefixes.extend_from_slice(&from.prefixes[range.clone()]);
        self.bytes.extend_from_slice(&from.bytes[start..end]);
        if self.fixed.is_none() {
            let moved =
                from.ends[range].iter().map(|end| End::new(end.end() - start + before, end.key_bytes()));
            self.ends.extend(moved);
        }
    }

    /// Adds records from the front of `run`, which holds them side by side and in order, while their prefixes are
    /// at most `high`. Returns how many. The block must be of a fixed shape.
    pub fn extend_up_to(&mut self, order: Order, run: &[u8], high: u64) -> usize {
        debug_assert!(self.fixed.is_some(), "records of any length do not lie side by side");
        let Some((key_bytes, record_bytes)) = self.fixed else { return 0 };
        let first = self.prefixes.len();
        for record in run.chunks_exact(record_bytes.max(1)) {
            let prefix = order.prefix(&record[..key_bytes]);
            if prefix > high {
                break;
            }
            self.prefixes.push(prefix);
        }
        let count = self.prefixes.len() - first;
        self.bytes.extend_from_slice(&run[..count * record_bytes]);
        count
    }

    /// Whether the record at `index` has the key of the one before it.
    #[inline]
    fn repeats(&self, index: usize) -> bool {
        self.prefixes[index - 1] == self.prefixes[index] && self.key(index - 1) == self.key(index)
    }

    /// Whether two neighbours may have one key.
    fn is_suspicious(&self) -> bool {
        self.prefixes.windows(2).fold(false, |any, pair| any | (pair[0] == pair[1]))
    }

    /// Keeps the first record of each key, which is its newest, and none of the key `before`. Returns how
    /// many went. `spare` is memory.
    pub fn collapse(&mut self, before: Option<(u64, &[u8])>, spare: &mut Self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let first_repeats = before == Some((self.prefixes[0], self.key(0)));
        if !first_repeats && !self.is_suspicious() {
            return 0;
        }
        spare.restart_as(self);
        for index in usize::from(first_repeats)..self.len() {
            if index == 0 || !self.repeats(index) {
                spare.copy(self, index);
            }
        }
        debug_assert!(self.is_whole() && spare.is_whole(), "what is left of whole records is whole");
        std::mem::swap(self, spare);
        spare.len() - self.len()
    }

    /// Forgets all records and takes the shape of another block.
    fn restart_as(&mut self, other: &Self) {
        self.clear();
        (self.kind, self.fixed, self.records_max) = (other.kind, other.fixed, other.records_max);
    }

    /// Merges the states of each key, newest first, into one of at most this many bytes. Returns how many records went.
    /// `spare` is memory.
    pub fn fold(&mut self, rule: &impl Combine, value_bytes_max: usize, spare: &mut Self) -> Result<usize> {
        if !self.is_suspicious() {
            return Ok(0);
        }
        spare.restart_as(self);
        let mut first = 0;
        while first < self.len() {
            // Up to the first state of the next key that has several they stay as they are.
            let next = (first + 1..self.len()).find(|&index| self.repeats(index)).unwrap_or(self.len());
            spare.extend(self, first..next);
            let same = (next..self.len()).take_while(|&index| self.repeats(index)).count();
            if same > 0 {
                spare.fold_last(rule, self, next..next + same);
                let value_bytes = spare.value(spare.len() - 1).len();
                if value_bytes > value_bytes_max {
                    return Err(Error::too_long(self.key(next), value_bytes, value_bytes_max));
                }
            }
            first = next + same;
        }
        debug_assert!(self.is_whole() && spare.is_whole(), "what whole records come to is whole");
        std::mem::swap(self, spare);
        Ok(spare.len() - self.len())
    }

    /// Merges older states of its key, which lie in `from`, into the last record.
    fn fold_last(&mut self, rule: &impl Combine, from: &Self, older: std::ops::Range<usize>) {
        debug_assert!(older.start > 0 && older.end <= from.len(), "what is newer stands before it");
        let last = self.len() - 1;
        let (end, key_bytes) = (self.bytes.len(), self.key_bytes(last));
        let value_start = self.offset(last) + key_bytes;
        let in_place = older.clone().all(|index| {
            let state = from.value(index);
            state.len() == end - value_start && rule.merge_in_place(&mut self.bytes[value_start..end], state)
        });
        if !in_place {
            // From the first one on: some may have been merged in place already.
            let states: Vec<&[u8]> = (older.start - 1..older.end).map(|index| from.value(index)).collect();
            self.bytes.truncate(value_start);
            rule.merge_states(from.key(older.start), &states, &mut self.bytes);
            if let Some(last) = self.ends.last_mut() {
                *last = End::new(self.bytes.len(), key_bytes);
            }
        }
    }

    /// Takes the last record off into `held`, an empty block of this shape.
    pub fn split_last(&mut self, held: &mut Self) {
        debug_assert!(held.is_empty() && held.fixed == self.fixed);
        let Some(last) = self.len().checked_sub(1) else { return };
        held.push(self.prefixes[last], &self.record(last));
        let end = self.offset(last);
        self.prefixes.truncate(last);
        self.ends.truncate(last);
        self.bytes.truncate(end);
        debug_assert!(self.is_whole() && held.len() == 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn collapsing_keeps_the_first_of_each_key(mut keys: Vec<[u8; 2]>, before: Option<[u8; 2]>, of in 0..3usize) {
            let order = Order::Lexical;
            keys.iter_mut().for_each(|key| key[1] &= 3);
            keys.sort_unstable();
            let fixed = Shape::Fixed { key_bytes: 2, value_bytes: 1 };
            let shape = [fixed, Shape::Puts, Shape::Pointers { key_bytes: 2 }][of];
            let (_, value_bytes) = shape.sizes().unwrap_or((2, 5));
            let value = |age: usize| vec![age as u8; value_bytes];
            let kind = shape.kind().unwrap();
            let Some(mut block) = Block::new(shape) else { unreachable!() };
            for (age, key) in keys.iter().enumerate() {
                block.push(order.prefix(key), &Record { kind, key, value: &value(age) });
            }
            let last = before.map(|key| (order.prefix(&key), key));
            let gone = block.collapse(last.as_ref().map(|(prefix, key)| (*prefix, &key[..])), &mut Block::default());
            let mut expected: Vec<Vec<u8>> =
                keys.iter().enumerate().map(|(age, key)| [key.to_vec(), value(age)].concat()).collect();
            expected.dedup_by_key(|record| [record[0], record[1]]);
            // Only a first key can repeat the last one of the block before.
            if expected.first().is_some_and(|first| before == Some([first[0], first[1]])) {
                expected.remove(0);
            }
            prop_assert_eq!(gone, keys.len() - expected.len());
            prop_assert_eq!(block.bytes(), expected.concat());
            prop_assert_eq!(block.prefixes().len(), expected.len());
            prop_assert!((0..block.len()).all(|index| block.record(index).kind == kind));
        }
    }
}
