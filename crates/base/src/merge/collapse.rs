//! Collapsing: of the records of one key, which a merge yields newest first, at most one is left. Colliding
//! hashes need nothing special here, because the merge orders equal prefixes by key.

use super::Cursor;
use crate::combine::{Combine, Depth, Fold};
use crate::limits::{STEP_BYTES, STORED_VALUE_BYTES_MAX};
use crate::record::Shape;
use crate::wire::put_raw;
use crate::{Block, Error, Kind, Record, Result, sometimes};

/// What a stretch of collapsing did. Each count is taken where its records pass, and the end of the stretch checks that
/// they balance: `consumed == produced + dropped`, but for records that are held for what comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Records read from the merge.
    pub consumed: u64,
    /// Records handed on.
    pub produced: u64,
    /// Records that were outdated, folded into another, or tombstones at the bottom.
    pub dropped: u64,
    /// Bytes of keys and values read.
    pub bytes: u64,
}

impl Progress {
    /// Refuses a stretch in which records were lost or made, given how many were held before and after it: what it wrote
    /// must not replace what it read.
    fn balanced(self, held_before: usize, held_after: usize) -> Result<Self> {
        let Self { consumed, produced, dropped, .. } = self;
        let (read, passed) = (consumed + held_before as u64, produced + dropped + held_after as u64);
        debug_assert_eq!(read, passed, "a merge loses or makes records: {self:?}");
        if read == passed {
            return Ok(self);
        }
        Err(Error::bug(format!(
            "a merge that read {consumed} records handed on {produced} and dropped {dropped}"
        )))
    }
}

/// How many bytes a stretch of at most so many has: now and then it ends at once, where it may.
fn stretch(bytes_max: usize) -> u64 {
    if bytes_max <= STEP_BYTES && sometimes!(1 in 40) { 1 } else { bytes_max as u64 }
}

/// A resumable collapse of one merge.
pub struct Collapse<C, R> {
    input: C,
    rule: R,
    depth: Depth,
    last_prefix: Option<u64>,
    last_key: Vec<u8>,
    fold: Fold,
    /// No merge may make a longer value.
    value_bytes_max: usize,
    /// Of states: the one record that what comes next may belong to.
    held: Option<Block>,
    /// Memory.
    spare: Block,
}

impl<C: Cursor, R: Combine> Collapse<C, R> {
    /// Collapses `input` by `rule`.
    pub fn new(input: C, rule: R, depth: Depth) -> Self {
        let (held, spare, value_bytes_max) = (None, Block::default(), rule.value_bytes_max());
        Self {
            input,
            rule,
            depth,
            last_prefix: None,
            last_key: Vec::new(),
            fold: Fold::default(),
            value_bytes_max,
            held,
            spare,
        }
    }

    /// Of one write buffer alone, which cannot stay as it is: values may become as long as the buffer.
    pub fn of_any_length(self) -> Self {
        Self { value_bytes_max: STORED_VALUE_BYTES_MAX, ..self }
    }

    /// For who only reads: no value is refused for its length.
    pub fn unbounded(self) -> Self {
        Self { value_bytes_max: usize::MAX, ..self }
    }

    /// Whether nothing is left.
    pub fn is_finished(&self) -> bool {
        self.input.prefix().is_none() && self.held.as_ref().is_none_or(Block::is_empty)
    }

    /// Hands on records until about `bytes_max` bytes were read or nothing is left.
    pub fn run(
        &mut self,
        bytes_max: usize,
        mut sink: impl FnMut(u64, &Record<'_>) -> Result<()>,
    ) -> Result<Progress> {
        let (bytes_max, mut progress) = (stretch(bytes_max), Progress::default());
        while let Some(prefix) = self.input.prefix() {
            if progress.bytes >= bytes_max {
                break;
            }
            let record = self.input.record();
            progress.consumed += 1;
            progress.bytes += (record.key.len() + record.value.len()) as u64;
            if self.last_prefix == Some(prefix) && self.last_key == record.key {
                progress.dropped += 1;
                self.input.advance()?;
                continue;
            }
            self.last_prefix = Some(prefix);
            self.last_key.clear();
            put_raw(&mut self.last_key, record.key);
            match record.kind {
                kind if kind == Kind::Merge || self.rule.merges_puts() => {
                    self.fold_key(prefix, &mut progress)?;
                    let folded = self.fold.finish(&self.last_key, self.depth);
                    match folded.filter(|folded| self.is_kept(folded)) {
                        Some(folded) => {
                            sink(prefix, &folded)?;
                            progress.produced += 1;
                        }
                        None => progress.dropped += 1,
                    }
                }
                _ if !self.is_kept(&record) => {
                    progress.dropped += 1;
                    self.input.advance()?;
                }
                _ => {
                    sink(prefix, &record)?;
                    progress.produced += 1;
                    self.input.advance()?;
                }
            }
        }
        progress.balanced(0, 0)
    }

    /// Whether a record has its place in the result.
    fn is_kept(&self, record: &Record<'_>) -> bool {
        let goes = |record: &Record<'_>| match record.kind {
            Kind::Delete => true,
            Kind::Pointer => self.rule.is_choosy() && !self.rule.keeps_pointed(record.key, record.value),
            _ => self.rule.is_choosy() && !self.rule.keeps(record.key, record.value),
        };
        self.depth == Depth::Partial || !goes(record)
    }

