//! A store: groups that a database keeps, and how far every file was read into them.
//!
//! Beside the table of the groups stands another, whose name ends in `.inputs`. It has the [`Shape`] of the groups, and
//! what was [`Reached`] in each file. Both are written by the same batches.
//!
//! **Invariant:** a batch has either all of what was counted up to a place in a file and that place, or nothing of it.

use std::collections::BTreeMap;
use std::path::Path;

use forebay::{Aggregator, Batch, Database, Durability, Error, Layout, Options, Table};
use forebay_aggregate::columns::{HashedRows, OverRows, Rows};
use forebay_aggregate::{Aggregate, Aggregator as _};
use std::sync::Arc;

use super::args::AggregateArgs;
use super::groups::{Groups, Held};
use super::means::Means;
use super::reached::Reached;
use super::refused::{Refused, refusal};
use super::shape::Shape;
use super::tables::{INPUTS, RESCUED, SHAPE};
use crate::args::Common;
use crate::database::made::Made;
use crate::database::{by_key, patiently};
use crate::failure::Failure;
use crate::output::counted;
use crate::screen;

/// The database has this many sixteenths of the memory.
const DATABASE_SHARE: usize = 10;
/// What is not committed yet is committed at a sixteenth, and takes four of them while the table grows.
const PENDING_PARTS: usize = 4;
/// The least that this is.
const PENDING_BYTES_MIN: usize = 16 << 20;
/// The most: a quarter of it, and a bit, must fit a batch, which takes as much.
const PENDING_BYTES_MAX: usize = 1 << 30;

/// This many files are committed together, however little is in them.
const FILES_MAX: usize = 4096;

/// See the module.
pub(super) struct Store {
    db: Arc<Database>,
    name: String,
    inputs: Table,
    pub(super) shape: Shape,
    is_new: bool,
    pending_bytes: usize,
    made: Made,
}

impl Store {
    /// Opens the store, or makes it where there are files to be read; checks that what is asked is what it has.
    pub(super) fn open(
        dir: &Path,
        args: &AggregateArgs,
        common: &Common,
        means: &Means,
    ) -> Result<Self, Failure> {
        let is_read_only = args.files.is_empty();
        let sixteenth = means.memory_bytes / 16;
        let options = Options::default()
            .memory_limit((sixteenth * DATABASE_SHARE) as u64)
            .create_if_missing(!is_read_only)
            .read_only(is_read_only);
        let options = by_key(common, options);
        let db = patiently(common, || Database::open(dir, options.clone()))?;
        let made = Made::since(&db);
        match Self::begin(&db, dir, args) {
            Ok((inputs, shape, is_new)) => {
                let (db, name) = (Arc::new(db), args.table.clone());
                let pending_bytes = pending_bytes(means.memory_bytes);
                Ok(Self { db, name, inputs, shape, is_new, pending_bytes, made })
            }
            Err(failure) => {
                made.undo(db);
                Err(failure)
            }
        }
    }

    /// The table of the inputs, how groups are told, and whether nobody has said that before.
    fn begin(db: &Database, dir: &Path, args: &AggregateArgs) -> Result<(Table, Shape, bool), Failure> {
        let (is_read_only, name, place) = (args.files.is_empty(), &args.table, dir.display());
        let say_by = || {
            Failure::Usage(format!("{place} has no groups called `{name}` yet; say what to group by: --by"))
        };
        let inputs_name = format!("{name}{INPUTS}");
        let is_known = db.tables().iter().any(|(table, _)| *table == inputs_name);
        let has_groups = db.tables().iter().any(|(table, _)| table == name);
        if is_read_only && !is_known {
            return Err(Failure::work(match has_groups {
                true => {
                    format!("forebay aggregate did not make table `{name}` of {place}; forebay scan shows it")
                }
                false => format!("{place} has no groups called `{name}`; it has {}", names(db)),
            }));
        }
        if !is_known && args.by.is_none() {
            return Err(say_by());
        }
        let inputs = db.table(&inputs_name).existing(is_read_only).open()?;
        let kept = kept_shape(&inputs)?;
        let is_new = kept.is_none();
        if !has_groups && is_new && inputs.iter()?.next().is_some() {
            return Err(Failure::work(format!(
                "{place} has a table `{inputs_name}` that is not of forebay aggregate, or lost what tells that: name another \
                 --table"
            )));
        }
        if !has_groups && inputs.iter()?.take(2).count() > 1 {
            return Err(Failure::work(format!(
                "{place} has no groups called `{name}` any more, and table `{inputs_name}` tells what was counted into them; \
                 to count it anew, destroy that table, too"
            )));
        }
        let may_add = is_read_only || args.despite_losses;
        tell_losses(name, &inputs, if may_add { Losses::Told } else { Losses::Refused })?;
        if has_groups && is_new {
            return Err(Failure::work(format!(
                "{place} has a table `{name}`, and nothing tells what was counted into it, and how: count anew into another \
                 --table; forebay scan shows this one"
            )));
        }
        kept.iter().try_for_each(|shape| shape.agrees(args, name))?;
        let shape = kept.or_else(|| Shape::asked(args)).ok_or_else(say_by)?;
        Ok((inputs, shape, is_new))
    }

