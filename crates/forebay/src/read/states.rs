//! A walk over all states of a table that keeps such, and of which nothing is in write buffers. It goes as merges of lists
//! do: stretch by stretch, in blocks, through files in long pieces from the start on.

use std::sync::Arc;

use forebay_base::combine::Depth;
use forebay_base::limits::STEP_BYTES;
use forebay_base::merge::{Collapse, Cursor, Direction, Extent, Merge};
use forebay_base::record::Shape;
use forebay_base::{Block, Bound, Error, Range, Record, Result};
use forebay_buffer_tree::shape_of_merged;
use forebay_env::guest;
use forebay_layouts::{Portion, Rule, Source, Stretch, answered};
use forebay_store::list::Pace;
use forebay_store::{MemoryClaim, Owner};

use crate::versions::{TableState, Versions, View};

/// What all pieces together may take of the memory limit.
const PIECES_PART: u64 = 16;
/// Shorter ones are not planned with. None is read of less than four times this, so many lists may take four times as much.
const PIECE_BYTES_MIN: usize = 4 << 10;

/// See the module. It walks as the table was when it was made; after an error there is no more.
pub(crate) struct States {
    /// Kept so that the files of the view outlive the database's handle.
    versions: Arc<Versions>,
    _view: View,
    table: Arc<TableState>,
    rule: Rule,
    /// Where the next stretch begins.
    next: Option<Bound>,
    merge: Option<Collapse<Merge<Source>, Rule>>,
    /// Memory to merge in.
    merged: Block,
    /// What the sources take, with the pages that they stand on.
    standing: MemoryClaim,
    /// The states here, and which of them is next.
    block: Block,
    at: usize,
}

impl States {
    /// Over the states behind a key, or all.
    pub(crate) fn new(
        versions: &Arc<Versions>,
        view: View,
        table: u32,
        behind: Option<&[u8]>,
    ) -> Result<Self> {
        debug_assert_eq!(view.buffers().count(), 0, "all of it is in lists");
        let table = Arc::clone(view.table(table)?);
        // Right behind a key is where it would be with one byte more.
        let place = behind.map(|key| Bound {
            prefix: table.order.prefix(key),
            key: [key, &[0]].concat().into_boxed_slice(),
        });
        let mut states = Self {
            versions: Arc::clone(versions),
            _view: view,
            rule: table.rule()?.clone(),
            table,
            next: Some(place.unwrap_or_default()),
            merge: None,
            merged: Block::default(),
            standing: versions.context.metrics.memory.claim(Owner::Standing, 0),
            block: Block::default(),
            at: 0,
        };
        states.refill()?;
        Ok(states)
    }

    /// Puts the next states in place of those in the block.
    #[inline(never)]
    fn refill(&mut self) -> Result<()> {
        let filled = self.fill_block();
        if filled.is_err() {
            (self.merge, self.next) = (None, None);
            self.block.clear();
        }
        filled.map_err(|error| self.table.blamed(error))
    }

    fn fill_block(&mut self) -> Result<()> {
        self.at = 0;
        self.block.clear();
        while self.block.is_empty() {
            let Self { merge, merged, block, .. } = self;
            let Some(merge) = merge.as_mut().filter(|merge| !merge.is_finished()) else {
                if self.enter_next()? { continue } else { return Ok(()) }
            };
            guest::take_failure();
            let more = merge.run_blocks(1, merged, |merged| {
                block.extend(merged, 0..merged.len());
                Ok(())
            });
            answered(more)?;
        }
        Ok(())
    }

    /// Begins with the next stretch. Says whether there is one.
    fn enter_next(&mut self) -> Result<bool> {
        self.merge = None;
        let Some(low) = self.next.take() else { return Ok(false) };
        let (within, version) = (Range { low, high: None }, &self.table.version);
        let stretch = version.stretch(Some(&within.low), &within, Direction::Forward)?;
        let Some(Stretch { range, mut sources }) = stretch else { return Ok(false) };
        debug_assert!(range.low == within.low, "nothing lies between two stretches");
        self.next = range.high.clone();
        let pieces_bytes = self.versions.context.limit.bytes() / PIECES_PART;
        let piece_bytes = (pieces_bytes as usize / sources.len().max(1)).min(STEP_BYTES);
        // Where others walk, too, or pieces would be short, it reads as any other scan.
        let is_crowded = self.versions.context.metrics.memory.exceeds(Owner::Scanning, PIECES_PART);
        let pace = match piece_bytes < PIECE_BYTES_MIN || is_crowded {
            true => Pace::default(),
            false => Pace::steady(piece_bytes),
        };
        Source::seek_all(sources.iter_mut(), None, Direction::Forward, pace)?;
        sources.retain(|source| source.prefix().is_some());
        self.standing.resize(sources.iter().map(Source::memory_bytes).sum::<usize>() as u64);
        let shape = sources.iter().fold(Shape::Unknown, |shape, source| shape.join(source.shape()));
        if sources.is_empty() {
            return Ok(true);
        }
        let shape = shape_of_merged(shape, &self.rule);
        let Some(block) = Block::new(shape) else {
            return Err(Error::bug(format!("table `{}` has more than states", self.table.name)));
        };
        let Portion { bytes, records } = version.portion(&range);
        let high = range.high.as_ref().map_or(u64::MAX, |high| high.prefix);
        let uniform = self.table.order.is_uniform().then_some((range.low.prefix, high));
        let merge = Merge::new(sources, Extent { bytes, records, uniform, shape })?;
        (self.merged, self.block) = (block.clone(), block);
        self.merge = Some(Collapse::new(merge, self.rule.clone(), Depth::Partial).unbounded());
        Ok(true)
    }
}

impl Cursor for States {
    #[inline]
    fn prefix(&self) -> Option<u64> {
        self.block.prefixes().get(self.at).copied()
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        debug_assert!(self.at < self.block.len(), "no record stands at the end");
        self.block.record(self.at)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        debug_assert!(self.at < self.block.len(), "nothing stands behind the end");
        self.at += 1;
        if self.at < self.block.len() { Ok(()) } else { self.refill() }
    }
}
