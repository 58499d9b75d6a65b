//! Replaying the manifest: its edits, applied one after the other by the same functions as in live work.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use forebay_base::codec::Codec;
use forebay_base::{Order, Result};
use forebay_env::Env;
use forebay_layouts::{DataFile, Store, TableOptions, Trees};
use forebay_store::list::{FileMeta, ListOptions, ListStore, ResidentLimit};
use forebay_store::manifest::{Change, Edit, LogMark, TableEntry};
use forebay_store::{Metrics, PageCache};

use crate::Options;
use crate::engine::TableState;
use crate::options::RESIDENT_BUFFERS_MAX;
use crate::space::TableSpace;

/// What the manifest's edits have made so far.
pub(crate) struct Replay {
    pub(crate) lists: ListStore,
    pub(crate) trees: Trees,
    seed: u64,
    merge_bytes: usize,
    pub(crate) tables: BTreeMap<u32, Arc<TableState>>,
    files: BTreeMap<u64, DataFile>,
    pub(crate) log: LogMark,
    pub(crate) next_table: u32,
    pub(crate) next_id: u64,
}

impl Replay {
    pub(crate) fn new(env: &Env, dir: &Path, options: &Options, seed: u64, metrics: &Arc<Metrics>) -> Self {
        let lists = ListStore {
            fs: Arc::clone(&env.fs),
            dir: dir.to_path_buf(),
            next_id: Arc::default(),
            cache: Arc::new(PageCache::new(options.reading_bytes())),
            metrics: Arc::clone(metrics),
            trash: Arc::default(),
            // Each table's own take their place.
            disk: Arc::default(),
            options: ListOptions { order: Order::Lexical, filter_bits_per_key: 0, codec: Codec::None },
            expiry: Some(Arc::clone(&env.clock)),
            filter_bits_max: Arc::new(u32::MAX.into()),
            resident: Arc::new(ResidentLimit { bytes: 0.into(), buffers: RESIDENT_BUFFERS_MAX }),
            in_memory: false,
        };
        Self {
            lists,
            trees: Trees::default(),
            seed,
            merge_bytes: options.merge_bytes(),
            tables: BTreeMap::new(),
            files: BTreeMap::new(),
            log: LogMark::default(),
            next_table: 1,
            next_id: 1,
        }
    }

    pub(crate) fn apply(&mut self, edit: Edit) -> Result<()> {
        match edit {
            Edit::Snapshot(snapshot) => {
                self.log = snapshot.log;
                self.next_table = snapshot.next_table;
                self.next_id = snapshot.next_id;
                snapshot.tables.into_iter().try_for_each(|entry| self.add_table(&entry))
            }
            Edit::CreateTable(entry) | Edit::AlterTable(entry) => self.add_table(&entry),
            Edit::DropTable(id) => {
                self.tables.remove(&id);
                Ok(())
            }
            Edit::Change(change) => self.change(change),
        }
    }

    fn add_table(&mut self, entry: &TableEntry) -> Result<()> {
        let table = table_state(entry, &self.lists, &self.trees, self.seed, self.merge_bytes)?;
        self.files.extend(table.catalog.files().into_iter().map(|file| (file.id(), file)));
        self.next_table = self.next_table.max(entry.id + 1);
        self.tables.insert(entry.id, table);
        Ok(())
    }

    fn change(&mut self, change: Change) -> Result<()> {
        for (id, meta) in change.files {
            self.next_id = self.next_id.max(meta.id + 1);
            if let Some(table) = self.tables.get(&id) {
                let store = store_for(&self.lists, &self.trees, &table.options, self.seed, &table.space);
                self.files.insert(meta.id, store.named(meta));
            }
        }
        for (id, edit) in change.edits {
            if let Some(table) = self.tables.get_mut(&id) {
                let applied = table.catalog.apply(&edit, &|file| self.files.get(&file).cloned())?;
                *table = table.with_catalog(applied.catalog);
            }
        }
        if let Some(log) = change.log {
            self.log = log;
            // A crash may have taken the segment of this id. A lower one would count as absorbed.
            self.next_id = self.next_id.max(log.absorbed.0);
        }
        Ok(())
    }
}

/// A table as the manifest has it.
pub(crate) fn table_state(
    entry: &TableEntry,
    lists: &ListStore,
    trees: &Trees,
    seed: u64,
    merge_bytes: usize,
) -> Result<Arc<TableState>> {
    let metas: BTreeMap<u64, FileMeta> = entry.files.iter().map(|file| (file.id, *file)).collect();
    let file = |id: u64| metas.get(&id).copied();
    let space: Arc<TableSpace> = Arc::default();
    let store = |options: &TableOptions| store_for(lists, trees, options, seed, &space);
    let (options, rule, catalog) =
        forebay_layouts::restore(&entry.catalog, &entry.options, &file, store, merge_bytes)?;
    let order = options.layout.order(seed);
    Ok(Arc::new(TableState {
        id: entry.id,
        name: entry.name.clone(),
        options,
        order,
        rule,
        catalog,
        era: 0,
        vain_nanoseconds: Arc::default(),
        space: Arc::clone(&space),
    }))
}

pub(crate) fn store_for(
    lists: &ListStore,
    trees: &Trees,
    options: &TableOptions,
    seed: u64,
    space: &TableSpace,
) -> Store {
    let order = options.layout.order(seed);
    // The tables' own decides whether there is a use for it.
    let expiry = lists.expiry.clone().filter(|_| options.time_to_live.is_some());
    let options =
        ListOptions { order, filter_bits_per_key: options.filter_bits_per_key, codec: options.codec };
    let lists = ListStore { options, expiry, disk: Arc::clone(&space.disk), ..lists.clone() };
    Store::new(lists, trees)
}
