//! Planning: what is to be done for a table, by what it is done for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_base::Result;
use forebay_env::sync::atomic::Ordering;
use forebay_layouts::{Plan, Planned};

use crate::background::Background;
use crate::pool::Permit;
use crate::versions::{Pending, TableState, UnderWay};

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

/// What a compactor does next.
pub(crate) enum NextWork {
    /// An edit, which was made as it was planned.
    Edited,
    /// A job, planned on this version of its table.
    Job { plan: Plan, table: Arc<TableState>, under_way: UnderWay, permit: Permit },
    /// A job, once others of the pool have had their turns.
    Later,
    /// Nothing, as long as somebody is at work on the table.
    NotNow,
    /// Nothing, and nobody is at work on it.
    Nothing,
}

impl Background {
    /// The tables, with what to plan for: the one with the largest debt first, and one whose last job failed last. Merges
    /// for the sake of lookups come only once nothing else is to be done, and never beside a round. No version is held:
    /// what another compactor gives up meanwhile would be taken for held by readers.
    pub(super) fn due(&self, compacting: &BTreeMap<u32, u64>) -> Vec<(u32, Goal)> {
        let state = self.versions.state();
        self.end_passes(&state);
        let mut tables: Vec<_> = state.tables.values().collect();
        let due_below = self.versions.lists.resident.due_below.load(Ordering::Relaxed);
        let is_crowded = self.versions.lists.resident.excess_bytes() > 0;
        let keeping = || state.tables.values().filter(|table| table.version.resident().is_some());
        let is_pool = is_crowded && keeping().nth(1).is_some();
        let owed_by_all: Option<u64> =
            is_pool.then(|| keeping().map(|table| table.version.debt_bytes()).sum());
        // What all owe for what they keep in memory is for the one with the fullest key range to pay.
        let owes = |table: &TableState| match owed_by_all.filter(|_| table.version.resident().is_some()) {
            Some(owed_bytes) => (owed_bytes, table.version.fullest_bytes()),
            None => (table.version.debt_bytes(), 0),
        };
        let holds_log = |table: &TableState| {
            table.version.resident().is_some_and(|resident| resident.first_segment < due_below)
        };
        let mut failed = self.failed.lock();
        failed.retain(|id| state.tables.contains_key(id));
        tables.sort_by_key(|table| {
            let last = failed.iter().position(|&id| id == table.id);
            (last, Reverse((holds_log(table), owes(table))))
        });
        drop(failed);
        self.space.empty_trash_for_space(&state);
        let goal = |table: &TableState| match compacting.contains_key(&table.id) {
            true => Goal::FullCompaction,
            false if self.space.wants_space(table) || self.space.wants_reclaim_pass(table, &state) => {
                Goal::Space
            }
            false => Goal::Limits,
        };
        let due: Vec<_> = tables.into_iter().map(|table| (table.id, goal(table))).collect();
        let within_limits = due.iter().filter(|(_, goal)| *goal == Goal::Limits);
        let read_compaction =
            within_limits.map(|(table, _)| (*table, Goal::ReadCompaction)).collect::<Vec<_>>();
        due.into_iter().chain(read_compaction).collect()
    }

