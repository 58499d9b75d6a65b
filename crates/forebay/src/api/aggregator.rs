//! The durable aggregator: a table that keeps the state of an aggregation function for each key. Adding is a write of
//! the value's state and reads nothing; states merge whenever records are merged anyway, and when they are read.
//!
//! **Invariant:** all records of the table are puts of states, each of the function's fixed length where it has one, and
//! deletes if it was made for those.

use std::fmt;
use std::sync::Arc;

use forebay_aggregate::{Aggregate, Visit};
use forebay_base::merge::Direction;
use forebay_base::{Order, Range, Record, Result};
use forebay_layouts::Layout;
use forebay_store::log::Durability;

use crate::api::KeyBounds;
use crate::api::key_bounds::{prefix_range, range_of};
use crate::memory::Memory;
use crate::read;
use crate::versions::View;
use crate::{Batch, Cursor, Scan, Snapshot, Table, TableBuilder};

/// Keeps the state of an aggregation function for each key, durably. Cheap to clone; may be used from any number of
/// threads, and read at any time.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("forebay-doc-hits-{}", std::process::id()));
/// use forebay::aggregate::functions::Count;
/// use forebay::{Batch, Database, Durability, Options};
///
/// let db = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
/// let hits = db.aggregator("hits", Count).open()?;
/// hits.add(b"/index", ())?;
///
/// let mut batch = Batch::new();
/// batch.add(&hits, b"/index", ());
/// batch.add(&hits, b"/about", ());
/// // What was read up to is kept with what was read: all of it or nothing.
/// hits.commit(batch, Durability::Disk, b"offset 3")?;
///
/// assert_eq!(hits.get(b"/index")?, Some(2));
/// assert_eq!(hits.metadata()?.as_deref(), Some(&b"offset 3"[..]));
/// # drop(hits);
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), forebay::Error>(())
/// ```
pub struct Aggregator<A> {
    table: Table,
    function: Arc<A>,
}

impl<A> Clone for Aggregator<A> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), function: Arc::clone(&self.function) }
    }
}

impl<A> fmt::Debug for Aggregator<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aggregator({})", self.table.name())
    }
}

impl<A: Aggregate> Aggregator<A> {
    pub(crate) fn new(table: Table, function: Arc<A>) -> Self {
        Self { table, function }
    }

    #[inline]
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// Its organisation.
    pub fn layout(&self) -> Result<Layout> {
        self.table.layout()
    }

    /// Its function.
    #[inline]
    pub fn function(&self) -> &A {
        &self.function
    }

    /// Adds a value to a key at the database's default durability.
    pub fn add(&self, key: impl AsRef<[u8]>, value: A::Input<'_>) -> Result<()> {
        let mut batch = Batch::new();
        batch.add(self, key, value);
        self.table.commit(&batch)
    }

    /// Merges a state of this function's type into that of a key.
    pub fn add_state(&self, key: impl AsRef<[u8]>, state: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.add_state(self, key, state);
        self.table.commit(&batch)
    }

    /// Adds all of the values, or on error none.
    pub fn add_batch<'a, K: AsRef<[u8]>>(
        &self,
        values: impl IntoIterator<Item = (K, A::Input<'a>)>,
    ) -> Result<()> {
        let mut batch = Batch::new();
        values.into_iter().for_each(|(key, value)| batch.add(self, key, value));
        self.table.commit(&batch)
    }

