//! Puts in any order, put in order: by packed words, so that no record moves until it is handed on.

use super::Cursor;
use crate::sort::{Pieces, pack, place_of, sort_words};
use crate::{Block, Record, Result};

/// A block and the order of its records; of those of one key, the order they came in.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    block: Block,
    words: Vec<u64>,
    at: usize,
}

impl Sorted {
    /// Sorts a block whose prefixes all lie between `low` and `high`, both included. At most 2^32 records.
    pub(super) fn new(block: Block, low: u64, high: u64) -> Self {
        let mut sorted = Self { block, ..Self::default() };
        sorted.sort(low, high);
        sorted
    }

    /// The block, to be filled anew and then sorted.
    pub(super) fn restart(&mut self) -> &mut Block {
        self.block.clear();
        &mut self.block
    }

    pub(super) fn sort(&mut self, low: u64, high: u64) {
        let (pieces, block) = (Pieces::new(low, high), &self.block);
        self.at = 0;
        self.words.clear();
        let words = block.prefixes().iter().zip(0..).map(|(&prefix, place)| pack(pieces.of(prefix), place));
        self.words.extend(words);
        sort_words(&mut self.words, &mut |left, right| {
            let of = |place: u32| (block.prefixes()[place as usize], block.key(place as usize), place);
            of(left).cmp(&of(right))
        });
        debug_assert_eq!(self.words.len(), block.len(), "each record is handed on once");
    }

    /// Bytes of the records in the block.
    pub(super) fn bytes(&self) -> usize {
        self.block.bytes().len()
    }
}

impl Cursor for Sorted {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.words.get(self.at).map(|&word| self.block.prefixes()[place_of(word) as usize])
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.block.record(place_of(self.words[self.at]) as usize)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        debug_assert!(self.at < self.words.len(), "the merge is at its end");
        self.at += 1;
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        let next = &self.words[self.at..self.words.len().min(self.at + block.room())];
        block.pick(&self.block, next.iter().map(|&word| place_of(word) as usize));
        self.at += next.len();
        Ok(())
    }
}
