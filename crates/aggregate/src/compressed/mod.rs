//! [`CompressedAggregator`]: the Compressed Buffer Tree of chapter 5 of Amur's thesis. A key's state takes little more
//! than its bytes, because most of them lie packed, and are unpacked only to be merged many at a time.
//!
//! 1. Values of keys that come again and again are merged in a small table ([hot](hot)).
//! 2. All others are appended to the root's buffer.
//! 3. Full root buffers are sorted, merged and spilled to the tree's nodes, packed column by column ([chunk](chunk)).
//! 4. Full nodes spill and split as in every buffer tree; where keys repeat, leaves are merged ([worker](worker)).
//!
//! The tree is `forebay-buffer-tree`, over fragments in memory and with a rule that merges.

mod chunk;
mod column;
mod fragment;
mod hot;
mod options;
mod store;
mod worker;

use forebay_base::limits::KEY_BYTES_MAX;
use forebay_base::merge::Cursor;
use forebay_base::record::Shape;
use forebay_base::{Block, Error, Order, Record, Result};
use forebay_buffer_tree::Tree;
use forebay_env::sync::Arc;
use forebay_env::{Handle, Jobs, RealClock};

use crate::aggregate::Aggregate;
use crate::aggregator::{Aggregator, Visit, check, lift, over_limit};
use hot::Hot;
pub use options::AggregatorOptions;
use options::{SEALED_MAX, SLACK, Sizes, tree_options};
use worker::{Goal, Shared, Worker};

/// An aggregator whose states lie packed in memory.
pub struct CompressedAggregator<A: Aggregate> {
    shared: Arc<Shared<A>>,
    workers: Vec<Handle>,
    memory_max: usize,
    sizes: Sizes,
    /// What keys and states have in common; `Unknown` before the first.
    shape: Shape,
    root: Block,
    /// Where states are of a fixed length.
    hot: Option<Hot>,
    lifted: Vec<u8>,
    is_finalized: bool,
}

impl<A: Aggregate> CompressedAggregator<A> {
    /// An empty one.
    pub fn new(function: A, options: AggregatorOptions) -> Result<Self> {
        let AggregatorOptions { memory_limit_bytes: memory_max, threads, jobs } = options;
        let sizes = Sizes::new(memory_max, threads);
        if sizes.overhead_bytes > memory_max {
            let needed = format!("it needs {} bytes to begin with", sizes.overhead_bytes);
            return Err(over_limit(memory_max, &needed));
        }
        let tree = tree_options(memory_max);
        tree.validate()?;
        let jobs = jobs.unwrap_or_else(|| Jobs::threads(Arc::new(RealClock::new())));
        let shared = Arc::new(Shared::new(function, Order::Hashed { seed: 0 }, jobs, Tree::new(tree)));
        let worker = |_| shared.jobs.spawn("forebay-aggregate", Box::new(Worker(Arc::clone(&shared))));
        let workers: Vec<Handle> = (1..threads).map(worker).collect();
        Ok(Self {
            memory_max,
            sizes,
            shape: Shape::Unknown,
            root: Block::default(),
            hot: None,
            lifted: Vec::new(),
            is_finalized: true,
            workers,
            shared,
        })
    }

    #[inline]
    fn push(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        if !self.fits_shape(key, state) {
            self.change_shape(key, state)?;
        }
        let prefix = self.shared.order.prefix(key);
        self.is_finalized = false;
        if let Some(hot) = &mut self.hot {
            if hot.add(&*self.shared.function, prefix, key, state) {
                return Ok(());
            }
            if hot.is_full() {
                self.cool()?;
            }
        }
        self.make_room()?;
        self.root.push(prefix, &Record::put(key, state));
        Ok(())
    }

    /// Moves what is hot to the root.
    fn cool(&mut self) -> Result<()> {
        self.make_room()?;
        self.empty_hot();
        Ok(())
    }

    fn empty_hot(&mut self) {
        if let Some(hot) = &mut self.hot {
            self.root.extend(hot.keys(), 0..hot.keys().len());
            hot.clear();
        }
    }

    #[inline]
    fn fits_shape(&self, key: &[u8], state: &[u8]) -> bool {
        match self.shape {
            Shape::Fixed { key_bytes, value_bytes } => {
                key.len() == key_bytes as usize && state.len() == value_bytes as usize
            }
            Shape::Puts => true,
            _ => false,
        }
    }

    /// Takes the shape of this record too.
    #[cold]
    fn change_shape(&mut self, key: &[u8], state: &[u8]) -> Result<()> {
        let fixed = self.shared.function.state_bytes().is_some();
        let shape = match self.shape {
            Shape::Unknown if fixed => Shape::of(&Record::put(key, state)),
            _ => Shape::Puts,
        };
        self.cool()?;
        self.seal()?;
        let block = || Block::new(shape).ok_or_else(|| Error::invalid("states are kept as puts"));
        (self.shape, self.root) = (shape, block()?);
        self.shared.inner.lock().free.clear();
        self.hot = if fixed { Some(Hot::new(block()?, self.sizes.hot_bytes)) } else { None };
        Ok(())
    }

