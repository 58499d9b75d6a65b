//! The work behind adding: leaves with much that is new are merged, by any thread, oldest first.

use std::collections::VecDeque;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicUsize, Ordering};
use forebay_env::sync::{Arc, Mutex};
use forebay_env::{Jobs, Machine, Step};

use super::base::Base;
use super::leaves::Leaf;
use super::merge::Merger;
use super::stream::Pool;
use super::tail::Tail;
use crate::aggregate::Aggregate;

/// What an aggregator and its workers share.
pub(super) struct Shared<A> {
    pub(super) function: Arc<A>,
    pub(super) jobs: Jobs,
    pub(super) pool: Arc<Pool>,
    /// Memory of leaves' indexes, and of what merges leaves.
    index_bytes: AtomicUsize,
    scratch_bytes: AtomicUsize,
    pub(super) inner: Mutex<Inner>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// Leaves to be merged, oldest first.
    pub(super) queue: VecDeque<Merge>,
    /// How many are being merged.
    running: usize,
    /// Leaves that are merged, for whoever adds to take back.
    pub(super) done: Vec<(usize, Base)>,
    /// Each with the memory of it that is counted.
    mergers: Vec<(Merger, usize)>,
    pub(super) failed: Option<Error>,
    pub(super) closing: bool,
}

/// A leaf to be merged.
pub(super) struct Merge {
    pub(super) number: usize,
    pub(super) leaf: Leaf,
    pub(super) tail: Tail,
    pub(super) base: Base,
}

impl Inner {
    /// Whether nothing is to be merged or being merged.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.running == 0
    }
}

impl<A: Aggregate> Shared<A> {
    pub(super) fn new(function: A, jobs: Jobs) -> Self {
        let (function, pool) = (Arc::new(function), Arc::default());
        let (index_bytes, scratch_bytes) = Default::default();
        Self { function, jobs, pool, index_bytes, scratch_bytes, inner: Mutex::default() }
    }

    pub(super) fn index_bytes(&self) -> usize {
        self.index_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        self.scratch_bytes.load(Ordering::Relaxed)
    }

    /// Of a leaf's index nothing is left.
    pub(super) fn forget(&self, index_bytes: usize) {
        let before = self.index_bytes.fetch_sub(index_bytes, Ordering::Relaxed);
        debug_assert!(before >= index_bytes, "what is forgotten was counted");
    }

    /// Gives the memory that nobody uses to the allocator.
    pub(super) fn release(&self) {
        self.pool.release();
        let mergers = std::mem::take(&mut self.inner.lock().mergers);
        let bytes = mergers.iter().map(|(_, bytes)| bytes).sum();
        let before = self.scratch_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "what is released was counted");
    }

    /// Lends memory to merge with.
    pub(super) fn lend<T>(&self, user: impl FnOnce(&mut Merger) -> T) -> T {
        let merger = self.inner.lock().mergers.pop();
        let make = || (Merger::new(self.function.state_bytes(), Arc::clone(&self.pool)), 0);
        let (mut merger, before) = merger.unwrap_or_else(make);
        let outcome = user(&mut merger);
        let after = merger.memory_bytes();
        // It wraps where less is used than before.
        self.scratch_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        self.inner.lock().mergers.push((merger, after));
        outcome
    }

    /// Merges the next leaf. `false` when there is none. What fails is never done: nobody may wait for it.
    pub(super) fn work(&self) -> Result<bool> {
        let mut inner = self.inner.lock();
        let Some(merge) = inner.queue.pop_front() else { return Ok(false) };
        inner.running += 1;
        drop(inner);
        let Merge { number, leaf, tail, base } = merge;
        let before = base.index_bytes();
        let merged = self.lend(|merger| merger.merge(&*self.function, &leaf, tail, base));
        let mut inner = self.inner.lock();
        debug_assert!(inner.running > 0, "who works is counted");
        inner.running -= 1;
        let worked = match merged {
            Ok(base) => {
                // It wraps where less is used than before.
                self.index_bytes.fetch_add(base.index_bytes().wrapping_sub(before), Ordering::Relaxed);
                inner.done.push((number, base));
                Ok(true)
            }
            Err(error) => {
                inner.failed = Some(error.clone());
                Err(error)
            }
        };
        drop(inner);
        self.jobs.wake();
        worked
    }
}

/// A worker on a thread.
pub(super) struct Worker<A>(pub(super) Arc<Shared<A>>);

impl<A: Aggregate> Machine for Worker<A> {
    fn step(&mut self) -> Step {
        if self.0.inner.lock().closing {
            return Step::Finished;
        }
        match self.0.work() {
            Ok(true) => Step::Worked,
            Ok(false) => Step::Idle,
            Err(_) => Step::Finished,
        }
    }
}
