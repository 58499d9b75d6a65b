//! Replaying the manifest: its edits, applied one after the other by the same functions as in live work.

mod read_on;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use forebay_aggregate::BuiltIn;
use forebay_base::codec::Codec;
use forebay_base::{Order, Result};
use forebay_env::Env;
use forebay_env::fs::Opener;
use forebay_layouts::{DataFile, Store, TableOptions, Trees};
use forebay_store::list::{FileMeta, FilterLevel, ListOptions, ListStore, ResidentLimit, Trash};
use forebay_store::manifest::{self, Change, Edit, Feed, LogMark, TableEntry};
use forebay_store::{Leases, Metrics, PageCache, ValueFiles};

use crate::options::Options;
use crate::versions::{Savepoint, TableSpace, TableState, Tables};

/// What the manifest's edits have made so far.
pub(crate) struct Replay {
    pub(crate) lists: ListStore,
    pub(crate) trees: Trees,
    seed: u64,
    merge_bytes: usize,
    pub(crate) tables: Tables,
    /// Some version of each table there was: what its versions share.
    kin: BTreeMap<u32, Arc<TableState>>,
    files: BTreeMap<u64, DataFile>,
    kept: BTreeMap<String, manifest::Savepoint>,
    /// Savepoints by name, once all is [replayed](Self::finish).
    pub(crate) savepoints: BTreeMap<String, Arc<Savepoint>>,
    pub(crate) log: LogMark,
    /// The number of the last rollback.
    pub(crate) rolled_back: u64,
    /// It is no earlier than this, in milliseconds since 1970.
    pub(crate) clock_milliseconds: u64,
    pub(crate) feed: Feed,
    pub(crate) next_table: u32,
    pub(crate) next_id: u64,
    /// How many parts more or fewer refer to files, where somebody reads on.
    counted: Option<Vec<(DataFile, i32)>>,
}

impl Replay {
    pub(crate) fn new(env: &Env, dir: &Path, options: &Options, seed: u64, metrics: &Arc<Metrics>) -> Self {
        let opener = Opener::new(&*env.fs, dir);
        let trash = Arc::new(match options.read_only {
            true => Trash::of_reader(opener),
            false => Trash::of(opener, Leases::new(&env.fs, dir)),
        });
        let lists = ListStore {
            values: ValueFiles::new(&env.fs, dir, &trash, metrics),
            fs: Arc::clone(&env.fs),
            dir: dir.to_path_buf(),
            next_id: Arc::default(),
            cache: Arc::new(PageCache::new(options.division().first_cache_bytes())),
            metrics: Arc::clone(metrics),
            trash,
            // Each table's own take their place.
            disk: Arc::default(),
            options: ListOptions {
                order: Order::Lexical,
                filter_bits_per_key: 0,
                prefix_filter: None,
                codec: Codec::None,
                apart_bytes_min: None,
            },
            expiry: Some(Arc::clone(&env.clock)),
            filter_level: Arc::new(FilterLevel::new(None)),
            resident: Arc::new(ResidentLimit::new(options.division().resident_room())),
            salvage: None,
            in_memory: false,
        };
        Self {
            lists,
            trees: Trees::default(),
            seed,
            merge_bytes: options.division().job_bytes(),
            tables: Tables::default(),
            kin: BTreeMap::new(),
            files: BTreeMap::new(),
            kept: BTreeMap::new(),
            savepoints: BTreeMap::new(),
            log: LogMark::default(),
            rolled_back: 0,
            clock_milliseconds: 0,
            feed: Feed::default(),
            next_table: 1,
            next_id: 1,
            counted: None,
        }
    }

    pub(crate) fn apply(&mut self, edit: Edit) -> Result<()> {
        match edit {
            Edit::Snapshot(snapshot) => {
                self.log = snapshot.log;
                self.rolled_back = snapshot.rolled_back;
                self.clock_milliseconds = snapshot.clock_milliseconds;
                self.feed = snapshot.feed;
                self.next_table = snapshot.next_table;
                self.next_id = snapshot.next_id;
                snapshot.savepoints.into_iter().for_each(|kept| self.keep(kept));
                snapshot.tables.iter().try_for_each(|entry| self.add_table(entry))
            }
            Edit::Savepoint(kept) => {
                self.keep(kept);
                Ok(())
            }
            Edit::DropSavepoint(name) => {
                self.kept.remove(&name);
                Ok(())
            }
            Edit::Rollback(rollback) => {
                self.move_mark(rollback.log);
                self.rolled_back = rollback.log.flushed.1;
                self.tables = Tables::default();
                rollback.tables.iter().try_for_each(|entry| self.add_table(entry))
            }
            Edit::CreateTable(entry) | Edit::AlterTable(entry) => self.add_table(&entry),
            Edit::DropTable(id) => {
                self.tables.remove(id);
                Ok(())
            }
            Edit::Change(change) => self.change(change),
            Edit::Clock(milliseconds) => {
                self.clock_milliseconds = self.clock_milliseconds.max(milliseconds);
                Ok(())
            }
            Edit::Feed(feed, next_table) => {
                self.feed = feed;
                self.next_table = self.next_table.max(next_table);
                Ok(())
            }
        }
    }

    /// No id is given twice, whatever has become of the file by now.
    fn use_up(&mut self, meta: &FileMeta) {
        let shares = meta.values.iter().map(|share| share.file);
        let highest = shares.fold(meta.id, u64::max);
        self.next_id = self.next_id.max(highest + 1);
    }

