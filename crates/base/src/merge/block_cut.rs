//! Merging by cuts, of puts: as the [cut merge](super::CutMerge), but records move by runs, from page to block to
//! block, and none is encoded or decoded on the way.

use super::cut::Width;
use super::{Cursor, Sorted};
use crate::{Block, Record, Result};

/// The merge of sorted sources with uniform prefixes, all of whose records are puts, given newest first.
pub struct BlockCut<C> {
    sources: Vec<C>,
    width: Width,
    /// The records of the cut.
    cut: Sorted,
}

impl<C: Cursor> BlockCut<C> {
    /// Merges sources that hold about `bytes` in all between the prefixes `low` and `high`. The block is empty, and
    /// of the records' shape.
    pub fn new(sources: Vec<C>, bytes: u64, (low, high): (u64, u64), block: Block) -> Result<Self> {
        let width = Width::new(bytes, (low, high));
        let mut merge = Self { sources, width, cut: Sorted::new(block, low, high) };
        merge.cut()?;
        Ok(merge)
    }

    fn cut(&mut self) -> Result<()> {
        let block = self.cut.restart();
        let low = self.sources.iter().filter_map(|source| source.prefix()).min().unwrap_or(u64::MAX);
        let high = self.width.end(low);
        self.sources.iter_mut().try_for_each(|source| source.fill_up_to(high, block))?;
        debug_assert!(self.sources.iter().all(|source| source.prefix().is_none_or(|next| next > high)));
        self.cut.sort(low, high);
        self.width.adapt(self.cut.bytes());
        Ok(())
    }

    fn go_on(&mut self) -> Result<()> {
        if self.cut.prefix().is_none() { self.cut() } else { Ok(()) }
    }
}

impl<C: Cursor> Cursor for BlockCut<C> {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.cut.prefix()
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.cut.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.cut.advance()?;
        self.go_on()
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        while block.room() > 0 && self.prefix().is_some() {
            self.cut.fill(block)?;
            self.go_on()?;
        }
        Ok(())
    }
}
