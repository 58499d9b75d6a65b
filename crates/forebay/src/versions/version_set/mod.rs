//! The version set: the manifest, which files are referred to, which nodes are busy. Every edit of any table
//! goes through [`Engine::commit`]: rebase, make durable, apply, publish, retire.

mod manifest;
mod references;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::{Result, planted};
use forebay_env::sync::MutexGuard;
use forebay_env::yield_point;
use forebay_layouts::{Applied, DataFile, NodeKey, Outcome, Planned, Rebased, TableVersion};
use forebay_store::WriteBuffer;
use forebay_store::manifest::{Change, Edit, LogMark, Manifest};

use crate::engine::Engine;
use crate::retained::RetainedSegment;
use crate::versions::savepoint::Savepoint;
use crate::versions::{State, TableState};

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
}

/// What a commit changes.
pub(crate) enum Commit {
    /// A buffer went into these tables' lists.
    Flushed { buffer: Arc<WriteBuffer>, last_sequence: u64, outcomes: Vec<Finished> },
    /// A job finished.
    Finished(Finished),
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
    FullCompaction,
    /// Room, where the table's space is bounded.
    Space,
    /// Lookups that ask fewer lists.
    ReadCompaction,
}

impl Engine {
    /// Commits a change to the table versions. On error nothing has changed, and the outcome's files are discarded; so
    /// are they, and the answer is `false`, where an outcome no longer fits its table.
    pub(crate) fn commit(&self, commit: Commit) -> Result<bool> {
        let mut version_set = self.version_set.lock();
        let state = self.state();
        let (outcomes, flushed) = match commit {
            Commit::Flushed { buffer, last_sequence, outcomes } => (outcomes, Some((buffer, last_sequence))),
            Commit::Finished(finished) => (vec![finished], None),
        };
        let fits = |finished: &Finished| {
            let table = state.tables.get(&finished.table);
            table.is_none_or(|table| {
                table.generation == finished.generation && table.version.takes(&finished.outcome)
            })
        };
        if !outcomes.iter().all(fits) {
            outcomes.iter().for_each(Finished::discard);
            return Ok(false);
        }
        let is_flushed = flushed.is_some();
        let mut pending = Pending { flushed, ..Pending::default() };
        let rebase = || -> Result<()> {
            for Finished { table: id, outcome, .. } in outcomes {
                // A table may have been dropped meanwhile: then its outcome goes nowhere.
                let made = outcome.files();
                pending.files.extend(made.iter().map(|file| (file.id(), file.clone())));
                let Some(table) = state.tables.get(&id) else { continue };
                let Rebased { edit, is_lasting } = table.version.rebase(outcome)?;
                if is_lasting {
                    pending.change.edits.push((id, edit));
                    pending.change.files.extend(made.iter().map(|file| (id, file.meta())));
                } else {
                    pending.passing.push((id, edit));
                }
                if is_flushed {
                    pending.added.push((id, made));
                }
            }
            Ok(())
        };
        let rebased = rebase();
        let done = rebased.and_then(|()| self.record(&mut version_set, &state, &mut pending)).map(|()| true);
        if done.is_ok() && is_flushed {
            self.keep_wanted(&mut version_set);
        }
        if self.log.as_ref().is_some_and(|log| log.poisoned().is_some()) {
            // The edit may be durable all the same: then its files will be asked for.
            return done;
        }
        let kept = &version_set.references;
        pending.files.values().filter(|file| !kept.contains_key(&file.id())).for_each(DataFile::discard);
        drop(version_set);
        self.tend_filters();
        done
    }

    /// Plans and, where the plan is an edit, commits it at once. `None` when there is nothing to do. Also returns what
    /// it was planned on.
    pub(crate) fn plan(&self, table: u32, goal: Goal) -> Result<Option<(Planned, Arc<TableState>)>> {
        let mut version_set = self.version_set.lock();
        let state = self.state();
        // A table whose rule is not known yet is left as it is.
        let Some(entry) = state.tables.get(&table).filter(|entry| entry.rule().is_ok()) else {
            return Ok(None);
        };
        let busy = version_set.busy.entry(table).or_default();
        let mut planned = match goal {
            Goal::Space => self.plan_space(entry, busy),
            Goal::FullCompaction => self.plan_full_compaction(entry, busy),
            _ => entry.version.next_work(busy),
        };
        if planned.is_none() {
            let more = match goal {
                Goal::Limits | Goal::Space => None,
                Goal::FullCompaction => entry.version.next_full_compaction(busy),
                Goal::ReadCompaction => self.plan_read_compaction(entry, busy).map(|(plan, cost)| {
                    entry.wasted_nanoseconds.fetch_sub(cost, Ordering::Relaxed);
                    plan
                }),
            };
            planned = more.map(Planned::Job);
        }
        let mut planned = planned.filter(|planned| self.has_room_for(entry, planned));
        if planned.is_none() && goal == Goal::Space {
            // What gets most back may be more than there is room for; what is needed may be less.
            planned = entry.version.next_work(busy).filter(|planned| self.has_room_for(entry, planned));
        }
        match &planned {
            Some(Planned::Job(plan)) => busy.extend(&plan.nodes),
            Some(Planned::Edit(edit)) => {
                self.metrics.free_edits.add(1);
                self.record(&mut version_set, &state, &mut Pending::edits(vec![(table, edit.clone())]))?;
            }
            None => {}
        }
        Ok(planned.map(|planned| (planned, Arc::clone(entry))))
    }

