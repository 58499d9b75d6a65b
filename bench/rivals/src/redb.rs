//! redb: a copy-on-write B+-tree in Rust, with one transaction that writes at a time.

use std::path::Path;

use forebay_bench::{Batch, Change, Durability, Engine, Failure, Kind, Setup, Transactor, Writer};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::sync::{Pace, SyncWhen};
use crate::text;

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

pub(crate) struct Redb;

impl Kind for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn version(&self) -> String {
        env!("REDB_VERSION").to_string()
    }

    fn transacts(&self) -> bool {
        true
    }

    fn options(&self, setup: &Setup) -> String {
        let durability = match setup.durability {
            Durability::Memory => "None",
            Durability::Os => {
                "None, Immediate when the sync interval has passed: a process that dies loses as much"
            }
            Durability::Disk => "Immediate",
        };
        let told = [("cache_size", setup.memory_bytes.to_string()), ("durability", durability.to_string())];
        text::lines(told.map(|(name, value)| (name.to_string(), value)))
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        let cache_bytes = usize::try_from(setup.memory_bytes)?;
        let database = Database::builder().set_cache_size(cache_bytes).create(dir.join("records.redb"))?;
        let open = Open { database, pace: Pace::new(setup) };
        // So that readers find the table.
        open.write(|_| Ok(()))?;
        Ok(Box::new(open))
    }
}

struct Open {
    database: Database,
    pace: Pace,
}

type Records<'txn> = redb::Table<'txn, &'static [u8], &'static [u8]>;

impl Open {
    fn write(&self, work: impl FnOnce(&mut Records<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        let durability = match self.pace.next() {
            SyncWhen::Now => redb::Durability::Immediate,
            SyncWhen::Later => redb::Durability::None,
        };
        self.write_at(durability, work)
    }

    fn write_at(
        &self,
        durability: redb::Durability,
        work: impl FnOnce(&mut Records<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut transaction: WriteTransaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        work(&mut transaction.open_table(RECORDS)?)?;
        Ok(transaction.commit()?)
    }

    fn put(&self, batch: Batch<'_>) -> Result<(), Failure> {
        self.write(|records| {
            for (key, value) in batch.iter() {
                records.insert(key, value)?;
            }
            Ok(())
        })
    }
}

/// One of several threads that write: each waits for its turn.
struct Beside<'a> {
    open: &'a Open,
    /// Kept for its memory.
    new: Vec<u8>,
}

impl Writer for Beside<'_> {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        self.open.put(batch)
    }
}

impl Transactor for Beside<'_> {
    fn transact(&mut self, keys: &[u8], key_bytes: usize, change: &mut Change<'_>) -> Result<u64, Failure> {
        let new = &mut self.new;
        self.open.write(|records| {
            for key in keys.chunks_exact(key_bytes) {
                change(records.get(key)?.as_ref().map(|old| old.value()), new);
                records.insert(key, &new[..])?;
            }
            Ok(())
        })?;
        Ok(1)
    }
}

impl Engine for Open {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        Self::put(self, batch)
    }

    fn writer(&self) -> Option<Box<dyn Writer + '_>> {
        Some(Box::new(Beside { open: self, new: Vec::new() }))
    }

    fn transactor(&self) -> Option<Box<dyn Transactor + '_>> {
        Some(Box::new(Beside { open: self, new: Vec::new() }))
    }

    fn delete(&mut self, keys: &[u8], key_bytes: usize) -> Result<(), Failure> {
        self.write(|records| {
            for key in keys.chunks_exact(key_bytes) {
                records.remove(key)?;
            }
            Ok(())
        })
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.database.begin_read()?.open_table(RECORDS)?.get(key)?;
        value.extend_from_slice(found.as_ref().map_or(&[], |found| found.value()));
        Ok(found.is_some())
    }

    fn scan(&mut self, from: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let records = self.database.begin_read()?.open_table(RECORDS)?;
        for entry in records.range(from..)?.take(limit) {
            let (key, value) = entry?;
            each(key.value(), value.value());
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.write_at(redb::Durability::Immediate, |_| Ok(()))
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        self.drain()
    }
}
