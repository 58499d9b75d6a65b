//! The version set: the manifest, which files are referred to, which nodes are busy. Every edit of any table
//! goes through [`VersionSetGuard::record`].

mod manifest;
mod references;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Result, planted};
use forebay_env::sync::MutexGuard;
use forebay_env::sync::atomic::Ordering;
use forebay_env::yield_point;
use forebay_layouts::{Applied, DataFile, NodeKey, Outcome, Rebased, TableVersion};
use forebay_store::WriteBuffer;
use forebay_store::manifest::{Change, Edit, Feed, LogMark, Manifest};

use crate::versions::{RetainedSegment, Savepoint, State, TableState, Tables, Versions};

pub(crate) use references::Retired;

pub(crate) struct VersionSet {
    /// `None` when opened for reading only, and once the database is closed.
    pub(crate) manifest: Option<Manifest>,
    /// Every live file, in its newest version, and how many parts refer to it.
    pub(crate) references: BTreeMap<u64, (DataFile, i64)>,
    /// Those that were live.
    pub(crate) retired: Retired,
    /// Nodes that a job works on.
    pub(crate) busy: BTreeMap<u32, BTreeSet<NodeKey>>,
    /// How far the log is needed.
    pub(crate) log: LogMark,
    /// Flushed log segments that are there all the same.
    pub(crate) retained: BTreeMap<u64, RetainedSegment>,
    /// More of it is flushed, or vouched for, than the manifest says.
    pub(crate) log_is_ahead: bool,
    pub(crate) next_table: u32,
    /// By name.
    pub(crate) savepoints: BTreeMap<String, Arc<Savepoint>>,
    /// How many rollbacks there were since the database was opened: each gives tables a generation of its own.
    pub(crate) rollbacks: u64,
    /// The number of the last one ever; 0 where there was none.
    pub(crate) rolled_back: u64,
    /// How late the manifest says that it is, in milliseconds since 1970; 0 where it says nothing.
    pub(crate) clock_milliseconds: u64,
    /// What is said of the feed of changes.
    pub(crate) feed: Feed,
    /// What is to be said of it before anything else comes in, where an opening found no room for that.
    pub(crate) owed_feed: Option<Feed>,
}

/// The version set, locked. What needs the lock is a method of this.
pub(crate) struct VersionSetGuard<'a> {
    pub(super) versions: &'a Versions,
    pub(super) set: MutexGuard<'a, VersionSet>,
}

impl Deref for VersionSetGuard<'_> {
    type Target = VersionSet;

    fn deref(&self) -> &VersionSet {
        &self.set
    }
}

impl DerefMut for VersionSetGuard<'_> {
    fn deref_mut(&mut self) -> &mut VersionSet {
        &mut self.set
    }
}

/// What a commit changes.
pub(crate) enum Commit {
    /// A buffer went into these tables' lists.
    Flushed { buffer: Arc<WriteBuffer>, last_sequence: u64, outcomes: Vec<Finished> },
    /// A job finished.
    Finished(Finished),
    /// What came in beside the log is there.
    Ingested(Finished),
}

/// What came of a job of a table.
pub(crate) struct Finished {
    pub(crate) table: u32,
    /// Of the table when the job was planned.
    pub(crate) generation: u64,
    pub(crate) outcome: Outcome,
}

/// What is recorded at once.
#[derive(Default)]
pub(crate) struct Pending {
    change: Change,
    /// Edits that no manifest has.
    passing: Vec<(u32, Vec<u8>)>,
    /// Files that edits may name for the first time.
    files: BTreeMap<u64, DataFile>,
    /// A buffer that went into lists, and its last record.
    flushed: Option<(Arc<WriteBuffer>, u64)>,
    /// It brings what the log has not.
    is_beside_log: bool,
    /// Which lists it became, by table.
    added: Vec<(u32, Vec<DataFile>)>,
}

impl Pending {
    pub(crate) fn edits(edits: Vec<(u32, Vec<u8>)>) -> Self {
        Self { change: Change { edits, ..Change::default() }, ..Self::default() }
    }

    /// Adds what jobs have come to, as edits of the tables as they are now. A table may have been dropped meanwhile:
    /// then its outcome goes nowhere.
    fn rebase(&mut self, outcomes: Vec<Finished>, state: &State) -> Result<()> {
        for Finished { table: id, outcome, .. } in outcomes {
            let made = outcome.files();
            self.files.extend(made.iter().map(|file| (file.id(), file.clone())));
            let Some(table) = state.tables.get(&id) else { continue };
            let Rebased { edit, is_lasting } = table.version.rebase(outcome)?;
            if is_lasting {
                self.change.edits.push((id, edit));
                self.change.files.extend(made.iter().map(|file| (id, file.meta())));
            } else {
                self.passing.push((id, edit));
            }
            if self.flushed.is_some() {
                self.added.push((id, made));
            }
        }
        Ok(())
    }
}

