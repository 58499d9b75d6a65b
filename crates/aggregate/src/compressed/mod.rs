//! [`CompressedAggregator`]: a directory of packed leaves, with the aims of the Compressed Buffer Tree of chapter 5 of
//! Amur's thesis, which is [beside it](crate::BufferTreeAggregator). A key's state takes little more than its bytes,
//! because most of them lie packed, and are unpacked only to be merged many at a time.
//!
//! 1. Values of keys that come again and again are merged in a small table ([hot](hot)); rows that come by columns in
//!    one that looks at columns ([batch](batch)).
//! 2. All others are appended to the buffer of the leaf of their hash ([leaves](leaves), [tail](tail)).
//! 3. A leaf with a full buffer is merged by a worker ([worker](worker)): what is new is sorted by hash and merged with
//!    what is there ([merge](merge)), which lies packed column by column ([base](base), [chunk](chunk)).
//! 4. A leaf that has grown too large is split ([tree](tree)); where memory is short all leaves are merged
//!    ([upkeep](upkeep)), and
//!    where that does not help their states go to files ([spill](spill)). [room](room) counts.
//! 5. Where several threads add, each has hot keys and records of its own ([stripe](stripe)), and leaves are divided
//!    between trees.
//! 6. A key's state is read of all these places, at any moment ([read](read)). Where all groups are shown once, at the
//!    end, they are taken out, and merged as they are shown ([taken](taken)).
//!
//! What leaves hold lies in segments of one size ([stream](stream)), packed or not.

mod base;
mod batch;
mod chunk;
mod column;
mod columns;
mod deal;
mod hashing;
mod hot;
mod leaves;
mod merge;
mod options;
mod pairs;
mod parts;
mod read;
mod room;
mod spill;
mod stream;
mod stripe;
mod tail;
mod taken;
mod tree;
mod upkeep;
mod walk;
mod worker;
mod writer;

use std::iter::once;
use std::sync::OnceLock;

use forebay_base::Result;
use forebay_env::sync::atomic::{AtomicBool, Ordering};
use forebay_env::sync::{Apart, Arc, Mutex, MutexGuard, Rank, RwLock};
use forebay_env::{Handle, Jobs, RealClock};

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, lift, over_limit};
use crate::columns::Front;
use crate::spilled::SpilledGroups;
use deal::Deal;
use hashing::Hashing;
pub(crate) use hashing::SEED;
pub use options::AggregatorOptions;
use options::Sizes;
#[cfg(feature = "arrow")]
pub(crate) use read::GroupWalk;
use room::Need;
use spill::{Published, Sealed, Target};
use stripe::Stripe;
pub use taken::TakenGroups;
use tree::Tree;
use worker::{Shared, Worker};

/// An aggregator whose states lie packed in memory. Any number of threads add to it and read it at the same time.
///
/// Whoever has it alone adds by the methods of [`Aggregator`], which pass all locks by: some nanoseconds less an add.
pub struct CompressedAggregator<A: Aggregate> {
    shared: Arc<Shared<A>>,
    hashing: Hashing,
    workers: Vec<Handle>,
    // Locks are taken in this order, as their ranks say, and then those of `shared`: what came by columns to one thread, one who makes room, stripes by
    // their numbers, one tree, what is published. Nobody waits for a merge under the lock of a stripe or a tree.
    fronts: Box<[OwnFront]>,
    front_deal: Deal,
    rooming: Mutex<Sealed>,
    /// Of who has all alone, and of one of those who add at the same time: apart, or each of its adds would take from all
    /// others what stands beside it.
    first: Apart<Mutex<Stripe>>,
    /// Of the others.
    others: Box<[Apart<Mutex<Stripe>>]>,
    stripe_deal: Deal,
    trees: Box<[Apart<Mutex<Tree>>]>,
    /// Where groups go that memory has no room for, and what is there.
    target: Option<Target>,
    groups: OnceLock<Box<dyn SpilledGroups>>,
    published: RwLock<Published>,
    is_spilled: AtomicBool,
}

