//! [`CompressedAggregator`]: the Compressed Buffer Tree of chapter 5 of Amur's thesis, as a tree of two levels. A
//! key's state takes little more than its bytes, because most of them lie packed, and are unpacked only to be merged
//! many at a time.
//!
//! 1. Values of keys that come again and again are merged in a small table ([hot](hot)).
//! 2. All others are appended to the buffer of the leaf of their hash ([leaves](leaves), [tail](tail)).
//! 3. A leaf with a full buffer is merged by a worker ([worker](worker)): what is new is sorted by hash and merged with
//!    what is there ([merge](merge)), which lies packed column by column ([base](base), [chunk](chunk)).
//! 4. A leaf that has grown too large is split; where memory is short all leaves are merged ([upkeep](upkeep)).

mod base;
mod chunk;
mod column;
mod columns;
mod hot;
mod leaves;
mod merge;
mod options;
mod spill;
mod tail;
mod upkeep;
mod worker;

use forebay_base::hash::key_hash;
use forebay_base::{Error, Order, Result};
use forebay_env::sync::Arc;
use forebay_env::{Handle, Jobs, RealClock};

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, lift, over_limit};
use crate::sort::SortAggregator;
use base::Base;
use chunk::Packer;
use columns::Columns;
use hot::Hot;
use leaves::{Leaves, SEED};
pub use options::AggregatorOptions;
use options::{SEGMENT_BYTES, Sizes, sort_bytes};
use tail::{Segment, trimmed};
use worker::{Shared, Worker};

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
    is_finishing: bool,
    /// What goes on in files, and whether it has anything.
    sorter: Option<Box<SortAggregator<Arc<A>>>>,
    is_spilled: bool,
    lifted: Vec<u8>,
    is_finalized: bool,
}

impl<A: Aggregate> CompressedAggregator<A> {
    /// An empty one.
    pub fn new(function: A, options: AggregatorOptions) -> Result<Self> {
        let AggregatorOptions { memory_limit_bytes, threads, jobs, spill } = options;
        let sort_bytes = if spill.is_some() { sort_bytes(memory_limit_bytes) } else { 0 };
        let memory_max = memory_limit_bytes.saturating_sub(sort_bytes);
        let sizes = Sizes::new(memory_max, threads);
        let needed = sizes.reserve_bytes + sizes.hot_bytes + sizes.leaf_bytes;
        if needed > memory_max {
            let needed = format!("it needs {} bytes to begin with", needed + sort_bytes);
            return Err(over_limit(memory_limit_bytes, &needed));
        }
        let jobs = jobs.unwrap_or_else(|| Jobs::threads(Arc::new(RealClock::new())));
        let state_bytes = function.state_bytes();
        let shared = Arc::new(Shared::new(function, jobs));
        let sorter = match spill {
            Some((fs, directory)) => {
                let function = Arc::clone(&shared.function);
                let order = Order::Hashed { seed: SEED };
                Some(Box::new(SortAggregator::new(function, order, fs, directory, sort_bytes)?))
            }
            None => None,
        };
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
            is_finishing: false,
            sorter,
            is_spilled: false,
            lifted: Vec::new(),
            is_finalized: true,
            workers: (1..threads).map(worker).collect(),
            shared,
        })
    }

    /// Takes a state that was checked, and whose key is not hot.
    #[inline]
    fn push(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        self.is_finalized = false;
        if let Some(hot) = &mut self.hot {
            if hot.insert(hash, key, state) {
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

    fn used_bytes(&self) -> usize {
        let hot = self.hot.as_ref().map_or(0, Hot::memory_bytes);
        let segments = self.segments * SEGMENT_ENTRY_BYTES;
        self.shared.used_bytes()
            + segments
            + self.leaves.memory_bytes()
            + hot
            + self.lifted.capacity()
            + self.sorter.as_ref().map_or(0, |sorter| sorter.memory_bytes())
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
        let sorted = self.sorter.as_ref().map_or(0, |sorter| sorter.keys());
        sorted + self.bases().map(|base| base.records).sum::<u64>()
    }
}

impl<A: Aggregate> Aggregator<A> for CompressedAggregator<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let hash = key_hash(key, SEED);
        if let Some(state) = self.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            self.is_finalized = false;
            return self.shared.function.add_in_place(state, value, &mut self.lifted);
        }
        let mut lifted = std::mem::take(&mut self.lifted);
        let added = lift(&*self.shared.function, key, value, &mut lifted)
            .and_then(|()| self.push(hash, key, &lifted));
        self.lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&*self.shared.function, key, state)?;
        let hash = key_hash(key, SEED);
        match self.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            Some(hot) => {
                self.is_finalized = false;
                self.shared.function.merge_in_place(hot, state);
                Ok(())
            }
            None => self.push(hash, key, state),
        }
    }

    fn finalize(&mut self) -> Result<()> {
        self.is_finishing = true;
        let cooled = self.cool();
        self.is_finishing = false;
        cooled?;
        self.merge_all()?;
        if self.is_spilled {
            self.finish_spilled()?;
        }
        self.is_finalized = true;
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_finalized()?;
        if let Some(sorter) = self.spilled() {
            return sorter.get(key);
        }
        let number = self.leaves.of(key_hash(key, SEED));
        Ok(self.leaves.holders[number].base.get(key, self.shared.function.state_bytes()))
    }

    /// By the keys' hashes.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.check_finalized()?;
        if let Some(sorter) = self.spilled() {
            return sorter.for_each(visit);
        }
        let state_bytes = self.shared.function.state_bytes();
        let (mut packer, mut records) = (Packer::new(state_bytes), Columns::new(state_bytes));
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
