//! What a command made for itself goes again where it fails before anything is in it: a database, or a table.

use std::fs;
use std::path::{Path, PathBuf};

use forebay::Database;

use super::{Access, open};
use crate::args::Common;
use crate::failure::Failure;

/// What stood at the database's path before the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    EmptyDirectory,
    Something,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Made {
    path: PathBuf,
    before: Before,
    /// The tables that there were.
    tables: Vec<String>,
}

impl Made {
    /// Looks at a path before a database is opened there.
    #[expect(clippy::disallowed_methods, reason = "it is not known yet whether it is a database's")]
    pub(super) fn before(path: &Path) -> Self {
        let before = match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Before::EmptyDirectory,
            Ok(false) => Before::Something,
            Err(_) if path.exists() => Before::Something,
            Err(_) => Before::Nothing,
        };
        Self { path: path.to_path_buf(), before, tables: Vec::new() }
    }

    /// Opens a database, which is made where it is missing.
    pub(super) fn open(path: &Path, common: &Common) -> Result<(Database, Self), Failure> {
        let mut made = Self::before(path);
        let db = open(path, common, Access::Create).inspect_err(|_| made.remove())?;
        made.note_tables(&db);
        Ok((db, made))
    }

    /// Notes the tables that there are.
    pub(super) fn note_tables(&mut self, db: &Database) {
        self.tables = db.tables().into_iter().map(|(name, _)| name).collect();
    }

    /// Whether there was no database.
    pub(super) fn is_new(&self) -> bool {
        self.before != Before::Something
    }

    /// Takes back what was made since, in which nothing is. What fails here is not worth telling beside what failed before.
    pub(super) fn undo(&self, db: Database) {
        if self.is_new() {
            drop(db.close());
            return self.remove();
        }
        for (name, _) in db.tables() {
            if !self.tables.contains(&name) {
                let _ = db.drop_table(&name);
            }
        }
        drop(db.close());
    }

    /// Removes a database that is closed, if there was none.
    pub(super) fn remove(&self) {
        if self.is_new() && self.path.exists() {
            let _ = Database::destroy(&self.path);
            if self.before == Before::EmptyDirectory {
                let _ = fs::create_dir(&self.path);
            }
        }
    }
}
