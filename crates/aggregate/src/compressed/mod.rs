//! [`CompressedAggregator`]: a directory of packed leaves, with the aims of the Compressed Buffer Tree of chapter 5 of
//! Amur's thesis, which is [beside it](crate::BufferTreeAggregator). A key's state takes little more than its bytes,
//! because most of them lie packed, and are unpacked only to be merged many at a time.
//!
//! 1. Values of keys that come again and again are merged in a small table ([hot](hot)).
//! 2. All others are appended to the buffer of the leaf of their hash ([leaves](leaves), [tail](tail)).
//! 3. A leaf with a full buffer is merged by a worker ([worker](worker)): what is new is sorted by hash and merged with
//!    what is there ([merge](merge)), which lies packed column by column ([base](base), [chunk](chunk)).
//! 4. A leaf that has grown too large is split ([tree](tree)); where memory is short all leaves are merged
//!    ([upkeep](upkeep)), and
//!    where that does not help their states go to files ([spill](spill)). [room](room) counts.
//! 5. A key's state is read of all these places, at any moment ([read](read)).
//!
//! What leaves hold lies in segments of one size ([stream](stream)), packed or not.

mod base;
mod chunk;
mod column;
mod columns;
mod hashing;
mod hot;
mod leaves;
mod merge;
mod options;
mod read;
mod room;
mod spill;
mod stream;
mod stripe;
mod tail;
mod tree;
mod upkeep;
mod worker;

use forebay_base::{Order, Result};
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_env::sync::{Arc, Mutex, Rank};
use forebay_env::{Handle, Jobs, RealClock};

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, lift, over_limit};
use crate::sort::SortAggregator;
pub use options::AggregatorOptions;
use options::Sizes;
use room::Need;
use stripe::Stripe;
use tree::Tree;
use worker::{Shared, Worker};

/// An aggregator whose states lie packed in memory.
pub struct CompressedAggregator<A: Aggregate> {
    shared: Arc<Shared<A>>,
    workers: Vec<Handle>,
    // Locks are taken in this order, and then those of `shared`.
    stripe: Mutex<Stripe>,
    tree: Mutex<Tree>,
    /// What goes on in files, and whether it has anything.
    sorter: Option<Mutex<Box<Sort<A>>>>,
    is_spilled: AtomicBool,
}

type Sort<A> = SortAggregator<Arc<A>>;

impl<A: Aggregate> CompressedAggregator<A> {
    /// An empty one.
    pub fn new(function: A, options: AggregatorOptions) -> Result<Self> {
        let state_bytes = function.state_bytes();
        let sizes = Sizes::new(&options, state_bytes);
        let memory_max = options.memory_limit_bytes;
        if sizes.least_bytes() > memory_max {
            let needed = format!("it needs {} bytes to begin with", sizes.least_bytes());
            return Err(over_limit(memory_max, &needed));
        }
        let jobs = options.jobs.clone().unwrap_or_else(|| Jobs::threads(Arc::new(RealClock::new())));
        let (stripe, sort_bytes) = (Stripe::new(state_bytes, &sizes), sizes.sort_bytes);
        let shared = Arc::new(Shared::new(function, jobs, sizes, &options));
        let sorter = match options.spill {
            Some((fs, directory)) => {
                let function = Arc::clone(&shared.function);
                let sorter = SortAggregator::new(function, Order::Lexical, fs, directory, sort_bytes)?;
                let sorter = sorter.state_bytes_max(options.state_bytes_max);
                Some(Mutex::ranked(Rank::Sort, Box::new(sorter)))
            }
            None => None,
        };
        let worker = |_| shared.jobs.spawn("forebay-aggregate", Box::new(Worker(Arc::clone(&shared))));
        Ok(Self {
            stripe: Mutex::ranked(Rank::Stripe, stripe),
            tree: Mutex::ranked(Rank::Leaves, Tree::new(&shared)),
            sorter,
            is_spilled: AtomicBool::new(false),
            workers: (1..options.threads).map(worker).collect(),
            shared,
        })
    }

    /// Takes a state that was checked, and whose key is not hot.
    #[inline]
    fn push(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        let stripe = self.stripe.get_mut();
        if let Some(hot) = &mut stripe.hot {
            if hot.insert(hash, key, state) {
                return Ok(());
            }
            if hot.is_full() {
                self.cool(Need::Adding)?;
            }
        }
        let appended = self.tree.get_mut().append(hash, key, state);
        if appended { Ok(()) } else { self.append_slowly(hash, key, state) }
    }

    /// Whether groups are in files.
    pub fn is_spilled(&self) -> bool {
        self.is_spilled.load(Ordering::Relaxed)
    }
}

impl<A: Aggregate> Aggregator<A> for CompressedAggregator<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let hash = self.shared.hashing.of(key);
        let stripe = self.stripe.get_mut();
        if let Some(state) = stripe.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            return self.shared.function.add_in_place(state, value, &mut stripe.lifted);
        }
        let mut lifted = std::mem::take(&mut stripe.lifted);
        let added = lift(&*self.shared.function, key, value, &mut lifted)
            .and_then(|()| self.push(hash, key, &lifted));
        self.stripe.get_mut().lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&*self.shared.function, key, state)?;
        let hash = self.shared.hashing.of(key);
        match self.stripe.get_mut().hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            Some(hot) => {
                self.shared.function.merge_in_place(hot, state);
                Ok(())
            }
            None => self.push(hash, key, state),
        }
    }

    /// Merges what was added since, and, once groups are in files, all to one file. Nothing needs it: reads after it
    /// cost less.
    fn finalize(&mut self) -> Result<()> {
        self.cool(Need::Merging)?;
        self.merge_all()?;
        if self.is_spilled() { self.finish_spilled() } else { Ok(()) }
    }

    /// Of all that was added before. Costs a look through what was added to the key's leaf since that was merged, less
    /// than 400 KiB, and one chunk to unpack; a leaf that is looked through often is merged. Waits for the leaf while it
    /// is being merged. Once groups are in files, what was written since is merged there first.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        loop {
            match self.try_get(key)? {
                Ok(state) => return Ok(state),
                Err(ticket) => self.shared.wait_for(ticket)?,
            }
        }
    }

    /// By the keys' hashes while all groups are in memory, and by the keys' bytes once they are in files:
    /// [`is_spilled`](Self::is_spilled) tells. What was added since it was last shown is merged first, and, once groups
    /// are in files, moved there.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.show(visit)
    }

    fn memory_bytes(&self) -> usize {
        self.shared.memory_bytes()
    }
}

impl<A: Aggregate> Drop for CompressedAggregator<A> {
    fn drop(&mut self) {
        self.shared.close();
        self.workers.drain(..).for_each(Handle::join);
    }
}
