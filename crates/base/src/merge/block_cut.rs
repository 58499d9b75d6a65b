//! Merging by cuts, of puts of one fixed shape: as the [cut merge](super::CutMerge), but records move by runs,
//! from page to block to block, and none is encoded or decoded on the way.

use super::Cursor;
use super::cut::CUT_BYTES;
use crate::sort::{Pieces, pack, place_of, sort_words};
use crate::{Block, Record, Result};

/// The merge of sorted sources with uniform prefixes and records of one shape, given newest first.
pub struct BlockCut<C> {
    sources: Vec<C>,
    /// How much of the prefix space the next cut takes.
    width: u64,
    /// The records of the cut, source by source.
    block: Block,
    /// Their order.
    words: Vec<u64>,
    at: usize,
}

impl<C: Cursor> BlockCut<C> {
    /// Merges sources that hold about `bytes` in all between the prefixes `low` and `high`. The block is empty, and
    /// of the records' shape.
    pub fn new(sources: Vec<C>, bytes: u64, (low, high): (u64, u64), block: Block) -> Result<Self> {
        let width = high.saturating_sub(low) / bytes.div_ceil(CUT_BYTES).max(1);
        let mut merge = Self { sources, width: width.max(1), block, words: Vec::new(), at: 0 };
        merge.cut()?;
        Ok(merge)
    }

    fn cut(&mut self) -> Result<()> {
        self.block.clear();
        self.words.clear();
        self.at = 0;
        let Some(low) = self.sources.iter().filter_map(|source| source.prefix()).min() else { return Ok(()) };
        let high = low.saturating_add(self.width);
        self.sources.iter_mut().try_for_each(|source| source.fill_up_to(high, &mut self.block))?;
        let (pieces, block) = (Pieces::new(low, high), &self.block);
        let words = block.prefixes().iter().zip(0..).map(|(&prefix, place)| pack(pieces.of(prefix), place));
        self.words.extend(words);
        sort_words(&mut self.words, &mut |left, right| {
            let of = |place: u32| (block.prefixes()[place as usize], block.key(place as usize), place);
            of(left).cmp(&of(right))
        });
        let filled = block.bytes().len() as u64;
        if filled > 2 * CUT_BYTES {
            self.width = (self.width / 2).max(1);
        } else if filled < CUT_BYTES / 2 {
            self.width = self.width.saturating_mul(2);
        }
        Ok(())
    }

    fn go_on(&mut self, count: usize) -> Result<()> {
        self.at += count;
        if self.at == self.words.len() { self.cut() } else { Ok(()) }
    }
}

impl<C: Cursor> Cursor for BlockCut<C> {
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
        self.go_on(1)
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        while block.room() > 0 && self.at < self.words.len() {
            let next = &self.words[self.at..self.words.len().min(self.at + block.room())];
            let count = next.len();
            block.pick(&self.block, next.iter().map(|&word| place_of(word) as usize));
            self.go_on(count)?;
        }
        Ok(())
    }
}
