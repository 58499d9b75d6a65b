//! What a database keeps of an aggregator besides its states: the types of the key's columns, the functions, and the names
//! of their answers. They stand in a table beside it, whose name ends in `.schema`: `docs/format/partial_states.md`.

use std::io::Cursor;

use forebay::{Database, Durability, Error, Result, Table};
use forebay_aggregate::arrow::{OwnFunctions, PartialReader, PartialSchema, PartialWriter};

use crate::Asked;

/// What the name of the table ends in.
pub const ENDING: &str = ".schema";
/// A file of partial states without any, whose schema tells keys and functions.
const SCHEMA: &[u8] = b"schema";
/// Names and functions, as a list of pairs in JSON.
const NAMES: &[u8] = b"names";

/// What groups are besides a key and functions: nothing, or what windows or a cube are, in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Plain,
    /// Groups by time.
    Windows(Vec<u8>),
    /// Groups by fewer columns, too.
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

    /// What it is called.
    fn noun(&self) -> &'static str {
        match self {
            Self::Plain => "aggregator",
            Self::Windows(_) => "windows",
            Self::Cube(_) => "cube",
        }
    }

    /// The error where it is opened as something else.
    pub fn refused(&self, name: &str) -> Error {
        let opener = self.noun();
        Error::invalid(format!("`{name}` was made by Database.{opener}: open it by that, or name another"))
    }
}

/// The table that tells what groups of a name are, where there are such.
pub fn table(db: &Database, name: &str) -> Option<Result<Table>> {
    let name = format!("{name}{ENDING}");
    let is_there = db.tables().iter().any(|(table, _)| *table == name);
    is_there.then(|| db.table(&name).existing(true).open())
}

/// What is kept of an aggregator; nothing where it was never added to.
pub fn load(db: &Database, name: &str, own: &OwnFunctions) -> Result<Option<(PartialSchema, Asked)>> {
    let Some(table) = table(db, name).transpose()? else { return Ok(None) };
    read(name, own, |key| table.get(key))
}

/// What stands under the keys of a table that `get` looks up.
pub fn read(
    name: &str,
    own: &OwnFunctions,
    get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Option<(PartialSchema, Asked)>> {
    let Some(schema) = get(SCHEMA)? else { return Ok(None) };
    let failed = |reason: &dyn std::fmt::Display| {
        Error::invalid(format!("table `{name}{ENDING}` does not tell what aggregator `{name}` is: {reason}"))
    };
    let reader = PartialReader::open(Cursor::new(schema)).map_err(|error| failed(&error))?;
    let names = get(NAMES)?.unwrap_or_default();
    let names: Vec<(String, String)> = serde_json::from_slice(&names).map_err(|error| failed(&error))?;
    own.check(names.iter().map(|(_, function)| &function[..])).map_err(|error| {
        Error::invalid(format!(
            "aggregator `{name}` cannot be opened: {error}; give key and aggs as when it was made"
        ))
    })?;
    let schema = PartialSchema::of_own(&reader.schema(), own).map_err(|error| failed(&error))?;
    let keys = schema.keys().iter().map(|key| key.name().clone()).collect();
    let asked = Asked::new(keys, names, own)?;
    asked.agrees(&schema).map_err(|error| failed(&error))?;
    Ok(Some((schema, asked)))
}

/// What is kept of the shape; nothing where nothing is kept at all.
pub fn shape(db: &Database, name: &str) -> Result<Option<Shape>> {
    let Some(table) = table(db, name).transpose()? else { return Ok(None) };
    read_shape(|key| table.get(key))
}

/// The same of a table that `get` looks up.
pub fn read_shape(get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>) -> Result<Option<Shape>> {
    for shaped in [Shape::Windows, Shape::Cube] {
        if let Some((key, _)) = shaped(Vec::new()).entry()
            && let Some(kept) = get(key)?
        {
            return Ok(Some(shaped(kept)));
        }
    }
    Ok(get(SCHEMA)?.map(|_| Shape::Plain))
}

/// What groups are that are opened under a name: those that are kept, or, where none are, those that are asked for, of
/// whose columns the types may not be known yet. An error where others are asked for than are kept.
pub fn opened(
    db: &Database,
    name: &str,
    asked: Option<Asked>,
    shape: &Shape,
    own: &OwnFunctions,
) -> Result<(Asked, Option<PartialSchema>)> {
    let kept = load(db, name, own)?;
    if let Some(other) = self::shape(db, name)?.filter(|other| other != shape) {
        return Err(other.refused(name));
    }
    match (kept, asked) {
        (Some((schema, kept)), Some(asked)) if kept != asked => {
            asked.agrees(&schema)?;
            Err(others(shape, name, &kept))
        }
        (Some((schema, kept)), _) => Ok((kept, Some(schema))),
        (None, Some(asked)) => Ok((asked, None)),
        (None, None) => {
            let told = format!("there is no {} `{name}` yet; say key and aggs to make it", shape.noun());
            Err(Error::NotFound(told))
        }
    }
}

/// The error where other functions, or names for them, are asked for than are kept.
fn others(shape: &Shape, name: &str, kept: &Asked) -> Error {
    let (noun, named) = (shape.noun(), kept.named());
    Error::invalid(format!(
        "{noun} `{name}` was made with aggs {named:?}; leave aggs out, or name another one"
    ))
}

/// Keeps what new groups are, before their first state is written. Where another handle was first, it has to be the same.
pub fn begin(
    db: &Database,
    name: &str,
    schema: &PartialSchema,
    asked: &Asked,
    shape: &Shape,
    own: &OwnFunctions,
) -> Result<()> {
    while !is_kept(db, name, schema, asked, shape, own)? && !keep(db, name, schema, asked, shape)? {}
    Ok(())
}

fn is_kept(
    db: &Database,
    name: &str,
    schema: &PartialSchema,
    asked: &Asked,
    shape: &Shape,
    own: &OwnFunctions,
) -> Result<bool> {
    let Some((kept, were)) = load(db, name, own)? else { return Ok(false) };
    if were != *asked {
        asked.agrees(&kept)?;
        return Err(others(shape, name, &were));
    }
    if self::shape(db, name)?.as_ref() != Some(shape) {
        let told = format!("`{name}` was made as something else than this {}", shape.noun());
        return Err(Error::invalid(told));
    }
    kept.check(schema.schema()).map(|()| true)
}

/// Keeps nothing of it any more.
pub fn forget(db: &Database, name: &str) -> Result<()> {
    table(db, name).transpose()?.map_or(Ok(()), |table| db.drop_table(table.name()))
}

/// Keeps it. Says whether nothing was kept before, which stays as it is.
fn keep(db: &Database, name: &str, schema: &PartialSchema, asked: &Asked, shape: &Shape) -> Result<bool> {
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