    /// The table of the groups; of new ones the shape is kept first.
    fn groups<A: Aggregate>(&self, function: &Arc<A>) -> Result<Aggregator<Arc<A>>, Failure> {
        if self.is_new {
            let mut batch = Batch::new();
            batch.put(&self.inputs, SHAPE, &json(&self.shape)?);
            self.db.commit(batch, Durability::Disk)?;
        }
        let table = self.db.aggregator(&self.name, Arc::clone(function));
        // Groups may have got another layout since.
        let is_there = self.db.tables().iter().any(|(name, _)| *name == self.name);
        Ok(if is_there { table.open()? } else { table.layout(Layout::wb_tree_ordered()).open()? })
    }

    /// Ends work that failed. New groups of which nothing was committed go again, so that what they are can be said
    /// anew.
    pub(super) fn give_up(self) {
        let Self { db, inputs, is_new, made, .. } = self;
        let is_empty = is_new && inputs.iter().is_ok_and(|entries| entries.take(2).count() < 2);
        drop(inputs);
        if let Some(db) = Arc::into_inner(db) {
            if is_empty { made.undo(db) } else { drop(db.close()) }
        }
    }

    /// Ends the work with the store.
    pub(super) fn close(self) -> Result<(), Error> {
        Arc::into_inner(self.db).map_or(Ok(()), Database::close)
    }
}

/// The memory for what is not committed yet.
fn pending_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / 16 * PENDING_PARTS).clamp(PENDING_BYTES_MIN, PENDING_BYTES_MAX)
}