    /// Makes a change durable, applies it and publishes the new version.
    pub(crate) fn record(
        &self,
        version_set: &mut MutexGuard<'_, VersionSet>,
        state: &Arc<State>,
        pending: &mut Pending,
    ) -> Result<()> {
        let Pending { change, passing, files, flushed, added } = pending;
        let mut versions: BTreeMap<u32, Arc<dyn TableVersion>> = BTreeMap::new();
        let mut references = Vec::new();
        for (id, edit) in change.edits.iter().chain(&*passing) {
            let Some(table) = state.tables.get(id) else { continue };
            let known = &version_set.references;
            // Of a tree a savepoint may have a later version than its table.
            let own = LazyCell::new(|| table.versions());
            let find = |id: u64| {
                let known = || match &known.get(&id)?.0 {
                    DataFile::List(list) => Some(DataFile::List(Arc::clone(list))),
                    DataFile::Tree(_) => own.get(&id).cloned(),
                };
                files.get(&id).cloned().or_else(known)
            };
            let before = versions.get(id).unwrap_or(&table.version);
            let Applied { version, references: deltas } = before.apply(edit, &find)?;
            versions.insert(*id, version);
            references.extend(deltas);
        }
        let tables = state.tables.iter().map(|(id, table)| versions.get(id).unwrap_or(&table.version));
        let first_needed = tables.filter_map(|version| Some(version.resident()?.first_segment)).min();
        let log = version_set.log_after(first_needed, flushed.as_ref(), self.options.keep_changes_bytes);
        if !change.edits.is_empty() || (log.kept, log.low) != (version_set.log.kept, version_set.log.low) {
            if !change.files.is_empty() {
                self.sync_dir()?;
            }
            self.sync_retained(&log)?;
            change.log = (log != version_set.log || version_set.log_is_ahead).then_some(log);
            self.append(version_set, &Edit::Change(std::mem::take(change)))?;
            version_set.log_is_ahead = false;
        } else {
            version_set.log_is_ahead = true;
        }
        // Before anybody can see that the buffer is gone: whoever sees that looks for its lists here.
        if !planted::is("rewrite-follows-late") {
            added.drain(..).for_each(|(table, lists)| self.note_new_lists(table, lists));
        }
        yield_point("edit is durable");
        self.update_state(|state| {
            for (id, version) in versions {
                state.tables.replace(id, |table| table.with_version(version));
            }
            if let Some((buffer, _)) = &flushed {
                state.sealed.retain(|sealed| sealed.segment() != buffer.segment());
                self.pins.lock().note_flushed(buffer);
            }
        });
        yield_point("edit is published");
        added.drain(..).for_each(|(table, lists)| self.note_new_lists(table, lists));
        version_set.refer(references);
        self.retain_segments(version_set, log, flushed.as_ref().map(|(buffer, _)| &**buffer));
        self.lists.resident.due_below.store(version_set.due_below(&self.lists.resident), Ordering::Relaxed);
        self.weigh();
        self.weigh_savepoints(version_set);
        Ok(())
    }

    /// Notes how much waits in lists above their limits, and in memory. Call under the version set's lock.
    pub(crate) fn weigh(&self) {
        let state = self.state();
        let versions = || state.tables.values().map(|table| &table.version);
        let debt: u64 = versions().map(|version| version.debt_bytes()).sum();
        let inherited = self.inherited_bytes.load(Ordering::Relaxed).min(debt);
        self.inherited_bytes.store(inherited, Ordering::Relaxed);
        self.debt_bytes.store(debt - inherited, Ordering::Relaxed);
        let resident = || versions().filter_map(|version| version.resident());
        // What no merge can make room of is not waited for by other tables.
        let moves = |table: &&Arc<TableState>| self.why_aside(table.id).is_none() && !self.lacks_room(table);
        let moving = state.tables.values().filter(moves).filter_map(|table| table.version.resident());
        let used_bytes = moving.map(|resident| resident.bytes).sum();
        self.lists.resident.used_bytes.store(used_bytes, Ordering::Relaxed);
        let memory_bytes = resident().map(|resident| resident.memory_bytes).sum();
        self.resident_bytes.store(memory_bytes, Ordering::Relaxed);
    }

    /// Notes that a table has another layout: call once that is durable and published.
    pub(crate) fn note_new_layout(
        &self,
        version_set: &mut VersionSet,
        before: &TableState,
        now: &TableState,
    ) {
        self.forget_nodes(version_set, now.id);
        let (before, now) = (&before.version, &now.version);
        version_set.refer_instead(before.files(), now.files());
        // Writers owe what they owed before, and no more.
        let grown_bytes = now.debt_bytes().saturating_sub(before.debt_bytes());
        self.inherited_bytes.fetch_add(grown_bytes, Ordering::Relaxed);
        self.weigh();
        self.weigh_savepoints(version_set);
    }

    /// Takes nodes off the busy ones.
    pub(crate) fn release(&self, table: u32, generation: u64, nodes: &[NodeKey]) {
        let mut version_set = self.version_set.lock();
        // Another layout has other nodes.
        let same = self.state().tables.get(&table).is_some_and(|entry| entry.generation == generation);
        if let Some(busy) = version_set.busy.get_mut(&table).filter(|_| same) {
            busy.retain(|node| !nodes.contains(node));
        }
    }
}

impl Finished {
    /// Gives up what was written.
    pub(crate) fn discard(&self) {
        self.outcome.discard();
    }
}
