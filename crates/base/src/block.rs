//! Records of one fixed shape, in order, side by side: what the hot loops of spills work on, instead of one
//! record at a time. Every record of a block is a put.

use crate::record::Shape;
use crate::wire::put_raw;
use crate::{Order, Record};

/// What a block should hold, in bytes: it stays in the first cache, or nearly.
const BLOCK_BYTES: usize = 32 << 10;
/// And how many records at least, however long they are.
const RECORDS_MIN: usize = 16;

/// Sorted records of one shape, and their prefixes.
#[derive(Debug, Default)]
pub struct Block {
    key_bytes: usize,
    record_bytes: usize,
    records_max: usize,
    prefixes: Vec<u64>,
    bytes: Vec<u8>,
}

impl Block {
    /// An empty block for records of this shape; `None` where they have none in common.
    pub fn new(shape: Shape) -> Option<Self> {
        let Shape::Fixed { key_bytes, value_bytes } = shape else { return None };
        let (key_bytes, record_bytes) = (key_bytes as usize, key_bytes as usize + value_bytes as usize);
        let records_max = (BLOCK_BYTES / record_bytes.max(1)).clamp(RECORDS_MIN, BLOCK_BYTES / 8);
        Some(Self { key_bytes, record_bytes, records_max, ..Self::default() })
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.prefixes.clear();
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
        self.records_max.saturating_sub(self.len())
    }

    /// Bytes of one record.
    #[inline]
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
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

    /// The key of the record at `index`, below [`len`](Self::len).
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        let at = index * self.record_bytes;
        &self.bytes[at..at + self.key_bytes]
    }

    /// The record at `index`, below [`len`](Self::len).
    #[inline]
    pub fn record(&self, index: usize) -> Record<'_> {
        let at = index * self.record_bytes;
        let (key, value) = self.bytes[at..at + self.record_bytes].split_at(self.key_bytes);
        Record::put(key, value)
    }

    /// Adds a put of the block's shape.
    #[inline]
    pub fn push(&mut self, prefix: u64, record: &Record<'_>) {
        debug_assert_eq!(
            (record.key.len(), record.value.len()),
            (self.key_bytes, self.record_bytes - self.key_bytes)
        );
        self.prefixes.push(prefix);
        put_raw(&mut self.bytes, record.key);
        put_raw(&mut self.bytes, record.value);
    }

    /// Adds the records whose keys and values lie in `from` at these places.
    #[inline]
    pub fn gather(&mut self, order: Order, from: &[u8], places: impl ExactSizeIterator<Item = usize>) {
        // The shortest records are copied by a load and a store rather than a call.
        match self.record_bytes {
            16 => self.gather_sized::<16>(order, from, places),
            32 => self.gather_sized::<32>(order, from, places),
            64 => self.gather_sized::<64>(order, from, places),
            bytes => places.for_each(|place| self.append(order, &from[place..place + bytes])),
        }
    }

    /// Adds the records at these places of another block of this shape.
    pub fn pick(&mut self, from: &Self, places: impl ExactSizeIterator<Item = usize>) {
        match self.record_bytes {
            16 => self.pick_sized::<16>(from, places),
            32 => self.pick_sized::<32>(from, places),
            64 => self.pick_sized::<64>(from, places),
            bytes => places.for_each(|place| {
                self.prefixes.push(from.prefixes[place]);
                self.bytes.extend_from_slice(&from.bytes[place * bytes..(place + 1) * bytes]);
            }),
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

    /// Adds records from the front of `run`, which holds them side by side and in order, while their prefixes are
    /// at most `high`. Returns how many.
    pub fn extend_up_to(&mut self, order: Order, run: &[u8], high: u64) -> usize {
        let first = self.prefixes.len();
        for record in run.chunks_exact(self.record_bytes.max(1)) {
            let prefix = order.prefix(&record[..self.key_bytes]);
            if prefix > high {
                break;
            }
            self.prefixes.push(prefix);
        }
        let count = self.prefixes.len() - first;
        self.bytes.extend_from_slice(&run[..count * self.record_bytes]);
        count
    }

    fn gather_sized<const N: usize>(
        &mut self,
        order: Order,
        from: &[u8],
        places: impl ExactSizeIterator<Item = usize>,
    ) {
        self.prefixes.reserve(places.len());
        self.bytes.reserve(places.len() * N);
        for place in places {
            if let Some(record) = from[place..].first_chunk::<N>() {
                self.append(order, record);
            }
        }
    }

    #[inline(always)]
    fn append(&mut self, order: Order, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.prefixes.push(order.prefix(&record[..self.key_bytes]));
    }

    /// Keeps the first record of each key, which is its newest, and none of the key `before`. Returns how
    /// many went.
    pub fn collapse(&mut self, before: Option<(u64, &[u8])>) -> usize {
        let repeats = |block: &Self, index: usize| match index.checked_sub(1) {
            Some(last) => {
                block.prefixes[last] == block.prefixes[index] && block.key(last) == block.key(index)
            }
            None => before == Some((block.prefixes[0], block.key(0))),
        };
        let suspicious = self.prefixes.windows(2).fold(false, |any, pair| any | (pair[0] == pair[1]));
        if self.is_empty() || !suspicious && !repeats(self, 0) {
            return 0;
        }
        let dropped: Vec<bool> = (0..self.len()).map(|index| repeats(self, index)).collect();
        let mut kept = 0;
        for index in (0..dropped.len()).filter(|&index| !dropped[index]) {
            let at = index * self.record_bytes;
            self.bytes.copy_within(at..at + self.record_bytes, kept * self.record_bytes);
            self.prefixes[kept] = self.prefixes[index];
            kept += 1;
        }
        let gone = dropped.len() - kept;
        self.prefixes.truncate(kept);
        self.bytes.truncate(kept * self.record_bytes);
        gone
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn collapsing_keeps_the_first_of_each_key(mut keys: Vec<[u8; 2]>, before: Option<[u8; 2]>) {
            let order = Order::Lexical;
            keys.iter_mut().for_each(|key| key[1] &= 3);
            keys.sort_unstable();
            let Some(mut block) = Block::new(Shape::Fixed { key_bytes: 2, value_bytes: 1 }) else { unreachable!() };
            for (age, key) in keys.iter().enumerate() {
                block.push(order.prefix(key), &Record::put(key, &[age as u8]));
            }
            let last = before.map(|key| (order.prefix(&key), key));
            let gone = block.collapse(last.as_ref().map(|(prefix, key)| (*prefix, &key[..])));
            let mut expected: Vec<Vec<u8>> =
                keys.iter().enumerate().map(|(age, key)| vec![key[0], key[1], age as u8]).collect();
            expected.dedup_by_key(|record| [record[0], record[1]]);
            // Only a first key can repeat the last one of the block before.
            if expected.first().is_some_and(|first| before == Some([first[0], first[1]])) {
                expected.remove(0);
            }
            prop_assert_eq!(gone, keys.len() - expected.len());
            prop_assert_eq!(block.bytes(), expected.concat());
            prop_assert_eq!(block.prefixes().len(), expected.len());
        }
    }
}
