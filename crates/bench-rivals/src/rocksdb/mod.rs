//! RocksDB with leveled and with universal compaction, as Debian builds it.

mod kernel;
mod options;

use std::path::Path;

use forebay_bench::{Batch, Durability, Engine, Failure, Kind, Setup};

use crate::sync::Pace;
use crate::wait;
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
        let db = Db::open(dir, &Options::new(setup, self.0).for_rocksdb(), log)?;
        Ok(Box::new(Open { db, pace: Pace::new(setup) }))
    }
}

struct Open {
    db: Db,
    pace: Pace,
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        let sync = self.pace.next();
        if batch.len() == 1 {
            return batch.iter().try_for_each(|(key, value)| self.db.put(key, value, sync));
        }
        for (key, value) in batch.iter() {
            self.db.batch_put(key, value);
        }
        self.db.write_batch(sync)
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        let sync = self.pace.next();
        if keys.len() == key_bytes {
            return self.db.delete(keys, sync);
        }
        for key in keys.chunks_exact(key_bytes) {
            self.db.batch_delete(key);
        }
        self.db.write_batch(sync)
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
        self.db.flush()?;
        let mut quiet_polls = 0;
        wait::until(|| {
            if self.db.property(c"rocksdb.background-errors")? > 0 {
                return Err("RocksDB met an error in the background".into());
            }
            let is_running = self.db.property(c"rocksdb.num-running-compactions")? > 0
                || self.db.property(c"rocksdb.num-running-flushes")? > 0
                || self.db.property(c"rocksdb.mem-table-flush-pending")? > 0;
            quiet_polls = if is_running { 0 } else { quiet_polls + 1 };
            // With exactly as many runs as its trigger, universal compaction stays pending and never runs.
            let is_pending = self.db.property(c"rocksdb.compaction-pending")? > 0;
            Ok(!is_running && (!is_pending || quiet_polls > wait::POLLS_PER_SECOND))
        })
    }

    fn device_reads(&self) -> Option<u64> {
        Some(self.db.block_reads())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
