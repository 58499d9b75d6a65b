//! Root spills: a sealed and sorted buffer's records, table by table, become one list file each; then one
//! edit makes them part of all their tables at once and frees the log segment.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_base::Result;
use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_layouts::{Job, Outcome};
use forebay_store::buffer::SortedTable;
use forebay_store::log::frame;
use forebay_store::{Cause, WriteBuffer};

use crate::engine::Engine;
use crate::ledger::Commit;

use super::sorter::SORTED_SHARE;

pub(super) struct Absorber {
    engine: Arc<Engine>,
    work: Option<Absorption>,
}

/// One buffer on its way.
struct Absorption {
    buffer: Arc<WriteBuffer>,
    last_sequence: u64,
    waiting: VecDeque<SortedTable>,
    writing: Option<(u32, Box<dyn Job>)>,
    outcomes: Vec<(u32, Outcome)>,
    bytes: u64,
    done_bytes: u64,
}

impl Absorber {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, work: None }
    }

    /// Takes up the oldest sealed buffer, if it is sorted and the merge rules of all its tables are known.
    fn begin(&self) -> Option<Absorption> {
        let state = self.engine.state();
        let buffer = Arc::clone(state.sealed.last()?);
        let waiting: VecDeque<_> = buffer.sorted()?.iter().cloned().collect();
        let tables = waiting.iter().filter_map(|sorted| state.tables.get(&sorted.table));
        if let Some(error) = tables.filter_map(|table| table.rule().err()).next() {
            self.engine.waits(super::ABSORB, error);
            return None;
        }
        let last_sequence = self.engine.ledger.lock().log_low.1 + frame::records_of(buffer.bytes());
        let bytes = waiting.iter().map(|sorted| sorted.contents.bytes).sum();
        let outcomes = Vec::new();
        Some(Absorption { buffer, last_sequence, waiting, writing: None, outcomes, bytes, done_bytes: 0 })
    }

    fn advance(&mut self) -> Result<()> {
        let Some(work) = &mut self.work else { return Ok(()) };
        if work.writing.is_none() && work.waiting.is_empty() {
            return self.finish();
        }
        work.advance(&self.engine)?;
        let share = work.done_bytes as f64 / work.bytes.max(1) as f64;
        self.engine.absorbed(&work.buffer, SORTED_SHARE + (1.0 - SORTED_SHARE) * share.min(1.0));
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
        let next_is_sorted = self.engine.state().sealed.last().is_some_and(|next| next.sorted().is_some());
        let share: f64 = if next_is_sorted { SORTED_SHARE } else { 0.0 };
        self.engine.absorbed_share.store(share.to_bits(), Ordering::Relaxed);
        self.engine.recovered(super::ABSORB);
        self.engine.env.jobs.wake();
        Ok(())
    }
}

impl Absorption {
    fn advance(&mut self, engine: &Engine) -> Result<()> {
        if let Some((table, mut job)) = self.writing.take() {
            self.done_bytes += STEP_BYTES as u64;
            match job.step(STEP_BYTES)? {
                Some(outcome) => self.outcomes.push((table, outcome)),
                None => self.writing = Some((table, job)),
            }
        } else if let Some(SortedTable { table, contents, run }) = self.waiting.pop_front()
            // A table that was dropped takes its records with it.
            && let Some(entry) = engine.state().tables.get(&table)
        {
            self.writing = Some((table, entry.catalog.absorb(&self.buffer, run, &contents)?));
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
    /// Notes how much of a buffer is absorbed, from 0 to 1, if it is the one that writers wait for.
    pub(super) fn absorbed(&self, buffer: &WriteBuffer, share: f64) {
        if self.state().sealed.last().is_some_and(|oldest| oldest.segment() == buffer.segment()) {
            self.absorbed_share.store(share.to_bits(), Ordering::Relaxed);
        }
    }

    /// Tells that what absorption may have waited for is there: a rule, or a table's end.
    pub(crate) fn absorb_again(&self) {
        self.recovered(super::ABSORB);
        self.env.jobs.wake();
    }

    /// Keeps one retired log segment for recycling and removes the others.
    pub(crate) fn retire_segment(&self, segment: u64) {
        let surplus = self.spare_segment.lock().replace(segment);
        if let Some(surplus) = surplus {
            self.lists.trash.remove(&*self.env.fs, forebay_store::names::log(&self.dir, surplus));
        }
    }
}
