//! [`CompressedAggregator`]: the Compressed Buffer Tree of chapter 5 of Amur's thesis, as a tree of two levels. A
//! key's state takes little more than its bytes, because most of them lie packed, and are unpacked only to be merged
//! many at a time.
//!
//! 1. Values of keys that come again and again are merged in a small table ([hot](hot)).
//! 2. All others are appended to the buffer of the leaf of their hash ([leaves](leaves), [tail](tail)).
//! 3. A leaf with a full buffer is merged by a worker ([worker](worker)): what is new is sorted by hash and merged with
//!    what is there ([merge](merge)), which lies packed column by column ([base](base), [chunk](chunk)).
//! 4. A leaf that has grown too large is split; where memory is short all leaves are merged ([upkeep](upkeep)), and
//!    where that does not help their states go to files ([spill](spill)).
//!
//! What leaves hold lies in segments of one size ([stream](stream)), packed or not.

mod base;
mod chunk;
mod column;
mod columns;
mod hot;
mod leaves;
mod merge;
mod options;
mod spill;
mod stream;
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
use options::Sizes;
use tail::trimmed;
use worker::{Shared, Worker};

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
        let state_bytes = function.state_bytes();
        let sizes = Sizes::new(&options, state_bytes);
        let AggregatorOptions { memory_limit_bytes: memory_max, threads, jobs, spill } = options;
        if sizes.least_bytes() > memory_max {
            let needed = format!("it needs {} bytes to begin with", sizes.least_bytes());
            return Err(over_limit(memory_max, &needed));
        }
        let jobs = jobs.unwrap_or_else(|| Jobs::threads(Arc::new(RealClock::new())));
        let shared = Arc::new(Shared::new(function, jobs));
        let sorter = match spill {
            Some((fs, directory)) => {
                let function = Arc::clone(&shared.function);
                let sort_bytes = sizes.sort_bytes;
                Some(Box::new(SortAggregator::new(function, Order::Lexical, fs, directory, sort_bytes)?))
            }
            None => None,
        };
        let worker = |_| shared.jobs.spawn("forebay-aggregate", Box::new(Worker(Arc::clone(&shared))));
        Ok(Self {
            memory_max,
            hot: new_hot(state_bytes, &sizes),
            is_fixed: state_bytes.is_some(),
            leaves: Leaves::new(sizes.tail_bytes_min),
            sizes,
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

    /// What is used besides segments, or what parts may take in any case where that is more.
    fn besides(&self, least: &Sizes) -> usize {
        self.leaves.memory_bytes()
            + self.lifted.capacity()
            + self.shared.index_bytes()
            + self.shared.scratch_bytes().max(least.scratch_bytes)
            + self.hot.as_ref().map_or(0, Hot::memory_bytes).max(least.hot_bytes)
            + self.sorter.as_ref().map_or(0, |sorter| sorter.memory_bytes()).max(least.sort_bytes)
    }

    /// Whether groups are in files.
    pub fn is_spilled(&self) -> bool {
        self.is_spilled
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
        sorted + self.bases().map(Base::records).sum::<u64>()
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
        self.leaves.holders[number].base.get(key, self.shared.function.state_bytes())
    }

    /// By the keys' hashes while all groups are in memory, and by the keys' bytes once they are in files:
    /// [`is_spilled`](Self::is_spilled) tells.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.check_finalized()?;
        if let Some(sorter) = self.spilled() {
            return sorter.for_each(visit);
        }
        let state_bytes = self.shared.function.state_bytes();
        let (mut packer, mut records) = (Packer::new(state_bytes), Columns::new(state_bytes));
        for (base, number) in self.bases().flat_map(|base| (0..base.len()).map(move |number| (base, number)))
        {
            base.unpack(number, &mut packer, &mut records)?;
            (0..records.len()).try_for_each(|at| visit(records.keys.get(at), records.states.get(at)))?;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.shared.pool.memory_bytes() + self.besides(&Sizes::default())
    }
}

impl<A: Aggregate> Drop for CompressedAggregator<A> {
    fn drop(&mut self) {
        self.shared.inner.lock().closing = true;
        self.shared.jobs.wake();
        self.workers.drain(..).for_each(Handle::join);
    }
}

fn new_hot(state_bytes: Option<usize>, sizes: &Sizes) -> Option<Hot> {
    state_bytes.map(|bytes| Hot::new(bytes, sizes.hot_bytes))
}