/// What edits make of the tables that they change, and which files gain and lose references by it.
#[derive(Default)]
struct Next {
    versions: BTreeMap<u32, Arc<dyn TableVersion>>,
    references: Vec<(DataFile, i32)>,
}

impl Finished {
    /// Whether it still fits its table, if that is there.
    fn fits(&self, state: &State) -> bool {
        state
            .tables
            .get(&self.table)
            .is_none_or(|table| table.generation == self.generation && table.version.takes(&self.outcome))
    }

    /// Gives up what was written.
    pub(crate) fn discard(&self) {
        self.outcome.discard();
    }
}

impl Versions {
    /// Commits a change to the table versions. On error nothing has changed, and the outcome's files are discarded; so
    /// are they, and the answer is `false`, where an outcome no longer fits its table.
    pub(crate) fn commit(&self, commit: Commit) -> Result<bool> {
        let mut version_set = self.lock();
        let state = self.state();
        let is_beside_log = matches!(commit, Commit::Ingested(_));
        let (outcomes, flushed) = match commit {
            Commit::Flushed { buffer, last_sequence, outcomes } => (outcomes, Some((buffer, last_sequence))),
            Commit::Finished(finished) | Commit::Ingested(finished) => (vec![finished], None),
        };
        if !outcomes.iter().all(|finished| finished.fits(&state)) {
            outcomes.iter().for_each(Finished::discard);
            return Ok(false);
        }
        let is_flushed = flushed.is_some();
        let mut pending = Pending { flushed, is_beside_log, ..Pending::default() };
        let rebased = pending.rebase(outcomes, &state);
        let done = rebased.and_then(|()| version_set.record(&state, &mut pending)).map(|()| true);
        if done.is_ok() && is_flushed {
            version_set.keep_wanted();
        }
        if self.context.fatal().is_some() {
            // The edit may be durable all the same: then its files will be asked for.
            return done;
        }
        // Of a tree an earlier version may be there.
        let kept = |file: &&DataFile| {
            version_set.references.get(&file.id()).is_some_and(|(kept, _)| kept.bytes() >= file.bytes())
        };
        pending.files.values().filter(|file| !kept(file)).for_each(DataFile::discard);
        done
    }
}

