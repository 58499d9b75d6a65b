//! What a database keeps of an aggregator besides its states: the types of the key's columns, the functions, and the names
//! of their answers. They stand in a table beside it, whose name ends in `.schema`: `docs/format/partial_states.md`.

use std::io::Cursor;

use forebay::{Database, Durability, Error, Result, Snapshot, Table};
use forebay_aggregate::arrow::{PartialReader, PartialSchema, PartialWriter};
use forebay_env::sync::Arc;

use super::asked::Asked;
use super::held::{Held, Opens};
use super::own::{self, Own};
use crate::failure::{Failure, Outcome};

/// What the name of the table ends in.
const ENDING: &str = ".schema";
/// A file of partial states without any, whose schema tells keys and functions.
const SCHEMA: &[u8] = b"schema";
/// Names and functions, as a list of pairs in JSON.
const NAMES: &[u8] = b"names";

/// What groups are besides a key and functions: nothing, or what windows or a cube are, in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    Windows(Vec<u8>),
    Cube(Vec<u8>),
}

impl Shape {
    /// Under which key it is kept, and how.
    fn entry(&self) -> Option<(&'static [u8], &[u8])> {
        match self {
            Self::Plain => None,
            Self::Windows(kept) => Some((b"windows", kept)),
            Self::Cube(kept) => Some((b"cube", kept)),
        }
    }

    /// The error where it is opened as something else.
    pub(super) fn refused(&self, name: &str) -> Failure {
        let opener = match self {
            Self::Plain => "aggregator",
            Self::Windows(_) => "windows",
            Self::Cube(_) => "cube",
        };
        Failure::invalid(format!("`{name}` was made by Database.{opener}: open it by that, or name another"))
    }
}

fn table(db: &Database, name: &str) -> Option<Result<Table>> {
    let name = format!("{name}{ENDING}");
    let is_there = db.tables().iter().any(|(table, _)| *table == name);
    is_there.then(|| db.table(&name).existing(true).open())
}

/// The table that tells what groups of a name are, where there are such.
pub(super) fn told(db: &Database, name: &str) -> Result<Option<Table>> {
    table(db, name).transpose()
}

/// What is kept of an aggregator, of whose functions these are written in Python; nothing where it was never added to.
pub(super) fn load(db: &Database, name: &str, own: &[Arc<Own>]) -> Result<Option<(PartialSchema, Asked)>> {
    let Some(table) = table(db, name).transpose()? else { return Ok(None) };
    read(name, own, |key| table.get(key))
}

/// An error unless these groups were there when a snapshot was taken: by then a name may have been that of others.
pub(super) fn check_at<G: Opens>(snapshot: &Snapshot, held: &Held<G>, schema: &PartialSchema) -> Outcome<()> {
    let (name, noun, asked) = (&held.name, G::NOUN, &held.asked);
    let not_there = || Error::NotFound(format!("there was no {noun} `{name}` at that moment"));
    let table = snapshot.table(&format!("{name}{ENDING}")).map_err(|error| match error {
        Error::NotFound(_) => not_there(),
        error => error,
    })?;
    let get = |key: &[u8]| snapshot.get(&table, key);
    let (kept, were) = read(name, asked.own(), get)?.ok_or_else(not_there)?;
    asked.agrees(&kept)?;
    if were != **asked {
        return Err(Failure::invalid(format!("{noun} `{name}` had aggs {:?} at that moment", were.named())));
    }
    if read_shape(get)? != Some(G::shape(&held.means)) {
        return Err(Failure::invalid(format!("`{name}` was another {noun}, or none, at that moment")));
    }
    Ok(schema.check(kept.schema())?)
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

/// What is kept of the shape; nothing where nothing is kept at all.
pub(super) fn shape(db: &Database, name: &str) -> Result<Option<Shape>> {
    let Some(table) = table(db, name).transpose()? else { return Ok(None) };
    read_shape(|key| table.get(key))
}

fn read_shape(get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>) -> Result<Option<Shape>> {
    for shaped in [Shape::Windows, Shape::Cube] {
        if let Some((key, _)) = shaped(Vec::new()).entry()
            && let Some(kept) = get(key)?
        {
            return Ok(Some(shaped(kept)));
        }
    }
    Ok(get(SCHEMA)?.map(|_| Shape::Plain))
}

/// Keeps nothing of it any more.
pub(super) fn forget(db: &Database, name: &str) -> Result<()> {
    table(db, name).transpose()?.map_or(Ok(()), |table| db.drop_table(table.name()))
}

/// Keeps it, before the first state is written. Says whether nothing was kept before, which stays as it is.
pub(super) fn keep(
    db: &Database,
    name: &str,
    schema: &PartialSchema,
    asked: &Asked,
    shape: &Shape,
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
            shape.entry().iter().for_each(|(key, kept)| transaction.put(&table, key, kept));
            transaction.set_durability(Durability::Disk);
        }
        Ok(is_new)
    })
}
