//! The tables of a test, each with or without a merge rule, behind the same questions.

mod opening;

use std::ops::Bound;

use forebay::{Aggregator, Batch, Cursor, Database, Layout, OrderedTable, Result, Rewrite, Snapshot, Table};

use crate::check::borrowed;
use crate::config::ASIDE;
use crate::pieces::put_columns;
use crate::{Change, Config, Multiset, Suffix, Tripping, Write, groups};

pub(crate) use opening::keeps_order;
pub use opening::name_of;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;
/// A walk over entries from either end.
pub(crate) type Walk = Box<dyn DoubleEndedIterator<Item = Result<(Vec<u8>, Vec<u8>)>>>;

/// A table's handle.
#[derive(Clone, Debug)]
enum Handle {
    Hashed(Table),
    Ordered(OrderedTable),
    States(Aggregator<Tripping<Multiset>>),
}

/// The tables.
#[derive(Clone, Debug)]
pub struct Tables {
    tables: Vec<Handle>,
    groups: Option<groups::Handles>,
}

impl Tables {
    /// Opens or makes the tables.
    pub fn open(db: &Database, config: &Config) -> Result<Self> {
        Self::open_after(db, config, || ())
    }

    /// The same, with something else before each: background work meets tables whose rules are not known yet.
    pub fn open_after(db: &Database, config: &Config, mut before: impl FnMut()) -> Result<Self> {
        let mut opened = Vec::new();
        for number in 0..config.tables() {
            before();
            opened.push(opening::open(db, config, number)?);
        }
        before();
        let groups = config.groupings.as_ref().map(|groupings| groups::Handles::open(db, groupings));
        Ok(Self { tables: opened, groups: groups.transpose()? })
    }

    /// The cube and the windows, if there are any.
    pub(crate) fn groups(&self) -> Option<&groups::Handles> {
        self.groups.as_ref()
    }

    pub(crate) fn plain(&self, table: usize) -> Option<&Table> {
        match &self.tables[table] {
            Handle::Hashed(table) => Some(table),
            Handle::Ordered(table) => Some(table),
            Handle::States(_) => None,
        }
    }

    fn states(&self, table: usize) -> Option<&Aggregator<Tripping<Multiset>>> {
        match &self.tables[table] {
            Handle::States(aggregator) => Some(aggregator),
            _ => None,
        }
    }

    /// A table of ranges, if it is one.
    pub fn ordered(&self, table: usize) -> Option<&OrderedTable> {
        match &self.tables[table] {
            Handle::Ordered(table) => Some(table),
            _ => None,
        }
    }

    /// The value of a key, now or as a snapshot has it.
    pub fn get(&self, table: usize, key: &[u8], snapshot: Option<&Snapshot>) -> Result<Option<Vec<u8>>> {
        match (self.plain(table), self.states(table), snapshot) {
            (Some(table), _, None) => table.get(key),
            (Some(table), _, Some(snapshot)) => snapshot.get(table, key),
            (_, Some(table), None) => table.get(key),
            (_, Some(table), Some(snapshot)) => table.at(snapshot).get(key),
            (None, None, _) => Ok(None),
        }
    }

    /// The values of several keys.
    pub fn multi_get(
        &self,
        table: usize,
        keys: &[Vec<u8>],
        snapshot: Option<&Snapshot>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        match (self.plain(table), self.states(table), snapshot) {
            // Half of the time a few bytes at a time, which comes to the same.
            (Some(table), _, None) if keys.len().is_multiple_of(2) => multi_get_by_parts(table, keys),
            (Some(table), _, None) => table.multi_get(keys),
            (Some(table), _, Some(snapshot)) => snapshot.multi_get(table, keys),
            (_, Some(table), None) => table.multi_get(keys),
            (_, Some(table), Some(snapshot)) => table.at(snapshot).multi_get(keys),
            (None, None, _) => Ok(Vec::new()),
        }
    }

    /// Everything in the table's own order.
    pub fn all(&self, table: usize, snapshot: Option<&Snapshot>) -> Result<Entries> {
        match (self.plain(table), self.states(table), snapshot) {
            (Some(table), _, None) => table.iter()?.collect(),
            (Some(table), _, Some(snapshot)) => snapshot.iter(table)?.collect(),
            (_, Some(table), None) => table.iter()?.collect(),
            (_, Some(table), Some(snapshot)) => table.at(snapshot).iter()?.collect(),
            (None, None, _) => Ok(Vec::new()),
        }
    }

