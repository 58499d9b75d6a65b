//! RocksDB with leveled and with universal compaction, and with values in files of their own.

mod kernel;
mod optimist;
mod options;

use std::collections::HashMap;
use std::path::Path;

use forebay_bench::{Adds, Batch, Durability, Engine, Failure, Kind, Setup, Transactor, Writer};

use crate::native::writes::{self, Beside, Writes};
use crate::sync::Pace;
use kernel::{Db, Log, Merging, Transacting};
use optimist::Optimist;
use options::Options;

/// How it compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Leveled,
    Universal,
    /// As leveled; long values lie in files of their own, where compactions collect those that are left.
    Blob,
}

/// How it adds to counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adding {
    /// As one would write it who wants it fast: what a batch adds to a key is added up, all its keys are looked up by
    /// one call, and written by one.
    ByBatch,
    /// As one would write it first: a lookup and a put for each.
    OneByOne,
    /// By the merge operator, each an operand.
    Merging,
}

pub(crate) struct RocksDb(pub(crate) Style, pub(crate) Adding);

impl Kind for RocksDb {
    fn name(&self) -> &'static str {
        match (self.0, self.1) {
            (Style::Leveled, Adding::ByBatch) => "rocksdb-leveled",
            (Style::Leveled, Adding::OneByOne) => "rocksdb-get-put",
            (Style::Leveled, Adding::Merging) => "rocksdb-merge",
            (Style::Universal, _) => "rocksdb-universal",
            (Style::Blob, _) => "rocksdb-blob",
        }
    }

    fn adds(&self) -> Adds {
        if self.1 == Adding::ByBatch { Adds::Too } else { Adds::Only }
    }

    fn transacts(&self) -> bool {
        self.1 == Adding::ByBatch
    }

    fn version(&self) -> String {
        env!("ROCKSDB_VERSION").to_string()
    }

    fn has_direct_io(&self) -> bool {
        true
    }

    fn options(&self, setup: &Setup) -> String {
        let mut options = Options::new(setup, self.0).for_people();
        if setup.transacts {
            options.push_str("note.transactions = OptimisticTransactionDB, get_for_update\n");
        }
        match (self.1, setup.adds) {
            (_, false) => options,
            (Adding::ByBatch, _) => {
                options + "note.adds = a batch is added up, then one multi_get, one write\n"
            }
            (Adding::OneByOne, _) => options + "note.adds = a get and a put for each\n",
            (Adding::Merging, _) => options + "note.adds = merge_operator uint64add, a batch is one write\n",
        }
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let log = if setup.durability == Durability::Memory { Log::Off } else { Log::On };
        let options = Options::new(setup, self.0);
        let merging = if self.1 == Adding::Merging { Merging::Counts } else { Merging::Nothing };
        let transacting = if setup.transacts { Transacting::Optimistically } else { Transacting::No };
        let db = Db::open(dir, &options.for_rocksdb(), log, merging, transacting)?;
        let (pace, cache_bytes) = (Pace::new(setup), options.cache_bytes);
        Ok(Box::new(Open { db, pace, cache_bytes, adding: self.1, sums: HashMap::new(), keys: Vec::new() }))
    }
}

struct Open {
    db: Db,
    pace: Pace,
    cache_bytes: u64,
    adding: Adding,
    /// Kept for their memory; empty between calls.
    sums: HashMap<Box<[u8]>, u64>,
    keys: Vec<u8>,
}

impl Open {
    fn add_one(&mut self, key: &[u8], count: &[u8]) -> Result<(), Failure> {
        self.keys.clear();
        let found = self.db.get(key, &mut self.keys)?.then_some(&self.keys[..]);
        let sum = number(found)? + number(Some(count))?;
        self.db.hand().put(key, &sum.to_le_bytes(), self.pace.next())
    }

    fn add_by_batch(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        let Self { db, sums, keys, .. } = self;
        for (key, count) in batch.iter() {
            match sums.get_mut(key) {
                Some(sum) => *sum += number(Some(count))?,
                None => drop(sums.insert(key.into(), number(Some(count))?)),
            }
        }
        keys.clear();
        let mut ordered: Vec<(&[u8], u64)> = sums.iter().map(|(key, sum)| (&key[..], *sum)).collect();
        // In order, so that keys of one block are looked up one behind the other.
        ordered.sort_unstable();
        ordered.iter().for_each(|(key, _)| keys.extend_from_slice(key));
        let mut odd = None;
        db.multi_get(keys, batch.key_bytes, &mut |place, found| match number(found) {
            Ok(found) => ordered[place].1 += found,
            Err(failure) => odd = Some(failure),
        })?;
        let hand = db.hand();
        ordered.iter().for_each(|(key, sum)| hand.batch_put(key, &sum.to_le_bytes()));
        sums.clear();
        odd.map_or(Ok(()), Err)?;
        self.db.hand().write_batch(self.pace.next())
    }
}

/// A count; 0 where there is none.
fn number(value: Option<&[u8]>) -> Result<u64, Failure> {
    let Some(value) = value else { return Ok(0) };
    Ok(u64::from_le_bytes(value.try_into().map_err(|_| "a count has another length than eight bytes")?))
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        writes::put(self.db.hand(), &self.pace, batch)
    }

    fn writer(&self) -> Option<Box<dyn Writer + '_>> {
        let hand = self.db.another().ok()?;
        Some(Box::new(Beside { hand, pace: self.pace.clone() }))
    }

    fn transactor(&self) -> Option<Box<dyn Transactor + '_>> {
        let transacts = self.db.transacts()?.ok()?;
        Some(Box::new(Optimist::new(transacts, self.pace.clone())))
    }

    fn add(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        match self.adding {
            Adding::ByBatch => self.add_by_batch(batch),
            Adding::OneByOne => batch.iter().try_for_each(|(key, count)| self.add_one(key, count)),
            Adding::Merging => {
                batch.iter().for_each(|(key, count)| self.db.batch_merge(key, count));
                self.db.hand().write_batch(self.pace.next())
            }
        }
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        writes::delete(self.db.hand(), &self.pace, keys, key_bytes)
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

    fn for_each(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.db.scan(&[], usize::MAX, each)
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