    /// Removes a key's group, at the database's default durability: what was added before counts no more, what is added
    /// later does. Reads nothing. Only of an aggregator that was made with [`deletes`](crate::TableBuilder::deletes).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_group(self, key);
        self.table.commit(&batch)
    }

    /// Removes the groups of a range of keys, of a layout in key order. It costs one record.
    pub fn delete_range(&self, bounds: impl KeyBounds) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_group_range(self, bounds);
        self.table.commit(&batch)
    }

    /// The same of keys that begin so.
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_group_prefix(self, prefix);
        self.table.commit(&batch)
    }

    /// Writes a batch, of any tables, together with bytes of the caller's, such as how far a stream was read:
    /// after any crash [`metadata`](Self::metadata) gives those of the last batch that was kept. Returns the number of
    /// the last record.
    pub fn commit(
        &self,
        mut batch: Batch,
        durability: Durability,
        metadata: impl AsRef<[u8]>,
    ) -> Result<u64> {
        self.put_metadata(&mut batch, metadata)?;
        self.table.engine.writer.write(batch.payload(self.table.database_id())?, durability)
    }

    /// Puts such bytes into a batch, for whoever commits it: it may be that of several aggregators, or a
    /// [`Transaction`](crate::Transaction).
    ///
    /// A transaction that has read [`metadata`](AggregatorSnapshot::metadata) conflicts where others have put some since,
    /// but for the first that any aggregator of the database is given: what keeps them is made by the first call of this,
    /// and before that there is nothing to be read. Two transactions that both begin without any may both be committed.
    /// Where that matters, call this once before they begin; its batch need not be committed.
    pub fn put_metadata(&self, batch: &mut Batch, metadata: impl AsRef<[u8]>) -> Result<()> {
        let table = TableBuilder::open_hidden(&self.table.engine)?;
        batch.push(&table, Record::put(&self.table.id().to_le_bytes(), metadata.as_ref()));
        Ok(())
    }

    /// The bytes that came with the last [`commit`](Self::commit).
    pub fn metadata(&self) -> Result<Option<Vec<u8>>> {
        self.seen(self.table.engine.versions.view()).metadata()
    }

    /// What a key's values come to. Device reads: one for each list on the path that has the key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<A::Output>> {
        self.seen(self.table.engine.versions.view()).get(key)
    }

    /// The state of a key.
    pub fn get_state(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.seen(self.table.engine.versions.view()).get_state(key)
    }

    /// Whether a key has any values.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_state(key)?.is_some())
    }

    /// What several keys' values come to, as of one moment, in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<A::Output>>> {
        self.seen(self.table.engine.versions.view()).multi_get(keys)
    }

    /// All keys with what their values come to, in the table's own order, as of now. Adding goes on.
    pub fn iter(&self) -> Result<AggregatorScan<A>> {
        self.seen(self.table.engine.versions.view()).iter()
    }

    /// The keys of a range with what their values come to, ascending, of a layout in key order.
    pub fn range(&self, bounds: impl KeyBounds) -> Result<AggregatorScan<A>> {
        self.seen(self.table.engine.versions.view()).range(bounds)
    }

    /// The same of keys that begin so.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<AggregatorScan<A>> {
        self.seen(self.table.engine.versions.view()).prefix(prefix)
    }

    /// A cursor over all keys as they are now, before the first, of a layout in key order. Its values are
    /// states: the function's [`finish`](Aggregate::finish) tells what they come to.
    pub fn cursor(&self) -> Result<Cursor> {
        self.seen(self.table.engine.versions.view()).cursor()
    }

    /// The aggregator as a snapshot has it.
    pub fn at(&self, snapshot: &Snapshot) -> AggregatorSnapshot<A> {
        self.seen_of(snapshot.view().clone(), snapshot.database_id())
    }

    fn seen(&self, view: View) -> AggregatorSnapshot<A> {
        self.seen_of(view, self.table.database_id())
    }

    /// The aggregator as a view has it, of this open database.
    pub(crate) fn seen_of(&self, view: View, database_id: u64) -> AggregatorSnapshot<A> {
        // Without their states keys come to nothing.
        let reading = view.reading.keys_only(false);
        AggregatorSnapshot { aggregator: self.clone(), view: view.reading(reading), database_id }
    }

    /// Merges all there is to one state a key: the least space and the fewest reads. More may be added meanwhile and
    /// later. Reads and rewrites the table.
    pub fn finalize(&self) -> Result<()> {
        self.table.compact()
    }
}

/// An aggregator at one moment.
pub struct AggregatorSnapshot<A> {
    aggregator: Aggregator<A>,
    view: View,
    /// Which open database the view is of.
    database_id: u64,
}

