//! Options of databases, reads and writes. Forebay has one memory limit where LevelDB has a write buffer and a cache.

use std::ffi::c_int;

use forebay::{Codec, Durability, Error, Result};

use super::snapshot::LevelSnapshot;
use super::stubs::{Cache, Comparator, Environment, FilterPolicy, Logger};
use crate::kernel::plain;

/// LevelDB's own sizes.
const WRITE_BUFFER_BYTES: usize = 4 << 20;
const CACHE_BYTES: usize = 8 << 20;
/// A write buffer is a quarter of Forebay's memory limit.
const WRITE_BUFFERS_IN_LIMIT: u64 = 4;
/// The least that is asked for: merges and filters want some, too.
const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// Forebay keeps no fewer open.
const OPEN_FILES_MIN: usize = 16;
/// The one order that there is, by LevelDB's name for it.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// `leveldb_options_t`.
#[derive(Clone)]
pub(super) struct LevelOptions {
    pub(super) create_if_missing: bool,
    pub(super) error_if_exists: bool,
    pub(super) codec: Codec,
    write_buffer_bytes: usize,
    cache_bytes: usize,
    open_files_max: Option<usize>,
    comparator: Option<String>,
}

impl Default for LevelOptions {
    fn default() -> Self {
        Self {
            create_if_missing: false,
            error_if_exists: false,
            codec: Codec::Lz4,
            write_buffer_bytes: WRITE_BUFFER_BYTES,
            cache_bytes: CACHE_BYTES,
            open_files_max: None,
            comparator: None,
        }
    }
}

impl LevelOptions {
    /// The same for a database that must be there.
    pub(super) fn of_existing(&self) -> Self {
        Self { create_if_missing: false, error_if_exists: false, ..self.clone() }
    }

    /// What they come to for a database that is there; an error for an order that Forebay does not have.
    pub(super) fn engine(&self) -> Result<forebay::Options> {
        if let Some(name) = self.comparator.as_deref().filter(|name| *name != BYTEWISE) {
            return Err(Error::invalid(format!(
                "comparator `{name}`: keys are in the order of their bytes; set no comparator, or one whose name is \
                 {BYTEWISE}"
            )));
        }
        let buffers = (self.write_buffer_bytes as u64).saturating_mul(WRITE_BUFFERS_IN_LIMIT);
        let memory = buffers.saturating_add(self.cache_bytes as u64).max(MEMORY_BYTES_MIN);
        let options = forebay::Options::default().memory_limit(memory).create_if_missing(false);
        Ok(match self.open_files_max {
            Some(files) => options.open_files_max(files.max(OPEN_FILES_MIN)),
            None => options,
        })
    }
}

/// `leveldb_readoptions_t`.
#[derive(Default)]
pub(super) struct ReadOptions {
    pub(super) snapshot: Option<forebay::Snapshot>,
}

/// `leveldb_writeoptions_t`.
#[derive(Default)]
pub(super) struct WriteOptions {
    sync: bool,
}

impl WriteOptions {
    pub(super) fn durability(&self) -> Durability {
        if self.sync { Durability::Disk } else { Durability::Os }
    }
}

plain! {
    fn leveldb_options_create() -> Option<Box<LevelOptions>> {
        Some(Box::default())
    }

    fn leveldb_options_destroy(options: Option<Box<LevelOptions>>) {
        drop(options);
    }

    fn leveldb_options_set_comparator(options: &mut LevelOptions, comparator: Option<&Comparator>) {
        options.comparator = comparator.map(|comparator| comparator.name.clone());
    }

    fn leveldb_options_set_create_if_missing(options: &mut LevelOptions, value: u8) {
        options.create_if_missing = value != 0;
    }

    fn leveldb_options_set_error_if_exists(options: &mut LevelOptions, value: u8) {
        options.error_if_exists = value != 0;
    }

    fn leveldb_options_set_write_buffer_size(options: &mut LevelOptions, bytes: usize) {
        options.write_buffer_bytes = bytes;
    }

    fn leveldb_options_set_max_open_files(options: &mut LevelOptions, files: c_int) {
        options.open_files_max = usize::try_from(files).ok();
    }

    fn leveldb_options_set_cache(options: &mut LevelOptions, cache: Option<&Cache>) {
        options.cache_bytes = cache.map_or(CACHE_BYTES, |cache| cache.bytes);
    }

    fn leveldb_options_set_compression(options: &mut LevelOptions, compression: c_int) {
        options.codec = if compression == 0 { Codec::None } else { Codec::Lz4 };
    }

    fn leveldb_options_set_filter_policy(_options: &mut LevelOptions, _policy: Option<&FilterPolicy>) {}

    fn leveldb_options_set_paranoid_checks(_options: &mut LevelOptions, _value: u8) {}

    fn leveldb_options_set_env(_options: &mut LevelOptions, _env: Option<&Environment>) {}

    fn leveldb_options_set_info_log(_options: &mut LevelOptions, _log: Option<&Logger>) {}

    fn leveldb_options_set_block_size(_options: &mut LevelOptions, _bytes: usize) {}

    fn leveldb_options_set_block_restart_interval(_options: &mut LevelOptions, _keys: c_int) {}

    fn leveldb_options_set_max_file_size(_options: &mut LevelOptions, _bytes: usize) {}

    fn leveldb_readoptions_create() -> Option<Box<ReadOptions>> {
        Some(Box::default())
    }

    fn leveldb_readoptions_destroy(options: Option<Box<ReadOptions>>) {
        drop(options);
    }

    fn leveldb_readoptions_set_verify_checksums(_options: &mut ReadOptions, _value: u8) {}

    fn leveldb_readoptions_set_fill_cache(_options: &mut ReadOptions, _value: u8) {}

    fn leveldb_readoptions_set_snapshot(options: &mut ReadOptions, snapshot: Option<&LevelSnapshot>) {
        options.snapshot = snapshot.map(|snapshot| snapshot.0.clone());
    }

    fn leveldb_writeoptions_create() -> Option<Box<WriteOptions>> {
        Some(Box::default())
    }

    fn leveldb_writeoptions_destroy(options: Option<Box<WriteOptions>>) {
        drop(options);
    }

    fn leveldb_writeoptions_set_sync(options: &mut WriteOptions, value: u8) {
        options.sync = value != 0;
    }
}
