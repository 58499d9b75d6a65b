//! Writing by a C interface like LevelDB's, which RocksDB's is too: single writes, and a batch that is filled and
//! then written.

use forebay_bench::{Batch, Failure, Writer};

use crate::sync::{Pace, SyncWhen};

/// What such an interface does.
pub(crate) trait Writes {
    fn put(&mut self, key: &[u8], value: &[u8], sync: SyncWhen) -> Result<(), Failure>;

    fn delete(&mut self, key: &[u8], sync: SyncWhen) -> Result<(), Failure>;

    /// Adds a put to the batch that [`Self::write_batch`] writes.
    fn batch_put(&mut self, key: &[u8], value: &[u8]);

    /// Adds a delete to the batch that [`Self::write_batch`] writes.
    fn batch_delete(&mut self, key: &[u8]);

    /// Writes the batch, and empties it.
    fn write_batch(&mut self, sync: SyncWhen) -> Result<(), Failure>;
}

/// One of several writers.
pub(crate) struct Beside<W> {
    pub(crate) hand: W,
    pub(crate) pace: Pace,
}

impl<W: Writes + Send> Writer for Beside<W> {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        put(&mut self.hand, &self.pace, batch)
    }
}

/// As [`Engine::put`](forebay_bench::Engine::put) asks.
pub(crate) fn put(db: &mut impl Writes, pace: &Pace, batch: Batch<'_>) -> Result<(), Failure> {
    let sync = pace.next();
    if batch.len() == 1 {
        return batch.iter().try_for_each(|(key, value)| db.put(key, value, sync));
    }
    for (key, value) in batch.iter() {
        db.batch_put(key, value);
    }
    db.write_batch(sync)
}

/// As [`Engine::delete`](forebay_bench::Engine::delete) asks.
pub(crate) fn delete(
    db: &mut impl Writes,
    pace: &Pace,
    keys: &[u8],
    key_bytes: usize,
) -> Result<(), Failure> {
    let sync = pace.next();
    if keys.len() == key_bytes {
        return db.delete(keys, sync);
    }
    for key in keys.chunks_exact(key_bytes) {
        db.batch_delete(key);
    }
    db.write_batch(sync)
}
