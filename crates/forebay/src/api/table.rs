//! Tables: named key-value maps of one database. [`Table`] for any layout, [`OrderedTable`] for those that
//! keep keys in order; a scan by key of a hash-ordered table is refused by the type.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::expiry::EXPIRY_BYTES;
use forebay_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use forebay_base::merge::Direction;
use forebay_base::{Error, Order, Range, Result, planted};
use forebay_layouts::{Layout, RuleName};

use crate::api::KeyBounds;
use crate::api::key_bounds::{prefix_range, range_of};
use crate::background::Scope;
use crate::engine::Engine;
use crate::read;
use crate::read::{Approximation, Entry, Merging, approximate};
use crate::versions::{TableState, View};
use crate::{Batch, Cursor, Nearest, ReadOptions, Scan, Snapshot};

/// What becomes of several records of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Merges {
    Nothing,
    Operands,
    /// Of this type.
    States(Arc<str>, Deletes),
}

/// Whether states may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletes {
    Never,
    Maybe,
}

/// A table. Cheap to clone; may be used from any number of threads.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) engine: Arc<Engine>,
    id: u32,
    name: Arc<str>,
    order: Order,
    rule: Merges,
    /// How long its entries live, if they expire.
    ttl: Option<Duration>,
    reading: ReadOptions,
}

impl Table {
    pub(crate) fn new(engine: &Arc<Engine>, state: &TableState) -> Self {
        let (id, order) = (state.id, state.order);
        let ttl = state.options.time_to_live;
        let rule = match state.rule.name() {
            RuleName::None => Merges::Nothing,
            RuleName::Operands(_) => Merges::Operands,
            RuleName::States(of) => Merges::States(of.as_str().into(), Deletes::Never),
            RuleName::DeletableStates(of) => Merges::States(of.as_str().into(), Deletes::Maybe),
        };
        let (name, reading) = (state.name.as_str().into(), ReadOptions::default());
        Self { engine: Arc::clone(engine), id, name, order, rule, ttl, reading }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its organisation.
    pub fn layout(&self) -> Result<Layout> {
        Ok(self.engine.versions.view().table(self.id)?.options.layout)
    }

    /// Gives it another layout while reads and writes go on. A crash leaves it with one layout or the other.
    ///
    /// If the new layout has the same order, this is done at once and moves no record; background work then brings the
    /// lists into the new form. From hash order to key order, or back, all records are sorted anew before the call
    /// returns: see [`set_layout_telling`](Self::set_layout_telling).
    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        self.set_layout_telling(layout, &mut |_, _| ())
    }

    /// As [`set_layout`](Self::set_layout), with progress. While records are sorted anew, `progress` gets the number
    /// of records that are done and the number of all. Meanwhile the table takes twice the space, no range of it can
    /// be deleted, and nothing can be ingested. At the end writers to the table wait until its buffered records are
    /// sorted anew, too. On an error, or if the database is closed meanwhile, the table stays as it was.
    ///
    /// A [`Table`] can still be used afterwards, though a new one writes faster. If the new layout keeps no order, an
    /// [`OrderedTable`] refuses the calls that need one.
    pub fn set_layout_telling(&self, layout: Layout, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.engine.relayout.set_layout(self.id, layout, progress)
    }

    /// The longest key that it takes, in bytes: 64 KiB.
    pub fn key_bytes_max(&self) -> usize {
        KEY_BYTES_MAX
    }