    /// A block to [`run_blocks`](Self::run_blocks) with, where records of this shape go by blocks: not where the rule
    /// chooses among values.
    pub fn block(&self, shape: Shape) -> Option<Block> {
        Block::new(shape).filter(|_| self.depth == Depth::Partial || !self.rule.is_choosy())
    }

    /// As [`run`](Self::run) for puts, by blocks: hands on what is left of each.
    pub fn run_blocks(
        &mut self,
        bytes_max: usize,
        block: &mut Block,
        mut sink: impl FnMut(&Block) -> Result<()>,
    ) -> Result<Progress> {
        if self.rule.merges_puts() {
            return self.run_states(bytes_max, block, sink);
        }
        let (bytes_max, mut progress) = (stretch(bytes_max), Progress::default());
        while progress.bytes < bytes_max {
            block.clear();
            self.input.fill(block)?;
            if block.is_empty() {
                break;
            }
            progress.consumed += block.len() as u64;
            progress.bytes += block.bytes().len() as u64;
            let before = self.last_prefix.map(|prefix| (prefix, &self.last_key[..]));
            progress.dropped += block.collapse(before, &mut self.spare) as u64;
            if let Some(&last) = block.prefixes().last() {
                self.last_prefix = Some(last);
                self.last_key.clear();
                self.last_key.extend_from_slice(block.key(block.len() - 1));
                sink(block)?;
                progress.produced += block.len() as u64;
            }
        }
        progress.balanced(0, 0)
    }

    /// As [`run_blocks`](Self::run_blocks) where puts are states.
    fn run_states(
        &mut self,
        bytes_max: usize,
        block: &mut Block,
        mut sink: impl FnMut(&Block) -> Result<()>,
    ) -> Result<Progress> {
        let (bytes_max, mut progress) = (stretch(bytes_max), Progress::default());
        let held = self.held.get_or_insert_with(|| {
            block.clear();
            block.clone()
        });
        let held_before = held.len();
        while progress.bytes < bytes_max && (self.input.prefix().is_some() || !held.is_empty()) {
            std::mem::swap(block, held);
            held.clear();
            let (records, bytes) = (block.len(), block.bytes().len());
            self.input.fill(block)?;
            progress.consumed += (block.len() - records) as u64;
            progress.bytes += (block.bytes().len() - bytes) as u64;
            progress.dropped += block.fold(&self.rule, self.value_bytes_max, &mut self.spare)? as u64;
            if self.input.prefix().is_some() {
                block.split_last(held);
            }
            if !block.is_empty() {
                sink(block)?;
                progress.produced += block.len() as u64;
            }
        }
        progress.balanced(held_before, held.len())
    }

    /// Folds the operands of the current key, up to the first record that hides all older ones.
    fn fold_key(&mut self, prefix: u64, progress: &mut Progress) -> Result<()> {
        debug_assert_eq!(self.last_key, self.input.record().key, "it stands on the key that it folds");
        self.fold.clear();
        let mut open = self.fold.add(&self.rule, &self.input.record());
        self.input.advance()?;
        while open && self.input.prefix() == Some(prefix) {
            let older = self.input.record();
            if older.key != self.last_key {
                break;
            }
            progress.consumed += 1;
            progress.dropped += 1;
            progress.bytes += older.value.len() as u64;
            open = self.fold.add(&self.rule, &older);
            if self.fold.value().len() > self.value_bytes_max {
                return Err(Error::too_long(&self.last_key, self.fold.value().len(), self.value_bytes_max));
            }
            self.input.advance()?;
        }
        Ok(())
    }
}
