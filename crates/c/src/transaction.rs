//! Transactions: batches that read, too. What they have read is still so when they are committed.

use std::ffi::c_char;

use forebay::Durability;

use crate::batch::Batch;
use crate::database::Db;
use crate::error::ErrorOut;
use crate::kernel::{Items, Out, Room, Slice, bytes_of, fallible, given, put};
use crate::scan::{Direction, Scan};
use crate::table::{Table, bounds};

fallible! { ErrorOut<'_>;
    fn forebay_transaction_begin(db: &Db) -> Option<Box<Batch>> {
        Ok(Some(Box::new(Batch::reading(db.0.begin()))))
    }

    fn forebay_transaction_get(
        transaction: &mut Batch,
        table: &Table,
        key: &[u8] [key_bytes],
        value_bytes: Out<'_, usize>,
    ) -> *mut c_char {
        let value = transaction.transaction()?.get(table, key)?;
        put(value_bytes, value.as_ref().map_or(0, Vec::len));
        Ok(value.map_or(std::ptr::null_mut(), |value| given(&value)))
    }

    fn forebay_transaction_multi_get(
        transaction: &mut Batch,
        table: &Table,
        keys: Items<'_, Slice> where count,
        values: Room<'_, Slice> where count,
        count: usize,
    ) -> bool {
        let found = transaction.transaction()?.multi_get(table, &bytes_of(&keys, "a key")?)?;
        debug_assert_eq!(found.len(), count, "an answer for each key");
        for (value, room) in found.into_iter().zip(values) {
            room.write(value.map_or(Slice::NONE, |value| Slice::given(&value)));
        }
        Ok(true)
    }

    fn forebay_transaction_scan(
        transaction: &mut Batch,
        table: &Table,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
        direction: Direction,
    ) -> Option<Box<Scan>> {
        let transaction = transaction.transaction()?;
        let scan = match from.or(to) {
            None => transaction.iter(table),
            Some(_) => transaction.range(table.ordered()?, bounds(from, to)),
        }?;
        Ok(Scan::new(scan, direction))
    }

    fn forebay_transaction_commit(
        transaction: &mut Batch,
        durability: Durability,
        sequence: Out<'_, u64>,
    ) -> bool {
        put(sequence, transaction.commit(durability)?);
        Ok(true)
    }

    fn forebay_table_compare_and_swap(
        table: &Table,
        key: &[u8] [key_bytes],
        expected: Option<&[u8]> [expected_bytes],
        new_value: Option<&[u8]> [new_value_bytes],
        is_swapped: Out<'_, bool>,
    ) -> bool {
        put(is_swapped, table.as_ref().compare_and_swap(key, expected, new_value)?);
        Ok(true)
    }
}
