//! The engine: what a database's handles and its background work share.
//!
//! Who protects what: `log` has its own lock; `version_set` (the manifest and who works on what) is behind a
//! mutex that serialises edits; `state` is replaced whole, under a write lock held for an assignment.
//! Locks are taken in the order rotating, version set, log, state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::{Error, Order, Result};
use forebay_env::fs::GatedFs;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::sync::{Mutex, RwLock};
use forebay_env::{Env, FileLock, guest};
use forebay_layouts::{DataFile, JobWorker, Layout, Rule, TableOptions, TableRule, TableVersion, Trees};
use forebay_store::buffer::{ArenaPool, TableRows};
use forebay_store::list::{FileMeta, ListStore};
use forebay_store::log::recover::LogFiles;
use forebay_store::log::{Log, PreparedSegment};
use forebay_store::manifest::{Superblock, TableEntry};
use forebay_store::salvage::Gaps;
use forebay_store::{Metrics, WriteBuffer};

use crate::Options;
use crate::aside::Aside;
use crate::background::FLUSH;
use crate::destroy::Made;
use crate::full_compaction::FullCompaction;
use crate::pace::Pace;
use crate::pins::Pins;
use crate::reorder::Following;
use crate::space::TableSpace;
use crate::tables::Tables;
use crate::version_set::VersionSet;

/// One version of everything that can be read: replaced whole, pinned by snapshots.
#[derive(Clone)]
pub(crate) struct State {
    /// The buffer that is being filled.
    pub(crate) active: Arc<WriteBuffer>,
    /// Full buffers that are not in lists yet, newest first.
    pub(crate) sealed: Vec<Arc<WriteBuffer>>,
    /// Tables by id.
    pub(crate) tables: Tables,
    /// Tables whose writers wait, for as long as it takes to give them another order.
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

    fn derive(
        &self,
        options: TableOptions,
        order: Order,
        version: Arc<dyn TableVersion>,
        generation: u64,
    ) -> Arc<Self> {
        let Self { id, .. } = *self;
        let (rule, wasted_nanoseconds) = (Arc::clone(&self.rule), Arc::clone(&self.wasted_nanoseconds));
        let (name, space) = (self.name.clone(), Arc::clone(&self.space));
        Arc::new(Self { id, name, options, order, rule, version, generation, wasted_nanoseconds, space })
    }

    /// Whether entries expire and there is something to do: time passes without anybody writing.
    pub(crate) fn wants_expiry(&self) -> bool {
        self.options.time_to_live.is_some() && self.version.next_work(&BTreeSet::new()).is_some()
    }

