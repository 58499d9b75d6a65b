//! What is asked of a table version besides what its own limits call for: compactions, reclaim, deleted ranges.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_base::{Range, Result};
use forebay_buffer_tree::{Place, ReadTerms};
use forebay_store::list::Kept;
use forebay_store::salvage::Gaps;

use super::{Job, NodeKey, Plan, Planned};

/// Records that lists in memory have, and no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The oldest log segment that has some of them.
    pub first_segment: u64,
    /// How much they are, and what the lists take: those of which something is left, as a whole.
    pub kept: Kept,
}

/// What can be done for a table's shape. Planning is pure.
pub trait Upkeep {
    /// Plans the next step of a full compaction. Pure.
    fn next_full_compaction(&self, busy: &BTreeSet<NodeKey>) -> Option<Plan>;

    /// Plans the next step of a compaction that goes round what meets a range, from a place on, and where it goes on from
    /// then: `None` for the beginning. `None` when nothing is left up to the end, or may be done now. A round ends, and has
    /// merged all that there was when it began, whatever is added meanwhile. Pure.
    fn next_reclaim(
        &self,
        busy: &BTreeSet<NodeKey>,
        from: Option<&Place>,
        within: &Range,
    ) -> Option<(Plan, Option<Place>)>;

    /// Whether what is left of a round from a place on can only be done once nobody is at work on it.
    fn round_waits(&self, _from: Option<&Place>, _within: &Range) -> bool {
        false
    }

    /// Plans the job that writes anew what a node has of one of these files, by their ids. Pure.
    fn next_rewrite_of(&self, busy: &BTreeSet<NodeKey>, files: &BTreeSet<u64>) -> Option<Plan>;

    /// Plans the job that spares lookups the most for what it costs, if the terms allow one; and that cost. Pure.
    fn next_read_compaction(&self, busy: &BTreeSet<NodeKey>, terms: &ReadTerms<'_>) -> Option<(Plan, u64)>;

    /// The edit that drops all records of a range without reading any; `None` where the layout cannot.
    fn drop_range(&self, _range: &Range) -> Option<Vec<u8>> {
        None
    }

    /// Starts writing what takes all records of some ranges, side by side and in order, out of the lists; `None` where
    /// they can be [dropped](Self::drop_range) instead. What is damaged cannot tell its keys: it is passed over and
    /// noted.
    fn delete_by_tombstones(&self, _ranges: &[Range], _gaps: &Arc<Gaps>) -> Result<Option<Box<dyn Job>>> {
        Ok(None)
    }

    /// Whether one job is done after the other, whatever nodes it works on, but for what is [planned
    /// beside](Self::next_beside) it.
    fn is_for_one(&self) -> bool {
        false
    }

    /// Of such a version, plans what its limits call for beside jobs that are under way. Pure.
    fn next_beside(&self, _busy: &BTreeSet<NodeKey>) -> Option<Planned> {
        None
    }

    /// Bytes that wait above their nodes' limits.
    fn debt_bytes(&self) -> u64;

    /// What is in memory alone, if anything is.
    fn resident(&self) -> Option<Resident> {
        None
    }

    /// Of the key ranges that have something in memory alone, how much memory comes back with the one that gives most.
    fn fullest_bytes(&self) -> u64 {
        0
    }

    /// Whether any of its files is a tree.
    fn has_trees(&self) -> bool {
        false
    }
}
