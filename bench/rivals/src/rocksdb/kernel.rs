//! RocksDB's C interface, as far as it is needed, and a safe face for it. Every pointer that is handed in lives
//! until the call returns; every object and text that is handed out is given back once.

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::null_mut;

use forebay_bench::Failure;
use librocksdb_sys as c;

use crate::native::kernel::{Owned, checked, shown, taken_text};
use crate::native::path_text;
use crate::native::writes::Writes;
use crate::sync::SyncWhen;

use super::optimist::Transacts;

/// An open database with one column family. Used by the thread that opened it: what it counts is that thread's.
pub(super) struct Db {
    // Fields are dropped in this order, and RocksDB wants the column given back before the database.
    column: Owned<c::rocksdb_column_family_handle_t>,
    db: Owned<c::rocksdb_t>,
    /// What the database is part of, where there are transactions.
    optimistic: Option<Owned<c::rocksdb_optimistictransactiondb_t>>,
    hand: Hand<'static>,
    log: Log,
    read: Owned<c::rocksdb_readoptions_t>,
    perf: Owned<c::rocksdb_perfcontext_t>,
}

impl Db {
    /// Opens or makes a database. `options` is a text of RocksDB's own format.
    pub(super) fn open(
        path: &Path,
        options: &str,
        log: Log,
        merging: Merging,
        transacting: Transacting,
    ) -> Result<Self, Failure> {
        let path = path_text(path)?;
        let text = CString::new(options)?;
        let name = c"default".as_ptr();
        let mut column = null_mut();
        // SAFETY: every constructor is matched with its destructor, and gives a fresh object.
        unsafe {
            let base = Owned::new(c::rocksdb_options_create(), c::rocksdb_options_destroy)?;
            let options = Owned::new(c::rocksdb_options_create(), c::rocksdb_options_destroy)?;
            let (from, to) = (base.as_ptr(), options.as_ptr());
            checked(c::rocksdb_free, |error| {
                c::rocksdb_get_options_from_string(from, text.as_ptr(), to, error)
            })?;
            if merging == Merging::Counts {
                c::rocksdb_options_set_uint64add_merge_operator(to);
            }
            let (to, columns) = (to.cast_const(), &raw mut column);
            let path = path.as_ptr();
            let (db, optimistic) = match transacting {
                Transacting::No => {
                    let opened = checked(c::rocksdb_free, |error| {
                        c::rocksdb_open_column_families(to, path, 1, &name, &to, columns, error)
                    })?;
                    (Owned::new(opened, c::rocksdb_close)?, None)
                }
                Transacting::Optimistically => {
                    let open = c::rocksdb_optimistictransactiondb_open_column_families;
                    let opened =
                        checked(c::rocksdb_free, |error| open(to, path, 1, &name, &to, columns, error))?;
                    let whole = Owned::new(opened, c::rocksdb_optimistictransactiondb_close)?;
                    let db = c::rocksdb_optimistictransactiondb_get_base_db(whole.as_ptr());
                    (Owned::new(db, c::rocksdb_optimistictransactiondb_close_base_db)?, Some(whole))
                }
            };
            let column = Owned::new(column, c::rocksdb_column_family_handle_destroy)?;
            c::rocksdb_set_perf_level(c::rocksdb_enable_count as c_int);
            Ok(Self {
                column,
                hand: Hand::new(db.as_ptr(), log)?,
                log,
                db,
                optimistic,
                read: Owned::new(c::rocksdb_readoptions_create(), c::rocksdb_readoptions_destroy)?,
                perf: Owned::new(c::rocksdb_perfcontext_create(), c::rocksdb_perfcontext_destroy)?,
            })
        }
    }

    /// What this database's own thread writes with.
    pub(super) fn hand(&mut self) -> &mut (impl Writes + use<>) {
        &mut self.hand
    }

