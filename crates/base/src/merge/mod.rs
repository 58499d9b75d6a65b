//! Merging sorted sources into one stream, and collapsing that stream to one record a key.
//!
//! A merge is itself a [`Cursor`]: it yields every record of every source by `(prefix, key)`, the newest
//! first among equals. Three merges do so: the [loser tree](LoserTree), for key order and skew, the
//! [cut merge](CutMerge), for uniform hashes, and the [block cut](BlockCut), for uniform hashes of puts alone.
//! Each is the others' oracle.

mod block_cut;
mod collapse;
mod cut;
mod loser_tree;
mod sorted;
#[cfg(test)]
mod tests;

pub use block_cut::BlockCut;
pub use collapse::{Collapse, Progress};
pub use cut::CutMerge;
pub use loser_tree::{Direction, LoserTree, Others};
use sorted::Sorted;

use crate::record::Shape;
use crate::{Block, Record, Result};

/// A walk over sorted records.
pub trait Cursor {
    /// The prefix of the record here, or `None` at the end.
    fn prefix(&self) -> Option<u64>;
    /// The record here. Must not be called at the end.
    fn record(&self) -> Record<'_>;
    /// Goes to the next record.
    fn advance(&mut self) -> Result<()>;

    /// Moves records into `block`, until it has no more room or none is left. All of them must be puts of
    /// the block's shape.
    fn fill(&mut self, block: &mut Block) -> Result<()> {
        fill_by_record(self, block)
    }

    /// Moves the records with prefixes up to `high`, which is included, into `block`, whatever room it has. All of
    /// them must be puts of the block's shape.
    fn fill_up_to(&mut self, high: u64, block: &mut Block) -> Result<()> {
        while let Some(prefix) = self.prefix().filter(|&prefix| prefix <= high) {
            block.push(prefix, &self.record());
            self.advance()?;
        }
        Ok(())
    }
}

/// [`Cursor::fill`], one record at a time.
pub fn fill_by_record(cursor: &mut (impl Cursor + ?Sized), block: &mut Block) -> Result<()> {
    while block.room() > 0
        && let Some(prefix) = cursor.prefix()
    {
        block.push(prefix, &cursor.record());
        cursor.advance()?;
    }
    Ok(())
}

/// What leads to a cursor is one.
macro_rules! lead_to_a_cursor {
    ($($pointer:ty),*) => {$(
        impl<C: Cursor + ?Sized> Cursor for $pointer {
            #[inline]
            fn prefix(&self) -> Option<u64> {
                (**self).prefix()
            }
            #[inline]
            fn record(&self) -> Record<'_> {
                (**self).record()
            }
            #[inline]
            fn advance(&mut self) -> Result<()> {
                (**self).advance()
            }
            fn fill(&mut self, block: &mut Block) -> Result<()> {
                (**self).fill(block)
            }
            fn fill_up_to(&mut self, high: u64, block: &mut Block) -> Result<()> {
                (**self).fill_up_to(high, block)
            }
        }
    )*};
}
lead_to_a_cursor!(&mut C, Box<C>);

/// The merge that suits the sources: cuts for many sources of uniform prefixes and short records, else the
/// loser tree.
pub enum Merge<C> {
    /// By tournament.
    Tree(LoserTree<C>),
    /// By cuts of equal width.
    Cut(CutMerge<C>),
    /// By such cuts, of puts alone.
    Blocks(BlockCut<C>),
}

/// What is to be merged, roughly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Bytes in all sources.
    pub bytes: u64,
    /// Records in all sources.
    pub records: u64,
    /// The lowest and highest prefix, where prefixes are spread evenly between them.
    pub uniform: Option<(u64, u64)>,
    /// The sizes that records have in common.
    pub shape: Shape,
}

/// Longer records than this are not worth copying into a cut.
const CUT_RECORD_BYTES_MAX: u64 = 1024;

impl<C: Cursor> Merge<C> {
    /// Merges `sources`, newest first.
    pub fn new(sources: Vec<C>, extent: Extent) -> Result<Self> {
        let short = extent.bytes <= extent.records.saturating_mul(CUT_RECORD_BYTES_MAX);
        Ok(match (extent.uniform.filter(|_| short), Block::new(extent.shape)) {
            (Some(prefixes), Some(block)) if sources.len() > 1 => {
                Self::Blocks(BlockCut::new(sources, extent.bytes, prefixes, block)?)
            }
            (Some(prefixes), None) if sources.len() > 2 => {
                Self::Cut(CutMerge::new(sources, extent.bytes, prefixes)?)
            }
            _ => Self::Tree(LoserTree::new(sources, Direction::Forward)),
        })
    }
}

impl<C: Cursor> Cursor for Merge<C> {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        match self {
            Self::Tree(tree) => tree.prefix(),
            Self::Cut(cut) => cut.prefix(),
            Self::Blocks(cut) => cut.prefix(),
        }
    }
    #[inline]
    fn record(&self) -> Record<'_> {
        match self {
            Self::Tree(tree) => tree.record(),
            Self::Cut(cut) => cut.record(),
            Self::Blocks(cut) => cut.record(),
        }
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.advance(),
            Self::Cut(cut) => cut.advance(),
            Self::Blocks(cut) => cut.advance(),
        }
    }
    fn fill(&mut self, block: &mut Block) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.fill(block),
            Self::Cut(cut) => cut.fill(block),
            Self::Blocks(cut) => cut.fill(block),
        }
    }
}