/// The groups that a database has.
fn names(db: &Database) -> String {
    let tables = db.tables();
    let names: Vec<&str> = tables.iter().filter_map(|(table, _)| table.strip_suffix(INPUTS)).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// What groups that were rescued with losses do.
enum Losses {
    Told,
    Refused,
}

fn tell_losses(name: &str, inputs: &Table, then: Losses) -> Result<(), Failure> {
    match (told_losses(name, inputs.get(RESCUED)?), then) {
        (None, _) => {}
        (Some(losses), Losses::Told) => tell!("forebay: {}", screen::message(&losses)),
        (Some(losses), Losses::Refused) => {
            return Err(Failure::work(format!(
                "{losses}. Count all files anew, into another --table or --store; --despite-losses adds to these"
            )));
        }
    }
    Ok(())
}

/// What is to be told of groups that were rescued.
pub(super) fn told_losses(name: &str, rescued: Option<Vec<u8>>) -> Option<String> {
    let places = String::from_utf8(rescued?).ok()?.parse().ok()?;
    Some(format!(
        "groups `{name}` are what a rescue could save of a damaged database, where {} could not be read: some may be \
         missing, or short, and what tells which files are in them knows nothing of that",
        counted(places, "place")
    ))
}

fn kept_shape(inputs: &Table) -> Result<Option<Shape>, Failure> {
    inputs.get(SHAPE)?.map(|text| parse(&text)).transpose()
}

/// The shape that a store keeps.
pub(super) fn parse_shape(text: &[u8]) -> Result<Shape, Failure> {
    parse(text)
}

fn json(kept: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(kept).map_err(|error| Failure::work(error.to_string()))
}

fn parse<T: for<'a> serde::Deserialize<'a>>(text: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(text).map_err(|error| {
        Failure::work(format!("the store was written by another version of this program: {error}"))
    })
}

/// Gathers groups, and adds them to a store many at a time.
pub(super) struct Storer<A: Aggregate> {
    db: Arc<Database>,
    function: Arc<A>,
    means: Means,
    inputs: Table,
    groups: Aggregator<Arc<A>>,
    /// What is not committed yet.
    pending: HashedRows<Arc<A>>,
    /// How far files were read, of which that is not committed yet.
    reached: BTreeMap<Vec<u8>, Reached>,
    batch: Batch,
    pending_bytes_max: usize,
    memory_bytes_peak: usize,
    /// Whether a commit failed, so that it is not known what is committed.
    is_broken: bool,
}

impl<A: Aggregate> Storer<A> {
    pub(super) fn new(store: &Store, function: Arc<A>, means: Means) -> Result<Self, Failure> {
        Ok(Self {
            db: Arc::clone(&store.db),
            groups: store.groups(&function)?,
            inputs: store.inputs.clone(),
            pending: HashedRows::new(Arc::clone(&function), store.pending_bytes),
            function,
            means,
            reached: BTreeMap::new(),
            batch: Batch::new(),
            pending_bytes_max: store.pending_bytes,
            memory_bytes_peak: 0,
            is_broken: false,
        })
    }

    /// Adds one value to a key.
    #[inline]
    pub(super) fn add<'v>(&mut self, key: &[u8], value: A::Input<'v>) -> Result<(), Refused>
    where
        A::Input<'v>: Copy,
    {
        self.pending.add(key, value).map_err(|error| refusal(&*self.function, key, value, error))
    }

    /// Adds rows that come by columns, but for those that are refused, whose numbers are put in place of what `refused`
    /// holds.
    pub(super) fn add_rows(&mut self, rows: &Rows<'_>, refused: &mut Vec<u32>) -> Result<(), Error>
    where
        A: OverRows,
    {
        self.pending.add_rows(rows, refused)
    }

    /// Adds the rows before the first that is refused. Returns how many.
    pub(super) fn add_sound_rows(&mut self, rows: &Rows<'_>) -> Result<usize, Error>
    where
        A: OverRows,
    {
        self.pending.add_sound_rows(rows)
    }

    /// Merges a state into a key's.
    pub(super) fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<(), Error> {
        self.pending.add_state(key, state)
    }

    pub(super) fn function(&self) -> &A {
        &self.function
    }

    /// Whether this much has gathered that it should be committed.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.pending.memory_bytes() >= self.pending_bytes_max / PENDING_PARTS
            || self.reached.len() >= 3 * FILES_MAX
    }

    /// How far a file was read, by this run or one before.
    pub(super) fn reached(&self, key: &[u8]) -> Result<Option<Reached>, Failure> {
        match self.reached.get(key) {
            Some(reached) => Ok(Some(reached.clone())),
            None => self.inputs.get(key)?.map(|text| parse(&text)).transpose(),
        }
    }

    /// A file, by all its names, was read as far as this, and everything before is added.
    pub(super) fn reach(&mut self, keys: Vec<Vec<u8>>, reached: Reached) -> Result<(), Failure> {
        for key in keys {
            self.reached.insert(key, reached.clone());
        }
        if self.is_due() { self.commit() } else { Ok(()) }
    }

    /// Commits what has gathered.
    fn commit(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(Failure::work("the store could not be written to"));
        }
        self.pending.finalize()?;
        let Self { batch, groups, inputs, .. } = self;
        self.pending.for_each(&mut |key, state| {
            batch.add_state(groups, key, state);
            Ok(())
        })?;
        for (key, reached) in std::mem::take(&mut self.reached) {
            batch.put(&*inputs, &key, &json(&reached)?);
        }
        if batch.is_empty() {
            self.is_broken = false;
            return Ok(());
        }
        let memory_bytes = self.pending.memory_bytes() + batch.encoded_bytes();
        self.memory_bytes_peak = self.memory_bytes_peak.max(memory_bytes);
        self.db.write(batch, Durability::Os)?;
        self.pending = HashedRows::new(Arc::clone(&self.function), self.pending_bytes_max);
        self.is_broken = false;
        Ok(())
    }

    /// All groups of the store.
    pub(super) fn finish(mut self) -> Result<Groups<A>, Failure> {
        self.commit()?;
        let held = Held::Stored(self.groups);
        let memory_bytes_peak = self.memory_bytes_peak + held.memory_bytes();
        Ok(Groups { function: self.function, means: self.means, held, memory_bytes_peak })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing could be committed, and so nothing was ever counted.
    #[test]
    fn however_much_memory_there_is_what_is_committed_together_fits_a_batch() {
        for memory_bytes in [64 << 20, 1 << 30, 18 << 30, 1 << 40] {
            let due_bytes = pending_bytes(memory_bytes) / PENDING_PARTS;
            assert!(due_bytes * 2 <= PENDING_BYTES_MAX, "{memory_bytes}");
        }
    }
}
