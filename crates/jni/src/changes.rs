//! The feed of changes, commit by commit. Each is an array: the number of its last record, and for each change its number,
//! what it is, when it expires (0 for never), table, key and value. `dev.forebay.Changes` reads it.

use forebay::{Change, Operation};
use forebay_env::sync::Mutex;
use jni::objects::JByteArray;

use crate::database::get;
use crate::glue::{given, natives};
use crate::pool::unsigned;
use crate::{handles, items};

fn push(out: &mut Vec<u8>, change: &Change) {
    let (operation, expiry_milliseconds, key, value) = match &change.operation {
        Operation::Put { key, value, expiry_milliseconds } => {
            (0, *expiry_milliseconds, &key[..], Some(value))
        }
        Operation::Delete { key } => (1, None, &key[..], None),
        Operation::Merge { key, operand, expiry_milliseconds } => {
            (2, *expiry_milliseconds, &key[..], Some(operand))
        }
        Operation::DeleteRange { low, high } => (3, None, &low[..], high.as_ref()),
        _ => (4, None, &[][..], None),
    };
    out.extend_from_slice(&change.sequence.to_le_bytes());
    out.push(operation);
    out.extend_from_slice(&expiry_milliseconds.unwrap_or(0).to_le_bytes());
    items::push(out, Some(change.table.as_bytes()));
    items::push(out, Some(key));
    items::push(out, value.map(Vec::as_slice));
}

natives! {
    fn changes(_env, database: jlong, since: jlong) -> jlong {
        let since = unsigned(since, "since")?;
        let changes = get(database)?.with(|db| db.changes(since))?;
        handles::hold(database, Mutex::new(changes))
    }

    fn changes_next(env, changes: jlong) -> [jbyte] {
        let held = handles::get::<Mutex<forebay::Changes>>(changes)?;
        // After an error it ends: what was taken of it would be missed.
        let ends = || drop(handles::release(changes));
        let Some(batch) = held.lock().next() else { return Ok(JByteArray::default()) };
        let batch = batch.inspect_err(|_| ends())?;
        let mut out = batch.last_sequence.to_le_bytes().to_vec();
        batch.changes.iter().for_each(|change| push(&mut out, change));
        given(env, &out).inspect_err(|_| ends())
    }
}
