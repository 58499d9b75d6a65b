//! What a command made for itself goes again where it fails before anything is in it: a database, or a table.

use std::path::Path;

use forebay::Database;

use super::{Access, open};
use crate::args::Common;
use crate::failure::Failure;

/// See the module.
#[derive(Debug)]
pub(crate) struct Made {
    /// The tables that there were.
    tables: Vec<String>,
}

impl Made {
    /// Opens a database, which is made where it is missing.
    pub(crate) fn open(path: &Path, common: &Common) -> Result<(Database, Self), Failure> {
        let db = open(path, common, Access::Create)?;
        let made = Self::since(&db);
        Ok((db, made))
    }

    /// What is made from now on in a database that was just opened.
    pub(crate) fn since(db: &Database) -> Self {
        Self { tables: db.tables().into_iter().map(|(name, _)| name).collect() }
    }

    /// Takes back what was made since, in which nothing is; and the database, if it was made by opening it. What fails
    /// here is not worth telling beside what failed before.
    pub(crate) fn undo(&self, db: Database) {
        for (name, _) in db.tables() {
            if !self.tables.contains(&name) {
                let _ = db.drop_table(&name);
            }
        }
        let _ = db.take_back();
    }
}
