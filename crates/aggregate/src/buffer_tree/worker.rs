//! The work behind adding, by any thread: sorting root buffers, and emptying nodes. The thesis has a queue and threads
//! for each of decompressing, merging, compressing and emptying [5.4.1]; here one thread does to a node all of these.

use forebay_base::{Error, Result};
use forebay_env::sync::{Arc, Mutex};
use forebay_env::{Jobs, Machine, Step};

use super::fold::merge;
use super::fragment::Fragment;
use super::meter::Meter;
use super::options::{Packing, TreeShape};
use super::records::{Part, Records};
use super::tree::{Child, Job, Next, NodeId, Outcome, Sorted, Tree};
use crate::aggregate::Aggregate;
use crate::stages::{Stage, Stages, timed};

/// What an aggregator and its workers share.
pub(super) struct Shared<A> {
    pub(super) function: A,
    pub(super) shape: TreeShape,
    pub(super) jobs: Jobs,
    /// Records, whoever has them.
    pub(super) meter: Meter,
    pub(super) inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) trees: Vec<Tree>,
    /// Pieces of work that somebody does.
    running: usize,
    pub(super) is_finishing: bool,
    pub(super) failed: Option<Error>,
    pub(super) closing: bool,
}

impl Inner {
    fn find(&self) -> Option<(usize, Next)> {
        let found = |(number, tree): (usize, &Tree)| tree.find(self.is_finishing).map(|next| (number, next));
        self.trees.iter().enumerate().find_map(found)
    }

    pub(super) fn has_work(&self) -> bool {
        self.find().is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running == 0 && !self.has_work()
    }

    fn take(&mut self) -> Option<(usize, Job)> {
        let (number, next) = self.find()?;
        let job = self.trees[number].take(next)?;
        self.running += 1;
        Some((number, job))
    }
}

impl<A: Aggregate> Shared<A> {
    pub(super) fn new(function: A, shape: TreeShape, jobs: Jobs) -> Self {
        let trees = (0..shape.trees).map(|_| Tree::new(shape.buffer_bytes, shape.fan_out)).collect();
        let inner = Inner { trees, running: 0, is_finishing: false, failed: None, closing: false };
        Self { function, shape, jobs, meter: Meter::default(), inner: Mutex::new(inner) }
    }

    /// Does a piece of work. `false` when there is none. What fails is never done: nobody may wait for it.
    pub(super) fn work(&self) -> Result<bool> {
        let Some((number, job)) = self.inner.lock().take() else { return Ok(false) };
        let done = self.run(job);
        let mut inner = self.inner.lock();
        debug_assert!(inner.running > 0, "who works is counted");
        inner.running -= 1;
        let worked = match done {
            Ok(outcome) => {
                inner.trees[number].apply(outcome);
                Ok(true)
            }
            Err(error) => {
                inner.failed = Some(error.clone());
                Err(error)
            }
        };
        drop(inner);
        self.jobs.wake();
        worked
    }

    fn run(&self, job: Job) -> Result<Outcome> {
        match job {
            Job::Sort(mut buffer) => {
                let records = buffer.sorted(&self.function, &self.meter, self.stages())?;
                let _held = self.meter.hold(records.memory_bytes());
                buffer.clear();
                Ok(Outcome::Sorted(buffer, Sorted { records, _held }))
            }
            Job::Spill(sorted, children) => Ok(self.give(None, &sorted.records, &children)),
            Job::Empty(id, fragments, children) => {
                let records = self.merged(fragments)?;
                let _held = self.meter.hold(records.memory_bytes());
                Ok(self.give(Some(id), &records, &children))
            }
        }
    }

    /// Unpacks fragments, of which nothing is left, and merges them.
    fn merged(&self, fragments: Vec<Arc<Fragment>>) -> Result<Records> {
        let mut held = self.meter.hold(0);
        let unpacked = timed(self.stages(), Stage::Unpack, || {
            fragments.iter().map(|fragment| fragment.unpack()).collect::<Result<Vec<_>>>()
        })?;
        if self.shape.packing != Packing::Off {
            held.set(unpacked.iter().map(|records| records.memory_bytes()).sum());
        }
        let parts: Vec<Part<'_>> = unpacked.iter().map(|records| records.whole()).collect();
        timed(self.stages(), Stage::Merge, || merge(&self.function, &parts))
    }

    /// Divides records between children, or of a leaf in two where they are more than half a buffer.
    fn give(&self, from: Option<NodeId>, records: &Records, children: &[Child]) -> Outcome {
        if children.is_empty() {
            let whole = records.whole();
            let is_large = from.is_none() || 2 * whole.bytes() >= self.shape.buffer_bytes;
            let Some(at) = records.middle().filter(|_| is_large) else {
                return Outcome::Divided(from, self.fragment(whole), None);
            };
            let lower = records.part(0..at, 0);
            let upper = self.fragment(records.part(at..records.len(), lower.pairs.len()));
            return Outcome::Divided(from, self.fragment(lower), Some((records.hashes[at], upper)));
        }
        let (mut at, mut start, mut parts) = (0, 0, Vec::new());
        for (number, child) in children.iter().enumerate() {
            let end = match children.get(number + 1) {
                Some(next) => at + records.hashes[at..].partition_point(|&hash| hash < next.low),
                None => records.len(),
            };
            if at < end {
                let part = records.part(at..end, start);
                parts.push((child.id, self.fragment(part)));
                (at, start) = (end, start + part.pairs.len());
            }
        }
        debug_assert!(at == records.len() && start == records.pairs.len(), "each record has a child");
        Outcome::Given(from, parts)
    }

    fn fragment(&self, part: Part<'_>) -> Fragment {
        let stage = if self.shape.packing == Packing::Off { Stage::Copy } else { Stage::Pack };
        let state_bytes = self.function.state_bytes();
        let make = || Fragment::new(part, state_bytes, self.shape.packing, &self.meter);
        timed(self.stages(), stage, make)
    }

    fn stages(&self) -> Option<&Stages> {
        self.shape.stages.as_deref()
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
