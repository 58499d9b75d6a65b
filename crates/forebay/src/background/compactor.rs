//! Compactions: the work that the table versions plan, the table with the largest debt first; where there is nothing,
//! merges for the sake of lookups; and where there is none of these, parts of what another compactor does.
//!
//! **Invariant:** compactors that work side by side work on nodes of their own: what one has planned is busy, under the
//! lock under which the next one plans.

use std::sync::Arc;
use std::time::Duration;

use forebay_base::{Error, Result};
use forebay_env::{Machine, Step};
use forebay_layouts::{Job, JobWorker, NodeKey, Plan};

use crate::background::planning::{Goal, NextWork};
use crate::background::{Background, Offer};
use crate::pool::Permit;
use crate::versions::{Commit, Finished, Helped, UnderWay};

pub(super) struct Compactor {
    /// From 0 on.
    number: usize,
    background: Arc<Background>,
    running: Option<Running>,
    /// What it does of another one's job. It holds the job's files, also when that is over.
    part: Option<(Box<dyn JobWorker>, UnderWay)>,
    /// Since when it waits for its turn by the rate.
    waits_since: Option<Duration>,
}

struct Running {
    table: u32,
    /// How often a compaction of it had been asked for by those for whom one was under way when this was begun.
    asked: Option<u64>,
    generation: u64,
    nodes: Vec<NodeKey>,
    job: Box<dyn Job>,
    /// What is still to be taken from the rate's bytes for it.
    left_bytes: u64,
    _under_way: UnderWay,
    /// In a pool, that it is one of few.
    _permit: Permit,
}

/// What has come of looking for something to do for any table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Work,
    Nothing,
    /// Others of the pool have their turns first.
    Later,
}

/// How soon it looks again unless it is told before, as it is: in case that whose turn it is does not come.
const LATER: Duration = Duration::from_secs(2);

/// What has come of looking for work.
enum Begun {
    Work,
    /// There is some, once others of the pool have had their turns.
    Later,
    NotNow,
    Nothing,
}

impl Compactor {
    pub(super) fn new(number: usize, background: Arc<Background>) -> Self {
        Self { number, background, running: None, part: None, waits_since: None }
    }

    /// What its failures are noted under.
    fn name(&self) -> (&'static str, usize) {
        (super::COMPACT, self.number)
    }

    /// Does a bit of the running job, or finds the next.
    fn advance(&mut self) -> Result<Step> {
        // Memory first, and between steps of a job: merges take long, and lists come meanwhile.
        if self.number == 0
            && self.background.memory.filters_exceed()
            && self.background.memory.thin_filters()
            && self.running.is_none()
        {
            return Ok(Step::Worked);
        }
        if let Some(until) = self.wait_for_rate() {
            return Ok(Step::Until(until));
        }
        if self.part.is_some() {
            self.do_part();
            return Ok(Step::Worked);
        }
        if self.running.is_none() {
            return Ok(match self.find_work()? {
                Found::Work => Step::Worked,
                _ if self.find_part() => {
                    // A turn would be waited for in vain meanwhile, unless another compactor waits, too.
                    self.background.context.limit.decline_merge(self.number);
                    Step::Worked
                }
                Found::Nothing => Step::Idle,
                Found::Later => Step::Until(self.background.context.env.clock.now() + LATER),
            });
        }
        // Asked before, not after: work that wakes whoever waits for it would wake this machine, too.
        if self.running.as_ref().is_some_and(|running| running.job.waits()) {
            return Ok(Step::Idle);
        }
        self.work().inspect_err(|error| self.give_up(error))?;
        Ok(Step::Worked)
    }

    /// Until when it is to leave its work alone, for others have taken what there is of the rate.
    fn wait_for_rate(&mut self) -> Option<Duration> {
        let context = &self.background.context;
        let has_work =
            self.part.is_some() || self.running.as_ref().is_some_and(|running| !running.job.waits());
        // Who is told that it need not wait is to have a step.
        let wait = if has_work { context.limit.rate().wait() } else { None };
        if wait.is_none() && self.waits_since.is_none() {
            return None;
        }
        let now = context.env.clock.now();
        let since = self.waits_since.replace(now).unwrap_or(now);
        context.metrics.merge_wait_nanoseconds.add(now.saturating_sub(since).as_nanos() as u64);
        if wait.is_none() {
            self.waits_since = None;
        }
        wait.map(|wait| now + wait)
    }

