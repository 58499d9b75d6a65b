//! Transactions: reads of one moment and writes that belong together; and single keys that are changed by what they have.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use forebay_base::Result;
use forebay_store::log::Durability;

use crate::api::KeyBounds;
use crate::engine::Engine;
use crate::read;
use crate::transactions::{Begun, retried};
use crate::{Batch, Cursor, Database, OrderedTable, Scan, Snapshot, Table};

/// A batch that reads. It sees the database as it was when it began, with its own writes on top, over any number of
/// tables. Its writes are those of a [`Batch`], which it derefs to: [`put`](Batch::put), [`delete`](Batch::delete),
/// [`delete_range`](Batch::delete_range), [`merge`](Batch::merge), [`add`](Batch::add) and so on.
///
/// Transactions are serialisable: those that were committed, and batches, have done what they would have done one after
/// the other, in the order of their numbers. Nobody waits for a transaction. Instead [`commit`](Self::commit) writes
/// nothing and gives [`Error::Conflict`](crate::Error::Conflict) if somebody else has changed what it has read: a key,
/// there or not, or anything in a range that it walked, as far as it came. What it has not read it overwrites as a batch
/// does; so merges and adds of several transactions to one key do not conflict.
/// [`Database::transaction`] begins anew by itself. A transaction that is dropped has done nothing.
///
/// Outside of this are time and compaction filters: it sees which entries had not
/// [expired](crate::TableBuilder::time_to_live) when it began, and to lose entries since is nothing that the order has to
/// account for; though where it has to read again, it may be a conflict all the same. So are names of tables.
///
/// It holds what a [`Snapshot`] holds, and is listed in [`Stats`](crate::Stats) as one.
///
/// ```
/// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
/// # use forebay::{Database, Error, Options};
/// # let db = Database::open("/db", Options::default().env(env))?;
/// let accounts = db.table("accounts").open()?;
/// accounts.put("ada", "10")?;
/// let mut late = db.begin();
/// let balance = late.get(&accounts, "ada")?;
/// late.put(&accounts, "eve", balance.unwrap_or_default());
/// accounts.put("ada", "7")?;
/// assert!(matches!(late.commit(), Err(Error::Conflict(_))));
/// assert!(!accounts.contains_key("eve")?);
/// # Ok::<(), Error>(())
/// ```
pub struct Transaction {
    engine: Arc<Engine>,
    begun: Begun,
    batch: Batch,
    snapshot: Snapshot,
    /// `None` where nobody has said.
    durability: Option<Durability>,
}

impl Database {
    /// Begins a transaction, for whoever wants to commit it, or to begin anew, by hand. [`transaction`](Self::transaction)
    /// does both.
    pub fn begin(&self) -> Transaction {
        Transaction::begin(self.engine())
    }

    /// Lets `act` read and write in a [`Transaction`], and commits it. Where that conflicts, `act` is called again with a
    /// transaction that sees what is there by then, up to [`Options::transaction_attempts`](crate::Options::transaction_attempts)
    /// times in all: it should do nothing but read and write. An error of `act` ends this, and nothing is written; nor
    /// is where `act` has called [`clear`](Batch::clear) last. If the commit's write has reached the log and then returns
    /// an error, it may still turn out to have been kept.
    ///
    /// In a table with [`max_space_amplification`](crate::TableBuilder::max_space_amplification) the commit may wait for
    /// space, and give [`Error::NoSpace`](crate::Error::NoSpace) where what the transaction itself holds is in the way.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let accounts = db.table("accounts").open()?;
    /// accounts.put("ada", 10_u64.to_be_bytes())?;
    /// let number = |bytes: Option<Vec<u8>>| bytes.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
    /// let is_moved = db.transaction(|tx| {
    ///     let (ada, eve) = (number(tx.get(&accounts, "ada")?), number(tx.get(&accounts, "eve")?));
    ///     if ada < 7 {
    ///         return Ok(false);
    ///     }
    ///     tx.put(&accounts, "ada", (ada - 7).to_be_bytes());
    ///     tx.put(&accounts, "eve", (eve + 7).to_be_bytes());
    ///     Ok(true)
    /// })?;
    /// assert!(is_moved && number(accounts.get("eve")?) == 7);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn transaction<T>(&self, mut act: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        let attempts = self.engine().context.options.transaction_attempts;
        // What has to be done is told apart from an error of `act`, which may be that of a transaction of its own.
        let mut refused = None;
        let value = retried(attempts, || {
            let mut transaction = self.begin();
            match act(&mut transaction) {
                Ok(value) => transaction.commit().map(|_| Some(value)),
                Err(error) => {
                    refused = Some(error);
                    Ok(None)
                }
            }
        })?;
        match (value, refused) {
            (Some(value), _) => Ok(value),
            (None, Some(error)) => Err(error),
            (None, None) => Err(forebay_base::Error::bug("a transaction that came to nothing")),
        }
    }
}

