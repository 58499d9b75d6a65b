//! The feed of changes, commit by commit. A commit's changes stay until the next call.

use std::ffi::c_int;

use forebay::{Change, Operation};

use crate::database::Db;
use crate::error::ErrorOut;
use crate::kernel::{Out, Slice, fallible, plain, put};

/// `forebay_change`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Told {
    sequence: u64,
    table: Slice,
    operation: c_int,
    key: Slice,
    value: Slice,
    expiry_milliseconds: u64,
}

/// `forebay_changes`.
struct Changes {
    changes: forebay::Changes,
    /// What C may look at, and what of it C is shown.
    here: Vec<Change>,
    told: Box<[Told]>,
}

impl Told {
    /// `forebay_operation` has these numbers.
    fn of(change: &Change) -> Self {
        let (operation, key, value, expiry_milliseconds) = match &change.operation {
            Operation::Put { key, value, expiry_milliseconds } => {
                (0, &key[..], Slice::lent(value), expiry_milliseconds.unwrap_or(0))
            }
            Operation::Delete { key } => (1, &key[..], Slice::NONE, 0),
            Operation::Merge { key, operand, expiry_milliseconds } => {
                (2, &key[..], Slice::lent(operand), expiry_milliseconds.unwrap_or(0))
            }
            Operation::DeleteRange { low, high: Some(high) } => (3, &low[..], Slice::lent(high), 0),
            Operation::DeleteRange { low, high: None } => (3, &low[..], Slice::NONE, 0),
            _ => (-1, &[][..], Slice::NONE, 0),
        };
        let (sequence, table) = (change.sequence, Slice::lent(change.table.as_bytes()));
        Self { sequence, table, operation, key: Slice::lent(key), value, expiry_milliseconds }
    }
}

fallible! { ErrorOut<'_>;
    fn forebay_changes_new(db: &Db, since: u64) -> Option<Box<Changes>> {
        let changes = db.0.changes(since)?;
        Ok(Some(Box::new(Changes { changes, here: Vec::new(), told: Box::default() })))
    }

    fn forebay_changes_next(
        changes: &mut Changes,
        list: Out<'_, *const Told>,
        count: Out<'_, usize>,
        last_sequence: Out<'_, u64>,
    ) -> bool {
        let Some(batch) = changes.changes.next().transpose()? else { return Ok(false) };
        changes.here = batch.changes;
        changes.told = changes.here.iter().map(Told::of).collect();
        put(list, changes.told.as_ptr());
        put(count, changes.told.len());
        put(last_sequence, batch.last_sequence);
        Ok(true)
    }
}

plain! {
    fn forebay_changes_free(changes: Option<Box<Changes>>) {
        drop(changes);
    }
}
