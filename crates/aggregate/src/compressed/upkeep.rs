//! What adding does to leaves: it has full ones merged, takes them back, splits those that have grown too large, and
//! keeps the memory within its limit.

use forebay_base::hash::{key_hash, mix};
use forebay_base::{Error, Result};

use super::leaves::SEED;
use super::options::{QUEUE_PER_WORKER, SEGMENT_BYTES, SLACK, TAIL_RATIO};
use super::tail::{Segment, record_at};
use super::worker::{Inner, Merge};
use super::{CompressedAggregator, SEGMENT_ENTRY_BYTES};
use crate::aggregate::Aggregate;
use crate::aggregator::over_limit;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Appends where another segment is needed; sees to the leaf first if its buffer is full.
    #[inline(never)]
    pub(super) fn append_slowly(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        loop {
            self.take_back();
            let number = self.leaves.of(hash);
            let holder = &self.leaves.holders[number];
            let (bytes, bytes_max) = (holder.tail.bytes(), holder.tail_bytes_max);
            let missing = holder.tail.missing(key, state, SEGMENT_BYTES);
            if bytes >= bytes_max && !holder.is_merged {
                self.submit(number)?;
            } else if bytes >= 2 * bytes_max {
                self.wait(|inner| !inner.done.is_empty())?;
            } else if self.provide(missing)? {
                self.append_over(number, key, state);
                return Ok(());
            }
        }
    }

    /// Appends to a leaf, over as many segments as it takes.
    fn append_over(&mut self, number: usize, key: &[u8], state: &[u8]) {
        let Self { leaves, spare, segments, .. } = self;
        let next = || spare.pop().unwrap_or_else(|| new_segment(segments));
        leaves.holders[number].tail.append_over(key, state, next);
    }

    /// Sees to it that there are so many empty segments. `false` where all leaves had to be merged for it.
    fn provide(&mut self, count: usize) -> Result<bool> {
        while self.spare.len() < count {
            let used_bytes = self.used_bytes() + SEGMENT_ENTRY_BYTES;
            let bytes_max = self.memory_max - self.sizes.reserve_bytes;
            if self.is_finishing {
                // What was taken is finalised, whatever it takes: what is hot, and half of what merges may take.
                if used_bytes > bytes_max + self.sizes.hot_bytes + self.sizes.reserve_bytes / 2
                    && self.segments > 0
                {
                    self.merge_all()?;
                    return Ok(false);
                }
            } else if self.is_full || used_bytes > bytes_max {
                self.make_room()?;
                return Ok(false);
            }
            let segment = new_segment(&mut self.segments);
            self.spare.push(segment);
        }
        Ok(true)
    }

    /// Merges all leaves for their memory, and fails where that does not give back enough, then and from then on.
    fn make_room(&mut self) -> Result<()> {
        if !self.is_full {
            self.merge_all()?;
            self.segments -= self.spare.len();
            self.spare = Vec::new();
            let enough = self.memory_max - self.sizes.reserve_bytes - self.memory_max / SLACK;
            self.is_full = self.used_bytes() > enough;
        }
        if !self.is_full {
            return Ok(());
        }
        if self.sorter.is_none() {
            return Err(over_limit(self.memory_max, "raise it, or aggregate by sorting"));
        }
        self.spill()?;
        self.is_full = false;
        Ok(())
    }

    /// Has a leaf merged; works too if too many wait.
    fn submit(&mut self, number: usize) -> Result<()> {
        let holder = &mut self.leaves.holders[number];
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
        let mut inner = self.shared.inner.lock();
        self.spare.append(&mut inner.free);
        let done = std::mem::take(&mut inner.done);
        drop(inner);
        for (number, base) in done {
            let is_large = base.bytes() > self.sizes.leaf_bytes && base.chunks.len() > 1;
            let holder = &mut self.leaves.holders[number];
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
    /// than for others, or all would be full at the same time.
    fn limit_tail(&mut self, number: usize) {
        let holder = &mut self.leaves.holders[number];
        let spread = mix(number as u64 ^ holder.base.bytes() as u64) as f64 / u64::MAX as f64;
        let bytes = TAIL_RATIO * (0.5 + spread) * holder.base.bytes() as f64;
        holder.tail_bytes_max = (bytes as usize).max(self.sizes.tail_bytes_min);
    }

    /// Splits a leaf, and deals out what was added to it meanwhile.
    fn split(&mut self, number: usize) {
        let Some(tail) = self.leaves.split(number) else { return };
        let mut raw = Vec::with_capacity(tail.bytes());
        self.spare.extend(tail.drain(&mut raw));
        let mut place = 0;
        while let Some((key, state, end)) = record_at(&raw, place) {
            self.append_over(self.leaves.of(key_hash(key, SEED)), key, state);
            place = end;
        }
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

fn new_segment(segments: &mut usize) -> Segment {
    *segments += 1;
    vec![0; SEGMENT_BYTES].into()
}
