//! Flushes: a sealed and sorted buffer's records, table by table, become one list file each; then one
//! edit makes them part of all their tables at once and frees the log segment.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, POINTER_BYTES, Result, planted};
use forebay_env::{Machine, Step, yield_point};
use forebay_layouts::{Job, NodeKey, Plan};
use forebay_store::buffer::{Contents, Run, SortedTable};
use forebay_store::log::frame;
use forebay_store::{Cause, WriteBuffer};

use crate::background::Background;
use crate::versions::{Commit, Finished, TableState};

use super::range_deletes::RangeDeletes;
use super::sorter::SORTED_SHARE;

pub(super) struct Flusher {
    background: Arc<Background>,
    work: Option<Work>,
}

/// One buffer on its way.
struct Work {
    buffer: Arc<WriteBuffer>,
    last_sequence: u64,
    /// What goes first.
    range_deletes: RangeDeletes,
    /// Whether it was seen to it that long values stay where they are.
    has_value_file: bool,
    waiting: VecDeque<SortedTable>,
    /// Table, generation and job.
    writing: Option<(u32, u64, Box<dyn Job>)>,
    outcomes: Vec<Finished>,
    /// Nodes that the tables' records are merged with.
    busy: Vec<(u32, u64, Vec<NodeKey>)>,
    has_set_aside: bool,
    bytes: u64,
    done_bytes: u64,
    /// How much the job hands on at a time.
    step_bytes: usize,
    /// Since this waits for room in the memory of its tables.
    waits: Option<Waits>,
}

/// A wait for merges that make room.
#[derive(Clone, Copy)]
struct Waits {
    /// How much more tables kept in memory than may stay, when it began.
    excess_bytes: u64,
    began: Duration,
    /// When compactors are told again if they rest.
    next_look: Duration,
}

/// How long readers may keep merges from making room before that is told, or done all the same.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much of a buffer's flush it is to wait for room, if it does.
const ROOM_SHARE: f64 = 0.4;

const _: () = assert!(SORTED_SHARE + ROOM_SHARE < 1.0, "writing is some part of a flush");
const _: () = assert!(super::RETRY_AFTER.as_nanos() < PATIENCE.as_nanos(), "who waits looks more than once");

impl Flusher {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self { background, work: None }
    }

    /// Takes up the oldest sealed buffer, if it is sorted and the merge rules of all its tables are known.
    fn begin(&self) -> Option<Work> {
        let state = self.background.versions.state();
        let buffer = Arc::clone(state.sealed.last()?);
        let waiting: VecDeque<_> = buffer.sorted()?.iter().cloned().collect();
        if self.background.versions.lacks_rule().is_some() {
            yield_point("a rule is missing");
            return None;
        }
        let last_sequence = self.background.versions.lock().log.flushed.1 + frame::records_of(buffer.bytes());
        debug_assert!(
            buffer.is_empty()
                || buffer.first_sequence() + frame::records_of(buffer.bytes()) == last_sequence + 1,
            "the oldest buffer goes on where the last one that was flushed ends"
        );
        let bytes = waiting.iter().map(|sorted| sorted.contents.bytes).sum();
        let outcomes = Vec::new();
        Some(Work {
            range_deletes: RangeDeletes::of(&buffer),
            has_value_file: false,
            buffer,
            last_sequence,
            waiting,
            writing: None,
            outcomes,
            busy: Vec::new(),
            has_set_aside: false,
            bytes,
            done_bytes: 0,
            step_bytes: STEP_BYTES,
            waits: None,
        })
    }

    /// Goes on for a bit, or until when other work has to make room first.
    fn advance(&mut self) -> Result<Step> {
        let Some(work) = &mut self.work else { return Ok(Step::Idle) };
        if work.range_deletes.advance(&self.background, work.last_sequence)? {
            self.background.note_progress(STEP_BYTES as u64);
            return Ok(Step::Worked);
        }
        if !work.has_value_file {
            self.background.keep_values(&work.buffer, work.last_sequence, &work.waiting)?;
            work.has_value_file = true;
        }
        if work.writing.is_none() && work.waiting.is_empty() {
            return self.finish().map(|()| Step::Worked);
        }
        let step = work.advance(&self.background)?;
        self.background.note_flushed(&work.buffer, work.share(&self.background));
        if step == Step::Worked {
            self.background.note_progress(STEP_BYTES as u64);
        }
        Ok(step)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(Work { buffer, last_sequence, outcomes, busy, waiting, .. }) = self.work.take() else {
            return Ok(());
        };
        debug_assert!(waiting.is_empty(), "all of a buffer becomes lists at once");
        debug_assert_eq!(outcomes.len(), busy.len(), "each list was planned, and what failed is not flushed");
        let committed = self.background.commit(Commit::Flushed { buffer, last_sequence, outcomes });
        busy.iter().for_each(|(table, generation, nodes)| {
            self.background.versions.lock().release(*table, *generation, nodes)
        });
        if !committed? {
            // Another layout has come in between: the next step begins anew.
            return Ok(());
        }
        self.background.context.metrics.jobs_done[Cause::Flush as usize].add(1);
        let next_is_sorted =
            self.background.versions.state().sealed.last().is_some_and(|next| next.sorted().is_some());
        let share: f64 = if next_is_sorted { SORTED_SHARE } else { 0.0 };
        self.background.writer.pace.set_flushed_share(share);
        self.background.note_recovery((super::FLUSH, 0));
        self.background.context.env.jobs.wake();
        Ok(())
    }
}

