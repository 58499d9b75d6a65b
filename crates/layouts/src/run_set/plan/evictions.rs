//! Evictions: what all runs have of a key range goes to the oldest one.
//!
//! **Invariant:** of two evictions that meet one comes in at most. A key range is known by where it begins, and whoever is
//! at work on one holds all of it, also what is left alone there.

use std::collections::BTreeSet;

use forebay_base::{Bound, Range};
use forebay_buffer_tree::{self as tree, NodeId};

use super::super::key_ranges;
use super::super::rules::Step;
use super::super::set::{Run, RunSet};
use super::{Act, Slice};
use crate::files::ResidentBudget;

impl<F: tree::Fragment> RunSet<F> {
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
        let slice = self.evict(range);
        debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
        Some(slice)
    }

    /// What all runs have of a range, or of as much of it as is enough for one go.
    pub(super) fn evict(&self, mut range: Range) -> Slice {
        let runs: Vec<&Run<F>> =
            self.runs.iter().filter(|run| !run.overlapping(&range).is_empty()).map(|run| &**run).collect();
        let key_range = range.clone();
        let last = self.last_on_disk();
        let (into, level) = (last.map(|run| run.id), last.map_or(1, |run| run.level));
        let waiting = runs.iter().filter(|run| Some(run.id) != into);
        let waiting = waiting.filter_map(|run| run.parts[run.overlapping(&range)].first());
        let rest = last.and_then(|run| run.parts[run.overlapping(&range)].last());
        // It begins where something waits, or with the part that this falls into: else nothing might come of it.
        if let Some(first) = waiting.map(|part| &part.range.low).min()
            && rest.is_none_or(|part| part.range.high.as_ref().is_some_and(|high| high <= first))
        {
            range.low = first.clone().max(range.low);
        }
        // Writers wait for each: no more at a time than has to be.
        let end = self.slice_end(&runs, &range.low, 1);
        let range = range.intersect(&Range { low: Bound::least(), high: end });
        debug_assert!(!range.is_empty(), "an eviction comes on");
        debug_assert_eq!(range.intersect(&key_range), range, "what is evicted lies in its key range");
        let taken = runs.iter().map(|run| (run.id, range.clone())).collect();
        let below = runs.iter().find(|run| run.is_resident).map_or(0, |run| run.below);
        let act = Act::Evict { key_range, into, below };
        Slice { taken, act, range, level, is_bottom: true, breaks: self.breaks.count() }
    }
}