impl Transaction {
    pub(crate) fn begin(engine: &Arc<Engine>) -> Self {
        let begun = Begun::new(&engine.versions);
        let snapshot = Snapshot::of_transaction(engine, begun.view());
        Self { engine: Arc::clone(engine), begun, batch: Batch::new(), snapshot, durability: None }
    }

    /// How durable its commit is; if this is not called, as [`Options::durability`](crate::Options::durability) says,
    /// and for one that has written nothing, not at all. One that is told so makes what was written before it durable,
    /// also if it writes nothing.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = Some(durability);
    }

    /// What the transaction sees: the database as it was when it began, and what it has written so far. Whatever is read
    /// of it before the commit is read by the transaction; after that it is a snapshot as any. For all reads that it has
    /// no calls for itself: of aggregators ([`Aggregator::at`](crate::Aggregator::at)), of neighbours and ends, of counts.
    /// Which tables there are, by their names, is no such read: that one was made or dropped since is no conflict. For
    /// that reason [`Windows::at`](crate::Windows::at) refuses it.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        self.seen().cloned()
    }

    /// The value of a key. Device reads: as those of [`Table::get`].
    pub fn get(&mut self, table: impl AsRef<Table>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.seen()?.get(table, key)
    }

    /// Whether there is a key.
    pub fn contains_key(&mut self, table: impl AsRef<Table>, key: impl AsRef<[u8]>) -> Result<bool> {
        self.seen()?.contains_key(table, key)
    }

    /// The values of several keys, in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(
        &mut self,
        table: impl AsRef<Table>,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.seen()?.multi_get(table, keys)
    }

    /// All entries, in the table's own order, with what the transaction has written by now. It may write while it
    /// iterates.
    pub fn iter(&mut self, table: impl AsRef<Table>) -> Result<Scan> {
        self.seen()?.iter(table)
    }

    /// Entries with keys in the range, ascending; from its end by [`rev`](Iterator::rev).
    pub fn range(&mut self, table: &OrderedTable, bounds: impl KeyBounds) -> Result<Scan> {
        self.seen()?.range(table, bounds)
    }

    /// Entries whose keys begin so, ascending; from the end by [`rev`](Iterator::rev).
    pub fn prefix(&mut self, table: &OrderedTable, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        self.seen()?.prefix(table, prefix)
    }

    /// A cursor over all of a table, before its first entry, with what the transaction has written by now.
    pub fn cursor(&mut self, table: &OrderedTable) -> Result<Cursor> {
        self.seen()?.cursor(table)
    }

    /// Writes all of it or, on an error or in a crash, nothing. Returns the number of its last record. If a write has
    /// reached the log and then returns an error, it may still turn out to have been kept; after
    /// [`Error::Conflict`](crate::Error::Conflict) it was not. One that has written nothing never conflicts.
    ///
    /// Device reads: none, mostly. What others have written since it began is looked through in write buffers. Where that
    /// is more than some 16 KiB for each key that was read, or was flushed to files, or a table was dropped, was brought
    /// entries by [`ingest`](OrderedTable::ingest) or was rolled back, all that was read is read again, as it was and as
    /// it is: up to twice the reads of the transaction. The same values are no conflict then, whoever has written them.
    /// If others write so much while that goes on that it has to be done again, 8 times, that is a conflict, too.
    pub fn commit(mut self) -> Result<u64> {
        let payload = self.batch.payload(self.engine.context.serial)?;
        if payload.records() == 0 && self.engine.context.log.is_none() {
            // Opened to be read, it has no number to give.
            return Ok(0);
        }
        let usual = match payload.records() {
            0 => Durability::Memory,
            _ => self.engine.context.options.usual_durability(),
        };
        self.engine.writer.write_if(Some(&mut self.begun), payload, self.durability.unwrap_or(usual))
    }

    #[cfg(feature = "async")]
    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(super) fn seen(&mut self) -> Result<&Snapshot> {
        let Self { engine, begun, batch, snapshot, .. } = self;
        let state = &begun.view().state;
        let written = batch.written(engine.context.serial, |table| state.order_of(table))?;
        snapshot.set_written(written);
        Ok(snapshot)
    }
}

