//! Deep work: whatever the tables' catalogs plan, the table with the largest debt first; and where there is
//! nothing, merges for the sake of lookups.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::limits::STEP_BYTES;
use forebay_base::{Error, Result};
use forebay_env::{Machine, Step};
use forebay_layouts::{Job, NodeKey, Planned};

use crate::engine::{Engine, TableState};
use crate::ledger::{Commit, Goal};

pub(super) struct Merger {
    engine: Arc<Engine>,
    running: Option<Running>,
}

struct Running {
    table: u32,
    node: NodeKey,
    job: Box<dyn Job>,
}

impl Merger {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, running: None }
    }

    /// Does a bit of the running job, or finds the next. `false` when there is nothing.
    fn advance(&mut self) -> Result<bool> {
        // Memory first, and between steps of a job: merges take long, and lists come meanwhile.
        if self.engine.filters_exceed() && self.engine.thin_filters() && self.running.is_none() {
            return Ok(true);
        }
        if self.running.is_none() {
            return self.find_work();
        }
        self.work().inspect_err(|error| self.give_up(error))?;
        Ok(true)
    }

    fn find_work(&mut self) -> Result<bool> {
        let state = self.engine.state();
        let compacting: BTreeSet<u32> = self.engine.compacting.lock().clone();
        let mut tables: Vec<_> = state.tables.values().collect();
        tables.sort_by_key(|table| std::cmp::Reverse(table.catalog.debt_bytes()));
        let goal = |table: &TableState| match compacting.contains(&table.id) {
            true => Goal::Compaction,
            false => Goal::Limits,
        };
        let limits = tables.iter().map(|table| (table.id, goal(table)));
        // Only once nothing else is to be done.
        let relief = tables.iter().map(|table| (table.id, Goal::Relief));
        for (table, goal) in limits.chain(relief) {
            match self.engine.plan(table, goal)? {
                Some(Planned::Edit(_)) => return Ok(true),
                Some(Planned::Job(plan)) => {
                    let node = plan.node;
                    // Planned on the newest catalog, which may be newer than the one seen above.
                    let catalog =
                        self.engine.state().tables.get(&table).map(|entry| Arc::clone(&entry.catalog));
                    let Some(catalog) = catalog else { continue };
                    let started = catalog.start(&plan);
                    let job = started.inspect_err(|error| self.set_aside(table, node, error))?;
                    self.running = Some(Running { table, node, job });
                    return Ok(true);
                }
                None if goal == Goal::Compaction => {
                    self.engine.compacting.lock().remove(&table);
                    self.engine.env.jobs.wake();
                }
                None => {}
            }
        }
        Ok(false)
    }

    fn work(&mut self) -> Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let outcome = running.job.step(STEP_BYTES)?;
        self.engine.progressed(STEP_BYTES as u64);
        if let Some(outcome) = outcome {
            let (table, cause) = (running.table, running.job.cause());
            self.engine.commit(Commit::Finished { table, outcome })?;
            self.engine.metrics.jobs_done[cause as usize].add(1);
            self.engine.release(table, running.node);
            self.running = None;
            self.engine.recovered(super::MERGE);
            self.engine.env.jobs.wake();
        }
        Ok(())
    }

    fn give_up(&mut self, error: &Error) {
        if let Some(Running { table, node, job }) = self.running.take() {
            // Removes the unfinished file.
            drop(job);
            self.set_aside(table, node, error);
        }
    }

    /// A node with damaged lists stays busy until the next open: trying again would fail again.
    fn set_aside(&self, table: u32, node: NodeKey, error: &Error) {
        if error.is_corruption() {
            self.engine.damage.lock().entry(table).or_insert_with(|| error.clone());
        } else {
            self.engine.release(table, node);
        }
    }
}

impl Machine for Merger {
    fn step(&mut self) -> Step {
        if self.engine.is_closing() || self.engine.fatal().is_some() {
            return Step::Finished;
        }
        match self.advance() {
            Ok(true) => {
                self.engine.merger_rests.store(false, Ordering::Relaxed);
                Step::Worked
            }
            Ok(false) => {
                // Woken by its own wake, it would never rest.
                if !self.engine.merger_rests.swap(true, Ordering::Relaxed) {
                    self.engine.env.jobs.wake();
                }
                // What failed is not wanted any more.
                self.engine.recovered(super::MERGE);
                Step::Idle
            }
            Err(error) => self.engine.failed(super::MERGE, error),
        }
    }
}
