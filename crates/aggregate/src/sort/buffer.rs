//! The states that are not yet in a run: records one behind the other, and a packed word for each, which is
//! all that is moved to sort them.

use forebay_base::sort::{Pieces, pack, place_of, sort_words};
use forebay_base::{Order, Record, Result};

use crate::aggregate::Aggregate;
use crate::aggregator::{grow, growth};

/// Records start at multiples of this, so that a place of 32 bits reaches 16 GiB.
const UNIT_BYTES: usize = 4;

/// Unsorted records in memory.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    words: Vec<u64>,
}

impl Buffer {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Forgets all records and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.words.clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.words.capacity() * size_of::<u64>()
    }

    /// Whether one more fits `memory_max` bytes, also while the buffer grows for it.
    #[inline]
    pub(super) fn has_room(&self, key: &[u8], state: &[u8], memory_max: usize) -> bool {
        let more = Record::put(key, state).encoded_bytes() + UNIT_BYTES;
        let grown = growth(&self.bytes, more) + growth(&self.words, 1);
        (grown == 0 || self.memory_bytes() + grown <= memory_max)
            && (self.bytes.len() + more) / UNIT_BYTES <= u32::MAX as usize
    }

    #[inline]
    pub(super) fn push(&mut self, order: Order, key: &[u8], state: &[u8]) {
        let (record, place) = (Record::put(key, state), self.bytes.len() / UNIT_BYTES);
        debug_assert!(self.bytes.len().is_multiple_of(UNIT_BYTES) && u32::try_from(place).is_ok());
        grow(&mut self.bytes, record.encoded_bytes() + UNIT_BYTES);
        grow(&mut self.words, 1);
        self.words.push(pack(Pieces::WHOLE.of(order.prefix(key)), place as u32));
        record.encode(&mut self.bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(UNIT_BYTES), 0);
    }

    fn at(bytes: &[u8], word: u64) -> Record<'_> {
        let start = place_of(word) as usize * UNIT_BYTES;
        // What was encoded here decodes; the empty record is never met.
        let decoded = Record::decode(&bytes[start..]);
        debug_assert!(decoded.is_some(), "no record at {start}");
        decoded.map_or(Record::put(&[], &[]), |(record, _)| record)
    }

    /// Sorts by prefix, then key.
    pub(super) fn sort(&mut self, order: Order) {
        let bytes = &self.bytes;
        sort_words(&mut self.words, &mut |one, other| {
            let (one, other) = (Self::at(bytes, one.into()).key, Self::at(bytes, other.into()).key);
            order.prefix(one).cmp(&order.prefix(other)).then_with(|| one.cmp(other))
        });
    }

    /// Shows every key of the sorted records once, with the merge of its states.
    pub(super) fn for_each_key<A: Aggregate>(
        &self,
        function: &A,
        order: Order,
        mut visit: impl FnMut(u64, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut states, mut merged) = (Vec::new(), Vec::new());
        let mut records = self.words.iter().map(|&word| Self::at(&self.bytes, word)).peekable();
        while let Some(Record { key, value, .. }) = records.next() {
            states.clear();
            states.push(value);
            while let Some(next) = records.next_if(|next| next.key == key) {
                states.push(next.value);
            }
            let state = match states[..] {
                [state] => state,
                _ => {
                    merged.clear();
                    function.merge(&states, &mut merged);
                    &merged
                }
            };
            visit(order.prefix(key), key, state)?;
        }
        Ok(())
    }
}
