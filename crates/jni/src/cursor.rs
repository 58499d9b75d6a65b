//! Cursors: to any key of a table in key order, and from there either way.

use forebay_env::sync::Mutex;

use crate::failure::Failure;
use crate::glue::{given_or_null, natives, optional};
use crate::snapshot::Snapshot;
use crate::table::get;
use crate::{handles, items};

natives! {
    fn cursor(_env, table: jlong, snapshot: jlong) -> jlong {
        let (table, snapshot) = (get(table)?, handles::optional::<Snapshot>(snapshot)?);
        let cursor = match &snapshot {
            Some(snapshot) => snapshot.snapshot.cursor(table.ordered()?),
            None => table.ordered()?.cursor(),
        }?;
        handles::hold(table.database, Mutex::new(cursor))
    }

    // The key and the value where it is then, or null. `dev.forebay.Cursor` has the same numbers of ways.
    fn move_cursor(env, cursor: jlong, way: jint, key: [jbyte]) -> [jbyte] {
        let (cursor, key) = (handles::get::<Mutex<forebay::Cursor>>(cursor)?, optional(env, &key)?);
        let mut cursor = cursor.lock();
        match (way, key) {
            (0, None) => cursor.seek_to_first(),
            (1, None) => cursor.seek_to_last(),
            (2, None) => cursor.next(),
            (3, None) => cursor.prev(),
            (4, Some(key)) => cursor.seek(key),
            (5, Some(key)) => cursor.seek_for_prev(key),
            _ => return Err(Failure::invalid(format!("a cursor has no way {way} with such a key"))),
        }?;
        let entry = cursor.entry().map(|(key, value)| items::of([key, value]));
        given_or_null(env, entry)
    }
}