/// What came by columns from a thread.
type OwnFront = Apart<Mutex<Option<Box<Front>>>>;

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
        let trees = 1 << sizes.shard_bits;
        let shared = Arc::new(Shared::new(function, jobs, sizes, &options));
        let target = options.spill.map(|place| Target { place, threads: options.threads });
        let worker = |_| shared.jobs.spawn("forebay-aggregate", Box::new(Worker(Arc::clone(&shared))));
        let stripe = |number| {
            let stripe = Stripe::new(options.adders, &shared);
            Mutex::ranked(Rank::Stripe(number as u16), stripe)
        };
        let tree = |number| Apart(Mutex::ranked(Rank::Leaves, Tree::new(number, &shared)));
        Ok(Self {
            front_deal: Deal::new(options.adders),
            stripe_deal: Deal::new(options.adders),
            fronts: (0..options.adders).map(|_| Apart(Mutex::ranked(Rank::Front, None))).collect(),
            rooming: Mutex::ranked(Rank::Room, Sealed::default()),
            hashing: options.hashing,
            first: Apart(stripe(0)),
            others: (1..options.adders).map(|number| Apart(stripe(number))).collect(),
            trees: (0..trees).map(tree).collect(),
            target,
            groups: OnceLock::new(),
            published: RwLock::default(),
            is_spilled: AtomicBool::new(false),
            workers: (1..options.threads).map(worker).collect(),
            shared,
        })
    }

    /// Adds one value to a key, from any thread. Where memory does not suffice, what is refused was not taken; the few
    /// adds for which a thread has room of its own may be taken after that.
    #[inline]
    pub fn add(&self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let hash = self.hashing.of(key);
        let (own, mut stripe) = self.own_stripe();
        match self.take(&mut stripe, hash, key, value)? {
            None => Ok(()),
            Some(lifted) => self.stage_slowly(own, stripe, hash, key, &lifted),
        }
    }

    /// Merges a state of this function's type into a key's, from any thread.
    pub fn add_state(&self, key: &[u8], state: &[u8]) -> Result<()> {
        let (shared, hash) = (&*self.shared, self.hashing.of(key));
        check(&*shared.function, key, state)?;
        let (own, mut stripe) = self.own_stripe();
        if let Some(hot) = stripe.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            shared.function.merge_in_place(hot, state);
            return Ok(());
        }
        if stripe.take(shared.tree_of(hash), hash, key, state) {
            return Ok(());
        }
        self.stage_slowly(own, stripe, hash, key, state)
    }

    /// Merges what was added before, by any thread, as far as it is in memory. Costs what was added since, and hardly
    /// anything once groups are in files and few of those that come are in memory. Nothing needs it: reads after it cost
    /// less.
    pub fn finalize(&self) -> Result<()> {
        self.collect()?;
        if self.shared.room.gathers.load(Ordering::Relaxed) { Ok(()) } else { self.merge_all() }
    }

    /// The calling thread's, held.
    #[inline]
    fn own_stripe(&self) -> (&Mutex<Stripe>, MutexGuard<'_, Stripe>) {
        self.stripe_deal.take(|number| match number.checked_sub(1) {
            Some(other) => &self.others[other].0,
            None => &self.first.0,
        })
    }

    /// All of them, in their order.
    fn stripes(&self) -> impl Iterator<Item = &Mutex<Stripe>> {
        once(&self.first.0).chain(self.others.iter().map(|stripe| &stripe.0))
    }

    /// Takes a value, from the thread whose stripe this is. Where there is no room there, its state is given back.
    #[inline]
    fn take(
        &self,
        stripe: &mut Stripe,
        hash: u64,
        key: &[u8],
        value: A::Input<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let function = &*self.shared.function;
        if let Some(state) = stripe.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            return function.add_in_place(state, value, &mut stripe.lifted).map(|()| None);
        }
        let mut lifted = std::mem::take(&mut stripe.lifted);
        let lifting = lift(function, key, value, &mut lifted);
        if lifting.is_ok() && !stripe.take(self.shared.tree_of(hash), hash, key, &lifted) {
            return Ok(Some(lifted));
        }
        stripe.lifted = lifted;
        lifting.map(|()| None)
    }

    /// Takes a state that was checked, and whose key is not hot, from who has it alone.
    #[inline]
    fn push(&mut self, hash: u64, key: &[u8], state: &[u8]) -> Result<()> {
        if let Some(hot) = &mut self.first.0.get_mut().hot {
            if hot.insert(hash, key, state) {
                return Ok(());
            }
            if hot.is_full() {
                self.cool(&self.first.0, Some(0), Need::Adding)?;
            }
        }
        let tree = self.shared.tree_of(hash);
        let appended = self.trees[tree].0.get_mut().append(hash, key, state);
        if appended {
            return Ok(());
        }
        self.first.0.get_mut().count(&self.shared);
        self.append_slowly(hash, key, state)
    }

    /// Reads from the device that lookups of groups in files have cost so far, and walks over them.
    pub fn device_reads(&self) -> u64 {
        self.groups.get().map_or(0, |groups| groups.device_reads())
    }

    /// Whether groups are in files.
    pub fn is_spilled(&self) -> bool {
        self.is_spilled.load(Ordering::Relaxed)
    }
}

impl<A: Aggregate> Aggregator<A> for CompressedAggregator<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let hash = self.hashing.of(key);
        let stripe = self.first.0.get_mut();
        if let Some(state) = stripe.hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            return self.shared.function.add_in_place(state, value, &mut stripe.lifted);
        }
        let mut lifted = std::mem::take(&mut stripe.lifted);
        let added = lift(&*self.shared.function, key, value, &mut lifted)
            .and_then(|()| self.push(hash, key, &lifted));
        self.first.0.get_mut().lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&*self.shared.function, key, state)?;
        let hash = self.hashing.of(key);
        match self.first.0.get_mut().hot.as_mut().and_then(|hot| hot.find(hash, key)) {
            Some(hot) => {
                self.shared.function.merge_in_place(hot, state);
                Ok(())
            }
            None => self.push(hash, key, state),
        }
    }

    fn finalize(&mut self) -> Result<()> {
        Self::finalize(self)
    }

    /// Of all that was added before. Costs a look through what was added to the key's leaf since that was merged, less
    /// than 400 KiB, and one chunk to unpack; a leaf that is looked through often is merged. Waits for the leaf while it
    /// is being merged. Once groups are in files, what those have of it is merged with that.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.empty_fronts()?;
        loop {
            match self.try_get(key)? {
                Ok(state) => return Ok(state),
                Err(ticket) => self.shared.wait_to_read(ticket)?,
            }
        }
    }

    /// By the keys' hashes. What was added since it was last shown is merged first, and, once groups are in files,
    /// moved there.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.show(visit)
    }

    fn memory_bytes(&self) -> usize {
        self.stripes().for_each(|stripe| stripe.lock().count(&self.shared));
        self.shared.memory_bytes() + self.groups.get().map_or(0, |groups| groups.memory_bytes())
    }
}

impl<A: Aggregate> Drop for CompressedAggregator<A> {
    fn drop(&mut self) {
        self.shared.close();
        self.workers.drain(..).for_each(Handle::join);
    }
}
