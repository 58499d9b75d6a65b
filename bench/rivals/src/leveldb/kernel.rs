//! LevelDB's C interface, as far as it is needed, and a safe face for it. Every pointer that is handed in lives
//! until the call returns; every object and text that is handed out is given back once.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::path::Path;

use forebay_bench::Failure;

use super::Options;
use crate::native::kernel::{Owned, checked, shown, taken_text};
use crate::native::path_text;
use crate::native::writes::Writes;
use crate::sync::SyncWhen;

macro_rules! opaque {
    ($($name:ident)*) => { $(#[repr(C)] struct $name { _private: [u8; 0] })* };
}
opaque!(CDb CBatch CCache CFilter CIterator COptions CReadOptions CWriteOptions);

type Text = *mut *mut c_char;

// Links the library. Its own declarations are older than it, and lack some.
use leveldb_sys as _;

// SAFETY: as <leveldb/c.h> of 1.22 declares them.
unsafe extern "C" {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_open(options: *const COptions, path: *const c_char, error: Text) -> *mut CDb;
    fn leveldb_close(db: *mut CDb);
    fn leveldb_free(at: *mut c_void);

    fn leveldb_options_create() -> *mut COptions;
    fn leveldb_options_destroy(options: *mut COptions);
    fn leveldb_options_set_create_if_missing(options: *mut COptions, yes: c_uchar);
    fn leveldb_options_set_compression(options: *mut COptions, kind: c_int);
    fn leveldb_options_set_write_buffer_size(options: *mut COptions, bytes: usize);
    fn leveldb_options_set_max_file_size(options: *mut COptions, bytes: usize);
    fn leveldb_options_set_cache(options: *mut COptions, cache: *mut CCache);
    fn leveldb_options_set_filter_policy(options: *mut COptions, filter: *mut CFilter);
    fn leveldb_cache_create_lru(bytes: usize) -> *mut CCache;
    fn leveldb_cache_destroy(cache: *mut CCache);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut CFilter;
    fn leveldb_filterpolicy_destroy(filter: *mut CFilter);

    fn leveldb_writeoptions_create() -> *mut CWriteOptions;
    fn leveldb_writeoptions_destroy(options: *mut CWriteOptions);
    fn leveldb_writeoptions_set_sync(options: *mut CWriteOptions, sync: c_uchar);
    fn leveldb_put(
        db: *mut CDb,
        options: *const CWriteOptions,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
        error: Text,
    );
    fn leveldb_delete(
        db: *mut CDb,
        options: *const CWriteOptions,
        key: *const c_char,
        key_bytes: usize,
        error: Text,
    );
    fn leveldb_write(db: *mut CDb, options: *const CWriteOptions, batch: *mut CBatch, error: Text);
    fn leveldb_writebatch_create() -> *mut CBatch;
    fn leveldb_writebatch_destroy(batch: *mut CBatch);
    fn leveldb_writebatch_clear(batch: *mut CBatch);
    fn leveldb_writebatch_put(
        batch: *mut CBatch,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    );
    fn leveldb_writebatch_delete(batch: *mut CBatch, key: *const c_char, key_bytes: usize);

    fn leveldb_readoptions_create() -> *mut CReadOptions;
    fn leveldb_readoptions_destroy(options: *mut CReadOptions);
    fn leveldb_get(
        db: *mut CDb,
        options: *const CReadOptions,
        key: *const c_char,
        key_bytes: usize,
        value_bytes: *mut usize,
        error: Text,
    ) -> *mut c_char;
    fn leveldb_create_iterator(db: *mut CDb, options: *const CReadOptions) -> *mut CIterator;
    fn leveldb_iter_destroy(iterator: *mut CIterator);
    fn leveldb_iter_seek(iterator: *mut CIterator, key: *const c_char, key_bytes: usize);
    fn leveldb_iter_valid(iterator: *const CIterator) -> c_uchar;
    fn leveldb_iter_next(iterator: *mut CIterator);
    fn leveldb_iter_key(iterator: *const CIterator, bytes: *mut usize) -> *const c_char;
    fn leveldb_iter_value(iterator: *const CIterator, bytes: *mut usize) -> *const c_char;
    fn leveldb_iter_get_error(iterator: *const CIterator, error: Text);

    fn leveldb_compact_range(
        db: *mut CDb,
        from: *const c_char,
        from_bytes: usize,
        to: *const c_char,
        to_bytes: usize,
    );
    fn leveldb_property_value(db: *mut CDb, name: *const c_char) -> *mut c_char;
}

pub(super) fn version() -> String {
    // SAFETY: neither takes anything.
    unsafe { format!("{}.{}", leveldb_major_version(), leveldb_minor_version()) }
}

/// An open database.
pub(super) struct Db {
    db: Owned<CDb>,
    // Dropped after the database, which uses both.
    _cache: Owned<CCache>,
    _filter: Owned<CFilter>,
    hand: Hand<'static>,
    read: Owned<CReadOptions>,
}

impl Db {
    /// Opens or makes a database.
    pub(super) fn open(path: &Path, told: &Options) -> Result<Self, Failure> {
        let path = path_text(path)?;
        // SAFETY: every constructor is matched with its destructor, and gives a fresh object.
        unsafe {
            let cache = Owned::new(leveldb_cache_create_lru(told.cache_bytes), leveldb_cache_destroy)?;
            let filter = leveldb_filterpolicy_create_bloom(told.filter_bits_per_key);
            let filter = Owned::new(filter, leveldb_filterpolicy_destroy)?;
            let options = Owned::new(leveldb_options_create(), leveldb_options_destroy)?;
            let at = options.as_ptr();
            leveldb_options_set_create_if_missing(at, 1);
            leveldb_options_set_compression(at, 0);
            leveldb_options_set_write_buffer_size(at, told.write_buffer_bytes);
            leveldb_options_set_max_file_size(at, told.file_bytes_max);
            leveldb_options_set_cache(at, cache.as_ptr());
            leveldb_options_set_filter_policy(at, filter.as_ptr());
            let opened = checked(leveldb_free, |error| leveldb_open(at, path.as_ptr(), error))?;
            let db = Owned::new(opened, leveldb_close)?;
            Ok(Self {
                hand: Hand::new(db.as_ptr())?,
                db,
                _cache: cache,
                _filter: filter,
                read: Owned::new(leveldb_readoptions_create(), leveldb_readoptions_destroy)?,
            })
        }
    }

    /// What this database's own thread writes with.
    pub(super) fn hand(&mut self) -> &mut (impl Writes + use<>) {
        &mut self.hand
    }

    /// What one more thread writes with.
    pub(super) fn another(&self) -> Result<impl Writes + Send + '_, Failure> {
        Hand::new(self.db.as_ptr())
    }

    pub(super) fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let (db, options) = (self.db.as_ptr(), self.read.as_ptr());
        let mut value_bytes = 0;
        let bytes = &raw mut value_bytes;
        // SAFETY: the slice outlives the call; the value is ours, and looked at before it is given back.
        unsafe {
            let found = checked(leveldb_free, |error| {
                leveldb_get(db, options, key.as_ptr().cast(), key.len(), bytes, error)
            })?;
            if found.is_null() {
                return Ok(false);
            }
            value.extend_from_slice(shown(found, value_bytes));
            leveldb_free(found.cast());
        }
        Ok(true)
    }

    pub(super) fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Failure> {
        // SAFETY: a fresh iterator; what it shows does not change before it moves on.
        unsafe {
            let opened = leveldb_create_iterator(self.db.as_ptr(), self.read.as_ptr());
            let iterator = Owned::new(opened, leveldb_iter_destroy)?;
            let at = iterator.as_ptr();
            leveldb_iter_seek(at, from.as_ptr().cast(), from.len());
            let mut shown_count = 0;
            while shown_count < limit && leveldb_iter_valid(at) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = leveldb_iter_key(at, &raw mut key_bytes);
                let value = leveldb_iter_value(at, &raw mut value_bytes);
                each(shown(key, key_bytes), shown(value, value_bytes));
                leveldb_iter_next(at);
                shown_count += 1;
            }
            checked(leveldb_free, |error| leveldb_iter_get_error(at, error))
        }
    }

    /// Writes the memtable to a table and waits for it, then compacts the tables that hold keys from `from` to
    /// `from`.
    pub(super) fn compact_at(&mut self, from: &[u8]) {
        let (at, bytes) = (from.as_ptr().cast(), from.len());
        // SAFETY: the slice outlives the call.
        unsafe { leveldb_compact_range(self.db.as_ptr(), at, bytes, at, bytes) }
    }

    pub(super) fn property_text(&self, name: &CStr) -> Option<String> {
        // SAFETY: both pointers live; the text is ours.
        unsafe { taken_text(leveldb_free, leveldb_property_value(self.db.as_ptr(), name.as_ptr())) }
    }
}

