//! Once round a table that grows: what there was when the round began gets into one run, whatever comes in front of it
//! meanwhile.

use std::collections::BTreeSet;

use forebay_base::Bound;
use forebay_buffer_tree::{Fragment, NodeId, Place};

use super::super::set::{RunSet, Underway};
use super::{Onto, Slice};

impl<F: Fragment> RunSet<F> {
    /// The next step of a round from a place on, and where it goes on from then: `None` for the end. Key ranges that
    /// are evicted have their turn one after the other. Other runs are merged all at once: first the merges under way
    /// end, for they may lack newer runs, and meanwhile the place is still the beginning.
    pub(in super::super) fn next_of_round(
        &self,
        busy: &BTreeSet<NodeId>,
        from: Option<&Place>,
    ) -> Option<(Slice, Option<Place>)> {
        let begun = from.filter(|from| !from.is_beginning());
        if self.evicts_only() {
            let after = begun.map_or_else(Bound::least, |from| from.bound().clone());
            if let Some(range) = self.policy.next_key_range(self, &after, |id| self.is_free(id, busy)) {
                let slice = self.evict(range, Onto::Nothing);
                debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
                let then = slice.range.high.clone().map(|high| Place::at(high.max(after)));
                return Some((slice, then));
            }
        }
        let then = |slice: &Slice| slice.range.high.clone().filter(|_| slice.act.goes_on()).map(Place::at);
        let Some(from) = begun else {
            let slice = self.next_full_compaction(busy)?;
            let merges_all = self.underway.is_empty() && slice.act.target().is_none();
            let then = if merges_all { then(&slice) } else { Some(Place::beginning()) };
            return Some((slice, then));
        };
        let merge = self.merge_of_round(from)?;
        let is_free = merge.inputs.iter().chain([&merge.into]).all(|id| !busy.contains(id));
        let slice = self.slice(&merge.inputs, Some(merge.into), merge.level).filter(|_| is_free)?;
        debug_assert_eq!(self.check_plan(&slice, busy), Ok(()), "what is planned can be done");
        let then = then(&slice);
        debug_assert!(
            then.as_ref().is_none_or(|then| then.bound() > from.bound()),
            "a round comes to its end: it never goes back"
        );
        Some((slice, then))
    }

    /// Whether what is left of a round from a place on can only be done once nobody is at work on it.
    pub(in super::super) fn round_waits(&self, from: Option<&Place>) -> bool {
        match from.filter(|from| !from.is_beginning()) {
            _ if self.evicts_only() => false,
            Some(from) => self.merge_of_round(from).is_some(),
            None => !self.is_one_run(),
        }
    }

    /// Whether a compaction of it merges key ranges, not runs.
    fn evicts_only(&self) -> bool {
        self.policy.merges_key_ranges() && self.underway.is_empty()
    }

    /// The merge of all runs that a round has come so far with: nothing else makes the oldest run, and what is left of
    /// a later one might lie before the place.
    fn merge_of_round(&self, from: &Place) -> Option<&Underway> {
        let oldest = self.runs.last()?.id;
        let merge = self.underway.iter().find(|merge| merge.into == oldest)?;
        let others = merge.inputs.iter().filter(|&&id| id != oldest).filter_map(|&id| self.run(id));
        let rest = others.filter_map(|run| run.parts.first()).map(|part| &part.range.low).min()?;
        (rest >= from.bound()).then_some(merge)
    }
}