    /// Seals the root's buffer if it is full.
    #[inline]
    fn make_room(&mut self) -> Result<()> {
        if self.root.working_bytes() < self.sizes.root_bytes { Ok(()) } else { self.seal() }
    }

    /// Gives the root's buffer to the workers. Fails, and leaves it, where memory does not suffice.
    #[inline(never)]
    fn seal(&mut self) -> Result<()> {
        if self.root.is_empty() {
            return Ok(());
        }
        self.ensure_memory()?;
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        self.wait(|inner| inner.sealed.len() < SEALED_MAX)?;
        let mut inner = self.shared.inner.lock();
        let fresh =
            inner.free.pop().filter(|free| free.shape() == self.shape).or_else(|| Block::new(self.shape));
        let full = std::mem::replace(&mut self.root, fresh.unwrap_or_default());
        inner.sealed.push_back(full);
        drop(inner);
        self.shared.jobs.wake();
        Ok(())
    }

    /// Merges what can be merged if memory is short, and fails if it still is.
    fn ensure_memory(&self) -> Result<()> {
        let used = || self.sizes.overhead_bytes + self.shared.meter.get();
        if used() <= self.memory_max {
            return Ok(());
        }
        // Some more than is needed, or the next buffer would wait again.
        let enough = self.memory_max - self.memory_max / SLACK;
        self.work_until(Goal::Memory, || used() <= enough)?;
        if used() > self.memory_max {
            return Err(over_limit(self.memory_max, "raise it, or aggregate by sorting"));
        }
        Ok(())
    }

    /// Waits until workers have nothing more to do for a goal, or enough is done.
    fn work_until(&self, goal: Goal, enough: impl Fn() -> bool) -> Result<()> {
        self.shared.inner.lock().goal = goal;
        self.shared.jobs.wake();
        let waited = self.wait(|inner| enough() || inner.is_idle());
        self.shared.inner.lock().goal = Goal::Limits;
        waited
    }

    /// Works beside the workers until this comes true; waits only while there is nothing to do.
    fn wait(&self, ready: impl Fn(&worker::Inner) -> bool) -> Result<()> {
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

    fn finalized(&self) -> Result<Tree<fragment::Handle>> {
        if !self.is_finalized {
            return Err(Error::invalid("states were added since the last call of finalize; call it first"));
        }
        Ok(self.shared.inner.lock().tree.clone())
    }

    /// How many keys there are; exact once finalised.
    pub fn keys(&self) -> u64 {
        let mut keys = 0;
        self.shared.inner.lock().tree.for_each_node(&mut |_, node| keys += node.records());
        keys
    }
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
        self.empty_hot();
        if !self.root.is_empty() {
            self.send()?;
        }
        self.work_until(Goal::Compaction, || false)?;
        self.is_finalized = true;
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let tree = self.finalized()?;
        if key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let at = self.shared.order.bound(key);
        let just = forebay_base::Range { low: at.clone(), high: None };
        let lists = tree.path(at.prefix, key).flat_map(|node| node.lists());
        for list in lists {
            let cursor = self.shared.cursor(&list.fragment, &just)?;
            if cursor.prefix() == Some(at.prefix) && cursor.record().key == key {
                return Ok(Some(cursor.record().value.to_vec()));
            }
        }
        Ok(None)
    }

    /// By the keys' hashes.
    fn for_each(&self, visit: &mut Visit<'_>) -> Result<()> {
        let tree = self.finalized()?;
        let mut leaves = Vec::new();
        tree.for_each_node(&mut |_, node| {
            leaves.extend(node.lists().iter().map(|list| (list.fragment.clone(), node.range().clone())));
        });
        for (fragment, range) in leaves {
            let mut cursor = self.shared.cursor(&fragment, &range)?;
            while cursor.prefix().is_some() {
                let record = cursor.record();
                visit(record.key, record.value)?;
                cursor.advance()?;
            }
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        let inner = self.shared.inner.lock();
        let buffers = inner.sealed.iter().chain(&inner.free).map(Block::memory_bytes).sum::<usize>();
        let hot = self.hot.as_ref().map_or(0, Hot::memory_bytes);
        self.shared.meter.get() + buffers + self.root.memory_bytes() + hot + self.lifted.capacity()
    }
}

impl<A: Aggregate> Drop for CompressedAggregator<A> {
    fn drop(&mut self) {
        self.shared.inner.lock().closing = true;
        self.shared.jobs.wake();
        self.workers.drain(..).for_each(Handle::join);
    }
}
