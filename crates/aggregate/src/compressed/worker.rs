//! What all threads of an aggregator share, and the work behind adding: leaves with much that is new are merged, by any
//! thread, oldest first.

use std::collections::VecDeque;

use forebay_base::{Error, Result};
use forebay_env::sync::atomic::{AtomicUsize, Ordering};
use forebay_env::sync::{Arc, Mutex, MutexGuard, Rank};
use forebay_env::{Jobs, Machine, Step};

use super::base::Base;
use super::hashing::Hashing;
use super::leaves::Leaf;
use super::merge::Merger;
use super::options::{AggregatorOptions, QUEUE_PER_WORKER, Sizes};
use super::room::Room;
use super::stream::Pool;
use super::tail::Tail;
use crate::aggregate::Aggregate;
use crate::stages::Stages;

/// What an aggregator and its workers share.
pub(super) struct Shared<A> {
    pub(super) function: Arc<A>,
    pub(super) jobs: Jobs,
    pub(super) stages: Option<Arc<Stages>>,
    pub(super) pool: Arc<Pool>,
    pub(super) sizes: Sizes,
    pub(super) hashing: Hashing,
    pub(super) state_bytes_max: usize,
    pub(super) room: Room,
    /// How many leaves may wait to be merged before those who add work too.
    queue_max: usize,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    /// Leaves to be merged, oldest first; nothing in place of one that is being read.
    queue: VecDeque<Option<Merge>>,
    /// The tickets of those that are being merged.
    running: Vec<u64>,
    /// How many were ever to be merged.
    submitted: u64,
    /// Of each tree the leaves that are merged, to be taken back.
    done: Vec<Vec<(usize, Base)>>,
    /// Each with the memory of it that is counted.
    mergers: Vec<(Merger, usize)>,
    failed: Option<Error>,
    closing: bool,
}

/// A leaf to be merged.
pub(super) struct Merge {
    pub(super) tree: usize,
    pub(super) number: usize,
    pub(super) leaf: Leaf,
    pub(super) tail: Tail,
    pub(super) base: Base,
}

impl Inner {
    /// Whether of the leaves up to this ticket none is to be merged or being merged.
    fn is_done(&self, ticket: u64) -> bool {
        // The queue's tickets end with the last one.
        let first = self.submitted - self.queue.len() as u64 + 1;
        first > ticket && self.running.iter().all(|&running| running > ticket)
    }

    /// The place of this ticket's leaf, while nobody has begun to merge it.
    fn queued(&mut self, ticket: u64) -> Option<&mut Option<Merge>> {
        let first = self.submitted - self.queue.len() as u64 + 1;
        self.queue.get_mut(usize::try_from(ticket.checked_sub(first)?).ok()?)
    }

    /// Whether this ticket's leaf can be read, here or where it is merged to.
    fn is_readable(&self, ticket: u64) -> bool {
        let first = self.submitted - self.queue.len() as u64 + 1;
        let place = ticket.checked_sub(first).and_then(|place| self.queue.get(usize::try_from(place).ok()?));
        place.map_or_else(|| self.is_done(ticket), Option::is_some)
    }

    /// Whether the oldest leaf can be merged.
    fn has_work(&self) -> bool {
        self.queue.front().is_some_and(Option::is_some)
    }
}

/// A merge on its way. Where the function panics amid it, its leaf is lost, and nobody may wait for it.
struct Working<'s, A> {
    shared: &'s Shared<A>,
    ticket: u64,
}

impl<A> Drop for Working<'_, A> {
    fn drop(&mut self) {
        let mut inner = self.shared.inner.lock();
        inner.running.retain(|&running| running != self.ticket);
        let panicked = "an aggregation function panicked while groups were merged; they are lost";
        inner.failed = Some(Error::Panicked(panicked.into()));
        drop(inner);
        self.shared.jobs.wake();
    }
}

/// A leaf that waits to be merged, and is read meanwhile. It has its place again whatever becomes of that.
struct Reading<'s, A> {
    shared: &'s Shared<A>,
    ticket: u64,
    merge: Option<Merge>,
}

