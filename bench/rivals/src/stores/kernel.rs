//! RocksDB's C interface for many databases on one block cache and one write buffer manager, and a safe face for it.
//! Every pointer that is handed in lives until the call returns; every object that is handed out is given back once.

use std::path::Path;

use forebay_bench::Failure;
use librocksdb_sys as c;

use crate::native::kernel::{Owned, checked};
use crate::native::path_text;

/// Of the memory half is for write buffers, which count in the cache.
const WRITE_BUFFERS_PART: usize = 2;
const FILTER_BITS_PER_KEY: f64 = 10.0;

/// What all databases have together: memory, threads, options.
pub(super) struct Together {
    options: Owned<c::rocksdb_options_t>,
    write: Owned<c::rocksdb_writeoptions_t>,
    read: Owned<c::rocksdb_readoptions_t>,
    batch: Owned<c::rocksdb_writebatch_t>,
    _table: Owned<c::rocksdb_block_based_table_options_t>,
    _manager: Owned<c::rocksdb_write_buffer_manager_t>,
    _cache: Owned<c::rocksdb_cache_t>,
    _env: Owned<c::rocksdb_env_t>,
}

impl Together {
    /// As RocksDB's own pages on memory have it: blocks, indexes, filters and write buffers in one cache.
    pub(super) fn new(memory_bytes: usize, write_buffer_bytes: usize, threads: i32) -> Result<Self, Failure> {
        // SAFETY: every constructor is matched with its destructor, and gives a fresh object. A filter policy is the
        // table options' from the moment it is set; all else is shared by counting.
        unsafe {
            let env = Owned::new(c::rocksdb_create_default_env(), c::rocksdb_env_destroy)?;
            c::rocksdb_env_set_background_threads(env.as_ptr(), threads);
            c::rocksdb_env_set_high_priority_background_threads(env.as_ptr(), threads.min(2));
            let cache = Owned::new(c::rocksdb_cache_create_lru(memory_bytes), c::rocksdb_cache_destroy)?;
            let manager = c::rocksdb_write_buffer_manager_create_with_cache(
                memory_bytes / WRITE_BUFFERS_PART,
                cache.as_ptr(),
                true,
            );
            let manager = Owned::new(manager, c::rocksdb_write_buffer_manager_destroy)?;
            let table = c::rocksdb_block_based_options_create();
            let table = Owned::new(table, c::rocksdb_block_based_options_destroy)?;
            let filter = c::rocksdb_filterpolicy_create_bloom_full(FILTER_BITS_PER_KEY);
            c::rocksdb_block_based_options_set_filter_policy(table.as_ptr(), filter);
            c::rocksdb_block_based_options_set_block_cache(table.as_ptr(), cache.as_ptr());
            c::rocksdb_block_based_options_set_cache_index_and_filter_blocks(table.as_ptr(), 1);
            let options = Owned::new(c::rocksdb_options_create(), c::rocksdb_options_destroy)?;
            let to = options.as_ptr();
            c::rocksdb_options_set_create_if_missing(to, 1);
            c::rocksdb_options_set_compression(to, c::rocksdb_no_compression as i32);
            c::rocksdb_options_set_env(to, env.as_ptr());
            c::rocksdb_options_set_max_background_jobs(to, threads + threads.min(2));
            c::rocksdb_options_set_write_buffer_size(to, write_buffer_bytes);
            c::rocksdb_options_set_write_buffer_manager(to, manager.as_ptr());
            c::rocksdb_options_set_block_based_table_factory(to, table.as_ptr());
            Ok(Self {
                options,
                write: Owned::new(c::rocksdb_writeoptions_create(), c::rocksdb_writeoptions_destroy)?,
                read: Owned::new(c::rocksdb_readoptions_create(), c::rocksdb_readoptions_destroy)?,
                batch: Owned::new(c::rocksdb_writebatch_create(), c::rocksdb_writebatch_destroy)?,
                _table: table,
                _manager: manager,
                _cache: cache,
                _env: env,
            })
        }
    }

    /// Opens or makes one of the databases.
    pub(super) fn open(&self, path: &Path) -> Result<Store, Failure> {
        let path = path_text(path)?;
        let options = self.options.as_ptr().cast_const();
        // SAFETY: the options and the path outlive the call, which gives a fresh object or an error.
        unsafe {
            let opened = checked(c::rocksdb_free, |error| c::rocksdb_open(options, path.as_ptr(), error))?;
            Ok(Store(Owned::new(opened, c::rocksdb_close)?))
        }
    }

    /// Adds to the batch that [`Self::write`] writes.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        unsafe {
            c::rocksdb_writebatch_put(self.batch.as_ptr(), key.cast(), key_bytes, value.cast(), value_bytes);
        }
    }

    /// Writes the batch to a database, and empties it.
    pub(super) fn write(&mut self, store: &Store) -> Result<(), Failure> {
        let (db, options, batch) = (store.0.as_ptr(), self.write.as_ptr(), self.batch.as_ptr());
        // SAFETY: all three objects are alive.
        unsafe {
            let written = checked(c::rocksdb_free, |error| c::rocksdb_write(db, options, batch, error));
            c::rocksdb_writebatch_clear(batch);
            written
        }
    }

    /// Whether a database has a key.
    pub(super) fn has(&self, store: &Store, key: &[u8]) -> Result<bool, Failure> {
        let (db, options) = (store.0.as_ptr(), self.read.as_ptr());
        // SAFETY: the slice outlives the call; the pinned value is ours until it is dropped.
        unsafe {
            let found = checked(c::rocksdb_free, |error| {
                c::rocksdb_get_pinned(db, options, key.as_ptr().cast(), key.len(), error)
            })?;
            if found.is_null() {
                return Ok(false);
            }
            drop(Owned::new(found, c::rocksdb_pinnableslice_destroy)?);
        }
        Ok(true)
    }
}

/// One database. It goes before what all have together.
pub(super) struct Store(Owned<c::rocksdb_t>);
