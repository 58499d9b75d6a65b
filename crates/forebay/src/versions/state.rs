//! What can be read at one moment: buffers, and a version of each table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_base::{Order, Result};
use forebay_env::sync::atomic::{AtomicU64, Ordering};
use forebay_layouts::{DataFile, Layout, Rule, RuleName, TableOptions, TableRule, TableVersion};
use forebay_store::WriteBuffer;
use forebay_store::buffer::TableRows;
use forebay_store::list::FileMeta;
use forebay_store::manifest::TableEntry;

use crate::versions::{TableSpace, Tables};

/// One version of everything that can be read: replaced whole, pinned by snapshots.
#[derive(Clone)]
pub(crate) struct State {
    /// The buffer that is being filled.
    pub(crate) active: Arc<WriteBuffer>,
    /// Full buffers that are not in lists yet, newest first.
    pub(crate) sealed: Vec<Arc<WriteBuffer>>,
    /// Tables by id.
    pub(crate) tables: Tables,
    /// Tables whose writers wait, for as long as it takes to give them another order, or ingested entries.
    pub(crate) frozen: BTreeSet<u32>,
    /// All writers wait, for as long as a rollback takes.
    pub(crate) is_frozen: bool,
}

/// One version of a table.
pub(crate) struct TableState {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) options: TableOptions,
    pub(crate) order: Order,
    pub(crate) rule: Arc<TableRule>,
    pub(crate) version: Arc<dyn TableVersion>,
    /// How often it has got another layout since it was opened: work that was planned before is of no use after.
    pub(crate) generation: u64,
    /// The time that lookups have wasted and no merge has paid off yet: see `read_compaction`.
    pub(crate) wasted_nanoseconds: Arc<AtomicU64>,
    /// How many buffers were flushed into it.
    pub(crate) flushes: Arc<AtomicU64>,
    pub(crate) space: Arc<TableSpace>,
}

impl TableState {
    pub(crate) fn with_version(&self, version: Arc<dyn TableVersion>) -> Arc<Self> {
        self.derive(self.options, self.order, version, self.generation)
    }

    /// The same table under other options.
    pub(crate) fn with_options(&self, options: TableOptions, version: Arc<dyn TableVersion>) -> Arc<Self> {
        self.with_order(options, self.order, version)
    }

    /// The same table under other options, in another order.
    pub(crate) fn with_order(
        &self,
        options: TableOptions,
        order: Order,
        version: Arc<dyn TableVersion>,
    ) -> Arc<Self> {
        self.derive(options, order, version, self.generation + 1)
    }

    /// The same table under another version, which does not follow from the last one.
    pub(crate) fn with_generation(&self, version: Arc<dyn TableVersion>, generation: u64) -> Arc<Self> {
        self.derive(self.options, self.order, version, generation)
    }

    /// The newest version of each file that it has.
    pub(crate) fn versions(&self) -> BTreeMap<u64, DataFile> {
        let mut files = self.version.files();
        files.sort_by_key(|file| file.version());
        files.into_iter().map(|file| (file.id(), file)).collect()
    }

    /// How long a table's files are, as far as it knows them.
    pub(crate) fn file_lengths(&self) -> BTreeMap<u64, u64> {
        let files = self.version.files().into_iter().filter(|file| !file.is_resident());
        let mut versions: Vec<_> = files.map(|file| file.version()).collect();
        versions.sort_unstable();
        versions.into_iter().collect()
    }

    fn derive(
        &self,
        options: TableOptions,
        order: Order,
        version: Arc<dyn TableVersion>,
        generation: u64,
    ) -> Arc<Self> {
        debug_assert!(generation >= self.generation, "generations never fall");
        debug_assert_eq!(order.is_lexical(), options.layout.is_ordered(), "the order is the layout's");
        let Self { id, .. } = *self;
        let (rule, wasted_nanoseconds) = (Arc::clone(&self.rule), Arc::clone(&self.wasted_nanoseconds));
        let (name, space, flushes) = (self.name.clone(), Arc::clone(&self.space), Arc::clone(&self.flushes));
        Arc::new(Self {
            id,
            name,
            options,
            order,
            rule,
            version,
            generation,
            wasted_nanoseconds,
            flushes,
            space,
        })
    }