    /// What one more thread writes with.
    pub(super) fn another(&self) -> Result<impl Writes + Send + '_, Failure> {
        Hand::new(self.db.as_ptr(), self.log)
    }

    /// What one more thread's transactions are made by, where there are some.
    pub(super) fn transacts(&self) -> Option<Result<Transacts<'_>, Failure>> {
        let optimistic = self.optimistic.as_ref()?.as_ptr();
        Some(Hand::new(self.db.as_ptr(), self.log).and_then(|hand| Transacts::new(optimistic, hand)))
    }

    pub(super) fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let (db, options) = (self.db.as_ptr(), self.read.as_ptr());
        // SAFETY: the slice outlives the call; the pinned value is ours until it is dropped.
        unsafe {
            let found = checked(c::rocksdb_free, |error| {
                c::rocksdb_get_pinned(db, options, key.as_ptr().cast(), key.len(), error)
            })?;
            if found.is_null() {
                return Ok(false);
            }
            let found = Owned::new(found, c::rocksdb_pinnableslice_destroy)?;
            value.extend_from_slice(pinned_bytes(&found));
        }
        Ok(true)
    }

    pub(super) fn multi_get(
        &mut self,
        keys: &[u8],
        key_bytes: usize,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Failure> {
        let starts: Vec<*const c_char> =
            keys.chunks_exact(key_bytes).map(|key| key.as_ptr().cast()).collect();
        let lengths = vec![key_bytes; starts.len()];
        let mut values = vec![null_mut(); starts.len()];
        let mut errors = vec![null_mut(); starts.len()];
        // SAFETY: all five arrays have as many entries as is said, and the keys live.
        unsafe {
            c::rocksdb_batched_multi_get_cf(
                self.db.as_ptr(),
                self.read.as_ptr(),
                self.column.as_ptr(),
                starts.len(),
                starts.as_ptr(),
                lengths.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        }
        // Everything is taken over before anything is looked at, so that nothing is lost on an early return.
        let mut failure = None;
        for text in errors {
            // SAFETY: RocksDB sets each to null or to a text that is ours.
            failure = failure.or(unsafe { taken_text(c::rocksdb_free, text) });
        }
        let found: Vec<Option<Owned<c::rocksdb_pinnableslice_t>>> = values
            .into_iter()
            // SAFETY: RocksDB sets each to null or to a pinned value that is ours.
            .map(|value| unsafe { Owned::new(value, c::rocksdb_pinnableslice_destroy) }.ok())
            .collect();
        if let Some(reason) = failure {
            return Err(reason.into());
        }
        for (number, value) in found.iter().enumerate() {
            each(number, value.as_ref().map(pinned_bytes));
        }
        Ok(())
    }

    pub(super) fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Failure> {
        // SAFETY: a fresh iterator; what it shows does not change before it moves on.
        unsafe {
            let opened = c::rocksdb_create_iterator(self.db.as_ptr(), self.read.as_ptr());
            let iterator = Owned::new(opened, c::rocksdb_iter_destroy)?;
            let at = iterator.as_ptr();
            c::rocksdb_iter_seek(at, from.as_ptr().cast(), from.len());
            let mut shown_count = 0;
            while shown_count < limit && c::rocksdb_iter_valid(at) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = c::rocksdb_iter_key(at, &raw mut key_bytes);
                let value = c::rocksdb_iter_value(at, &raw mut value_bytes);
                each(shown(key, key_bytes), shown(value, value_bytes));
                c::rocksdb_iter_next(at);
                shown_count += 1;
            }
            checked(c::rocksdb_free, |error| c::rocksdb_iter_get_error(at, error))
        }
    }

    /// Writes all memtables to tables, and waits until no compaction and no removal of a file is left to be done.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        // SAFETY: fresh options, which outlive the call.
        unsafe {
            let options = c::rocksdb_wait_for_compact_options_create();
            let options = Owned::new(options, c::rocksdb_wait_for_compact_options_destroy)?;
            c::rocksdb_wait_for_compact_options_set_flush(options.as_ptr(), 1);
            c::rocksdb_wait_for_compact_options_set_wait_for_purge(options.as_ptr(), 1);
            let (db, options) = (self.db.as_ptr(), options.as_ptr());
            checked(c::rocksdb_free, |error| c::rocksdb_wait_for_compact(db, options, error))
        }
    }

    /// Adds an operand to the batch that [`Self::write_batch`] writes.
    pub(super) fn batch_merge(&mut self, key: &[u8], operand: &[u8]) {
        let (key, key_bytes, operand, bytes) = (key.as_ptr(), key.len(), operand.as_ptr(), operand.len());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            c::rocksdb_writebatch_merge(
                self.hand.batch.as_ptr(),
                key.cast(),
                key_bytes,
                operand.cast(),
                bytes,
            );
        }
    }

    pub(super) fn property_text(&self, name: &CStr) -> Option<String> {
        // SAFETY: both pointers live; the text is ours.
        unsafe { taken_text(c::rocksdb_free, c::rocksdb_property_value(self.db.as_ptr(), name.as_ptr())) }
    }

    /// Blocks that this thread's lookups and scans read from files.
    pub(super) fn block_reads(&self) -> u64 {
        // SAFETY: the context is alive.
        unsafe { c::rocksdb_perfcontext_metric(self.perf.as_ptr(), c::rocksdb_block_read_count as c_int) }
    }
}

