//! What several tables of one name were declared as: a table of its own beside them keeps that, and what is read and
//! written with them. It is checked whenever they are opened.
//!
//! **Invariant:** of a declaration that is whole all tables were made, and none was dropped but by
//! [`Declared::drop_all`].

use std::sync::Arc;

use forebay_base::{Error, Record, Result};
use forebay_env::yield_point;
use forebay_store::log::Durability;

use crate::context::refuse_guests;
use crate::engine::Engine;
use crate::read;
use crate::versions::View;
use crate::{Batch, Database, Table, TableBuilder};

/// Stands in the names of tables that belong to a declaration, and in no name that is declared.
pub(crate) const MARK: char = '@';

const DECLARATION: &[u8] = b"declaration";
const IS_WHOLE: &[u8] = b"whole";
const METADATA: &[u8] = b"metadata";
/// Stands for the declaration of what is being dropped.
const DROPPED: &[u8] = b"dropped";

/// What is declared.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// What it is called.
    pub(crate) noun: &'static str,
    /// Whether it has a table, by what follows the declared name in that table's.
    pub(crate) has: fn(&str) -> bool,
}

impl Kind {
    fn own(self, name: &str) -> String {
        format!("{name}{MARK}{}", self.noun)
    }

    /// The tables that a declaration of this name has, or would have, besides its own.
    fn tables(self, engine: &Engine, name: &str) -> Vec<String> {
        let tables = engine.versions.state().layouts().into_iter().map(|(table, _)| table);
        tables.filter(|table| table.strip_prefix(name).is_some_and(self.has)).collect()
    }

    fn refuse_tables_in_the_way(self, engine: &Engine, name: &str) -> Result<()> {
        match self.tables(engine, name).first() {
            None => Ok(()),
            Some(table) => Err(Error::invalid(format!(
                "there is a table `{table}`, which `{name}` would need for itself; give it another name"
            ))),
        }
    }
}

/// The table of a declaration.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    table: Table,
}

impl Declared {
    /// Opens it, or makes it: then no table may have such a name yet. The caller holds `Engine::declared`.
    pub(crate) fn open(
        engine: &Arc<Engine>,
        name: &str,
        kind: Kind,
        text: &str,
        existing: bool,
    ) -> Result<Self> {
        let (noun, own) = (kind.noun, kind.own(name));
        if name.is_empty() || name.contains(MARK) {
            return Err(Error::invalid(format!(
                "the name of a {noun} is not empty and holds no `{MARK}`: `{name}`"
            )));
        }
        debug_assert!(text.as_bytes() != DROPPED, "a declaration is no other thing");
        let is_there = engine.versions.state().table_named(&own).is_some();
        if existing && !is_there {
            let dir = engine.context.dir.display();
            return Err(Error::NotFound(format!("nothing is declared as {noun} `{name}` in {dir}")));
        }
        if !is_there {
            kind.refuse_tables_in_the_way(engine, name)?;
        }
        let table = TableBuilder::new(engine, &own).existing(existing).open()?;
        match table.get(DECLARATION)? {
            Some(kept) if kept == text.as_bytes() => {}
            Some(kept) if kept == DROPPED => {
                return Err(Error::invalid(format!("{noun} `{name}` was being dropped; drop it again")));
            }
            Some(kept) => {
                let kept = String::from_utf8_lossy(&kept);
                return Err(Error::invalid(format!(
                    "{noun} `{name}` was declared as {kept}, not as {text}; open it as it was declared, or declare another"
                )));
            }
            None if !table.is_empty()? => return Err(is_no_declaration(&own)),
            // Whoever made it came no further.
            None => {
                kind.refuse_tables_in_the_way(engine, name)?;
                write(&table, DECLARATION, text.as_bytes())?;
            }
        }
        Ok(Self { table })
    }

    /// Whether all tables were made.
    pub(crate) fn is_whole(&self) -> Result<bool> {
        self.table.contains_key(IS_WHOLE)
    }

    /// Notes that all tables are made.
    pub(crate) fn set_whole(&self) -> Result<()> {
        write(&self.table, IS_WHOLE, b"")
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Puts bytes of the caller's into a batch.
    pub(crate) fn put_metadata(&self, batch: &mut Batch, metadata: &[u8]) {
        self.put(batch, METADATA, metadata);
    }

    pub(crate) fn metadata(&self, view: &View, database_id: u64) -> Result<Option<Vec<u8>>> {
        self.get(view, database_id, METADATA)
    }

    /// Puts something else that is kept beside the tables.
    pub(crate) fn put(&self, batch: &mut Batch, key: &[u8], value: &[u8]) {
        batch.push(&self.table, Record::put(key, value));
    }

    pub(crate) fn get(&self, view: &View, database_id: u64, key: &[u8]) -> Result<Option<Vec<u8>>> {
        read::get(&self.table.engine.context, view, self.table.of(database_id)?, key)
    }

    /// Drops all tables of a name, the declaration's last: what was interrupted can be done again.
    pub(crate) fn drop_all(db: &Database, name: &str, kind: Kind) -> Result<()> {
        let engine = db.engine();
        refuse_guests()?;
        let _alone = engine.declared.write();
        let own = kind.own(name);
        let table = TableBuilder::new(engine, &own).existing(true).open()?;
        let begins = format!("{}/", kind.noun);
        let is_declared = |kept: &[u8]| kept == DROPPED || kept.starts_with(begins.as_bytes());
        if !table.get(DECLARATION)?.is_some_and(|kept| is_declared(&kept)) {
            return Err(is_no_declaration(&own));
        }
        write(&table, DECLARATION, DROPPED)?;
        yield_point("tables of a declaration are to be dropped");
        kind.tables(engine, name).into_iter().try_for_each(|table| db.drop_table(&table))?;
        db.drop_table(&own)
    }
}

/// Writes one entry durably.
fn write(table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(table, key, value);
    table.engine.writer.write(batch.payload(table.database_id())?, Durability::Disk).map(drop)
}

fn is_no_declaration(table: &str) -> Error {
    Error::invalid(format!("the table `{table}` has no declaration; it is a table like others"))
}