impl<A> Drop for Reading<'_, A> {
    fn drop(&mut self) {
        if let Some(place) = self.shared.inner.lock().queued(self.ticket) {
            debug_assert!(place.is_none(), "its place is kept");
            *place = self.merge.take();
        }
        self.shared.jobs.wake();
    }
}

/// Memory that is counted as long as this lives.
struct Counted<'c> {
    counter: &'c AtomicUsize,
    bytes: usize,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        recount(self.counter, self.bytes, 0);
    }
}

impl<A: Aggregate> Shared<A> {
    pub(super) fn new(function: A, jobs: Jobs, sizes: Sizes, options: &AggregatorOptions) -> Self {
        let inner = Inner {
            queue: VecDeque::new(),
            running: Vec::new(),
            submitted: 0,
            done: (0..1 << sizes.shard_bits).map(|_| Vec::new()).collect(),
            mergers: Vec::new(),
            failed: None,
            closing: false,
        };
        Self {
            function: Arc::new(function),
            jobs,
            stages: options.stages.clone(),
            pool: Arc::default(),
            sizes,
            hashing: options.hashing,
            state_bytes_max: options.state_bytes_max,
            room: Room { memory_max: options.memory_limit_bytes, ..Room::default() },
            queue_max: QUEUE_PER_WORKER * options.threads.saturating_sub(1),
            inner: Mutex::ranked(Rank::Leaf, inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Reads the leaf of this ticket, which nobody merges meanwhile; `None` where somebody has begun to. Nobody else is
    /// kept: no lock is held.
    pub(super) fn read_queued<T>(&self, ticket: u64, read: impl FnOnce(&Merge) -> T) -> Option<T> {
        let merge = self.inner().queued(ticket)?.take()?;
        let reading = Reading { shared: self, ticket, merge: Some(merge) };
        reading.merge.as_ref().map(read)
    }

    /// The number of the tree that a hash belongs to.
    #[inline]
    pub(super) fn tree_of(&self, hash: u64) -> usize {
        hash.checked_shr(64 - self.sizes.shard_bits).unwrap_or(0) as usize
    }

    /// Ends the workers.
    pub(super) fn close(&self) {
        self.inner().closing = true;
        self.jobs.wake();
    }

    /// Gives the memory that nobody uses to the allocator.
    pub(super) fn release(&self) {
        self.pool.release();
        let mergers = std::mem::take(&mut self.inner().mergers);
        let bytes = mergers.iter().map(|(_, bytes)| bytes).sum();
        let before = self.room.scratch_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "what is released was counted");
    }

    /// Lends memory to merge with.
    pub(super) fn lend<T>(&self, user: impl FnOnce(&mut Merger) -> T) -> T {
        let (mut merger, bytes) = self.take_merger();
        // Where the function panics, the memory goes.
        let counted = Counted { counter: &self.room.scratch_bytes, bytes };
        let outcome = user(&mut merger);
        std::mem::forget(counted);
        self.give_back(merger, bytes);
        outcome
    }

    /// Memory to merge with, and how much of it is counted.
    pub(super) fn take_merger(&self) -> (Merger, usize) {
        let merger = self.inner().mergers.pop();
        merger.unwrap_or_else(|| {
            let (state_bytes, pool) = (self.function.state_bytes(), Arc::clone(&self.pool));
            let stages = self.stages.clone();
            (Merger::new(state_bytes, self.hashing, self.state_bytes_max, pool, stages), 0)
        })
    }

    /// Takes back memory of which so much is counted, and in which nothing is left to be merged.
    pub(super) fn give_back(&self, mut merger: Merger, counted_bytes: usize) {
        self.room.merged.fetch_add(merger.take_merged(), Ordering::Relaxed);
        let bytes = merger.memory_bytes();
        recount(&self.room.scratch_bytes, counted_bytes, bytes);
        self.inner().mergers.push((merger, bytes));
    }

    /// Has a leaf merged. Returns its ticket.
    pub(super) fn submit(&self, merge: Merge) -> u64 {
        debug_assert!(merge.tail.bytes() > 0, "there is something to merge");
        let mut inner = self.inner();
        inner.queue.push_back(Some(merge));
        inner.submitted += 1;
        let ticket = inner.submitted;
        drop(inner);
        self.jobs.wake();
        ticket
    }

    /// The ticket of the last leaf that was to be merged.
    pub(super) fn last_ticket(&self) -> u64 {
        self.inner().submitted
    }

    /// A tree's leaves that are merged, each once.
    pub(super) fn take_done(&self, tree: usize) -> Vec<(usize, Base)> {
        std::mem::take(&mut self.inner().done[tree])
    }

    /// Merges the next leaf. `false` when there is none. What fails is never done: nobody may wait for it.
    fn work(&self) -> Result<bool> {
        let mut inner = self.inner();
        if !inner.has_work() {
            return Ok(false);
        }
        let ticket = inner.submitted - inner.queue.len() as u64 + 1;
        let Some(merge) = inner.queue.pop_front().flatten() else { return Ok(false) };
        inner.running.push(ticket);
        drop(inner);
        let Merge { tree, number, leaf, tail, base } = merge;
        let before = base.index_bytes();
        let working = Working { shared: self, ticket };
        let merged = self.lend(|merger| merger.merge(&*self.function, &leaf, tail, base));
        std::mem::forget(working);
        let mut inner = self.inner();
        debug_assert!(inner.running.contains(&ticket), "who works is counted");
        inner.running.retain(|&running| running != ticket);
        let worked = match merged {
            Ok(base) => {
                recount(&self.room.index_bytes, before, base.index_bytes());
                inner.done[tree].push((number, base));
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

    /// Works while too many leaves wait to be merged.
    pub(super) fn relieve(&self) -> Result<()> {
        self.wait(|inner| inner.queue.len() <= self.queue_max)
    }

    /// Works until the leaves up to this ticket are merged. Whoever calls it holds no lock that a worker takes.
    pub(super) fn wait_for(&self, ticket: u64) -> Result<()> {
        self.wait(|inner| inner.is_done(ticket))
    }

    /// Waits until the leaf of this ticket, which somebody else merges or reads, can be read. Who reads does not merge
    /// others meanwhile: it would be the later.
    pub(super) fn wait_to_read(&self, ticket: u64) -> Result<()> {
        let ready = |inner: &Inner| inner.is_readable(ticket);
        while !self.is_ready(ready)? {
            self.wait_until(ready);
        }
        Ok(())
    }

    /// Works beside the workers until this comes true; waits only while there is nothing to do.
    fn wait(&self, ready: impl Fn(&Inner) -> bool) -> Result<()> {
        while !self.is_ready(&ready)? {
            if !self.work()? {
                self.wait_until(|inner| inner.has_work() || ready(inner));
            }
        }
        Ok(())
    }

    fn is_ready(&self, ready: impl Fn(&Inner) -> bool) -> Result<bool> {
        if let Some(panicked) = self.jobs.panicked() {
            return Err(Error::Poisoned(panicked));
        }
        let inner = self.inner();
        inner.failed.as_ref().map_or_else(|| Ok(ready(&inner)), |error| Err(error.clone()))
    }

    fn wait_until(&self, ready: impl Fn(&Inner) -> bool) {
        self.jobs.wait(&mut || {
            let has_panicked = self.jobs.panicked().is_some();
            let inner = self.inner();
            inner.failed.is_some() || has_panicked || ready(&inner)
        });
    }
}

/// Counts other bytes for something than before.
pub(super) fn recount(counter: &AtomicUsize, before: usize, after: usize) {
    // It wraps where less is used than before.
    counter.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
}

/// A worker on a thread.
pub(super) struct Worker<A>(pub(super) Arc<Shared<A>>);

impl<A: Aggregate> Machine for Worker<A> {
    fn step(&mut self) -> Step {
        if self.0.inner().closing {
            return Step::Finished;
        }
        match self.0.work() {
            Ok(true) => Step::Worked,
            Ok(false) => Step::Idle,
            Err(_) => Step::Finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use forebay_env::Env;

    use super::super::CompressedAggregator;
    use super::super::stream::SEGMENT_BYTES;
    use super::*;
    use crate::Aggregator;
    use crate::functions::Distinct;

    /// What a panic drops counted on as memory in use, and a leaf that was read had no place any more.
    #[test]
    fn a_panic_keeps_no_memory_and_no_leaf() -> Result<()> {
        let options = AggregatorOptions::default().memory_limit(16 << 20).jobs(Env::memory(1).jobs);
        let mut texts = CompressedAggregator::new(Distinct, options)?;
        Aggregator::add(&mut texts, b"key", b"text")?;
        assert!(texts.get(b"key")?.is_some());
        let shared = &texts.shared;
        let counted = || shared.room.scratch_bytes.load(Ordering::Relaxed);
        assert!(counted() > 0, "who read has memory to do so");
        let lent = catch_unwind(AssertUnwindSafe(|| shared.lend(|_| panic!("no luck"))));
        assert!(lent.is_err() && counted() == 0, "{} bytes", counted());
        texts.trees[0].0.lock().submit_next(0, shared);
        let ticket = shared.last_ticket();
        let read = catch_unwind(AssertUnwindSafe(|| shared.read_queued(ticket, |_| panic!("no luck"))));
        assert!(read.is_err() && shared.read_queued(ticket, |_| ()).is_some(), "it waits to be merged");
        assert!(texts.get(b"key")?.is_some());
        Ok(())
    }

    /// Whoever looks for a group elsewhere is not kept by it.
    #[test]
    fn a_merge_that_failed_is_told_to_all_who_come_after() -> Result<()> {
        for gathers in [false, true] {
            let options = AggregatorOptions::default().memory_limit(16 << 20).threads(2);
            let mut texts = CompressedAggregator::new(Distinct, options.jobs(Env::memory(1).jobs))?;
            for key in 0..1000_u64 {
                Aggregator::add(&mut texts, &key.to_le_bytes(), b"text")?;
            }
            texts.finalize()?;
            texts.shared.room.gathers.store(gathers, Ordering::Relaxed);
            texts.shared.inner().failed = Some(Error::invalid("no luck"));
            for _ in 0..2 {
                assert!(texts.get(&7_u64.to_le_bytes())?.is_some());
                let told = [texts.finalize(), texts.for_each(&mut |_, _| Ok(())), texts.keys().map(drop)];
                for error in told.map(Result::err) {
                    assert!(error.is_some_and(|error| error.to_string().contains("no luck")), "{gathers}");
                }
            }
            let mut added = (0..SEGMENT_BYTES as u64).map(|key| texts.add(&key.to_le_bytes(), b"text"));
            assert!(added.any(|added| added.is_err()), "as soon as a segment is full");
        }
        Ok(())
    }

    /// Whoever read a leaf that waits held the lock that all who add and merge take.
    #[test]
    fn nobody_is_kept_while_a_leaf_is_read() -> Result<()> {
        let options = AggregatorOptions::default().memory_limit(16 << 20).jobs(Env::memory(1).jobs);
        let mut texts = CompressedAggregator::new(Distinct, options)?;
        Aggregator::add(&mut texts, b"key", b"text")?;
        let shared = &texts.shared;
        texts.trees[0].0.lock().submit_next(0, shared);
        let read = shared.read_queued(shared.last_ticket(), |merge| {
            assert!(merge.tail.bytes() > 0, "it is there");
            assert!(shared.inner.try_lock().is_some(), "no lock is held");
            assert_eq!(shared.work().ok(), Some(false), "nobody merges it meanwhile");
        });
        assert!(read.is_some(), "it waits to be merged");
        assert!(texts.get(b"key")?.is_some());
        Ok(())
    }
}
