//! The work behind adding: root buffers are sorted, merged and spilled, oldest first; full nodes spill and split. Each
//! piece is planned under a lock, run without it, and applied under it.

use std::collections::{BTreeSet, VecDeque};

use forebay_base::merge::{Merge, Sorted};
use forebay_base::{Block, Error, Order, Range, Result};
use forebay_buffer_tree::{Expected, FragmentStore, FragmentWriter, Job, JobPlan, JobStep, NodeId, Outcome};
use forebay_buffer_tree::{Terms, Tree, Work};
use forebay_env::sync::atomic::AtomicU64;
use forebay_env::sync::{Arc, Mutex};
use forebay_env::{Jobs, Machine, Step};

use super::fragment::{Handle, Meter};
use super::store::{ChunkCursor, Chunks};
use crate::aggregate::{Aggregate, Merging};

/// What an aggregator and its workers share.
pub(super) struct Shared<A> {
    pub(super) function: Arc<A>,
    pub(super) order: Order,
    pub(super) jobs: Jobs,
    /// Memory of fragments.
    pub(super) meter: Meter,
    next_id: Arc<AtomicU64>,
    pub(super) inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) tree: Tree<Handle>,
    busy: BTreeSet<NodeId>,
    /// Full root buffers, oldest first.
    pub(super) sealed: VecDeque<Block>,
    /// Empty ones, for their memory.
    pub(super) free: Vec<Block>,
    /// One root spill at a time: they are settled in the order in which buffers were filled.
    spilling: bool,
    /// What goes beyond the limits of nodes.
    pub(super) goal: Goal,
    pub(super) failed: Option<Error>,
    pub(super) closing: bool,
}

/// What workers do once all nodes are within their limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// Nothing.
    Limits,
    /// Give back memory: merge where most lists are.
    Memory,
    /// Leave one state a key.
    Compaction,
}

/// A piece of work.
enum Piece {
    /// An edit that moved no state.
    Done,
    Spill(Block, Tree<Handle>),
    Job(JobPlan, Tree<Handle>),
}

impl Inner {
    /// Whether workers have nothing to do and do nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.sealed.is_empty() && !self.spilling && self.busy.is_empty() && self.peek().is_none()
    }

    /// Whether there is a piece of work for somebody.
    pub(super) fn has_work(&self) -> bool {
        !self.sealed.is_empty() && !self.spilling || self.peek().is_some()
    }

    /// The next job or free edit of the tree.
    fn peek(&self) -> Option<Work<Handle>> {
        self.tree.next_work(&self.busy).or_else(|| match self.goal {
            Goal::Limits => None,
            Goal::Memory => {
                let terms = Terms { at_rest: false, budget: u64::MAX, cost: &|portion| portion.bytes };
                let relief = self.tree.next_relief(&self.busy, &terms);
                relief.map(|(plan, _)| Work::Job(plan))
            }
            Goal::Compaction => self.tree.next_compaction(&self.busy).map(Work::Job),
        })
    }

    fn take(&mut self) -> Result<Option<Piece>> {
        // The tree first: it stays within its limits, and whoever adds waits for that.
        Ok(match self.peek() {
            None if self.spilling => None,
            None => self.sealed.pop_front().map(|block| {
                self.spilling = true;
                Piece::Spill(block, self.tree.clone())
            }),
            Some(Work::Now(edit)) => {
                self.tree = self.tree.apply(&edit)?.0;
                Some(Piece::Done)
            }
            Some(Work::Job(plan)) => {
                self.busy.insert(plan.node.id);
                Some(Piece::Job(plan, self.tree.clone()))
            }
        })
    }

    fn apply(&mut self, outcome: Outcome<Handle>) -> Result<()> {
        let edit = self.tree.settle(outcome)?;
        self.tree = self.tree.apply(&edit)?.0;
        Ok(())
    }
}

