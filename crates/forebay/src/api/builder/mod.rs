//! Opening tables, and making them: options are checked against those that a table was made with.

mod aggregating;
mod agree;
mod alter;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use forebay_base::codec::Codec;
use forebay_base::{Combine, Error, PrefixFilter, Result};
use forebay_buffer_tree::TreeOptions;
use forebay_env::yield_point;
use forebay_layouts::{Filter, Keep, Layout, RuleName, TableOptions};
use forebay_store::manifest::{Edit, TableEntry};

use crate::api::Operands;
use crate::context::refuse_guests;
use crate::engine::Engine;
use crate::versions::{TableState, VersionSetGuard, Versions, table_state};
use crate::{MergeRule, OrderedTable, Table};

pub use aggregating::Aggregating;

/// The longest name of a table, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// How often a node of a table that merges may hold a key, on average: there a lookup reads all of a key's records.
const REPEATS_MAX_MERGING: f64 = 1.5;

/// Opens a table, or makes it. Options count when it is made, and are kept: to open it with others later is an error, and
/// [`alter`](Self::alter) changes them. Section numbers are those of the WB paper, which `docs/papers.md` cites.
#[derive(Clone, Debug)]
#[must_use = "call open, open_ordered or alter"]
pub struct TableBuilder<K = ()> {
    engine: Arc<Engine>,
    name: String,
    kind: K,
    rule: AskedRule,
    filter: AskedFilter,
    existing: bool,
    /// Whether it keeps order if it is made and nothing else was asked for.
    made_ordered: bool,
    asked: AskedOptions,
}

/// The options that were asked for.
#[derive(Clone, Debug, Default)]
struct AskedOptions {
    layout: Option<Layout>,
    node_bytes: Option<u64>,
    fan_out: Option<usize>,
    fast_per_slow: Option<u32>,
    lists_max: Option<usize>,
    repeats_max: Option<f64>,
    filter_bits_per_key: Option<u32>,
    /// If anything is said of it: one, or none.
    prefix_filter: Option<Option<PrefixFilter>>,
    codec: Option<Codec>,
    max_space_amplification: Option<f64>,
    reclaim_interval: Option<Duration>,
    time_to_live: Option<Duration>,
    apart_bytes_min: Option<u32>,
}

/// A rule's name, and its code where there is one.
#[derive(Clone, Default)]
struct AskedRule {
    name: RuleName,
    code: Option<Arc<dyn Combine>>,
}

/// A compaction filter, where there is one.
#[derive(Clone, Default)]
struct AskedFilter(Option<Filter>);

impl fmt::Debug for AskedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "filter" } else { "no filter" })
    }
}

impl fmt::Debug for AskedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl TableBuilder {
    pub(crate) fn new(engine: &Arc<Engine>, name: &str) -> Self {
        Self {
            engine: Arc::clone(engine),
            name: name.to_string(),
            kind: (),
            rule: AskedRule::default(),
            filter: AskedFilter::default(),
            existing: false,
            made_ordered: false,
            asked: AskedOptions::default(),
        }
    }

    /// For a table with the options and the rule of another one.
    pub(crate) fn like(engine: &Arc<Engine>, table: &TableState) -> Self {
        let TableOptions { layout, filter_bits_per_key, prefix_filter, codec, tree, .. } = table.options;
        let TableOptions { max_space_amplification, reclaim_interval, time_to_live, apart_bytes_min, .. } =
            table.options;
        let asked = AskedOptions {
            layout: Some(layout),
            node_bytes: Some(tree.node_bytes),
            fan_out: Some(tree.fan_out),
            fast_per_slow: Some(tree.fast_per_slow),
            lists_max: Some(tree.lists_max),
            repeats_max: Some(tree.repeats_max),
            filter_bits_per_key: Some(filter_bits_per_key),
            prefix_filter: Some(prefix_filter),
            codec: Some(codec),
            max_space_amplification,
            reclaim_interval,
            time_to_live,
            apart_bytes_min,
        };
        let rule = AskedRule { name: table.rule.name().clone(), code: table.rule.shared() };
        Self { rule, asked, ..Self::new(engine, &table.name) }
    }

    /// The rule that merges operands of [`Table::merge`]. The table keeps the rule's name. Opening a database does not
    /// bring back the rule's code, so open the table with the rule again soon afterwards. Until then the table is not
    /// read and none of it is merged; and once its records in the log fill the write buffers, writes to any table are
    /// refused with an error that names table and rule. Of a [`StoredRule`](crate::StoredRule) the code is always there.
    pub fn merge_rule(mut self, rule: impl MergeRule) -> Self {
        let name = RuleName::Operands(rule.name().to_string());
        self.rule = AskedRule { name, code: Some(Arc::new(Operands(rule))) };
        self
    }

