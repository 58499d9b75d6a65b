//! RocksDB with leveled and with universal compaction.

mod kernel;
mod options;

use std::path::Path;

use forebay_bench::{Batch, Durability, Engine, Failure, Kind, Setup};

use crate::native::writes;
use crate::sync::Pace;
use kernel::{Db, Log};
use options::Options;

/// How it compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Leveled,
    Universal,
}

pub(crate) struct RocksDb(pub(crate) Style);

impl Kind for RocksDb {
    fn name(&self) -> &'static str {
        match self.0 {
            Style::Leveled => "rocksdb-leveled",
            Style::Universal => "rocksdb-universal",
        }
    }

    fn version(&self) -> String {
        env!("ROCKSDB_VERSION").to_string()
    }

    fn has_direct_io(&self) -> bool {
        true
    }

    fn options(&self, setup: &Setup) -> String {
        Options::new(setup, self.0).for_people()
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let log = if setup.durability == Durability::Memory { Log::Off } else { Log::On };
        let options = Options::new(setup, self.0);
        let db = Db::open(dir, &options.for_rocksdb(), log)?;
        Ok(Box::new(Open { db, pace: Pace::new(setup), cache_bytes: options.cache_bytes }))
    }
}

struct Open {
    db: Db,
    pace: Pace,
    cache_bytes: u64,
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        writes::put(&mut self.db, &mut self.pace, batch)
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        writes::delete(&mut self.db, &mut self.pace, keys, key_bytes)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        self.db.get(key, value)
    }

    fn multi_get(
        &mut self,
        keys: &[u8],
        key_bytes: usize,
        each: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Failure> {
        self.db.multi_get(keys, key_bytes, each)
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.db.scan(from, limit, each)
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.db.settle()
    }

    fn device_reads(&self) -> Option<u64> {
        Some(self.db.block_reads())
    }

    fn index_memory_bytes(&self) -> Option<u64> {
        let stats = self.db.property_text(c"rocksdb.block-cache-entry-stats")?;
        let roles = ["FilterBlock", "FilterMetaBlock", "IndexBlock"];
        let percent: f64 = roles.iter().map(|role| percent_of_cache(&stats, role)).sum();
        Some((percent / 100.0 * self.cache_bytes as f64) as u64)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A role's part in ` Role(COUNT,SIZE,PERCENT%)`; 0 where the cache holds nothing of it. The size is rounded for
/// people, the percentage is not.
fn percent_of_cache(stats: &str, role: &str) -> f64 {
    let told = stats.split_once(&format!(" {role}(")).and_then(|(_, told)| told.split(['%']).next());
    told.and_then(|told| told.rsplit(',').next()?.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::percent_of_cache;

    #[test]
    fn parts_of_the_cache_are_read() {
        let stats = "Block cache entry stats(count,size,portion): DataBlock(7,31.00 KB,0.0946045%) \
                     FilterBlock(12,1.24 MB,3.8714%) FilterMetaBlock(1,2.00 KB,0.5%) Misc(1,0.00 KB,0%)\n";
        assert_eq!(percent_of_cache(stats, "FilterBlock"), 3.8714);
        assert_eq!(percent_of_cache(stats, "FilterMetaBlock"), 0.5);
        assert_eq!(percent_of_cache(stats, "IndexBlock"), 0.0);
    }
}
