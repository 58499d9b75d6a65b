//! What is done for a table of runs besides what its policy wants: compactions, rounds, ranges that go.

use std::collections::BTreeSet;

use forebay_base::Range;
use forebay_buffer_tree::{Place, ReadTerms};

use super::{RunSetTable, encode};
use crate::seam::{EXPIRED_SHARE_COMPACTING, NodeKey, Plan, Planned, Resident, Upkeep};

impl Upkeep for RunSetTable {
    fn next_full_compaction(&self, busy: &BTreeSet<NodeKey>) -> Option<Plan> {
        let expired = || self.next_expired(busy, EXPIRED_SHARE_COMPACTING).and_then(Planned::into_job);
        self.set.next_full_compaction(busy).map(|slice| self.planned(slice)).or_else(expired)
    }

    fn next_reclaim(
        &self,
        busy: &BTreeSet<NodeKey>,
        from: Option<&Place>,
        within: &Range,
    ) -> Option<(Plan, Option<Place>)> {
        let next = if *within == Range::all() {
            let dead = || self.next_rewrite(busy).filter(|_| from.is_none()).map(|slice| (slice, None));
            self.set.next_of_round(busy, from).or_else(dead)
        } else {
            self.set.next_within(busy, from, within)
        };
        next.map(|(slice, then)| (self.planned(slice), then))
    }

    fn next_rewrite_of(&self, busy: &BTreeSet<NodeKey>, files: &BTreeSet<u64>) -> Option<Plan> {
        let free = self.set.runs().iter().filter(|run| !run.is_resident() && !busy.contains(&run.id()));
        let mut parts = free.flat_map(|run| run.parts().iter().map(move |part| (run, part)));
        let (run, part) = parts.find(|(_, part)| files.contains(&part.fragment.id()))?;
        Some(self.planned(self.set.in_place(run, &part.range)))
    }

    /// Where key ranges lie is for the oldest run's parts to say: what one job makes of these, another one has not been
    /// planned for, unless it is about another range.
    fn is_for_one(&self) -> bool {
        self.set.policy.merges_key_ranges()
    }

    fn next_beside(&self, busy: &BTreeSet<NodeKey>) -> Option<Planned> {
        self.set.next_eviction(busy, self.room()).map(|slice| Planned::Job(self.planned(slice)))
    }

    fn round_waits(&self, from: Option<&Place>, within: &Range) -> bool {
        match *within == Range::all() {
            true => self.set.round_waits(from),
            false => self.set.is_left_within(from, within),
        }
    }

    /// How many runs there are is the policy's to say.
    fn next_read_compaction(&self, _: &BTreeSet<NodeKey>, _: &ReadTerms<'_>) -> Option<(Plan, u64)> {
        None
    }

    fn drop_range(&self, range: &Range) -> Option<Vec<u8>> {
        Some(encode(&self.set.drop_range(range)))
    }

    fn debt_bytes(&self) -> u64 {
        self.set.policy.debt_bytes(&self.set, self.room())
    }

    fn resident(&self) -> Option<Resident> {
        let oldest = self.set.residents().next_back()?;
        debug_assert!(oldest.below > 0, "some segment of the log has what is in memory");
        Some(Resident { first_segment: oldest.below - 1, kept: self.set.kept() })
    }

    fn fullest_bytes(&self) -> u64 {
        *self.fullest_bytes.get_or_init(|| self.set.policy.fullest_bytes(&self.set))
    }

    fn has_trees(&self) -> bool {
        self.has_trees && self.set.parts().any(|part| part.fragment.tree().is_some())
    }
}
