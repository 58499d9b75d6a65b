//! What is intact of a damaged database, copied to a new one.
//!
//! 1. The damaged one is opened to be [salvaged](crate::Options::salvage): what cannot be read is passed over and
//!    noted.
//! 2. A new one is made, and in it each table with its name, its options and its layout.
//! 3. Each table is walked, and its entries are put as they are stored, times to live and states of aggregators too.
//!    A key whose records do not merge, or to more than a batch takes, is noted and passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_base::limits::VALUE_BYTES_MAX;
use forebay_base::merge::Direction;
use forebay_base::{Combine, Error, Range, Record, Result};
use forebay_env::FileSystem;
use forebay_layouts::RuleName;
use forebay_store::names;
use serde::Serialize;

use crate::api::merge_rule::Operands;
use crate::engine::Engine;
use crate::history::refuse_inside;
use crate::open::remove_files;
use crate::versions::TableState;
use crate::{Batch, Cursor, Damage, Database, Durability, MergeRule, Nearest, Options, Table, TableBuilder};

/// A batch is committed once it is as long as this.
const BATCH_BYTES: usize = 1 << 20;

/// Copies what is intact of a damaged database to a new one. The damaged one is not changed.
///
/// A page that is damaged takes its own records only. Where it was the newer of two that had a key, the older value is
/// there again: [`RescueReport::damage`] tells which keys that may concern. The new database has no savepoints. What
/// [`Aggregator::commit`](crate::Aggregator::commit) kept of how far inputs were read is copied as it is: where states
/// may be missing, a program that goes on there leaves out what was lost.
///
/// ```no_run
/// # use forebay::{Options, Rescue};
/// let report = Rescue::new(Options::default()).run("damaged", "rescued", &mut |_, _| ())?;
/// for place in &report.damage {
///     eprintln!("{place}");
/// }
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Rescue {
    options: Options,
    rules: BTreeMap<String, Arc<dyn Combine>>,
}

/// What was rescued, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RescueReport {
    /// The tables, by name.
    pub tables: Vec<RescuedTable>,
    /// Every place that could not be read, and every key that was passed over: code that merges its records panicked,
    /// or made more of them than a value may have when it is written.
    pub damage: Vec<Damage>,
    /// Files of records that no table is known to have: the manifest that named them, or the edit that let them go, is
    /// damaged or was not written yet.
    pub unnamed_files: Vec<PathBuf>,
    /// Savepoints that were there. They are not in the new database.
    pub savepoints: Vec<String>,
}

/// What became of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RescuedTable {
    /// Its name.
    pub name: String,
    /// Entries that were copied.
    pub records: u64,
    /// Why it was left out, if it was.
    pub left_out: Option<String>,
}

impl Rescue {
    /// With these options for both databases.
    pub fn new(options: Options) -> Self {
        Self { options, rules: BTreeMap::new() }
    }

    /// Adds a merge rule. Tables whose rule is not known are left out; this crate's functions are known.
    #[must_use]
    pub fn merge_rule(mut self, rule: impl MergeRule) -> Self {
        self.rules.insert(rule.name().to_string(), Arc::new(Operands(rule)));
        self
    }

