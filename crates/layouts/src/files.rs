//! List files as fragments.

use std::sync::Arc;

use forebay_base::digest;
use forebay_base::merge::Direction;
use forebay_base::record::Shape;
use forebay_base::{Block, Bound, Range, Record, Result};
use forebay_buffer_tree as tree;
use forebay_buffer_tree::Expected;
use forebay_store::list::Reading;
use forebay_store::{Cause, ListCursor, ListFile, ListStore, ListWriter};

/// A list file that nodes refer to.
#[derive(Clone, Debug)]
pub struct Fragment(pub Arc<ListFile>);

/// The store of one job's fragments.
pub(crate) struct Files {
    pub(crate) store: ListStore,
    pub(crate) cause: Cause,
    pub(crate) merge_memory_bytes: usize,
}

/// A list file being written.
pub(crate) struct Writer(pub(crate) ListWriter);

/// A merge reads each list in chunks between these sizes.
const CHUNK_BYTES_MIN: usize = 16 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

impl tree::Fragment for Fragment {
    fn id(&self) -> u64 {
        self.0.meta().id
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        self.0.middle(range)
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        self.0.share_below(range, at)
    }

    fn repeats<'a>(fragments: impl Iterator<Item = &'a Self>, low: u64, high: u64) -> f64 {
        digest::repeats(&fragments.map(|fragment| fragment.0.digest()).collect::<Vec<_>>(), low, high)
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

impl Files {
    /// How each of so many lists is read that are merged side by side.
    pub(crate) fn reading(&self, share: usize) -> Reading {
        let chunk_bytes = (self.merge_memory_bytes / share.max(1)).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Reading::Job { cause: self.cause, chunk_bytes }
    }
}

impl tree::FragmentStore for Files {
    type Fragment = Fragment;
    type Cursor = ListCursor;
    type Writer = Writer;

    fn cursor(&self, fragment: &Fragment, range: &Range, share: usize) -> Result<ListCursor> {
        ListCursor::new(&fragment.0, range, Direction::Forward, self.reading(share))
    }

    fn writer(&self, expected: &Expected) -> Result<Writer> {
        let Expected { range, records, shape, .. } = expected;
        ListWriter::new(&self.store, range, *records, *shape, self.cause).map(Writer)
    }
}

impl tree::FragmentWriter for Writer {
    type Fragment = Fragment;

    #[inline]
    fn push(&mut self, prefix: u64, record: &Record<'_>) -> Result<()> {
        self.0.push(prefix, record)
    }

    fn push_block(&mut self, block: &Block) -> Result<()> {
        self.0.push_block(block)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn finish(self) -> Result<Option<Fragment>> {
        Ok(ListWriter::finish(self.0)?.map(Fragment))
    }
}