    /// The entries of a range, of a table that keeps its keys in order.
    pub(crate) fn range(
        &self,
        table: usize,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        snapshot: Option<&Snapshot>,
    ) -> Result<Walk> {
        Ok(match (&self.tables[table], snapshot) {
            (Handle::Hashed(_), _) => Box::new(std::iter::empty()),
            (Handle::Ordered(table), None) => Box::new(table.range(bounds)?),
            (Handle::Ordered(table), Some(snapshot)) => Box::new(snapshot.range(table, bounds)?),
            (Handle::States(table), None) => Box::new(table.range(bounds)?),
            (Handle::States(table), Some(snapshot)) => Box::new(table.at(snapshot).range(bounds)?),
        })
    }

    /// The same of keys that begin so.
    pub(crate) fn prefix(&self, table: usize, prefix: &[u8], snapshot: Option<&Snapshot>) -> Result<Walk> {
        Ok(match (&self.tables[table], snapshot) {
            (Handle::Hashed(_), _) => Box::new(std::iter::empty()),
            (Handle::Ordered(table), None) => Box::new(table.prefix(prefix)?),
            (Handle::Ordered(table), Some(snapshot)) => Box::new(snapshot.prefix(table, prefix)?),
            (Handle::States(table), None) => Box::new(table.prefix(prefix)?),
            (Handle::States(table), Some(snapshot)) => Box::new(table.at(snapshot).prefix(prefix)?),
        })
    }

    /// A cursor over a table that keeps its keys in order.
    pub(crate) fn cursor(&self, table: usize, snapshot: Option<&Snapshot>) -> Result<Option<Cursor>> {
        Ok(match (&self.tables[table], snapshot) {
            (Handle::Hashed(_), _) => None,
            (Handle::Ordered(table), None) => Some(table.cursor()?),
            (Handle::Ordered(table), Some(snapshot)) => Some(snapshot.cursor(table)?),
            (Handle::States(table), None) => Some(table.cursor()?),
            (Handle::States(table), Some(snapshot)) => Some(table.at(snapshot).cursor()?),
        })
    }

    /// The metadata of the last commit that had some.
    pub fn metadata(&self, table: usize, snapshot: Option<&Snapshot>) -> Result<Option<Vec<u8>>> {
        match (self.states(table), snapshot) {
            (None, _) => Ok(None),
            (Some(table), None) => table.metadata(),
            (Some(table), Some(snapshot)) => table.at(snapshot).metadata(),
        }
    }

    /// Merges all that a table has.
    pub fn compact(&self, table: usize) -> Result<()> {
        match &self.tables[table] {
            Handle::Hashed(table) => table.compact(),
            Handle::Ordered(table) => table.compact(),
            Handle::States(aggregator) => aggregator.finalize(),
        }
    }

    /// The same, and writes anew what it had; groups are merged.
    pub fn rewrite(&self, table: usize, what: Rewrite) -> Result<()> {
        match &self.tables[table] {
            Handle::Hashed(table) => table.rewrite(what),
            Handle::Ordered(table) => table.rewrite(what),
            Handle::States(aggregator) => aggregator.finalize(),
        }
    }

    /// Merges what a table has in a range, if it knows ranges.
    pub fn compact_range(&self, table: usize, bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Result<()> {
        match &self.tables[table] {
            Handle::Ordered(table) => table.compact_range((borrowed(&bounds.0), borrowed(&bounds.1))),
            _ => self.compact(table),
        }
    }

    /// Gives the plain table that keeps its keys in order another layout, if there is one.
    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        let mut ordered = (0..ASIDE).filter_map(|table| self.ordered(table));
        ordered.try_for_each(|table| table.set_layout(layout))
    }

    /// The same of the table aside.
    pub fn set_layout_aside(&self, layout: Layout) -> Result<()> {
        self.tables
            .get(ASIDE)
            .and_then(|_| self.ordered(ASIDE))
            .map_or(Ok(()), |table| table.set_layout(layout))
    }

    /// The tables as a snapshot has them, which may have been dropped since: their rules come along.
    pub fn at(&self, snapshot: &Snapshot, config: &Config) -> Result<Self> {
        let handle = |(number, handle): (usize, &Handle)| {
            let name = name_of(number);
            if config.merging[number].has_own_rule() {
                snapshot.table_merging(&name, Tripping(Suffix, config.trip.clone()))?;
            }
            match handle {
                Handle::Hashed(_) => snapshot.table(&name).map(Handle::Hashed),
                Handle::Ordered(_) => snapshot.ordered_table(&name).map(Handle::Ordered),
                Handle::States(_) => Ok(handle.clone()),
            }
        };
        let tables = self.tables.iter().enumerate().map(handle).collect::<Result<_>>()?;
        Ok(Self { tables, groups: self.groups.clone() })
    }

