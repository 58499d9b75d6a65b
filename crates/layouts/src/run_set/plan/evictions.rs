//! Evictions: what all runs have of a key range goes to the oldest one.
//!
//! **Invariant:** of two evictions that meet one comes in at most. A key range is known by where it begins, and whoever is
//! at work on one holds all of it, also what is left alone there.

use std::collections::BTreeSet;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{self as tree, NodeId};

use super::super::key_ranges;
use super::super::rules::Step;
use super::super::set::{Run, RunSet, total};
use super::slices::SLICE_FILES;
use super::{Act, Slice};
use crate::files::ResidentBudget;

/// What becomes of a tree that something is evicted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Onto {
    /// It is appended to, where there is one and that pays.
    Trees,
    /// It is written anew, and what is dead of it goes.
    Nothing,
}

impl<F: tree::Fragment> RunSet<F> {
    /// The tree that a run has of a key range, if it has one that can be appended to.
    fn tree_of(&self, run: &Run<F>, range: &Range) -> Option<u64> {
        if !self.policy.grows(run.level) {
            return None;
        }
        let mut parts = run.parts[run.overlapping(range)].iter();
        parts.find(|part| part.fragment.grown_bytes().is_some()).map(|part| part.fragment.id())
    }

    /// What may be done beside jobs that are under way, if all of these evict key ranges: so does this, of another one.
    /// Whole runs have something of each range, and only wait until nobody is at work on any.
    pub(in super::super) fn next_eviction(
        &self,
        busy: &BTreeSet<NodeId>,
        room: ResidentBudget,
    ) -> Option<Slice> {
        let evicts = self.policy.merges_key_ranges() && room.resides;
        let is_beside = evicts && busy.iter().all(|node| key_ranges::is_key_range(*node));
        let room = ResidentBudget { is_beside, ..room };
        let step = is_beside.then(|| self.policy.next(self, room, |id| self.is_free(id, busy)))??;
        let Step::Evict(range) = step else { return None };
        let slice = self.evict(range, Onto::Trees);
        debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
        Some(slice)
    }

    /// What all runs have of a range, or of as much of it as is enough for one go.
    pub(super) fn evict(&self, mut range: Range, onto: Onto) -> Slice {
        let runs: Vec<&Run<F>> =
            self.runs.iter().filter(|run| !run.overlapping(&range).is_empty()).map(|run| &**run).collect();
        let key_range = range.clone();
        let last = self.last_on_disk();
        let (into, level) = (last.map(|run| run.id), last.map_or(1, |run| run.level));
        let waiting = || runs.iter().filter(|run| Some(run.id) != into);
        let first = waiting().filter_map(|run| run.parts[run.overlapping(&range)].first());
        let rest = last.and_then(|run| run.parts[run.overlapping(&range)].last());
        // It begins where something waits, or with the part that this falls into: else nothing might come of it.
        if let Some(first) = first.map(|part| &part.range.low).min()
            && rest.is_none_or(|part| part.range.high.as_ref().is_some_and(|high| high <= first))
        {
            range.low = first.clone().max(range.low);
        }
        // A tree is not cut, unless more comes than memory has of a range: runs of files were left.
        let is_little = |_: &u64| {
            let parts = waiting().flat_map(|run| &run.parts[run.overlapping(&range)]);
            let portions = parts.filter_map(|part| part.portion_in(&range));
            total(portions.map(|portion| portion.bytes)) <= SLICE_FILES.saturating_mul(self.file_bytes)
        };
        let tree = last.and_then(|last| self.tree_of(last, &range)).filter(is_little);
        // Writers wait for each: no more at a time than has to be.
        let end = if tree.is_some() { None } else { self.slice_end(&runs, &range, 1) };
        let tree = tree.filter(|_| onto == Onto::Trees);
        let range = range.intersect(&Range { low: Bound::least(), high: end });
        debug_assert!(!range.is_empty(), "an eviction comes on");
        debug_assert!(
            tree.is_none() || range.high == key_range.high,
            "what is appended to a tree is all that waits for it"
        );
        debug_assert_eq!(range.intersect(&key_range), range, "what is evicted lies in its key range");
        let taken = runs.iter().map(|run| (run.id, range.clone())).collect();
        let below = runs.iter().find(|run| run.is_resident).map_or(0, |run| run.below);
        let act = Act::Evict { key_range, into, tree, below };
        Slice { taken, act, range, level, is_bottom: true, breaks: self.breaks.count() }
    }
}