impl Deref for Transaction {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.batch
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Batch {
        &mut self.batch
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction({:?}, {} records)", self.snapshot, self.batch.len())
    }
}

impl Table {
    /// Gives a key a new value, or none, if it has just this value, or none; says whether it had. At the database's
    /// default durability. If the write has reached the log and then returns an error, it may still turn out to have been
    /// kept. Device reads: those of a [`get`](Self::get).
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let locks = db.table("locks").open()?;
    /// assert!(locks.compare_and_swap("door", None, Some(b"ada"))?);
    /// assert!(!locks.compare_and_swap("door", None, Some(b"eve"))?);
    /// assert!(locks.compare_and_swap("door", Some(b"ada"), None)?);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let key = key.as_ref();
        self.rewrite_entry(key, |batch, old| {
            let old = old.map(|(value, _)| value);
            match new {
                _ if old != expected => {}
                Some(new) => batch.put(self, key, new),
                None if old.is_some() => batch.delete(self, key),
                None => {}
            }
            old == expected
        })
    }

    /// Gives a key the value that `change` makes of the one that it has; `None` is no value. Returns the new one. Where
    /// somebody else writes to the key meanwhile, `change` is called again. At the database's default durability. If the
    /// write has reached the log and then returns an error, it may still turn out to have been kept. Device reads: those
    /// of a [`get`](Self::get).
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let ids = db.table("ids").open()?;
    /// let next = |last: Option<&[u8]>| {
    ///     let last = last.and_then(|last| last.try_into().ok()).map_or(0, u64::from_be_bytes);
    ///     Some((last + 1).to_be_bytes().to_vec())
    /// };
    /// assert_eq!(ids.update("user", next)?.as_deref(), Some(&1_u64.to_be_bytes()[..]));
    /// assert_eq!(ids.update("user", next)?.as_deref(), Some(&2_u64.to_be_bytes()[..]));
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.rewrite_entry(key, |batch, old| {
            let new = change(old.map(|(value, _)| value));
            match &new {
                Some(new) => batch.put(self, key, new),
                None if old.is_some() => batch.delete(self, key),
                None => {}
            }
            new
        })
    }

    /// Decides by a key's value, and by when it expires, what to write, if anything, and what to tell. Where somebody else
    /// writes to the key meanwhile, it decides again.
    pub(super) fn rewrite_entry<T>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(&mut Batch, Option<(&[u8], u64)>) -> T,
    ) -> Result<T> {
        let engine = &self.engine;
        self.takes_writes()?;
        let (mut value, mut batch) = (Vec::new(), Batch::new());
        retried(engine.context.options.transaction_attempts, || {
            // Before there is a view, whose files would not go. Who can only read frees none.
            if engine.context.log.is_some() {
                engine.space.wait_for_space(self.id())?;
            }
            let mut begun = Begun::new(&engine.versions);
            let expiry = read::get_into(&engine.context, begun.view(), self.id(), key, &mut value)?;
            batch.clear();
            let told = decide(&mut batch, expiry.map(|expiry| (&value[..], expiry)));
            let payload = batch.payload(self.database_id())?;
            if payload.records() > 0 {
                let durability = engine.context.options.usual_durability();
                engine.writer.write_if(Some(&mut begun), payload, durability)?;
            }
            Ok(told)
        })
    }
}
