//! Batches. What is wrong with a call is told when the batch is written, so that nobody has to look after each.

use forebay::{Database, Durability, Error, Result};

use crate::aggregator::Aggregator;
use crate::kernel::{Items, Slice, noted, plain};
use crate::table::{Table, bounds, life};

/// `forebay_batch`.
#[derive(Default)]
pub(crate) struct Batch {
    batch: forebay::Batch,
    /// What C got wrong first. The engine's batch keeps what it was asked and cannot do.
    fault: Option<Error>,
}

impl Batch {
    fn note(&mut self, fault: Option<Error>) {
        self.fault = self.fault.take().or(fault);
    }

    /// Writes it, and empties it once that has succeeded.
    pub(crate) fn write(&mut self, db: &Database, durability: Durability) -> Result<u64> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => db.write(&mut self.batch, durability),
        }
    }

    /// What it has, to be written together with something else. It is empty then, whatever becomes of that.
    pub(crate) fn take(&mut self) -> Result<forebay::Batch> {
        let Self { batch, fault } = std::mem::take(self);
        fault.map_or(Ok(batch), Err)
    }
}

noted! { batch: &mut Batch;
    fn forebay_batch_put(table: &Table, key: &[u8] [key_bytes], value: &[u8] [value_bytes]) {
        batch.batch.put(table, key, value);
    }

    fn forebay_batch_put_with_ttl(
        table: &Table,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
        milliseconds: u64,
    ) {
        batch.batch.put_with_ttl(table, key, value, life(milliseconds));
    }

    fn forebay_batch_put_until(
        table: &Table,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
        unix_milliseconds: u64,
    ) {
        batch.batch.put_until(table, key, value, unix_milliseconds);
    }

    fn forebay_batch_merge(table: &Table, key: &[u8] [key_bytes], operand: &[u8] [operand_bytes]) {
        batch.batch.merge(table, key, operand);
    }

    fn forebay_batch_add(
        aggregator: &Aggregator,
        key: &[u8] [key_bytes],
        row: Items<'_, Slice> where columns,
        columns: usize,
    ) {
        debug_assert_eq!(row.0.len(), columns, "as many as were passed");
        batch.batch.add(&aggregator.aggregator, key, &aggregator.row(&row)?);
    }

    fn forebay_batch_delete(table: &Table, key: &[u8] [key_bytes]) {
        batch.batch.delete(table, key);
    }

    fn forebay_batch_delete_range(
        table: &Table,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
    ) {
        batch.batch.delete_range(table.ordered()?, bounds(from, to));
    }
}

plain! {
    fn forebay_batch_new() -> Option<Box<Batch>> {
        Some(Box::default())
    }

    fn forebay_batch_clear(batch: &mut Batch) {
        batch.batch.clear();
        batch.fault = None;
    }

    fn forebay_batch_records(batch: &Batch) -> usize {
        batch.batch.len()
    }

    fn forebay_batch_bytes(batch: &Batch) -> usize {
        batch.batch.encoded_bytes()
    }

    fn forebay_batch_bytes_max() -> usize {
        forebay::Batch::bytes_max()
    }

    fn forebay_batch_free(batch: Option<Box<Batch>>) {
        drop(batch);
    }
}
