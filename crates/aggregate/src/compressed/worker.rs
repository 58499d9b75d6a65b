//! The work behind adding: leaves with much that is new are merged, by any thread, oldest first.

use std::collections::VecDeque;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicUsize, Ordering};
use forebay_env::sync::{Arc, Mutex};
use forebay_env::{Jobs, Machine, Step};

use super::base::Base;
use super::leaves::Leaf;
use super::merge::Merger;
use super::tail::{Segment, Tail};
use crate::aggregate::Aggregate;

/// What an aggregator and its workers share.
pub(super) struct Shared<A> {
    pub(super) function: Arc<A>,
    pub(super) jobs: Jobs,
    /// Memory of chunks, and of what merges them.
    used_bytes: AtomicUsize,
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
    /// Empty segments.
    pub(super) free: Vec<Segment>,
    mergers: Vec<Merger>,
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
        let (used_bytes, inner) = (AtomicUsize::new(0), Mutex::new(Inner::default()));
        Self { function: Arc::new(function), jobs, used_bytes, inner }
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// What was in chunks of so many bytes is gone.
    pub(super) fn forget(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Merges the next leaf. `false` when there is none. What fails is never done: nobody may wait for it.
    pub(super) fn work(&self) -> Result<bool> {
        let mut inner = self.inner.lock();
        let Some(merge) = inner.queue.pop_front() else { return Ok(false) };
        let merger = inner.mergers.pop();
        inner.running += 1;
        drop(inner);
        let mut merger = merger.unwrap_or_else(|| Merger::new(self.function.state_bytes()));
        let number = merge.number;
        let merged = self.merge(merge, &mut merger);
        let mut inner = self.inner.lock();
        inner.running -= 1;
        inner.mergers.push(merger);
        let worked = match merged {
            Ok(base) => {
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

    fn merge(&self, merge: Merge, merger: &mut Merger) -> Result<Base> {
        let Merge { leaf, tail, base, .. } = merge;
        let before = merger.memory_bytes() + base.bytes();
        let segments = tail.drain(merger.raw());
        self.inner.lock().free.extend(segments);
        let merged = merger.merge(&*self.function, &leaf, base)?;
        let after = merger.memory_bytes() + merged.bytes();
        // It wraps where less is used than before.
        self.used_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        Ok(merged)
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