impl<A: Aggregate> Shared<A> {
    pub(super) fn new(function: A, order: Order, jobs: Jobs, tree: Tree<Handle>) -> Self {
        let inner = Inner {
            tree,
            busy: BTreeSet::new(),
            sealed: VecDeque::new(),
            free: Vec::new(),
            spilling: false,
            goal: Goal::Limits,
            failed: None,
            closing: false,
        };
        Self {
            function: Arc::new(function),
            order,
            jobs,
            meter: Meter::default(),
            next_id: Arc::default(),
            inner: Mutex::new(inner),
        }
    }

    /// Does a piece of work. `false` when there is none. What fails is never done: nobody may wait for it.
    pub(super) fn work(&self) -> Result<bool> {
        self.work_on().inspect_err(|error| {
            self.inner.lock().failed = Some(error.clone());
            self.jobs.wake();
        })
    }

    fn work_on(&self) -> Result<bool> {
        let piece = self.inner.lock().take()?;
        match piece {
            None => return Ok(false),
            Some(Piece::Done) => {}
            Some(Piece::Spill(block, tree)) => self.spill(block, &tree)?,
            Some(Piece::Job(plan, tree)) => self.run(&plan, &tree)?,
        }
        self.jobs.wake();
        Ok(true)
    }

    /// How a node's fragments are made: no chunk lies on both sides of these bounds.
    pub(super) fn store(&self, cuts: Vec<u64>) -> Chunks {
        Chunks {
            order: self.order,
            state_bytes: self.function.state_bytes(),
            next_id: Arc::clone(&self.next_id),
            meter: self.meter.clone(),
            cuts,
        }
    }

    fn spill(&self, block: Block, tree: &Tree<Handle>) -> Result<()> {
        let expected = Expected {
            range: Range::all(),
            bytes: block.bytes().len() as u64,
            records: block.len() as u64,
            shape: block.shape(),
        };
        let mut sorted = Sorted::new(block, 0, u64::MAX);
        let store = self.store(cuts_of(tree.root()));
        let job = Job::root_spill(tree, &mut sorted, &expected, self.rule(), &store)?;
        let outcome = finish(job)?;
        let mut inner = self.inner.lock();
        inner.apply(outcome)?;
        inner.spilling = false;
        let mut block = sorted.into_block();
        block.clear();
        inner.free.push(block);
        Ok(())
    }

    fn run(&self, plan: &JobPlan, tree: &Tree<Handle>) -> Result<()> {
        let Some(node) = tree.find(&plan.node) else { return Err(Error::invalid("a planned node is gone")) };
        let store = self.store(cuts_of(node));
        let job: Job<Merge<ChunkCursor>, _, _> = Job::start(tree, plan, self.order, self.rule(), &store)?;
        let outcome = finish(job)?;
        let mut inner = self.inner.lock();
        inner.apply(outcome)?;
        inner.busy.remove(&plan.node.id);
        drop(inner);
        node.lists()[..plan.lists].iter().for_each(|list| list.fragment.0.release(node.range()));
        Ok(())
    }

    fn rule(&self) -> Merging<Arc<A>> {
        Merging(Arc::clone(&self.function))
    }

    /// A walk over part of a fragment.
    pub(super) fn cursor(&self, fragment: &Handle, range: &Range) -> Result<ChunkCursor> {
        self.store(Vec::new()).cursor(fragment, range, 1)
    }
}

fn cuts_of(node: &forebay_buffer_tree::Node<Handle>) -> Vec<u64> {
    node.children().iter().skip(1).map(|child| child.range().low.prefix).collect()
}

fn finish<C, W, R>(mut job: Job<C, W, R>) -> Result<Outcome<W::Fragment>>
where
    C: forebay_base::merge::Cursor,
    W: FragmentWriter,
    R: forebay_base::Combine,
{
    loop {
        if let JobStep::Done(outcome) = job.step(usize::MAX)? {
            return Ok(outcome);
        }
    }
}

/// A worker on a thread.
pub(super) struct Worker<A>(pub(super) Arc<Shared<A>>);

impl<A: Aggregate> Machine for Worker<A> {
    fn step(&mut self) -> Step {
        if self.0.inner.lock().closing {
            return Step::Finished;
        }
        match self.0.work() {
            Ok(true) => Step::Worked,
            Ok(false) => Step::Idle,
            Err(_) => Step::Finished,
        }
    }
}