impl Work {
    /// How much of the buffer is flushed, from 0 to 1: writers go on as far.
    fn share(&self, background: &Background) -> f64 {
        let room = self.waits.map(|Waits { excess_bytes, .. }| {
            let now = background.versions.lists.resident.excess_bytes();
            ROOM_SHARE * (excess_bytes.saturating_sub(now) as f64 / excess_bytes.max(1) as f64)
        });
        let written = self.done_bytes as f64 / self.bytes.max(1) as f64;
        let left = 1.0 - SORTED_SHARE - room.map_or(0.0, |_| ROOM_SHARE);
        SORTED_SHARE + room.unwrap_or(0.0) + left * written.min(1.0)
    }

    fn advance(&mut self, background: &Background) -> Result<Step> {
        if let Some((table, generation, mut job)) = self.writing.take() {
            self.done_bytes += STEP_BYTES as u64;
            let step = job.step(self.step_bytes).inspect_err(|error| self.set_aside(background, error))?;
            match step {
                Some(outcome) => {
                    let is_first = self.outcomes.iter().all(|finished| finished.table != table);
                    debug_assert!(is_first, "a table takes a buffer in once");
                    self.outcomes.push(Finished { table, generation, outcome });
                }
                None => self.writing = Some((table, generation, job)),
            }
        } else if let Some(SortedTable { table, contents, run }) = self.waiting.front().cloned() {
            match background.plan_flush(table, self.buffer.segment(), &contents) {
                FlushPlan::Planned(entry, plan) => {
                    entry.space.reclaim.starves.store(false, Ordering::Relaxed);
                    entry.space.reclaim.is_waited_for.store(false, Ordering::Relaxed);
                    self.busy.push((table, entry.generation, plan.nodes.clone()));
                    self.bytes += plan.bytes;
                    background.take_from_rate(plan.bytes + contents.bytes);
                    self.step_bytes = step_bytes(&entry, &self.buffer, &run, &contents);
                    let job = entry.version.flush(&plan, &self.buffer, run, &contents);
                    let job = job.inspect_err(|error| self.set_aside(background, error))?;
                    self.writing = Some((table, entry.generation, job));
                }
                FlushPlan::Waits(entry) => {
                    let now = background.context.env.clock.now();
                    let excess_bytes = background.versions.lists.resident.excess_bytes();
                    let next_look = now + super::RETRY_AFTER;
                    let waits = self.waits.get_or_insert(Waits { excess_bytes, began: now, next_look });
                    return background.wait_for_room(&entry, now, waits);
                }
                // It takes its records with it.
                FlushPlan::Dropped => {}
            }
            self.waiting.pop_front();
        }
        Ok(Step::Worked)
    }

    /// What was planned last cannot be merged: its runs stay busy, so that the next try leaves them alone.
    fn set_aside(&mut self, background: &Background, error: &Error) {
        if let Some((table, generation, nodes)) =
            self.busy.pop_if(|(.., nodes)| error.is_lasting() && !nodes.is_empty())
        {
            background.versions.lock().set_aside(table, generation, &nodes, error);
            self.has_set_aside = true;
        }
    }

    /// What failed leaves nothing behind: lists that are whole go too, or each new try would fill the disk with more of
    /// them.
    fn give_up(self, background: &Background) {
        let Self { writing, outcomes, busy, .. } = self;
        drop(writing);
        outcomes.iter().for_each(Finished::discard);
        busy.iter().for_each(|(table, generation, nodes)| {
            background.versions.lock().release(*table, *generation, nodes)
        });
    }
}

impl Machine for Flusher {
    fn step(&mut self) -> Step {
        if self.background.context.is_closing() || self.background.context.fatal().is_some() {
            return Step::Finished;
        }
        if let Some(rests) = self.background.rests((super::FLUSH, 0)) {
            return rests;
        }
        if self.work.is_none() {
            self.work = self.begin();
            if self.work.is_none() {
                return Step::Idle;
            }
        }
        match self.advance() {
            Ok(step) => step,
            Err(error) => {
                let work = self.work.take();
                let has_set_aside = work.as_ref().is_some_and(|work| work.has_set_aside);
                work.into_iter().for_each(|work| work.give_up(&self.background));
                // Runs that it was not to be merged with are left alone from now on.
                if matches!(error, Error::TooLong(_)) && has_set_aside {
                    return Step::Worked;
                }
                self.background.note_failure((super::FLUSH, 0), error)
            }
        }
    }