/// What writes: its own batch and options, and the database that several may write to at once.
struct Hand<'a> {
    db: *mut CDb,
    batch: Owned<CBatch>,
    write: Owned<CWriteOptions>,
    write_synced: Owned<CWriteOptions>,
    _database: PhantomData<&'a ()>,
}

// SAFETY: LevelDB takes writes of several threads at once, and all else here is nobody else's.
unsafe impl Send for Hand<'_> {}

impl Hand<'_> {
    /// The database has to be open for as long as the hand is used.
    fn new(db: *mut CDb) -> Result<Self, Failure> {
        // SAFETY: every constructor is matched with its destructor, and gives a fresh object.
        unsafe {
            let write = Owned::new(leveldb_writeoptions_create(), leveldb_writeoptions_destroy)?;
            let write_synced = Owned::new(leveldb_writeoptions_create(), leveldb_writeoptions_destroy)?;
            leveldb_writeoptions_set_sync(write_synced.as_ptr(), 1);
            let batch = Owned::new(leveldb_writebatch_create(), leveldb_writebatch_destroy)?;
            Ok(Self { db, batch, write, write_synced, _database: PhantomData })
        }
    }

    fn write_options(&self, sync: SyncWhen) -> *const CWriteOptions {
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
            checked(leveldb_free, |error| {
                leveldb_put(db, options, key.cast(), key_bytes, value.cast(), value_bytes, error);
            })
        }
    }

    fn delete(&mut self, key: &[u8], sync: SyncWhen) -> Result<(), Failure> {
        let (db, options) = (self.db, self.write_options(sync));
        // SAFETY: the slice outlives the call, which copies it.
        unsafe {
            checked(leveldb_free, |error| {
                leveldb_delete(db, options, key.as_ptr().cast(), key.len(), error);
            })
        }
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            leveldb_writebatch_put(self.batch.as_ptr(), key.cast(), key_bytes, value.cast(), value_bytes);
        }
    }

    fn batch_delete(&mut self, key: &[u8]) {
        // SAFETY: the slice outlives the call, which copies it.
        unsafe { leveldb_writebatch_delete(self.batch.as_ptr(), key.as_ptr().cast(), key.len()) }
    }

    fn write_batch(&mut self, sync: SyncWhen) -> Result<(), Failure> {
        let (db, options, batch) = (self.db, self.write_options(sync), self.batch.as_ptr());
        // SAFETY: all three objects are ours and alive.
        let written = unsafe { checked(leveldb_free, |error| leveldb_write(db, options, batch, error)) };
        // SAFETY: as above.
        unsafe { leveldb_writebatch_clear(batch) };
        written
    }
}
