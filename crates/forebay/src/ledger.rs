//! The ledger: the manifest, which files are referred to, which nodes are busy. Every edit of any table
//! goes through [`Engine::commit`]: settle, make durable, apply, publish, retire.

mod references;

pub(crate) use references::Retired;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::{Error, Result, planted};
use forebay_env::sync::MutexGuard;
use forebay_env::yield_point;
use forebay_layouts::{Applied, Catalog, DataFile, NodeKey, Outcome, Planned, Settled};
use forebay_store::manifest::{AppendError, Change, Current, Edit, LogMark, Manifest, Snapshot};
use forebay_store::{WriteBuffer, names};

use crate::engine::{Engine, State, TableState, closed};
use crate::held::Held;
use crate::savepoint::Savepoint;

pub(crate) struct Ledger {
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
    /// Absorbed log segments that are there all the same.
    pub(crate) held: BTreeMap<u64, Held>,
    /// More of it is absorbed, or vouched for, than the manifest says.
    pub(crate) log_is_ahead: bool,
    pub(crate) next_table: u32,
    /// By name.
    pub(crate) savepoints: BTreeMap<String, Arc<Savepoint>>,
    /// How many rollbacks there were since the database was opened: each gives tables an era of its own.
    pub(crate) rollbacks: u64,
    /// The number of the last one ever; 0 where there was none.
    pub(crate) rolled_back: u64,
}

/// What a commit changes.
pub(crate) enum Commit {
    /// A buffer went into these tables' lists.
    Absorbed { buffer: Arc<WriteBuffer>, last_sequence: u64, outcomes: Vec<Finished> },
    /// A job finished.
    Finished(Finished),
}

/// What came of a job of a table.
pub(crate) struct Finished {
    pub(crate) table: u32,
    /// Of the table when the job was planned.
    pub(crate) era: u64,
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
    absorbed: Option<(Arc<WriteBuffer>, u64)>,
    /// Which lists it became, by table.
    added: Vec<(u32, Vec<DataFile>)>,
}

impl Pending {
    pub(crate) fn edits(edits: Vec<(u32, Vec<u8>)>) -> Self {
        Self { change: Change { edits, ..Change::default() }, ..Self::default() }
    }
}

/// What to plan for, once all nodes are within their limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Nothing more.
    Limits,
    /// A table of one list a leaf.
    Compaction,
    /// Room, where the table's space is bounded.
    Space,
    /// Lookups that ask fewer lists.
    Relief,
}

impl Engine {
    /// Commits a change to the catalogs. On error nothing has changed, and the outcome's files are discarded; so are
    /// they, and the answer is `false`, where an outcome no longer fits its table.
    pub(crate) fn commit(&self, commit: Commit) -> Result<bool> {
        let mut ledger = self.ledger.lock();
        let state = self.state();
        let (outcomes, absorbed) = match commit {
            Commit::Absorbed { buffer, last_sequence, outcomes } => (outcomes, Some((buffer, last_sequence))),
            Commit::Finished(finished) => (vec![finished], None),
        };
        let fits = |finished: &Finished| {
            let table = state.tables.get(&finished.table);
            table.is_none_or(|table| table.era == finished.era && table.catalog.takes(&finished.outcome))
        };
        if !outcomes.iter().all(fits) {
            outcomes.iter().for_each(Finished::discard);
            return Ok(false);
        }
        let is_absorbed = absorbed.is_some();
        let mut pending = Pending { absorbed, ..Pending::default() };
        let settle = || -> Result<()> {
            for Finished { table: id, outcome, .. } in outcomes {
                // A table may have been dropped meanwhile: then its outcome goes nowhere.
                let made = outcome.files();
                pending.files.extend(made.iter().map(|file| (file.id(), file.clone())));
                let Some(table) = state.tables.get(&id) else { continue };
                let Settled { edit, is_lasting } = table.catalog.settle(outcome)?;
                if is_lasting {
                    pending.change.edits.push((id, edit));
                    pending.change.files.extend(made.iter().map(|file| (id, file.meta())));
                } else {
                    pending.passing.push((id, edit));
                }
                if is_absorbed {
                    pending.added.push((id, made));
                }
            }
            Ok(())
        };
        let settled = settle();
        let done = settled.and_then(|()| self.record(&mut ledger, &state, &mut pending)).map(|()| true);
        if done.is_ok() && is_absorbed {
            self.keep_wanted(&mut ledger);
        }
        if self.log.as_ref().is_some_and(|log| log.poisoned().is_some()) {
            // The edit may be durable all the same: then its files will be asked for.
            return done;
        }
        let kept = &ledger.references;
        pending.files.values().filter(|file| !kept.contains_key(&file.id())).for_each(DataFile::discard);
        drop(ledger);
        self.tend_filters();
        done
    }

