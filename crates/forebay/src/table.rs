//! Tables: named key-value maps of one database. [`Table`] for any layout, [`OrderedTable`] for those that
//! keep keys in order; a scan by key of a hash-ordered table is refused by the type.

use std::ops::{Bound as End, Deref, RangeBounds};
use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::merge::Direction;
use forebay_base::{Error, Order, Range, Result};
use forebay_buffer_tree::TreeOptions;
use forebay_layouts::write_buffer::WriteBufferTree;
use forebay_layouts::{Layout, TableOptions};
use forebay_store::manifest::{Edit, TableEntry};

use crate::engine::{Engine, TableState};
use crate::open::table_state;
use crate::{Batch, Scan};

/// The longest name of a table, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Opens a table, or makes it. Options count when it is made and are kept; asking for others later is an
/// error.
#[derive(Clone, Debug)]
#[must_use = "call open or open_ordered"]
pub struct TableBuilder {
    engine: Arc<Engine>,
    name: String,
    existing: bool,
    layout: Option<Layout>,
    node_bytes: Option<u64>,
    fan_out: Option<usize>,
    fast_per_slow: Option<u32>,
    lists_max: Option<usize>,
    repeats_max: Option<f64>,
    filter_bits_per_key: Option<u32>,
    codec: Option<Codec>,
}

impl TableBuilder {
    pub(crate) fn new(engine: &Arc<Engine>, name: &str) -> Self {
        Self {
            engine: Arc::clone(engine),
            name: name.to_string(),
            existing: false,
            layout: None,
            node_bytes: None,
            fan_out: None,
            fast_per_slow: None,
            lists_max: None,
            repeats_max: None,
            filter_bits_per_key: None,
            codec: None,
        }
    }

    /// Only opens a table that is there.
    pub fn existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// The organisation; [`Layout::write_buffer`] unless given.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Capacity of a node, in bytes; the size of a write buffer unless given (WB paper, section 3.1).
    pub fn node_bytes(mut self, bytes: u64) -> Self {
        self.node_bytes = Some(bytes);
        self
    }

    /// The most children of a node; 256 unless given.
    pub fn fan_out(mut self, fan_out: usize) -> Self {
        self.fan_out = Some(fan_out);
        self
    }

    /// Fast splits of a leaf for each slow one; 8 unless given, 0 for slow splits only (section 3.3).
    pub fn fast_per_slow(mut self, ratio: u32) -> Self {
        self.fast_per_slow = Some(ratio);
        self
    }

    /// The most lists of a leaf before they are merged; 64 unless given.
    pub fn lists_max(mut self, lists: usize) -> Self {
        self.lists_max = Some(lists);
        self
    }

    /// The bound on memory amplification: how often a node may hold a key, on average, before it is spilled
    /// or merged; 2.0 unless given (section 6).
    pub fn repeats_max(mut self, repeats: f64) -> Self {
        self.repeats_max = Some(repeats);
        self
    }

    /// Filter memory for each key of each list, in bits; 14 unless given, 0 for no filters (section 3.4).
    pub fn filter_bits_per_key(mut self, bits: u32) -> Self {
        self.filter_bits_per_key = Some(bits);
        self
    }

    /// Page compression; none unless given.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = Some(codec);
        self
    }

    /// Opens or makes the table.
    pub fn open(self) -> Result<Table> {
        let mut ledger = self.engine.ledger.lock();
        let state = self.engine.state();
        if let Some(found) = state.table_named(&self.name) {
            self.agrees_with(&found.options)?;
            return Ok(Table::new(&self.engine, found));
        }
        if self.existing {
            return Err(Error::NotFound(format!("there is no table `{}` in {}", self.name, self.engine.dir.display())));
        }
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX {
            return Err(Error::invalid(format!("a table's name has 1 to {NAME_BYTES_MAX} bytes, not {}", self.name.len())));
        }
        let options = self.options();
        options.validate()?;
        let entry = TableEntry {
            id: ledger.next_table,
            name: self.name.clone(),
            options: options.encode(),
            catalog: WriteBufferTree::empty(options.tree)?,
            files: Vec::new(),
        };
        let engine = &self.engine;
        let table = table_state(&entry, &engine.lists, engine.superblock.hash_seed, engine.options.merge_bytes())?;
        engine.append(&mut ledger, &Edit::CreateTable(entry))?;
        ledger.next_table += 1;
        engine.update_state(|state| drop(state.tables.insert(table.id, Arc::clone(&table))));
        Ok(Table::new(engine, &table))
    }

    /// Opens or makes a table that keeps its keys in order; its layout must be one that does.
    pub fn open_ordered(mut self) -> Result<OrderedTable> {
        let found = self.engine.state().table_named(&self.name).map(|table| table.options.layout);
        let layout = self.layout.or(found).unwrap_or_else(Layout::write_buffer_ordered);
        if !layout.is_ordered() {
            return Err(Error::invalid(format!(
                "table `{}` has layout {layout}, which keeps no order; ranges need write-buffer:ordered",
                self.name
            )));
        }
        self.layout = Some(layout);
        self.open().map(OrderedTable)
    }

    fn options(&self) -> TableOptions {
        TableOptions {
            layout: self.layout.unwrap_or_else(Layout::write_buffer),
            filter_bits_per_key: self.filter_bits_per_key.unwrap_or(14),
            codec: self.codec.unwrap_or_default(),
            tree: TreeOptions {
                node_bytes: self.node_bytes.unwrap_or_else(|| self.engine.options.buffer_bytes()),
                fan_out: self.fan_out.unwrap_or(256),
                fast_per_slow: self.fast_per_slow.unwrap_or(8),
                lists_max: self.lists_max.unwrap_or(64),
                repeats_max: self.repeats_max.unwrap_or(2.0),
            },
        }
    }

    /// Whether everything asked for is what the table was made with.
    fn agrees_with(&self, kept: &TableOptions) -> Result<()> {
        let differs = |name: &str, asked: Option<String>, kept: String| match asked {
            Some(asked) if asked != kept => Err(Error::invalid(format!(
                "table `{}` was made with {name} {kept}, not {asked}; leave the option out, or make another table",
                self.name
            ))),
            _ => Ok(()),
        };
        differs("layout", self.layout.map(|layout| layout.to_string()), kept.layout.to_string())?;
        differs("node_bytes", self.node_bytes.map(|v| v.to_string()), kept.tree.node_bytes.to_string())?;
        differs("fan_out", self.fan_out.map(|v| v.to_string()), kept.tree.fan_out.to_string())?;
        differs("fast_per_slow", self.fast_per_slow.map(|v| v.to_string()), kept.tree.fast_per_slow.to_string())?;
        differs("lists_max", self.lists_max.map(|v| v.to_string()), kept.tree.lists_max.to_string())?;
        differs("repeats_max", self.repeats_max.map(|v| v.to_string()), kept.tree.repeats_max.to_string())?;
        let bits = kept.filter_bits_per_key.to_string();
        differs("filter_bits_per_key", self.filter_bits_per_key.map(|v| v.to_string()), bits)?;
        differs("codec", self.codec.map(|v| format!("{v:?}")), format!("{:?}", kept.codec))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.dir.display())
    }
}

