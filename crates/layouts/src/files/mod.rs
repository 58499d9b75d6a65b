//! Files as fragments, and what it takes to make and find them.

mod budget;
mod data_file;
mod restored;
mod source;
mod weak_file;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::digest::{self, Part};
use forebay_base::merge::Direction;
use forebay_base::record::Shape;
use forebay_base::{Block, Bound, Error, POINTER_BYTES, Range, Record, Result};
use forebay_buffer_tree as tree;
use forebay_buffer_tree::{Expected, Portion};
use forebay_store::buffer::Contents;
use forebay_store::list::{FileKind, FileMeta, Kept, Reading};
use forebay_store::values::Apart;
use forebay_store::{Cause, ListCursor, ListFile, ListWriter, WriteBuffer};

use crate::rule::{Rule, RuleName, TableRule};

pub use budget::ResidentBudget;
pub use data_file::{DataFile, FileReport, Store, Trees};
pub(crate) use restored::{Restored, malformed};
pub use source::Source;
pub use weak_file::WeakFile;

/// A list file that nodes refer to.
#[derive(Clone, Debug)]
pub(crate) struct Fragment(pub(crate) Arc<ListFile>);

/// What a table's version works with, whatever its layout.
#[derive(Clone)]
pub(crate) struct TableContext {
    pub(crate) store: Store,
    pub(crate) rule: Arc<TableRule>,
    merge_memory_bytes: usize,
}

impl TableContext {
    pub(crate) fn new(store: Store, rule: Arc<TableRule>, merge_memory_bytes: usize) -> Self {
        Self { store, rule, merge_memory_bytes }
    }

    /// The same, with another store.
    pub(crate) fn with_store(&self, store: Store) -> Self {
        Self { store, ..self.clone() }
    }

    /// The same, for a layout whose trees have values up to this length in leaves.
    pub(crate) fn with_inline(&self, inline_bytes: u32) -> Self {
        let mut changed = self.clone();
        changed.store.trees.options.inline_value_bytes_max = inline_bytes as usize;
        changed
    }

    /// What time it is where entries expire, in milliseconds since 1970.
    pub(crate) fn now(&self) -> Option<u64> {
        self.store.lists.expiry.as_ref().map(|clock| clock.unix_milliseconds())
    }

    /// The table's rule, for a job that begins now.
    pub(crate) fn code(&self) -> Result<Rule> {
        Ok(self.rule.code()?.expiring(self.now()).reading(&self.store.lists.values))
    }

    /// What the table, which keeps this, may keep in memory.
    pub(crate) fn room(&self, own: Kept) -> ResidentBudget {
        let limit = &self.store.lists.resident;
        ResidentBudget {
            resides: *self.rule.name() == RuleName::None && limit.drains.load(Ordering::Relaxed) == 0,
            room: limit.room(),
            elsewhere: limit.kept().without(own),
            is_beside: false,
            due_below: limit.due_below.load(Ordering::Relaxed),
        }
    }

    /// The store of fragments that a write buffer leaves in memory.
    pub(crate) fn memory(&self) -> Files {
        let store = Store { lists: Arc::new(self.store.lists.in_memory()), ..self.store.clone() };
        Files { store, ..self.files(Cause::Flush) }
    }

    /// The store of a job's fragments.
    pub(crate) fn files(&self, cause: Cause) -> Files {
        Files { store: self.store.clone(), cause, merge_memory_bytes: self.merge_memory_bytes }
    }

    /// What leaves long values of a buffer in its segment, as lists get its records, if that is done.
    pub(crate) fn apart(&self, buffer: &WriteBuffer) -> Option<Apart> {
        let lists = &self.store.lists;
        Apart::of(buffer, lists.options.apart_bytes_min? as usize, lists.expiry.is_some())
    }

    /// Finds the files that an edit names, all of which there must be, as what its layout makes of them.
    pub(crate) fn find<'a, F: Clone>(
        &self,
        mut named: impl Iterator<Item = &'a u64>,
        file: &dyn Fn(u64) -> Option<DataFile>,
        of: impl Fn(DataFile) -> Option<F>,
    ) -> Result<impl Fn(&u64) -> F> {
        let nothing = FileMeta { id: 0, bytes: 0, digest: 0, kind: FileKind::List, values: Arc::default() };
        let missing =
            of(DataFile::List(ListFile::named(&self.store.lists, nothing))).ok_or_else(malformed_edit)?;
        let found = move |id| {
            let file = file(id)?;
            debug_assert_eq!(file.id(), id, "an id is of one file");
            of(file)
        };
        if named.any(|&id| found(id).is_none()) {
            return Err(malformed_edit());
        }
        Ok(move |&id: &u64| found(id).unwrap_or_else(|| missing.clone()))
    }
}

