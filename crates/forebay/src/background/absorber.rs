//! Root spills: a sealed buffer's records, table by table, become one list file each; then one edit makes
//! them part of all their tables at once and frees the log segment.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::Result;
use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_layouts::{Job, Outcome};
use forebay_store::buffer::{Contents, Sorting};
use forebay_store::log::frame;
use forebay_store::{Cause, WriteBuffer};

use crate::engine::Engine;
use crate::ledger::Commit;

pub(super) struct Absorber {
    engine: Arc<Engine>,
    work: Option<Absorption>,
}

/// One buffer on its way.
struct Absorption {
    buffer: Arc<WriteBuffer>,
    last_sequence: u64,
    waiting: VecDeque<(u32, Contents)>,
    running: Option<Running>,
    outcomes: Vec<(u32, Outcome)>,
    /// Bytes of records, each counted once to be sorted and twice to be written.
    work_bytes: u64,
    done_bytes: u64,
}

/// One table's part.
enum Running {
    Sorting { table: u32, sorting: Sorting, contents: Contents },
    Writing { table: u32, job: Box<dyn Job>, left_bytes: u64 },
}

impl Absorber {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, work: None }
    }

    /// Takes up the oldest sealed buffer.
    fn begin(&self) -> Option<Absorption> {
        let state = self.engine.state();
        let buffer = Arc::clone(state.sealed.last()?);
        let waiting: VecDeque<_> = buffer.contents(|table| state.order_of(table)).into_iter().collect();
        let last_sequence = self.engine.ledger.lock().log_low.1 + frame::records_of(buffer.bytes());
        let work_bytes = waiting.iter().map(|(_, contents)| 3 * contents.bytes).sum();
        Some(Absorption {
            buffer,
            last_sequence,
            waiting,
            running: None,
            outcomes: Vec::new(),
            work_bytes,
            done_bytes: 0,
        })
    }

    fn advance(&mut self) -> Result<()> {
        let Some(work) = &mut self.work else { return Ok(()) };
        if work.running.is_none() && work.waiting.is_empty() {
            return self.finish();
        }
        work.advance(&self.engine)?;
        let running = work.running.as_ref().map_or(0, Running::done_bytes);
        let share = (work.done_bytes + running) as f64 / work.work_bytes.max(1) as f64;
        self.engine.absorbed_share.store(share.min(1.0).to_bits(), Ordering::Relaxed);
        self.engine.progressed(STEP_BYTES as u64);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let Some(Absorption { buffer, last_sequence, outcomes, .. }) = self.work.take() else {
            return Ok(());
        };
        let segment = buffer.segment();
        self.engine.commit(Commit::Absorbed { buffer, last_sequence, outcomes })?;
        self.engine.metrics.jobs_done[Cause::RootSpill as usize].add(1);
        self.engine.retire_segment(segment);
        self.engine.absorbed_share.store(0, Ordering::Relaxed);
        self.engine.recovered(super::ABSORB);
        self.engine.env.jobs.wake();
        Ok(())
    }
}

impl Absorption {
    fn advance(&mut self, engine: &Engine) -> Result<()> {
        match self.running.take() {
            None => {
                let Some((table, contents)) = self.waiting.pop_front() else { return Ok(()) };
                // A table that was dropped takes its records with it.
                self.running = engine.state().order_of(table).map(|order| {
                    let sorting = Sorting::new(&self.buffer, table, order, &contents);
                    Running::Sorting { table, sorting, contents }
                });
            }
            Some(Running::Sorting { table, mut sorting, contents }) => match sorting.step() {
                None => self.running = Some(Running::Sorting { table, sorting, contents }),
                Some(run) => {
                    self.done_bytes += contents.bytes;
                    if let Some(entry) = engine.state().tables.get(&table) {
                        let job = entry.catalog.absorb(&self.buffer, run, &contents)?;
                        self.running = Some(Running::Writing { table, job, left_bytes: 2 * contents.bytes });
                    }
                }
            },
            Some(Running::Writing { table, mut job, left_bytes }) => match job.step(STEP_BYTES)? {
                Some(outcome) => {
                    self.done_bytes += left_bytes;
                    self.outcomes.push((table, outcome));
                }
                None => {
                    let stepped = left_bytes.min(2 * STEP_BYTES as u64);
                    self.done_bytes += stepped;
                    self.running = Some(Running::Writing { table, job, left_bytes: left_bytes - stepped });
                }
            },
        }
        Ok(())
    }
}

impl Running {
    fn done_bytes(&self) -> u64 {
        match self {
            Self::Sorting { sorting, contents, .. } => (sorting.progress() * contents.bytes as f64) as u64,
            Self::Writing { .. } => 0,
        }
    }
}

impl Machine for Absorber {
    fn step(&mut self) -> Step {
        if self.engine.is_closing() || self.engine.fatal().is_some() {
            return Step::Finished;
        }
        if self.work.is_none() {
            self.work = self.begin();
            if self.work.is_none() {
                return Step::Idle;
            }
        }
        match self.advance() {
            Ok(()) => Step::Worked,
            Err(error) => {
                // Lists that are whole go too, or each new try would fill the disk with more of them.
                let outcomes = self.work.take().map(|work| work.outcomes).unwrap_or_default();
                outcomes
                    .iter()
                    .filter_map(|(_, outcome)| outcome.fragment())
                    .for_each(|list| list.0.retire());
                self.engine.failed(super::ABSORB, error)
            }
        }
    }
}

impl Engine {
    /// Keeps one retired log segment for recycling and removes the others.
    pub(crate) fn retire_segment(&self, segment: u64) {
        let surplus = self.spare_segment.lock().replace(segment);
        if let Some(surplus) = surplus {
            self.lists.trash.remove(&*self.env.fs, forebay_store::names::log(&self.dir, surplus));
        }
    }
}