    /// What the manifest keeps of it.
    pub(crate) fn entry(&self) -> TableEntry {
        let files = self.version.files();
        let files = files.iter().filter(|file| !file.is_resident());
        let mut metas: BTreeMap<u64, FileMeta> = BTreeMap::new();
        for meta in files.map(DataFile::meta) {
            // The newest version of a tree has all that older ones have for others.
            let newest = metas.entry(meta.id).or_insert(meta);
            *newest = if meta.bytes > newest.bytes { meta } else { *newest };
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
    /// Whether writers of a table wait.
    pub(crate) fn is_frozen(&self, table: u32) -> bool {
        self.is_frozen || self.frozen.contains(&table)
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

pub(crate) struct Engine {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) superblock: Superblock,
    /// `None` when opened for reading only.
    pub(crate) log: Option<Log>,
    pub(crate) version_set: Mutex<VersionSet>,
    pub(crate) state: RwLock<Arc<State>>,
    /// Held while the next version is made of it.
    pub(crate) changing: Mutex<()>,
    pub(crate) pool: Arc<ArenaPool>,
    /// What tables' lists have in common: cache, counters, ids, retired files.
    pub(crate) lists: ListStore,
    /// What their trees have in common.
    pub(crate) trees: Trees,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) pace: Pace,
    /// Bytes that nodes hold above their limits.
    pub(crate) debt_bytes: AtomicU64,
    /// Bytes of debt that no writer has caused: they were there before, or a change of layout made them count.
    pub(crate) inherited_bytes: AtomicU64,
    /// Bytes of records that tables keep in memory and files do not have.
    pub(crate) resident_bytes: AtomicU64,
    /// The segment that will be active next, if the housekeeper has got it ready.
    pub(crate) next_segment: Mutex<Option<PreparedSegment>>,
    /// A retired log segment that can be renamed rather than a new one allocated.
    pub(crate) spare_segment: Mutex<Option<u64>>,
    /// Why background work does not get on, by machine, until it does.
    pub(crate) troubles: Mutex<BTreeMap<&'static str, Error>>,
    /// One rotation at a time.
    pub(crate) rotating: Mutex<()>,
    /// Tables that a full compaction is under way for.
    pub(crate) compacting: Mutex<BTreeMap<u32, FullCompaction>>,
    /// Savepoints that are to be taken as soon as a buffer is flushed, and what came of them.
    pub(crate) wanted: Mutex<BTreeMap<String, Option<Result<u64>>>>,
    /// Tables that are being given another order.
    pub(crate) reordering: Mutex<BTreeMap<u32, Following>>,
    /// What background work has set aside, by table.
    pub(crate) aside: Mutex<BTreeMap<u32, Aside>>,
    /// Places of the log that were passed over when it was read, where that was wanted.
    pub(crate) gaps: Arc<Gaps>,
    /// Parts of the compactor's job that the subcompactor may do.
    pub(crate) worker: Mutex<Option<Box<dyn JobWorker>>>,
    /// The compactor has found nothing that it could do: waiting for it would be in vain.
    pub(crate) compactor_is_idle: AtomicBool,
    /// Nobody has written for a while.
    pub(crate) is_idle: AtomicBool,
    pub(crate) closing: AtomicBool,
    /// Tells this open database from every other one that this process opens.
    pub(crate) serial: u64,
    /// Snapshots that are held.
    pub(crate) pins: Mutex<Pins>,
    /// Held until the database is closed.
    pub(crate) lock: Mutex<Option<FileLock>>,
    pub(crate) made: Made,
    /// All files are opened and changed through it: once it is closed, whoever still holds the engine only reads.
    pub(crate) gate: Arc<GatedFs>,
}

impl Engine {
    /// The newest version.
    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// Replaces the version by one made from it.
    pub(crate) fn update_state(&self, change: impl FnOnce(&mut State)) {
        let changing = self.changing.lock();
        let mut next = State::clone(&self.state());
        change(&mut next);
        let before = std::mem::replace(&mut *self.state.write(), Arc::new(next));
        // Nobody waits while what only that version had goes: buffers, lists.
        drop(changing);
        drop(before);
    }

    /// The log, or the reason why there is none.
    pub(crate) fn log(&self) -> Result<&Log> {
        refuse_guests()?;
        self.log.as_ref().ok_or_else(|| Error::invalid("the database is open for reading only"))
    }

    /// Where the log is.
    pub(crate) fn log_files(&self) -> LogFiles<'_> {
        LogFiles { fs: &*self.env.fs, dir: &self.dir, secret: self.superblock.log_secret }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Why nothing can be written any more, if so: a failed sync, or a background panic.
    pub(crate) fn fatal(&self) -> Option<Error> {
        self.log.as_ref().and_then(Log::poisoned).map(Error::Poisoned)
    }

    /// Why background work does not get on, if so.
    pub(crate) fn trouble(&self) -> Option<Error> {
        let first = self.troubles.lock().values().next().cloned();
        first.or_else(|| self.lacks_rule()).or_else(|| self.refuses_flush())
    }

    /// Why one machine does not get on, if so.
    pub(crate) fn trouble_of(&self, machine: &str) -> Option<Error> {
        let known = self.troubles.lock().get(machine).cloned();
        let waits = || self.lacks_rule().or_else(|| self.refuses_flush());
        known.or_else(|| if machine == FLUSH { waits() } else { None })
    }

    /// The same, unless it is lasting: then it is another table's, or set aside, and work goes on.
    pub(crate) fn passing_trouble(&self, machine: &str) -> Option<Error> {
        self.trouble_of(machine).filter(|error| !error.is_lasting())
    }

    /// Waits for background work, or for the reason why it does not get on.
    pub(crate) fn wait_for(
        &self,
        trouble: impl Fn() -> Option<Error>,
        done: impl Fn() -> bool,
    ) -> Result<()> {
        let mut verdict = Ok(());
        // What counts is what was seen: by the time it is told it may be otherwise.
        self.env.jobs.wait(&mut || {
            let reason = || self.fatal().or_else(&trouble).or_else(|| self.is_closing().then(closed));
            let (is_done, reason) = if done() { (true, None) } else { (false, reason()) };
            let is_over = is_done || reason.is_some();
            verdict = reason.map_or(Ok(()), Err);
            is_over
        });
        verdict
    }

    /// Stops all further writes for this reason.
    pub(crate) fn poison(&self, error: &Error) {
        if let Some(log) = &self.log {
            log.poison(&error.to_string());
        }
    }

    /// Bytes of work that writers have caused and that is not done.
    pub(crate) fn debt(&self) -> u64 {
        let sealed: usize = self.state().sealed.iter().map(|buffer| buffer.len()).sum();
        sealed as u64 + self.debt_bytes.load(Ordering::Relaxed)
    }
}

/// The message for a call that comes too late.
pub(crate) const CLOSED: &str = "the database is closed";

pub(crate) fn closed() -> Error {
    Error::invalid(CLOSED)
}

/// Refuses what a merge rule, a function or a filter asks of a database: it is asked itself in the midst of work that
/// may hold what it would wait for.
pub(crate) fn refuse_guests() -> Result<()> {
    match guest::is_inside() {
        false => Ok(()),
        true => Err(Error::invalid(
            "a merge rule, an aggregation function or a compaction filter must ask nothing of a database while it is asked",
        )),
    }
}

/// The same where no error can be given. Who called for the guest's answer is told, as of a panic.
pub(crate) fn stop_guests() {
    if let Err(error) = refuse_guests() {
        guest::leave(error.to_string());
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.dir.display())
    }
}
