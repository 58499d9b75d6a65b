//! What adding does to leaves: it has full ones merged, takes them back, splits those that have grown too large, and
//! keeps the memory within its limit.

use forebay_base::hash::{key_hash, mix};
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;

use super::CompressedAggregator;
use super::leaves::SEED;
use super::options::{QUEUE_PER_WORKER, SLACK, TAIL_RATIO};
use super::stream::{SEGMENT_BYTES, SEGMENT_ENTRY_BYTES};
use super::worker::{Inner, Merge};
use crate::aggregate::Aggregate;
use crate::aggregator::over_limit;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Appends where another segment is needed; sees to the leaf first if its buffer is full, and to memory if that is
    /// short.
    #[inline(never)]
    pub(super) fn append_slowly(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        let mut is_merged = false;
        loop {
            self.take_back();
            let number = self.leaves.of(hash);
            let holder = &self.leaves.holders[number];
            let is_due = holder.tail.bytes() >= holder.tail_bytes_max;
            let missing = holder.tail.missing(key, state);
            if is_due && holder.is_merged {
                self.wait(|inner| !inner.done.is_empty())?;
            } else if is_due {
                self.submit(number)?;
            } else if self.has_room(missing) || self.is_finishing && is_merged {
                self.append_over(number, key, state);
                return Ok(());
            } else if self.is_finishing {
                // What was taken is finalised, whatever it takes.
                self.merge_all()?;
                is_merged = true;
            } else if !self.make_room(missing)? {
                return self.sort(key, state);
            }
        }
    }

    /// Appends to a leaf, over as many segments as it takes.
    fn append_over(&mut self, number: usize, key: &[u8], state: &[u8]) {
        let Self { leaves, shared, .. } = self;
        leaves.holders[number].tail.append_over(key, state, || shared.pool.take());
    }

    /// Whether buffers may take this many segments: beside all that other parts and merges may take meanwhile.
    fn has_room(&self, segments: usize) -> bool {
        let segment_bytes = (self.shared.pool.used() + segments) * SEGMENT_ENTRY_BYTES;
        let used_bytes = segment_bytes + self.besides(&self.sizes) + self.sizes.reserve_bytes;
        if self.is_finishing {
            return used_bytes <= self.memory_max;
        }
        // What is hot goes to buffers at the end.
        !self.is_full && used_bytes + self.sizes.hot_bytes <= self.memory_max
    }

    /// Merges all leaves for their memory. Where that does not give back enough, moves them to files, or fails, then
    /// and from then on. `false` where this many segments are too many even then.
    fn make_room(&mut self, segments: usize) -> Result<bool> {
        self.merge_all()?;
        self.is_full |= !self.has_room(self.memory_max / SLACK / SEGMENT_BYTES);
        if self.has_room(segments) {
            return Ok(true);
        }
        if self.sorter.is_none() {
            return Err(over_limit(self.memory_max, "raise it, or let it spill to a directory"));
        }
        self.spill()?;
        self.is_full = false;
        Ok(self.has_room(segments))
    }

    /// Has a leaf merged; works too if too many wait.
    fn submit(&mut self, number: usize) -> Result<()> {
        let holder = &mut self.leaves.holders[number];
        debug_assert!(!holder.is_merged && holder.tail.bytes() > 0, "a leaf is merged once at a time");
        holder.is_merged = true;
        let (tail, base) = (std::mem::take(&mut holder.tail), std::mem::take(&mut holder.base));
        let merge = Merge { number, leaf: holder.leaf, tail, base };
        self.shared.inner.lock().queue.push_back(merge);
        self.shared.jobs.wake();
        let queue_max = QUEUE_PER_WORKER * self.workers.len();
        self.wait(|inner| inner.queue.len() <= queue_max)
    }

    /// Takes back leaves that were merged, and splits those that are too large.
    fn take_back(&mut self) {
        let done = std::mem::take(&mut self.shared.inner.lock().done);
        for (number, base) in done {
            let is_large = base.bytes() > self.sizes.leaf_bytes && base.len() > 1;
            let holder = &mut self.leaves.holders[number];
            debug_assert!(holder.is_merged && holder.base.len() == 0, "what comes back was away");
            (holder.base, holder.is_merged) = (base, false);
            self.limit_tail(number);
            if is_large {
                self.split(number);
                self.limit_tail(number);
                self.limit_tail(self.leaves.holders.len() - 1);
            }
        }
    }

    /// Says at how many bytes a leaf's buffer is full: in proportion to what merging it takes, and for some earlier
    /// than for others, or all would be full at the same time. A leaf that is too large gets no larger buffer than
    /// others: it would stay so.
    fn limit_tail(&mut self, number: usize) {
        let holder = &mut self.leaves.holders[number];
        let base_bytes = holder.base.bytes().min(self.sizes.leaf_bytes);
        let spread = mix(number as u64 ^ base_bytes as u64) as f64 / u64::MAX as f64;
        let bytes = TAIL_RATIO * (0.5 + spread) * base_bytes as f64;
        holder.tail_bytes_max = (bytes as usize).max(self.sizes.tail_bytes_min);
    }

    /// Splits a leaf, and deals out what was added to it meanwhile.
    fn split(&mut self, number: usize) {
        let shared = Arc::clone(&self.shared);
        let Some(tail) = self.leaves.split(number, || shared.pool.take()) else { return };
        shared.lend(|merger| {
            merger.take_apart(tail, |key, state| {
                self.append_over(self.leaves.of(key_hash(key, SEED)), key, state);
            });
        });
    }

    /// Merges what was added to all leaves.
    pub(super) fn merge_all(&mut self) -> Result<()> {
        loop {
            let mut left = false;
            let mut number = 0;
            while number < self.leaves.holders.len() {
                let holder = &self.leaves.holders[number];
                left |= holder.tail.bytes() > 0 || holder.is_merged;
                if holder.tail.bytes() > 0 && !holder.is_merged {
                    self.submit(number)?;
                }
                number += 1;
            }
            if !left {
                return Ok(());
            }
            self.wait(Inner::is_idle)?;
            self.take_back();
        }
    }

    /// Works beside the workers until this comes true; waits only while there is nothing to do.
    fn wait(&self, ready: impl Fn(&Inner) -> bool) -> Result<()> {
        let shared = &self.shared;
        loop {
            if let Some(panicked) = shared.jobs.panicked() {
                return Err(Error::Poisoned(panicked));
            }
            let inner = shared.inner.lock();
            if let Some(error) = &inner.failed {
                return Err(error.clone());
            }
            if ready(&inner) {
                return Ok(());
            }
            drop(inner);
            if !shared.work()? {
                shared.jobs.wait(&mut || {
                    let inner = shared.inner.lock();
                    let stopped = inner.failed.is_some() || shared.jobs.panicked().is_some();
                    stopped || !inner.queue.is_empty() || ready(&inner)
                });
            }
        }
    }
}