    fn yields(&self) -> bool {
        false
    }
}

/// How much a flush hands on in a step, so that it takes about [`STEP_BYTES`] of the buffer: of values that it leaves in
/// the log that is a pointer each.
fn step_bytes(table: &TableState, buffer: &WriteBuffer, run: &Run, contents: &Contents) -> usize {
    let leaves = table.options.flush_leaves_bytes_min().filter(|_| buffer.value_file().is_some());
    let Some(bytes_min) = leaves else { return STEP_BYTES };
    let left = run.long_share(buffer, bytes_min);
    let pointers = (contents.records * POINTER_BYTES as u64) as f64 / contents.bytes.max(1) as f64;
    let part = (1.0 - left + pointers).clamp(0.0, 1.0);
    ((part * STEP_BYTES as f64) as usize).max(STEP_BYTES_MIN)
}

/// Shorter steps gain nothing.
const STEP_BYTES_MIN: usize = 32 << 10;

/// What becomes of a buffer's records of a table.
enum FlushPlan {
    Planned(Arc<TableState>, Plan),
    Waits(Arc<TableState>),
    Dropped,
}

impl Background {
    /// How a table takes in a buffer's records, and the version of it that says so. What that merges is busy from now
    /// on.
    fn plan_flush(&self, table: u32, segment: u64, contents: &Contents) -> FlushPlan {
        let mut version_set = self.versions.lock();
        let Some(entry) = self.versions.state().tables.get(&table).cloned() else {
            return FlushPlan::Dropped;
        };
        let busy = version_set.busy.entry(table).or_default();
        let plan_with = |busy: &BTreeSet<NodeKey>| entry.version.plan_flush(segment, contents, busy);
        // What follows a table that is reordered has nothing of older runs, wherever those lie: merged with them all it
        // would have no tombstones. Nor may it drop them where there are no runs any more: what a filter has dropped of
        // them may have been copied before.
        let follows = self.versions.is_reordering(table) && !planted::is("rewrite-merges-what-follows");
        let plan = plan_with(busy).and_then(|plan| {
            let stays_alone = follows || self.round_waits(table);
            let may_merge =
                plan.nodes.is_empty() || !stays_alone && self.space.fits(&entry, plan.bytes + contents.bytes);
            if may_merge {
                return Some(plan);
            }
            plan_with(&busy.iter().chain(&plan.nodes).copied().collect())
        });
        let Some(mut plan) = plan else {
            return FlushPlan::Waits(entry);
        };
        plan.keeps_tombstones = follows;
        debug_assert!(
            plan.nodes.iter().all(|node| !busy.contains(node)),
            "nobody is at work on what is planned"
        );
        busy.extend(&plan.nodes);
        FlushPlan::Planned(entry, plan)
    }

    /// The flush waits for merges that make room in a table's memory. It never does while nobody works on that: the
    /// compactor is told to look again; where a bound on space keeps it from that, that is said, if snapshots are to
    /// blame, or else the merge is done all the same.
    fn wait_for_room(&self, table: &TableState, now: Duration, waits: &mut Waits) -> Result<Step> {
        let rests = self.context.health.compactors_are_idle();
        let passing = self.space.passing_trouble(super::COMPACT);
        if let Some(error) = passing.or_else(|| self.versions.why_aside(table.id).filter(|_| rests)) {
            return Err(error);
        }
        if rests && now >= waits.next_look {
            waits.next_look = now + super::RETRY_AFTER;
            if now >= waits.began + PATIENCE && self.space.refuses(table).is_some() {
                let is_known = self.versions.bytes_held_by_snapshots(table.id) > 0;
                table.space.reclaim.is_waited_for.store(is_known, Ordering::Relaxed);
                table.space.reclaim.starves.store(!is_known, Ordering::Relaxed);
            }
            self.context.env.jobs.wake();
        }
        Ok(Step::Until(waits.next_look.max(now + super::RETRY_AFTER)))
    }

    /// Notes how much of a buffer is flushed, from 0 to 1, if it is the one that writers wait for.
    pub(super) fn note_flushed(&self, buffer: &WriteBuffer, share: f64) {
        if self.versions.state().sealed.last().is_some_and(|oldest| oldest.segment() == buffer.segment()) {
            self.writer.pace.set_flushed_share(share);
        }
    }

    /// Tells that what the flush may have waited for is there: a rule, or a table's end.
    pub(crate) fn flush_again(&self) {
        self.note_recovery((super::FLUSH, 0));
        self.context.env.jobs.wake();
    }
}