/// What writes: its own batch and options, and the database that several may write to at once.
pub(super) struct Hand<'a> {
    db: *mut c::rocksdb_t,
    batch: Owned<c::rocksdb_writebatch_t>,
    write: Owned<c::rocksdb_writeoptions_t>,
    write_synced: Owned<c::rocksdb_writeoptions_t>,
    _database: PhantomData<&'a ()>,
}

// SAFETY: RocksDB takes writes of several threads at once, and all else here is nobody else's.
unsafe impl Send for Hand<'_> {}

impl Hand<'_> {
    /// The database has to be open for as long as the hand is used.
    fn new(db: *mut c::rocksdb_t, log: Log) -> Result<Self, Failure> {
        // SAFETY: every constructor is matched with its destructor, and gives a fresh object.
        unsafe {
            let write = Owned::new(c::rocksdb_writeoptions_create(), c::rocksdb_writeoptions_destroy)?;
            c::rocksdb_writeoptions_disable_WAL(write.as_ptr(), c_int::from(log == Log::Off));
            let write_synced = Owned::new(c::rocksdb_writeoptions_create(), c::rocksdb_writeoptions_destroy)?;
            c::rocksdb_writeoptions_set_sync(write_synced.as_ptr(), 1);
            let batch = Owned::new(c::rocksdb_writebatch_create(), c::rocksdb_writebatch_destroy)?;
            Ok(Self { db, batch, write, write_synced, _database: PhantomData })
        }
    }

    pub(super) fn write_options(&self, sync: SyncWhen) -> *const c::rocksdb_writeoptions_t {
        match sync {
            SyncWhen::Later => self.write.as_ptr(),
            SyncWhen::Now => self.write_synced.as_ptr(),
        }
    }
}

impl Writes for Hand<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], sync: SyncWhen) -> Result<(), Failure> {
        let (db, options) = (self.db, self.write_options(sync));
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            checked(c::rocksdb_free, |error| {
                c::rocksdb_put(db, options, key.cast(), key_bytes, value.cast(), value_bytes, error);
            })
        }
    }

    fn delete(&mut self, key: &[u8], sync: SyncWhen) -> Result<(), Failure> {
        let (db, options) = (self.db, self.write_options(sync));
        // SAFETY: the slice outlives the call, which copies it.
        unsafe {
            checked(c::rocksdb_free, |error| {
                c::rocksdb_delete(db, options, key.as_ptr().cast(), key.len(), error);
            })
        }
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            c::rocksdb_writebatch_put(self.batch.as_ptr(), key.cast(), key_bytes, value.cast(), value_bytes);
        }
    }

    fn batch_delete(&mut self, key: &[u8]) {
        // SAFETY: the slice outlives the call, which copies it.
        unsafe { c::rocksdb_writebatch_delete(self.batch.as_ptr(), key.as_ptr().cast(), key.len()) }
    }

    fn write_batch(&mut self, sync: SyncWhen) -> Result<(), Failure> {
        let (db, options, batch) = (self.db, self.write_options(sync), self.batch.as_ptr());
        // SAFETY: all three objects are ours and alive.
        let written =
            unsafe { checked(c::rocksdb_free, |error| c::rocksdb_write(db, options, batch, error)) };
        // SAFETY: as above.
        unsafe { c::rocksdb_writebatch_clear(batch) };
        written
    }
}

/// Whether there are transactions that read and write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Transacting {
    No,
    Optimistically,
}

/// Whether writes go to the write-ahead log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    On,
    Off,
}

/// What becomes of operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merging {
    Nothing,
    /// RocksDB's own `uint64add`.
    Counts,
}

fn pinned_bytes(value: &Owned<c::rocksdb_pinnableslice_t>) -> &[u8] {
    let mut bytes = 0;
    // SAFETY: the value is pinned for as long as the owner lives.
    unsafe {
        let at = c::rocksdb_pinnableslice_value(value.as_ptr(), &raw mut bytes);
        shown(at, bytes)
    }
}