    /// Plans and, where the plan is an edit, commits it at once. `None` when there is nothing to do. Also returns what it
    /// was planned on.
    pub(crate) fn plan(&self, table: u32, goal: Goal) -> Result<Option<(Planned, Arc<TableState>)>> {
        let mut ledger = self.ledger.lock();
        let state = self.state();
        // A table whose rule is not known yet is left as it is.
        let Some(entry) = state.tables.get(&table).filter(|entry| entry.rule().is_ok()) else {
            return Ok(None);
        };
        let busy = ledger.busy.entry(table).or_default();
        let mut planned = match goal {
            Goal::Space => self.plan_space(entry, busy),
            Goal::Compaction => self.plan_round(entry, busy),
            _ => entry.catalog.next_work(busy),
        };
        if planned.is_none() {
            let more = match goal {
                Goal::Limits | Goal::Space => None,
                Goal::Compaction => entry.catalog.next_compaction(busy),
                Goal::Relief => self.plan_relief(entry, busy).map(|(plan, cost)| {
                    entry.vain_nanoseconds.fetch_sub(cost, Ordering::Relaxed);
                    plan
                }),
            };
            planned = more.map(Planned::Job);
        }
        let mut planned = planned.filter(|planned| self.has_room_for(entry, planned));
        if planned.is_none() && goal == Goal::Space {
            // What gets most back may be more than there is room for; what is needed may be less.
            planned = entry.catalog.next_work(busy).filter(|planned| self.has_room_for(entry, planned));
        }
        match &planned {
            Some(Planned::Job(plan)) => busy.extend(&plan.nodes),
            Some(Planned::Edit(edit)) => {
                self.metrics.free_edits.add(1);
                self.record(&mut ledger, &state, &mut Pending::edits(vec![(table, edit.clone())]))?;
            }
            None => {}
        }
        Ok(planned.map(|planned| (planned, Arc::clone(entry))))
    }

    /// Makes a change durable, applies it and publishes the new version.
    pub(crate) fn record(
        &self,
        ledger: &mut MutexGuard<'_, Ledger>,
        state: &Arc<State>,
        pending: &mut Pending,
    ) -> Result<()> {
        let Pending { change, passing, files, absorbed, added } = pending;
        let mut catalogs: BTreeMap<u32, Arc<dyn Catalog>> = BTreeMap::new();
        let mut references = Vec::new();
        for (id, edit) in change.edits.iter().chain(&*passing) {
            let Some(table) = state.tables.get(id) else { continue };
            let known = &ledger.references;
            // Of a tree a savepoint may have a later version than its table.
            let own = LazyCell::new(|| table.versions());
            let find = |id: u64| {
                let known = || match &known.get(&id)?.0 {
                    DataFile::List(list) => Some(DataFile::List(Arc::clone(list))),
                    DataFile::Tree(_) => own.get(&id).cloned(),
                };
                files.get(&id).cloned().or_else(known)
            };
            let before = catalogs.get(id).unwrap_or(&table.catalog);
            let Applied { catalog, references: deltas } = before.apply(edit, &find)?;
            catalogs.insert(*id, catalog);
            references.extend(deltas);
        }
        let tables = state.tables.iter().map(|(id, table)| catalogs.get(id).unwrap_or(&table.catalog));
        let first_needed = tables.filter_map(|catalog| Some(catalog.resident()?.first_segment)).min();
        let log = ledger.log_after(first_needed, absorbed.as_ref(), self.options.keep_changes_bytes);
        if !change.edits.is_empty() || (log.kept, log.low) != (ledger.log.kept, ledger.log.low) {
            if !change.files.is_empty() {
                self.sync_dir()?;
            }
            self.sync_held(&log)?;
            change.log = (log != ledger.log || ledger.log_is_ahead).then_some(log);
            self.append(ledger, &Edit::Change(std::mem::take(change)))?;
            ledger.log_is_ahead = false;
        } else {
            ledger.log_is_ahead = true;
        }
        // Before anybody can see that the buffer is gone: whoever sees that looks for its lists here.
        if !planted::is("rewrite-follows-late") {
            added.drain(..).for_each(|(table, lists)| self.added(table, lists));
        }
        yield_point("edit is durable");
        self.update_state(|state| {
            for (id, catalog) in catalogs {
                state.tables.replace(id, |table| table.with_catalog(catalog));
            }
            if let Some((buffer, _)) = &absorbed {
                state.sealed.retain(|sealed| sealed.segment() != buffer.segment());
                self.pins.lock().absorbed(buffer);
            }
        });
        yield_point("edit is published");
        added.drain(..).for_each(|(table, lists)| self.added(table, lists));
        ledger.refer(references);
        self.hold(ledger, log, absorbed.as_ref().map(|(buffer, _)| &**buffer));
        self.lists.resident.due_below.store(ledger.due_below(&self.lists.resident), Ordering::Relaxed);
        self.weigh();
        self.weigh_savepoints(ledger);
        Ok(())
    }

