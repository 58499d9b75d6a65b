//! Batches. What is wrong with a call is told when the batch is written, so that nobody has to look after each.

use std::ops::{Deref, DerefMut};

use forebay::{Database, Durability, Error, Result, Transaction};

use crate::aggregator::Aggregator;
use crate::kernel::{Items, Slice, noted, plain};
use crate::table::{Table, bounds, life};

/// What is told of a transaction where a batch is needed.
const OF_A_TRANSACTION: &str = "the batch is a transaction; commit it by forebay_transaction_commit";

/// `forebay_batch`: a batch alone, or that of a transaction.
#[derive(Default)]
pub(crate) struct Batch {
    writes: Writes,
    /// What C got wrong first. The engine's batch keeps what it was asked and cannot do.
    fault: Option<Error>,
}

enum Writes {
    Alone(forebay::Batch),
    Transaction(Box<Transaction>),
    /// What is written to a transaction that was committed goes nowhere.
    Over(forebay::Batch),
}

impl Default for Writes {
    fn default() -> Self {
        Self::Alone(forebay::Batch::new())
    }
}

impl Deref for Writes {
    type Target = forebay::Batch;

    fn deref(&self) -> &forebay::Batch {
        match self {
            Self::Alone(batch) | Self::Over(batch) => batch,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl DerefMut for Writes {
    fn deref_mut(&mut self) -> &mut forebay::Batch {
        match self {
            Self::Alone(batch) | Self::Over(batch) => batch,
            Self::Transaction(transaction) => transaction,
        }
    }
}

impl Batch {
    pub(crate) fn reading(transaction: Transaction) -> Self {
        Self { writes: Writes::Transaction(Box::new(transaction)), fault: None }
    }

    fn note(&mut self, fault: Option<Error>) {
        self.fault = self.fault.take().or(fault);
    }

    fn alone(&mut self) -> Result<&mut forebay::Batch> {
        match (&self.fault, &mut self.writes) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Writes::Alone(batch)) => Ok(batch),
            (None, _) => Err(Error::invalid(OF_A_TRANSACTION)),
        }
    }

    /// Writes it, and empties it once that has succeeded.
    pub(crate) fn write(&mut self, db: &Database, durability: Durability) -> Result<u64> {
        db.write(self.alone()?, durability)
    }

    /// What it has, to be written together with something else. It is empty then, whatever becomes of that; a transaction
    /// stays as it is.
    pub(crate) fn take(&mut self) -> Result<forebay::Batch> {
        let Writes::Alone(batch) = &mut self.writes else { return Err(Error::invalid(OF_A_TRANSACTION)) };
        let batch = std::mem::take(batch);
        self.fault.take().map_or(Ok(batch), Err)
    }

    /// The transaction that it is.
    pub(crate) fn transaction(&mut self) -> Result<&mut Transaction> {
        match (&self.fault, &mut self.writes) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Writes::Transaction(transaction)) => Ok(transaction),
            (None, Writes::Over(_)) => Err(Error::invalid("the transaction is over; begin another one")),
            (None, Writes::Alone(_)) => {
                Err(Error::invalid("the batch is no transaction; forebay_transaction_begin makes one"))
            }
        }
    }

    /// Commits the transaction that it is, which is over then.
    pub(crate) fn commit(&mut self, durability: Durability) -> Result<u64> {
        self.transaction()?.set_durability(durability);
        match std::mem::replace(&mut self.writes, Writes::Over(forebay::Batch::new())) {
            Writes::Transaction(transaction) => transaction.commit(),
            _ => Err(Error::bug("a transaction is none any more")),
        }
    }
}

noted! { batch: &mut Batch;
    fn forebay_batch_put(table: &Table, key: &[u8] [key_bytes], value: &[u8] [value_bytes]) {
        batch.writes.put(table, key, value);
    }

    fn forebay_batch_put_with_ttl(
        table: &Table,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
        milliseconds: u64,
    ) {
        batch.writes.put_with_ttl(table, key, value, life(milliseconds));
    }

    fn forebay_batch_put_until(
        table: &Table,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
        unix_milliseconds: u64,
    ) {
        batch.writes.put_until(table, key, value, unix_milliseconds);
    }

    fn forebay_batch_merge(table: &Table, key: &[u8] [key_bytes], operand: &[u8] [operand_bytes]) {
        batch.writes.merge(table, key, operand);
    }

    fn forebay_batch_add(
        aggregator: &Aggregator,
        key: &[u8] [key_bytes],
        row: Items<'_, Slice> where columns,
        columns: usize,
    ) {
        debug_assert_eq!(row.0.len(), columns, "as many as were passed");
        batch.writes.add(&aggregator.aggregator, key, &aggregator.row(&row)?);
    }

    fn forebay_batch_delete(table: &Table, key: &[u8] [key_bytes]) {
        batch.writes.delete(table, key);
    }

    fn forebay_batch_delete_range(
        table: &Table,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
    ) {
        batch.writes.delete_range(table.ordered()?, bounds(from, to));
    }
}

plain! {
    fn forebay_batch_new() -> Option<Box<Batch>> {
        Some(Box::default())
    }

    fn forebay_batch_clear(batch: &mut Batch) {
        batch.writes.clear();
        batch.fault = None;
    }

    fn forebay_batch_records(batch: &Batch) -> usize {
        batch.writes.len()
    }

    fn forebay_batch_bytes(batch: &Batch) -> usize {
        batch.writes.encoded_bytes()
    }

    fn forebay_batch_bytes_max() -> usize {
        forebay::Batch::bytes_max()
    }

    fn forebay_batch_free(batch: Option<Box<Batch>>) {
        drop(batch);
    }
}
