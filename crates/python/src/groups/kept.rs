//! What a database keeps of an aggregator besides its states: the types of the key's columns, the functions, and the names
//! of their answers. They stand in a table beside it, whose name ends in `.schema`: `docs/format/partial_states.md`.

use std::io::Cursor;

use forebay::{Database, Durability, Error, Result, Snapshot, Table};
use forebay_aggregate::arrow::{PartialReader, PartialSchema, PartialWriter};
use forebay_env::sync::Arc;

use super::asked::Asked;
use super::own::{self, Own};

/// What the name of the table ends in.
const ENDING: &str = ".schema";
/// A file of partial states without any, whose schema tells keys and functions.
const SCHEMA: &[u8] = b"schema";
/// Names and functions, as a list of pairs in JSON.
const NAMES: &[u8] = b"names";
/// Of windows what they are, in JSON.
const WINDOWS: &[u8] = b"windows";

fn table(db: &Database, name: &str) -> Option<Result<Table>> {
    let name = format!("{name}{ENDING}");
    let is_there = db.tables().iter().any(|(table, _)| *table == name);
    is_there.then(|| db.table(&name).existing(true).open())
}

/// What is kept of an aggregator, of whose functions these are written in Python; nothing where it was never added to.
pub(super) fn load(db: &Database, name: &str, own: &[Arc<Own>]) -> Result<Option<(PartialSchema, Asked)>> {
    let Some(table) = table(db, name).transpose()? else { return Ok(None) };
    read(name, own, |key| table.get(key))
}

/// The same of what was kept at the moment of a snapshot.
pub(super) fn load_at(
    snapshot: &Snapshot,
    name: &str,
    own: &[Arc<Own>],
) -> Result<Option<(PartialSchema, Asked)>> {
    match snapshot.table(&format!("{name}{ENDING}")) {
        Ok(table) => read(name, own, |key| snapshot.get(&table, key)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What stands under the keys of a table that `get` looks up.
fn read(
    name: &str,
    own: &[Arc<Own>],
    get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Option<(PartialSchema, Asked)>> {
    let Some(schema) = get(SCHEMA)? else { return Ok(None) };
    let failed = |reason: &dyn std::fmt::Display| {
        Error::invalid(format!("table `{name}{ENDING}` does not tell what aggregator `{name}` is: {reason}"))
    };
    let reader = PartialReader::open(Cursor::new(schema)).map_err(|error| failed(&error))?;
    let names = get(NAMES)?.unwrap_or_default();
    let names: Vec<(String, String)> = serde_json::from_slice(&names).map_err(|error| failed(&error))?;
    let functions = own::functions(own);
    functions.check(names.iter().map(|(_, function)| &function[..])).map_err(|error| {
        Error::invalid(format!(
            "aggregator `{name}` cannot be opened: {error}; give key and aggs as when it was made"
        ))
    })?;
    let schema = PartialSchema::of_own(&reader.schema(), &functions).map_err(|error| failed(&error))?;
    let keys = schema.keys().iter().map(|key| key.name().clone()).collect();
    let is_asked = |one: &&Arc<Own>| names.iter().any(|(_, function)| function == one.text());
    let own = own.iter().filter(is_asked).cloned().collect();
    let asked = Asked::new(keys, names.clone(), own)?;
    asked.agrees(&schema).map_err(|error| failed(&error))?;
    Ok(Some((schema, asked)))
}

/// What is kept of windows.
pub(super) fn shape(db: &Database, name: &str) -> Result<Option<Vec<u8>>> {
    table(db, name).transpose()?.map_or(Ok(None), |table| table.get(WINDOWS))
}

/// Keeps nothing of it any more.
pub(super) fn forget(db: &Database, name: &str) -> Result<()> {
    table(db, name).transpose()?.map_or(Ok(()), |table| db.drop_table(table.name()))
}

/// Keeps it, before the first state is written; of windows also what they are. Says whether nothing was kept before,
/// which stays as it is.
pub(super) fn keep(
    db: &Database,
    name: &str,
    schema: &PartialSchema,
    asked: &Asked,
    windows: Option<&[u8]>,
) -> Result<bool> {
    let failed = |reason: &dyn std::fmt::Display| Error::Bug(format!("a schema cannot be written: {reason}"));
    let writer = PartialWriter::new(Vec::new(), schema).map_err(|error| failed(&error))?;
    let file = writer.finish().map_err(|error| failed(&error))?;
    let names = serde_json::to_vec(&asked.named()).map_err(|error| failed(&error))?;
    let table = db.table(&format!("{name}{ENDING}")).open()?;
    db.transaction(|transaction| {
        let is_new = !transaction.contains_key(&table, SCHEMA)?;
        if is_new {
            transaction.put(&table, SCHEMA, &file);
            transaction.put(&table, NAMES, &names);
            windows.iter().for_each(|windows| transaction.put(&table, WINDOWS, windows));
            transaction.set_durability(Durability::Disk);
        }
        Ok(is_new)
    })
}
