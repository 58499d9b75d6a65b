//! Snapshots: the database as it was.

use forebay_settings::AnyTable;
use jni::sys::jlong;

use crate::database::{METADATA, Open};
use crate::failure::Outcome;
use crate::glue::{given_or_null, natives, text};
use crate::handles;
use crate::table::Table;

/// A snapshot, and the number of its database.
pub(crate) struct Snapshot {
    pub(crate) snapshot: forebay::Snapshot,
    database: jlong,
}

fn held(database: jlong, snapshot: forebay::Snapshot) -> Outcome<jlong> {
    handles::hold(database, Snapshot { snapshot, database })
}

natives! {
    fn snapshot(_env, database: jlong) -> jlong {
        let snapshot = handles::get::<Open>(database)?.with(|db| Ok(db.snapshot()))?;
        held(database, snapshot)
    }

    fn open_savepoint(env, database: jlong, name: [jbyte]) -> jlong {
        let name = text(env, &name, "name")?;
        let snapshot = handles::get::<Open>(database)?.with(|db| db.open_savepoint(&name))?;
        held(database, snapshot)
    }

    fn snapshot_table(env, snapshot: jlong, name: [jbyte]) -> jlong {
        let (of, name) = (handles::get::<Snapshot>(snapshot)?, text(env, &name, "name")?);
        let table = AnyTable::of(&of.snapshot, &name)?;
        handles::hold(of.database, Table::new(table, of.database))
    }

    fn snapshot_metadata(env, snapshot: jlong) -> [jbyte] {
        let snapshot = &handles::get::<Snapshot>(snapshot)?.snapshot;
        let metadata = match snapshot.table(METADATA) {
            Ok(table) => snapshot.get(&table, [])?,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        given_or_null(env, metadata)
    }
}
