//! Calls that are awaited: each gives a future at once, which the engine's own threads complete.

use std::sync::Arc;

use forebay_store::log::Durability;

use crate::deferred::Pending;
use crate::read;
use crate::{Batch, Database, Table, Transaction};

impl Database {
    /// As [`commit`](Self::commit), for who awaits it. Batches are written in the order of these calls, and those that come
    /// while others are made durable are made durable together. With [`Durability::Disk`] it is complete once it survives
    /// a power loss.
    ///
    /// A batch that is wrong in itself is told at once. What waits for background work waits in the engine's thread, and
    /// with it all commits behind it.
    pub fn commit_async(&self, batch: Batch, durability: Durability) -> Pending<u64> {
        let engine = Arc::clone(self.engine());
        if let Err(error) = batch.payload(engine.context.serial) {
            return Pending::ready(Err(error));
        }
        let deferred = Arc::clone(&engine.deferred);
        deferred.commit(durability, move || {
            engine.writer.write(batch.payload(engine.context.serial)?, Durability::Memory)
        })
    }

    /// As [`sync`](Self::sync), for who awaits it: makes everything accepted so far survive a power loss, also what was
    /// handed to [`commit_async`](Self::commit_async) before. Gives the number of the last record of all that.
    pub fn sync_async(&self) -> Pending<u64> {
        let engine = Arc::clone(self.engine());
        let deferred = Arc::clone(&engine.deferred);
        deferred.commit(Durability::Disk, move || Ok(engine.context.log()?.last_sequence()))
    }
}

impl Table {
    /// As [`get`](Self::get), for who awaits it. What write buffers decide is complete at once; all else is looked up by
    /// threads of the engine's, as many as there are cores, as the table is when its turn comes.
    pub fn get_async(&self, key: impl Into<Vec<u8>>) -> Pending<Option<Vec<u8>>> {
        let (table, key) = (self.clone(), key.into());
        match read::get_buffered(&self.engine.context, &self.latest(), self.id(), &key) {
            Err(error) => return Pending::ready(Err(error)),
            Ok(Some(decided)) => return Pending::ready(Ok(decided)),
            Ok(None) => {}
        }
        self.engine.deferred.look_up(move || table.get(&key))
    }
}

impl Transaction {
    /// As [`commit`](Self::commit), for who awaits it. Whether it conflicts is seen when its turn comes.
    pub fn commit_async(self, durability: Durability) -> Pending<u64> {
        let deferred = Arc::clone(&self.engine().deferred);
        deferred.commit(durability, move || {
            let mut transaction = self;
            transaction.set_durability(Durability::Memory);
            transaction.commit()
        })
    }
}
