//! Merging by cuts. Uniform prefixes make a `k`-way merge a sort:
//!
//! 1. Cut every source at the same prefix, so that what lies below fills about one cache.
//! 2. Copy the records below the cut, newest source first, into one block, noting a packed word for each.
//! 3. Sort the words; equal prefixes fall in order of place, which is newest first.
//! 4. Yield, and cut again where the last cut ended, wider or narrower as the last one turned out.
//!
//! The cost does not depend on `k`. Skewed prefixes would make cuts of very different sizes: they belong to
//! the loser tree.

use super::Cursor;
use crate::sort::{Pieces, pack, place_of, sort_words};
use crate::{Record, Result};

/// What a cut should hold, in bytes: it and its words stay in the second cache.
const CUT_BYTES: u64 = 256 << 10;

/// How much of the prefix space the next cut takes.
pub(super) struct Width(u64);

impl Width {
    /// For sources that hold about `bytes` in all between two prefixes.
    pub(super) fn new(bytes: u64, (low, high): (u64, u64)) -> Self {
        Self((high.saturating_sub(low) / bytes.div_ceil(CUT_BYTES).max(1)).max(1))
    }

    /// Where a cut ends that begins at `low`.
    pub(super) fn end(&self, low: u64) -> u64 {
        low.saturating_add(self.0)
    }

    /// Learns from a cut that held this many bytes.
    pub(super) fn adapt(&mut self, filled: usize) {
        let filled = filled as u64;
        if filled > 2 * CUT_BYTES {
            self.0 = (self.0 / 2).max(1);
        } else if filled < CUT_BYTES / 2 {
            self.0 = self.0.saturating_mul(2);
        }
    }
}

/// The merge of sorted sources with uniform prefixes, given newest first.
pub struct CutMerge<C> {
    sources: Vec<C>,
    width: Width,
    block: Vec<u8>,
    words: Vec<u64>,
    /// By the words' places: a record's prefix and where in the block it is.
    places: Vec<(u64, usize)>,
    at: usize,
}

impl<C: Cursor> CutMerge<C> {
    /// Merges sources that hold about `bytes` in all between the prefixes `low` and `high`.
    pub fn new(sources: Vec<C>, bytes: u64, prefixes: (u64, u64)) -> Result<Self> {
        let mut merge = Self {
            sources,
            width: Width::new(bytes, prefixes),
            block: Vec::new(),
            words: Vec::new(),
            places: Vec::new(),
            at: 0,
        };
        merge.cut()?;
        Ok(merge)
    }

    fn cut(&mut self) -> Result<()> {
        self.block.clear();
        self.words.clear();
        self.places.clear();
        self.at = 0;
        let Some(low) = self.sources.iter().filter_map(|source| source.prefix()).min() else { return Ok(()) };
        let high = self.width.end(low);
        let pieces = Pieces::new(low, high);
        for source in &mut self.sources {
            while let Some(prefix) = source.prefix().filter(|&prefix| prefix <= high) {
                self.words.push(pack(pieces.of(prefix), self.places.len() as u32));
                self.places.push((prefix, self.block.len()));
                source.record().encode(&mut self.block);
                source.advance()?;
            }
        }
        // Of the sources one stands at `low`, so nobody takes an empty cut for the end.
        debug_assert!(!self.words.is_empty() && self.words.len() == self.places.len());
        let (block, places) = (&self.block, &self.places);
        sort_words(&mut self.words, &mut |left, right| {
            let ((left_prefix, left_at), (right_prefix, right_at)) =
                (places[left as usize], places[right as usize]);
            left_prefix
                .cmp(&right_prefix)
                .then_with(|| decode(block, left_at).key.cmp(decode(block, right_at).key))
                .then(left.cmp(&right))
        });
        debug_assert!(self.sources.iter().all(|source| source.prefix().is_none_or(|next| next > high)));
        self.width.adapt(self.block.len());
        Ok(())
    }
}

#[inline]
fn decode(block: &[u8], offset: usize) -> Record<'_> {
    // The block holds only what `Record::encode` put there.
    let decoded = Record::decode(&block[offset..]);
    debug_assert!(decoded.is_some(), "no record at {offset}");
    decoded.map_or(Record::delete(&[]), |(record, _)| record)
}

impl<C: Cursor> Cursor for CutMerge<C> {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.words.get(self.at).map(|&word| self.places[place_of(word) as usize].0)
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        decode(&self.block, self.places[place_of(self.words[self.at]) as usize].1)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at == self.words.len() { self.cut() } else { Ok(()) }
    }
}
