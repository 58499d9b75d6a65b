//! The seam to where fragments live: run files, or compressed blocks of memory.
//!
//! **Contract:** a fragment is immutable and sorted by `(prefix, key)`, each key once. A writer is a detached
//! value that borrows nothing of its store, so that a job can read and write one store, and so that
//! *write, seal, publish* is the crash-safe order by itself.

use forebay_base::merge::Cursor;
use forebay_base::record::Shape;
use forebay_base::{Block, Bound, Range, Record, Result};

use crate::{List, Portion};

/// A handle to what was written at one go. Its methods read metadata in memory only, for they are called
/// while planning.
pub trait Fragment: Clone {
    /// Its lasting name.
    fn id(&self) -> u64;
    /// A bound near the middle of what it holds inside `range`, strictly inside; `None` when it cannot be
    /// split there.
    fn middle(&self, range: &Range) -> Option<Bound>;
    /// The share (0 to 1) of its records inside `range` that lie below `at`. Exactly 0.0 or 1.0 only when it
    /// is certain that nothing lies on that side; otherwise it may be an estimate.
    fn share_below(&self, range: &Range, at: &Bound) -> f64;
    /// How many records these lists, of what lies between two prefixes, both included, hold for each distinct key;
    /// 1.0 means that no key repeats. It may be an estimate. Only trees ask for it.
    fn repeats<'a>(_lists: impl Iterator<Item = &'a List<Self>>, _low: u64, _high: u64) -> f64
    where
        Self: 'a,
    {
        1.0
    }
    /// Which share of its records are tombstones, from 0 to 1; 0 also where that is not at hand.
    fn tombstone_share(&self) -> f64 {
        0.0
    }
    /// The sizes that its records have in common.
    fn shape(&self) -> Shape;
    /// How long its file is, where records can be appended to it.
    fn grown_bytes(&self) -> Option<u64> {
        None
    }
    /// About how long the values are that stand elsewhere and this much of it points to.
    fn pointed_bytes(&self, _portion: Portion) -> u64 {
        0
    }
    /// What it takes as long as anything of it is needed, where it is in memory alone; `None` where what is needed is
    /// all.
    fn held_bytes(&self) -> Option<u64> {
        None
    }
}

/// Reads and writes fragments.
pub trait FragmentStore {
    /// Its handles.
    type Fragment: Fragment;
    /// Its walks.
    type Cursor: Cursor;
    /// Its writers.
    type Writer: FragmentWriter<Fragment = Self::Fragment>;

    /// Tells that such a cursor comes, so that what it reads first can be fetched: those of all other fragments come
    /// before it.
    fn announce(&self, _fragment: &Self::Fragment, _range: &Range, _share: usize) {}

    /// A walk over the fragment's records inside `range`. This many cursors (`share`) read side by side, by
    /// which buffers are sized.
    fn cursor(&self, fragment: &Self::Fragment, range: &Range, share: usize) -> Result<Self::Cursor>;

    /// Begins a fragment.
    fn writer(&self, expected: &Expected) -> Result<Self::Writer>;
}

/// What is about to be written, before collapsing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expected {
    /// No record lies outside.
    pub range: Range,
    /// At most about this many bytes.
    pub bytes: u64,
    /// At most about this many records.
    pub records: u64,
    /// The join of the inputs' shapes. Collapsing may still make it [`Shape::Fixed`].
    pub shape: Shape,
}

/// Writes one fragment. Dropping it unfinished leaves nothing behind that anyone could find.
pub trait FragmentWriter {
    /// What it makes.
    type Fragment;
    /// Appends the next record; each key comes once, in order.
    fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()>;
    /// Appends all records of a block.
    fn push_block(&mut self, block: &Block) -> Result<()> {
        let mut records = block.prefixes().iter().enumerate();
        records.try_for_each(|(index, &prefix)| self.push(prefix, &block.record(index)))
    }
    /// About how many bytes the records pushed so far take in the store; never less than it said before.
    fn bytes(&self) -> u64;
    /// Seals the fragment; `None` when nothing was pushed.
    fn finish(self) -> Result<Option<Self::Fragment>>;
}