    /// Does one change by the table's own handle, unless it is metadata.
    pub(crate) fn write(&self, Change { table, key, write }: &Change) -> Option<Result<()>> {
        match (self.plain(*table), self.states(*table), write) {
            (Some(table), _, Write::Put(value)) => Some(table.put(key, value)),
            (Some(table), _, Write::PutFor(value, ttl)) => Some(table.put_with_ttl(key, value, *ttl)),
            (Some(table), _, Write::Delete) => Some(table.delete(key)),
            (Some(table), _, Write::Merge(operand)) => Some(table.merge(key, operand)),
            (_, Some(table), Write::Merge(value)) => Some(table.add(key, value)),
            (_, Some(table), Write::Delete) => Some(table.delete(key)),
            (_, Some(table), Write::DeleteRange(low, high)) => {
                Some(table.delete_range((borrowed(low), borrowed(high))))
            }
            (_, Some(table), Write::DeletePrefix(prefix)) => Some(table.delete_prefix(prefix)),
            (Some(_), _, Write::DeleteRange(low, high)) => {
                self.ordered(*table).map(|table| table.delete_range((borrowed(low), borrowed(high))))
            }
            (Some(_), _, Write::DeletePrefix(prefix)) => {
                self.ordered(*table).map(|table| table.delete_prefix(prefix))
            }
            _ => None,
        }
    }

    /// Adds a change to a batch, unless it is metadata.
    pub fn push(&self, batch: &mut Batch, Change { table, key, write }: &Change) {
        match (self.plain(*table), self.states(*table), write) {
            (Some(table), _, Write::Put(_) | Write::Delete) if key.len() % 4 == 3 => {
                put_columns(batch, table, key, write)
            }
            (Some(table), _, Write::Put(value)) => batch.put(table, key, value),
            (Some(table), _, Write::PutFor(value, ttl)) => batch.put_with_ttl(table, key, value, *ttl),
            (Some(table), _, Write::Delete) => batch.delete(table, key),
            (Some(_), _, Write::DeleteRange(low, high)) => {
                let ordered = self.ordered(*table).expect("only tables in order lose ranges");
                batch.delete_range(ordered, (borrowed(low), borrowed(high)));
            }
            (Some(_), _, Write::DeletePrefix(prefix)) => {
                let ordered = self.ordered(*table).expect("only tables in order lose ranges");
                batch.delete_prefix(ordered, prefix);
            }
            (Some(table), _, Write::Merge(operand)) => batch.merge(table, key, operand),
            (_, Some(table), Write::Merge(value)) => batch.add(table, key, value),
            (_, Some(table), Write::Delete) => batch.delete_group(table, key),
            (_, Some(table), Write::DeleteRange(low, high)) => {
                batch.delete_group_range(table, (borrowed(low), borrowed(high)));
            }
            (_, Some(table), Write::DeletePrefix(prefix)) => batch.delete_group_prefix(table, prefix),
            (None, None, _) | (_, _, Write::Metadata(_) | Write::Expire(..)) => {}
            (_, Some(_), _) => panic!("tables of states take neither puts nor other merges"),
        }
    }

    /// A table of states.
    pub fn aggregator(&self, table: usize) -> &Aggregator<Tripping<Multiset>> {
        self.states(table).expect("only tables of states have metadata")
    }
}

/// The values of several keys, looked up again and again until each has been answered.
fn multi_get_by_parts(table: &Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
    const BYTES_MAX: usize = 40;
    let (mut values, mut left) = (vec![None; keys.len()], (0..keys.len()).collect::<Vec<_>>());
    while !left.is_empty() {
        let some: Vec<&Vec<u8>> = left.iter().map(|&number| &keys[number]).collect();
        let found = table.multi_get_with_expiry_within(&some, BYTES_MAX)?;
        assert!(!found.is_empty(), "a bounded lookup answers one key at least");
        let answered: Vec<usize> = found.iter().map(|(number, _)| left[*number]).collect();
        for (number, value) in found {
            values[left[number]] = value.map(|(value, _)| value);
        }
        left.retain(|number| !answered.contains(number));
    }
    Ok(values)
}
