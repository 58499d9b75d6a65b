//! LMDB: a copy-on-write B+ tree in a memory map. It has no log and no background work.

mod kernel;

use std::ops::Bound;
use std::path::Path;

use forebay_bench::{Batch, Durability, Engine, Failure, Kind, Setup};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, RoTxn, WithoutTls};

use crate::sync::{Pace, SyncWhen};
use crate::text;

/// Address space only: the file grows as it is filled.
const MAP_BYTES: usize = 1 << 40;

pub(crate) struct Lmdb;

/// Pages are not cleared before they are written over, and a fault brings in the page that it is for.
fn flags(durability: Durability) -> EnvFlags {
    let always = EnvFlags::NO_READ_AHEAD | EnvFlags::NO_MEM_INIT;
    match durability {
        Durability::Disk => always,
        Durability::Memory | Durability::Os => always | EnvFlags::NO_SYNC,
    }
}

impl Kind for Lmdb {
    fn name(&self) -> &'static str {
        "lmdb"
    }

    fn version(&self) -> String {
        let version = heed::lmdb_version();
        format!("{}.{}.{}", version.major, version.minor, version.patch)
    }

    fn options(&self, setup: &Setup) -> String {
        let flags: Vec<&str> = flags(setup.durability).iter_names().map(|(name, _)| name).collect();
        let options = [
            ("flags", flags.join(" ")),
            ("map_size", MAP_BYTES.to_string()),
            ("note.batch", "sorted, in one write transaction".to_string()),
            ("note.filters", "none, and needs none".to_string()),
            ("note.memory", "the page cache, whose size only the system limits".to_string()),
            (
                "note.power_loss",
                "between syncs it may damage the whole file, but with durability disk".to_string(),
            ),
        ];
        text::lines(options.map(|(name, value)| (name.to_string(), value)))
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let env = kernel::open(dir, flags(setup.durability), MAP_BYTES)?;
        let created = env.create_databases_and_commit(env.write_txn()?, |opener, transaction| {
            opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?;
        let database = created.commit().ok_or("LMDB did not make its database")?;
        let syncs_itself = setup.durability == Durability::Disk;
        Ok(Box::new(Open { database, reader: None, env, pace: Pace::new(setup), syncs_itself }))
    }
}

struct Open {
    database: Database<'static, Bytes, Bytes>,
    /// Kept from read to read. Ends before a write, whose pages it would keep from being used again.
    reader: Option<RoTxn<'static, WithoutTls>>,
    env: Env<WithoutTls>,
    pace: Pace,
    syncs_itself: bool,
}

impl Open {
    fn reader(&mut self) -> Result<&RoTxn<'static, WithoutTls>, Failure> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.env.clone().static_read_txn()?,
        };
        Ok(self.reader.insert(reader))
    }

    fn sync_when_due(&mut self) -> Result<(), Failure> {
        if self.pace.next() == SyncWhen::Now && !self.syncs_itself {
            self.env.force_sync()?;
        }
        Ok(())
    }
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        self.reader = None;
        let mut puts: Vec<(&[u8], &[u8])> = batch.iter().collect();
        // Stable: of puts of one key the last stays the last.
        puts.sort_by_key(|(key, _)| *key);
        let mut transaction = self.env.write_txn()?;
        for (key, value) in puts {
            self.database.put(&mut transaction, key, value)?;
        }
        transaction.commit()?;
        self.sync_when_due()
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        self.reader = None;
        let mut keys: Vec<&[u8]> = keys.chunks_exact(key_bytes).collect();
        keys.sort_unstable();
        let mut transaction = self.env.write_txn()?;
        for key in keys {
            self.database.delete(&mut transaction, key)?;
        }
        transaction.commit()?;
        self.sync_when_due()
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let database = self.database;
        let found = database.get(self.reader()?, key)?;
        value.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let database = self.database;
        // It has no empty keys, and seeks none.
        let start = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (start, Bound::Unbounded);
        for entry in database.range(self.reader()?, &range)?.take(limit) {
            let (key, value) = entry?;
            each(key, value);
        }
        Ok(())
    }

    /// Its debt is what the kernel has not yet written.
    fn drain(&mut self) -> Result<(), Failure> {
        Ok(self.env.force_sync()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        drop(self.reader);
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}
