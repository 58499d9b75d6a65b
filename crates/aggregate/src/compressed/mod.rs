//! [`CompressedAggregator`]: the Compressed Buffer Tree of chapter 5 of Amur's thesis, as a tree of two levels. A
//! key's state takes little more than its bytes, because most of them lie packed, and are unpacked only to be merged
//! many at a time.
//!
//! 1. Values of keys that come again and again are merged in a small table ([hot](hot)).
//! 2. All others are appended to the buffer of the leaf of their hash ([leaves](leaves), [tail](tail)).
//! 3. A leaf with a full buffer is merged by a worker ([worker](worker)): what is new is sorted by hash and merged with
//!    what is there ([merge](merge)), which lies packed column by column ([base](base), [chunk](chunk)).
//! 4. A leaf that has grown too large is split.

mod base;
mod chunk;
mod column;
mod columns;
mod hot;
mod leaves;
mod merge;
mod options;
mod tail;
mod worker;

use forebay_base::hash::{key_hash, mix};
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;
use forebay_env::{Handle, Jobs, RealClock};

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, lift, over_limit};
use base::Base;
use chunk::Packer;
use columns::Columns;
use hot::Hot;
use leaves::{Leaves, SEED};
pub use options::AggregatorOptions;
use options::{QUEUE_PER_WORKER, SEGMENT_BYTES, SLACK, Sizes, TAIL_RATIO};
use tail::{Segment, record_at, trimmed};
use worker::{Inner, Merge, Shared, Worker};

/// What an allocator adds to a segment.
const SEGMENT_ENTRY_BYTES: usize = SEGMENT_BYTES + 16;

/// An aggregator whose states lie packed in memory.
pub struct CompressedAggregator<A: Aggregate> {
    shared: Arc<Shared<A>>,
    workers: Vec<Handle>,
    memory_max: usize,
    sizes: Sizes,
    /// Where states are of a fixed length.
    hot: Option<Hot>,
    is_fixed: bool,
    leaves: Leaves,
    /// Empty segments, and how many there are in all.
    spare: Vec<Segment>,
    segments: usize,
    /// Memory does not suffice for more keys.
    is_full: bool,
    lifted: Vec<u8>,
    is_finalized: bool,
}

impl<A: Aggregate> CompressedAggregator<A> {
    /// An empty one.
    pub fn new(function: A, options: AggregatorOptions) -> Result<Self> {
        let AggregatorOptions { memory_limit_bytes: memory_max, threads, jobs } = options;
        let sizes = Sizes::new(memory_max, threads);
        let needed = sizes.reserve_bytes + sizes.hot_bytes + sizes.leaf_bytes;
        if needed > memory_max {
            return Err(over_limit(memory_max, &format!("it needs {needed} bytes to begin with")));
        }
        let jobs = jobs.unwrap_or_else(|| Jobs::threads(Arc::new(RealClock::new())));
        let state_bytes = function.state_bytes();
        let shared = Arc::new(Shared::new(function, jobs));
        let worker = |_| shared.jobs.spawn("forebay-aggregate", Box::new(Worker(Arc::clone(&shared))));
        Ok(Self {
            memory_max,
            hot: state_bytes.map(|bytes| Hot::new(bytes, sizes.hot_bytes)),
            is_fixed: state_bytes.is_some(),
            leaves: Leaves::new(sizes.tail_bytes_min),
            sizes,
            spare: Vec::new(),
            segments: 0,
            is_full: false,
            lifted: Vec::new(),
            is_finalized: true,
            workers: (1..threads).map(worker).collect(),
            shared,
        })
    }

    #[inline]
    fn push(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        let hash = key_hash(key, SEED);
        self.is_finalized = false;
        if let Some(hot) = &mut self.hot {
            if hot.add(&*self.shared.function, hash, key, state) {
                return Ok(());
            }
            if hot.is_full() {
                self.cool()?;
            }
        }
        self.append(hash, key, state)
    }

    /// Moves what is hot to the leaves.
    fn cool(&mut self) -> Result<()> {
        let Some(mut hot) = self.hot.take() else { return Ok(()) };
        let emptied = hot.empty(|hash, key, state| self.append(hash, key, state));
        self.hot = Some(hot);
        emptied
    }

