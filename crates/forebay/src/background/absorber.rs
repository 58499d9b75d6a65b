//! Root spills: a sealed buffer's records, table by table, become one list file each; then one edit makes
//! them part of all their tables at once and frees the log segment.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::Result;
use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_layouts::{Job, Outcome};
use forebay_store::WriteBuffer;
use forebay_store::buffer::Contents;
use forebay_store::log::frame;

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
    running: Option<(u32, Box<dyn Job>)>,
    outcomes: Vec<(u32, Outcome)>,
}

impl Absorber {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, work: None }
    }

    /// Takes up the oldest sealed buffer.
    fn begin(&self) -> Option<Absorption> {
        let state = self.engine.state();
        let buffer = Arc::clone(state.sealed.last()?);
        let waiting = buffer.contents(|table| state.order_of(table)).into_iter().collect();
        let records: u64 = frame::records_of(buffer.bytes());
        let last_sequence = self.engine.ledger.lock().log_low.1 + records;
        Some(Absorption { buffer, last_sequence, waiting, running: None, outcomes: Vec::new() })
    }

    fn advance(&mut self) -> Result<()> {
        let Some(work) = &mut self.work else { return Ok(()) };
        if let Some((table, job)) = &mut work.running {
            if let Some(outcome) = job.step(STEP_BYTES)? {
                work.outcomes.push((*table, outcome));
                work.running = None;
            }
            self.engine.progressed(STEP_BYTES as u64);
        } else if let Some((table, contents)) = work.waiting.pop_front() {
            // A table that was dropped takes its records with it.
            if let Some(entry) = self.engine.state().tables.get(&table) {
                let run = work.buffer.sort(table, entry.order, &contents);
                work.running = Some((table, entry.catalog.absorb(&work.buffer, run, &contents)?));
            }
        } else if let Some(Absorption { buffer, last_sequence, outcomes, .. }) = self.work.take() {
            let segment = buffer.segment();
            self.engine.commit(Commit::Absorbed { buffer, last_sequence, outcomes })?;
            self.engine.retire_segment(segment);
            self.engine.recovered(super::ABSORB);
            self.engine.env.jobs.wake();
        }
        Ok(())
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
                self.work = None;
                self.engine.failed(super::ABSORB, error)
            }
        }
    }
}

impl Engine {
    /// Keeps one retired log segment for recycling and removes the others.
    fn retire_segment(&self, segment: u64) {
        let surplus = self.spare_segment.lock().replace(segment);
        if let Some(surplus) = surplus {
            // What cannot be removed now is removed at the next open.
            let _ = self.env.fs.remove(&forebay_store::names::log(&self.dir, surplus));
        }
    }
}
