//! [`BufferTreeAggregator`]: the Compressed Buffer Tree as chapter 5 of Amur's thesis describes it, to hold ours
//! ([`CompressedAggregator`](crate::CompressedAggregator)) against; sections are in brackets. Without packing it is the
//! thesis's buffer tree (BT).
//!
//! 1. A record is appended to the root's buffer as it is ([root](root)) [5.3.3].
//! 2. A full root buffer is sorted by hash, and of equal keys one is left ([fold](fold)). Meanwhile others are filled.
//! 3. What was sorted goes to the root's children as fragments ([fragment](fragment)), packed by column [5.4.2].
//! 4. A full node is unpacked, merged, and emptied to its children; a full leaf is divided ([tree](tree)).
//! 5. To finalise is to empty every node, from the top on.
//!
//! It keeps to no limit of memory, and counts what it takes.

mod fold;
mod fragment;
mod meter;
mod options;
mod records;
mod root;
mod tree;
mod worker;

use forebay_base::hash::key_hash;
use forebay_base::{Error, Result};
use forebay_env::sync::Arc;
use forebay_env::{Handle, Jobs, RealClock};

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, lift};
use fragment::Fragment;
pub use options::{Packing, TreeShape};
use records::Record;
use root::RootBuffer;
use tree::Tree;
use worker::{Inner, Shared, Worker};

const SEED: u64 = 0;

/// An aggregator whose states lie in a buffer tree.
///
/// Should a merge make a state that is too long to be kept, that node's records are lost, and no later
/// [`finalize`](Aggregator::finalize) succeeds.
pub struct BufferTreeAggregator<A: Aggregate> {
    shared: Arc<Shared<A>>,
    workers: Vec<Handle>,
    /// What is being filled, for each tree.
    roots: Vec<RootBuffer>,
    is_fixed: bool,
    hash_mask: u32,
    lifted: Vec<u8>,
    is_finalized: bool,
}

impl<A: Aggregate> BufferTreeAggregator<A> {
    /// An empty one. Fails where the shape is none.
    pub fn new(function: A, shape: TreeShape) -> Result<Self> {
        shape.validate()?;
        let jobs = shape.jobs.clone().unwrap_or_else(|| Jobs::threads(Arc::new(RealClock::new())));
        let shared = Arc::new(Shared::new(function, shape, jobs));
        let worker = |_| shared.jobs.spawn("forebay-aggregate", Box::new(Worker(Arc::clone(&shared))));
        Ok(Self {
            workers: (1..shared.shape.threads).map(worker).collect(),
            roots: (0..shared.shape.trees).map(|_| RootBuffer::default()).collect(),
            is_fixed: shared.function.state_bytes().is_some(),
            hash_mask: u32::MAX.unbounded_shl(u32::BITS.saturating_sub(shared.shape.hash_bits)),
            lifted: Vec::new(),
            is_finalized: true,
            shared,
        })
    }

    /// The tree of a key, and its hash there.
    #[inline]
    fn place(&self, key: &[u8]) -> (usize, u32) {
        let hash = key_hash(key, SEED);
        let ordered = (hash >> 32) as u32 & self.hash_mask;
        let number = if self.roots.len() == 1 { 0 } else { hash as u32 as usize % self.roots.len() };
        (number, ordered)
    }

    #[inline]
    fn push(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        let (number, hash) = self.place(key);
        let record = Record { hash, key, state };
        self.is_finalized = false;
        if self.roots[number].push(&record, self.is_fixed) {
            return Ok(());
        }
        self.change_root(number)?;
        let pushed = self.roots[number].push(&record, self.is_fixed);
        debug_assert!(pushed, "an empty buffer takes any record");
        Ok(())
    }

    /// Seals a root's buffer and begins another, once there is one.
    #[inline(never)]
    fn change_root(&mut self, number: usize) -> Result<()> {
        self.seal(number);
        let shared = Arc::clone(&self.shared);
        self.wait(|inner| inner.trees[number].waiting() < shared.shape.roots)?;
        let free = shared.inner.lock().trees[number].take_free();
        self.roots[number] =
            free.unwrap_or_else(|| RootBuffer::new(shared.shape.buffer_bytes, &shared.meter));
        Ok(())
    }

    /// Gives a root's buffer to the workers, if it has anything.
    fn seal(&mut self, number: usize) {
        if !self.roots[number].is_empty() {
            let full = std::mem::take(&mut self.roots[number]);
            self.shared.inner.lock().trees[number].seal(full);
            self.shared.jobs.wake();
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
                    stopped || inner.has_work() || ready(&inner)
                });
            }
        }
    }

    fn check_finalized(&self) -> Result<()> {
        if self.is_finalized {
            return Ok(());
        }
        Err(Error::invalid("states were added since the last call of finalize; call it first"))
    }

    /// All fragments, tree by tree.
    fn fragments(&self) -> Vec<Arc<Fragment>> {
        self.shared.inner.lock().trees.iter().flat_map(Tree::fragments).collect()
    }

    /// How many keys there are; exact once finalised.
    pub fn keys(&self) -> u64 {
        self.fragments().iter().map(|fragment| fragment.len() as u64).sum()
    }

    /// Levels above the leaves of the highest tree.
    pub fn height(&self) -> usize {
        self.shared.inner.lock().trees.iter().map(Tree::height).max().unwrap_or(0)
    }
}

impl<A: Aggregate> Aggregator<A> for BufferTreeAggregator<A> {
    #[inline]
    fn add(&mut self, key: &[u8], value: A::Input<'_>) -> Result<()> {
        let mut lifted = std::mem::take(&mut self.lifted);
        let added =
            lift(&self.shared.function, key, value, &mut lifted).and_then(|()| self.push(key, &lifted));
        self.lifted = lifted;
        added
    }

    fn add_state(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        check(&self.shared.function, key, state)?;
        self.push(key, state)
    }

    fn finalize(&mut self) -> Result<()> {
        (0..self.roots.len()).for_each(|number| self.seal(number));
        self.shared.inner.lock().is_finishing = true;
        self.shared.jobs.wake();
        let finished = self.wait(Inner::is_idle);
        self.shared.inner.lock().is_finishing = false;
        self.is_finalized = finished.is_ok();
        finished
    }

    /// The thesis has no lookups [5.3.2]: this one unpacks a whole leaf.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check_finalized()?;
        let (number, hash) = self.place(key);
        let fragments = self.shared.inner.lock().trees[number].leaf(hash).to_vec();
        for fragment in fragments {
            let records = fragment.unpack()?;
            let found = records.whole().walk().find(|record| record.hash == hash && record.key == key);
            if let Some(record) = found {
                return Ok(Some(record.state.to_vec()));
            }
        }
        Ok(None)
    }

    /// By 32 bits of the keys' hashes, tree by tree.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        self.check_finalized()?;
        self.fragments().iter().try_for_each(|fragment| {
            let records = fragment.unpack()?;
            let mut walk = records.whole().walk();
            walk.try_for_each(|record| visit(record.key, record.state))
        })
    }

    fn memory_bytes(&self) -> usize {
        let trees: usize = self.shared.inner.lock().trees.iter().map(Tree::memory_bytes).sum();
        self.shared.meter.get() + trees + self.lifted.capacity()
    }
}

impl<A: Aggregate> Drop for BufferTreeAggregator<A> {
    fn drop(&mut self) {
        self.shared.inner.lock().closing = true;
        self.shared.jobs.wake();
        self.workers.drain(..).for_each(Handle::join);
    }
}