impl VersionSetGuard<'_> {
    /// Makes a change durable and seen, in this order:
    ///
    /// 1. Its edits are applied to the versions of their tables, which nobody sees yet.
    /// 2. It is known from this from where on the log is needed.
    /// 3. Names of files, what the log keeps, and one edit of the manifest are made durable.
    /// 4. The new versions are published, without the buffer that was flushed.
    /// 5. Files that nothing refers to any more are retired.
    /// 6. Segments of the log that are not needed go, or are used again.
    pub(crate) fn record(&mut self, state: &Arc<State>, pending: &mut Pending) -> Result<()> {
        let Next { versions, references } = self.apply(state, pending)?;
        let log = self.next_mark(state, &versions, pending);
        debug_assert!(
            log.flushed >= self.log.flushed,
            "what is flushed stays so: {log:?} after {:?}",
            self.log
        );
        debug_assert!(
            log.low.0 >= self.log.low.0,
            "what files have is not needed again: {log:?} after {:?}",
            self.log
        );
        self.make_durable(log, pending)?;
        self.publish(versions, pending);
        self.refer(references);
        #[cfg(invariants)]
        self.check_references(&self.versions.state());
        self.retain_segments(log, pending.flushed.as_ref().map(|(buffer, _)| &**buffer));
        let resident = &self.versions.lists.resident;
        resident.due_below.store(self.due_below(resident), Ordering::Relaxed);
        debug_assert!(pending.added.is_empty(), "whoever follows a table was told");
        let flushed = pending.flushed.as_ref().map(|(buffer, last)| (buffer.segment() + 1, *last));
        debug_assert!(
            flushed.is_none_or(|flushed| flushed == self.log.flushed),
            "what is flushed counts as that"
        );
        self.versions.weigh();
        self.weigh_savepoints();
        Ok(())
    }

    fn apply(&self, state: &State, pending: &Pending) -> Result<Next> {
        let mut next = Next::default();
        for (id, edit) in pending.change.edits.iter().chain(&pending.passing) {
            let Some(table) = state.tables.get(id) else { continue };
            debug_assert_eq!(table.id, *id, "a table stands at its number");
            // Of a tree a savepoint may have a later version than its table.
            let own = LazyCell::new(|| table.versions());
            let find = |id: u64| {
                let known = || match &self.references.get(&id)?.0 {
                    DataFile::List(list) => Some(DataFile::List(Arc::clone(list))),
                    DataFile::Tree(_) => own.get(&id).cloned(),
                };
                pending.files.get(&id).cloned().or_else(known)
            };
            let before = next.versions.get(id).unwrap_or(&table.version);
            let Applied { version, references } = before.apply(edit, &find)?;
            next.versions.insert(*id, version);
            next.references.extend(references);
        }
        Ok(next)
    }

    fn next_mark(
        &self,
        state: &State,
        versions: &BTreeMap<u32, Arc<dyn TableVersion>>,
        pending: &Pending,
    ) -> LogMark {
        let tables = state.tables.iter().map(|(id, table)| versions.get(id).unwrap_or(&table.version));
        let first_needed = tables.filter_map(|version| Some(version.resident()?.first_segment)).min();
        self.log_after(first_needed, pending.flushed.as_ref(), self.feed.keep_bytes)
    }

    /// What passes with the process, and leaves the log as it is, takes no edit of the manifest.
    fn make_durable(&mut self, log: LogMark, pending: &mut Pending) -> Result<()> {
        let change = &mut pending.change;
        debug_assert!(change.files.is_empty() || !change.edits.is_empty(), "an edit names what is new");
        if change.edits.is_empty() && (log.kept, log.low) == (self.log.kept, self.log.low) {
            self.log_is_ahead = true;
            return self.versions.write_retained(&log);
        }
        if !change.files.is_empty() {
            self.versions.context.sync_dir()?;
        }
        self.versions.sync_retained(&log)?;
        let versions = self.versions;
        let drops_parts = |state: &State| {
            change
                .edits
                .iter()
                .any(|(id, _)| state.tables.get(id).is_some_and(|table| table.expires_merged()))
        };
        if versions.look(drops_parts) {
            self.keep_time(Duration::ZERO)?;
        }
        if pending.is_beside_log {
            self.part_lineage()?;
        }
        change.log = (log != self.log || self.log_is_ahead).then_some(log);
        self.append(&Edit::Change(std::mem::take(change)))?;
        self.log_is_ahead = false;
        Ok(())
    }

    fn publish(&self, versions: BTreeMap<u32, Arc<dyn TableVersion>>, pending: &mut Pending) {
        let Pending { flushed, added, is_beside_log, .. } = pending;
        // Before anybody can see that the buffer is gone: whoever sees that looks for its lists here.
        if !planted::is("rewrite-follows-late") {
            added.drain(..).for_each(|(table, lists)| self.versions.note_new_lists(table, lists));
        }
        yield_point("edit is durable");
        let change = |state: &mut State| {
            for (id, version) in versions {
                state.tables.replace(id, |table| table.with_version(version));
            }
            if let Some((buffer, _)) = flushed {
                let is_it = |oldest: &Arc<WriteBuffer>| oldest.segment() == buffer.segment();
                debug_assert!(state.sealed.last().is_some_and(is_it), "the oldest buffer is flushed first");
                state.sealed.retain(|sealed| sealed.segment() != buffer.segment());
                self.versions.pins.lock().note_flushed(buffer);
            }
        };
        match *is_beside_log {
            true => self.versions.update_beside_log(change),
            false => self.versions.update_state(change),
        }
        yield_point("edit is published");
        added.drain(..).for_each(|(table, lists)| self.versions.note_new_lists(table, lists));
    }

    /// Notes that a table has another layout: call once that is durable and published.
    pub(crate) fn note_new_layout(&mut self, before: &TableState, now: &TableState) {
        debug_assert_eq!(
            (before.id, &before.name),
            (now.id, &now.name),
            "a table keeps its number and its name"
        );
        debug_assert!(before.generation < now.generation, "what was planned before no longer fits");
        self.forget_nodes(now.id);
        let (before, now) = (&before.version, &now.version);
        self.refer_instead(before.files(), now.files());
        // Writers owe what they owed before, and no more.
        let grown_bytes = now.debt_bytes().saturating_sub(before.debt_bytes());
        self.versions.inherited_bytes.fetch_add(grown_bytes, Ordering::Relaxed);
        self.versions.weigh();
        self.weigh_savepoints();
    }

    /// Notes that all tables are other ones.
    pub(crate) fn note_rollback(&mut self, before: &Tables, now: &Tables) {
        let is_anew = |table: &Arc<TableState>| {
            before.get(&table.id).is_none_or(|before| before.generation < table.generation)
        };
        debug_assert!(now.values().all(is_anew), "what was planned before no longer fits");
        self.busy.clear();
        self.versions.aside.lock().clear();
        now.values().for_each(|table| table.space.reclaim.forget());
        let files = |tables: &Tables| tables.values().flat_map(|table| table.version.files()).collect();
        self.refer_instead(files(before), files(now));
        // Nobody who writes has caused what is to be done anew.
        let debt_bytes: u64 = now.values().map(|table| table.version.debt_bytes()).sum();
        self.versions.inherited_bytes.store(debt_bytes, Ordering::Relaxed);
        self.versions.weigh();
        self.weigh_savepoints();
    }
}