impl<A: Aggregate> AggregatorSnapshot<A> {
    /// What a key's values came to.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<A::Output>> {
        self.get_state(key)?.map(|state| self.aggregator.function.finish(&state)).transpose()
    }

    /// The state that a key had.
    pub fn get_state(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let table = &self.aggregator.table;
        read::get(&table.engine.context, &self.view, table.of(self.database_id)?, key.as_ref())
    }

    /// What several keys' values came to, in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<A::Output>>> {
        let Aggregator { table, function } = &self.aggregator;
        let states = read::multi_get(&table.engine.context, &self.view, table.of(self.database_id)?, keys)?;
        states.into_iter().map(|state| state.map(|state| function.finish(&state)).transpose()).collect()
    }

    /// All keys with what their values came to, in the table's own order.
    pub fn iter(&self) -> Result<AggregatorScan<A>> {
        self.scan(self.view.clone(), Range::all())
    }

    /// The keys of a range with what their values came to, ascending, of a layout in key order.
    pub fn range(&self, bounds: impl KeyBounds) -> Result<AggregatorScan<A>> {
        self.scan(self.in_order()?, range_of(Order::Lexical, &bounds))
    }

    /// The same of keys that begin so.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<AggregatorScan<A>> {
        self.scan(self.in_order()?, prefix_range(Order::Lexical, prefix.as_ref()))
    }

    /// A cursor over all keys as they were, before the first, of a layout in key order. Its values are states.
    pub fn cursor(&self) -> Result<Cursor> {
        let table = &self.aggregator.table;
        let id = table.of(self.database_id)?;
        Cursor::new(&table.engine.versions, self.in_order()?, id, Range::all(), Direction::Forward)
    }

    /// The view, of a table that keeps its keys in order.
    fn in_order(&self) -> Result<View> {
        self.view.clone().in_order(self.aggregator.table.of(self.database_id)?)
    }

    fn scan(&self, view: View, range: Range) -> Result<AggregatorScan<A>> {
        let Aggregator { table, function } = &self.aggregator;
        let id = table.of(self.database_id)?;
        let scan = Scan::new(&table.engine, view, id, range)?;
        Ok(AggregatorScan { scan, function: Arc::clone(function) })
    }

    /// The bytes that came with the last [`commit`](Aggregator::commit) before. In a transaction see
    /// [`put_metadata`](Aggregator::put_metadata).
    pub fn metadata(&self) -> Result<Option<Vec<u8>>> {
        let table = &self.aggregator.table;
        let id = table.of(self.database_id)?;
        let Some(hidden) = self.view.state.table_named("") else { return Ok(None) };
        read::get(&table.engine.context, &self.view, hidden.id, &id.to_le_bytes())
    }
}

impl<A> fmt::Debug for AggregatorSnapshot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregatorSnapshot({})", self.aggregator.table.name())
    }
}

/// Keys with what their values come to, as of when the walk was made.
pub struct AggregatorScan<A> {
    scan: Scan,
    function: Arc<A>,
}

impl<A: Aggregate> Iterator for AggregatorScan<A> {
    type Item = Result<(Vec<u8>, A::Output)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.scan.next().map(|entry| self.finish(entry))
    }
}

impl<A: Aggregate> DoubleEndedIterator for AggregatorScan<A> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.scan.next_back().map(|entry| self.finish(entry))
    }
}

impl<A: Aggregate> AggregatorScan<A> {
    fn finish(&self, entry: Result<(Vec<u8>, Vec<u8>)>) -> Result<(Vec<u8>, A::Output)> {
        let (key, state) = entry?;
        Ok((key, self.function.finish(&state)?))
    }
}

impl<A> fmt::Debug for AggregatorScan<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt(f)
    }
}

impl<A: Aggregate> forebay_aggregate::Aggregator<A> for Aggregator<A> {
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        Self::add(self, key, value)
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        Self::add_state(self, key, state)
    }

    fn finalize(&mut self) -> Result<()> {
        Self::finalize(self)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_state(key)
    }

    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        let engine = &self.table.engine;
        let mut cursor = Cursor::new(
            &engine.versions,
            engine.versions.view(),
            self.table.id(),
            Range::all(),
            Direction::Forward,
        )?;
        loop {
            cursor.next()?;
            let Some((key, state)) = cursor.entry() else { return Ok(()) };
            visit(key, state)?;
        }
    }

    /// That of the whole database: its tables share it.
    fn memory_bytes(&self) -> usize {
        let memory = Memory::of(&self.table.engine.versions);
        let parts = [memory.write_buffers, memory.buffer_indexes, memory.filters, memory.page_search];
        (parts.iter().sum::<u64>() + memory.page_cache) as usize
    }
}
