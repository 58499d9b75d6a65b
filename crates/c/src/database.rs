//! Databases: opened and closed, copied, kept and brought back, verified, and what they tell of themselves.

use std::ffi::{c_char, c_int};
use std::path::Path;

use forebay::{Database, Durability, Error, Rescue, Result};
use serde::Serialize;

use crate::batch::Batch;
use crate::error::ErrorOut;
use crate::kernel::{
    Items, Memory, Out, Slice, bytes_of, fallible, given, given_texts, numbered, plain, put,
};
use crate::options::{Options, TableOptions};
use crate::table::Table;

/// `forebay_db`.
pub(crate) struct Db(pub(crate) Database);

/// `forebay_snapshot`.
pub(crate) struct Snapshot(pub(crate) forebay::Snapshot);

/// `forebay_durability` is a number to C, and may be any.
fn durability(number: c_int) -> Result<Durability> {
    match number {
        0 => Ok(Durability::Memory),
        1 => Ok(Durability::Os),
        2 => Ok(Durability::Disk),
        _ => Err(Error::invalid(format!("there is no forebay_durability {number}"))),
    }
}

numbered!(Durability: durability);

/// What the engine tells, as the command's `--json` does.
pub(crate) fn json(told: &impl Serialize) -> Result<*mut c_char> {
    let text =
        serde_json::to_vec(told).map_err(|error| Error::bug(format!("no JSON can be made: {error}")))?;
    Ok(given(&text))
}

pub(crate) fn options_of(options: Option<&Options>) -> forebay::Options {
    options.map(|options| options.0.clone()).unwrap_or_default()
}

fallible! { ErrorOut<'_>;
    fn forebay_db_open(path: &Path, options: Option<&Options>) -> Option<Box<Db>> {
        Ok(Some(Box::new(Db(Database::open(path, options_of(options))?))))
    }

    fn forebay_db_close(db: Box<Db>) -> bool {
        db.0.close().map(|()| true)
    }

    fn forebay_destroy(path: &Path) -> bool {
        Database::destroy(path).map(|()| true)
    }

    fn forebay_rescue(source: &Path, target: &Path, options: Option<&Options>) -> *mut c_char {
        json(&Rescue::new(options_of(options)).run(source, target, &mut |_, _| ())?)
    }

    fn forebay_db_tables(db: &Db) -> *mut *mut c_char {
        let names: Vec<String> = db.0.tables().into_iter().map(|(name, _)| name).collect();
        Ok(given_texts(&names))
    }

    fn forebay_db_drop_table(db: &Db, name: &str) -> bool {
        db.0.drop_table(name).map(|()| true)
    }

    fn forebay_db_alter(db: &Db, name: &str, options: &TableOptions) -> bool {
        options.apply(db.0.table(name)).alter().map(|()| true)
    }

    fn forebay_db_set_background_rate(db: &Db, bytes_a_second: u64) -> bool {
        db.0.set_background_rate(bytes_a_second).map(|()| true)
    }

    fn forebay_db_write(
        db: &Db,
        batch: &mut Batch,
        durability: Durability,
        sequence: Out<'_, u64>,
    ) -> bool {
        put(sequence, batch.write(&db.0, durability)?);
        Ok(true)
    }

    fn forebay_db_put_many(
        db: &Db,
        table: &Table,
        keys: Items<'_, Slice> where count,
        values: Items<'_, Slice> where count,
        count: usize,
        durability: Durability,
    ) -> bool {
        let mut batch = forebay::Batch::new();
        let pairs = bytes_of(&keys, "a key")?.into_iter().zip(bytes_of(&values, "a value")?);
        batch.extend(pairs.map(|(key, value)| (table, key, value)));
        debug_assert_eq!(keys.0.len(), count, "as many as were passed");
        db.0.commit(batch, durability).map(|_| true)
    }

    fn forebay_db_sync(db: &Db) -> bool {
        db.0.sync().map(|()| true)
    }

    fn forebay_db_wait_durable(db: &Db, sequence: u64) -> bool {
        db.0.wait_durable(sequence).map(|()| true)
    }

    fn forebay_db_flush(db: &Db) -> bool {
        db.0.flush().map(|()| true)
    }

    fn forebay_db_wait_until_idle(db: &Db) -> bool {
        db.0.wait_until_idle().map(|()| true)
    }

    fn forebay_db_checkpoint(db: &Db, path: &Path) -> *mut c_char {
        json(&db.0.checkpoint(path)?)
    }

    fn forebay_db_savepoint(db: &Db, name: &str, sequence: Out<'_, u64>) -> bool {
        put(sequence, db.0.savepoint(name)?);
        Ok(true)
    }

    fn forebay_db_savepoints(db: &Db) -> *mut c_char {
        json(&db.0.savepoints())
    }

    fn forebay_db_open_savepoint(db: &Db, name: &str) -> Option<Box<Snapshot>> {
        Ok(Some(Box::new(Snapshot(db.0.open_savepoint(name)?))))
    }

    fn forebay_db_rollback(db: &Db, name: &str) -> bool {
        db.0.rollback(name).map(|()| true)
    }

    fn forebay_db_drop_savepoint(db: &Db, name: &str) -> bool {
        db.0.drop_savepoint(name).map(|()| true)
    }

    fn forebay_db_verify(db: &Db, problems: Out<'_, usize>) -> *mut c_char {
        let report = db.0.verify(&mut |_, _| ())?;
        put(problems, report.problems.len());
        json(&report)
    }

    fn forebay_db_damage(db: &Db) -> *mut c_char {
        json(&db.0.damage())
    }

    fn forebay_db_stats(db: &Db) -> *mut c_char {
        json(&db.0.stats())
    }

    fn forebay_db_describe(db: &Db) -> *mut c_char {
        json(&db.0.describe())
    }

    fn forebay_snapshot_new(db: &Db) -> Option<Box<Snapshot>> {
        Ok(Some(Box::new(Snapshot(db.0.snapshot()))))
    }

    fn forebay_snapshot_table(snapshot: &Snapshot, name: &str) -> Option<Box<Table>> {
        Ok(Some(Box::new(Table::of(&snapshot.0, name)?)))
    }
}

plain! {
    fn forebay_snapshot_free(snapshot: Option<Box<Snapshot>>) {
        drop(snapshot);
    }

    fn forebay_db_last_sequence(db: &Db) -> u64 {
        db.0.last_sequence()
    }

    fn forebay_db_durable_sequence(db: &Db) -> u64 {
        db.0.durable_sequence()
    }

    fn forebay_version() -> *const c_char {
        crate::VERSION.as_ptr()
    }

    fn forebay_free(memory: Memory) {
        memory.free();
    }
}