    /// Whether entries expire and there is something to do: time passes without anybody writing.
    pub(crate) fn wants_expiry(&self) -> bool {
        self.options.time_to_live.is_some() && self.version.next_work(&BTreeSet::new()).is_some()
    }

    /// Whether entries expire into which operands are merged. A merge that has dropped such an entry at the bottom has left
    /// operands above of which nobody may see anything any more.
    pub(crate) fn expires_merged(&self) -> bool {
        self.options.time_to_live.is_some() && *self.rule.name() != RuleName::None
    }

    /// What the manifest keeps of it.
    pub(crate) fn entry(&self) -> TableEntry {
        let files = self.version.files();
        let files = files.iter().filter(|file| !file.is_resident());
        let mut metas: BTreeMap<u64, FileMeta> = BTreeMap::new();
        for meta in files.map(DataFile::meta) {
            // The newest version of a tree has all that older ones have for others.
            match metas.get(&meta.id) {
                Some(newest) if newest.bytes >= meta.bytes => {}
                _ => drop(metas.insert(meta.id, meta)),
            }
        }
        TableEntry {
            id: self.id,
            name: self.name.clone(),
            options: self.options.encode(self.rule.name()),
            version: self.version.encode(),
            files: metas.into_values().collect(),
        }
    }

    /// What merges its records, or the error that tells how to bring it.
    pub(crate) fn rule(&self) -> Result<&Rule> {
        self.rule.of(&self.name)
    }

    /// How buffers find its records.
    pub(crate) fn rows(&self) -> TableRows<'_> {
        TableRows { table: self.id, order: self.order, rule: self.rule.merging() }
    }

    /// Notes that a buffer was flushed into it.
    pub(super) fn note_flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether its space is bounded.
    pub(crate) fn is_bounded(&self) -> bool {
        self.options.max_space_amplification.is_some()
    }

    /// Whether it is the engine's own: metadata of commits. No table that users name has an empty name.
    pub(crate) fn is_hidden(&self) -> bool {
        self.name.is_empty()
    }
}

impl State {
    /// Holds what it is made of against itself.
    /// Whether write buffers stand newest first.
    pub(super) fn has_buffers_in_order(&self) -> bool {
        let newest = self.sealed.first().is_none_or(|newest| newest.segment() < self.active.segment());
        newest && self.sealed.is_sorted_by(|newer, older| newer.segment() > older.segment())
    }

    #[cfg(invariants)]
    pub(super) fn check(&self) {
        let buffers = std::iter::once(&self.active).chain(&self.sealed);
        let segments: Vec<u64> = buffers.map(|buffer| buffer.segment()).collect();
        assert!(segments.is_sorted_by(|newer, older| newer > older), "newest first: {segments:?}");
        assert!(self.tables.iter().all(|(id, table)| *id == table.id), "tables stand at their ids");
        assert!(self.tables.values().is_sorted_by_key(|table| table.id), "tables stand in order");
    }

    /// Whether entries of any table expire.
    pub(crate) fn expires(&self) -> bool {
        self.tables.values().any(|table| table.options.time_to_live.is_some())
    }

    pub(crate) fn order_of(&self, table: u32) -> Option<Order> {
        self.tables.get(&table).map(|table| table.order)
    }

    pub(crate) fn table_named(&self, name: &str) -> Option<&Arc<TableState>> {
        self.tables.named(name)
    }

    /// The tables that users know of and their layouts, by name.
    pub(crate) fn layouts(&self) -> Vec<(String, Layout)> {
        let tables = self.user_tables().map(|table| (table.name.clone(), table.options.layout));
        let mut tables: Vec<_> = tables.collect();
        tables.sort_by(|left, right| left.0.cmp(&right.0));
        tables
    }

    /// The first segment of the log that is needed for what tables have in memory.
    pub(crate) fn first_needed(&self) -> Option<u64> {
        self.tables.values().filter_map(|table| Some(table.version.resident()?.first_segment)).min()
    }

    /// Every file, as often as parts of tables refer to it.
    pub(crate) fn files(&self) -> impl Iterator<Item = DataFile> {
        self.tables.values().flat_map(|table| table.version.files())
    }

    /// The tables that users know of.
    pub(crate) fn user_tables(&self) -> impl Iterator<Item = &Arc<TableState>> {
        self.tables.values().filter(|table| !table.is_hidden())
    }
}