    /// The longest value or operand that it takes, in bytes: 256 MiB, less 8 bytes where entries expire. What operands
    /// merge to may be longer: [`MergeRule::value_bytes_max`](crate::MergeRule::value_bytes_max).
    pub fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX - if self.expires() { EXPIRY_BYTES } else { 0 }
    }

    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Which open database this is a table of.
    #[inline]
    pub(crate) fn database_id(&self) -> u64 {
        self.engine.context.serial
    }

    /// Its number, where a snapshot of this open database is asked for it.
    pub(crate) fn of(&self, database_id: u64) -> Result<u32> {
        if self.database_id() == database_id || planted::is("snapshot-of-another-database") {
            return Ok(self.id);
        }
        let fault = "the table belongs to another database, or to one that was closed; open it from this snapshot's database";
        Err(Error::invalid(fault))
    }

    /// The same table, of which lookups and scans through this handle read so. Those that are awaited, scans in parts and
    /// by position, and snapshots read as ever.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Layout, Options, ReadOptions};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let users = db.table("users").layout(Layout::wb_tree_ordered()).open_ordered()?;
    /// users.put("ada", "Lovelace")?;
    /// let nightly = users.with(ReadOptions::default().fill_cache(false).read_ahead_bytes(1 << 20).keys_only(true));
    /// assert_eq!(nightly.range(.."b")?.next().transpose()?, Some((b"ada".to_vec(), vec![])));
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn with(&self, reading: ReadOptions) -> Self {
        Self { reading, ..self.clone() }
    }

    /// The database as it is now, over all tables; where it was closed, as it was then.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.engine)
    }

    /// What this handle sees now.
    pub(crate) fn view(&self) -> View {
        self.engine.versions.view().reading(self.reading)
    }

    /// The same for a single lookup. Where operands are merged it is one moment: those that come while it looks belong on
    /// what is there by then, which a rollback or an ingest may have changed.
    pub(crate) fn latest(&self) -> View {
        if self.merges() {
            return self.view();
        }
        self.engine.versions.latest().reading(self.reading)
    }

    /// The value of a key. Device reads: none if memory has it; otherwise one for a present key and nearly none for an
    /// absent one (WB paper, section 3.4; the papers are cited in `docs/papers.md`).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        read::get(&self.engine.context, &self.latest(), self.id, key.as_ref())
    }

    /// Whether there is a key. Costs what [`get`](Self::get) costs.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Whether there is no entry. Reads the beginning of the table, up to its first entry.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.iter()?.next().transpose()?.is_none())
    }

    /// The values of several keys, as of one moment, in the order of the keys. Where one cannot be read none is told:
    /// after damage, [`get`](Self::get) has those that it leaves.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        read::multi_get(&self.engine.context, &self.view(), self.id, keys)
    }

    /// Sets a key at the database's default durability.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(self, key, value);
        self.commit(&batch)
    }

    /// Sets a key that expires: [`Batch::put_with_ttl`].
    pub fn put_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        let mut batch = Batch::new();
        batch.put_with_ttl(self, key, value, ttl);
        self.commit(&batch)
    }

    /// Removes a key, present or not.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(self, key);
        self.commit(&batch)
    }

    /// Merges an operand into a key by the table's [merge rule](crate::TableBuilder::merge_rule), without reading what
    /// is there. A table without a rule refuses it. Where entries expire it goes into that which ends with the
    /// [window](crate::TableBuilder::time_to_live) of now: see [`Batch::merge_until`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.merge(self, key, operand);
        self.commit(&batch)
    }

    /// Whether it has a merge rule.
    #[inline]
    pub(crate) fn merges(&self) -> bool {
        self.rule != Merges::Nothing
    }

    /// Refuses writes to an aggregator's table but by its function: what is no state would be merged with states.
    #[inline]
    pub(crate) fn takes_writes(&self) -> Result<()> {
        match &self.rule {
            Merges::States(state_type, _) => Err(self.has_states(state_type)),
            Merges::Nothing | Merges::Operands => Ok(()),
        }
    }

    /// Refuses operands where there is no merge rule.
    #[inline]
    pub(crate) fn takes_operands(&self) -> Result<()> {
        match self.merges() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "table `{}` has no merge rule, so nothing can be merged into it",
                self.name
            ))),
        }
    }

    /// Refuses that entries expire where they do not.
    #[inline]
    pub(crate) fn takes_expiry(&self) -> Result<()> {
        match self.expires() {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "table `{}` was made without time_to_live, so its entries cannot expire; make a table with it",
                self.name
            ))),
        }
    }

    /// Refuses that states are deleted where that is not foreseen.
    pub(crate) fn takes_deletes(&self) -> Result<()> {
        match &self.rule {
            Merges::States(_, Deletes::Never) => Err(Error::invalid(format!(
                "aggregator `{}` was made without `deletes`, so its groups cannot be deleted; make one with it",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    #[cold]
    fn has_states(&self, state_type: &str) -> Error {
        Error::invalid(format!(
            "table `{}` keeps states of `{state_type}`, so this handle only reads; write through Database::aggregator",
            self.name
        ))
    }

    /// Whether its entries expire.
    #[inline]
    pub(crate) fn expires(&self) -> bool {
        self.ttl.is_some()
    }

    /// When what is written now without more expires, if entries do.
    #[inline]
    pub(crate) fn usual_expiry(&self) -> Option<u64> {
        let merging = if self.merges() { Merging::Operands } else { Merging::Nothing };
        self.ttl.map(|ttl| read::usual_expiry(&self.engine.context, ttl, merging))
    }

    pub(crate) fn commit(&self, batch: &Batch) -> Result<()> {
        let payload = batch.payload(self.database_id())?;
        self.engine.writer.write(payload, self.engine.context.options.usual_durability()).map(drop)
    }

    /// All entries, in the table's own order, as of now.
    pub fn iter(&self) -> Result<Scan> {
        Scan::new(&self.engine, self.view(), self.id, Range::all())
    }

    /// Writes out what is buffered and merges every leaf to one list: the least space and the fewest reads. Reads and
    /// rewrites the table, but for lists that are merged already, which [`rewrite`](Self::rewrite) writes anew, too. Records
    /// that are written meanwhile may or may not be merged; it ends all the same.
    pub fn compact(&self) -> Result<()> {
        self.engine.background.compact(self.id, &Scope::default())
    }
}

impl AsRef<Table> for Table {
    fn as_ref(&self) -> &Table {
        self
    }
}

/// A table that keeps its keys in order: also ranges, prefixes, cursors, both directions.
///
/// Where a walk begins, or a single entry is looked for, it costs at most one device read for each list on one path of
/// the tree, and none for those that are in memory or have nothing there. After [`Table::compact`] a path has one
/// list.
#[derive(Clone, Debug)]
pub struct OrderedTable(Table);

impl OrderedTable {
    pub(crate) fn new(table: Table) -> Self {
        Self(table)
    }

    /// The same table, of which lookups, scans and cursors through this handle read so: [`Table::with`].
    pub fn with(&self, reading: ReadOptions) -> Self {
        Self(self.0.with(reading))
    }

    /// A cursor over all of the table as it is now, before its first entry.
    pub fn cursor(&self) -> Result<Cursor> {
        let view = self.0.view().in_order(self.0.id)?;
        Cursor::new(&self.0.engine.versions, view, self.0.id, Range::all(), Direction::Forward)
    }

    /// The entry with the lowest key.
    pub fn first(&self) -> Result<Option<Entry>> {
        self.cursor()?.end(Direction::Forward)
    }

    /// The entry with the highest key.
    pub fn last(&self) -> Result<Option<Entry>> {
        self.cursor()?.end(Direction::Backward)
    }

    /// The entry that is nearest to a key, on the given side.
    pub fn nearest(&self, key: impl AsRef<[u8]>, nearest: Nearest) -> Result<Option<Entry>> {
        self.cursor()?.nearest(key.as_ref(), nearest)
    }

    /// About how much lies in a range, every version of a key and every tombstone counted. Device reads: none; of
    /// trees of layout `jungle` the nodes on the way to either end, unless the cache has them.
    ///
    /// Each list errs by a page at either end of the range, which is 4 KiB, or 16 KiB before compression; mostly by
    /// less, as inside a page it is estimated by where the key lies between its neighbours. To that comes what the
    /// tree itself estimates: parts of a list that leaves share after a split that moved no data. What is buffered is
    /// counted, and what was written to it since it was looked at last is sorted for that.
    pub fn approximate(&self, bounds: impl KeyBounds) -> Result<Approximation> {
        approximate(
            &self.0.engine.versions.view().in_order(self.0.id)?,
            self.0.id,
            &range_of(Order::Lexical, &bounds),
        )
    }

    /// Entries with keys in the range, ascending; from its end by [`rev`](Iterator::rev). All of them:
    /// [`iter`](Table::iter).
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Layout, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let users = db.table("users").layout(Layout::wb_tree_ordered()).open_ordered()?;
    /// for name in ["ada", "bob", "eve"] {
    ///     users.put(name, "")?;
    /// }
    /// let names = users.range("b"..)?.rev().map(|entry| entry.map(|(name, _)| name));
    /// assert_eq!(names.collect::<Result<Vec<_>, _>>()?, [b"eve", b"bob"]);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn range(&self, bounds: impl KeyBounds) -> Result<Scan> {
        self.scan(range_of(Order::Lexical, &bounds))
    }

    /// Entries whose keys begin with the prefix, ascending; from the end by [`rev`](Iterator::rev).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        self.scan(prefix_range(Order::Lexical, prefix.as_ref()))
    }

    /// Removes all keys of a range, at the database's default durability: [`Batch::delete_range`]. They are gone at
    /// once, without being read. Lists lose them in the background: in a layout of runs, parts of files are dropped,
    /// and files that hold nothing else are removed; in a tree each key gets a tombstone, except keys of damaged
    /// pages, which cannot be read.
    pub fn delete_range(&self, bounds: impl KeyBounds) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(self, bounds);
        self.0.commit(&batch)
    }

    /// Removes all keys that begin with a prefix: [`delete_range`](Self::delete_range) of those.
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_prefix(self, prefix);
        self.0.commit(&batch)
    }

    /// Merges what lies in a range, as [`compact`](Table::compact) does all of the table: afterwards deleted entries and
    /// former values of the range are gone from lists and from their files, as far as no snapshot or savepoint holds them.
    /// Writes out what is buffered; what is written meanwhile may or may not be merged.
    ///
    /// Reads and rewrites what meets the range: of a tree the nodes, of runs what they have there. To that come the
    /// neighbours in the files that held something old of it: of runs the rest of the parts at either end, of a tree
    /// the nodes beside those on the way down. Long values that are [kept apart](crate::TableBuilder::values_apart)
    /// go as they do otherwise. Calls for several ranges of a table are done one after the other.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Layout, Options};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let logins = db.table("logins").layout(Layout::leveling(10)).open_ordered()?;
    /// (0..100).try_for_each(|day: u32| logins.put(day.to_be_bytes(), "who it was"))?;
    /// logins.delete_range(..30_u32.to_be_bytes())?;
    /// logins.compact_range(..30_u32.to_be_bytes())?;
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn compact_range(&self, bounds: impl KeyBounds) -> Result<()> {
        self.compact_in(&range_of(Order::Lexical, &bounds))
    }

    /// [`compact_range`](Self::compact_range) of all keys that begin with a prefix.
    pub fn compact_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.compact_in(&prefix_range(Order::Lexical, prefix.as_ref()))
    }

    fn compact_in(&self, range: &Range) -> Result<()> {
        self.0.engine.versions.view().in_order(self.0.id)?;
        match range.is_empty() {
            true => Ok(()),
            false => self.0.engine.background.compact(self.0.id, &Scope::Range(range.clone())),
        }
    }

    /// Brings in entries whose keys ascend, each key once, as lists: without the log, and without merging where no key
    /// lies in their range yet. All of them are there and durable when it returns or, on error or after a crash, none.
    /// They are newer than all that was written to the table before they are there. Writers to it wait for as long as it
    /// takes to flush what has come meanwhile, and for an edit of the manifest. Layouts of runs only: `no-merge`,
    /// `tiering`, `leveling` and the like.
    pub fn ingest(
        &self,
        entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + Send + 'static,
    ) -> Result<u64> {
        self.0.takes_writes()?;
        self.0.engine.relayout.ingest(self.0.id, Box::new(entries))
    }

    fn scan(&self, range: Range) -> Result<Scan> {
        Scan::new(&self.0.engine, self.0.view().in_order(self.0.id)?, self.0.id, range)
    }
}

impl Deref for OrderedTable {
    type Target = Table;
    fn deref(&self) -> &Table {
        &self.0
    }
}

impl AsRef<Table> for OrderedTable {
    fn as_ref(&self) -> &Table {
        &self.0
    }
}

/// So that one that threads share goes into batches as it is. (Of `Arc<Table>` the standard library says so.)
impl AsRef<Table> for Arc<OrderedTable> {
    fn as_ref(&self) -> &Table {
        self
    }
}