    /// For a table of states of this type, which merge by this rule.
    pub(crate) fn merging_states(self, state_type: String, code: Arc<dyn Combine>) -> Self {
        Self { rule: AskedRule { name: RuleName::States(state_type), code: Some(code) }, ..self }
    }

    /// Opens or makes the table.
    pub fn open(self) -> Result<Table> {
        let state = self.open_state()?;
        Ok(Table::new(&self.engine, &state))
    }

    /// Opens or makes a table that keeps its keys in order; its layout must be one that does.
    pub fn open_ordered(mut self) -> Result<OrderedTable> {
        let asked = self.asked.layout.filter(|layout| !layout.is_ordered());
        self.made_ordered = true;
        // It may get another layout at any time: what counts is what it has when it is opened.
        let state = if asked.is_none() { Some(self.open_state()?) } else { None };
        let layout = asked.or_else(|| state.as_ref().map(|state| state.options.layout));
        match (layout.filter(|layout| !layout.is_ordered()), state) {
            (None, Some(state)) => Ok(OrderedTable::new(Table::new(&self.engine, &state))),
            (layout, _) => Err(Error::invalid(format!(
                "table `{}` has layout {}, which keeps no order; ranges need a layout in key order, such as wb-tree:ordered",
                self.name,
                layout.unwrap_or_else(Layout::wb_tree)
            ))),
        }
    }

    /// The engine's own table for metadata of commits: it has no name.
    pub(crate) fn open_hidden(engine: &Arc<Engine>) -> Result<Table> {
        let found = engine.versions.state().table_named("").cloned();
        let state = found.map_or_else(|| Self::new(engine, "").find_or_make(), Ok)?;
        Ok(Table::new(engine, &state))
    }
}

/// Makes an empty table of a number that none has.
pub(crate) fn make_table(
    engine: &Engine,
    version_set: &mut VersionSetGuard<'_>,
    entry: TableEntry,
) -> Result<Arc<TableState>> {
    let Versions { lists, trees, .. } = &*engine.versions;
    let (seed, merge_bytes) = (engine.context.superblock.hash_seed, engine.context.division().job_bytes());
    let table = table_state(&entry, lists, trees, seed, merge_bytes, None, &|_| None)?;
    debug_assert!(engine.versions.state().tables.get(&entry.id).is_none(), "a new table gets a new number");
    debug_assert!(table.version.files().is_empty() && table.version.records() == 0, "it begins empty");
    let next = entry
        .id
        .checked_add(1)
        .ok_or_else(|| Error::invalid("the database has had as many tables as can be"))?;
    let next_table = version_set.next_table.max(next);
    version_set.append(&Edit::CreateTable(entry))?;
    version_set.next_table = next_table;
    yield_point("table is durable");
    engine.versions.update_state(|state| state.tables.insert(Arc::clone(&table)));
    Ok(table)
}

impl<K> TableBuilder<K> {
    /// Opens the table only if it exists; otherwise it is an error.
    pub fn existing(mut self, existing: bool) -> Self {
        self.existing = existing;
        self
    }

