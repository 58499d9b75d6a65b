//! The engine: what a database's handles and its background work share.
//!
//! Who protects what: `log` has its own lock; `version_set` (the manifest and who works on what) is behind a
//! mutex that serialises edits; `state` is replaced whole, under a write lock held for an assignment.
//! Locks are taken in the order rotating, version set, log, state.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_base::{Error, Result};
use forebay_env::fs::GatedFs;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use forebay_env::sync::{Mutex, RwLock};
use forebay_env::{Env, FileLock, guest};
use forebay_layouts::{JobWorker, Trees};
use forebay_store::Metrics;
use forebay_store::buffer::ArenaPool;
use forebay_store::list::ListStore;
use forebay_store::log::recover::LogFiles;
use forebay_store::log::{Log, PreparedSegment};
use forebay_store::manifest::Superblock;
use forebay_store::salvage::Gaps;

use crate::Options;
use crate::background::{Aside, FullCompaction};
use crate::open::Made;
use crate::relayout::Following;
use crate::versions::{Pins, State, VersionSet};
use crate::write::Pace;

/// The machines that others wait for, by which `Engine::troubles` knows them.
pub(crate) const FLUSH: &str = "forebay-flush";
pub(crate) const COMPACT: &str = "forebay-compact";

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
    pub(crate) fn poison(&self, cause: &impl fmt::Display) {
        if let Some(log) = &self.log {
            log.poison(&cause.to_string());
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
