//! Databases: opened and closed, written to, and what they tell of themselves.

use forebay::encryption::{KEY_BYTES, Key, OneKey};
use forebay::{Database, Durability, Error};
use forebay_env::sync::{Arc, Mutex, RwLock};
use forebay_settings::AnyTable;
use jni::sys::jlong;

use crate::failure::{Failure, Outcome};
use crate::glue::{bytes, front, given, given_or_null, natives, optional, path, text};
use crate::handles::{self, Thing};
use crate::options::{builder, durability, of_database};
use crate::pool::unsigned;
use crate::table::Table;
use crate::{batch, items, stats};

/// The table of the metadata of commits. They stand there under the empty key.
pub(crate) const METADATA: &str = "commit.metadata";

/// A database until it is closed, which waits for calls that are under way.
pub(crate) struct Open {
    db: RwLock<Option<Database>>,
    /// That of batches that say none.
    pub(crate) usual: Durability,
    /// How many times a transaction is tried.
    attempts: u32,
    /// Once it was written to.
    metadata: Mutex<Option<forebay::Table>>,
}

impl Open {
    pub(crate) fn with<T>(&self, act: impl FnOnce(&Database) -> forebay::Result<T>) -> Outcome<T> {
        match &*self.db.read() {
            Some(db) => Ok(act(db)?),
            None => Err(Failure::Closed("database")),
        }
    }

    fn close(&self) -> forebay::Result<()> {
        let db = self.db.write().take();
        db.map_or(Ok(()), Database::close)
    }

    pub(crate) fn metadata_table(&self, db: &Database) -> forebay::Result<forebay::Table> {
        let mut kept = self.metadata.lock();
        match &*kept {
            Some(table) => Ok(table.clone()),
            None => Ok(kept.insert(db.table(METADATA).open()?).clone()),
        }
    }

    /// Does what may take the metadata's table away. What is known of it is forgotten behind that: who writes meanwhile
    /// may open the one that goes.
    fn with_other_tables(&self, act: impl FnOnce(&Database) -> forebay::Result<()>) -> Outcome<()> {
        let done = self.with(act);
        *self.metadata.lock() = None;
        done
    }
}

/// The provider of one key.
fn one_key(name: &str, key: &[u8]) -> forebay::Result<Arc<OneKey>> {
    let told = || Error::invalid(format!("a key has {KEY_BYTES} bytes, and {} were given", key.len()));
    Ok(Arc::new(OneKey::new(name, Key::new(key.try_into().map_err(|_| told())?))))
}

pub(crate) fn get(database: jlong) -> Outcome<Arc<Open>> {
    handles::get(database)
}