    /// How the records are organised; [`Layout::wb_tree`] by default. `docs/guide/layouts.md` helps to choose.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.asked.layout = Some(layout);
        self
    }

    /// Capacity of a node, in bytes; by default the size of a write buffer, at least 4 MiB (WB paper, section 3.1).
    pub fn node_bytes(mut self, bytes: u64) -> Self {
        self.asked.node_bytes = Some(bytes);
        self
    }

    /// The most children of a node; 256 by default.
    pub fn fan_out(mut self, fan_out: usize) -> Self {
        self.asked.fan_out = Some(fan_out);
        self
    }

    /// Fast splits of a leaf for each slow one; 8 by default, 0 for slow splits only (section 3.3).
    pub fn fast_per_slow(mut self, ratio: u32) -> Self {
        self.asked.fast_per_slow = Some(ratio);
        self
    }

    /// The most lists of a leaf before they are merged; 128 by default.
    pub fn lists_max(mut self, lists: usize) -> Self {
        self.asked.lists_max = Some(lists);
        self
    }

    /// The bound on memory amplification: how often a node may hold a key, on average, before it is spilled or merged.
    /// 2.0 by default (section 6); 1.5 in a table that merges, because a lookup there reads each of a key's records.
    pub fn repeats_max(mut self, repeats: f64) -> Self {
        self.asked.repeats_max = Some(repeats);
        self
    }

    /// Filter memory for each key of each list, in bits; 11 by default, 14 in key order, 0 for no filters
    /// (section 3.4).
    pub fn filter_bits_per_key(mut self, bits: u32) -> Self {
        self.asked.filter_bits_per_key = Some(bits);
        self
    }

    /// Has filters of lists know the first bytes of keys, too, by a [`PrefixFilter`]; `None`, the default, for no such
    /// thing. A scan of one key prefix, or of a part of it, then reads only those lists that have keys of it, and seldom
    /// another one: [`OrderedTable::prefix`](crate::OrderedTable::prefix), and `range` where all keys between both ends
    /// begin so. It pays where a path has many lists and few of them have the key prefix.
    ///
    /// Keys and key prefixes share [`filter_bits_per_key`](Self::filter_bits_per_key), so filters get no larger: with ten
    /// keys to a key prefix 14 bits come to 12.7 for each of both, with one to 7. Where key prefixes are nearly as many as
    /// keys, give more. For layouts in key order; trees of layout `jungle` have none, and their level 0 has.
    ///
    /// [`alter`](Self::alter) changes it: lists that are there keep what they know until they are merged.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// # use forebay::{Database, Layout, Options, PrefixFilter};
    /// # let db = Database::open("/db", Options::default().env(env))?;
    /// let events = db.table("events").layout(Layout::tiering(10));
    /// let events = events.prefix_filter(PrefixFilter::Until(b'/')).open_ordered()?;
    /// events.put("ada/2026-11-26", "login")?;
    /// assert_eq!(events.prefix("ada/")?.count(), 1);
    /// assert_eq!(events.prefix("bob/")?.count(), 0);
    /// # Ok::<(), forebay::Error>(())
    /// ```
    pub fn prefix_filter(mut self, prefixes: impl Into<Option<PrefixFilter>>) -> Self {
        self.asked.prefix_filter = Some(prefixes.into());
        self
    }

    /// Compression; none by default. Lists are compressed page by page, trees node by node and value by value: short
    /// values lie in nodes, so they share what they have in common, and `jungle:inline=N` says how long those are. A file
    /// keeps the codec that it was made with.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.asked.codec = Some(codec);
        self
    }

    /// The most bytes that the table's files may take for each live byte, at least 1.25; no bound by default. In
    /// addition they may take one more write buffer than there are, and eight times `node_bytes`. The live bytes are
    /// estimated from samples: see `live_bytes` of [`TableSpaceStats`](crate::TableSpaceStats). Deletes reduce them at
    /// once. The files follow as merges go on, and writers wait for those.
    ///
    /// Near the bound, background work merges outdated records with the rest, which costs about 4 / (`most` − 1) bytes
    /// for each byte written, and writers wait for it. If snapshots or scans hold files, so that merging frees nothing,
    /// a write gets [`Error::NoSpace`], which names them.
    pub fn max_space_amplification(mut self, most: f64) -> Self {
        self.asked.max_space_amplification = Some(most);
        self
    }

    /// Says which entries merges keep. Merges beneath which nothing older lies ask it about the newest entry that they
    /// have of a key, perhaps several times: in a tree these are merges and slow splits of leaves; in runs, merges with
    /// the oldest run that has the key, including appends to trees and [`Table::compact`]. A flush that merges nothing
    /// does not ask it, and snapshots keep entries that it drops. So there is no telling when a dropped entry stops
    /// being seen. The filter is not kept on disk: pass it each time the table is first opened. Until then merges keep
    /// all entries.
    pub fn compaction_filter(
        mut self,
        filter: impl Fn(&[u8], &[u8]) -> Keep + Send + Sync + 'static,
    ) -> Self {
        self.filter = AskedFilter(Some(Arc::new(filter)));
        self
    }

    /// How soon deleted and overwritten data leave the table's files and the log, in whole seconds, at least 10; no
    /// such time by default. It counts while the database is open and background work keeps up; data that snapshots and
    /// scans hold, and keys that are bounds of lists, are excepted. Twice in that time the write buffer is flushed, and
    /// records that were not yet merged with everything older are merged: up to the whole table, or nothing if no write
    /// came.
    pub fn reclaim_interval(mut self, interval: Duration) -> Self {
        self.asked.reclaim_interval = Some(interval);
        self
    }

    /// Entries expire after this time, in whole milliseconds. With [`Duration::MAX`], only entries that are [put for a
    /// time](Table::put_with_ttl) expire. In a table with a merge rule what is written without more lives to the end of a
    /// window: time since 1970 is divided into windows of this length, and [operands](Table::merge_until) of one window go
    /// into one entry. A table with an aggregation function cannot have a time to live.
    ///
    /// From the moment that an entry expires no reader sees it; cursors and snapshots still see the entries that were
    /// alive when they were made. An expired entry takes space until a merge drops it. Lists in which every entry has
    /// expired are removed unread. The time is the machine's wall clock, which counts as [going on](crate::Database::unix_milliseconds)
    /// where it is set back. A stored value is 8 bytes longer.
    pub fn time_to_live(mut self, ttl: Duration) -> Self {
        self.asked.time_to_live = Some(ttl);
        self
    }

    /// Keeps values of at least this many bytes apart from their keys: each is written once, to the log, and stays
    /// there as a *value file*; lists and trees have a pointer of 16 bytes (24 where entries expire), and merges move that. No value is kept apart by
    /// default. It pays from some 128 bytes on: a record of 1 KiB is written little more than once, where merging it
    /// with its key writes it two to four times.
    ///
    /// A get of such a value makes two device reads rather than one, and a scan one for each. Values that are
    /// overwritten or deleted take space until merges have met their keys and moved what is left of their files, which
    /// they do with files of which less than half is alive. So this goes with none of `max_space_amplification`,
    /// `reclaim_interval`, merge rules and aggregation functions. Layout `range-merge` leaves values with their keys, and a change to another order brings them back.
    pub fn values_apart(mut self, bytes_min: u32) -> Self {
        self.asked.apart_bytes_min = Some(bytes_min);
        self
    }

    fn open_state(&self) -> Result<Arc<TableState>> {
        refuse_guests()?;
        self.check_name()?;
        let table = self.find_or_make()?;
        self.engine.memory.note_layout(table.options.layout);
        if let Some(code) = &self.rule.code {
            let was_known = table.rule.known().is_some();
            table.rule.provide(Arc::clone(code), &self.name);
            if !was_known {
                self.engine.background.flush_again();
            }
        }
        self.filter.0.iter().for_each(|filter| table.rule.filter_by(Arc::clone(filter), &self.name));
        // Without its code only where somebody else has brought it.
        table.rule()?;
        Ok(table)
    }

    fn check_name(&self) -> Result<()> {
        if (1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return Ok(());
        }
        let bytes = self.name.len();
        Err(Error::invalid(format!("a table's name has 1 to {NAME_BYTES_MAX} bytes, not {bytes}")))
    }

    fn find_or_make(&self) -> Result<Arc<TableState>> {
        let mut version_set = self.engine.versions.lock();
        let state = self.engine.versions.state();
        if let Some(found) = state.table_named(&self.name) {
            self.agrees_with(&found.options)?;
            self.agrees_on_rule(&found.rule)?;
            return Ok(Arc::clone(found));
        }
        if self.existing {
            return Err(self.engine.context.no_table(&self.name));
        }
        self.engine.context.refuse_followers()?;
        let options = self.options();
        self.can_have(&options)?;
        let entry = TableEntry {
            id: version_set.next_table,
            name: self.name.clone(),
            options: options.encode(&self.rule.name),
            version: forebay_layouts::empty(&options)?,
            files: Vec::new(),
        };
        make_table(&self.engine, &mut version_set, entry)
    }

    fn options(&self) -> TableOptions {
        let layout = self.asked.layout.unwrap_or_else(|| match self.made_ordered {
            true => Layout::wb_tree_ordered(),
            false => Layout::wb_tree(),
        });
        let usual = TableOptions::new(layout, self.engine.context.options.buffer_bytes(layout));
        TableOptions {
            layout,
            filter_bits_per_key: self.asked.filter_bits_per_key.unwrap_or(usual.filter_bits_per_key),
            prefix_filter: self.asked.prefix_filter.unwrap_or(usual.prefix_filter),
            codec: self.asked.codec.unwrap_or(usual.codec),
            max_space_amplification: self.asked.max_space_amplification,
            reclaim_interval: self.asked.reclaim_interval,
            time_to_live: self.asked.time_to_live,
            apart_bytes_min: self.asked.apart_bytes_min,
            tree: TreeOptions {
                node_bytes: self.asked.node_bytes.unwrap_or(usual.tree.node_bytes),
                fan_out: self.asked.fan_out.unwrap_or(usual.tree.fan_out),
                fast_per_slow: self.asked.fast_per_slow.unwrap_or(usual.tree.fast_per_slow),
                lists_max: self.asked.lists_max.unwrap_or(usual.tree.lists_max),
                repeats_max: self.asked.repeats_max.unwrap_or(match self.rule.name {
                    RuleName::None => usual.tree.repeats_max,
                    _ => REPEATS_MAX_MERGING,
                }),
            },
        }
    }
}
