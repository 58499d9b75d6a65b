//! List files as the tree's fragments.

use std::sync::Arc;

use forebay_base::digest;
use forebay_base::merge::Direction;
use forebay_base::record::Shape;
use forebay_base::{Bound, Range, Result};
use forebay_buffer_tree as tree;
use forebay_buffer_tree::Expected;
use forebay_store::list::Reading;
use forebay_store::{Cause, ListCursor, ListFile, ListStore, ListWriter};

/// A list file that nodes refer to.
#[derive(Clone, Debug)]
pub struct Fragment(pub Arc<ListFile>);

/// The store of one job's fragments.
pub(super) struct Files {
    pub(super) store: ListStore,
    pub(super) cause: Cause,
    pub(super) merge_memory_bytes: usize,
}

/// A list file being written.
pub(super) struct Writer(pub(super) ListWriter);

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

impl tree::FragmentStore for Files {
    type Fragment = Fragment;
    type Cursor = ListCursor;
    type Writer = Writer;

    fn cursor(&self, fragment: &Fragment, range: &Range, share: usize) -> Result<ListCursor> {
        let chunk_bytes = (self.merge_memory_bytes / share.max(1)).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let reading = Reading::Job { cause: self.cause, chunk_bytes };
        ListCursor::new(&fragment.0, range, Direction::Forward, reading)
    }

    fn writer(&self, expected: &Expected) -> Result<Writer> {
        let Expected { range, records, shape, .. } = expected;
        ListWriter::new(&self.store, range, *records, *shape, self.cause).map(Writer)
    }
}
