//! The database: one table in key order, by the name `leveldb`.

use std::ffi::{c_char, c_int};
use std::ops::Bound as End;
use std::path::Path;

use forebay::{Database, Error, OrderedTable, Result};

use super::batch::LevelBatch;
use super::options::{LevelOptions, ReadOptions, WriteOptions};
use crate::kernel::{Items, Out, Room, bytes_at, fallible, given, plain, put};
use crate::outcome::TextOut;
use crate::table::bounds;

const TABLE: &str = "leveldb";

/// `leveldb_t`.
pub(super) struct LevelDb {
    /// Let go of before the database is closed.
    pub(super) table: OrderedTable,
    pub(super) db: Database,
}

impl LevelDb {
    fn open(options: &LevelOptions, path: &Path) -> Result<Self> {
        let asked = options.engine()?;
        let db = match Database::open(path, asked.clone()) {
            Ok(_) if options.error_if_exists => {
                let path = path.display();
                return Err(Error::invalid(format!("{path} exists, and error_if_exists is set")));
            }
            Err(error) if error.is_not_found() && options.create_if_missing => {
                Database::open(path, asked.create_if_missing(true))?
            }
            opened => opened?,
        };
        // Compression is what the table was made with: LevelDB lets it change, and a table does not.
        let table = match db.table(TABLE).existing(true).open_ordered() {
            Err(error) if error.is_not_found() => db.table(TABLE).codec(options.codec).open_ordered()?,
            opened => opened?,
        };
        Ok(Self { table, db })
    }

    /// One of LevelDB's properties.
    fn property(&self, name: &str) -> Option<String> {
        let level = name.strip_prefix("leveldb.num-files-at-level").map(str::parse::<usize>);
        match (name, level) {
            ("leveldb.stats", _) => Some(self.db.stats().to_string()),
            ("leveldb.sstables", _) => Some(self.db.describe().to_string()),
            ("leveldb.approximate-memory-usage", _) => Some(self.db.stats().memory.total.to_string()),
            (_, Some(Ok(level))) => {
                // Forebay counts from 1.
                let tables = self.db.stats().tables;
                let levels = tables.iter().flat_map(|table| &table.levels);
                Some(levels.filter(|of| of.level == level + 1).map(|of| of.lists).sum::<usize>().to_string())
            }
            _ => None,
        }
    }
}

fallible! { TextOut<'_>;
    fn leveldb_open(options: &LevelOptions, name: &Path) -> Option<Box<LevelDb>> {
        Ok(Some(Box::new(LevelDb::open(options, name)?)))
    }

    fn leveldb_put(
        db: &LevelDb,
        options: &WriteOptions,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
    ) {
        let mut batch = forebay::Batch::new();
        batch.put(&db.table, key, value);
        db.db.commit(batch, options.durability()).map(drop)
    }

    fn leveldb_delete(db: &LevelDb, options: &WriteOptions, key: &[u8] [key_bytes]) {
        let mut batch = forebay::Batch::new();
        batch.delete(&db.table, key);
        db.db.commit(batch, options.durability()).map(drop)
    }

    fn leveldb_write(db: &LevelDb, options: &WriteOptions, batch: &LevelBatch) {
        db.db.commit(batch.of(&db.table), options.durability()).map(drop)
    }

    fn leveldb_get(
        db: &LevelDb,
        options: &ReadOptions,
        key: &[u8] [key_bytes],
        value_bytes: Out<'_, usize>,
    ) -> *mut c_char {
        let give = |value: &[u8]| (value.len(), given(value));
        let found = match &options.snapshot {
            Some(snapshot) => snapshot.get_with(&db.table, key, give),
            None => db.table.get_with(key, give),
        }?;
        let (bytes, value) = found.unwrap_or((0, std::ptr::null_mut()));
        put(value_bytes, bytes);
        Ok(value)
    }

    fn leveldb_destroy_db(options: &LevelOptions, name: &Path) {
        options.engine()?;
        match Database::destroy(name) {
            Err(error) if error.is_not_found() => Ok(()),
            destroyed => destroyed,
        }
    }

    fn leveldb_repair_db(options: &LevelOptions, name: &Path) {
        // Opening repairs what a crash leaves. What is damaged cannot be repaired where it is, but copied.
        let LevelDb { table, db } = LevelDb::open(&options.of_existing(), name)?;
        let problems = db.verify(&mut |_, _| ())?.problems;
        drop(table);
        db.close()?;
        match problems.first() {
            Some(first) => Err(Error::corruption(name, 0, first)),
            None => Ok(()),
        }
    }
}

plain! {
    fn leveldb_close(db: Option<Box<LevelDb>>) {
        drop(db);
    }

    fn leveldb_property_value(db: &LevelDb, name: &str) -> *mut c_char {
        db.property(name).map_or(std::ptr::null_mut(), |value| given(value.as_bytes()))
    }

    fn leveldb_approximate_sizes(
        db: &LevelDb,
        range_count: c_int,
        starts: Items<'_, *const c_char> where range_count,
        start_bytes: Items<'_, usize> where range_count,
        limits: Items<'_, *const c_char> where range_count,
        limit_bytes: Items<'_, usize> where range_count,
        sizes: Room<'_, u64> where range_count,
    ) {
        let starts = bytes_at(&starts, &start_bytes)?;
        let limits = bytes_at(&limits, &limit_bytes)?;
        debug_assert_eq!(starts.len(), range_count as usize, "as many as were passed");
        for ((start, limit), size) in starts.into_iter().zip(limits).zip(sizes) {
            // An estimate has no way to tell of an error.
            let held = db.table.approximate(bounds(Some(start), Some(limit))).unwrap_or_default();
            size.write(held.bytes);
        }
    }

    fn leveldb_compact_range(
        db: &LevelDb,
        start: Option<&[u8]> [start_bytes],
        limit: Option<&[u8]> [limit_bytes],
    ) {
        // The call cannot tell of an error.
        let ends = (start.map_or(End::Unbounded, End::Included), limit.map_or(End::Unbounded, End::Included));
        drop(db.table.compact_range(ends));
    }
}