    /// Begins what there is to do. What one table fails at keeps none of the others waiting.
    fn find_work(&mut self) -> Result<Found> {
        let compacting = self.background.compactions();
        let (mut found, mut failure) = (Found::Nothing, None);
        for (table, goal) in self.background.due(&compacting) {
            let asked = compacting.get(&table).copied();
            match self.begin(table, goal, asked) {
                Ok(Begun::Work) => return Ok(Found::Work),
                Ok(Begun::Later) => found = Found::Later,
                Ok(Begun::NotNow) => {}
                Ok(Begun::Nothing) => {
                    let asked = asked.filter(|_| goal == Goal::FullCompaction);
                    asked.into_iter().for_each(|asked| self.background.found_compact(table, asked));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if found == Found::Nothing {
            self.background.context.limit.decline_merge(self.number);
        }
        failure.map_or(Ok(found), Err)
    }

    /// Begins what there is to do for a table, of which a compaction was asked for so often.
    fn begin(&mut self, id: u32, goal: Goal, asked: Option<u64>) -> Result<Begun> {
        debug_assert!(self.running.is_none() && self.part.is_none(), "one job is done after the other");
        let planned = self.background.plan(self.number, id, goal);
        // An edit that moves no data is made as it is planned. Nothing is set aside for it.
        let next = planned.inspect_err(|error| self.background.note_failed_compaction(id, asked, error))?;
        let (plan, table, under_way, permit) = match next {
            NextWork::Job { plan, table, under_way, permit } => (plan, table, under_way, permit),
            NextWork::Later => return Ok(Begun::Later),
            NextWork::Edited => return Ok(Begun::Work),
            NextWork::NotNow => return Ok(Begun::NotNow),
            NextWork::Nothing => return Ok(Begun::Nothing),
        };
        let job = table
            .version
            .start(&plan)
            .inspect_err(|error| self.set_aside(id, asked, table.generation, &plan.nodes, error))?;
        if let Some(worker) = job.worker() {
            let other = self.background.workers.lock().insert(self.number, (worker, Helped::of(&table)));
            debug_assert!(other.is_none(), "a job that is over leaves nothing to share");
            self.background.context.env.jobs.wake();
        }
        let generation = table.generation;
        let Plan { nodes, bytes: left_bytes, .. } = plan;
        let running = Running {
            table: id,
            asked,
            generation,
            nodes,
            job,
            left_bytes,
            _under_way: under_way,
            _permit: permit,
        };
        self.running = Some(running);
        Ok(Begun::Work)
    }

    /// Takes up parts of another one's job, if there are any.
    fn find_part(&mut self) -> bool {
        let join = |(worker, of): &Offer| Some((worker.beside()?, of.begin()));
        self.part = self.background.workers.lock().values().find_map(join);
        self.part.is_some()
    }

    fn do_part(&mut self) {
        let Some((worker, _)) = &mut self.part else { return };
        let step_bytes = self.background.context.limit.rate().step_bytes();
        if worker.step(step_bytes) {
            self.background.take_from_rate(step_bytes as u64);
            self.background.note_progress(step_bytes as u64);
        } else {
            self.part = None;
            // The job may have waited for this.
            self.background.context.env.jobs.wake();
        }
    }

    fn work(&mut self) -> Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let step_bytes = self.background.context.limit.rate().step_bytes();
        let bytes = running.left_bytes.min(step_bytes as u64);
        running.left_bytes -= bytes;
        self.background.take_from_rate(bytes);
        let outcome = running.job.step(step_bytes)?;
        self.background.note_progress(step_bytes as u64);
        if let Some(outcome) = outcome {
            let (table, generation, cause) = (running.table, running.generation, running.job.cause());
            if self.background.commit(Commit::Finished(Finished { table, generation, outcome }))? {
                self.background.context.metrics.jobs_done[cause as usize].add(1);
            } else {
                self.background.lose_pass(table);
            }
            self.background.versions.lock().release(table, generation, &running.nodes);
            self.background.failed.lock().retain(|&id| id != table);
            self.leave();
            self.background.note_recovery(self.name());
            self.background.context.env.jobs.wake();
        }
        Ok(())
    }

    fn give_up(&mut self, error: &Error) {
        if let Some(Running { table, asked, generation, nodes, job, .. }) = self.leave() {
            // Removes the unfinished files.
            drop(job);
            let mut failed = self.background.failed.lock();
            failed.retain(|&id| id != table);
            failed.push(table);
            drop(failed);
            self.set_aside(table, asked, generation, &nodes, error);
        }
    }

    /// Is done with the job; what nobody has taken of it is not to be helped with any more.
    fn leave(&mut self) -> Option<Running> {
        self.background.workers.lock().remove(&self.number);
        self.running.take()
    }

    /// Nodes with damaged lists, or of which a rule panics, stay busy: trying again would fail again.
    fn set_aside(&self, table: u32, asked: Option<u64>, generation: u64, nodes: &[NodeKey], error: &Error) {
        if error.is_lasting() {
            self.background.versions.lock().set_aside(table, generation, nodes, error);
        } else {
            self.background.versions.lock().release(table, generation, nodes);
            self.background.note_failed_compaction(table, asked, error);
        }
    }
}

impl Machine for Compactor {
    fn step(&mut self) -> Step {
        if self.background.context.is_closing() || self.background.context.fatal().is_some() {
            self.background.context.limit.decline_merges();
            return Step::Finished;
        }
        if let Some(rests) = self.background.rests(self.name()) {
            return rests;
        }
        let advanced = self.advance();
        let health = &self.background.context.health;
        match advanced {
            Ok(step) if step != Step::Idle || self.running.is_some() => {
                health.set_idle(self.number, false);
                step
            }
            Ok(_) => {
                // Woken by its own wake, it would never rest.
                if !health.set_idle(self.number, true) {
                    self.background.context.env.jobs.wake();
                }
                // What failed is not wanted any more.
                self.background.note_recovery(self.name());
                Step::Idle
            }
            // Its nodes are set aside, and all else goes on.
            Err(Error::TooLong(_)) => {
                self.background.context.env.jobs.wake();
                Step::Worked
            }
            Err(error) => self.background.note_failure(self.name(), error),
        }
    }
}
