//! Snapshots: the database as it was at one moment, over all tables. A snapshot pins lists and buffers, not
//! records: it costs nothing to make, and holds files and memory until it is dropped.

use std::sync::Arc;

use forebay_aggregate::{Aggregate, Merging};
use forebay_base::merge::Direction;
use forebay_base::{Combine, Error, Order, Range, Result};
use forebay_layouts::{Layout, RuleName};
use forebay_store::WriteBuffer;

use crate::api::KeyBounds;
use crate::api::key_bounds::{prefix_range, range_of};
use crate::api::merge_rule::Operands;
use crate::engine::Engine;
use crate::read;
use crate::read::Entry;
use crate::versions::{Own, Pin, View};
use crate::{
    Aggregator, AggregatorSnapshot, Cursor, MergeRule, Nearest, OrderedTable, ReadOptions, Scan, Table,
};

/// The database at one moment.
#[derive(Clone)]
pub struct Snapshot {
    engine: Arc<Engine>,
    view: View,
}

impl Snapshot {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        let view = engine.versions.view();
        // What merges have dropped of this view had expired before.
        Self::of(engine, view, engine.context.env.clock.unix_milliseconds())
    }

    /// Of a view, in which nothing was dropped that was alive at this time, in milliseconds since 1970.
    pub(crate) fn of(engine: &Arc<Engine>, view: View, moment: u64) -> Self {
        let pin = Some(Pin::new(&engine.versions, &view.state));
        Self { engine: Arc::clone(engine), view: View { pin, moment: Some(moment), ..view } }
    }

    /// What a transaction sees that has written nothing yet.
    pub(crate) fn of_transaction(engine: &Arc<Engine>, view: &View) -> Self {
        let pin = Some(Pin::new(&engine.versions, &view.state));
        Self { engine: Arc::clone(engine), view: View { pin, ..view.clone() } }
    }

    /// This is what the transaction has written by now. Whatever was begun to be read keeps what it sees.
    pub(crate) fn set_written(&mut self, written: Vec<(Arc<WriteBuffer>, usize)>) {
        let Some(own) = &self.view.own else { return };
        if !(own.written.is_empty() && written.is_empty()) {
            self.view.own = Some(Arc::new(Own { reads: Arc::clone(&own.reads), written }));
        }
    }

    /// The same moment, of which lookups, scans (those in parts and by position, too) and cursors by this handle read so,
    /// whatever those of the tables are told.
    pub fn with(&self, reading: ReadOptions) -> Self {
        Self { engine: Arc::clone(&self.engine), view: self.view.clone().reading(reading) }
    }

    /// The tables that were there and their layouts, by name.
    pub fn tables(&self) -> Vec<(String, Layout)> {
        self.view.state.layouts()
    }

    /// A table that was there, by its name; also one that has been dropped since, which only snapshots can be asked of
    /// then. Of an aggregator's table it only reads.
    pub fn table(&self, name: &str) -> Result<Table> {
        let found = self.view.state.table_named(name).filter(|table| !table.is_hidden());
        let missing = || Error::NotFound(format!("there was no table `{name}` at that moment"));
        found.map(|table| Table::new(&self.engine, table)).ok_or_else(missing)
    }

    /// The type of the states that a table kept, if it was an aggregator's:
    /// [`BuiltIn`](crate::aggregate::BuiltIn) may know it.
    pub fn state_type(&self, name: &str) -> Result<Option<String>> {
        let table = self.table(name)?;
        let table = self.view.table(table.id())?;
        Ok(table.rule.name().state_type().map(ToString::to_string))
    }

    /// A table that was there and merges by a rule, together with the rule. If the table was dropped since, no other
    /// call brings its rule once the database was opened again. Otherwise [`table`](Self::table) does.
    pub fn table_merging(&self, name: &str, rule: impl MergeRule) -> Result<Table> {
        let asked = RuleName::Operands(rule.name().to_string());
        self.provide(name, &asked, Arc::new(Operands(rule)))
    }

    /// The same of an aggregator's table: what it gives is for [`AggregatorSnapshot`](crate::AggregatorSnapshot)'s
    /// calls.
    pub fn aggregator<A: Aggregate>(&self, name: &str, function: A) -> Result<AggregatorSnapshot<A>> {
        let function = Arc::new(function);
        let asked = RuleName::States(function.state_type().as_str().to_string());
        let table = self.provide(name, &asked, Arc::new(Merging(Arc::clone(&function))))?;
        Ok(Aggregator::new(table, function).at(self))
    }

    fn provide(&self, name: &str, asked: &RuleName, code: Arc<dyn Combine>) -> Result<Table> {
        let table = self.table(name)?;
        let state = self.view.table(table.id())?;
        let kept = state.rule.name();
        if kept != asked && (kept.state_type().is_none() || kept.state_type() != asked.state_type()) {
            let (kept, asked) = (kept.describe(), asked.describe());
            return Err(Error::invalid(format!("table `{name}` was made with {kept}, not with {asked}")));
        }
        state.rule.provide(code, name);
        self.engine.background.flush_again();
        Ok(table)
    }

    /// By which [`Stats`](crate::Stats) lists it: the first since the database was opened is 1.
    pub fn number(&self) -> u64 {
        debug_assert!(self.view.pin.is_some() && self.view.moment.is_some(), "a snapshot holds what it sees");
        self.view.pin.as_ref().map_or(0, |pin| pin.number())
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Which open database this is a snapshot of.
    pub(crate) fn database_id(&self) -> u64 {
        self.engine.context.serial
    }

    /// The number of a table, which must be of the same open database: in another one it is some other table's.
    pub(super) fn own(&self, table: &Table) -> Result<u32> {
        table.of(self.engine.context.serial)
    }

    /// The same, of a table that kept its keys in order.
    pub fn ordered_table(&self, name: &str) -> Result<OrderedTable> {
        let table = self.table(name)?;
        self.view.clone().in_order(table.id())?;
        Ok(OrderedTable::new(table))
    }

    /// The value that a key had.
    pub fn get(&self, table: impl AsRef<Table>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        read::get(&self.engine.context, &self.view, self.own(table.as_ref())?, key.as_ref())
    }

    /// The same into memory that is there. Returns when the entry was to expire, if there was one.
    pub(super) fn get_into(&self, table: &Table, key: &[u8], value: &mut Vec<u8>) -> Result<Option<u64>> {
        read::get_into(&self.engine.context, &self.view, self.own(table)?, key, value)
    }

    /// Whether a table had a key.
    pub fn contains_key(&self, table: impl AsRef<Table>, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(table, key)?.is_some())
    }

    /// The values that several keys had, in the order of the keys. Where one cannot be read none is told: after damage,
    /// [`get`](Self::get) has those that it leaves.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        table: impl AsRef<Table>,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        read::multi_get(&self.engine.context, &self.view, self.own(table.as_ref())?, keys)
    }

    /// A cursor over all that a table had, before its first entry.
    pub fn cursor(&self, table: &OrderedTable) -> Result<Cursor> {
        let id = self.own(table)?;
        let view = self.view.clone().in_order(id)?;
        Cursor::new(&self.engine.versions, view, id, Range::all(), Direction::Forward)
    }

    /// The entry that had the lowest key.
    pub fn first(&self, table: &OrderedTable) -> Result<Option<Entry>> {
        self.cursor(table)?.end(Direction::Forward)
    }

    /// The entry that had the highest key.
    pub fn last(&self, table: &OrderedTable) -> Result<Option<Entry>> {
        self.cursor(table)?.end(Direction::Backward)
    }

    /// The entry that was nearest to a key, on the given side.
    pub fn nearest(
        &self,
        table: &OrderedTable,
        key: impl AsRef<[u8]>,
        nearest: Nearest,
    ) -> Result<Option<Entry>> {
        self.cursor(table)?.nearest(key.as_ref(), nearest)
    }

    /// All entries that a table had, in its own order.
    pub fn iter(&self, table: impl AsRef<Table>) -> Result<Scan> {
        Scan::new(&self.engine, self.view.clone(), self.own(table.as_ref())?, Range::all())
    }

    /// Entries that had keys in the range, ascending; from its end by [`rev`](Iterator::rev).
    pub fn range(&self, table: &OrderedTable, bounds: impl KeyBounds) -> Result<Scan> {
        self.ordered(table, range_of(Order::Lexical, &bounds))
    }

    /// Entries whose keys began so, ascending; from the end by [`rev`](Iterator::rev).
    pub fn prefix(&self, table: &OrderedTable, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        self.ordered(table, prefix_range(Order::Lexical, prefix.as_ref()))
    }

    fn ordered(&self, table: &OrderedTable, range: Range) -> Result<Scan> {
        let id = self.own(table)?;
        Scan::new(&self.engine, self.view.clone().in_order(id)?, id, range)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({})", self.engine.context.dir.display())
    }
}