/// The error of an edit that cannot be read.
pub(crate) fn malformed_edit() -> Error {
    Error::bug("an edit in the manifest is malformed")
}

/// The store of one job's fragments.
pub(crate) struct Files {
    pub(crate) store: Store,
    pub(crate) cause: Cause,
    merge_memory_bytes: usize,
}

/// A list file being written.
pub(crate) struct Writer(pub(crate) ListWriter);

/// A merge reads each list in chunks between these sizes.
const CHUNK_BYTES_MIN: usize = 16 << 10;
const CHUNK_BYTES_MAX: usize = 1 << 20;

impl Fragment {
    /// The list of a file that is one.
    pub(crate) fn of(file: DataFile) -> Option<Self> {
        file.list().cloned().map(Self)
    }

    /// About how much of what it has of a range lies in a part of that, by metadata in memory.
    pub(crate) fn portion_inside(&self, whole: &Range, held: Portion, part: &Range) -> Portion {
        portion_inside(whole, held, part, || self.0.share_inside(whole, part))
    }
}

impl DataFile {
    /// As [`Fragment::portion_inside`]; of a tree, by the counters of its nodes.
    pub(crate) fn portion_inside(&self, whole: &Range, held: Portion, part: &Range) -> Portion {
        portion_inside(whole, held, part, || match self {
            Self::List(list) => list.share_inside(whole, part),
            Self::Tree(tree) => {
                let high = part.high.as_ref().map_or(1.0, |high| tree.share_below(whole, high));
                high - tree.share_below(whole, &part.low)
            }
        })
    }
}

fn portion_inside(whole: &Range, held: Portion, part: &Range, share: impl FnOnce() -> f64) -> Portion {
    if part == whole {
        return held;
    }
    let share = share().max(0.0);
    debug_assert!(share <= 1.0, "a part has no more than the whole");
    let of = |count: u64| (share * count as f64).round() as u64;
    Portion { bytes: of(held.bytes), records: of(held.records) }
}

impl tree::Fragment for Fragment {
    fn id(&self) -> u64 {
        self.0.id()
    }

    fn middle(&self, range: &Range) -> Option<Bound> {
        self.0.middle(range)
    }

    fn share_below(&self, range: &Range, at: &Bound) -> f64 {
        let share = self.0.share_below(range, at);
        debug_assert!((0.0..=1.0).contains(&share), "a share is of one");
        share
    }

    fn repeats<'a>(lists: impl Iterator<Item = &'a tree::List<Self>>, low: u64, high: u64) -> f64 {
        let digests: Vec<_> = lists.map(|list| (list.fragment.0.digest(), list.records)).collect();
        digest::repeats(digests.iter().map(|(digest, records)| Part { digest, low, high, records: *records }))
    }

    fn tombstone_share(&self) -> f64 {
        self.0.tombstone_share()
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

impl Files {
    /// How each of this many lists is read that are merged side by side.
    pub(crate) fn reading(&self, share: usize) -> Reading {
        let chunk_bytes = (self.merge_memory_bytes / share.max(1)).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Reading::Job { cause: self.cause, chunk_bytes }
    }
}

/// How much there is of a buffer for lists, and in which shape: of values that stay where they are a pointer.
pub(crate) fn flushed(contents: &Contents, apart: Option<&Apart>) -> (Portion, Shape) {
    let Contents { bytes, records, shape, .. } = *contents;
    let shape = apart.map_or(shape, |apart| apart.shape(shape));
    let bytes = match shape {
        Shape::Pointers { key_bytes } => records.saturating_mul(key_bytes as u64 + POINTER_BYTES as u64),
        Shape::Variable if apart.is_some() => bytes.min(records.saturating_mul(POINTED_RECORD_BYTES)),
        _ => bytes,
    };
    (Portion { bytes, records }, shape)
}

/// About how long a record is whose value stands elsewhere, among others.
const POINTED_RECORD_BYTES: u64 = 48;

impl tree::FragmentStore for Files {
    type Fragment = Fragment;
    type Cursor = ListCursor;
    type Writer = Writer;

    fn announce(&self, fragment: &Fragment, range: &Range, share: usize) {
        fragment.0.announce(range, self.reading(share));
    }

    fn cursor(&self, fragment: &Fragment, range: &Range, share: usize) -> Result<ListCursor> {
        ListCursor::new(&fragment.0, range, Direction::Forward, self.reading(share))
    }

    fn writer(&self, expected: &Expected) -> Result<Writer> {
        let Expected { range, records, shape, .. } = expected;
        ListWriter::new(&self.store.lists, range, *records, *shape, self.cause).map(Writer)
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