natives! {
    fn open(
        env,
        path_text: [jbyte],
        options: [jbyte],
        pool: jlong,
        key_name: [jbyte],
        key: [jbyte],
    ) -> jlong {
        let (path, options) = (path(env, &path_text)?, bytes(env, &options, "options")?);
        let (mut options, usual, attempts) = of_database(&options)?;
        if let Some(pool) = handles::optional::<forebay::Pool>(pool)? {
            options = options.pool(&pool);
        }
        if let Some(key) = optional(env, &key)? {
            options = options.encryption(one_key(&text(env, &key_name, "name")?, &key)?);
        }
        let db = RwLock::new(Some(Database::open(path, options)?));
        handles::hold(0, Open { db, usual, attempts, metadata: Mutex::default() })
    }

    fn attempts(_env, database: jlong) -> jint {
        Ok(i32::try_from(get(database)?.attempts).unwrap_or(i32::MAX))
    }

    fn close(_env, database: jlong) -> void {
        match handles::release(database) {
            Some(Thing::Database(open)) => Ok(open.close()?),
            _ => Ok(()),
        }
    }

    fn release(_env, number: jlong) -> void {
        drop(handles::release(number));
        Ok(())
    }

    fn held(_env) -> jlong {
        Ok(handles::count() as jlong)
    }

    fn destroy(env, path_text: [jbyte]) -> void {
        Ok(Database::destroy(path(env, &path_text)?)?)
    }

    fn open_table(env, database: jlong, name: [jbyte], options: [jbyte]) -> jlong {
        let (name, options) = (text(env, &name, "name")?, bytes(env, &options, "options")?);
        let table = get(database)?.with(|db| AnyTable::open(builder(db, &name, &options)?))?;
        handles::hold(database, Table::new(table, database))
    }

    fn alter(env, database: jlong, name: [jbyte], options: [jbyte]) -> void {
        let (name, options) = (text(env, &name, "name")?, bytes(env, &options, "options")?);
        get(database)?.with(|db| builder(db, &name, &options)?.alter())
    }

    fn drop_table(env, database: jlong, name: [jbyte]) -> void {
        let (name, open) = (text(env, &name, "name")?, get(database)?);
        open.with_other_tables(|db| db.drop_table(&name))
    }

    fn tables(env, database: jlong) -> [jbyte] {
        let tables = get(database)?.with(|db| Ok(db.tables()))?;
        let texts = tables.into_iter().flat_map(|(name, layout)| [name, layout.to_string()]);
        given(env, &items::of(texts))
    }

    fn write(
        env,
        database: jlong,
        writes: [jbyte],
        write_bytes: jint,
        metadata: [jbyte],
        durability_number: jint,
    ) -> jlong {
        let open = get(database)?;
        let durability = durability(durability_number, open.usual)?;
        let mut batch = batch::read(&front(env, &writes, write_bytes)?)?;
        let metadata = optional(env, &metadata)?;
        let sequence = open.with(|db| {
            if let Some(metadata) = metadata {
                batch.put(&open.metadata_table(db)?, [], metadata);
            }
            db.commit(batch, durability)
        })?;
        Ok(sequence.cast_signed())
    }

    fn metadata(env, database: jlong) -> [jbyte] {
        let found = get(database)?.with(|db| match db.table(METADATA).existing(true).open() {
            Ok(table) => table.get([]),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        })?;
        given_or_null(env, found)
    }

    fn sync(_env, database: jlong) -> void {
        get(database)?.with(Database::sync)
    }

    fn wait_durable(_env, database: jlong, sequence: jlong) -> void {
        let sequence = unsigned(sequence, "sequence")?;
        get(database)?.with(|db| db.wait_durable(sequence))
    }

    fn last_sequence(_env, database: jlong) -> jlong {
        get(database)?.with(|db| Ok(db.last_sequence().cast_signed()))
    }

    fn durable_sequence(_env, database: jlong) -> jlong {
        get(database)?.with(|db| Ok(db.durable_sequence().cast_signed()))
    }

    fn flush(_env, database: jlong) -> void {
        get(database)?.with(Database::flush)
    }

    fn wait_until_idle(_env, database: jlong) -> void {
        get(database)?.with(Database::wait_until_idle)
    }

    fn refresh(_env, database: jlong) -> jlong {
        get(database)?.with(|db| Ok(db.refresh()?.cast_signed()))
    }

    fn background_rate(_env, database: jlong, bytes_a_second: jlong) -> void {
        let rate = unsigned(bytes_a_second, "bytes_a_second")?;
        get(database)?.with(|db| db.set_background_rate(rate))
    }

    fn savepoint(env, database: jlong, name: [jbyte]) -> jlong {
        let name = text(env, &name, "name")?;
        get(database)?.with(|db| Ok(db.savepoint(&name)?.cast_signed()))
    }

    fn savepoints(env, database: jlong) -> [jbyte] {
        let savepoints = get(database)?.with(|db| Ok(db.savepoints()))?;
        given(env, &items::of(savepoints.into_iter().map(|savepoint| savepoint.name)))
    }

    fn rollback(env, database: jlong, name: [jbyte]) -> void {
        let (name, open) = (text(env, &name, "name")?, get(database)?);
        open.with_other_tables(|db| db.rollback(&name))
    }

    fn drop_savepoint(env, database: jlong, name: [jbyte]) -> void {
        let name = text(env, &name, "name")?;
        get(database)?.with(|db| db.drop_savepoint(&name))
    }

    fn verify_database(env, database: jlong) -> [jbyte] {
        let report = get(database)?.with(|db| db.verify(&mut |_, _| ()))?;
        given(env, &items::of(report.problems))
    }

    fn stats(env, database: jlong) -> [jbyte] {
        let told = get(database)?.with(|db| stats::numbers(&db.stats()))?;
        given(env, &told)
    }

    fn describe(env, database: jlong) -> [jbyte] {
        let told = get(database)?.with(|db| stats::json(&db.describe()))?;
        given(env, told.as_bytes())
    }

    fn version(env) -> [jbyte] {
        given(env, env!("CARGO_PKG_VERSION").as_bytes())
    }

    // For tests: what panics here must not end the JVM.
    fn panic(env, text_of_it: [jbyte]) -> void {
        let told = text(env, &text_of_it, "text")?;
        if told.is_empty() {
            return Err(Error::bug("no text to panic with").into());
        }
        panic!("{told}")
    }
}

#[cfg(test)]
mod tests {
    use forebay::Options;
    use forebay_env::Env;

    use super::*;

    /// Their commits failed until the database was opened again.
    #[test]
    fn who_writes_metadata_amid_a_drop_or_a_rollback_goes_on_behind_it() {
        let db = Database::open("/db", Options::default().env(Env::memory(1))).unwrap();
        db.savepoint("empty").unwrap();
        let (db, usual) = (RwLock::new(Some(db)), Durability::Os);
        let open = Open { db, usual, attempts: 1, metadata: Mutex::default() };
        let write = |db: &Database| {
            let mut batch = forebay::Batch::new();
            batch.put(&open.metadata_table(db)?, [], b"offset");
            db.commit(batch, usual).map(drop)
        };
        for is_drop in [true, false] {
            let acted = open.with_other_tables(|db| {
                write(db)?;
                if is_drop { db.drop_table(METADATA) } else { db.rollback("empty") }
            });
            assert!(acted.is_ok(), "{acted:?}");
            let written = open.with(write);
            assert!(written.is_ok(), "{written:?}");
        }
    }
}
