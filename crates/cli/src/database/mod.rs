//! A database opened the right way, and the tables in it that a command asks for.

pub(crate) mod made;

use std::path::Path;
use std::sync::Arc;

use forebay::encryption::KeyInFile;
use forebay::{Database, Error, Options, Snapshot, Table};
use forebay_aggregate::names::similar;

use crate::args::{Common, LogUse};
use crate::clock::{Stopwatch, pause};
use crate::failure::Failure;

/// So many names are listed where none is like the one that is missing.
const SHOWN_MAX: usize = 8;

/// What a command will do to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Look.
    Read,
    /// Change what is there.
    Write,
    /// Change it, and make it where it is missing.
    Create,
}

/// The options of a database that is opened for this.
pub(crate) fn options(common: &Common, access: Access) -> Options {
    let mut options =
        Options::default().create_if_missing(access == Access::Create).read_only(access == Access::Read);
    options = options.log(common.log == LogUse::Usual);
    if let Some(bytes) = common.memory {
        options = options.memory_limit(bytes);
    }
    if let Some(bytes) = common.keep_changes {
        options = options.keep_changes(bytes);
    }
    by_key(common, options)
}

/// With the key that `--key-file` names.
pub(crate) fn by_key(common: &Common, options: Options) -> Options {
    match &common.key_file {
        Some(path) => options.encryption(Arc::new(KeyInFile::new(path))),
        None => options,
    }
}

pub(crate) fn open(path: &Path, common: &Common, access: Access) -> Result<Database, Failure> {
    let options = options(common, access);
    patiently(common, || Database::open(path, options.clone())).map_err(|error| match error {
        // Options are judged before the database is looked at, so the command line alone is at fault.
        Error::Invalid(reason) => Failure::Usage(reason),
        error => error.into(),
    })
}

/// What opens a database, tried again for as long as `--wait` says while that is open elsewhere.
pub(crate) fn patiently<T>(common: &Common, open: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let watch = Stopwatch::start();
    loop {
        match open() {
            Err(Error::Locked { .. }) if common.wait.is_some_and(|wait| watch.elapsed() < wait) => pause(),
            opened => return opened,
        }
    }
}

/// A table that must be there.
pub(crate) fn existing_table(db: &Database, name: &str) -> Result<Table, Failure> {
    known_table(db, name)?;
    Ok(db.table(name).existing(true).open()?)
}

/// A table that must be there, whatever it keeps: to look at, or to look after.
pub(crate) fn known_table(db: &Database, name: &str) -> Result<Table, Failure> {
    db.snapshot().table(name).map_err(|error| match error {
        Error::NotFound(_) => missing("table", name, db.tables().iter().map(|(name, _)| &name[..])),
        error => error.into(),
    })
}

/// Refuses a table that has no ranges.
pub(crate) fn has_ranges(table: &Table, name: &str) -> Result<(), Failure> {
    match table.layout()?.is_ordered() {
        true => Ok(()),
        false => Err(hash_ordered(name)),
    }
}

/// What is said of a table that has no ranges.
pub(crate) fn hash_ordered(name: &str) -> Failure {
    Failure::work(format!(
        "table {name:?} is hash-ordered: --from, --to, --prefix and --reverse need a key-ordered table; \
         `forebay layout DB {name} wb-tree:ordered` makes it one"
    ))
}

/// There is nothing of this name, but perhaps of another.
pub(crate) fn missing<'a>(what: &str, name: &str, names: impl IntoIterator<Item = &'a str>) -> Failure {
    let names: Vec<&str> = names.into_iter().collect();
    let hint = match similar(name, names.iter().copied()) {
        Some(like) => format!("did you mean `{like}`?"),
        None => listed(&names),
    };
    Failure::work(format!("there is no {what} `{name}`; {hint}"))
}

/// What there is, or some of it.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    let quoted = quoted.join(", ");
    match names.len() {
        0 => "there is none at all".into(),
        1 => format!("there is only {quoted}"),
        all if all > SHOWN_MAX => format!("there are {quoted} and {} more", all - SHOWN_MAX),
        _ => format!("there are {quoted}"),
    }
}

/// A table that must be there, now or at a savepoint, and the moment at which it is to be read.
pub(crate) fn table_at(
    db: &Database,
    name: &str,
    savepoint: Option<&str>,
) -> Result<(Snapshot, Table), Failure> {
    let Some(savepoint) = savepoint else {
        let table = known_table(db, name)?;
        return Ok((db.snapshot(), table));
    };
    let snapshot = db.open_savepoint(savepoint).map_err(|error| match error {
        Error::NotFound(_) => {
            missing("savepoint", savepoint, db.savepoints().iter().map(|savepoint| &savepoint.name[..]))
        }
        error => error.into(),
    })?;
    let table = snapshot.table(name)?;
    Ok((snapshot, table))
}
