//! Write batches. LevelDB's know no database, so they keep their operations until they are written.
//!
//! **Invariant:** no call has one to itself: it may be given the same batch twice, to append it to itself.

use std::ffi::{c_char, c_void};

use forebay::OrderedTable;
use forebay_env::sync::RwLock;

use crate::kernel::{as_they_are, plain};

/// `leveldb_writebatch_t`.
#[derive(Default)]
pub(super) struct LevelBatch(RwLock<Vec<Operation>>);

/// A key, and its value or none where it is deleted.
#[derive(Clone)]
struct Operation(Vec<u8>, Option<Vec<u8>>);

impl LevelBatch {
    /// The same for a table.
    pub(super) fn of(&self, table: &OrderedTable) -> forebay::Batch {
        let mut batch = forebay::Batch::new();
        for Operation(key, value) in &*self.0.read() {
            match value {
                Some(value) => batch.put(table, key, value),
                None => batch.delete(table, key),
            }
        }
        batch
    }
}

/// What is called for each operation.
type Put = Option<
    extern "C" fn(
        state: *mut c_void,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    ),
>;
type Deleted = Option<extern "C" fn(state: *mut c_void, key: *const c_char, key_bytes: usize)>;

as_they_are!([] Put, [] Deleted);

plain! {
    fn leveldb_writebatch_create() -> Option<Box<LevelBatch>> {
        Some(Box::default())
    }

    fn leveldb_writebatch_destroy(batch: Option<Box<LevelBatch>>) {
        drop(batch);
    }

    fn leveldb_writebatch_clear(batch: &LevelBatch) {
        batch.0.write().clear();
    }

    fn leveldb_writebatch_put(
        batch: &LevelBatch,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
    ) {
        batch.0.write().push(Operation(key.to_vec(), Some(value.to_vec())));
    }

    fn leveldb_writebatch_delete(batch: &LevelBatch, key: &[u8] [key_bytes]) {
        batch.0.write().push(Operation(key.to_vec(), None));
    }

    fn leveldb_writebatch_iterate(batch: &LevelBatch, state: *mut c_void, put: Put, deleted: Deleted) {
        for Operation(key, value) in &*batch.0.read() {
            let (key, key_bytes) = (key.as_ptr().cast(), key.len());
            match (value, put, deleted) {
                (Some(value), Some(put), _) => put(state, key, key_bytes, value.as_ptr().cast(), value.len()),
                (None, _, Some(deleted)) => deleted(state, key, key_bytes),
                _ => {}
            }
        }
    }

    fn leveldb_writebatch_append(destination: &LevelBatch, source: &LevelBatch) {
        let more = source.0.read().clone();
        destination.0.write().extend(more);
    }
}
