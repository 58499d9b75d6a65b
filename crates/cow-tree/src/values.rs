//! Values of a tree's records that stand in value files: how much each version has in which, and how long those are
//! needed.
//!
//! **Invariant:** a value file that some version of a tree's file has named is needed until the tree's file is retired.
//! Who has an older version, or finds it in a manifest, may read it as long as the file is there. So a version names
//! all that those before it have named, also where none of its own values are left there.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::{Kind, Record, Result, ValuePointer};
use forebay_env::sync::Mutex;
use forebay_store::values::{Pointers, Tallied, ValueShare};
use forebay_store::{Metrics, ValueFile};

use crate::store::TreeStore;
use crate::tree::Tree;

/// What it takes to know how much a version has in a value file.
const SHARE_MEMORY_BYTES: u64 = (size_of::<ValueShare>() + size_of::<Arc<ValueFile>>()) as u64;

/// What a version has in value files, which it holds.
pub(crate) struct Values {
    pub(crate) shares: Arc<[ValueShare]>,
    pub(crate) files: Box<[Arc<ValueFile>]>,
    /// How long the values are, all together.
    pub(crate) bytes: u64,
    metrics: Arc<Metrics>,
}

impl Values {
    /// As a manifest has it.
    pub(crate) fn named(store: &TreeStore, shares: Arc<[ValueShare]>) -> Self {
        let files = shares.iter().map(|share| store.values.named(share.file, share.file_bytes)).collect();
        Self::new(store, shares, files)
    }

    /// As it was written.
    pub(crate) fn written(store: &TreeStore, tallied: Tallied) -> Self {
        Self::new(store, tallied.shares, tallied.files.into())
    }

    fn new(store: &TreeStore, shares: Arc<[ValueShare]>, files: Box<[Arc<ValueFile>]>) -> Self {
        debug_assert_eq!(shares.len(), files.len(), "each share is of a file");
        let metrics = Arc::clone(&store.metrics);
        metrics.index_memory_bytes.add(SHARE_MEMORY_BYTES * shares.len() as u64);
        let bytes = shares.iter().fold(0, |sum: u64, share| sum.saturating_add(share.bytes));
        Self { shares, files, bytes, metrics }
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        self.metrics.index_memory_bytes.subtract(SHARE_MEMORY_BYTES * self.shares.len() as u64);
    }
}

/// The value files that a tree's file needs.
#[derive(Default)]
pub(crate) struct NeededValues(Mutex<State>);

#[derive(Default)]
struct State {
    /// Each, and where the root is of the version that was the first to name it.
    files: BTreeMap<u64, (Arc<ValueFile>, u64)>,
    is_over: bool,
}

impl NeededValues {
    /// A version that is there, whose root is here, names these.
    pub(crate) fn begin(&self, files: &[Arc<ValueFile>], root_at: u64) {
        let mut state = self.0.lock();
        if state.is_over {
            return;
        }
        for file in files {
            state.files.entry(file.id()).or_insert_with(|| {
                file.begin();
                (Arc::clone(file), root_at)
            });
        }
    }

    /// That version is given up, and no manifest names it.
    pub(crate) fn give_up(&self, root_at: u64) {
        let mut state = self.0.lock();
        let (of_it, others) =
            std::mem::take(&mut state.files).into_iter().partition(|(_, (_, first))| *first == root_at);
        state.files = others;
        drop(state);
        end(of_it);
    }

    /// The tree's file is not there any more.
    pub(crate) fn end(&self) {
        let mut state = self.0.lock();
        state.is_over = true;
        let files = std::mem::take(&mut state.files);
        drop(state);
        end(files);
    }
}

/// What nobody has but these goes with them.
fn end(files: BTreeMap<u64, (Arc<ValueFile>, u64)>) {
    files.values().for_each(|(file, _)| file.end());
}

/// The pointers of a version that is being written.
pub(crate) struct WrittenPointers(Option<Box<Pointers>>);

impl WrittenPointers {
    /// Over those of the version before.
    pub(crate) fn over(store: &TreeStore, old: Option<&Tree>) -> Self {
        let old = old.map(Tree::values).filter(|values| !values.files.is_empty());
        Self(old.map(|old| Box::new(Pointers::over(&store.values, &store.next_id, &old.files, &old.shares))))
    }

    /// Counts the pointer of a record. Returns the new one, where its value was moved.
    pub(crate) fn take(&mut self, store: &TreeStore, record: &Record<'_>) -> Result<Option<Vec<u8>>> {
        debug_assert_eq!(record.kind, Kind::Pointer);
        let pointers = self.0.get_or_insert_with(|| Box::new(Pointers::new(&store.values, &store.next_id)));
        Ok(pointers.take(record)?.map(encoded))
    }

    /// The same of one that the version before has, too.
    pub(crate) fn carry(&mut self, record: &Record<'_>) -> Result<Option<Vec<u8>>> {
        debug_assert_eq!(record.kind, Kind::Pointer);
        let Some(pointers) = &mut self.0 else { return Ok(None) };
        Ok(pointers.carry(record)?.map(encoded))
    }

    /// A pointer of the version before has no place in this one.
    pub(crate) fn give_up(&mut self, pointer: &[u8]) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |pointers| pointers.give_up(pointer))
    }

    /// What there is in which value file.
    pub(crate) fn finish(&mut self) -> Result<Tallied> {
        let pointers = self.0.take().map(|pointers| pointers.finish()).transpose()?;
        Ok(pointers.unwrap_or_default())
    }
}

fn encoded(pointer: ValuePointer) -> Vec<u8> {
    let mut bytes = Vec::new();
    pointer.encode(&mut bytes);
    bytes
}

/// How long the value is that a pointer leads to.
pub(crate) fn pointed_bytes(pointer: &[u8]) -> u64 {
    ValuePointer::decode(pointer).map_or(0, |pointer| pointer.bytes)
}