    #[inline]
    fn append(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        let state = trimmed(state, self.is_fixed);
        let number = self.leaves.of(hash);
        let appended = self.leaves.holders[number].tail.append(key, state);
        if appended { Ok(()) } else { self.append_slowly(hash, key, state) }
    }

    /// Appends where another segment is needed; sees to the leaf first if its buffer is full.
    #[inline(never)]
    fn append_slowly(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
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
                let Self { leaves, spare, segments, .. } = self;
                let next = || spare.pop().unwrap_or_else(|| new_segment(segments));
                leaves.holders[number].tail.append_over(key, state, next);
                return Ok(());
            }
        }
    }

    /// Sees to it that there are so many empty segments. `false` where all leaves had to be merged for it.
    fn provide(&mut self, count: usize) -> Result<bool> {
        while self.spare.len() < count {
            let used_bytes = self.used_bytes() + SEGMENT_ENTRY_BYTES;
            if self.is_full || used_bytes > self.memory_max - self.sizes.reserve_bytes {
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
        if self.is_full {
            Err(over_limit(self.memory_max, "raise it, or aggregate by sorting"))
        } else {
            Ok(())
        }
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
            let Self { leaves, spare, segments, .. } = self;
            let number = leaves.of(key_hash(key, SEED));
            let next = || spare.pop().unwrap_or_else(|| new_segment(segments));
            leaves.holders[number].tail.append_over(key, state, next);
            place = end;
        }
    }

    /// Merges what was added to all leaves.
    fn merge_all(&mut self) -> Result<()> {
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

    fn used_bytes(&self) -> usize {
        let hot = self.hot.as_ref().map_or(0, Hot::memory_bytes);
        let segments = self.segments * SEGMENT_ENTRY_BYTES;
        self.shared.used_bytes() + segments + self.leaves.memory_bytes() + hot + self.lifted.capacity()
    }

    fn check_finalized(&self) -> Result<()> {
        if self.is_finalized {
            return Ok(());
        }
        Err(Error::invalid("states were added since the last call of finalize; call it first"))
    }

    fn bases(&self) -> impl Iterator<Item = &Base> {
        self.leaves.in_order().map(|number| &self.leaves.holders[number].base)
    }

    /// How many keys there are; exact once finalised.
    pub fn keys(&self) -> u64 {
        self.bases().map(|base| base.records).sum()
    }
}

fn new_segment(segments: &mut usize) -> Segment {
    *segments += 1;
    vec![0; SEGMENT_BYTES].into()
}

impl<A: Aggregate> Aggregator<A> for CompressedAggregator<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let mut lifted = std::mem::take(&mut self.lifted);
        let added =
            lift(&*self.shared.function, key, value, &mut lifted).and_then(|()| self.push(key, &lifted));
        self.lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&*self.shared.function, key, state)?;
        self.push(key, state)
    }

    fn finalize(&mut self) -> Result<()> {
        self.cool()?;
        self.merge_all()?;
        self.is_finalized = true;
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_finalized()?;
        let number = self.leaves.of(key_hash(key, SEED));
        Ok(self.leaves.holders[number].base.get(key, self.shared.function.state_bytes()))
    }

    /// By the keys' hashes.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.check_finalized()?;
        let state_bytes = self.shared.function.state_bytes();
        let (mut packer, mut records) = (Packer::new(SEED, state_bytes), Columns::new(state_bytes));
        for chunk in self.bases().flat_map(|base| &base.chunks) {
            packer.unpack(&chunk.bytes, &mut records).ok_or_else(merge::malformed)?;
            (0..records.len()).try_for_each(|at| visit(records.keys.get(at), records.states.get(at)))?;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.used_bytes()
    }
}

impl<A: Aggregate> Drop for CompressedAggregator<A> {
    fn drop(&mut self) {
        self.shared.inner.lock().closing = true;
        self.shared.jobs.wake();
        self.workers.drain(..).for_each(Handle::join);
    }
}
