//! The two tables of a test, each with or without a merge rule, behind the same questions.

use forebay::{Aggregator, Batch, Database, Layout, OrderedTable, Result, Snapshot, Table};

use crate::check::borrowed;
use crate::{Change, Config, Merging, Multiset, Suffix, TABLES, Write};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A table's handle.
#[derive(Clone, Debug)]
enum Handle {
    Hashed(Table),
    Ordered(OrderedTable),
    States(Aggregator<Multiset>),
}

/// The two tables.
#[derive(Clone, Debug)]
pub struct Tables(Vec<Handle>);

impl Tables {
    /// Opens or makes the tables.
    pub fn open(db: &Database, config: &Config) -> Result<Self> {
        (0..TABLES).map(|number| open(db, config, number)).collect::<Result<_>>().map(Self)
    }

    pub(crate) fn plain(&self, table: usize) -> Option<&Table> {
        match &self.0[table] {
            Handle::Hashed(table) => Some(table),
            Handle::Ordered(table) => Some(table),
            Handle::States(_) => None,
        }
    }

    fn states(&self, table: usize) -> Option<&Aggregator<Multiset>> {
        match &self.0[table] {
            Handle::States(aggregator) => Some(aggregator),
            _ => None,
        }
    }

    /// A table of ranges, if it is one.
    pub fn ordered(&self, table: usize) -> Option<&OrderedTable> {
        match &self.0[table] {
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
        match &self.0[table] {
            Handle::Hashed(table) => table.compact(),
            Handle::Ordered(table) => table.compact(),
            Handle::States(aggregator) => aggregator.finalize(),
        }
    }

    /// Gives the plain table that keeps its keys in order another layout, if there is one.
    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        let mut ordered = (0..TABLES).filter_map(|table| self.ordered(table));
        ordered.try_for_each(|table| table.set_layout(layout))
    }

    /// Adds a change to a batch, unless it is metadata.
    pub fn push(&self, batch: &mut Batch, Change { table, key, write }: &Change) {
        match (self.plain(*table), self.states(*table), write) {
            (Some(table), _, Write::Put(value)) => batch.put(table, key, value),
            (Some(table), _, Write::Delete) => batch.delete(table, key),
            (Some(_), _, Write::DeleteRange(low, high)) => {
                let ordered = self.ordered(*table).expect("only tables in order lose ranges");
                batch.delete_range(ordered, (borrowed(low), borrowed(high)));
            }
            (Some(table), _, Write::Merge(operand)) => batch.merge(table, key, operand),
            (_, Some(table), Write::Merge(value)) => batch.add(table, key, value),
            (_, Some(_), Write::Put(_) | Write::Delete | Write::DeleteRange(..)) => {
                panic!("tables of states take only merges")
            }
            (None, None, _) | (_, _, Write::Metadata(_)) => {}
        }
    }

    /// A table of states.
    pub fn aggregator(&self, table: usize) -> &Aggregator<Multiset> {
        self.states(table).expect("only tables of states have metadata")
    }
}

fn open(db: &Database, config: &Config, number: usize) -> Result<Handle> {
    let (name, merging) = (format!("table-{number}"), config.merging[number]);
    // One that is there may have got another layout since it was made.
    let found = db.tables().into_iter().find(|(table, _)| *table == name).map(|(_, layout)| layout);
    let mut layout = found.unwrap_or_else(|| layout_of(config, number));
    if layout.is_ordered() != keeps_order(config, number) && !merging.has_states() {
        // A crash came while it had another order.
        let table = db.table(&name);
        let table = if merging == Merging::Operands { table.merge_rule(Suffix) } else { table };
        layout = layout_of(config, number);
        table.open()?.set_layout(layout)?;
    }
    macro_rules! with_options {
        ($builder:expr) => {
            $builder
                .layout(layout)
                .node_bytes(config.node_bytes)
                .fan_out(config.fan_out)
                .fast_per_slow(config.fast_per_slow)
                .lists_max(config.lists_max)
                .repeats_max(config.repeats_max)
                .filter_bits_per_key(config.filter_bits_per_key)
                .codec(config.codec)
        };
    }
    if merging.has_states() {
        return with_options!(db.aggregator(&name, Multiset(merging))).open().map(Handle::States);
    }
    let builder = with_options!(db.table(&name));
    let builder = if merging == Merging::Operands { builder.merge_rule(Suffix) } else { builder };
    match keeps_order(config, number) {
        true => builder.open_ordered().map(Handle::Ordered),
        false => builder.open().map(Handle::Hashed),
    }
}

/// Whether a table keeps its keys in order.
pub(crate) fn keeps_order(config: &Config, number: usize) -> bool {
    config.ordered == (number == 0)
}

fn layout_of(config: &Config, number: usize) -> Layout {
    if keeps_order(config, number) { config.ordered_layout } else { Layout::write_buffer() }
}
