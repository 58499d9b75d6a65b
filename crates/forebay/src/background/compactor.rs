//! Compactions: the work that the table versions plan, the table with the largest debt first; and where there is
//! nothing, merges for the sake of lookups.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result};
use forebay_env::{Machine, Step};
use forebay_layouts::{Job, NodeKey, Planned};

use crate::background::Background;
use crate::background::planning::Goal;
use crate::versions::{Commit, Finished, TableState};

pub(super) struct Compactor {
    background: Arc<Background>,
    running: Option<Running>,
    /// Tables whose last job failed, the latest last: others come first.
    failed: Vec<u32>,
}

struct Running {
    table: u32,
    generation: u64,
    nodes: Vec<NodeKey>,
    job: Box<dyn Job>,
}

impl Compactor {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self { background, running: None, failed: Vec::new() }
    }

    /// Does a bit of the running job, or finds the next.
    fn advance(&mut self) -> Result<Step> {
        // Memory first, and between steps of a job: merges take long, and lists come meanwhile.
        if self.background.memory.filters_exceed()
            && self.background.memory.thin_filters()
            && self.running.is_none()
        {
            return Ok(Step::Worked);
        }
        if self.running.is_none() {
            return Ok(if self.find_work()? { Step::Worked } else { Step::Idle });
        }
        // Asked before, not after: work that wakes whoever waits for it would wake this machine, too.
        if self.running.as_ref().is_some_and(|running| running.job.waits()) {
            return Ok(Step::Idle);
        }
        self.work().inspect_err(|error| self.give_up(error))?;
        Ok(Step::Worked)
    }

    /// `false` when there is nothing. What one table fails at keeps none of the others waiting.
    fn find_work(&mut self) -> Result<bool> {
        let background = Arc::clone(&self.background);
        let state = background.versions.state();
        background.end_passes(&state);
        let compacting = background.compactions();
        let mut tables: Vec<_> = state.tables.values().collect();
        let due_below = background.versions.lists.resident.due_below.load(Ordering::Relaxed);
        let holds_log = |table: &TableState| {
            table.version.resident().is_some_and(|resident| resident.first_segment < due_below)
        };
        self.failed.retain(|id| state.tables.contains_key(id));
        let failed = &self.failed;
        tables.sort_by_key(|table| {
            let last = failed.iter().position(|&id| id == table.id);
            (last, std::cmp::Reverse((holds_log(table), table.version.debt_bytes())))
        });
        background.space.empty_trash_for_space(&state);
        let goal = |table: &TableState| match compacting.contains_key(&table.id) {
            true => Goal::FullCompaction,
            false
                if background.space.wants_space(table)
                    || background.space.wants_reclaim_pass(table, &state) =>
            {
                Goal::Space
            }
            false => Goal::Limits,
        };
        let limits = tables.iter().map(|table| (*table, goal(table)));
        // Only once nothing else is to be done.
        let read_compaction = tables.iter().map(|table| (*table, Goal::ReadCompaction));
        let mut failure = None;
        for (table, goal) in limits.chain(read_compaction) {
            match self.begin(table.id, goal) {
                Ok(true) => return Ok(true),
                Ok(false) => {
                    let asked = compacting.get(&table.id).filter(|_| goal == Goal::FullCompaction);
                    asked.into_iter().for_each(|&asked| background.found_compact(table, asked));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    /// Begins what there is to do for a table. `false` when there is nothing.
    fn begin(&mut self, table: u32, goal: Goal) -> Result<bool> {
        debug_assert!(self.running.is_none(), "one job is done after the other");
        let planned = self.background.plan(table, goal);
        // An edit that moves no data is made as it is planned. Nothing is set aside for it.
        match planned.inspect_err(|error| self.background.note_failed_compaction(table, error))? {
            Some((Planned::Edit(_), _)) => Ok(true),
            Some((Planned::Job(plan), entry)) => {
                let started = entry.version.start(&plan);
                let job = started
                    .inspect_err(|error| self.set_aside(table, entry.generation, &plan.nodes, error))?;
                if let Some(worker) = job.worker() {
                    let other = self.background.worker.lock().replace(worker);
                    debug_assert!(other.is_none(), "a job that is over leaves nothing to share");
                    self.background.context.env.jobs.wake();
                }
                self.running = Some(Running { table, generation: entry.generation, nodes: plan.nodes, job });
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn work(&mut self) -> Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let outcome = running.job.step(STEP_BYTES)?;
        self.background.note_progress(STEP_BYTES as u64);
        if let Some(outcome) = outcome {
            let (table, generation, cause) = (running.table, running.generation, running.job.cause());
            if self.background.commit(Commit::Finished(Finished { table, generation, outcome }))? {
                self.background.context.metrics.jobs_done[cause as usize].add(1);
            } else {
                self.background.lose_pass(table);
            }
            self.background.versions.lock().release(table, generation, &running.nodes);
            self.failed.retain(|&id| id != table);
            self.leave();
            self.background.note_recovery(super::COMPACT);
            self.background.context.env.jobs.wake();
        }
        Ok(())
    }

    fn give_up(&mut self, error: &Error) {
        if let Some(Running { table, generation, nodes, job }) = self.leave() {
            // Removes the unfinished files.
            drop(job);
            self.failed.retain(|&id| id != table);
            self.failed.push(table);
            self.set_aside(table, generation, &nodes, error);
        }
    }

    /// Is done with the job; what nobody has taken of it is not to be helped with any more.
    fn leave(&mut self) -> Option<Running> {
        *self.background.worker.lock() = None;
        self.running.take()
    }

    /// Nodes with damaged lists, or of which a rule panics, stay busy: trying again would fail again.
    fn set_aside(&self, table: u32, generation: u64, nodes: &[NodeKey], error: &Error) {
        if error.is_lasting() {
            self.background.versions.lock().set_aside(table, generation, nodes, error);
        } else {
            self.background.versions.lock().release(table, generation, nodes);
            self.background.note_failed_compaction(table, error);
        }
    }
}

impl Machine for Compactor {
    fn step(&mut self) -> Step {
        if self.background.context.is_closing() || self.background.context.fatal().is_some() {
            return Step::Finished;
        }
        match self.advance() {
            Ok(step) if step == Step::Worked || self.running.is_some() => {
                self.background.context.health.set_compactor_is_idle(false);
                step
            }
            Ok(_) => {
                // Woken by its own wake, it would never rest.
                if !self.background.context.health.set_compactor_is_idle(true) {
                    self.background.context.env.jobs.wake();
                }
                // What failed is not wanted any more.
                self.background.note_recovery(super::COMPACT);
                Step::Idle
            }
            // Its nodes are set aside, and all else goes on.
            Err(Error::TooLong(_)) => Step::Worked,
            Err(error) => self.background.note_failure(super::COMPACT, error),
        }
    }
}