    /// Plans for a compactor and, where the plan is an edit, commits it at once.
    pub(crate) fn plan(&self, compactor: usize, table: u32, goal: Goal) -> Result<NextWork> {
        let mut version_set = self.versions.lock();
        let state = self.versions.state();
        // A table whose rule is not known yet is left as it is.
        let Some(entry) = state.tables.get(&table).filter(|entry| entry.rule().is_ok()) else {
            return Ok(NextWork::Nothing);
        };
        let goes_round = self.goes_round(entry, goal);
        let is_beside = entry.version.is_for_one() && !goes_round && !entry.space.at_work.is_none();
        let is_for_one = goes_round || (is_beside && goal != Goal::Limits);
        // Jobs of a former layout may append to the same files.
        if !entry.space.at_work.allows(entry.generation, is_for_one) {
            return Ok(NextWork::NotNow);
        }
        let busy = version_set.busy.entry(table).or_default();
        // How far a round comes by what is planned, once that has begun.
        let (mut onward, mut progress) = (None, None);
        let mut planned;
        match goal {
            Goal::Space => (planned, onward) = self.space.plan_space(entry, busy),
            Goal::FullCompaction => (planned, progress) = self.plan_full_compaction(entry, busy),
            Goal::Limits if is_beside => planned = entry.version.next_beside(busy),
            _ => planned = entry.version.next_work(busy),
        }
        let mut price = 0;
        if planned.is_none() {
            planned = match goal {
                Goal::Limits | Goal::Space => None,
                Goal::FullCompaction => self.next_of_whole(entry, busy),
                Goal::ReadCompaction => self.plan_read_compaction(entry, busy).map(|(plan, cost)| {
                    price = cost;
                    Planned::Job(plan)
                }),
            };
        }
        let mut planned = planned.filter(|planned| self.space.has_room_for(entry, planned));
        if planned.is_none() && goal == Goal::Space {
            // What gets most back may be more than there is room for, and is passed by; what is needed may be less.
            onward.take().into_iter().for_each(|onward| self.space.advance(entry, onward));
            planned = entry.version.next_work(busy).filter(|planned| self.space.has_room_for(entry, planned));
        }
        let Some(planned) = planned else {
            let is_idle = entry.space.at_work.is_none() && !self.versions.is_worked_on(table, busy);
            return Ok(if is_idle { NextWork::Nothing } else { NextWork::NotNow });
        };
        self.context.health.set_idle(compactor, false);
        Ok(match planned {
            Planned::Job(plan) => {
                let now = self.context.env.clock.now();
                let Some(permit) = self.context.limit.begin_merge(compactor, now) else {
                    return Ok(NextWork::Later);
                };
                // Only now: what there is no room for, or no turn, is not done, and lookups would save up for it anew.
                let saved = entry.wasted_nanoseconds.fetch_sub(price, Ordering::Relaxed);
                debug_assert!(saved >= price, "lookups have paid for it: {price} of {saved}");
                let is_free = plan.nodes.iter().all(|node| !busy.contains(node));
                debug_assert!(is_free, "nobody is at work on what is planned");
                busy.extend(&plan.nodes);
                onward.into_iter().for_each(|onward| self.space.advance(entry, onward));
                progress.into_iter().for_each(|progress| self.advance_pass(table, progress));
                let under_way = UnderWay::begin(&entry.space, entry.generation, plan.bytes);
                NextWork::Job { plan, table: Arc::clone(entry), under_way, permit }
            }
            Planned::Edit(edit) => {
                self.context.metrics.free_edits.add(1);
                version_set.record(&state, &mut Pending::edits(vec![(table, edit)]))?;
                NextWork::Edited
            }
        })
    }

    /// Whether a table is gone round for this goal. One compactor does that, and begins no job of it while
    /// others work on the table: a round has to come past all that was there when it began, and what somebody works on
    /// is passed by.
    fn goes_round(&self, table: &TableState, goal: Goal) -> bool {
        match goal {
            Goal::Space => true,
            Goal::FullCompaction => self.is_in_pass(table),
            Goal::Limits | Goal::ReadCompaction => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;

    use super::*;
    use crate::{Codec, Database, Options};

    const SAVED: u64 = 1 << 60;

    /// Each time that lookups had saved up a merge it was spent for nothing, for as long as a snapshot was held.
    #[test]
    fn lookups_pay_only_for_a_merge_that_there_is_room_for() {
        let options = Options::default().memory_limit(1 << 20).write_buffer(16 << 10).env(Env::memory(1));
        let db = Database::open("/db", options).unwrap();
        let table = db.table("t").codec(Codec::None).node_bytes(32 << 10).open().unwrap();
        let put_all = |round: u8, value: &[u8]| {
            let put = |n: u16| table.put([&[round][..], &n.to_be_bytes()].concat(), value);
            (0..1500).for_each(|n| put(n).unwrap());
        };
        put_all(0, &[1; 1000]);
        table.compact().unwrap();
        let snapshot = db.snapshot();
        put_all(0, &[2; 1000]);
        table.compact().unwrap();
        // Leaves get several lists each, and nothing is left that exceeds its limits.
        for round in 1..4 {
            put_all(round, b"short");
            db.flush().unwrap();
        }
        let engine = db.engine();
        engine.context.env.jobs.step_some(10_000);
        db.table("t").max_space_amplification(1.25).alter().unwrap();
        let saved = Arc::clone(&engine.versions.state().tables.get(&table.id()).unwrap().wasted_nanoseconds);
        saved.store(SAVED, Ordering::Relaxed);
        let plan = || engine.background.plan(0, table.id(), Goal::ReadCompaction).unwrap();
        assert!(!matches!(plan(), NextWork::Job { .. }), "the snapshot holds what it would need");
        assert_eq!(saved.load(Ordering::Relaxed), SAVED);
        drop(snapshot);
        let NextWork::Job { plan, table: planned, .. } = plan() else { panic!("there is room for it") };
        assert!(saved.load(Ordering::Relaxed) < SAVED, "it is paid for");
        engine.versions.lock().release(table.id(), planned.generation, &plan.nodes);
    }
}