    /// Copies to `target`, which must not be there yet. `progress` is told a table, and how many of its entries are
    /// copied.
    ///
    /// Errors: `source` is open elsewhere, is no database, or has no manifest that can be read, which alone tells what
    /// tables there are; `target` is there, or cannot be written. What was made of `target` by then is removed again,
    /// if that can be done.
    pub fn run(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Result<RescueReport> {
        let source = Database::open(source, self.options.clone().salvage(true))?;
        let engine = source.engine();
        let (fs, target) = (&engine.context.env.fs, target.as_ref());
        refuse_inside(&**fs, target, &engine.context.dir, "the database")?;
        if fs.exists(target)? {
            let target = target.display();
            return Err(Error::invalid(format!("{target} exists already; name a new directory")));
        }
        let mut report = RescueReport::default();
        let mut half_made = HalfMade(Some((&**fs, target)));
        self.fill(engine, target, &mut report, progress)?;
        half_made.0 = None;
        drop(half_made);
        report.tables.sort_by(|one, other| one.name.cmp(&other.name));
        report.damage.splice(..0, source.damage());
        report.savepoints = source.savepoints().into_iter().map(|savepoint| savepoint.name).collect();
        source.close()?;
        Ok(report)
    }

    /// Makes the new database, and copies to it.
    fn fill(
        &self,
        engine: &Arc<Engine>,
        target: &Path,
        report: &mut RescueReport,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Result<()> {
        let fresh =
            Options { salvage: false, read_only: false, create_if_missing: true, ..self.options.clone() };
        let target = Database::open(target, fresh)?;
        let mut ids = BTreeMap::new();
        for table in engine.versions.state().user_tables() {
            let name = table.name.clone();
            let (records, left_out) = match self.known(table) {
                Ok(()) => {
                    let made = make(&target, table)?;
                    ids.insert(table.id, made.id());
                    let damage = &mut report.damage;
                    let copy = Copy { target: &target, table: &made, name: &name, damage, progress };
                    (copy.run(engine, table, &|key| Some(key.to_vec()))?, None)
                }
                Err(why) => (0, Some(why.to_string())),
            };
            report.tables.push(RescuedTable { name, records, left_out });
        }
        self.copy_metadata(engine, &target, &ids, &mut report.damage, progress)?;
        report.unnamed_files = unnamed_files(engine)?;
        target.close()
    }

    /// Sees to it that a table's rule is known.
    fn known(&self, table: &TableState) -> Result<()> {
        if let RuleName::Operands(name) = table.rule.name()
            && let Some(rule) = self.rules.get(name)
        {
            table.rule.provide(Arc::clone(rule), &table.name);
        }
        table.rule().map(drop)
    }

    /// What commits told of themselves, by the aggregator's number, which may be another one now.
    fn copy_metadata(
        &self,
        engine: &Arc<Engine>,
        target: &Database,
        ids: &BTreeMap<u32, u32>,
        damage: &mut Vec<Damage>,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Result<()> {
        let Some(table) = engine.versions.state().table_named("").cloned() else { return Ok(()) };
        let made = TableBuilder::open_hidden(target.engine())?;
        let renamed = |key: &[u8]| {
            let id = ids.get(&u32::from_le_bytes(key.try_into().ok()?))?;
            Some(id.to_le_bytes().to_vec())
        };
        Copy { target, table: &made, name: "", damage, progress }.run(engine, &table, &renamed).map(drop)
    }
}

/// A target that was not there before. All that is in it has just been made, and goes if that ends in an error or a
/// panic.
struct HalfMade<'a>(Option<(&'a dyn FileSystem, &'a Path)>);

impl Drop for HalfMade<'_> {
    fn drop(&mut self) {
        if let Some((fs, target)) = self.0 {
            let _ = remove_files(fs, target);
        }
    }
}

/// A table like another one, in the new database.
fn make(target: &Database, like: &TableState) -> Result<Table> {
    TableBuilder::like(target.engine(), like).open()
}

/// Keys that cannot be read, each a zero byte longer than the one before, are taken for keys up to here.
const PLACES_MAX: usize = 100;

struct Copy<'a> {
    target: &'a Database,
    table: &'a Table,
    name: &'a str,
    damage: &'a mut Vec<Damage>,
    progress: &'a mut dyn FnMut(&str, u64),
}

impl Copy<'_> {
    /// Puts every entry of a table, as it is stored, under the key that it gets.
    fn run(
        self,
        engine: &Arc<Engine>,
        from: &TableState,
        key_of: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<u64> {
        let mut cursor =
            Cursor::new(&engine.versions, engine.versions.view(), from.id, Range::all(), Direction::Forward)?;
        let (mut batch, mut records) = (Batch::new(), 0);
        // The key that was told last: no other error is of that key again.
        let (mut passed, mut told): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
        let mut places = 0;
        loop {
            let moved = match &passed {
                Some(key) => cursor.seek_nearest(key, Nearest::Above),
                None => cursor.next(),
            };
            match moved {
                // What else is damaged was passed over: it is the value that cannot be read.
                Err(
                    error @ (Error::Panicked(_)
                    | Error::TooLong(_)
                    | Error::Corruption { .. }
                    | Error::Io { .. }),
                ) if told.as_deref() != Some(cursor.folded_key()) => {
                    let key = cursor.folded_key().to_vec();
                    told = Some(key.clone());
                    self.damage.push(Damage::of_key(from, &key, error.to_string()));
                    let is_next_place = passed.is_some_and(|passed| key == [&passed[..], &[0]].concat());
                    places = if is_next_place { places + 1 } else { 0 };
                    if places > PLACES_MAX {
                        // Nothing behind it can be come to: the next place would be a byte longer, and so on.
                        let reason = format!("nothing behind it can be read: {error}");
                        self.damage.push(Damage::of_key(from, &key, reason));
                        break;
                    }
                    passed = Some(key);
                    continue;
                }
                moved => moved?,
            }
            passed = None;
            let Some((key, stored)) = cursor.stored() else { break };
            if stored.len() > VALUE_BYTES_MAX {
                let bytes = stored.len();
                let reason =
                    format!("its value has {bytes} bytes, and {VALUE_BYTES_MAX} at most can be written");
                self.damage.push(Damage::of_key(from, key, reason));
                continue;
            }
            if let Some(key) = key_of(key) {
                batch.push(self.table, Record::put(&key, stored));
                records += 1;
            }
            if batch.encoded_bytes() >= BATCH_BYTES {
                self.target.write(&mut batch, Durability::Memory)?;
                (self.progress)(self.name, records);
            }
        }
        self.target.write(&mut batch, Durability::Memory)?;
        (self.progress)(self.name, records);
        Ok(records)
    }
}

/// Files of records in the directory that neither tables nor savepoints have.
fn unnamed_files(engine: &Engine) -> Result<Vec<PathBuf>> {
    let known: BTreeSet<u64> = engine.versions.lock().references.keys().copied().collect();
    let mut unnamed = Vec::new();
    for name in engine.context.env.fs.list(&engine.context.dir)? {
        if let Some((id, "list" | "tree")) = names::parse(&name)
            && !known.contains(&id)
        {
            unnamed.push(engine.context.dir.join(name));
        }
    }
    Ok(unnamed)
}
