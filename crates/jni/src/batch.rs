//! Batches, as `dev.forebay.WriteBatch` writes them: each write is a byte that says which, and [items](crate::items).

use forebay_env::sync::Arc;
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::handles;
use crate::items::{Items, broken};
use crate::table::{Table, edges};

/// What the bytes say. `WriteBatch` has the same numbers.
const TABLE: u8 = 0;
const PUT: u8 = 1;
const DELETE: u8 = 2;
const MERGE: u8 = 3;
const DELETE_RANGE: u8 = 4;
const DELETE_PREFIX: u8 = 5;
const PUT_WITH_TTL: u8 = 6;

/// The engine's batch of these bytes. What is wrong with a write is told when it is committed.
pub(crate) fn read(bytes: &[u8]) -> Outcome<forebay::Batch> {
    let mut batch = forebay::Batch::new();
    read_into(bytes, &mut batch)?;
    Ok(batch)
}

/// The same, behind what a batch has. After an error it has some of them.
pub(crate) fn read_into(bytes: &[u8], batch: &mut forebay::Batch) -> Outcome<()> {
    let mut items = Items(bytes);
    let mut table: Option<Arc<Table>> = None;
    while !items.is_empty() {
        let write = items.byte()?;
        if write == TABLE {
            table = Some(handles::get(items.number()?)?);
            continue;
        }
        let table = table.as_deref().ok_or_else(broken)?;
        match write {
            PUT => batch.put(table, items.bytes()?, items.bytes()?),
            DELETE => batch.delete(table, items.bytes()?),
            MERGE => batch.merge(table, items.bytes()?, items.bytes()?),
            DELETE_RANGE => {
                let (from, to) = (items.optional()?, items.optional()?);
                batch.delete_range(table.ordered()?, edges(from, to));
            }
            DELETE_PREFIX => batch.delete_prefix(table.ordered()?, items.bytes()?),
            PUT_WITH_TTL => {
                let (ttl, key) = (items.number()?, items.bytes()?);
                batch.put_with_ttl(table, key, items.bytes()?, milliseconds(ttl)?);
            }
            _ => return Err(broken().into()),
        }
    }
    Ok(())
}

/// A time as Java tells it.
pub(crate) fn milliseconds(number: i64) -> Outcome<Duration> {
    match u64::try_from(number) {
        Ok(number) => Ok(Duration::from_millis(number)),
        Err(_) => Err(Failure::invalid(format!("a time to live is {number} ms; it cannot be below 0"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_batch_are_refused() {
        assert_eq!(read(b"").unwrap().len(), 0);
        let told = |bytes: &[u8]| match read(bytes) {
            Err(Failure::Engine(error)) => error.to_string(),
            other => format!("{other:?}"),
        };
        for bytes in [&[PUT][..], &[9], &[TABLE, 1, 2], &[DELETE, 0, 0, 0, 0]] {
            assert!(told(bytes).contains("one thread at a time"), "{bytes:?}: {}", told(bytes));
        }
        let mut unknown = vec![TABLE];
        unknown.extend_from_slice(&i64::MAX.to_le_bytes());
        assert!(matches!(read(&unknown), Err(Failure::Closed("database of this table"))));
        assert!(milliseconds(-1).is_err());
    }
}