    fn add_table(&mut self, entry: &TableEntry) -> Result<()> {
        entry.files.iter().for_each(|meta| self.use_up(meta));
        let table = self.table(entry)?;
        self.files.extend(table.version.files().into_iter().map(|file| (file.id(), file)));
        self.next_table = self.next_table.max(entry.id + 1);
        self.kin.insert(entry.id, Arc::clone(&table));
        self.tables.insert(table);
        Ok(())
    }

    /// A table, which shares with all others of its files those that are the same.
    fn table(&self, entry: &TableEntry) -> Result<Arc<TableState>> {
        let known = |meta: &FileMeta| self.files.get(&meta.id).filter(|file| file.meta() == *meta).cloned();
        let kin = self.kin.get(&entry.id).map(|kin| &**kin);
        table_state(entry, &self.lists, &self.trees, self.seed, self.merge_bytes, kin, &known)
    }

    fn keep(&mut self, kept: manifest::Savepoint) {
        kept.tables.iter().flat_map(|entry| &entry.files).for_each(|meta| self.use_up(meta));
        self.kept.insert(kept.name.clone(), kept);
    }

    /// Makes savepoints of what is left of them at the end. So all their versions of trees are named before anything is
    /// appended to one.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for (name, kept) in std::mem::take(&mut self.kept) {
            let mut tables = Tables::default();
            for entry in &kept.tables {
                let table = self.table(entry)?;
                for file in table.version.files() {
                    self.files.entry(file.id()).or_insert(file);
                }
                self.kin.entry(entry.id).or_insert_with(|| Arc::clone(&table));
                tables.insert(table);
            }
            let savepoint = Savepoint::new(kept.sequence, kept.taken_at_milliseconds, tables);
            self.savepoints.insert(name, Arc::new(savepoint));
        }
        debug_assert!(
            self.tables.iter().all(|(id, _)| *id < self.next_table),
            "a new table gets a new number"
        );
        Ok(())
    }

    fn move_mark(&mut self, log: LogMark) {
        self.log = log;
        // A crash may have taken the segment of this id. A lower one would count as flushed.
        self.next_id = self.next_id.max(log.flushed.0);
    }

    fn change(&mut self, change: Change) -> Result<()> {
        let named: BTreeSet<u64> = change.files.iter().map(|(_, meta)| meta.id).collect();
        for (id, meta) in change.files {
            self.use_up(&meta);
            if let Some(table) = self.tables.get(&id) {
                // Where it is read again it is the same object: who counts references to it knows that one.
                let known = self.files.get(&meta.id).filter(|file| file.meta() == meta).cloned();
                self.files.insert(meta.id, known.unwrap_or_else(|| table.version.named(meta)));
            }
        }
        for (id, edit) in change.edits {
            if let Some(table) = self.tables.get(&id) {
                // Of a tree an earlier edit may have named a later version, which no part has any more: what only that
                // needed may be gone.
                let own = LazyCell::new(|| table.versions());
                let find = |id: u64| match self.files.get(&id)? {
                    DataFile::Tree(_) if !named.contains(&id) => own.get(&id).cloned(),
                    file => Some(file.clone()),
                };
                let applied = table.version.apply(&edit, &find)?;
                self.counted
                    .iter_mut()
                    .for_each(|counted| counted.extend(applied.references.iter().cloned()));
                self.tables.replace(id, |table| table.with_version(applied.version));
            }
        }
        if let Some(log) = change.log {
            self.move_mark(log);
        }
        Ok(())
    }
}

/// A table as the manifest has it. It shares what versions of a table share with `kin`, another one, and files with
/// whoever knows them.
pub(crate) fn table_state(
    entry: &TableEntry,
    lists: &ListStore,
    trees: &Trees,
    seed: u64,
    merge_bytes: usize,
    kin: Option<&TableState>,
    known: &dyn Fn(&FileMeta) -> Option<DataFile>,
) -> Result<Arc<TableState>> {
    let metas: BTreeMap<u64, FileMeta> = entry.files.iter().map(|file| (file.id, file.clone())).collect();
    let find = |id: u64, store: &Store| {
        let meta = metas.get(&id)?;
        Some(known(meta).unwrap_or_else(|| store.named(meta.clone())))
    };
    let space: Arc<TableSpace> = kin.map_or_else(Arc::default, |kin| Arc::clone(&kin.space));
    let store = |options: &TableOptions| store_for(lists, trees, options, seed, &space);
    let rule = kin.map(|kin| &kin.rule);
    let (options, rule, version) =
        forebay_layouts::restore(&entry.version, &entry.options, &find, rule, store, merge_bytes)?;
    if let (Some(state_type), None) = (rule.name().state_type(), rule.known())
        && let Some(function) = BuiltIn::of(state_type)
    {
        rule.stand_in(function.rule(), &entry.name);
    }
    let order = options.layout.order(seed);
    Ok(Arc::new(TableState {
        id: entry.id,
        name: entry.name.clone(),
        options,
        order,
        rule,
        version,
        generation: 0,
        wasted_nanoseconds: Arc::default(),
        flushes: Arc::default(),
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
    let TableOptions { layout, filter_bits_per_key, prefix_filter, codec, apart_bytes_min, .. } = *options;
    let options = ListOptions { order, filter_bits_per_key, prefix_filter, codec, apart_bytes_min };
    let lists = ListStore { options, expiry, disk: Arc::clone(&space.disk), ..lists.clone() };
    Store::new(lists, trees, layout.inline_bytes())
}