/// A table. Cheap to clone; may be used from any number of threads.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) engine: Arc<Engine>,
    id: u32,
    name: Arc<str>,
    layout: Layout,
    order: Order,
}

impl Table {
    fn new(engine: &Arc<Engine>, state: &TableState) -> Self {
        let (id, layout, order) = (state.id, state.options.layout, state.order);
        Self { engine: Arc::clone(engine), id, name: state.name.as_str().into(), layout, order }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its organisation.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Which open database this is a table of.
    #[inline]
    pub(crate) fn database_id(&self) -> u64 {
        Arc::as_ptr(&self.engine) as usize as u64
    }

    /// The value of a key. Device reads: 0 from memory, else 1 for a present key and nearly none for an
    /// absent one (WB paper, section 3.4).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.get(&self.engine.view(), self.id, key)
    }

    /// The values of several keys, as of one moment, in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.engine.multi_get(&self.engine.view(), self.id, keys)
    }

    /// Sets a key at the database's default durability.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(self, key, value);
        self.commit(&batch)
    }

    /// Removes a key, present or not.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(self, key);
        self.commit(&batch)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        let payload = batch.payload(self.database_id())?;
        self.engine.write(payload, self.engine.options.durability).map(drop)
    }

    /// All entries, in the table's own order, as of now.
    pub fn iter(&self) -> Result<Scan> {
        Scan::new(&self.engine, self.engine.view(), self.id, Range::all(), Direction::Forward)
    }

    /// Writes out what is buffered and merges every leaf to one list: the least space and the fewest reads.
    /// Reads and rewrites the table.
    pub fn compact(&self) -> Result<()> {
        self.engine.compact(self.id)
    }
}

impl AsRef<Table> for Table {
    fn as_ref(&self) -> &Table {
        self
    }
}

/// A table that keeps its keys in order: also ranges, prefixes, both directions.
#[derive(Clone, Debug)]
pub struct OrderedTable(Table);

impl OrderedTable {
    /// Entries with keys in the range, ascending.
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Result<Scan> {
        self.scan(range_of(self.0.order, &bounds), Direction::Forward)
    }

    /// Entries with keys in the range, descending.
    pub fn range_reverse<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Result<Scan> {
        self.scan(range_of(self.0.order, &bounds), Direction::Backward)
    }

    /// Entries whose keys begin so, ascending.
    pub fn prefix(&self, prefix: &[u8]) -> Result<Scan> {
        self.scan(prefix_range(self.0.order, prefix), Direction::Forward)
    }

    /// Entries whose keys begin so, descending.
    pub fn prefix_reverse(&self, prefix: &[u8]) -> Result<Scan> {
        self.scan(prefix_range(self.0.order, prefix), Direction::Backward)
    }

    fn scan(&self, range: Range, direction: Direction) -> Result<Scan> {
        Scan::new(&self.0.engine, self.0.engine.view(), self.0.id, range, direction)
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

/// The key right behind `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

pub(crate) fn range_of<'a>(order: Order, bounds: &impl RangeBounds<&'a [u8]>) -> Range {
    let low = match bounds.start_bound() {
        End::Included(key) => order.bound(key),
        End::Excluded(key) => order.bound(&successor(key)),
        End::Unbounded => Range::all().low,
    };
    let high = match bounds.end_bound() {
        End::Included(key) => Some(order.bound(&successor(key))),
        End::Excluded(key) => Some(order.bound(key)),
        End::Unbounded => None,
    };
    Range { low, high }
}

pub(crate) fn prefix_range(order: Order, prefix: &[u8]) -> Range {
    // The first key behind all that begin with the prefix: its last byte that can grow, grown.
    let end = prefix.iter().rposition(|&byte| byte < 0xff).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    Range { low: order.bound(prefix), high: end.map(|end| order.bound(&end)) }
}