    /// Notes how much waits in lists above their limits, and in memory. Call under the ledger's lock.
    pub(crate) fn weigh(&self) {
        let state = self.state();
        let catalogs = || state.tables.values().map(|table| &table.catalog);
        let debt: u64 = catalogs().map(|catalog| catalog.debt_bytes()).sum();
        let inherited = self.inherited_bytes.load(Ordering::Relaxed).min(debt);
        self.inherited_bytes.store(inherited, Ordering::Relaxed);
        self.debt_bytes.store(debt - inherited, Ordering::Relaxed);
        let resident = || catalogs().filter_map(|catalog| catalog.resident());
        // What no merge can make room of is not waited for by other tables.
        let moves = |table: &&Arc<TableState>| self.why_aside(table.id).is_none() && !self.lacks_room(table);
        let moving = state.tables.values().filter(moves).filter_map(|table| table.catalog.resident());
        let used_bytes = moving.map(|resident| resident.bytes).sum();
        self.lists.resident.used_bytes.store(used_bytes, Ordering::Relaxed);
        let memory_bytes = resident().map(|resident| resident.memory_bytes).sum();
        self.resident_bytes.store(memory_bytes, Ordering::Relaxed);
    }

    /// Notes that a table has another layout: call once that is durable and published.
    pub(crate) fn altered(&self, ledger: &mut Ledger, before: &TableState, now: &TableState) {
        self.forget_nodes(ledger, now.id);
        let (before, now) = (&before.catalog, &now.catalog);
        ledger.refer_instead(before.files(), now.files());
        // Writers owe what they owed before, and no more.
        let grown_bytes = now.debt_bytes().saturating_sub(before.debt_bytes());
        self.inherited_bytes.fetch_add(grown_bytes, Ordering::Relaxed);
        self.weigh();
        self.weigh_savepoints(ledger);
    }

    /// Appends an edit to the manifest, which is rewritten when it has grown.
    pub(crate) fn append(&self, ledger: &mut Ledger, edit: &Edit) -> Result<()> {
        // Where a failure left unknown what is on the disk, an edit may go to a manifest that nobody reads again.
        if let Some(fatal) = self.fatal().filter(|_| !planted::is("edits-after-the-stop")) {
            return Err(fatal);
        }
        let Some(manifest) = &mut ledger.manifest else {
            return Err(self.log().err().unwrap_or_else(closed));
        };
        manifest.append(edit).map_err(|error| self.judge(error))
    }

    /// Stops all further writes where it is unknown what is on the disk.
    fn judge(&self, error: AppendError) -> Error {
        if let AppendError::Unknown(error) = &error {
            self.poison(error);
        }
        error.into_cause()
    }

    /// Makes the names of files durable. A failure stops all further writes: a later sync would say that all is well, and
    /// names that were made before the failure may be lost all the same.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        let synced = self.env.fs.sync_dir(&self.dir);
        synced.inspect_err(|error| self.poison(error))
    }

    /// Takes nodes off the busy ones.
    pub(crate) fn release(&self, table: u32, era: u64, nodes: &[NodeKey]) {
        let mut ledger = self.ledger.lock();
        // Another layout has other nodes.
        let same = self.state().tables.get(&table).is_some_and(|entry| entry.era == era);
        if let Some(busy) = ledger.busy.get_mut(&table).filter(|_| same) {
            busy.retain(|node| !nodes.contains(node));
        }
    }

    /// Starts a new manifest from a snapshot once the old one has grown.
    pub(crate) fn rewrite_manifest(&self) -> Result<()> {
        let mut ledger = self.ledger.lock();
        let growth_bytes_min = self.options.manifest_growth_bytes_min();
        if !ledger.manifest.as_ref().is_some_and(|manifest| manifest.wants_checkpoint(growth_bytes_min)) {
            return Ok(());
        }
        let id = self.lists.new_id();
        self.sync_held(&ledger.log)?;
        let snapshot = Edit::Snapshot(self.snapshot_of(&ledger, &self.state()));
        let fs = &*self.env.fs;
        let fresh = Manifest::create(fs, &self.dir, id, &snapshot, Arc::clone(&self.metrics))
            .map_err(|error| self.judge(error))?;
        // Where it is unknown which manifest is the current one, neither may be added to.
        Current { manifest: id, closed: None }.write(fs, &self.dir).map_err(|error| {
            if let AppendError::Refused(_) = error {
                let _ = fs.remove(&names::manifest(&self.dir, id));
            }
            self.judge(error)
        })?;
        let old = ledger.manifest.replace(fresh);
        drop(ledger);
        old.map_or(Ok(()), |old| fs.remove(old.path()))
    }

    /// The whole state but for the log, as a manifest begins with it.
    pub(crate) fn snapshot_of(&self, ledger: &Ledger, state: &State) -> Snapshot {
        let tables = state.tables.values().map(|table| table.entry());
        Snapshot {
            next_id: self.lists.next_id.load(Ordering::Relaxed),
            next_table: ledger.next_table,
            log: ledger.log,
            rolled_back: ledger.rolled_back,
            tables: tables.collect(),
            savepoints: ledger.savepoints.iter().map(|(name, savepoint)| savepoint.entry(name)).collect(),
        }
    }
}

impl Finished {
    /// Gives up what was written.
    pub(crate) fn discard(&self) {
        self.outcome.discard();
    }
}
