//! Tables: opened by name and options, and single writes.

use std::ffi::c_char;
use std::ops::Bound;
use std::time::Duration;

use crate::database::{Db, Snapshot};
use crate::error::ErrorOut;
use crate::kernel::{Items, Out, Slice, bytes_of, fallible, given, plain, put};
use crate::options::TableOptions;

/// `forebay_table`: what it was when it was opened.
pub(crate) use forebay_settings::AnyTable as Table;

/// From a key on, up to another one, which is not in it.
pub(crate) fn bounds<'a>(from: Option<&'a [u8]>, to: Option<&'a [u8]>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The greatest number is forever.
pub(crate) fn life(milliseconds: u64) -> Duration {
    if milliseconds == u64::MAX { Duration::MAX } else { Duration::from_millis(milliseconds) }
}

fallible! { ErrorOut<'_>;
    fn forebay_table_open(db: &Db, name: &str, options: Option<&TableOptions>) -> Option<Box<Table>> {
        let usual = db.0.table(name);
        let asked = if let Some(options) = options { options.apply(usual) } else { usual };
        Ok(Some(Box::new(Table::open(asked)?)))
    }

    fn forebay_table_with(table: &Table, reading: &str) -> Option<Box<Table>> {
        let reading = forebay_settings::reading(reading)?;
        Ok(Some(Box::new(table.with(reading))))
    }

    fn forebay_table_layout(table: &Table) -> *mut c_char {
        Ok(given(table.as_ref().layout()?.to_string().as_bytes()))
    }

    fn forebay_table_set_layout(table: &Table, layout: &str) -> bool {
        table.as_ref().set_layout(layout.parse()?).map(|()| true)
    }

    fn forebay_table_compact(table: &Table) -> bool {
        table.as_ref().compact().map(|()| true)
    }

    fn forebay_table_rewrite(table: &Table, what: &str) -> bool {
        table.as_ref().rewrite(what.parse()?).map(|()| true)
    }

    fn forebay_table_compact_range(
        table: &Table,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
    ) -> bool {
        table.ordered()?.compact_range(bounds(from, to)).map(|()| true)
    }

    fn forebay_table_count(table: &Table, snapshot: Option<&Snapshot>, keys: Out<'_, u64>) -> bool {
        let count = match snapshot {
            Some(snapshot) => snapshot.0.count(table),
            None => table.as_ref().count(),
        };
        put(keys, count?);
        Ok(true)
    }

    fn forebay_table_put(table: &Table, key: &[u8] [key_bytes], value: &[u8] [value_bytes]) -> bool {
        table.as_ref().put(key, value).map(|()| true)
    }

    fn forebay_table_put_with_ttl(
        table: &Table,
        key: &[u8] [key_bytes],
        value: &[u8] [value_bytes],
        milliseconds: u64,
    ) -> bool {
        table.as_ref().put_with_ttl(key, value, life(milliseconds)).map(|()| true)
    }

    fn forebay_table_merge(table: &Table, key: &[u8] [key_bytes], operand: &[u8] [operand_bytes]) -> bool {
        table.as_ref().merge(key, operand).map(|()| true)
    }

    fn forebay_table_delete(table: &Table, key: &[u8] [key_bytes]) -> bool {
        table.as_ref().delete(key).map(|()| true)
    }

    fn forebay_table_delete_range(
        table: &Table,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
    ) -> bool {
        table.ordered()?.delete_range(bounds(from, to)).map(|()| true)
    }

    fn forebay_table_ingest(
        table: &Table,
        keys: Items<'_, Slice> where count,
        values: Items<'_, Slice> where count,
        count: usize,
    ) -> bool {
        let (keys, values) = (bytes_of(&keys, "a key")?, bytes_of(&values, "a value")?);
        debug_assert_eq!(keys.len(), count, "as many as were passed");
        let entries = keys.into_iter().zip(values).map(|(key, value)| Ok((key.to_vec(), value.to_vec())));
        // Threads of the engine's read them, which C's memory is not kept for.
        table.ordered()?.ingest(entries.collect::<Vec<_>>().into_iter()).map(|_| true)
    }

    fn forebay_table_approximate(
        table: &Table,
        from: Option<&[u8]> [from_bytes],
        to: Option<&[u8]> [to_bytes],
        records: Out<'_, u64>,
        bytes: Out<'_, u64>,
    ) -> bool {
        let held = table.ordered()?.approximate(bounds(from, to))?;
        put(records, held.records);
        put(bytes, held.bytes);
        Ok(true)
    }
}

plain! {
    fn forebay_table_key_bytes_max(table: &Table) -> usize {
        table.as_ref().key_bytes_max()
    }

    fn forebay_table_value_bytes_max(table: &Table) -> usize {
        table.as_ref().value_bytes_max()
    }

    fn forebay_table_free(table: Option<Box<Table>>) {
        drop(table);
    }
}
