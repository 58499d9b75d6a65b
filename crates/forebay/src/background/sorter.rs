//! Sorting: a sealed buffer's records are put in order, table by table, while the one before it is still
//! being written out.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_base::limits::STEP_BYTES;
use forebay_env::{Machine, Step};
use forebay_store::WriteBuffer;
use forebay_store::buffer::{Noting, SortedTable, Sorting, TableNotes};

use crate::background::Background;

/// How much of a buffer's flush its sorting is.
pub(super) const SORTED_SHARE: f64 = 0.4;

pub(super) struct Sorter {
    background: Arc<Background>,
    work: Option<Work>,
}

/// One buffer on its way.
struct Work {
    buffer: Arc<WriteBuffer>,
    /// What it has of each table is being collected.
    noting: Option<Noting>,
    waiting: VecDeque<TableNotes>,
    running: Option<Sorting>,
    done: Vec<SortedTable>,
}

impl Sorter {
    pub(super) fn new(background: Arc<Background>) -> Self {
        Self { background, work: None }
    }

    /// Takes up the oldest sealed buffer that is not sorted.
    fn begin(&self) -> Option<Work> {
        let state = self.background.versions.state();
        let buffer = Arc::clone(state.sealed.iter().rev().find(|buffer| buffer.sorted().is_none())?);
        let noting = Some(Noting::default());
        Some(Work { buffer, noting, waiting: VecDeque::new(), running: None, done: Vec::new() })
    }

    /// Goes on for about 1 MiB. `false` when there is nothing to do.
    fn advance(&mut self) -> bool {
        if self.work.is_none() {
            self.work = self.begin();
        }
        let Some(work) = &mut self.work else { return false };
        if let Some(noting) = &mut work.noting {
            let state = self.background.versions.state();
            if let Some(notes) = noting.step(&work.buffer, |table| state.order_of(table)) {
                work.waiting = notes.into();
                work.noting = None;
            }
        } else if let Some(sorting) = &mut work.running {
            if let Some(run) = sorting.step() {
                let (table, contents) = sorting.of();
                debug_assert!(run.len() as u64 <= contents.records, "no record is sorted twice");
                debug_assert!(work.done.iter().all(|sorted| sorted.table != table), "a table is sorted once");
                work.done.push(SortedTable { table, contents, run });
                work.running = None;
            } else {
                self.background.note_flushed(&work.buffer, SORTED_SHARE * sorting.progress());
            }
            self.background.note_progress(STEP_BYTES as u64);
        } else if let Some(notes) = work.waiting.pop_front() {
            // A table that was dropped takes its records with it.
            let order = self.background.versions.state().order_of(notes.table);
            work.running = order.map(|order| Sorting::new(&work.buffer, notes, order));
        } else if let Some(Work { buffer, done, .. }) = self.work.take() {
            debug_assert!(buffer.sorted().is_none(), "a buffer is sorted once");
            buffer.set_sorted(done);
            self.background.context.env.jobs.wake();
        }
        true
    }
}

impl Machine for Sorter {
    fn step(&mut self) -> Step {
        if self.background.context.is_closing() || self.background.context.fatal().is_some() {
            return Step::Finished;
        }
        if self.advance() { Step::Worked } else { Step::Idle }
    }

    fn yields(&self) -> bool {
        false
    }
}
