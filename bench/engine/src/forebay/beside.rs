//! What writes, and reads and writes, beside others.

use forebay::{Database, Table};

use crate::{Batch, Change, Failure, Transactor, Writer};

/// A writer beside others.
pub(super) struct OneWriter<'a> {
    pub(super) db: &'a Database,
    pub(super) table: &'a Table,
    pub(super) durability: forebay::Durability,
    pub(super) batch: forebay::Batch,
}

impl Writer for OneWriter<'_> {
    fn put(&mut self, batch: Batch<'_>) -> Result<(), Failure> {
        put(self.db, self.table, &mut self.batch, batch, self.durability)
    }
}

/// Transactions beside others.
pub(super) struct OneTransactor<'a> {
    pub(super) db: &'a Database,
    pub(super) table: &'a Table,
    pub(super) durability: forebay::Durability,
    pub(super) value: Vec<u8>,
}

impl Transactor for OneTransactor<'_> {
    fn transact(&mut self, keys: &[u8], key_bytes: usize, change: &mut Change<'_>) -> Result<u64, Failure> {
        let Self { db, table, durability, value } = self;
        let mut tries = 0;
        db.transaction(|tx| {
            tries += 1;
            tx.set_durability(*durability);
            for key in keys.chunks_exact(key_bytes) {
                let old = tx.get(*table, key)?;
                change(old.as_deref(), value);
                tx.put(*table, key, &*value);
            }
            Ok(())
        })?;
        Ok(tries)
    }
}

/// `kept` is empty before and after.
pub(super) fn put(
    db: &Database,
    table: &Table,
    kept: &mut forebay::Batch,
    batch: Batch<'_>,
    durability: forebay::Durability,
) -> Result<(), Failure> {
    let is_single = batch.len() == 1;
    for (key, value) in batch.iter() {
        if is_single {
            return Ok(table.put(key, value)?);
        }
        kept.put(table, key, value);
    }
    db.write(kept, durability)?;
    Ok(())
}
